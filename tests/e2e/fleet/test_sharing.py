"""Time-slicing with users' existing ConfigMaps: per node, per model, per GPU; changed while pods hold slots; and requests that Kubernetes rejects."""
import json
import time

import pytest
from actors import GPU, wait_for
from cluster import CommandFailed
from fleet import BY_UUID, NAMESPACE, Fleet, Node, device_of, pod_on, slots
from test_configuration import in_force

# From the GPU Operator's documentation, verbatim except for the indentation that copying loses and for the replicas of the first mig resource, where 1 means
# "not shared".
TIME_SLICING_CONFIG = """apiVersion: v1
kind: ConfigMap
metadata:
  name: time-slicing-config
data:
  a100-40gb: |-
    version: v1
    flags:
      migStrategy: mixed
    sharing:
      timeSlicing:
        resources:
        - name: nvidia.com/gpu
          replicas: 8
        - name: nvidia.com/mig-1g.5gb
          replicas: 1
  tesla-t4: |-
    version: v1
    flags:
      migStrategy: none
    sharing:
      timeSlicing:
        resources:
        - name: nvidia.com/gpu
          replicas: 4
"""
THEIRS = {"config": {"name": "time-slicing-config", "map": None, "default": "", "fallbackStrategies": ["named", "single", "empty"]}}


def sliced(replicas: int, *, name: str = GPU, flags: str = "", **more) -> str:
    """A device plugin configuration that shares a resource by time-slicing."""
    said = "".join(f", {key}: {json.dumps(value)}" for key, value in more.items())
    plugin = f"flags:\n  plugin: {{{flags}}}\n" if flags else ""
    return f"version: v1\n{plugin}sharing:\n  timeSlicing:\n    resources:\n    - {{name: {name}, replicas: {replicas}{said}}}\n"


def all_of(node: Node, replicas: int) -> dict[str, int]:
    return {uuid: replicas for uuid in node.machine.minors()}


def configure(fleet: Fleet, node: str, text: str, wanted: dict[str, dict[str, int]]):
    """Gives one node its own configuration, and records the expected slots."""
    fleet.edit({"by-uuid": BY_UUID, "own": text})
    fleet.nodes[node].wanted = wanted
    fleet.choose(node, "own")


def pods_of(fleet: Fleet, app: str) -> list[dict]:
    return fleet.get("pods", "-l", f"app={app}")["items"]


def running(fleet: Fleet, app: str) -> int:
    return sum(pod["status"]["phase"] == "Running" for pod in pods_of(fleet, app))


def wait_one_waits(fleet: Fleet, app: str, resource: str = GPU):
    """Waits until exactly one of those pods is Pending for lack of the resource."""
    def waits() -> bool:
        pending = [pod["metadata"]["name"] for pod in pods_of(fleet, app) if pod["status"]["phase"] == "Pending"]
        return len(pending) == 1 and f"Insufficient {resource}" in fleet.why_pending(pending[0])
    wait_for(waits, 60, f"one pod of {app} to be Pending for lack of {resource}", lambda: fleet.kubectl("get", "pods").stdout)


def wait_replicas(fleet: Fleet, wanted: dict[str, str]):
    """Waits until each node's label has that number: the label follows the capacity."""
    fleet.watch.wait(lambda nodes: all(nodes[name]["metadata"]["labels"].get("nvidia.com/gpu.replicas") == count
                                       for name, count in wanted.items()), 60, f"the label gpu.replicas to be {wanted}")


# --- walkthroughs -----------------------------------------------------------------------------------------------------------------------
@pytest.fixture
def theirs(fleet):
    """The chart with an existing ConfigMap; nodes without the label use the agent's own configuration."""
    fleet.clear()
    fleet.kubectl("create", "namespace", NAMESPACE, check=False)
    fleet.kubectl("apply", "-n", NAMESPACE, "-f", "-", input=TIME_SLICING_CONFIG)
    fleet.ensure_installed(THEIRS)
    fleet.wait_rolled_out()
    fleet.wait_advertised(120)
    return fleet


