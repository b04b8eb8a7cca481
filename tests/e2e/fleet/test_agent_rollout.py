"""Agents that the operator installs and changes, with faults: how many nodes at once have no agent, what an agent that does not start ends, and what the
policy's status says meanwhile."""
import contextlib
import threading
import time
from collections.abc import Collection

import pytest
from actors import GPU, wait_for
from api import RequestFailed
from cluster import CommandFailed
from driver_containers import write_program
from fleet import CONFIG_MAP, IMAGE, NAMESPACE, merged
from operators import ALL_AT_ONCE, NATIVE, ONE_AT_A_TIME, TWO_AT_ONCE, cluster_policy
from test_sharing import all_of, sliced
from test_state import NO_ANSWER, NONE, no_api_server
from test_upgrade import pods

FAILS, NEXT = (f"localhost/penstock:{tag}" for tag in ("fails", "next"))
WITH_FAILING = merged(NATIVE, {"spec": {"agent": {"image": FAILS}}})


@pytest.fixture(scope="module")
def operator(operator, fleet):
    archive = fleet.cluster.dir / "fails.tar"
    write_program(archive, FAILS, "/usr/bin/penstock-agent", "#!/bin/sh\necho 'this agent does not start' >&2\nexit 1\n")
    fleet.cluster.import_image(archive, len(fleet.nodes))
    return operator


@pytest.fixture
def ready(operator, fleet):
    operator.apply(NATIVE, cluster_policy())
    wait_rolled_out(operator)
    fleet.wait_advertised(60)
    yield operator
    fleet.clear()


def daemon_set(operator) -> dict:
    return operator.fleet.get("daemonset", "-n", NAMESPACE, "penstock-agent")


def is_rolled_out(operator) -> bool:
    found = daemon_set(operator)
    status, all_nodes = found["status"], len(operator.fleet.nodes)
    return (status.get("observedGeneration") == found["metadata"]["generation"] and operator.state() == "ready" and
            status.get("updatedNumberScheduled") == status.get("numberReady") == status.get("numberAvailable") == all_nodes)


def wait_rolled_out(operator, deadline: float = 180):
    wait_for(lambda: is_rolled_out(operator), deadline, "the agents to be those of the policy, and it to be ready",
             lambda: (operator.policy().get("status"), daemon_set(operator)["status"], operator.log()))


def message(operator) -> str:
    return operator.condition("Ready")["message"]


def agent_pods(fleet) -> list[dict]:
    """Those that are not being deleted."""
    found = fleet.get("pods", "-n", NAMESPACE, "-l", "app.kubernetes.io/instance=penstock-agent")["items"]
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


def agents(fleet) -> dict[str, dict[str, dict]]:
    """Node -> revision of the DaemonSet -> what the kubelet says of the container of that agent."""
    found: dict[str, dict[str, dict]] = {name: {} for name in fleet.nodes}
    for pod in agent_pods(fleet):
        if node := pod["spec"].get("nodeName"):
            found[node][pod["metadata"]["labels"]["controller-revision-hash"]] = (pod["status"].get("containerStatuses") or [{}])[0]
    return found


def of_failing(operator) -> dict[str, int]:
    """Node -> how often the agent that does not start was started again."""
    return {pod["spec"].get("nodeName", ""): sum(one["restartCount"] for one in pod["status"].get("containerStatuses", []))
            for pod in agent_pods(operator.fleet) if pod["spec"]["containers"][0]["image"] == FAILS}


@contextlib.contextmanager
def nodes_without_agent(fleet, taken: Collection[str] = ()):
    """The most nodes that had no started agent at the same time, beside those of which a fault has taken it."""
    most, end = [0], threading.Event()

    def watch():
        while not end.wait(0.05):
            with contextlib.suppress(CommandFailed, RequestFailed):
                before = set(taken)
                # Not by Ready: answers that are late make an agent unready that the roll-out did not touch.
                without = {name for name, those in agents(fleet).items() if not any(one.get("started") for one in those.values())}
                most[0] = max(most[0], len(without - before - set(taken)))
    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield most
    finally:
        end.set()
        thread.join()


def hold_everywhere(fleet):
    for name in fleet.nodes:
        fleet.hold(f"holds-{name}", name, 1)
    fleet.wait_held(*(f"holds-{name}" for name in fleet.nodes))
    return {name: node.kubelet_gave() for name, node in fleet.nodes.items()}


