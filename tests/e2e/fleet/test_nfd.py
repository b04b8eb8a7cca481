"""Penstock beside a real NFD: the two do not overwrite each other's labels, and either can replace the other."""
import contextlib
import json
import sys
import time
from pathlib import Path

import pytest
from actors import wait_for
from fleet import ACCELERATORS, NAMESPACE, Fleet
from witnesses import Audit

sys.path.append(str(Path(__file__).parents[2] / "support"))

from amd import Amd  # noqa: E402

AMD_NODE = "feature.node.kubernetes.io/amd-gpu"
# The PCI device ids of the rules of AMD's chart (ROCm/gpu-operator, helm-charts-k8s, nfd-default-rule.yaml), each in an element of matchAny.
AMDS_IDS = {
    "amd-vgpu": ("7410", "74b5", "74b9", "7461", "73ae"),
    "amd-gpu": ("74a5", "74a2", "74b6", "74a8", "74a0", "74a1", "74a9", "74bd", "740f", "7408", "740c", "738c", "738e",  # Instinct
                "7460", "7448", "744a", "745e", "73a2", "73a3", "73ab", "73a1", "7550", "744c", "73af", "73bf"),  # Radeon
}


def nfd_manifest(tools) -> list[dict]:
    """NFD's master and worker as its own deployment runs them, with the machine's /sys."""
    def pod(program: str, *arguments: str, mounts: dict[str, str]) -> dict:
        volumes = {"/nfd": str(tools)} | mounts
        return {"metadata": {"labels": {"app": program}}, "spec": {
            "serviceAccountName": program, "terminationGracePeriodSeconds": 0, "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "main", "image": "registry.local/busybox:1", "imagePullPolicy": "Never",
                            "command": [f"/nfd/{program}", *arguments],
                            "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                                    {"name": "KUBERNETES_NAMESPACE", "value": "nfd"},
                                    {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                                    {"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}],
                            "volumeMounts": [{"name": f"v{i}", "mountPath": mount, "readOnly": True} for i, mount in enumerate(volumes)]}],
            "volumes": [{"name": f"v{i}", "hostPath": {"path": path}} for i, path in enumerate(volumes.values())]}}

    def workload(kind: str, name: str, template: dict) -> dict:
        return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "nfd"},
                "spec": {"selector": {"matchLabels": {"app": name}}, "template": template}}

    def binding(kind: str, role: str, name: str) -> dict:
        where = {} if kind == "ClusterRoleBinding" else {"namespace": "nfd"}
        return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name} | where,
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": name},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "nfd"}]}

    host = {"/host-sys": f"{ACCELERATORS}/sys", "/host-etc/os-release": "/etc/os-release", "/host-boot": "/boot", "/host-usr/lib": "/usr/lib",
            "/host-lib": "/lib", "/host-proc/swaps": "/proc/swaps"}
    account = lambda name: {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "nfd"}}  # noqa: E731
    options = '{"core":{"sleepInterval":"5s"},"sources":{"pci":{"deviceClassWhitelist":["0300","0302"],"deviceLabelFields":["vendor"]}}}'
    return [account("nfd-master"), account("nfd-worker"), binding("ClusterRoleBinding", "ClusterRole", "nfd-master"),
            binding("RoleBinding", "Role", "nfd-worker"), workload("Deployment", "nfd-master", pod("nfd-master", mounts={})),
            workload("DaemonSet", "nfd-worker", pod("nfd-worker", f"--options={options}", mounts=host))]


@contextlib.contextmanager
def running_nfd(fleet: Fleet):
    """A real NFD in the cluster, which is removed afterwards."""
    tools = fleet.cluster.parts.tools
    crds, master, worker = (tools / name for name in ("nfd-api-crds.yaml", "master-clusterrole.yaml", "worker-role.yaml"))
    fleet.kubectl("create", "namespace", "nfd")
    fleet.kubectl("apply", "--server-side", "-f", crds, "-f", master)
    fleet.kubectl("apply", "-n", "nfd", "-f", worker)
    fleet.kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": nfd_manifest(tools)}))
    try:
        yield
    finally:
        fleet.kubectl("delete", "namespace", "nfd", "--wait=true", "--timeout=180s")
        fleet.kubectl("delete", "clusterrolebinding", "nfd-master")
        fleet.kubectl("delete", "-f", crds, "-f", master, "--timeout=180s")