def share_by_label(theirs: Fleet, measure):
    """Walkthrough C on agents that read its ConfigMap, however they were installed."""
    a100, t4 = theirs.nodes["n4"], theirs.nodes["n3"]
    a100.wanted, t4.wanted = {GPU: all_of(a100, 8)}, {GPU: all_of(t4, 4)}
    with measure("two nodes are labelled: 8 and 4 GPUs on the Node objects") as it:
        theirs.choose("n4", "a100-40gb")
        theirs.choose("n3", "tesla-t4")
        it.done = theirs.wait_advertised(60)
    for node, count in {"n4": "8", "n3": "4"}.items():
        status = theirs.get("node", node)["status"]
        assert (status["capacity"][GPU], status["allocatable"][GPU]) == (count, count)
    wait_replicas(theirs, {"n4": "8"})
    labels = theirs.labels("n4")
    assert (labels["nvidia.com/gpu.replicas"], labels["nvidia.com/gpu.product"]) == ("8", "NVIDIA-A100-SXM4-40GB-SHARED")
    assert (labels["nvidia.com/gpu.sharing-strategy"], labels["nvidia.com/gpu.isolation"]) == ("time-slicing", "none")
    theirs.hold("slice", "n4", 9)
    wait_for(lambda: running(theirs, "slice") == 8, 120, "eight pods to run", lambda: theirs.kubectl("get", "pods").stdout)
    wait_one_waits(theirs, "slice")
    theirs.check()
    ended = next(pod["metadata"]["name"] for pod in pods_of(theirs, "slice") if pod["status"]["phase"] == "Running")
    with measure("one of eight pods is deleted: the ninth runs"):
        theirs.delete_pod(ended)
        theirs.wait_held("slice")
    theirs.check()


def test_time_slicing_by_label_eight_pods_run_and_the_ninth_waits(theirs, measure):
    share_by_label(theirs, measure)


def test_a_shared_t4_beside_an_a100_that_is_not(theirs):
    """The half of walkthrough F that does not concern MIG."""
    t4 = theirs.nodes["n3"]
    t4.wanted = {GPU: all_of(t4, 4)}
    theirs.choose("n3", "tesla-t4")
    theirs.wait_advertised(60)
    theirs.hold("shared", "n3", 4)
    theirs.hold("whole", "n4", 1)
    theirs.wait_held("shared", "whole")
    theirs.check()


def test_requests_unequal_to_limits_are_refused_and_limits_alone_run(theirs):
    """Walkthrough K, with a shared GPU."""
    t4 = theirs.nodes["n3"]
    t4.wanted = {GPU: all_of(t4, 4)}
    theirs.choose("n3", "tesla-t4")
    theirs.wait_advertised(60)
    spec = pod_on("n3", "exec sleep 100000")
    spec["containers"][0]["resources"] = {"requests": {GPU: 1}, "limits": {GPU: 2}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "unequal", "labels": {"app": "unequal"}}, "spec": spec}
    with pytest.raises(CommandFailed, match="must be equal to nvidia.com/gpu limit"):
        theirs.kubectl("create", "-f", "-", input=json.dumps(pod))
    spec["containers"][0]["resources"] = {"limits": {GPU: 2}}
    theirs.kubectl("create", "-f", "-", input=json.dumps(pod))
    theirs.wait_held("unequal")
    assert len(t4.kubelet_gave()["unequal"]) == 2
    theirs.check()


@pytest.fixture
def shared(installed):
    yield installed
    installed.edit({"by-uuid": BY_UUID})


def override_the_default(shared: Fleet, measure):
    """Walkthrough D on agents whose default is a key of the ConfigMap, however they were installed."""
    for node in shared.nodes.values():
        node.wanted = {GPU: all_of(node, 4)}
    with measure("the cluster's default shares each GPU four times: four Node objects") as it:
        shared.edit({"by-uuid": sliced(4), "exclusive": sliced(1)})
        it.done = shared.wait_advertised(60)
    shared.nodes["n1"].wanted = {}
    with measure("  one node gets another label: only that node changes") as it:
        shared.choose("n1", "exclusive")
        it.done = shared.wait_advertised(60)
    in_force(shared, {"n1": "exclusive", "n2": "by-uuid", "n3": "by-uuid", "n4": "by-uuid"})
    wait_replicas(shared, {"n1": "1", "n2": "4"})
    shared.check()


def test_sharing_by_the_clusters_default_and_one_node_that_overrides_it(shared, measure):
    override_the_default(shared, measure)


