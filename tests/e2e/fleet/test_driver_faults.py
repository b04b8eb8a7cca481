"""What goes wrong while drivers are replaced on the nodes of test_driver_rollout.py: each fault ends with every node at its driver, or with the reason in the
status; no pod without a GPU is evicted, and never are more nodes cordoned than the policy allows."""
import contextlib
import json
import time

import pytest
from actors import wait_for
from api import Watch
from driver_containers import ROOT_OF_DRIVER
from driver_rollouts import NEW, OLD, SIMULATED, Rollout, asked
from fleet import ACCELERATORS, NAMESPACE, merged

TEAM = ("n2", "n3")
SAFE_LOAD, REQUESTED = "nvidia.com/gpu-driver-upgrade.driver-wait-for-safe-load", "nvidia.com/gpu-driver-upgrade-requested"
HELD = "penstock.io/driver-held"  # of a node that gets its earlier driver back
ONCE = {"maxFailures": "1", "retries": {"count": 0}}  # attempts of a node


def policy_of_blue(**upgrade) -> dict:
    """A Penstock object that says more of blue's upgrades than an NVIDIADriver can."""
    return merged(SIMULATED, {"spec": {"drivers": [{"name": "blue", "upgrade": upgrade}]}})


def wait_state(rollout: Rollout, state: str) -> str:
    """Returns a node of the team that is in this state."""
    return wait_for(lambda: next((node for node in TEAM if rollout.states()[node] == state), None), 120, f"a node to be in the state {state}", rollout.told)


def running(rollout: Rollout, node: str, container: str) -> bool:
    """Whether this container of the node's new driver runs: k8s-driver-manager unloads the earlier one, nvidia-driver-ctr loads its own."""
    pod = rollout.driver_pods().get(node, {})
    statuses = [one for key in ("initContainerStatuses", "containerStatuses") for one in pod.get("status", {}).get(key, [])]
    return any(one["name"] == container and "running" in one["state"] for one in statuses)


def is_cordoned(rollout: Rollout, node: str) -> bool:
    return "unschedulable" in rollout.fleet.get("node", node)["spec"]


@contextlib.contextmanager
def wedged(rollout: Rollout, node: str):
    """The node's kernel does not give up the module meanwhile."""
    simulate = rollout.fleet.nodes[node].machine.root / "sys/module/nvidia/simulate"
    simulate.write_text("wedged\n")
    try:
        yield
    finally:
        simulate.unlink(missing_ok=True)


def end_hang(rollout: Rollout, node: str):
    """The node's next driver container does not hang."""
    rollout.bare[node].wish()
    if hangs := rollout.driver_pods().get(node):  # unless the one before it had not ended yet
        rollout.fleet.kubectl("delete", "pod", "-n", NAMESPACE, hangs["metadata"]["name"], "--wait=false")


def take_time(rollout: Rollout):
    """The drivers of the team need 5 s to load, so that a node is seen in that state."""
    for node in TEAM:
        rollout.bare[node].wish(seconds=5)


def merged_environment(rollout: Rollout, more: list[dict]) -> dict:
    """The manager of the driver, with more variables."""
    now = rollout.operator.policy("nvidiadrivers", "blue")["spec"]["manager"]
    return now | {"env": [one for one in now["env"] if one["name"] not in {added["name"] for added in more}] + more}


class AskedWatch(Watch):
    def __init__(self, *what):
        super().__init__(*what)
        self.asked: set[str] = set()

    def note(self, name: str, one: dict):
        if SAFE_LOAD in one["metadata"].get("annotations", {}):
            self.asked.add(name)


@contextlib.contextmanager
def asked_for(fleet):
    """The nodes that have the annotation of a driver that waits, at any time meanwhile."""
    watch = AskedWatch(fleet.cluster.api, "nodes")
    watch.start()
    wait_for(lambda: watch.objects, 60, "the nodes to be watched")
    try:
        yield watch.asked
    finally:
        watch.stop()


@contextlib.contextmanager
def without_api_server(fleet):
    fleet.cluster.kill("apiserver")
    try:
        yield
    finally:
        fleet.cluster.start("apiserver")
    fleet.restart_controllers()


def holder_of(fleet) -> dict:
    [holder] = fleet.get("pods", "-l", "app=holder", "--field-selector", "status.phase=Running")["items"]  # one that was rejected stays
    return holder["metadata"]


@contextlib.contextmanager
def budget_of_holder(rollout: Rollout):
    """The holder may not be evicted meanwhile."""
    rollout.operator.apply({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "holder", "namespace": "default"},
                            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "holder"}}}})
    try:
        yield
    finally:
        rollout.fleet.kubectl("delete", "poddisruptionbudget", "holder")


