"""During outages of the API server, etcd, the network, a kubelet, a node or a permission, no allocation is lost, and within seconds after the outage the Node
objects are up to date. Each scenario sets up, injects the fault, waits for a predicate with a deadline, and checks the invariant."""
import json
import signal
import time

import pytest
from actors import GPU, wait_for
from fleet import NAMESPACE, RELEASE, Fleet

PULLED = "0000:65:00.0"  # the RTX 3090 of n2
KEY = "nvidia.com/gpu.count.GeForce-RTX-3090"


@pytest.fixture
def busy(installed):
    """Pods that hold GPUs on three nodes; n1, n2 and n3 have a free one."""
    wanted = {"n1": 7, "n2": 2, "n4": 1}
    for node, pods in wanted.items():
        installed.hold(f"busy-{node}", node, pods)
    installed.wait_held(*(f"busy-{node}" for node in wanted))
    installed.check()
    return installed


def given(fleet: Fleet) -> dict[str, dict]:
    return {name: node.kubelet_gave() for name, node in fleet.nodes.items()}


def count_of_the_pulled(fleet: Fleet) -> str | None:
    return fleet.labels("n2").get(KEY)


def free_gpu(fleet: Fleet) -> str:
    """PCI address and label of a GPU on n2 that no pod holds."""
    held = set().union(*fleet.nodes["n2"].kubelet_gave().values())
    device = next(one for one in fleet.nodes["n2"].status()["devices"] if one["id"] not in held)
    model = {"NVIDIA A100-PCIE-40GB": "A100-PCIE-40GB", "NVIDIA GeForce RTX 3090": "GeForce-RTX-3090", "Tesla T4": "Tesla-T4"}
    return device["pci"], f"nvidia.com/gpu.count.{model[device['model']]}"


def told_of_a_change_meanwhile(fleet: Fleet, measure, what: str, away, back, deadline: float = 60):
    """During an outage a free GPU of n2 is removed; kubelets keep their lists; afterwards the Node object follows."""
    before, (pci, key) = given(fleet), free_gpu(fleet)
    away()
    try:
        fleet.nodes["n2"].machine.fault(pci, "remove")
        wait_for(lambda: len(fleet.nodes["n2"].kubelet_has()) == 2, 60, "the kubelet of n2 to know that the GPU is gone")
        for name in ("n1", "n3", "n4"):
            assert fleet.nodes[name].kubelet_has() == set(fleet.nodes[name].machine.minors())
        outage = time.time()
        wait_for(lambda: time.time() > outage + 3, 60, "the outage to last 3 s")
    finally:
        with measure(what) as it:
            back()
            it.done = fleet.watch.wait(lambda nodes: key not in nodes["n2"]["metadata"]["labels"], deadline, f"the label {key} to go")
    fleet.nodes["n2"].machine.heal()
    fleet.wait_advertised(60)
    fleet.check(deadline=120)
    assert given(fleet) == before
    fleet.restart_controllers()


def test_the_api_server_is_killed_and_comes_back(busy, measure):
    told_of_a_change_meanwhile(busy, measure, "API server killed and restarted: a change in between is reported",
                               lambda: busy.cluster.kill("apiserver"), lambda: busy.cluster.start("apiserver"))


def test_etcd_stops_for_eight_seconds(busy, measure):
    def stop():
        busy.cluster.kill("etcd", number=signal.SIGSTOP)
        time.sleep(5)  # the outage itself takes, with its overhead, 8 s

    told_of_a_change_meanwhile(busy, measure, "etcd stopped for 8 s: a change in between is reported",
                               stop, lambda: busy.cluster.kill("etcd", number=signal.SIGCONT))


LOSS = """table ip scenario {
    chain in { type filter hook prerouting priority -350; iifname "eth0" tcp sport 6443 numgen random mod 100 < 30 drop; }
    chain out { type filter hook postrouting priority 350; oifname "eth0" tcp dport 6443 numgen random mod 100 < 30 drop; }
}
"""