# --- changes --------------------------------------------------------------------------------------------------------------------------
def kubelet_changes(fleet: Fleet, sampler, note, text: str, count: int, what: str):
    """Applies an edit, and measures the time until the kubelet's list has so many devices."""
    begin = time.time()
    fleet.edit({"by-uuid": BY_UUID, "own": text})
    seconds = sampler.until(count) - begin
    note(what, seconds)


def test_replicas_change_while_pods_hold_slots(shared, measure, converged):
    a100 = shared.nodes["n4"]
    [uuid] = a100.machine.minors()
    configure(shared, "n4", sliced(4), {GPU: {uuid: 4}})
    shared.wait_advertised(60)
    shared.hold("held", "n4", 3)
    shared.wait_held("held")
    shared.check()
    before = a100.kubelet_gave()
    sampler = shared.sample_kubelet("n4")
    goal = "sharing changed while pods hold slots: the kubelet's list"
    a100.wanted = {GPU: {uuid: 8}}
    kubelet_changes(shared, sampler, converged(goal, 1), sliced(8), 8, "4 to 8")
    shared.wait_advertised(60)
    shared.check()
    # Two shares while three are held: no holder loses one, and no new one is allocated.
    kubelet_changes(shared, sampler, converged(goal, 1), sliced(2), len(slots(uuid, 2) & set().union(*before.values())), "8 to 2")
    shared.check(complete=False)
    assert a100.kubelet_gave() == before
    sampler.stop()
    # The Node object follows the kubelet's list later: a pod that is scheduled before that is rejected at admission.
    wait_for(lambda: int(shared.get("node", "n4")["status"]["allocatable"].get(GPU, "0")) <= 3, 60, "the Node to have no more than is held")
    shared.hold("next", "n4", 1)
    wait_one_waits(shared, "next")
    # Sharing is disabled while three shares are held: nothing is allocatable until the last holder has ended.
    shared.edit({"by-uuid": BY_UUID, "own": sliced(1)})
    a100.wanted = {GPU: {uuid: 1}}
    in_force(shared, {"n4": "own"})
    wait_for(lambda: not a100.kubelet_has() and shared.get("node", "n4")["status"]["allocatable"].get(GPU, "0") == "0", 60,
             "the kubelet and the Node object of n4 to have nothing allocatable", a100.kubelet_lists)
    assert a100.kubelet_gave() == before
    shared.check(complete=False)
    shared.delete_pod(*before)
    with measure("sharing is off and the last share is released: a pod holds the whole GPU"):
        shared.wait_held("next")
    [held] = a100.kubelet_gave().values()
    assert held == {uuid}
    shared.check()


def test_a_resource_is_renamed_and_gets_its_name_back_while_pods_hold_slots(shared):
    a100 = shared.nodes["n4"]
    [uuid] = a100.machine.minors()
    configure(shared, "n4", sliced(4), {GPU: {uuid: 4}})
    shared.wait_advertised(60)
    shared.hold("plain", "n4", 2)
    shared.wait_held("plain")
    renamed = f"{GPU}.shared"
    shared.edit({"by-uuid": BY_UUID, "own": sliced(4).replace("timeSlicing:\n", "timeSlicing:\n    renameByDefault: true\n")})
    wait_for(lambda: GPU not in a100.kubelet_lists(), 60, "the old name to be withdrawn", a100.kubelet_lists)
    assert not a100.kubelet_has(renamed) & set().union(*a100.kubelet_gave().values()), "what is held under the old name is offered under the new"
    shared.check(complete=False)
    shared.kubectl("delete", "pods", "-l", "app=plain", "--wait=true", "--timeout=300s")
    a100.wanted = {renamed: {uuid: 4}}
    shared.wait_advertised(60)
    wanted = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB", "nvidia.com/gpu.replicas": "4"}
    shared.watch.wait(lambda nodes: wanted.items() <= nodes["n4"]["metadata"]["labels"].items(), 60, f"the labels {wanted}")
    shared.hold("renamed", "n4", 4, renamed)
    shared.wait_held("renamed")
    shared.check()
    shared.kubectl("delete", "pods", "-l", "app=renamed", "--wait=true", "--timeout=300s")
    shared.edit({"by-uuid": BY_UUID, "own": sliced(4)})
    a100.wanted = {GPU: {uuid: 4}}
    shared.wait_advertised(60)
    shared.check()


