"""A shell runs the commands that `penstock migrate` prints, unchanged; the chart accepts the values in them."""
import json
import os
import subprocess

import pytest
import yaml

from conftest import ROOT, Rendered, read_all

TESTDATA, ROCM = (ROOT / f"src/analysis/migrate/{vendor}/testdata" for vendor in ("nvidia", "amd"))
VALUES = """image: {repository: registry.corp/nvidia/k8s-device-plugin, tag: v0.17.1}
runtimeClassName: nvidia
securityContext: {capabilities: {add: [SYS_ADMIN]}}
config: {map: {default: "version: v1\\nsharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}\\n"}}
"""


def rendered(chart, programs, folder, *files) -> Rendered:
    """The objects that the printed installation would install; the preceding commands write its file of values and its file of counters."""
    words = [word for file in files for word in ("--manifests", file)]
    done = subprocess.run([programs / "penstock", "migrate", *words, "-o", "json"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    [command] = [step["command"] for step in json.loads(done.stdout)["steps"] if " install penstock " in step["command"]]
    (folder / "deploy").symlink_to(ROOT / "deploy")
    if not (folder / "values.yaml").exists():
        (folder / "values.yaml").write_text(VALUES)
    (folder / "counters.csv").write_text("DCGM_FI_DEV_GPU_UTIL, gauge, u\n")
    command = command.replace(" install penstock ", " template penstock --kube-version 1.36.3 --api-versions monitoring.coreos.com/v1/ServiceMonitor ")
    said = subprocess.run(["sh", "-euc", command], cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          env=os.environ | {"PATH": f"{chart.helm.parent}:{os.environ['PATH']}"})
    assert said.returncode == 0, f"{command}\n{said.stderr}"
    return Rendered(read_all(said.stdout))


@pytest.mark.parametrize("file", ["nvidia-chart.yaml", "nvidia-static.yaml", "gpu-operator.yaml"])
def test_of_each_shape_of_the_stack_it_renders(chart, programs, tmp_path, file):
    objects = rendered(chart, programs, tmp_path, TESTDATA / file)
    assert objects.container()["image"].startswith("localhost/penstock:")
    assert objects.container()["securityContext"]["privileged"] is True and "runtimeClassName" not in objects.pod()


def test_values_of_nvidias_chart_become_ours_with_what_mps_needs(chart, programs, tmp_path):
    (tmp_path / "values.yaml").write_text(VALUES)
    objects = rendered(chart, programs, tmp_path, tmp_path / "values.yaml")
    assert any("mps" in path for path in objects.mounts()), objects.mounts()


def test_the_exporters_counters_host_label_and_job_go_on(chart, programs, tmp_path):
    objects = rendered(chart, programs, tmp_path, TESTDATA / "dcgm-exporter.yaml")
    assert "DCGM_FI_DEV_GPU_UTIL" in json.dumps([thing.get("data") for thing in objects if thing["kind"] == "ConfigMap"])
    assert yaml.safe_load(objects.node_config())["telemetry"]["hostLabel"] == "Hostname"
    [endpoint] = objects.one("ServiceMonitor")["spec"]["endpoints"]
    assert {"targetLabel": "job", "replacement": "dcgm-exporter"} in endpoint["relabelings"]


def test_of_rocms_programs_the_config_maps_and_names_go_on(chart, programs, tmp_path):
    objects = rendered(chart, programs, tmp_path, ROCM / "rocm.yaml")
    config = yaml.safe_load(objects.node_config())
    assert config["parts"] == {"strategy": "mixed", "modeProfiles": "/etc/penstock-modes/config.json"}
    assert config["telemetry"]["exporterFile"] == "/etc/penstock-exporter/config.json"
    maps = {volume["name"]: volume["configMap"]["name"] for volume in objects.pod()["volumes"] if "configMap" in volume}
    assert maps["modes"] == "dcm-st" and maps["exporter"] == "gpu-config"