@pytest.fixture
def lossy(busy):
    nodes = [busy.nodes[name] for name in ("n2", "n3", "n4")]
    for node in nodes:
        node.run("nft", "-f", "-", input=LOSS)
    yield busy
    for node in nodes:
        node.run("nft", "delete", "table", "ip", "scenario", check=False)


def test_thirty_percent_of_packets_are_lost(lossy, measure):
    pci, key = free_gpu(lossy)
    with measure("30 % packet loss: a change is reported") as it:
        lossy.nodes["n2"].machine.fault(pci, "remove")
        it.done = lossy.watch.wait(lambda nodes: key not in nodes["n2"]["metadata"]["labels"], 180, f"the label {key} to go")
    lossy.nodes["n2"].machine.heal()
    lossy.watch.wait(lambda nodes: key in nodes["n2"]["metadata"]["labels"], 180, f"the label {key} to be back")
    for name in ("n2", "n3", "n4"):
        lossy.nodes[name].run("nft", "delete", "table", "ip", "scenario")
    lossy.wait_advertised(120)
    lossy.check(deadline=180)


def test_kubelets_restart_while_they_allocate(installed, measure):
    with measure("kubelets killed while they allocate: all pods run"):
        for node, replicas in {"n1": 8, "n2": 3}.items():
            installed.deploy(f"many-{node}", node, replicas)
        for k in (1, 2, 1):
            wait_for(lambda k=k: installed.get("pods", "--field-selector", f"spec.nodeName=n{k}")["items"], 60, "pods on their way")
            installed.cluster.kill("kubelet", node=k)
            installed.cluster.start("kubelet", node=k)
        installed.wait_deployed("many-n1", "many-n2", deadline=180)
    installed.wait_advertised(60)
    installed.check(deadline=120)


def test_a_node_reboots(busy, measure):
    busy.deploy("rebooted", "n3", 1)
    busy.wait_deployed("rebooted")
    with measure("a node reboots: its GPU is on the Node object, its pod runs again"):
        busy.cluster.reboot_node(3)
        wait_for(lambda: busy.nodes["n3"].kubelet_has() == set(busy.nodes["n3"].machine.minors()), 60, "the kubelet of n3 to have its GPU",
                 busy.logs)
        busy.wait_advertised(60)
        busy.wait_deployed("rebooted", deadline=180)
    busy.kubectl("delete", "pods", "--field-selector", "status.phase=Failed")  # they were admitted before any plugin could register, and fail permanently
    busy.wait_rolled_out()
    busy.check(deadline=120)


def test_a_rule_is_taken_from_the_role(installed, measure):
    role = installed.get("clusterrole", RELEASE)
    without = [rule for rule in role["rules"] if not (rule["resources"] == ["nodes"] and rule["verbs"] == ["patch"])]
    assert len(without) == len(role["rules"]) - 1
    machine = installed.nodes["n2"].machine
    patch = lambda rules: installed.kubectl("patch", "clusterrole", RELEASE, "--type=merge", "-p", json.dumps({"rules": rules}))  # noqa: E731
    account = installed.get("daemonset", RELEASE, "-n", NAMESPACE)["spec"]["template"]["spec"]["serviceAccountName"]
    try:
        with measure("a rule is removed from the ClusterRole: status names it"):
            patch(without)
            installed.wait_permission(account, "patch", "nodes", False)
            machine.fault(PULLED, "remove")
            # A connection that an earlier scenario broke may briefly be the reason.
            wait_for(lambda: "patch" in (reason := installed.nodes["n2"].allocator("cluster")["reason"]) and "nodes" in reason, 60,
                     "status to name the missing rule", lambda: installed.nodes["n2"].allocator("cluster"))
        assert installed.nodes["n2"].allocator("kubelet")["state"] == "open"
    finally:
        patch(role["rules"])
    with measure("the rule is added again: the labels follow"):
        wait_for(lambda: count_of_the_pulled(installed) is None, 90, "the label of the removed GPU to go", installed.logs)
    machine.heal()
    installed.wait_advertised(60)
    wait_for(lambda: not installed.nodes["n2"].allocator("cluster")["reason"], 60, "status to report no problem")
    assert installed.get("node", "n2")["status"]["allocatable"][GPU] == "3"
