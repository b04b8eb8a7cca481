"""Drivers of a ClusterPolicy and of a Penstock object, without an NVIDIADriver, on the nodes of test_driver_rollout.py: what an upgrade does to pods, also while one of two
operators is killed and while automatic upgrades are switched off; a driver's pod that starts again; canaries, a pause and drain."""
import contextlib
import json
import os
import re
import signal
import time
from urllib.parse import unquote

import pytest
from actors import wait_for
from driver_containers import REPOSITORY
from driver_rollouts import BARE, NEW, OLD, SIMULATED, SKIP_NODE, STATE, Rollout, asked, container
from fleet import NAMESPACE, ROOT, merged, pod_on
from operators import OPERATOR, OURS, UPGRADES, cluster_policy, leader

FAILURES = ("drain-required", "upgrade-failed")
BY_POLICY = {"kind": "clusterpolicies", "name": "cluster-policy"}
REQUESTED = "nvidia.com/gpu-driver-upgrade-requested"
RECORD = "penstock.io/driver-upgrade"
JOB = "job=training"


def documented(*more: str) -> list[str]:
    """The states of an upgrade in the order of the table in docs/drivers.md: those of every upgrade, and `more`."""
    table = re.findall(r"^\| `(upgrade-\w+|[\w-]+-required)` \|", (ROOT / "docs/drivers.md").read_text(), re.MULTILINE)
    assert {*FAILURES, "wait-for-jobs-required", "upgrade-done"} <= set(table), table
    return [state for state in table if state not in FAILURES or state in more]


class Policy:
    """A ClusterPolicy with a driver for all nodes without one. `version` is the driver that they have, or get; `seen`, the states of the nodes; `most`, how many were
    cordoned at the same time."""

    def __init__(self, rollout: Rollout):
        self.rollout, self.version = rollout, OLD
        self.seen: dict[str, list[str]] = {}
        self.most: list[int] = []

    def other(self) -> str:
        return {OLD: NEW, NEW: OLD}[self.version]

    def apply(self, version: str, pods: dict | None = None, **upgrade):
        """`pods`: the section daemonsets."""
        self.version = version
        upgrade = merged({"autoUpgrade": True, "maxParallelUpgrades": 1, "waitForCompletion": {"podSelector": JOB}}, upgrade)
        self.rollout.operator.apply(cluster_policy(daemonsets=pods or {}, driver=container(version, self.rollout.fleet.programs) | {"enabled": True, "upgradePolicy": upgrade}))

    def wait_done(self):
        self.rollout.wait_done(**dict.fromkeys(BARE, f"container {self.version}"))
        self.rollout.operator.wait_state("ready")

    def wait_seen(self, wanted: dict[str, list[str]]):
        """The watch is later than what was read."""
        wait_for(lambda: self.seen == wanted, 60, f"the states {wanted}", lambda: self.seen)


@pytest.fixture(scope="module")
def the_policy(rollout, fleet):
    """The ClusterPolicy instead of NVIDIADrivers; afterwards they say again which drivers there are."""
    fleet.kubectl("delete", "nvidiadrivers", "--all", "--timeout=300s")
    wait_for(lambda: not rollout.driver_pods() and not any(STATE in node["metadata"]["labels"] for node in fleet.get("nodes")["items"]), 120,
             "the nodes to have no driver of the operator", rollout.told)
    yield Policy(rollout)
    rollout.operator.apply(cluster_policy(driver={"useNvidiaDriverCRD": True}))


@pytest.fixture
def policy(the_policy, rollout, fleet):
    """All nodes have its driver; pods without a GPU run on each of them, and stay."""
    fleet.delete_all_pods()
    rollout.operator.apply(SIMULATED)
    the_policy.apply(the_policy.version)
    the_policy.wait_done()
    fleet.wait_offered()
    try:
        with rollout.undisturbed(*BARE) as (the_policy.seen, the_policy.most):
            yield the_policy
    finally:
        rollout.operator.apply(SIMULATED)
        fleet.kubectl("delete", "deployments", "--all")
        fleet.kubectl("delete", "pods", "--all", "--grace-period=0", "--force")  # some take their time
        fleet.delete_all_pods()


def scale(fleet, replicas: int):
    fleet.kubectl("scale", "-n", NAMESPACE, f"deployment/{OPERATOR}", f"--replicas={replicas}")

    def scaled() -> bool:
        status = fleet.get("deployment", OPERATOR, "-n", NAMESPACE)["status"]
        return status.get("replicas") == status.get("readyReplicas") == replicas
    wait_for(scaled, 120, f"{replicas} operators to run", lambda: fleet.kubectl("get", "pods", "-n", NAMESPACE, "-o", "wide", check=False).stdout)


