"""The rules by which users keep an upgrade of drivers away from a node or a pod, on the nodes of test_driver_rollout.py; what uses a driver without having asked for a GPU; another
attempt after a failure; two nodes at a time, with taints; nodes of two operating systems."""
import pytest
from actors import wait_for
from driver_containers import REPOSITORY, provide
from driver_rollouts import NEW, OLD, POOL, SIMULATED, SKIP_NODE, SYSTEM, Rollout, idle_pod
from fleet import NAMESPACE, pod_on
from test_driver_faults import TEAM, merged_environment, policy_of_blue, running, take_time
from witnesses import OURS as AGENTS_TOO

SKIP_POD = "nvidia.com/gpu-driver-upgrade-drain.skip"
IMPATIENT = [{"name": "DRIVER_UNLOAD_TIMEOUT", "value": "5s"}]
SYSTEM_FILE, RHEL = "/etc/os-release", 'ID="rhel"\nVERSION_ID="9.4"\nPRETTY_NAME="Red Hat Enterprise Linux 9.4 (Plow)"\n'


@pytest.fixture
def blue(rollout, fleet):
    """The driver OLD on the team's nodes, and pods without a GPU, which stay."""
    fleet.delete_all_pods()
    rollout.begin_again()
    fleet.wait_offered()
    for node in TEAM:
        fleet.create(idle_pod(f"bystander-{node}", node))
    wait_for(lambda: all(fleet.ready(f"bystander-{node}") for node in TEAM), 60, "the bystanders to run")
    before = rollout.bystanders()
    try:
        yield rollout
        assert rollout.bystanders() == before, "a pod without a GPU was evicted"
        assert not any("unschedulable" in node["spec"] for node in fleet.get("nodes")["items"]), "a node is still cordoned"
    finally:
        for bare in rollout.bare.values():
            bare.wish()
        for node in TEAM:
            (fleet.nodes[node].machine.root / "sys/module/nvidia/simulate").unlink(missing_ok=True)
            fleet.kubectl("label", "node", node, f"{SKIP_NODE}-")
        fleet.delete_all_pods()


def upgrade(blue: Rollout, version: str = NEW, **spec):
    blue.apply("blue", version, "blue", manager=merged_environment(blue, IMPATIENT), **spec)


def opener(node: str) -> dict:
    """As one that mounts the device files of its host, or has a RuntimeClass that adds them: it asks for no GPU, and has one open."""
    pod = idle_pod("opener", node)
    pod["metadata"]["labels"] = {"app": "opener"}
    pod["spec"]["containers"][0]["command"] = ["sh", "-c", ": > /dev/nvidia0; exec sleep 100000 3< /dev/nvidia0"]  # those of simulated GPUs cannot be opened
    return pod


def test_a_node_and_a_pod_that_are_labelled_are_left_alone(blue, fleet):
    spared = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "spared", "labels": {SKIP_POD: "true"}}, "spec": pod_on("n3", "exec sleep 100000")}
    fleet.create(spared)
    wait_for(lambda: fleet.ready("spared"), 60, "the pod to run")
    uid, driver = fleet.get("pod", "spared")["metadata"]["uid"], blue.driver_pods()["n2"]["metadata"]["uid"]
    busy = fleet.nodes["n3"].machine.root / "sys/module/nvidia/simulate"
    busy.write_text("busy\n")  # as a module is while a container has its device open
    fleet.kubectl("label", "node", "n2", f"{SKIP_NODE}=true")
    with blue.watched() as (seen, _):
        upgrade(blue)
        blue.wait_says("n3", "k8s-driver-manager", "the driver cannot be unloaded")
        blue.wait_says("n2", "Skipped", SKIP_NODE)
        assert blue.versions()["n2"] == f"container {OLD}" and blue.driver_pods()["n2"]["metadata"]["uid"] == driver
        wait_for(lambda: seen["n2"] == ["upgrade-done", "upgrade-required"], 60, "the watch to have shown n2's states, and no other", lambda: seen["n2"])
        pod = fleet.get("pod", "spared")
        assert pod["metadata"]["uid"] == uid and pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"], "it was to be left alone"
        assert blue.bare["n3"].module() == OLD, "its driver was unloaded below it"
        fleet.delete_pod("spared")
        busy.unlink()
        blue.wait_versions(n3=f"container {NEW}")
        wait_for(lambda: blue.states() == {"n2": "upgrade-required", "n3": "upgrade-done", "n4": "upgrade-done"}, 120, "n3 to be done", blue.told)
        assert "unschedulable" not in fleet.get("node", "n2")["spec"]
        fleet.kubectl("label", "node", "n2", f"{SKIP_NODE}-")
        blue.wait_done(n2=f"container {NEW}", n3=f"container {NEW}")