@pytest.fixture
def blue(rollout, fleet):
    """The driver OLD on the team's nodes, a pod that holds a GPU on one of them, and pods that hold none on both."""
    fleet.delete_workloads()  # of a scenario that failed
    rollout.begin_again()
    fleet.deploy("holder", "n3", 1)
    try:
        with rollout.undisturbed(*TEAM):
            fleet.wait_deployed("holder")
            yield rollout
    finally:
        for bare in rollout.bare.values():
            bare.wish()
        rollout.operator.apply(SIMULATED)  # without what a scenario said of blue, which not every other has
        fleet.delete_workloads()  # fleet.clear() would install the hosts' drivers again


def test_an_api_server_that_dies_in_an_upgrade_delays_it(blue, fleet):
    take_time(blue)
    blue.apply("blue", NEW, "blue")
    wait_state(blue, "pod-restart-required")
    with without_api_server(fleet):
        time.sleep(3)  # the outage
    blue.wait_done(n2=f"container {NEW}", n3=f"container {NEW}")
    fleet.wait_deployed("holder", deadline=180)


def test_an_api_server_that_dies_while_a_pod_is_evicted_delays_it(blue, fleet):
    """Of what the operator does afterwards, counts what it decides by objects that it has from the new API server."""
    before, driver, begin = holder_of(fleet), blue.driver_pods()["n3"]["metadata"]["uid"], time.time()

    def evictions(since: float) -> list[str]:
        return asked(fleet, since, "create", "pods/eviction")
    blue.operator.apply(policy_of_blue(podDeletion={"timeout": "0s"}))  # as long as it takes
    with budget_of_holder(blue):
        blue.apply("blue", NEW, "blue")
        blue.wait_says("n3", "pod-deletion-required", "disruption budget", deadline=240)
        with without_api_server(fleet):
            killed = time.time()
            time.sleep(3)  # the outage
        blue.wait_watched("n3", killed)
        back = time.time()
        # One may have been decided before.
        wait_for(lambda: len(evictions(back)) >= 2, 180, "the eviction to be asked for again", lambda: (evictions(begin), blue.told()))
        assert holder_of(fleet)["uid"] == before["uid"] and blue.driver_pods()["n3"]["metadata"]["uid"] == driver and blue.bare["n3"].module() == OLD, "its driver was replaced below a pod"
        assert blue.states()["n3"] == "pod-deletion-required" and is_cordoned(blue, "n3")
    blue.wait_done(n2=f"container {NEW}", n3=f"container {NEW}")
    fleet.wait_deployed("holder", deadline=180)
    assert holder_of(fleet)["uid"] != before["uid"], "it held a GPU of the earlier driver"
    assert set(evictions(begin)) == {before["name"]}, "a pod was evicted that held no GPU"


def test_an_api_server_that_dies_while_a_driver_is_validated_delays_it(blue, fleet):
    """What the agent finds in the outage, that the driver works now, is reported after it."""
    blue.bare["n2"].wish(only=NEW, without="nvidia-uvm")
    blue.apply("blue", NEW, "blue")
    blue.wait_says("n2", "validation-required", "/dev/nvidia-uvm does not exist", deadline=240)
    assert is_cordoned(blue, "n2") and blue.states()["n3"] in ("upgrade-required", "upgrade-done"), "n2 takes up the only place"
    with without_api_server(fleet):
        blue.bare["n2"].put_back("nvidia-uvm")
        wait_for(lambda: fleet.nodes["n2"].penstock("validate", check=False).returncode == 0, 120, "the agent to find that the driver works")
    blue.wait_done(n2=f"container {NEW}", n3=f"container {NEW}")
    fleet.wait_deployed("holder", deadline=180)


def test_an_api_server_that_is_gone_while_a_module_is_unloaded_delays_it(blue, fleet):
    with wedged(blue, "n2"):
        blue.apply("blue", NEW, "blue")
        wait_for(lambda: is_cordoned(blue, "n2") and running(blue, "n2", "k8s-driver-manager"), 240, "n2 to unload its driver", blue.told)
        fleet.cluster.kill("apiserver")
    try:
        wait_for(lambda: blue.bare["n2"].module() != OLD, 120, "the module to be unloaded without an API server")
    finally:
        fleet.cluster.start("apiserver")
    fleet.restart_controllers()
    blue.wait_done(n2=f"container {NEW}", n3=f"container {NEW}")
    fleet.wait_deployed("holder", deadline=180)


def test_an_agent_that_is_killed_while_a_module_is_unloaded_delays_it(blue, fleet):
    with wedged(blue, "n2"):
        blue.apply("blue", NEW, "blue")
        wait_for(lambda: running(blue, "n2", "k8s-driver-manager"), 240, "n2 to unload its driver", blue.told)
        fleet.nodes["n2"].kill_agent()
    blue.wait_done(n2=f"container {NEW}", n3=f"container {NEW}")
    fleet.wait_deployed("holder")