def share_the_nodes(fleet: Fleet, remark, seconds: float, writes, beside: str = "Penstock"):
    """Walkthrough M beside a running NFD, however Penstock was installed. `writes(begin)`: Penstock's since then."""
    theirs, both = "feature.node.kubernetes.io/system-os_release.ID", "feature.node.kubernetes.io/pci-10de.present"
    annotation = "nfd.node.kubernetes.io/feature-labels"
    wait_for(lambda: all(annotation in fleet.get("node", name)["metadata"].get("annotations", {}) for name in fleet.nodes), 60,
             "NFD to label the nodes", lambda: fleet.kubectl("logs", "-n", "nfd", "-l", "app in (nfd-master,nfd-worker)", check=False).stdout)

    def recent() -> list[dict]:
        since = time.time() - max(15, seconds)
        return [*writes(since), *fleet.audit.writes(since, who="system:serviceaccount:nfd:")]
    begin = time.time()
    # In a conflict there is no such time; a step of an agent's validation that takes long is written once.
    wait_for(lambda: time.time() >= begin + seconds and not recent(), 180, f"{seconds} s without a write of Penstock or NFD", lambda: Audit.told(recent(), time.time()),
             every=0.5)
    remark(f"a real NFD beside {beside}, until neither writes to nodes for {seconds} s", f"{time.time() - begin:.0f} s")
    for name in fleet.nodes:
        labels = fleet.labels(name)
        assert labels[both] == "true" and theirs in labels and "nvidia.com/gpu.product" in labels, f"{name}: {labels}"
    fleet.check()


@pytest.fixture
def nfd(fleet):
    with running_nfd(fleet):
        yield fleet


def test_a_real_nfd_and_penstock_do_not_fight(installed, nfd, remark, request):
    seconds = 20 if request.config.getoption("--all") else 10  # twice NFD's own interval
    share_the_nodes(installed, remark, seconds, installed.audit.writes)


@pytest.fixture
def amd(installed):
    """Two of AMD's GPUs on n4, beside NVIDIA's."""
    machine = installed.nodes["n4"].machine
    first = 1 + max((int(file.name[4:]) for file in (machine.root / "dev/dri").glob("card*")), default=-1)
    amd = Amd(machine.root, "mi210", gpus=2, first=first, on_disk=True)
    yield amd
    amd.unload()
    amd.close()
    wait_for(lambda: not amds(installed), 60, "the labels of AMD's GPUs to be gone", lambda: amds(installed))


def amds_rule() -> dict:
    """The object by which AMD's chart has NFD write the label that a DeviceConfig selects, and another one for virtual functions."""
    def of(device: str) -> dict:
        expressions = {"vendor": {"op": "In", "value": ["1002"]}, "device": {"op": "In", "value": [device]}}
        return {"matchFeatures": [{"feature": "pci.device", "matchExpressions": expressions}]}
    rules = [{"name": name, "labels": {f"feature.node.kubernetes.io/{name}": "true"}, "matchAny": [of(device) for device in devices]} for name, devices in AMDS_IDS.items()]
    return {"apiVersion": "nfd.k8s-sigs.io/v1alpha1", "kind": "NodeFeatureRule", "metadata": {"name": "amd-gpu-label-nfd-rule"}, "spec": {"rules": rules}}


def amds(fleet: Fleet) -> dict[str, str]:
    """Our labels of AMD's GPUs on n4."""
    return {key: value for key, value in fleet.labels("n4").items() if key.startswith(("amd.com/gpu.", "beta.amd.com/gpu."))}


def test_the_label_that_a_device_config_selects_comes_from_nfd_and_ours_stay(installed, amd, nfd, remark):
    wait_for(lambda: amds(installed).get("amd.com/gpu.device-id") == "740f", 120, "the labels of AMD's GPUs", lambda: (amds(installed), installed.last_words(["n4"])))
    nfd.kubectl("apply", "-f", "-", input=json.dumps(amds_rule()))

    def selected() -> list[str]:
        return [name for name in nfd.nodes if nfd.labels(name).get(AMD_NODE) == "true"]
    wait_for(lambda: selected() == ["n4"], 60, "NFD to label the node that has AMD's GPUs, and no other",
             lambda: (selected(), nfd.kubectl("logs", "-n", "nfd", "-l", "app in (nfd-master,nfd-worker)", check=False).stdout))
    ours = amds(installed)
    share_the_nodes(installed, remark, 10, installed.audit.writes, "Penstock with AMD's GPUs")
    assert selected() == ["n4"] and amds(installed) == ours
    theirs = nfd.get("node", "n4")["metadata"]["annotations"]["nfd.node.kubernetes.io/feature-labels"].split(",")
    assert "amd-gpu" in theirs and "amd-vgpu" not in theirs and not [key for key in theirs if key.startswith(("amd.com/", "beta.amd.com/"))], theirs
    nfd.kubectl("delete", "nodefeaturerule", "amd-gpu-label-nfd-rule")
    wait_for(lambda: not selected(), 60, "NFD to take its label back", selected)
    assert amds(installed) == ours


def test_once_nfd_is_gone_its_labels_are_ours_again(installed):
    wait_for(lambda: all(installed.labels(name).get("feature.node.kubernetes.io/pci-10de.present") == "true" for name in installed.nodes), 60,
             "the labels that users of NFD select on", lambda: (installed.labels("n1"), installed.kubectl("get", "pods", "-n", NAMESPACE).stdout))
