"""Others on the same nodes: a plugin that serves already, a real NFD, a network that lets nothing out; and the plain manifest."""
import json
import time

import pytest
from actors import wait_for
from fleet import ACCELERATORS, IMAGE, NAMESPACE, ROOT
from inside import define
from witnesses import Audit, summed

# Everything that leaves the node, but for the cluster's own networks and the API server: what tries to is dropped, and who it was is kept.
# 224.0.0.0/24 never leaves a link: the kernel itself announces there that the bridge of the pods, new with the first of them, has an address.
NO_EGRESS = """table ip egress {
    set refused { type ipv4_addr . ipv4_addr . inet_proto . inet_service; flags dynamic; counter; size 1000; timeout 1h; }
    chain inner {
        ip daddr { 127.0.0.0/8, 10.90.0.0/24, 10.244.0.0/16, 10.96.0.0/16, 224.0.0.0/24 } accept
        update @refused { ip saddr . ip daddr . ip protocol . th dport } drop
        drop
    }
    chain out { type filter hook output priority 10; jump inner; }
    chain through { type filter hook forward priority 10; jump inner; }
}
"""


@pytest.fixture
def bare(fleet):
    """Four nodes without Penstock, from which nothing gets out; afterwards again without."""
    fleet.clear()
    if fleet.values is not None:
        fleet.uninstall()
    for node in fleet.nodes.values():
        node.run("nft", "-f", "-", input=NO_EGRESS)
    yield fleet
    for node in fleet.nodes.values():
        node.run("nft", "delete", "table", "ip", "egress")


def manifest() -> str:
    """deploy/manifests/penstock.yaml for machines whose driver and devices lie in a folder, with the image of this build."""
    text = (ROOT / "deploy/manifests/penstock.yaml").read_text()
    for there, here in {"image: localhost/penstock:0.1.0": f"image: {IMAGE}",
                        "hostPath: {path: /, type: Directory}": f"hostPath: {{path: {ACCELERATORS}, type: Directory}}",
                        "devRoot: /\n": "devRoot: /driver-root\n", "hostDevRoot: /\n": f"hostDevRoot: {ACCELERATORS}\n",
                        "hostDriverRoot: /\n": f"hostDriverRoot: {ACCELERATORS}\n      sysfsRoot: /driver-root/sys\n"}.items():
        assert there in text, f"the manifest has no {there!r}"
        text = text.replace(f" {there}", f" {here}")
    return text


def test_a_plain_manifest_with_egress_blocked_beside_a_plugin_that_serves_first(bare, measure, request):
    """Walkthroughs N and P, and taking over."""
    define(bare.cluster.dir / "n3", "foreign-plugin", ["kubelet-peer", "serve", "nvidia.com/gpu", "2"])
    bare.cluster.start("foreign-plugin", node=3)
    request.addfinalizer(lambda: bare.cluster.kill("foreign-plugin", node=3))
    bare.wait_advertised(60, but={"n1": 0, "n2": 0, "n3": 2, "n4": 0})  # the kubelet's own tick
    text = manifest()
    try:
        with measure("kubectl apply of the plain manifest, egress blocked: three Node objects have their GPUs"):
            bare.kubectl("apply", "--server-side", "-f", "-", input=text)
            bare.wait_advertised(60, but={"n3": 2})
        door = wait_for(lambda: (door := bare.nodes["n3"].door("kubelet"))["state"] == "stepped-back" and door, 60, "our door on n3 to wait")
        assert "someone-else" in door["reason"]
        assert all(id.startswith("someone-elses") for id in bare.nodes["n3"].kubelet_has())
        with measure("the other plugin goes: ours takes over"):
            bare.cluster.kill("foreign-plugin", node=3)
            bare.wait_advertised(60)
        bare.check()
        for node in bare.nodes.values():
            [refused] = [it["set"] for it in json.loads(node.run("nft", "-j", "list", "set", "ip", "egress", "refused").stdout)["nftables"]
                         if "set" in it]
            assert not refused.get("elem"), f"something on {node.name} wanted out (from, to, protocol, port): {refused['elem']}"
    finally:
        bare.kubectl("delete", "-f", "-", "--ignore-not-found", "--wait=true", "--timeout=180s", input=text)
    bare.wait_advertised(60, but={name: 0 for name in bare.nodes})


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


@pytest.fixture
def nfd(fleet):
    """A real NFD in the cluster, and away afterwards."""
    tools = fleet.cluster.parts.tools
    crds, master, worker = (tools / name for name in ("nfd-api-crds.yaml", "master-clusterrole.yaml", "worker-role.yaml"))
    fleet.kubectl("create", "namespace", "nfd")
    fleet.kubectl("apply", "--server-side", "-f", crds, "-f", master)
    fleet.kubectl("apply", "-n", "nfd", "-f", worker)
    fleet.kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": nfd_manifest(tools)}))
    yield fleet
    fleet.kubectl("delete", "namespace", "nfd", "--wait=true", "--timeout=180s")
    fleet.kubectl("delete", "clusterrolebinding", "nfd-master")
    fleet.kubectl("delete", "-f", crds, "-f", master, "--timeout=180s")


def test_a_real_nfd_and_penstock_do_not_fight(installed, nfd, remark):
    """Walkthrough M."""
    theirs, both = "feature.node.kubernetes.io/system-os_release.ID", "feature.node.kubernetes.io/pci-10de.present"
    annotation = "nfd.node.kubernetes.io/feature-labels"
    wait_for(lambda: all(annotation in installed.get("node", name)["metadata"].get("annotations", {}) for name in installed.nodes), 60,
             "NFD to label the nodes", lambda: nfd.kubectl("logs", "-n", "nfd", "-l", "app in (nfd-master,nfd-worker)", check=False).stdout)
    installed.wait_quiet()  # what follows from NFD's coming
    begin, seconds = time.time(), 20
    time.sleep(seconds)  # the time in which they could fight
    wrote = installed.audit.writes(begin)
    nfds = installed.audit.writes(begin, who="system:serviceaccount:nfd:")
    remark(f"a real NFD beside ours, {seconds} s: writes of ours", summed(wrote) or "none", wrote)
    remark(f"a real NFD beside ours, {seconds} s: NFD's writes to nodes", summed(nfds) or "none", nfds)
    assert not wrote and not nfds, f"ours: {Audit.told(wrote, begin)}; NFD's: {Audit.told(nfds, begin)}"
    for name in installed.nodes:
        labels = installed.labels(name)
        assert labels[both] == "true" and theirs in labels and "nvidia.com/gpu.product" in labels, f"{name}: {labels}"
    installed.check()


def test_once_nfd_is_gone_its_labels_are_ours_again(installed):
    wait_for(lambda: all(installed.labels(name).get("feature.node.kubernetes.io/pci-10de.present") == "true" for name in installed.nodes), 60,
             "the labels that users of NFD select on", lambda: (installed.labels("n1"), installed.kubectl("get", "pods", "-n", NAMESPACE).stdout))