def test_an_agent_that_is_killed_while_a_driver_is_loaded_delays_it(blue, fleet):
    blue.bare["n2"].wish(hang=1)
    blue.apply("blue", NEW, "blue")
    wait_for(lambda: running(blue, "n2", "nvidia-driver-ctr") and blue.bare["n2"].module() != OLD, 240, "n2 to load its driver", blue.told)
    fleet.nodes["n2"].kill_agent()
    end_hang(blue, "n2")
    blue.wait_done(n2=f"container {NEW}", n3=f"container {NEW}")
    fleet.wait_deployed("holder")


def test_a_reboot_upgrades_nothing_and_the_same_pod_loads_the_driver_again(blue, fleet):
    """The digest of what the pod installs agrees with what is wanted: no pod is evicted, and the node is not cordoned."""
    before = blue.driver_pods()["n2"]["metadata"]["uid"]
    with blue.watched() as (seen, most):
        blue.bare["n2"].unload()  # as a kernel that starts has no module
        fleet.cluster.reboot_node(2)
        wait_for(lambda: blue.bare["n2"].module() == OLD and blue.bare["n2"].has_root(), 240, "the driver to be loaded again", blue.told)
        blue.wait_done(n2=f"container {OLD}", n3=f"container {OLD}")
        fleet.wait_advertised(120)
    assert seen["n2"] == ["upgrade-done"] and most == [0], (seen, most)
    assert blue.driver_pods()["n2"]["metadata"]["uid"] == before, "its driver was installed by another pod"
    blue.operator.wait_state("ready", kind="nvidiadrivers", name="blue")


def test_a_node_that_is_gone_in_an_upgrade_is_named_and_goes_on_when_it_is_back(blue, fleet):
    blue.bare["n2"].wish(hang=1)
    blue.apply("blue", NEW, "blue")
    wait_for(lambda: blue.states()["n2"] == "pod-restart-required", 120, "n2 to load its driver", blue.told)
    fleet.cluster.kill("kubelet", node=2)
    try:
        blue.wait_says("n2", "NodeNotReady")
        assert blue.states()["n3"] in ("upgrade-required", "upgrade-done"), "it takes up the only place"
    finally:
        fleet.cluster.start("kubelet", node=2)
    end_hang(blue, "n2")
    blue.wait_done(n2=f"container {NEW}", n3=f"container {NEW}")
    fleet.wait_deployed("holder")


def test_a_module_that_the_kernel_does_not_give_up_is_named_and_retried(blue, fleet):
    with wedged(blue, "n2"):
        environment = [{"name": "DRIVER_UNLOAD_TIMEOUT", "value": "5s"}]
        blue.apply("blue", NEW, "blue", manager=merged_environment(blue, environment))
        blue.wait_says("n2", "k8s-driver-manager", "nvidia")
        assert blue.versions()["n2"] in (f"container {OLD}", ""), "its module is still loaded"
    blue.wait_done(n2=f"container {NEW}", n3=f"container {NEW}")
    fleet.wait_deployed("holder")


@pytest.mark.parametrize("fault", [{"broken": 1}, {"fail": "no kernel headers"}], ids=["that does not work", "that does not load"])
def test_a_node_whose_driver_fails_gets_the_last_good_one_back(blue, fleet, fault):
    """The agent finds that library and module differ, or the container ends; the other node goes on, and on request the node is tried again."""
    blue.operator.apply(policy_of_blue(**ONCE))
    blue.bare["n2"].wish(only=NEW, **fault)
    blue.apply("blue", NEW, "blue")

    def fails() -> bool:
        statuses = blue.driver_pods().get("n2", {}).get("status", {}).get("containerStatuses", [{}])
        return "different versions" in json.dumps(fleet.get("nodestate", "n2")["status"]["vendors"]) or statuses[0].get("restartCount", 0) > 0
    wait_for(fails, 240, "n2 to be where it fails", blue.told)
    # A quarter of a minute instead of half an hour, for what fails alone: neither the other node nor the earlier driver is hurried.
    blue.operator.apply(policy_of_blue(**ONCE, loadTimeout="15s"))
    wait_for(lambda: HELD in fleet.labels("n2"), 240, "n2 to be rolled back", blue.told)
    blue.operator.apply(policy_of_blue(**ONCE))
    blue.wait_says("n2", "RolledBack", deadline=300)
    assert blue.operator.state("nvidiadrivers", "blue") == "notReady"
    blue.wait_versions(n2=f"container {OLD}", n3=f"container {NEW}")
    wait_for(lambda: [blue.states()[node] for node in TEAM] == ["upgrade-failed", "upgrade-done"], 120, "n2 to have failed and n3 to be done", blue.told)
    assert "unschedulable" not in fleet.get("node", "n2")["spec"], "a node with its earlier driver serves"
    fleet.wait_offered()
    fleet.hold("after", "n2", 1)
    fleet.wait_held("after")
    fleet.delete_pod(*(pod["metadata"]["name"] for pod in fleet.get("pods", "-l", "app=after")["items"]))
    blue.bare["n2"].wish()
    fleet.kubectl("annotate", "node", "n2", f"{REQUESTED}=true")
    blue.wait_done(n2=f"container {NEW}", n3=f"container {NEW}")
    blue.operator.wait_state("ready", kind="nvidiadrivers", name="blue")


