"""Driver containers by the operator on four nodes: three without a driver, which two NVIDIADrivers divide, and one with a driver of its host. Upgrades, as labels of
the nodes show them, and what goes wrong in them."""
import contextlib
import json
import threading
import time
from pathlib import Path

import pytest
from actors import GPU, wait_for
from driver_containers import REPOSITORY, ROOT_OF_DRIVER, BareNode, provide
from fleet import NAMESPACE, merged, pod_on
from operators import NATIVE, Operator, cluster_policy
from witnesses import OURS as AGENTS_TOO

OLD, NEW = "535.183.01", "550.54.15"
BARE = ("n2", "n3", "n4")
STATE, POOL, OWNER = "nvidia.com/gpu-driver-upgrade-state", "penstock.io/driver-pool", "nvidia.com/gpu-operator.driver.owner"
SIMULATED = merged(NATIVE, {"spec": {"node": {"paths": {"driverContainerRoot": ROOT_OF_DRIVER}}}})
ORDER = ["upgrade-required", "cordon-required", "wait-for-jobs-required", "pod-deletion-required", "pod-restart-required", "validation-required",
         "uncordon-required", "upgrade-done"]
SYSTEM = "".join(dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)[key].strip('"')
                 for key in ("ID", "VERSION_ID"))


def driver(name: str, version: str, team: str, programs: Path, **spec) -> dict:
    """An NVIDIADriver as NVIDIA's documentation has it (walkthrough G). The variables of the manager are those of simulated modules."""
    modules = programs.resolve().parent / "lib/penstock-sim/libpenstock-sim-modules.so"
    return {"apiVersion": "nvidia.com/v1alpha1", "kind": "NVIDIADriver", "metadata": {"name": name}, "spec": {
        "driverType": "gpu", "default": False, "nodeSelector": {"team": team}, "repository": REPOSITORY, "image": "driver", "version": version,
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}], "resources": {"limits": {"memory": "1Gi"}},
        "startupProbe": {"periodSeconds": 1, "timeoutSeconds": 30, "failureThreshold": 300},
        "manager": {"env": [{"name": "LD_PRELOAD", "value": f"/host{modules}"}, {"name": "PENSTOCK_SIM_MODULES", "value": "/sys/module"}]},
        "upgradePolicy": {"autoUpgrade": True, "maxParallelUpgrades": 1, "maxUnavailable": "100%"}} | spec}


class Rollout:
    """The fleet with its drivers."""

    def __init__(self, fleet, operator: Operator, bare: dict[str, BareNode]):
        self.fleet, self.operator, self.bare = fleet, operator, bare

    def apply(self, name: str, version: str, team: str, **spec):
        self.operator.apply(driver(name, version, team, self.fleet.programs, **spec))

    def versions(self) -> dict[str, str]:
        """What the agents found."""
        found = {one["metadata"]["name"]: one.get("status", {}).get("vendors", []) for one in self.fleet.get("nodestates")["items"]}
        return {node: next((f"{one.get('driverSource')} {one['driver']}" for one in vendors if one.get("driver")), "") for node, vendors in found.items()}

    def wait_versions(self, deadline: float = 180, **wanted: str):
        wait_for(lambda: {node: self.versions().get(node) for node in wanted} == wanted, deadline, f"the drivers {wanted}", self.told)

    def told(self):
        drivers = {one["metadata"]["name"]: one.get("status") for one in self.fleet.get("nvidiadrivers")["items"]}
        pods = self.fleet.kubectl("get", "pods", "-n", NAMESPACE, "-o", "wide", check=False).stdout
        logs = self.fleet.kubectl("logs", "-n", NAMESPACE, "-l", "app.kubernetes.io/component=nvidia-driver", "--all-containers", "--tail=15", "--prefix",
                                  check=False).stdout
        return self.versions(), json.dumps(drivers, indent=1), pods, logs, self.operator.log()

    def states(self) -> dict[str, str]:
        return {node: self.fleet.labels(node).get(STATE, "") for node in BARE}

    def driver_pods(self) -> dict[str, dict]:
        pods = self.fleet.get("pods", "-n", NAMESPACE, "-l", "app.kubernetes.io/component=nvidia-driver")["items"]
        return {pod["spec"]["nodeName"]: pod for pod in pods if "deletionTimestamp" not in pod["metadata"] and pod["spec"].get("nodeName")}

    @contextlib.contextmanager
    def watched(self):
        """The states through which each node passes meanwhile, and the most nodes that were cordoned at the same time."""
        seen: dict[str, list[str]] = {node: [] for node in BARE}
        most, end = [0], threading.Event()

        def watch():
            while not end.wait(0.05):
                nodes = {one["metadata"]["name"]: one for one in self.fleet.get("nodes")["items"]}
                most[0] = max(most[0], sum("unschedulable" in one["spec"] for one in nodes.values()))
                for node in BARE:
                    state = nodes[node]["metadata"]["labels"].get(STATE, "")
                    if not seen[node] or seen[node][-1] != state:
                        seen[node].append(state)

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield seen, most
        finally:
            end.set()
            thread.join()


