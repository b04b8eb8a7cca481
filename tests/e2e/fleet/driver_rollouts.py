"""Roll-outs of driver containers on the fleet: three nodes without a driver, which NVIDIADrivers divide, and one with a driver of its host."""
import contextlib
import json
import time
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote

from actors import BUSYBOX, wait_for
from api import Api, Watch
from driver_containers import REPOSITORY, ROOT_OF_DRIVER, BareNode, provide
from fleet import NAMESPACE, Fleet, merged, pod_on
from operators import NATIVE, OURS, Operator, cluster_policy, running_operator

OLD, NEW = "535.183.01", "550.54.15"
BARE = ("n2", "n3", "n4")
TEAMS = {"n1": "blue", "n2": "blue", "n3": "blue", "n4": "green"}
SKIP_NODE = "nvidia.com/gpu-driver-upgrade.skip"
ONE_BY_ONE = {"autoUpgrade": True, "maxParallelUpgrades": 1, "maxUnavailable": "100%"}
STATE, POOL, OWNER = "nvidia.com/gpu-driver-upgrade-state", "penstock.io/driver-pool", "nvidia.com/gpu-operator.driver.owner"
SIMULATED = merged(NATIVE, {"spec": {"node": {"paths": {"driverContainerRoot": ROOT_OF_DRIVER}}}})
ORDER = ["upgrade-required", "cordon-required", "wait-for-jobs-required", "pod-deletion-required", "pod-restart-required", "validation-required",
         "uncordon-required", "upgrade-done"]
SYSTEM = "".join(dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)[key].strip('"')
                 for key in ("ID", "VERSION_ID"))


def container(version: str, programs: Path) -> dict:
    """The fields that NVIDIADriver and ClusterPolicy.driver have in common."""
    modules = programs.resolve().parent / "lib/penstock-sim/libpenstock-sim-modules.so"
    return {"repository": REPOSITORY, "image": "driver", "version": version, "startupProbe": {"periodSeconds": 1, "timeoutSeconds": 30, "failureThreshold": 300},
            "manager": {"env": [{"name": "LD_PRELOAD", "value": f"/host{modules}"}, {"name": "PENSTOCK_SIM_MODULES", "value": "/sys/module"}]}}


def driver(name: str, version: str, team: str, programs: Path, **spec) -> dict:
    """An NVIDIADriver as NVIDIA's documentation has it (walkthrough G). The variables of the manager are those of simulated modules."""
    return {"apiVersion": "nvidia.com/v1alpha1", "kind": "NVIDIADriver", "metadata": {"name": name}, "spec": {
        "driverType": "gpu", "default": False, "nodeSelector": {"team": team}, **container(version, programs),
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}], "resources": {"limits": {"memory": "1Gi"}},
        "upgradePolicy": ONE_BY_ONE} | spec}


def idle_pod(name: str, node: str) -> dict:
    container = {"name": "main", "image": BUSYBOX, "imagePullPolicy": "Never", "command": ["sh", "-c", "exec sleep 100000"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "bystander"}}, "spec": pod_on(node, "") | {"containers": [container]}}


def asked(fleet: Fleet, begin: float, verb: str, resource: str) -> list[str]:
    """The objects of which the operators asked that since then, each as often as they did."""
    def what(event: dict) -> str:
        return "/".join(filter(None, (event.get("objectRef", {}).get("resource"), event.get("objectRef", {}).get("subresource"))))
    return [event["objectRef"]["name"] for event in fleet.audit.between(begin, who=OURS) if event["verb"] == verb and what(event) == resource]


class UpgradeWatch(Watch):
    """Every value of the label that shows a node's upgrade, in order: a watch leaves out no state of an object, except while the API server is away."""

    def __init__(self, api: Api, nodes: Iterable[str]):
        super().__init__(api, "nodes")
        self.seen: dict[str, list[str]] = {node: [] for node in nodes}
        self.most = [0]  # nodes that were cordoned at the same time

    def note(self, name: str, one: dict):
        self.most[0] = max(self.most[0], sum("unschedulable" in node["spec"] for node in self.objects.values()))
        states, now = self.seen.get(name, []), one["metadata"]["labels"].get(STATE, "")
        if not states or states[-1] != now:
            states.append(now)


