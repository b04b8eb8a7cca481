"""A real API server accepts the definitions in deploy/crds, and the samples of resources with strict
field validation; unknown fields survive, and what must not be is refused."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "support")]

import control_plane  # noqa: E402
import api  # noqa: E402
import parts  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
CRDS = sorted((ROOT / "deploy/crds").glob("*.yaml"))
SAMPLES = sorted((ROOT / "src/api/compat/nvidia/testdata").glob("*/*.yaml"))
CONFIGS = sorted((ROOT / "src/api/compat/amd/testdata/device-config").glob("*.yaml"))


class Kubectl:
    def __init__(self, server: control_plane.ControlPlane):
        self.server = server

    def run(self, *words, text="", good=True) -> str:
        done = subprocess.run([parts.packages() / "sbin/kubectl", "--kubeconfig", self.server.admin, *map(str, words)],
                              input=text, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              cwd=self.server.folder, env={"PATH": os.defpath, "HOME": str(self.server.folder)})
        assert (done.returncode == 0) == good, f"{words}: {done.stdout}"
        return done.stdout


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory):
    server = control_plane.ControlPlane(tmp_path_factory.mktemp("server"))
    try:
        kubectl = Kubectl(server)
        files = [word for file in CRDS for word in ("-f", file)]
        kubectl.run("apply", "--server-side", "--validate=strict", *files)
        kubectl.run("wait", f"--for={api.ESTABLISHED}", "--timeout=60s", *files)
        kubectl.run("create", "namespace", "gpu-operator")
        yield kubectl
    finally:
        server.stop()


def driver(name: str, **spec) -> str:
    return json.dumps({"apiVersion": "nvidia.com/v1alpha1", "kind": "NVIDIADriver", "metadata": {"name": name},
                       "spec": spec})


@pytest.mark.parametrize("sample", [file for file in SAMPLES if file.stem != "old"], ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_a_sample_passes_strict_validation(kubectl, sample):
    kubectl.run("apply", "--server-side", "--force-conflicts", "--validate=strict", "-f", sample)


@pytest.mark.parametrize("sample", CONFIGS, ids=lambda file: file.stem)
def test_a_device_config_passes_strict_validation(kubectl, sample):
    kubectl.run("apply", "--server-side", "--force-conflicts", "--validate=strict", "-f", sample)


def test_unknown_fields_survive_at_every_depth(kubectl):
    spec = {name: {} for name in ("operator", "daemonsets", "driver", "toolkit", "devicePlugin", "gfd", "dcgm",
                                  "dcgmExporter", "nodeStatusExporter")}
    spec |= {"future": {"a": 1}, "devicePlugin": {"config": {"newer": [True]}}}
    policy = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "newer"}, "spec": spec}
    kubectl.run("apply", "--server-side", "-f", "-", text=json.dumps(policy))
    kept = json.loads(kubectl.run("get", "clusterpolicy", "newer", "-o", "json"))["spec"]
    assert kept["future"] == {"a": 1} and kept["devicePlugin"]["config"]["newer"] == [True]
    assert kept["operator"]["runtimeClass"] == "nvidia" and kept["daemonsets"]["updateStrategy"] == "RollingUpdate"


def test_a_cluster_policy_of_any_time_can_be_answered(kubectl):
    """Objects that were stored before a section was required are validated as a whole with each write, also of their status."""
    old = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "old"}, "spec": {"operator": {"defaultRuntime": "crio"}}}
    kubectl.run("apply", "--server-side", "--validate=strict", "-f", "-", text=json.dumps(old))
    kubectl.run("patch", "clusterpolicy", "old", "--subresource=status", "--type=merge", "-p", json.dumps({"status": {"state": "notReady"}}))


def test_what_a_definition_forbids_is_refused(kubectl):
    assert "nodeSelector" in kubectl.run("apply", "-f", "-", text=driver("a", default=True, nodeSelector={"a": "b"}),
                                         good=False)
    kubectl.run("apply", "-f", "-", text=driver("b", driverType="gpu", usePrecompiled=False))
    assert "cannot be changed" in kubectl.run("apply", "-f", "-", text=driver("b", driverType="vgpu", usePrecompiled=False),
                                              good=False)
    cluster = {"apiVersion": "nvidia.com/v1alpha1", "kind": "GPUCluster", "spec": {"draDriver": {}}}
    assert "gpu-cluster" in kubectl.run("apply", "-f", "-", text=json.dumps(cluster | {"metadata": {"name": "other"}}),
                                        good=False)
    kubectl.run("apply", "-f", "-", text=json.dumps(cluster | {"metadata": {"name": "gpu-cluster"}}))
    assert "b" in kubectl.run("get", "nvd") and "gpu-cluster" in kubectl.run("get", "gc")


def penstock(**spec) -> str:
    return json.dumps({"apiVersion": "penstock.io/v1alpha1", "kind": "Penstock", "metadata": {"name": "one"}, "spec": spec})


@pytest.mark.parametrize(("wrong", "said"), [
    ({"drivers": [{"name": "a", "default": True, "nodeSelector": {"pool": "a"}}]}, "a default driver is for all other nodes"),
    ({"drivers": [{"name": "a", "default": True, "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}]}, "a default driver is for all other nodes"),
    ({"drivers": [{"name": "a"}, {"name": "a"}]}, "drivers[1]: Duplicate value"),
    ({"drivers": [{"name": "", "default": True}]}, "drivers[0].name"),
    ({"drivers": [{"default": True}]}, "drivers[0].name: Required"),
    ({"drivers": [{"name": "a", "upgrade": {"loadTimeout": "5 minutes"}}]}, "drivers[0].upgrade.loadTimeout"),
    ({"drivers": [{"name": "a", "upgrade": {"maxUnavailable": "a quarter"}}]}, "drivers[0].upgrade.maxUnavailable"),
    ({"services": [{"name": "a", "port": 65536}]}, "services[0].port"),
    ({"runtimeClasses": [{"name": "nvidia"}]}, "runtimeClasses[0].handler: Required"),
    ({"agent": {"imagePullPolicy": "Sometimes"}}, "agent.imagePullPolicy"),
])
def test_a_penstock_object_is_refused_with_the_field(kubectl, wrong, said):
    refused = kubectl.run("create", "--validate=false", "-f", "-", text=penstock(**wrong), good=False)
    assert said in refused and "spec." in refused


def test_a_penstock_object_with_every_form_of_a_value_is_accepted(kubectl):
    upgrade = {"maxUnavailable": "25%", "maxFailures": 2, "loadTimeout": "1h30m", "validationTimeout": "1.5m", "canaries": {"count": 1, "soak": "500ms"}}
    drivers = [{"name": "a", "nodeSelector": {"pool": "a"}, "upgrade": upgrade}, {"name": "rest", "default": True, "nodeSelector": {}}]
    kubectl.run("apply", "--server-side", "--validate=strict", "-f", "-",
                text=penstock(drivers=drivers, agent={"updateStrategy": {"maxUnavailable": ""}, "env": [{"name": "A", "value": ""}]}))
    # Of two managers' drivers, each has its own.
    kubectl.run("apply", "--server-side", "--field-manager=other", "-f", "-", text=penstock(drivers=[{"name": "b", "nodeSelector": {"pool": "b"}}]))
    kept = json.loads(kubectl.run("get", "penstock", "one", "-o", "json"))["spec"]["drivers"]
    assert [one["name"] for one in kept] == ["a", "rest", "b"] and kept[0]["upgrade"] == upgrade


def device_config(**spec) -> dict:
    return {"apiVersion": "amd.com/v1alpha1", "kind": "DeviceConfig", "metadata": {"name": "one", "namespace": "gpu-operator"}, "spec": spec}


def test_a_device_config_has_the_defaults_and_limits_of_amds_definition(kubectl):
    kubectl.run("apply", "-f", "-", text=json.dumps(device_config(driver={}, devicePlugin={"newer": [True]}, metricsExporter={})))
    kept = json.loads(kubectl.run("get", "gpue", "one", "-n", "gpu-operator", "-o", "json"))["spec"]
    assert kept["driver"] == {"enable": True, "driverType": "container"}
    assert kept["devicePlugin"]["newer"] == [True] and kept["devicePlugin"]["kubeletSocketPath"] == "/var/lib/kubelet/device-plugins"
    assert kept["metricsExporter"]["port"] == 5000 and "resource" not in kept["metricsExporter"]
    for field, wrong in (("driverType", {"driver": {"driverType": "host"}}), ("nodePort", {"metricsExporter": {"nodePort": 80}}),
                         ("enableDevicePlugin", {"devicePlugin": {"enableDevicePlugin": "yes"}})):
        assert field in kubectl.run("apply", "-f", "-", text=json.dumps(device_config(**wrong)), good=False)


def test_a_status_of_amds_operator_does_not_prevent_a_change(kubectl):
    kubectl.run("apply", "-f", "-", text=json.dumps(device_config(driver={"enable": False})))
    status = {"status": {"devicePlugin": {"desiredNumber": 2}, "nodeModuleStatus": {"n1": {"status": "Install-Complete"}}}}
    kubectl.run("patch", "deviceconfig", "one", "-n", "gpu-operator", "--subresource=status", "--type=merge", "-p", json.dumps(status))
    kubectl.run("patch", "deviceconfig", "one", "-n", "gpu-operator", "--type=merge", "-p", json.dumps({"spec": {"driver": {"enable": True}}}))
    kept = json.loads(kubectl.run("get", "deviceconfig", "one", "-n", "gpu-operator", "-o", "json"))["status"]
    assert kept["devicePlugin"] == {"desiredNumber": 2} and kept["nodeModuleStatus"]["n1"]["status"] == "Install-Complete"