def test_an_agent_that_does_not_start_changes_nothing_beside_the_one_that_runs(ready, fleet):
    """Without maxUnavailable the new pod starts beside the old one."""
    gave = hold_everywhere(fleet)
    samplers = {name: fleet.sample_kubelet(name) for name in fleet.nodes}
    ready.apply(WITH_FAILING)
    wait_for(lambda: max(of_failing(ready).values(), default=0) >= 2, 180, "the new agent to have failed more than once", ready.log)
    assert len(of_failing(ready)) == 1, "the roll-out went on after its first failure"
    wait_for(lambda: "4 nodes" in message(ready) and "agent: " in message(ready) and next(iter(of_failing(ready))) in message(ready), 60,
             "the status to name the node and why", lambda: message(ready))
    assert ready.state() == "notReady"
    for name, sampler in samplers.items():
        count = len(fleet.nodes[name].machine.minors())
        assert sampler.counts() - {-1} == {count}, f"{name} lost devices"  # -1: the kubelet did not answer
    fleet.check()
    ready.apply(NATIVE)
    wait_rolled_out(ready)
    assert {name: node.kubelet_gave() for name, node in fleet.nodes.items()} == gave


def test_a_roll_out_takes_as_many_nodes_at_once_as_the_policy_allows_and_stops_at_the_first_failures(ready, fleet):
    gave = hold_everywhere(fleet)
    ready.apply(cluster_policy(daemonsets=TWO_AT_ONCE))
    wait_rolled_out(ready)
    with nodes_without_agent(fleet) as most:
        ready.apply(cluster_policy(daemonsets=TWO_AT_ONCE | {"annotations": {"example.com/changed": "yes"}}))
        wait_for(lambda: "example.com/changed" in str(daemon_set(ready)["spec"]["template"]["metadata"]), 60, "the DaemonSet to be changed", ready.log)
        wait_rolled_out(ready)
    assert 1 <= most[0] <= 2, f"{most[0]} nodes had no agent at the same time"  # two, unless one is back before the other is away
    with nodes_without_agent(fleet) as most:
        ready.apply(WITH_FAILING)
        wait_for(lambda: len(failing := of_failing(ready)) == 2 and min(failing.values()) >= 2, 180, "two new agents to have failed more than once", ready.log)
    failing = of_failing(ready)
    assert most[0] == 2 and len(failing) == 2, (most, failing)
    served = {name: node for name, node in fleet.nodes.items() if name not in failing}
    for name, node in served.items():
        assert node.kubelet_has() == set(node.machine.minors()), name
    wait_for(lambda: all(f"{name}: agent: " in message(ready) for name in failing), 60, "the status to name both nodes", lambda: message(ready))
    assert {name: node.kubelet_gave() for name, node in fleet.nodes.items()} == gave, "a pod lost its device"
    ready.apply(NATIVE, cluster_policy())
    wait_rolled_out(ready)
    fleet.wait_advertised(60)
    fleet.check()
    assert {name: node.kubelet_gave() for name, node in fleet.nodes.items()} == gave


# --- faults while nodes are brought up -----------------------------------------------------------------------------------------------------
@pytest.fixture
def empty(operator, fleet):
    """No policy; a pod without a GPU, which nothing may touch."""
    for kind in ("penstocks", "clusterpolicies"):
        fleet.kubectl("delete", kind, "--all", "--timeout=400s")
    fleet.wait_advertised(120, but={name: 0 for name in fleet.nodes})
    fleet.create_pod("bystander")
    wait_for(lambda: fleet.ready("bystander"), 60, "the bystander to run")
    before = fleet.get("pod", "bystander")["metadata"]["uid"]
    yield operator
    assert fleet.get("pod", "bystander")["metadata"]["uid"] == before
    fleet.clear()
    fleet.wait_advertised(120)


def begin(operator):
    operator.apply(NATIVE, cluster_policy())
    wait_for(lambda: any(node.agents() for node in operator.fleet.nodes.values()), 120, "the first agent to start", operator.log, every=0.02)


def test_an_api_server_that_dies_while_agents_start_delays_them(empty, fleet):
    begin(empty)
    fleet.cluster.kill("apiserver")
    time.sleep(3)  # the outage
    fleet.cluster.start("apiserver")
    fleet.restart_controllers()
    wait_rolled_out(empty)
    fleet.wait_advertised(60)


def test_agents_that_are_killed_while_they_start_are_started_again(empty, fleet):
    begin(empty)
    for node in fleet.nodes.values():
        wait_for(lambda node=node: node.agents(), 120, f"the agent of {node.name}", empty.log, every=0.02)
        node.kill_agent()
    wait_rolled_out(empty)
    fleet.wait_advertised(60)