def test_go661_a_node_that_opts_out_keeps_its_driver_while_a_pod_holds_its_gpu(blue, fleet):
    fleet.kubectl("label", "nodes", "n2", "n3", "nvidia.com/gpu.deploy.operands=false", "--overwrite")
    try:
        blue.wait_says("n3", "DevicesInUse", "default/holder")
        wait_for(lambda: "n2" not in blue.driver_pods(), 120, "n2 to have no driver of the operator", blue.told)
        assert "n3" in blue.driver_pods() and blue.bare["n3"].module() == OLD
        fleet.wait_deployed("holder")
        fleet.kubectl("scale", "deployment/holder", "--replicas=0")
        wait_for(lambda: "n3" not in blue.driver_pods(), 120, "n3 to have no driver of the operator", blue.told)
    finally:
        fleet.kubectl("label", "nodes", "n2", "n3", "nvidia.com/gpu.deploy.operands-")
    blue.wait_done(n2=f"container {OLD}", n3=f"container {OLD}")


@pytest.mark.timeout(1500)
def test_a_pod_that_comes_while_the_drivers_root_is_away_runs_once_it_is_back(blue, fleet):
    """Between two driver containers the module stays loaded, and the kubelet has the GPU. In the mount point is what the kubelet makes for the volumes of driver pods."""
    root = f"{ACCELERATORS}{ROOT_OF_DRIVER}"

    def refused() -> list[str]:
        events = fleet.get("events", "--field-selector", "involvedObject.kind=Pod,reason=Failed")["items"]
        return [event["message"] for event in events if event["involvedObject"]["name"].startswith("early-") and root in event["message"]]
    for _ in range(5):  # a GPU whose root is away is withdrawn after 3 s: a busy machine may be too late with the pod
        blue.bare["n2"].node.run("sh", "-c", f"umount -l {ROOT_OF_DRIVER} && mkdir -p {ROOT_OF_DRIVER}/lib/firmware")
        fleet.hold("early", "n2", 1)
        end = time.monotonic() + 30
        while not refused() and time.monotonic() < end:
            time.sleep(0.2)
        if refused():
            break
        fleet.delete_pod(*(pod["metadata"]["name"] for pod in fleet.get("pods", "-l", "app=early")["items"]))
        blue.replace_driver_pod("n2")
        fleet.wait_offered()
    assert refused() and not any(f"{root}/nvidia" in message for message in refused()), refused()  # a path that is there only with dev/ before it
    blue.replace_driver_pod("n2")
    fleet.wait_held("early")


def test_a_driver_that_loads_safely_waits_until_its_node_is_empty(blue, fleet):
    """Both where it replaces another one, and where it is the first on its node."""
    environment = [{"name": "DRIVER_SAFE_LOAD", "value": "true"}]
    safe = merged_environment(blue, environment)
    before = holder_of(fleet)
    with asked_for(fleet) as seen:
        blue.apply("blue", NEW, "blue", manager=safe)
        blue.wait_done(n2=f"container {NEW}", n3=f"container {NEW}")
    fleet.wait_deployed("holder")
    assert before["uid"] not in {pod["metadata"]["uid"] for pod in fleet.get("pods", "-l", "app=holder")["items"]}, "the node was not emptied"
    assert {"n2", "n3"} <= seen, seen
    fleet.kubectl("scale", "deployment/holder", "--replicas=0")
    blue.operator.delete("nvidiadrivers", "blue")
    wait_for(lambda: "n2" not in blue.driver_pods(), 120, "the driver's pods to be gone", blue.told)
    blue.bare["n2"].unmount()
    blue.bare["n2"].unload()
    blue.wait_versions(n2="")  # what the agent reported before would count as the driver that is wanted
    with asked_for(fleet) as seen:
        blue.apply("blue", NEW, "blue", manager=safe)
        blue.wait_done(n2=f"container {NEW}", n3=f"container {NEW}")
    assert "n2" in seen, "the first driver did not wait"
    assert not any(SAFE_LOAD in node["metadata"]["annotations"] for node in fleet.get("nodes")["items"])