@pytest.fixture
def two_operators(policy, fleet):
    try:
        scale(fleet, 2)
        yield
    finally:
        scale(fleet, 1)


def upgrade_events(fleet, node: str) -> list[str]:
    return [event["message"] for event in fleet.events(node) if event["reason"] == "GPUDriverUpgrade"]


def automatic(fleet) -> set[str]:
    return {node["metadata"]["name"] for node in fleet.get("nodes")["items"] if node["metadata"]["annotations"].get(UPGRADES) == "true"}


def training_pod() -> dict:
    """It holds a GPU until the file /tmp/end is there."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "training", "labels": dict([JOB.split("=")])},
            "spec": {"restartPolicy": "Never"} | pod_on("n2", "until [ -e /tmp/end ]; do sleep 0.2; done")}


@contextlib.contextmanager
def skipped(fleet, *nodes: str):
    """No upgrade begins on these nodes meanwhile."""
    def label(value: str | None):
        for node in nodes:
            fleet.cluster.api.merge("node", node, {"metadata": {"labels": {SKIP_NODE: value}}})
    label("true")
    try:
        yield
    finally:
        label(None)


def running(fleet, name: str) -> dict:
    """The pod of a Deployment of one."""
    [pod] = fleet.get("pods", "-l", f"app={name}", "--field-selector", "status.phase=Running")["items"]  # one that was rejected stays
    return pod["metadata"]


def test_a_policys_driver_is_upgraded_below_pods_also_without_automatic_upgrades_and_its_leader(policy, two_operators, rollout, fleet, measure):
    """n2: a pod that is waited for; meanwhile upgrades are switched off, and on when it has ended. n3: a pod that ends slowly; meanwhile the operator that
    evicted it is killed. n4 follows, or went before."""
    before, wanted = policy.version, policy.other()
    fleet.create(training_pod())
    fleet.deploy("holder", "n3", 1, terminationGracePeriodSeconds=600)  # sleep, as a first process, ends by SIGKILL only
    wait_for(lambda: fleet.ready("training"), 60, "the pod training to run")
    fleet.wait_deployed("holder")
    training, holder, drivers, begin = fleet.get("pod", "training")["metadata"]["uid"], running(fleet, "holder"), rollout.driver_pods(), time.time()
    with measure("a ClusterPolicy's driver is upgraded; the leader is killed"):
        with skipped(fleet, "n3", "n4"):  # a write to n2 that is refused, because another one came before, would let one of them begin first
            policy.apply(wanted)
            rollout.wait_says("n2", "JobsRunning", "default/training", **BY_POLICY)
        wait_for(lambda: rollout.states() == {"n2": "wait-for-jobs-required", "n3": "upgrade-required", "n4": "upgrade-required"}, 60, "two nodes to wait for n2", rollout.told)
        # What has begun comes to its end, and no other node begins.
        policy.apply(wanted, autoUpgrade=False)
        wait_for(lambda: rollout.states() == {"n2": "wait-for-jobs-required", "n3": "", "n4": ""}, 60, "the nodes that have not begun to have no state", rollout.told)
        wait_for(lambda: not automatic(fleet), 60, "no node to be marked for automatic upgrades", lambda: automatic(fleet))
        pod = fleet.get("pod", "training")
        assert pod["metadata"]["uid"] == training and pod["status"]["phase"] == "Running" and rollout.bare["n2"].module() == before
        fleet.inside("training", "touch /tmp/end")
        rollout.wait_versions(n2=f"container {wanted}")
        wait_for(lambda: rollout.states() == {"n2": "", "n3": "", "n4": ""}, 120, "n2 to be done", rollout.told)
        pod = fleet.get("pod", "training")
        assert pod["metadata"]["uid"] == training and pod["status"]["phase"] == "Succeeded" and "deletionTimestamp" not in pod["metadata"]
        rollout.operator.wait_quiet(3)
        policy.wait_seen({"n2": ["upgrade-done", *documented(), ""]} | dict.fromkeys(("n3", "n4"), ["upgrade-done", "upgrade-required", ""]))
        assert {node: rollout.bare[node].module() for node in ("n3", "n4")} == dict.fromkeys(("n3", "n4"), before)
        # The rest follows, although the operator dies.
        policy.apply(wanted)
        wait_for(lambda: "deletionTimestamp" in fleet.get("pod", holder["name"])["metadata"], 120, "the pod of n3 to be evicted", rollout.told)
        first = leader(fleet)
        os.kill(int(fleet.process_of(first, NAMESPACE).name), signal.SIGKILL)  # it does not release its Lease
        killed = time.time()
        fleet.kubectl("delete", "pod", "-n", NAMESPACE, first, "--grace-period=0", "--force")
        with measure("  the other operator leads"):
            wait_for(lambda: leader(fleet) not in ("", first), 120, "another operator to lead", rollout.operator.log)

        def reads() -> bool:
            return any("fieldSelector=spec.nodeName=n3" in unquote(event["requestURI"]) for event in fleet.audit.between(killed, who=OURS))
        wait_for(reads, 60, "that operator to read the pods of n3", rollout.operator.log)
        rollout.operator.wait_quiet(2)
        # A write to n3 that is refused, because another one came before, lets n4 begin first.
        assert rollout.states() in [{"n2": "upgrade-done", "n3": "pod-deletion-required", "n4": of_n4} for of_n4 in ("upgrade-required", "upgrade-done")], rollout.told()
        os.kill(int(fleet.process_of(holder["name"]).name), signal.SIGKILL)
        policy.wait_done()
    policy.wait_seen({"n2": ["upgrade-done", *documented(), "", "upgrade-done"]} | dict.fromkeys(("n3", "n4"), ["upgrade-done", "upgrade-required", "", *documented()]))
    assert automatic(fleet) == set(fleet.nodes)
    fleet.wait_deployed("holder")
    assert running(fleet, "holder")["uid"] != holder["uid"]
    assert set(asked(fleet, begin, "create", "pods/eviction")) == {holder["name"]}
    assert not asked(fleet, killed, "create", "pods/eviction"), "a pod that was ending was evicted again"
    assert set(asked(fleet, begin, "delete", "pods")) == {pod["metadata"]["name"] for pod in drivers.values()}


def module_of(rollout: Rollout, node: str) -> tuple[int, int]:
    """Another one if it was loaded again."""
    file = os.stat(rollout.bare[node].node.machine.root / "sys/module/nvidia/version")
    return file.st_ino, file.st_mtime_ns


def test_go831_a_drivers_pod_that_starts_again_installs_nothing_and_touches_no_pod(policy, rollout, fleet):
    fleet.hold("keeper", "n3", 1)
    fleet.wait_held("keeper")
    [keeper] = fleet.get("pods", "-l", "app=keeper")["items"]
    loaded, begin = module_of(rollout, "n3"), time.time()
    for _ in range(5):  # the agent waits 3 s for the root, and a busy machine may need more
        sampler = fleet.sample_kubelet("n3")
        rollout.replace_driver_pod("n3")
        rollout.operator.wait_state("ready")
        fleet.wait_offered()
        said = fleet.kubectl("logs", "-n", NAMESPACE, rollout.driver_pods()["n3"]["metadata"]["name"], "-c", "nvidia-driver-ctr").stdout
        away, back = map(float, re.search(r"the root was away from (\S+) to (\S+)", said).groups())
        if back - away < 2.5:
            break
    assert sampler.counts() - {-1} == {1}, "the kubelet lost the GPU for a while"
    assert module_of(rollout, "n3") == loaded, "the module was loaded again"
    [now] = fleet.get("pods", "-l", "app=keeper")["items"]
    assert now["metadata"]["uid"] == keeper["metadata"]["uid"] and now["status"]["containerStatuses"] == keeper["status"]["containerStatuses"]
    assert "The driver stays." in fleet.kubectl("logs", "-n", NAMESPACE, rollout.driver_pods()["n3"]["metadata"]["name"], "-c", "k8s-driver-manager").stdout
    assert policy.seen == dict.fromkeys(BARE, ["upgrade-done"]) and not policy.most[0] and not asked(fleet, begin, "create", "pods/eviction")


def test_a_label_of_all_pods_replaces_the_drivers_pods_and_neither_driver_nor_a_pod_that_holds_a_gpu(policy, rollout, fleet):
    fleet.hold("keeper", "n3", 1)
    fleet.wait_held("keeper")
    [keeper] = fleet.get("pods", "-l", "app=keeper")["items"]
    before, modules, begin = rollout.driver_pods(), {node: module_of(rollout, node) for node in BARE}, time.time()
    policy.apply(policy.version, pods={"labels": {"example.com/team": "a"}})

    def replaced() -> bool:
        pods = rollout.driver_pods()
        return all(node in pods and pods[node]["metadata"]["labels"].get("example.com/team") == "a" for node in BARE)
    wait_for(replaced, 240, "the drivers' pods to have the label", rollout.told)
    policy.wait_done()
    assert not {pod["metadata"]["uid"] for pod in before.values()} & {pod["metadata"]["uid"] for pod in rollout.driver_pods().values()}
    assert {node: module_of(rollout, node) for node in BARE} == modules, "a module was loaded again"
    [now] = fleet.get("pods", "-l", "app=keeper")["items"]
    assert now["metadata"]["uid"] == keeper["metadata"]["uid"] and now["status"]["containerStatuses"][0]["restartCount"] == 0
    assert not asked(fleet, begin, "create", "pods/eviction")
    fleet.wait_offered()


def test_a_penstock_objects_driver_goes_to_its_canary_first_and_drains_what_may_be_drained(policy, rollout, fleet):
    """The driver is another one than the ClusterPolicy's, for the same nodes; n4 is the canary, and a pod there has an emptyDir. While it soaks, its driver disappears."""
    wanted, seen = policy.other(), policy.seen
    fleet.deploy("scratch", "n4", 1, volumes=[{"name": "scratch", "emptyDir": {}}])
    fleet.wait_deployed("scratch")
    scratch, begin = running(fleet, "scratch"), time.time()
    pods = container(wanted, fleet.programs)

    def describe(paused: bool, empty: bool, soak: str):
        upgrade = {"automatic": True, "paused": paused, "canaries": {"nodeSelector": {"team": "green"}, "soak": soak},
                   "drain": {"enable": True, "deleteEmptyDir": empty}}
        rollout.operator.apply(merged(SIMULATED, {"spec": {"drivers": [
            {"name": "fleet", "image": {"repository": REPOSITORY, "image": "driver", "version": wanted}, "nodeSelector": {"nvidia.com/gpu.present": "true"},
             "startupProbe": pods["startupProbe"], "prepareEnv": pods["manager"]["env"], "upgrade": upgrade}]}}))

    def soaks_since() -> str:
        for node in ("n2", "n3"):
            rollout.wait_says(node, '"CanariesFirst"', "node n4 is upgraded and works, but not for as long as canaries.soak", **BY_POLICY)
        return json.loads(fleet.get("node", "n4")["metadata"]["annotations"][RECORD])["since"]
    describe(paused=True, empty=False, soak="0s")
    for node in BARE:
        rollout.wait_says(node, '"upgrade-required"', '"Paused"', **BY_POLICY)
    rollout.operator.wait_quiet(3)
    policy.wait_seen(dict.fromkeys(BARE, ["upgrade-done", "upgrade-required"]))
    describe(paused=False, empty=False, soak="0s")
    rollout.wait_says("n4", "upgrade-failed", "EvictionBlocked", f"default/{scratch['name']}", "emptyDir", **BY_POLICY)
    assert running(fleet, "scratch")["uid"] == scratch["uid"] and rollout.bare["n4"].module() == policy.version
    for node in ("n2", "n3"):
        rollout.wait_says(node, '"CanariesFirst"', **BY_POLICY)
    assert {node: rollout.states()[node] for node in ("n2", "n3")} == dict.fromkeys(("n2", "n3"), "upgrade-required")
    describe(paused=False, empty=True, soak="1h")
    fleet.kubectl("annotate", "node", "n4", f"{REQUESTED}=true")
    upgraded = soaks_since()
    rollout.bare["n4"].unmount()
    rollout.wait_says("n2", '"CanaryFailed"', "node n4: validation failed", **BY_POLICY)
    fleet.kubectl("delete", "pod", "-n", NAMESPACE, rollout.driver_pods()["n4"]["metadata"]["name"], "--wait=false")
    assert soaks_since() > upgraded, "the soak did not begin again"
    steps = ("upgrade of the driver failed: EvictionBlocked: ", "upgrade of the driver begins", "upgrade of the driver is done", "stopped working after its upgrade")
    wait_for(lambda: all(step in " ".join(upgrade_events(fleet, "n4")) for step in steps), 60, f"Events that say {steps}", lambda: upgrade_events(fleet, "n4"))
    describe(paused=False, empty=True, soak="1s")
    rollout.wait_done(**dict.fromkeys(BARE, f"container {wanted}"))
    for of in (BY_POLICY, {"kind": "penstocks", "name": "simulated"}):
        rollout.operator.wait_state("ready", **of)
    wait_for(lambda: all(states[-1] == "upgrade-done" for states in seen.values()), 60, "the watch to have seen the nodes done", lambda: seen)
    drained = documented("drain-required")
    assert seen["n2"] == seen["n3"] == ["upgrade-done", *documented()], seen
    failed = ["upgrade-done", *drained[:drained.index("drain-required") + 1], "upgrade-failed"]
    assert seen["n4"][:len(failed)] == failed and seen["n4"][-len(drained):] == ["upgrade-failed", *drained[1:]], seen
    created = {node: pod["metadata"]["creationTimestamp"] for node, pod in rollout.driver_pods().items()}
    assert created["n4"] < min(created["n2"], created["n3"]), created
    assert set(asked(fleet, begin, "create", "pods/eviction")) == {scratch["name"]}
    fleet.wait_deployed("scratch")
    assert running(fleet, "scratch")["uid"] != scratch["uid"]
