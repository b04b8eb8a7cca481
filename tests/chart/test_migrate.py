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


def rendered(chart, programs, folder, file, node: str = "", release: str = "penstock") -> Rendered:
    """The objects that the printed installation would install; the preceding commands write its file of values and its file of counters."""
    words = ["--manifests", file] + (["--node", node] if node else [])
    done = subprocess.run([programs / "penstock", "migrate", *words, "-o", "json"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    [command] = [step["command"] for step in json.loads(done.stdout)["steps"] if f" install {release} " in step["command"]]
    (folder / "deploy").symlink_to(ROOT / "deploy")
    if not (folder / "values.yaml").exists():
        (folder / "values.yaml").write_text(VALUES)
    (folder / "counters.csv").write_text("DCGM_FI_DEV_GPU_UTIL, gauge, u\n")
    command = command.replace(f" install {release} ", f" template {release} --kube-version 1.36.3 --api-versions monitoring.coreos.com/v1/ServiceMonitor ")
    command = command.replace(" penstock/gpu-operator ", " deploy/helm/gpu-operator ")  # which a repository serves
    said = subprocess.run(["sh", "-euc", command], cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          env=os.environ | {"PATH": f"{chart.helm.parent}:{os.environ['PATH']}"})
    assert said.returncode == 0, f"{command}\n{said.stderr}"
    return Rendered(read_all(said.stdout))


@pytest.mark.parametrize("file, node", [("nvidia-chart.yaml", ""), ("nvidia-static.yaml", ""), ("gpu-operator.yaml", "gpu-1")])
def test_of_each_shape_of_the_stack_it_renders(chart, programs, tmp_path, file, node):
    objects = rendered(chart, programs, tmp_path, TESTDATA / file, node)
    assert objects.container()["image"].startswith("localhost/penstock:")
    assert objects.container()["securityContext"]["privileged"] is True and "runtimeClassName" not in objects.pod()


def test_in_place_of_nvidias_operator_ours_has_its_values_and_names(chart, programs, tmp_path):
    (tmp_path / "values.yaml").write_text("mig: {strategy: mixed}\nnfd: {enabled: true}\noperator: {repository: nvcr.io/nvidia, image: gpu-operator}\n")
    (tmp_path / "cluster.yaml").write_text("kind: ClusterPolicy\nmetadata: {name: cluster-policy}\nspec: {dcgmExporter: {version: 4.1.1-4.0.4-ubuntu22.04}}\n")
    objects = rendered(chart, programs, tmp_path, tmp_path / "cluster.yaml", release="gpu-operator")
    assert objects.one("ClusterPolicy", "cluster-policy")["spec"]["mig"] == {"strategy": "mixed"}
    [own] = [one for one in objects if one["kind"] == "Penstock"]
    assert own["spec"] == {"node": {"telemetry": {"hostLabel": "Hostname"}}}
    [operator] = [one for one in objects if one["kind"] == "Deployment"]
    assert operator["spec"]["template"]["spec"]["containers"][0]["image"].startswith("localhost/penstock:")


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