def test_a_pod_that_has_a_device_open_without_having_asked_for_it_is_named_and_not_evicted(blue, fleet):
    fleet.create(opener("n2"))
    wait_for(lambda: fleet.ready("opener"), 60, "the pod to run")
    uid = fleet.get("pod", "opener")["metadata"]["uid"]
    busy = fleet.nodes["n2"].machine.root / "sys/module/nvidia/simulate"
    busy.write_text("busy\n")
    upgrade(blue)
    blue.wait_says("n2", "k8s-driver-manager", "default/opener", "/dev/nvidia0", "sleep")
    pod = fleet.get("pod", "opener")
    assert pod["metadata"]["uid"] == uid and "deletionTimestamp" not in pod["metadata"], "no rule lets it be evicted"
    assert blue.bare["n2"].module() == OLD
    busy.unlink()
    fleet.delete_pod("opener")  # as the message advises
    blue.wait_done(n2=f"container {NEW}", n3=f"container {NEW}")


def test_a_node_whose_first_attempt_fails_is_tried_again_by_itself(blue, fleet):
    again = {"maxFailures": "1", "retries": {"count": 3, "first": "1s", "most": "2s"}}
    blue.operator.apply(policy_of_blue(**again))
    blue.bare["n2"].wish(only=NEW, hang=1)
    with blue.watched() as (seen, _):
        upgrade(blue)
        wait_for(lambda: running(blue, "n2", "nvidia-driver-ctr") and blue.bare["n2"].module() != OLD, 240, "n2 to hang", blue.told)
        blue.operator.apply(policy_of_blue(**again, loadTimeout="15s"))
        wait_for(lambda: "upgrade-failed" in seen["n2"], 180, "the first attempt to fail", lambda: (seen, blue.told()))
        blue.bare["n2"].wish()
        blue.operator.apply(policy_of_blue(**again))  # no time limit for what works
        blue.wait_done(n2=f"container {NEW}", n3=f"container {NEW}")
    assert seen["n2"][-1] == "upgrade-done" and "upgrade-failed" not in seen["n3"], seen
    blue.operator.wait_state("ready", kind="nvidiadrivers", name="blue")
    blue.operator.apply(SIMULATED)


def test_two_nodes_at_a_time_with_taints_that_the_driver_tolerates(blue, fleet):
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}

    def taints(node: str) -> list[dict]:
        return [one for one in fleet.get("node", node)["spec"].get("taints", []) if one["key"] == taint["key"]]
    for node in TEAM:
        fleet.kubectl("taint", "node", node, f"{taint['key']}={taint['value']}:{taint['effect']}")
    take_time(blue)
    try:
        with blue.watched() as (seen, most):
            upgrade(blue, upgradePolicy={"autoUpgrade": True, "maxParallelUpgrades": 2, "maxUnavailable": "100%"})
            blue.wait_done(n2=f"container {NEW}", n3=f"container {NEW}")
        assert most[0] == 2, f"{most[0]} nodes were cordoned at the same time"
        assert seen["n2"] == seen["n3"] and seen["n4"] == ["upgrade-done"], seen
        assert all(taints(node) == [taint] for node in TEAM), "a taint of a user is gone"
    finally:
        for node in TEAM:
            fleet.kubectl("taint", "node", node, f"{taint['key']}-")


def replace_agent(fleet, node: str):
    """One that starts reads the files of its node."""
    fleet.kubectl("delete", "pod", "-n", NAMESPACE, fleet.agent_pods()[node])


@pytest.fixture
def of_rhel(fleet):
    """n2 has another operating system."""
    node = fleet.nodes["n2"]
    node.run("sh", "-c", "cat > /run/os-release", input=RHEL)
    node.run("mount", "--bind", "/run/os-release", SYSTEM_FILE)
    yield node
    node.run("umount", SYSTEM_FILE, check=False)
    replace_agent(fleet, "n2")


def test_nodes_of_two_operating_systems_get_an_image_each(blue, of_rhel, fleet):
    provide(fleet, OLD, f"{OLD}-rhel9.4")
    before = blue.driver_pods()["n3"]["metadata"]["uid"]
    replace_agent(fleet, "n2")

    def images() -> dict[str, str]:
        return {node: pod["spec"]["containers"][0]["image"] for node, pod in blue.driver_pods().items()}
    wanted = {"n2": f"{REPOSITORY}/driver:{OLD}-rhel9.4", "n3": f"{REPOSITORY}/driver:{OLD}-{SYSTEM}", "n4": f"{REPOSITORY}/driver:{NEW}-{SYSTEM}"}
    wait_for(lambda: images() == wanted, 180, f"the images {wanted}", lambda: (images(), blue.told()))
    blue.wait_done(n2=f"container {OLD}", n3=f"container {OLD}")
    sets = {one["metadata"]["name"] for one in fleet.get("daemonsets", "-n", NAMESPACE)["items"]}
    assert {fleet.labels("n2")[POOL], fleet.labels("n3")[POOL]} <= sets and fleet.labels("n2")[POOL].endswith("rhel9.4"), sets
    assert blue.driver_pods()["n3"]["metadata"]["uid"] == before, "a node of the other system was touched"
    blue.operator.wait_state("ready", kind="nvidiadrivers", name="blue")
    blue.operator.wait_quiet(15, who=AGENTS_TOO)
    of_rhel.run("umount", SYSTEM_FILE)
    replace_agent(fleet, "n2")
    wait_for(lambda: images().get("n2") == wanted["n3"], 180, "n2 to have the image of its own system again", lambda: (images(), blue.told()))
    blue.wait_done(n2=f"container {OLD}", n3=f"container {OLD}")