class Rollout:
    """The fleet with its drivers."""

    def __init__(self, fleet, operator: Operator, bare: dict[str, BareNode]):
        self.fleet, self.operator, self.bare = fleet, operator, bare

    def apply(self, name: str, version: str, team: str, **spec):
        self.operator.apply(driver(name, version, team, self.fleet.programs, **spec))

    def begin_again(self):
        """The driver OLD on the nodes of blue, and NEW on that of green."""
        self.apply("green", NEW, "green")
        self.apply("blue", OLD, "blue", upgradePolicy=ONE_BY_ONE | {"maxParallelUpgrades": 2})
        self.operator.apply(SIMULATED, cluster_policy(driver={"useNvidiaDriverCRD": True}))
        self.wait_done(n2=f"container {OLD}", n3=f"container {OLD}", n4=f"container {NEW}")
        wait_for(self.settled, 240, "the drivers' pods to be those of the objects", self.told)
        self.apply("blue", OLD, "blue")  # from now on one node after the other

    def settled(self) -> bool:
        """Whether the operator has acted on the objects as they are, and the drivers' pods are of the newest template and ready: what wait_done() asks for may be
        true of the pods of before, whose template differs in something else."""
        if any(self.operator.state("nvidiadrivers", name) != "ready" for name in ("blue", "green")):
            return False
        sets = self.fleet.get("daemonsets", "-n", NAMESPACE, "-l", "app.kubernetes.io/component=nvidia-driver")["items"]
        return bool(sets) and all(one["metadata"]["generation"] == one["status"].get("observedGeneration") and one["status"]["desiredNumberScheduled"] == one["status"].get(
            "updatedNumberScheduled", 0) == one["status"].get("numberReady", 0) for one in sets)

    def versions(self) -> dict[str, str]:
        """What the agents found."""
        found = {one["metadata"]["name"]: one.get("status", {}).get("vendors", []) for one in self.fleet.get("nodestates")["items"]}
        return {node: next((f"{one.get('driverSource')} {one['driver']}" for one in vendors if one.get("driver")), "") for node, vendors in found.items()}

    def wait_versions(self, deadline: float = 180, **wanted: str):
        wait_for(lambda: {node: self.versions().get(node) for node in wanted} == wanted, deadline, f"the drivers {wanted}", self.told)

    def told(self):
        drivers = {one["metadata"]["name"]: one.get("status") for kind in ("nvidiadrivers", "clusterpolicies") for one in self.fleet.get(kind)["items"]}
        pods = self.fleet.kubectl("get", "pods", "-n", NAMESPACE, "-o", "wide", check=False).stdout
        logs = self.fleet.kubectl("logs", "-n", NAMESPACE, "-l", "app.kubernetes.io/component=nvidia-driver", "--all-containers", "--tail=15", "--prefix",
                                  check=False).stdout
        return self.versions(), json.dumps(drivers, indent=1), pods, logs, self.operator.log()

    def waiting(self, node: str, kind: str = "nvidiadrivers", name: str = "blue") -> str:
        """What the status of that object says of that node."""
        drivers = self.operator.policy(kind, name).get("status", {}).get("drivers", [])
        return json.dumps([one for driver in drivers for one in driver.get("waiting", []) if one["name"] == node])

    def wait_says(self, node: str, *words: str, deadline: float = 180, **of: str):
        wait_for(lambda: all(word in self.waiting(node, **of) for word in words), deadline, f"the status to say {words} of {node}", self.told)

    def wait_done(self, deadline: float = 240, **versions: str):
        self.wait_versions(deadline, **versions)
        wait_for(lambda: set(self.states().values()) == {"upgrade-done"}, deadline, "the nodes to be done", self.told)

    def wait_watched(self, node: str, since: float):
        """Until the operator has, from an API server that started after that, what it decides by of that node: the Node, its pods, and those of drivers."""
        wanted = ("/api/v1/nodes?", f"fieldSelector=spec.nodeName={node}&", "labelSelector=app.kubernetes.io/component=nvidia-driver&")

        def watched() -> list[str]:
            """For a second: one that goes on where it was interrupted is ended at once if the server does not know its version."""
            return [unquote(event["requestURI"]) for event in self.fleet.audit.watches(since, time.time() - 1, OURS)]
        wait_for(lambda: all(any(one in uri for uri in watched()) for one in wanted), 180, f"the operator to watch {wanted}", lambda: (watched(), self.operator.log()))

    def states(self) -> dict[str, str]:
        return {node: self.fleet.labels(node).get(STATE, "") for node in self.bare}

    def driver_pods(self) -> dict[str, dict]:
        pods = self.fleet.get("pods", "-n", NAMESPACE, "-l", "app.kubernetes.io/component=nvidia-driver")["items"]
        return {pod["spec"]["nodeName"]: pod for pod in pods if "deletionTimestamp" not in pod["metadata"] and pod["spec"].get("nodeName")}

    def replace_driver_pod(self, node: str):
        before = self.driver_pods()[node]["metadata"]
        self.fleet.kubectl("delete", "pod", "-n", NAMESPACE, before["name"], "--wait=false")

        def again() -> bool:
            pod = self.driver_pods().get(node)
            return bool(pod) and pod["metadata"]["uid"] != before["uid"] and pod["status"].get("containerStatuses", [{}])[0].get("ready", False)
        wait_for(again, 120, "the driver's pod to run again", self.told)

    def bystanders(self) -> dict[str, str]:
        pods = self.fleet.get("pods", "-l", "app=bystander")["items"]
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods if "deletionTimestamp" not in pod["metadata"]}

    @contextlib.contextmanager
    def undisturbed(self, *nodes: str):
        """Pods without a GPU run on these nodes, and stay; never are two nodes cordoned at the same time, and none in the end. As `watched`."""
        for node in nodes:
            self.fleet.create(idle_pod(f"bystander-{node}", node))
        wait_for(lambda: all(self.fleet.ready(f"bystander-{node}") for node in nodes), 60, "the bystanders to run")
        before = self.bystanders()
        with self.watched() as (seen, most):
            yield seen, most
        assert self.bystanders() == before, "a pod without a GPU was evicted"
        assert most[0] <= 1, f"{most[0]} nodes were cordoned at the same time"
        assert not any("unschedulable" in node["spec"] for node in self.fleet.get("nodes")["items"]), "a node is still cordoned"

    @contextlib.contextmanager
    def watched(self):
        """The states through which each node passes meanwhile, and the most nodes that were cordoned at the same time."""
        watch = UpgradeWatch(self.fleet.cluster.api, self.bare)
        watch.start()
        wait_for(lambda: all(watch.seen.values()), 60, "the nodes to be watched")
        try:
            yield watch.seen, watch.most
            last = {node: self.states()[node] for node in self.bare}
            wait_for(lambda: {node: states[-1] for node, states in watch.seen.items()} == last, 60, "the watch to have seen the nodes as they are", lambda: watch.seen)
        finally:
            watch.stop()


@contextlib.contextmanager
def running_rollout(fleet: Fleet, teams: dict[str, str] = TEAMS, without: tuple[str, ...] = BARE):
    """The operator, images of both versions, the nodes of two teams, and those without a driver."""
    fleet.clear()
    if fleet.values is not None:
        fleet.uninstall()
    had_log = Path("/dev/log").exists()
    for version in (OLD, NEW):
        provide(fleet, version, f"{version}-{SYSTEM}")
    bare: dict[str, BareNode] = {}
    try:
        with running_operator(fleet) as operator:
            bare.update((name, BareNode(fleet.nodes[name])) for name in without)  # not before: it clears the fleet's faults, of which this is one
            for node, team in teams.items():
                fleet.kubectl("label", "node", node, f"team={team}", "--overwrite")
            yield Rollout(fleet, operator, bare)
            fleet.kubectl("label", "nodes", "--all", "team-")
    finally:
        fleet.clear()
        for node in bare.values():
            node.restore()
        if not had_log:  # the driver's pods have the folder of the host's log
            with contextlib.suppress(OSError):
                Path("/dev/log").rmdir()