@pytest.fixture(scope="module")
def rollout(fleet):
    fleet.clear()
    if fleet.values is not None:
        fleet.uninstall()
    had_log = Path("/dev/log").exists()
    for version in (OLD, NEW):
        provide(fleet, version, f"{version}-{SYSTEM}")
    bare = {name: BareNode(fleet.nodes[name]) for name in BARE}
    operator = Operator(fleet)
    operator.install()
    operator.wait_definitions()
    for node, team in (("n1", "blue"), ("n2", "blue"), ("n3", "blue"), ("n4", "green")):
        fleet.kubectl("label", "node", node, f"team={team}")
    yield Rollout(fleet, operator, bare)
    for kind in ("nvidiadrivers", "clusterpolicies", "penstocks"):
        fleet.kubectl("delete", kind, "--all", "--timeout=120s", check=False)
    fleet.kubectl("label", "nodes", "--all", "team-")
    operator.uninstall()
    fleet.clear()
    for node in bare.values():
        node.restore()
    if not had_log:  # the driver's pods have the folder of the host's log
        with contextlib.suppress(OSError):
            Path("/dev/log").rmdir()


def test_each_node_gets_the_driver_that_selects_it(rollout, fleet, measure):
    """Walkthrough G (1) and (2)."""
    rollout.apply("blue", OLD, "blue")
    rollout.apply("green", NEW, "green")
    with measure("NVIDIADrivers: three nodes have their drivers") as it:
        rollout.operator.apply(SIMULATED, cluster_policy(driver={"useNvidiaDriverCRD": True}))
        rollout.wait_versions(n1="host 550.54.15", n2=f"container {OLD}", n3=f"container {OLD}", n4=f"container {NEW}")
        it.done = time.time()
    for name in ("blue", "green"):
        rollout.operator.wait_state("ready", kind="nvidiadrivers", name=name)
    rollout.operator.wait_state("ready")
    assert {node: fleet.labels(node).get(OWNER) for node in fleet.nodes} == {"n1": None, "n2": "blue", "n3": "blue", "n4": "green"}
    assert {node: fleet.labels(node)["nvidia.com/gpu.deploy.driver"] for node in fleet.nodes} == {"n1": "pre-installed"} | dict.fromkeys(BARE, "true")
    pod = rollout.driver_pods()["n3"]
    [container] = pod["spec"]["containers"]
    assert container["image"] == f"{REPOSITORY}/driver:{OLD}-{SYSTEM}" and container["resources"]["limits"] == {"memory": "1Gi"}
    fleet.wait_advertised(60)
    wait_for(lambda: set(rollout.states().values()) == {"upgrade-done"}, 60, "the nodes to be done", rollout.told)


def test_at_rest_nothing_is_written(rollout, fleet):
    rollout.operator.wait_quiet(10, AGENTS_TOO)
    begin = time.time()
    time.sleep(15)  # the idle time itself
    wrote = rollout.operator.writes(begin, AGENTS_TOO)
    assert not wrote, fleet.audit.told(wrote, begin)


def test_a_changed_driver_reaches_only_its_nodes_one_by_one(rollout, fleet, measure):
    """Walkthrough G (3), with pods that hold GPUs and one that holds none."""
    fleet.deploy("holder", "n3", 1)
    fleet.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bystander"}, "spec": pod_on("n3", "exec sleep 100000") | {"containers": [
        {"name": "main", "image": "registry.local/busybox:1", "imagePullPolicy": "Never", "command": ["sh", "-c", "exec sleep 100000"]}]}})
    fleet.wait_deployed("holder")
    wait_for(lambda: fleet.ready("bystander"), 60, "the bystander to run")
    bystander = fleet.get("pod", "bystander")["metadata"]["uid"]
    [holder] = fleet.get("pods", "-l", "app=holder")["items"]
    before = {node: pod["metadata"]["uid"] for node, pod in rollout.driver_pods().items()}
    with measure("a driver of two nodes is upgraded") as it, rollout.watched() as (seen, most):
        rollout.apply("blue", NEW, "blue")
        rollout.wait_versions(n2=f"container {NEW}", n3=f"container {NEW}", n4=f"container {NEW}")
        wait_for(lambda: set(rollout.states().values()) == {"upgrade-done"}, 120, "the nodes to be done", rollout.told)
        it.done = time.time()
    for node in ("n2", "n3"):
        passed = [state for state in seen[node] if state in ORDER[:-1]]
        assert passed == sorted(passed, key=ORDER.index) and "pod-restart-required" in passed, seen
    assert seen["n4"] == ["upgrade-done"] and most[0] <= 1, (seen, most)
    after = {node: pod["metadata"]["uid"] for node, pod in rollout.driver_pods().items()}
    assert after["n4"] == before["n4"] and not {after["n2"], after["n3"]} & {before["n2"], before["n3"]}
    assert fleet.get("pod", "bystander")["metadata"]["uid"] == bystander, "a pod without a GPU was evicted"
    fleet.wait_deployed("holder")
    assert holder["metadata"]["uid"] not in {pod["metadata"]["uid"] for pod in fleet.get("pods", "-l", "app=holder")["items"]}
    assert not any("unschedulable" in node["spec"] for node in fleet.get("nodes")["items"])
    rollout.operator.wait_state("ready", kind="nvidiadrivers", name="blue")
    assert {rollout.bare[node].module() for node in BARE} == {NEW}


