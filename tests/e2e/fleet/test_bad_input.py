"""Objects that no schema stopped, and other controllers, on the real API server: each is answered by a condition and an Event, a pod of another node keeps its GPU meanwhile, and
the answer goes with what caused it."""
import json
import time
from collections.abc import Callable
from datetime import datetime

import pytest
from actors import GPU, wait_for
from api import RequestFailed, Watch, path_of
from driver_containers import BareNode
from fleet import NAMESPACE, Fleet
from operators import NATIVE, OPERATOR, OURS, Operator, cluster_policy, written_by_agents

DEPLOY_DRIVER = "nvidia.com/gpu.deploy.driver"
FOUGHT_FOR, FINALIZER = "nvidia.com/gpu.deploy.client", "penstock.io/cleanup"
OTHER = "other-controller"  # the field manager of one that disagrees
DRIVERS = {"driver": {"useNvidiaDriverCRD": True}}


@pytest.fixture
def ready(operator, fleet):
    """A pod on n1 holds a GPU from before until after."""
    operator.apply(NATIVE, cluster_policy(**DRIVERS))
    operator.wait_state("ready", 240)
    fleet.wait_offered()
    fleet.hold("keeper", "n1", 1)
    fleet.wait_held("keeper")
    before = kept(fleet)
    yield operator
    assert kept(fleet) == before, "the pod of another node was disturbed"
    fleet.clear()


def kept(fleet: Fleet) -> tuple:
    [pod] = fleet.get("pods", "-l", "app=keeper")["items"]
    containers = [(one["containerID"], one["restartCount"]) for one in pod["status"]["containerStatuses"]]
    return pod["metadata"]["uid"], containers, fleet.gpus_of(pod["metadata"]["name"], fleet.nodes["n1"].machine)


def condition(operator: Operator, type_: str, *of: str) -> dict:
    """Empty without one of that type."""
    return next((one for one in operator.policy(*of).get("status", {}).get("conditions", []) if one["type"] == type_), {})


def events(fleet: Fleet, kind: str, name: str) -> list[str]:
    found = fleet.get("events", "-n", "default", "--field-selector", f"involvedObject.kind={kind},involvedObject.name={name}")["items"]
    return [f"{one['type']} {one['reason']}: {one.get('message', '')}" for one in found]


def wait_event(fleet: Fleet, kind: str, name: str, *words: str):
    wait_for(lambda: any(all(word in text for word in words) for text in events(fleet, kind, name)), 60, f"an Event of {name} with {words}", lambda: events(fleet, kind, name))


def wait_error(operator: Operator, *words: str, of: tuple[str, ...] = (), deadline: float = 120):
    """`words` in reason or message."""
    def said() -> bool:
        now = condition(operator, "Error", *of)
        return now.get("status") == "True" and all(word in f"{now['reason']} {now['message']}" for word in words)
    wait_for(said, deadline, f"the condition Error with {words}", lambda: (operator.policy(*of).get("status"), operator.log()))


def wait_no_error(operator: Operator, *of: str, deadline: float = 120):
    wait_for(lambda: condition(operator, "Error", *of).get("status") == "False", deadline, "the condition Error to be False", lambda: (operator.policy(*of).get("status"), operator.log()))


def driver(name: str, **spec) -> dict:
    return {"apiVersion": "nvidia.com/v1alpha1", "kind": "NVIDIADriver", "metadata": {"name": name},
            "spec": {"driverType": "gpu", "repository": "registry.local", "image": "driver", "version": "550.54.15"} | spec}


@pytest.fixture
def bare(fleet):
    """n4 without a driver."""
    node = BareNode(fleet.nodes["n4"])
    yield node
    node.restore()