def test_a_node_that_is_gone_while_agents_start_is_missing_and_named_and_the_others_are_ready(empty, fleet):
    fleet.cluster.kill("kubelet", node=4)
    try:
        begin(empty)
        fleet.wait_advertised(60, but={"n4": 0})
        wait_for(lambda: "3 ready" in message(empty) and "n4: not ready" in message(empty), 120, "the status to name the node", lambda: message(empty))
        assert empty.state() == "notReady"
    finally:
        fleet.cluster.start("kubelet", node=4)
    wait_rolled_out(empty)
    fleet.wait_advertised(60)


def test_a_node_whose_validation_fails_is_named_with_the_cause_until_it_is_mended(empty, fleet):
    machine = fleet.nodes["n4"].machine
    machine.fault("driver", "unload")
    begin(empty)
    fleet.wait_advertised(60, but={"n4": 0})

    def named() -> list[dict]:
        return empty.policy().get("status", {}).get("nodes", {}).get("notReady", [])
    wait_for(lambda: [(one["name"], "driver" in one["message"]) for one in named()] == [("n4", True)], 60, "n4 to be named with the cause", named)
    wait_for(lambda: empty.condition("Ready")["reason"] == "DriverNotReady", 120, "the policy to have that reason", lambda: empty.policy()["status"])
    assert empty.state() == "notReady"
    machine.heal()
    wait_rolled_out(empty)
    fleet.wait_advertised(60)
    assert fleet.get("node", "n4")["status"]["allocatable"][GPU] == "1"


# --- faults while agents are changed below pods that hold GPUs -------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def choices(operator, fleet):
    """A ConfigMap by which all GPUs are shared, and a next image, of the same programs."""
    for node in fleet.nodes.values():
        node.run("ctr", "-n", "k8s.io", "images", "tag", "--force", IMAGE, NEXT)
    fleet.edit({f"by-{replicas}": sliced(replicas) for replicas in (4, 8)})
    yield
    fleet.kubectl("delete", "configmap", "-n", NAMESPACE, CONFIG_MAP)


@pytest.fixture
def shared(choices, operator, fleet):
    fleet.clear()
    yield operator
    fleet.clear()


@contextlib.contextmanager
def fails_validation(node):
    """A device file is missing meanwhile; the kubelet keeps its devices."""
    file = node.machine.root / "dev/nvidia-uvm"
    file.rename(file.with_name("aside"))
    try:
        yield
    finally:
        file.with_name("aside").rename(file)


def sharing(replicas: int, **daemonsets) -> dict:
    return cluster_policy(devicePlugin={"config": {"name": CONFIG_MAP, "default": f"by-{replicas}"}}, daemonsets=daemonsets)


def holders(fleet) -> dict[str, tuple]:
    """Of each node: the pods of hold_everywhere, with their containers, device files and what the kubelet gave them."""
    return {name: (pods(fleet, f"holds-{name}"), {pod: ids for pod, ids in node.kubelet_gave().items() if pod.startswith("holds-")})
            for name, node in fleet.nodes.items()}


def expect_shares(fleet, replicas: int):
    for node in fleet.nodes.values():
        node.wanted = {GPU: all_of(node, replicas)}


@pytest.mark.parametrize("before, after, change, most", [
    pytest.param(4, 8, [sharing(8, **ONE_AT_A_TIME)], 1, id="configuration"),
    pytest.param(8, 8, [sharing(8), merged(NATIVE, {"spec": {"agent": {"image": NEXT}}})], 0, id="image")])