def test_replicas_change_while_pods_come_and_go(shared, measure):
    node = shared.nodes["n1"]
    configure(shared, "n1", sliced(4), {GPU: all_of(node, 4)})
    shared.wait_advertised(60)
    shared.hold("stays", "n1", 6)
    shared.wait_held("stays")
    before = node.kubelet_gave()
    with measure("replicas changed four times while 16 pods churn"):
        # A pod fails if its share is gone between scheduling and the kubelet's admission; its Job creates another one.
        shared.churn("churn", "n1", pods=16, at_once=8, failures=60)
        for replicas in (8, 2, 6, 4):
            shared.edit({"by-uuid": BY_UUID, "own": sliced(replicas)})
            count = 8 * replicas
            wait_for(lambda count=count: len(node.kubelet_has()) > count - 20, 60, f"a list of about {count}")
            shared.check(complete=False)
        shared.wait_churned("churn", 420)  # a Job waits up to 6 min before it replaces pods that failed
    assert node.kubelet_gave() == before
    shared.check()


def test_shares_are_packed_where_that_is_asked_for(shared):
    """Else shares are distributed, which test_health_fleet.py relies on."""
    node = shared.nodes["n1"]
    configure(shared, "n1", sliced(4, flags="sharedDevicesAllocationPolicy: packed"), {GPU: all_of(node, 4)})
    shared.wait_advertised(60)
    shared.hold("lie", "n1", 4)
    shared.wait_held("lie")
    gave = node.kubelet_gave()
    assert len(set(map(device_of, set().union(*gave.values())))) == 1, gave
    shared.check()


# --- different ways on one node -------------------------------------------------------------------------------------------------------------
def test_two_gpus_are_shared_under_a_name_of_their_own_and_the_others_are_whole(shared):
    node = shared.nodes["n1"]
    uuids = node.uuids()
    shares = f"{GPU}.shared"
    configure(shared, "n1", sliced(4, rename=shares, devices=[0, uuids[1]]),
              {GPU: {uuid: 1 for uuid in uuids[2:]}, shares: {uuid: 4 for uuid in uuids[:2]}})
    shared.wait_advertised(60)
    shared.hold("alone", "n1", 6)
    shared.hold("together", "n1", 8, shares)
    shared.wait_held("alone", "together")
    assert set(map(device_of, set().union(*(ids for pod, ids in node.kubelet_gave().items() if pod.startswith("together"))))) == set(uuids[:2])
    shared.check()


def test_each_model_has_a_name_of_its_own_and_one_of_them_is_shared(shared):
    node = shared.nodes["n2"]
    by_model = {device["model"]: device["id"] for device in node.status()["devices"]}
    names = {"NVIDIA A100-PCIE-40GB": "nvidia.com/a100", "NVIDIA GeForce RTX 3090": "nvidia.com/rtx", "Tesla T4": "nvidia.com/t4"}
    text = ("version: v1\nresources:\n  gpus:\n  - {pattern: \"*A100*\", name: a100}\n  - {pattern: \"*3090\", name: nvidia.com/rtx}\n"
            "  - {pattern: \"*\", name: t4}\n" + sliced(4, name="nvidia.com/t4").removeprefix("version: v1\n"))
    configure(shared, "n2", text, {name: {by_model[model]: 4 if name == "nvidia.com/t4" else 1} for model, name in names.items()})
    shared.wait_advertised(60)
    for app, resource, pods in (("big", "nvidia.com/a100", 1), ("small", "nvidia.com/t4", 4)):
        shared.hold(app, "n2", pods, resource)
    shared.wait_held("big", "small")
    shared.check()


def test_a_configuration_that_cannot_be_is_refused_whole(shared):
    node = shared.nodes["n3"]
    configure(shared, "n3", sliced(4), {GPU: all_of(node, 4)})
    shared.wait_advertised(60)
    for wrong in (sliced(0), sliced(-3), sliced(1000000), "version: v1\nsharing:\n  timeSlicing: {}\n"):
        shared.edit({"by-uuid": BY_UUID, "own": wrong})
        wait_for(lambda: node.status()["configuration"]["problem"], 60, "the node to report the error", node.status)
        shared.check()
        shared.edit({"by-uuid": BY_UUID, "own": sliced(4)})
        wait_for(lambda: not node.status()["configuration"]["problem"], 60, "the node to report no error")