def test_two_default_drivers_and_selectors_that_overlap_are_named(ready, bare, fleet):
    names, kind = ("one", "two"), "nvidiadrivers"
    fleet.kubectl("label", "node", "n4", "team=green", "--overwrite")
    wait_for(lambda: fleet.get("nodestate", "n4")["status"]["vendors"][0].get("driver") == "", 60, "n4 to have reported that it has no driver")
    fleet.kubectl("label", "node", "n4", f"{DEPLOY_DRIVER}-")  # as users say that the driver of the host is gone
    ready.apply(*(driver(name, default=True) for name in names))
    for name in names:
        wait_error(ready, "multiple default NVIDIADrivers found (one, two)", of=(kind, name))
        wait_event(fleet, "NVIDIADriver", name, "multiple default NVIDIADrivers found")
    ready.apply(*(driver(name, nodeSelector={"team": "green"}, default=False) for name in names))
    for name in names:
        wait_error(ready, "ConflictingNodeSelector", "node n4: selected by one and two; it gets no driver", of=(kind, name))
        wait_event(fleet, "NVIDIADriver", name, "ConflictingNodeSelector", "n4")

    def pods() -> list[str]:
        return [pod["metadata"]["name"] for pod in fleet.get("pods", "-n", NAMESPACE, "-l", "app.kubernetes.io/component=nvidia-driver")["items"]]
    assert not pods()
    fleet.kubectl("delete", kind, "two", "--timeout=300s")
    wait_for(lambda: condition(ready, "Error", kind, "one").get("reason") != "ConflictingNodeSelector", 60, "no conflict any more", lambda: ready.policy(kind, "one"))
    wait_for(pods, 60, "the driver's pod on its node", lambda: (ready.policy(kind, "one"), ready.log()))
    fleet.kubectl("delete", kind, "one", "--timeout=300s")
    wait_for(lambda: not pods(), 60, "the driver's pod to be gone", pods)
    fleet.kubectl("label", "node", "n4", "team-")