def test_a_change_below_pods_that_hold_gpus_survives_four_faults(shared, fleet, before, after, change, most):
    """When one node is left the API server dies, and that node is gone; the validation of another one fails meanwhile; the agent that starts then is killed, while new
    pods take shares on its node. `most`: nodes without an agent at the same time; without maxUnavailable none."""
    shared.apply(NATIVE, sharing(before, **ALL_AT_ONCE))
    wait_rolled_out(shared)
    expect_shares(fleet, before)
    fleet.wait_offered()
    hold_everywhere(fleet)
    held, samplers = holders(fleet), fleet.sample_kubelets()
    [old] = {revision for those in agents(fleet).values() for revision in those}
    taken: set[str] = set()

    def changed(name: str, restarts: int = 0) -> bool:
        """Whether the node's new agent has started, at least so many times again."""
        return [one.get("started") and one["restartCount"] >= restarts for revision, one in agents(fleet)[name].items() if revision != old] == [True]

    def named() -> dict[str, str]:
        return {one["name"]: one.get("message", "") for one in shared.policy()["status"]["nodes"].get("notReady", [])}

    def left() -> list[str]:
        return [name for name, those in agents(fleet).items() if set(those) == {old}]
    expect_shares(fleet, after)
    with nodes_without_agent(fleet, taken) as without:
        shared.apply(*change)
        [last] = wait_for(lambda: len(those := left()) == 1 and those, 120, "one node to be left", lambda: (left(), shared.log()), every=0.02)
        others = sorted(set(fleet.nodes) - {last}, key=changed)
        with no_api_server(fleet):
            taken.add(last)
            fleet.cluster.kill("kubelet", node=fleet.nodes[last].k)
        try:
            early = samplers[last].counts() - {before * len(fleet.nodes[last].machine.minors()), NONE, NO_ANSWER}
            assert not early, f"{last} had {early} devices before its turn"
            fleet.deploy("newcomer", others[0], 2)
            with fails_validation(fleet.nodes[others[1]]):
                wait_for(lambda: changed(others[0]), 120, f"the new agent of {others[0]} to start", lambda: (agents(fleet), shared.log()))
                taken.add(others[0])
                fleet.nodes[others[0]].kill_agent()
                wait_for(lambda: all(changed(name, restarts=name == others[0]) for name in others), 120,
                         f"all nodes but {last} to have the new agent, {others[0]} after a restart", lambda: (agents(fleet), shared.log()))
                taken.discard(others[0])
                wait_for(lambda: "nvidia-uvm" in named().get(others[1], ""), 120, f"the status to name {others[1]} with what fails", lambda: shared.policy()["status"])
            for node in (fleet.nodes[name] for name in others):
                wait_for(lambda node=node: node.kubelet_lists() == node.offers(), 60, f"the kubelet of {node.name} to have its shares", node.kubelet_lists)
            wait_for(lambda: [*named()] == [last] and named()[last], 120, f"the status to name {last} with the cause, and no other node",
                     lambda: shared.policy()["status"])
            assert shared.state() == "notReady"
        finally:
            fleet.cluster.start("kubelet", node=fleet.nodes[last].k)
        wait_rolled_out(shared)
    fleet.wait_offered()
    fleet.wait_deployed("newcomer")
    wait_for(lambda: holders(fleet) == held, 60, f"the pods to be as they were: {held}", lambda: holders(fleet))
    fleet.check()
    assert without[0] <= most, f"{without[0]} nodes had no agent at the same time"
    for name, sampler in samplers.items():
        count = len(fleet.nodes[name].machine.minors())
        assert (seen := sampler.counts()) <= {before * count, after * count, NONE, NO_ANSWER}, f"the kubelet of {name} had {seen} devices meanwhile"


def test_agents_that_are_replaced_only_when_they_are_deleted_keep_their_configuration_until_then(shared, fleet):
    """OnDelete: each kubelet writes the changed file below its agent, which sees it and leaves it to the next one."""
    shared.apply(NATIVE, sharing(4, **ALL_AT_ONCE))
    wait_rolled_out(shared)
    expect_shares(fleet, 4)
    fleet.wait_offered()

    def seen() -> set[str]:
        return {name for name, pod in fleet.agent_pods().items() if "configuration file is of another revision" in fleet.logs_of(pod, NAMESPACE)}
    shared.apply(sharing(8, updateStrategy="OnDelete"))
    wait_for(lambda: daemon_set(shared)["spec"]["updateStrategy"]["type"] == "OnDelete", 60, "the DaemonSet to be changed", shared.log)
    for pod in fleet.agent_pods().values():  # a kubelet writes files of ConfigMaps again when a pod changes, or once a minute
        fleet.cluster.api.merge("pod", pod, {"metadata": {"annotations": {"example.com/changed": "yes"}}}, NAMESPACE)
    wait_for(lambda: seen() == set(fleet.nodes), 300, "all agents to see the file that changed", lambda: (seen(), shared.log()), every=1)
    for node in fleet.nodes.values():
        assert node.kubelet_lists() == node.offers(), f"{node.name} was changed before its turn"
    fleet.nodes["n2"].wanted = {GPU: all_of(fleet.nodes["n2"], 8)}
    fleet.kubectl("delete", "pod", "-n", NAMESPACE, fleet.agent_pods()["n2"])
    fleet.wait_offered()
    shared.apply(sharing(8, **ALL_AT_ONCE))
    expect_shares(fleet, 8)
    wait_rolled_out(shared)
    fleet.wait_offered()