def test_a_pod_that_may_not_be_evicted_is_named_and_keeps_its_driver(rollout, fleet):
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "holder", "namespace": "default"},
              "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "holder"}}}}
    rollout.operator.apply(budget)
    [holder] = fleet.get("pods", "-l", "app=holder")["items"]
    rollout.apply("blue", OLD, "blue")

    def condition() -> dict:
        return rollout.operator.condition("Ready", "nvidiadrivers", "blue")
    wait_for(lambda: f"default/{holder['metadata']['name']}" in condition()["message"], 120, "the pod to be named", rollout.told)
    assert condition()["reason"] == "DriverNotReady" and "disruption budget" in condition()["message"], condition()
    assert rollout.versions()["n3"] == f"container {NEW}", "its driver was replaced below a pod"
    assert fleet.get("pod", holder["metadata"]["name"])["metadata"]["uid"] == holder["metadata"]["uid"]
    fleet.kubectl("delete", "poddisruptionbudget", "holder")
    rollout.wait_versions(n2=f"container {OLD}", n3=f"container {OLD}")
    wait_for(lambda: set(rollout.states().values()) == {"upgrade-done"}, 120, "the nodes to be done", rollout.told)


def test_an_operator_that_is_killed_in_an_upgrade_goes_on(rollout, fleet):
    before = {node: pod["metadata"]["uid"] for node, pod in rollout.driver_pods().items()}
    rollout.apply("blue", NEW, "blue")
    wait_for(lambda: set(rollout.states().values()) & {"pod-deletion-required", "pod-restart-required"}, 60, "an upgrade to have begun", rollout.told)
    fleet.kubectl("delete", "pod", "-n", NAMESPACE, "-l", "app=penstock-operator", "--grace-period=0", "--force")
    rollout.wait_versions(n2=f"container {NEW}", n3=f"container {NEW}")
    wait_for(lambda: set(rollout.states().values()) == {"upgrade-done"}, 120, "the nodes to be done", rollout.told)
    after = {node: pod["metadata"]["uid"] for node, pod in rollout.driver_pods().items()}
    assert after["n4"] == before["n4"], "a node of another driver was touched"


def test_a_driver_that_does_not_load_is_said_and_goes_on_once_it_loads(rollout, fleet):
    rollout.bare["n2"].wish(fail="no kernel headers")
    rollout.apply("blue", OLD, "blue")
    wait_for(lambda: "no kernel headers" in json.dumps(rollout.operator.policy("nvidiadrivers", "blue")["status"]) or
             rollout.driver_pods().get("n2", {}).get("status", {}).get("containerStatuses", [{}])[0].get("restartCount", 0) > 0, 120, "the container to fail", rollout.told)
    waiting = rollout.operator.policy("nvidiadrivers", "blue")["status"]["drivers"][0]["waiting"]
    assert any(one["name"] == "n2" for one in waiting), waiting
    rollout.bare["n2"].wish()
    rollout.wait_versions(300, n2=f"container {OLD}", n3=f"container {OLD}")
    wait_for(lambda: set(rollout.states().values()) == {"upgrade-done"}, 120, "the nodes to be done", rollout.told)


def test_a_deleted_driver_leaves_nothing_of_the_operator_on_its_nodes(rollout, fleet):
    rollout.operator.delete("nvidiadrivers", "blue", "--timeout=60s")
    wait_for(lambda: not {"n2", "n3"} & set(rollout.driver_pods()), 120, "the driver's pods to be gone", rollout.told)
    for node in ("n2", "n3"):
        def left(node=node) -> list[str]:
            found = fleet.get("node", node)["metadata"]
            return [key for key in (*found["labels"], *found["annotations"]) if key in (STATE, OWNER, POOL) or "driver-upgrade." in key or key == "penstock.io/driver-upgrade"]
        wait_for(lambda left=left: not left(), 60, f"{node} to have nothing of the driver", left)
    assert rollout.driver_pods().keys() == {"n4"}
    assert fleet.get("node", "n4")["status"]["allocatable"][GPU] == "1"
    assert rollout.bare["n2"].node.run("test", "-d", ROOT_OF_DRIVER, check=False).returncode == 0