def test_words_that_are_none_of_those_possible_change_nothing_and_are_named(ready, fleet):
    """Stored under definitions without a schema."""
    schema = [{"op": "replace", "path": "/spec/versions/0/schema", "value": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]
    definitions = ("clusterpolicies.nvidia.com", "nvidiadrivers.nvidia.com")
    for definition in definitions:
        fleet.kubectl("patch", "crd", definition, "--type=json", "-p", json.dumps(schema))

    def daemon_set() -> dict:
        return fleet.get("daemonset", "penstock-agent", "-n", NAMESPACE)["spec"]
    before = daemon_set()
    wrong = cluster_policy(**DRIVERS, mig={"strategy": "sometimes"}, daemonsets={"labels": {"example.com/team": "a"}, "updateStrategy": "Sometimes"})

    store = fleet.cluster.api.apply
    wait_for(lambda: store(wrong), 60, "the policy to be stored")  # the server takes a moment to forget the schema
    wait_for(lambda: store(driver("odd", kernelModuleType="sometimes", nodeSelector={"team": "none"})), 60, "the driver to be stored")
    wait_error(ready, "spec.mig.strategy", "sometimes", "spec.daemonsets.updateStrategy", "Sometimes")
    wait_event(fleet, "ClusterPolicy", "cluster-policy", "Warning", "spec.mig.strategy")
    wait_error(ready, "spec.kernelModuleType", "sometimes", of=("nvidiadrivers", "odd"))
    wait_event(fleet, "NVIDIADriver", "odd", "Warning", "spec.kernelModuleType")
    ready.wait_quiet(3)
    assert daemon_set() == before, "a policy that cannot be read changed something"
    fleet.kubectl("delete", "nvidiadrivers", "odd", "--timeout=300s")
    store(cluster_policy(**DRIVERS))
    ready.wait_state("ready")
    wait_no_error(ready)
    fleet.kubectl("delete", "pod", "-n", NAMESPACE, "-l", f"app={OPERATOR}")  # an operator looks at definitions when it starts

    def has_schema(definition: str) -> bool:
        return "properties" in fleet.get("customresourcedefinitions", definition)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    wait_for(lambda: all(map(has_schema, definitions)), 120, "the operator's definitions", ready.log)
    ready.wait_state("ready")


def test_a_rule_that_the_operator_lacks_is_named_and_everything_else_goes_on(ready, fleet):
    role = fleet.kubectl("get", "role", OPERATOR, "-n", NAMESPACE, "-o", "json").stdout
    rules = json.loads(role)["rules"]
    without = [rule | {"verbs": [verb for verb in rule["verbs"] if verb != "patch"]} if rule["resources"] == ["daemonsets"] else rule for rule in rules]
    assert without != rules

    def allow(rules: list[dict]):
        fleet.kubectl("patch", "role", OPERATOR, "-n", NAMESPACE, "--type=merge", "-p", json.dumps({"rules": rules}))

    def has_label() -> bool:
        return "example.com/team" in fleet.get("daemonset", "penstock-agent", "-n", NAMESPACE)["spec"]["template"]["metadata"]["labels"]

    def services() -> list[str]:
        return fleet.cluster.api.names("service", namespace=NAMESPACE)
    try:
        allow(without)
        fleet.wait_permission(OPERATOR, "patch", "daemonsets.apps", False, "-n", NAMESPACE)
        ready.apply(cluster_policy(**DRIVERS, daemonsets={"labels": {"example.com/team": "a"}}, nodeStatusExporter={"enabled": True}))
        wait_for(lambda: "service/nvidia-node-status-exporter" in services(), 60, "what needs other rules to be written", lambda: (services(), ready.log()))
        wait_error(ready, "missing RBAC rule", "daemonsets", "patch", deadline=240)
        wait_event(fleet, "ClusterPolicy", "cluster-policy", "Warning", "missing RBAC rule", "daemonsets")
        assert not has_label()
    finally:
        allow(rules)
    wait_for(has_label, 240, "the DaemonSet to be written", lambda: (ready.policy().get("status"), ready.log()))
    wait_no_error(ready)
    ready.apply(cluster_policy(**DRIVERS))
    ready.wait_state("ready", 240)


class Fight(Watch):
    """A controller that changes an object as often as that is necessary. `change`: of the object as it is; empty if it is as that controller wants it."""

    def __init__(self, api, kind: str, of: str, change: Callable[[dict], dict]):
        super().__init__(api, kind)
        self.of, self.to, self.change, self.times, self.begin = of, path_of(kind, of), change, 0, time.time()

    def note(self, name: str, one: dict):
        if name == self.of and not self.stopped and (change := self.change(one)):
            self.times += 1
            self.api.request("PATCH", self.to, change, "application/merge-patch+json", fieldManager=OTHER)

    def stop(self):
        with self.changed:  # no change is under way any more
            super().stop()
        self.lasted = time.time() - self.begin

    def wait_over(self, operator: Operator, back: Callable[[], bool]):
        """Until the operator has what it wants, and is no longer in doubt whether it stays: each pause is as long as all before, the last doubt twice as long."""
        wait_for(back, 120 + 2 * self.lasted, "the operator to have what it wants", lambda: (operator.policy(), operator.log()))
        wait_no_error(operator, deadline=120 + 4 * self.lasted)
        operator.wait_state("ready")
        assert back()


def test_a_label_that_another_controller_takes_back_is_named_and_written_ever_more_rarely(ready, fleet):
    def without(node: dict) -> dict:
        return {"metadata": {"labels": {FOUGHT_FOR: None}}} if FOUGHT_FOR in node["metadata"]["labels"] else {}
    fight = Fight(fleet.cluster.api, "nodes", "n2", without)
    fight.start()
    try:
        wait_error(ready, "n2", "--show-managed-fields")
        wait_event(fleet, "ClusterPolicy", "cluster-policy", "n2", "--show-managed-fields")
        # Another node goes on.
        fleet.kubectl("label", "node", "n3", f"{FOUGHT_FOR}-")
        wait_for(lambda: fleet.labels("n3").get(FOUGHT_FOR) == "true", 60, "n3's label to be put right", lambda: fleet.labels("n3"))
        assert 3 <= fight.times < 20, fight.times
    finally:
        fight.stop()
    fight.wait_over(ready, lambda: fleet.labels("n2").get(FOUGHT_FOR) == "true")


def has_finalizer(policy: dict) -> bool:
    return FINALIZER in policy["metadata"].get("finalizers", [])


def without_finalizer(policy: dict) -> dict:
    """The annotation shows the field manager: who only removes something owns no field."""
    others = [one for one in policy["metadata"].get("finalizers", []) if one != FINALIZER]
    return {"metadata": {"annotations": {"example.com/synced": "true"}, "finalizers": others}} if has_finalizer(policy) else {}


def times_written(fleet: Fleet, begin: float) -> list[float]:
    """When the API server received the operator's writes of the policy that it accepted, but for those of the status."""
    accepted = {event["auditID"] for event in fleet.audit.all() if event.get("responseStatus", {}).get("code") == 200}
    return [datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp() for event in fleet.audit.writes(begin, who=OURS)
            if event["auditID"] in accepted and event["objectRef"]["resource"] == "clusterpolicies" and "subresource" not in event["objectRef"]]


def test_a_finalizer_that_another_program_removes_is_named_and_written_ever_more_rarely_until_it_stays(ready, fleet):
    """Afterwards no restart is necessary, and a deletion waits for what is taken back."""
    def operators() -> list[tuple]:
        pods = fleet.get("pods", "-n", NAMESPACE, "-l", f"app={OPERATOR}")["items"]
        return [(pod["metadata"]["uid"], pod["status"]["containerStatuses"][0]["restartCount"]) for pod in pods]
    before = operators()
    fight = Fight(fleet.cluster.api, "clusterpolicies", "cluster-policy", without_finalizer)
    fight.start()
    try:
        wait_error(ready, f"removes the finalizer {FINALIZER}", OTHER)
        wait_event(fleet, "ClusterPolicy", "cluster-policy", "Warning", f"removes the finalizer {FINALIZER}", OTHER)
        wait_for(lambda: len(times_written(fleet, fight.begin)) >= 6, 240, "six writes of the finalizer", lambda: (fight.times, times_written(fleet, fight.begin)), every=1)
    finally:
        fight.stop()
    times = times_written(fleet, fight.begin)
    pauses = [later - one for one, later in zip(times, times[1:])]
    # 1 s, 2 s, 4 s and so on after the third write, from its answer on; longer if there were writes before.
    assert all(pause >= 0.9 * 2 ** i for i, pause in enumerate(pauses[2:])), pauses
    fight.wait_over(ready, lambda: has_finalizer(ready.policy()))
    assert operators() == before
    ready.delete("penstocks", "simulated")
    ready.delete("clusterpolicies", "cluster-policy")
    left = fleet.kubectl("get", "daemonset,configmap,service", "-n", NAMESPACE, "-l", "app.kubernetes.io/managed-by=penstock-operator", "-o", "name").stdout
    assert not left and not written_by_agents(fleet), (left, written_by_agents(fleet))


def test_a_namespace_that_is_deleted_ends_and_what_was_in_force_is_again_once_it_is_back(ready, fleet):
    """The operator, its agents and its rights are in it, so nobody is left to say anything; pods keep what they have, and the policies stay."""
    fleet.kubectl("delete", "namespace", NAMESPACE, "--wait=false")

    def gone() -> bool:
        try:
            fleet.get("namespace", NAMESPACE)
            return False
        except RequestFailed as error:
            return error.code == 404
    wait_for(gone, 180, "the namespace to be gone", lambda: fleet.kubectl("get", "namespace", NAMESPACE, "-o", "yaml", check=False).stdout)
    [pod] = fleet.get("pods", "-l", "app=keeper")["items"]
    assert pod["status"]["phase"] == "Running"
    ready.install()
    ready.wait_state("ready", 240)
    wait_no_error(ready)
    fleet.wait_advertised(120)
    fleet.check()
    assert fleet.get("node", "n1")["status"]["allocatable"][GPU] == "8"
