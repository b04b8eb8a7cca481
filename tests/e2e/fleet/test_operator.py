"""The operator on four nodes: from a ClusterPolicy, as people have it, to GPUs, and from a DeviceConfig to AMD's; what it writes, and what it takes back."""
import contextlib
import functools
import json
import re
import sys
import time

import pytest
import yaml
from actors import GPU, wait_for
from fleet import NAMESPACE, ROOT, pod_on
from operators import MONITOR, NATIVE, OPERATOR, SAMPLES, UPGRADES, cluster_policy, files_of_agents, forget_taken_back, taken_back, written_by_agents
from witnesses import OURS as AGENTS_TOO

sys.path.append(str(ROOT / "tests/support"))

from amd import Amd  # noqa: E402

DEPLOYED = ("container-toolkit", "dcgm", "dcgm-exporter", "device-plugin", "driver", "gpu-feature-discovery", "node-status-exporter", "operator-validator",
            "client")
# Each node has a driver of its host.
DEPLOY = dict.fromkeys(DEPLOYED, "true") | {"driver": "pre-installed"}
STARTUP_TAINT = "penstock.io/accelerators-not-ready"
KEPT_TAINT = "example.com/reserved"
SELECTED = ("-n", NAMESPACE, "-l", "app.kubernetes.io/managed-by=penstock-operator")
AMD, AMD_GPU, AMD_NODE = "deviceconfigs", "amd.com/gpu", "feature.node.kubernetes.io/amd-gpu"


@pytest.fixture(scope="module")
def operator(operator, fleet):
    fleet.kubectl("apply", "--server-side", "-f", MONITOR)
    yield operator
    fleet.kubectl("delete", "-f", MONITOR, "--timeout=300s", check=False)


@pytest.fixture
def ready(operator):
    operator.apply(NATIVE, cluster_policy())
    operator.wait_state("ready")
    return operator


def test_a_cluster_policy_as_people_have_it_makes_the_nodes_ready(operator, fleet, measure):
    with measure("ClusterPolicy: four nodes ready", goal=10) as it:
        operator.apply(NATIVE, cluster_policy())
        operator.wait_state("ready")
        it.done = time.time()
    fleet.wait_advertised(60)
    for name in fleet.nodes:
        def deploy(name=name) -> dict:
            return {key: fleet.labels(name).get(f"nvidia.com/gpu.deploy.{key}") for key in DEPLOYED}
        wait_for(lambda deploy=deploy: deploy() == DEPLOY, 60, f"the labels of {name}", deploy)
        found = fleet.get("node", name)["metadata"]
        assert found["labels"]["nvidia.com/gpu.present"] == "true"
        assert found["annotations"][UPGRADES] == "true"
    assert fleet.get("service", "-n", NAMESPACE, "nvidia-dcgm-exporter")["spec"]["ports"][0]["port"] == 9400
    wait_for(lambda: operator.policy()["status"]["nodes"]["byState"] == {"ready": 4}, 60, "four nodes to be counted", lambda: operator.policy()["status"])
    assert operator.condition("Ready")["reason"] == "Reconciled"


def test_at_rest_the_operator_and_the_agents_write_only_the_lease(ready, fleet, remark):
    ready.wait_quiet(20, AGENTS_TOO)  # a pod that is not ready for a moment, on a busy machine, is written, too
    remark("20 s idle, renewals of the operator's Lease", str(len(fleet.audit.writes(time.time() - 20))))


def test_a_second_cluster_policy_is_ignored_and_says_for_which(ready):
    ready.apply(cluster_policy("second"))
    ready.wait_state("ignored", name="second")
    assert "cluster-policy" in ready.condition("Ready", name="second")["message"]
    ready.wait_state("ready")
    ready.delete("clusterpolicies", "second")
    ready.wait_state("ready")


def test_a_field_that_changes_writes_each_object_that_differs_once(ready):
    def generation() -> int:
        return ready.fleet.get("daemonset", "-n", NAMESPACE, "penstock-agent")["metadata"]["generation"]
    ready.wait_quiet()
    begin, before = time.time(), generation()
    ready.apply(cluster_policy(daemonsets={"labels": {"example.com/team": "a"}}))
    wait_for(lambda: ready.fleet.get("daemonset", "-n", NAMESPACE, "penstock-agent")["spec"]["template"]["metadata"]["labels"].get("example.com/team") == "a",
             60, "the DaemonSet to have the label", ready.log)
    ready.wait_state("ready")
    ready.wait_quiet()
    written = {(event["objectRef"]["resource"], event["objectRef"].get("name")) for event in ready.writes(begin)
               if event["objectRef"]["resource"] not in ("clusterpolicies", "penstocks", "events")}
    # A request whose answer is lost is sent again, and changes nothing.
    assert written == {("daemonsets", "penstock-agent")} and generation() == before + 1, (written, before, generation())
    ready.apply(cluster_policy())
    ready.wait_state("ready")


def test_service_monitors_come_and_go_with_their_field(ready, fleet):
    def monitors() -> list[str]:
        return fleet.cluster.api.names("servicemonitor", namespace=NAMESPACE)

    assert not monitors()
    ready.apply(cluster_policy(dcgmExporter={"serviceMonitor": {"enabled": True, "interval": "15s", "additionalLabels": {"release": "prometheus"}}}))
    wait_for(monitors, 60, "the ServiceMonitor", ready.log)
    ready.apply(cluster_policy())
    wait_for(lambda: not monitors(), 60, "the ServiceMonitor to be gone", monitors)
    ready.wait_state("ready")


def test_the_service_of_the_node_status_exporter_leads_to_its_metrics(ready, fleet):
    name = "nvidia-node-status-exporter"

    def page() -> str:  # by the Service's name and that of its port
        return fleet.cluster.api.request("GET", f"/api/v1/namespaces/{NAMESPACE}/services/{name}:node-status/proxy/metrics")

    def there() -> list[str]:
        return [one for one in fleet.cluster.api.names("service", "servicemonitor", namespace=NAMESPACE) if one.endswith(f"/{name}")]

    assert not there()
    ready.apply(cluster_policy(nodeStatusExporter={"enabled": True}))
    wait_for(lambda: len(there()) == 2, 60, "Service and ServiceMonitor", lambda: (there(), ready.log()))
    service = fleet.get("service", name, "-n", NAMESPACE)
    assert service["metadata"]["labels"]["app"] == name and [port["port"] for port in service["spec"]["ports"]] == [8000]
    monitor = fleet.get("servicemonitor", name, "-n", NAMESPACE)["spec"]
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    [endpoint] = monitor["endpoints"]
    assert endpoint["port"] == service["spec"]["ports"][0]["name"] == "node-status"
    [rule] = endpoint["metricRelabelings"]

    def kept() -> set[str]:  # of one of the agents
        families = {re.split("[{ ]", line)[0] for line in page().splitlines() if line and not line.startswith("#")}
        return {family for family in families if re.fullmatch(rule["regex"], family)}
    wanted = {f"gpu_operator_node_{name}" for name in ("driver_ready", "toolkit_ready", "plugin_ready", "driver_validation", "device_plugin_devices_total")}
    wait_for(lambda: wanted <= kept(), 120, "the metrics, through the Service", ready.log)
    ready.apply(cluster_policy())
    wait_for(lambda: not there(), 60, "Service and ServiceMonitor to be gone", there)
    ready.wait_state("ready")


def test_the_namespace_admits_privileged_pods_if_the_policy_says_so(ready, fleet):
    def labels() -> dict:
        return fleet.get("namespace", NAMESPACE)["metadata"]["labels"]

    ready.apply(cluster_policy(psa={"enabled": True}))
    wait_for(lambda: labels().get("pod-security.kubernetes.io/enforce") == "privileged", 60, "the namespace's label", labels)
    ready.apply(cluster_policy())
    ready.wait_state("ready")


KINDS = {"ClusterPolicy": "clusterpolicies", "NVIDIADriver": "nvidiadrivers", "GPUCluster": "gpuclusters"}


class Applied:
    """A sample, as its file is, applied with strict validation; and what its status answers to its present generation."""

    def __init__(self, operator, sample: str):
        self.operator, file = operator, SAMPLES / f"{sample}.yaml"
        one = yaml.safe_load(file.read_text())
        self.kind, self.name = KINDS[one["kind"]], one["metadata"]["name"]
        operator.fleet.kubectl("apply", "--server-side", "--force-conflicts", "--validate=strict", "-f", file)

    def answers(self) -> dict[str, tuple[str, str]]:
        """Status and reason of each condition, and the state; none while an earlier generation is answered."""
        now = self.operator.policy(self.kind, self.name)
        status = now.get("status", {})
        conditions = {one["type"]: one for one in status.get("conditions", [])}
        if conditions.get("Ready", {}).get("observedGeneration") != now["metadata"]["generation"]:
            return {}
        return {"state": status.get("state", "")} | {key: (one["status"], one["reason"]) for key, one in conditions.items()}

    def wait(self, **wanted):
        wait_for(lambda: self.answers() == wanted, 120, f"the sample {self.name} to answer {wanted}",
                 lambda: (self.answers(), self.operator.policy(self.kind, self.name).get("status"), self.operator.log()))


READY = {"state": "ready", "Ready": ("True", "Reconciled"), "Error": ("False", "Ready")}
REMARKS, NOT_SERVED = ("True", "ServedWithRemarks"), ("False", "FieldsNotServed")


def made(operator, name: str = "cluster-policy") -> dict:
    """What the operator made of the policies."""
    def get(*words) -> dict:
        return operator.fleet.get(*words, "-n", NAMESPACE)
    pods = get("daemonset", "penstock-agent")["spec"]["template"]
    monitors = {one["metadata"]["name"]: one for one in get("servicemonitors")["items"]}
    return {"pods": pods, "configuration": yaml.safe_load(get("configmap", "penstock-agent")["data"]["node.yaml"]), "monitors": monitors,
            "services": {one["metadata"]["name"] for one in get("services")["items"]}, "fields": operator.condition("FieldsServed", name=name)["message"]}


def tolerates_gpus(operator) -> bool:
    found = made(operator)["pods"]["spec"]
    return {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in found["tolerations"] and found["priorityClassName"] == "system-node-critical"


def asks_the_engine_of_k3s(operator) -> bool:
    found = made(operator)
    return found["configuration"]["containers"]["engineSocket"] == "/run/k3s/containerd/containerd.sock" and "spec.toolkit.env[CONTAINERD_CONFIG]" in found["fields"]


def answers_virtual_machines(operator) -> bool:
    fields = made(operator)["fields"]
    return all(f"spec.{field}: " in fields for field in ("sandboxWorkloads.enabled", "cdi.nriPluginEnabled", "gds.enabled", "gdrcopy.enabled"))


def serves_series_of_pods(operator) -> bool:
    found = made(operator)
    monitor = found["monitors"].get("nvidia-dcgm-exporter", {})
    return (monitor.get("metadata", {}).get("labels", {}).get("release") == "prometheus" and monitor["spec"]["endpoints"][0]["interval"] == "15s"
            and "nvidia-node-status-exporter" in found["services"] & set(found["monitors"]) and "holderLabels" in found["configuration"]["telemetry"]
            and "spec.migManager.env[WITH_REBOOT]" in found["fields"])


EFFECTS = {"chart": tolerates_gpus, "k3s": asks_the_engine_of_k3s, "virtual-machines": answers_virtual_machines, "time-slicing": serves_series_of_pods}


def test_every_sample_is_accepted_unchanged_and_answered(ready, fleet):
    """One after the other in the place of one policy, which the others below another name take over. What a sample names and this cluster lacks is said."""
    for sample, served in (("chart", REMARKS), ("k3s", REMARKS), ("virtual-machines", NOT_SERVED), ("time-slicing", NOT_SERVED)):
        applied = Applied(ready, f"cluster-policy/{sample}")
        applied.wait(**READY, FieldsServed=served)
        effect = EFFECTS[sample]
        wait_for(lambda effect=effect: effect(ready), 60, f"what {sample} asks for", lambda: (made(ready), ready.log()))

    def named() -> list[bool]:
        return ["time-slicing-config-all" in str(one.get("status", {}).get("conditions")) for one in fleet.get("nodestates")["items"]]
    wait_for(lambda: all(named()), 60, "each node to name the ConfigMap that does not exist", lambda: fleet.get("nodestates"))
    bundle = Applied(ready, "cluster-policy/olm")
    bundle.wait(state="ignored", Ready=("False", "Ignored"), Error=("False", "Ready"))
    ready.delete("clusterpolicies", "cluster-policy")
    bundle.wait(**READY, FieldsServed=REMARKS)
    driver = Applied(ready, "nvidia-driver/sample")
    driver.wait(state="ignored", Ready=("False", "Ignored"), Error=("False", "Ready"))
    ready.delete("nvidiadrivers", driver.name)
    ready.apply(cluster_policy())
    ready.delete("clusterpolicies", bundle.name)
    ready.wait_state("ready")


def test_an_object_that_an_operator_of_2022_stored_is_read_and_takes_effect(ready, fleet):
    """The sample `old` under a definition without a schema, as those were: it lacks sections that are required now, and has fields that are gone. Stored
    objects are not validated again."""
    definition = "clusterpolicies.nvidia.com"
    schema = [{"op": "replace", "path": "/spec/versions/0/schema", "value": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]

    def has_schema() -> bool:
        return "properties" in fleet.get("customresourcedefinitions", definition)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]

    assert made(ready)["configuration"].get("labels", {}).get("node") is not False
    ready.delete("clusterpolicies", "cluster-policy")
    fleet.kubectl("patch", "crd", definition, "--type=json", "-p", json.dumps(schema))
    old = yaml.safe_load((SAMPLES / "cluster-policy/old.yaml").read_text())
    name = old["metadata"]["name"]
    del old["metadata"]["resourceVersion"]  # which no new object has
    wait_for(lambda: fleet.get("clusterpolicies")["items"] or fleet.cluster.api.create(old), 60, "the old object to be stored")
    fleet.kubectl("delete", "pod", "-n", NAMESPACE, "-l", f"app={OPERATOR}")  # an operator looks at definitions when it starts
    wait_for(has_schema, 120, "the operator's definition", ready.log)
    ready.wait_state("ready", name=name)
    fields = ready.condition("FieldsServed", name=name)
    assert fields["reason"] == "FieldsNotServed"
    for field in ("gpuFeatureDiscovery", "operator.defaultRuntime", "operator.initContainer", "psp.enabled", "dcgm.enabled", "operator.validator", "nodeStatus"):
        assert f"spec.{field}: " in fields["message"], (field, fields)
    found = made(ready, name)
    assert found["configuration"]["labels"]["node"] is False, "gpuFeatureDiscovery.enabled: false"  # "off", as YAML 1.1 reads it

    def discovered() -> set[str]:
        return {node for node in fleet.nodes if "nvidia.com/gpu.product" in fleet.labels(node)}
    wait_for(lambda: not discovered(), 120, "the labels of the agents before to be taken back", discovered)
    assert "nvidia-dcgm-exporter" in found["services"]  # enabled unless an object says otherwise
    kept = fleet.get("clusterpolicies", name)["spec"]
    assert kept["nodeStatus"] == {"enabled": True} and kept["gpuFeatureDiscovery"] == {"enabled": False}
    ready.delete("clusterpolicies", name)
    ready.apply(cluster_policy())
    ready.wait_state("ready")
    wait_for(lambda: discovered() == set(fleet.nodes), 120, "the labels to be back", discovered)


def test_a_gpu_cluster_is_answered_in_its_status(ready):
    Applied(ready, "gpu-cluster/sample")

    def status() -> dict:
        return ready.policy("gpuclusters", "gpu-cluster").get("status", {})

    def served() -> dict:
        return next((one for one in status().get("conditions", ()) if one["type"] == "FieldsServed"), {})
    wait_for(lambda: served().get("reason") == "FieldsNotServed" and "Use a ClusterPolicy" in served()["message"], 60, "the GPUCluster's condition", status)
    ready.delete("gpuclusters", "gpu-cluster")


def test_a_node_that_opts_out_loses_what_the_operator_wrote(ready, fleet):
    fleet.kubectl("label", "node", "n3", "nvidia.com/gpu.deploy.operands=false", "nvidia.com/gpu.deploy.dcgm=false", "--overwrite")

    def deployed() -> dict:
        return {key: value for key, value in fleet.labels("n3").items() if key.startswith("nvidia.com/gpu.deploy.")}
    wait_for(lambda: deployed() == {"nvidia.com/gpu.deploy.operands": "false", "nvidia.com/gpu.deploy.dcgm": "false"}, 60, "n3's labels to be gone", deployed)
    fleet.kubectl("label", "node", "n3", "nvidia.com/gpu.deploy.operands-")
    wait_for(lambda: deployed() == {f"nvidia.com/gpu.deploy.{key}": "false" if key == "dcgm" else value for key, value in DEPLOY.items()}, 60,
             "n3's labels, with the wish of its user", deployed)
    fleet.kubectl("label", "node", "n3", "nvidia.com/gpu.deploy.dcgm-")


def test_a_startup_taint_goes_once_the_devices_of_its_node_can_be_used(ready, fleet):
    def taints() -> list[str]:
        return [taint["key"] for taint in fleet.get("node", "n3")["spec"].get("taints", [])]
    fleet.nodes["n3"].machine.fault("driver", "unload")
    def named() -> list[tuple]:
        return [(one["name"], "driver" in one.get("message", "")) for one in ready.policy()["status"]["nodes"].get("notReady", [])]
    wait_for(lambda: named() == [("n3", True)], 120, "n3's agent to report that its driver is gone", lambda: ready.policy()["status"])
    fleet.kubectl("taint", "node", "n3", f"{STARTUP_TAINT}=:NoSchedule", "example.com/kept=:PreferNoSchedule")
    try:
        fleet.kubectl("delete", "pod", "-n", NAMESPACE, "-l", "app.kubernetes.io/name=penstock", "--field-selector=spec.nodeName=n3")  # its agent starts nevertheless
        wait_for(lambda: ready.condition("Ready")["message"].startswith("1 of 4"), 120, "all agents to run and n3 not to be ready", lambda: ready.condition("Ready"))
        assert STARTUP_TAINT in taints()
        fleet.nodes["n3"].machine.heal()
        wait_for(lambda: taints() == ["example.com/kept"], 120, "the taint to go", lambda: (taints(), ready.log()))
        ready.wait_state("ready")
    finally:
        fleet.nodes["n3"].machine.heal()
        for key in taints():
            fleet.kubectl("taint", "node", "n3", f"{key}-")


def test_an_api_server_that_dies_does_not_end_the_operator(ready, fleet):
    def operators() -> list[tuple]:
        return [(pod["metadata"]["name"], pod["status"]["containerStatuses"][0]["restartCount"])
                for pod in fleet.get("pods", "-n", NAMESPACE, "-l", f"app={OPERATOR}")["items"]]
    before = operators()
    fleet.cluster.kill("apiserver")
    time.sleep(3)
    fleet.cluster.start("apiserver")
    fleet.restart_controllers()
    too = {**NATIVE, "spec": {**NATIVE["spec"], "agent": {**NATIVE["spec"]["agent"], "annotations": {"example.com/too": "outage"}}}}
    ready.apply(cluster_policy(daemonsets={"annotations": {"example.com/after": "outage"}}), too)
    def annotations() -> set[str]:
        return set(fleet.get("daemonset", "-n", NAMESPACE, "penstock-agent")["spec"]["template"]["metadata"].get("annotations", {}))
    wait_for(lambda: {"example.com/after", "example.com/too"} <= annotations(), 180, "the operator to follow policies of both kinds again", ready.log)
    assert operators() == before
    ready.apply(cluster_policy(), NATIVE)
    ready.wait_state("ready", 180)


def test_deleted_policies_leave_nothing_of_the_operator(ready, fleet):
    # Its containers end and start again; those of n1 alone need the specifications.
    fleet.wait_offered()
    fleet.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "holder", "labels": {"app": "holder"}}, "spec": pod_on("n1", "exec sleep 25")})
    fleet.wait_held("holder")
    wait_for(lambda: all(files_of_agents(node) for node in fleet.nodes.values()) and written_by_agents(fleet), 60, "the agents to have written what is taken back")
    wait_for(lambda: fleet.get("nodestate", "n1")["status"].get("summary", {}).get("held", 0) > 0, 60, "n1 to report that a device is held")
    # Together: without the driver root of "simulated", an agent would find no devices, and remove their specifications.
    for kind, name in (("clusterpolicies", "cluster-policy"), ("penstocks", "simulated")):
        fleet.cluster.api.delete(kind, name)
    ready.delete("penstocks", "simulated")
    ready.delete("clusterpolicies", "cluster-policy")
    assert not fleet.kubectl("get", "daemonset,configmap,service", *SELECTED, "-o", "name").stdout
    assert not written_by_agents(fleet), written_by_agents(fleet)
    left = {name: files_of_agents(node) for name, node in fleet.nodes.items() if files_of_agents(node)}
    assert list(left) == ["n1"] and not [file for file in left["n1"] if file.endswith("-ready")], left
    said = "what agents wrote to 4 nodes (n1, n2, n3, n4), and what agents left on the hosts of 4 of 4 nodes, but for the CDI specifications of 1 node (n1), whose " \
        "devices are held"
    wait_for(lambda: any(said in message for message in taken_back(fleet)), 60, "the Event about what was taken back", lambda: taken_back(fleet))

    def started() -> int:
        status = fleet.get("pod", "holder")["status"]["containerStatuses"][0]
        return status["restartCount"] if "running" in status["state"] else -1
    before = fleet.get("pod", "holder")["status"]["containerStatuses"][0]["restartCount"]
    wait_for(lambda: started() > before, 360, "the container that holds a GPU to start again", lambda: fleet.kubectl("describe", "pod", "holder").stdout)
    fleet.clear()
    # The garbage collector learns late of pods that were created just before.
    wait_for(lambda: not fleet.get("pods", *SELECTED)["items"], 180, "the agents' pods to be gone", every=0.5)
    assert not fleet.kubectl("get", "runtimeclass", "-l", "app.kubernetes.io/managed-by=penstock-operator", "-o", "name").stdout
    for name in fleet.nodes:
        found = fleet.get("node", name)["metadata"]
        assert not [key for key in found["labels"] if key.startswith("nvidia.com/gpu.deploy.")], found["labels"]
        assert UPGRADES not in found.get("annotations", {})
    wait_for(lambda: all(fleet.get("node", name)["status"]["allocatable"].get(GPU, "0") == "0" for name in fleet.nodes), 60,
             "the Node objects to have no GPUs")


TIER, COUNT = "node-restriction.kubernetes.io/tier", f"{GPU}.count"


def claim(fleet, node: str, fields: dict, manager: str = "penstock-labels"):
    """By the Node's managed fields, that manager has applied these, and nobody anything else."""
    entry = {"manager": manager, "operation": "Apply", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields}
    fleet.kubectl("patch", "node", node, "--type=merge", "-p", json.dumps({"metadata": {"managedFields": [entry]}}))


@contextlib.contextmanager
def node_that_claims(fleet, name: str, fields: dict, *manager: str):
    """A Node without an agent that claims these fields for one, or for the manager. A node's own credentials can write that, but neither its taints nor the label of its tier."""
    fleet.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {TIER: "restricted", COUNT: "8"}},
                  "spec": {"taints": [{"key": KEPT_TAINT, "effect": "NoSchedule"}]}, "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}})
    try:
        # The controllers that add to the taints own them by that, and write them one after the other.
        last = {(KEPT_TAINT, "NoSchedule"), ("node.kubernetes.io/unreachable", "NoSchedule"), ("node.kubernetes.io/unreachable", "NoExecute")}
        wait_for(lambda: {(one["key"], one["effect"]) for one in fleet.get("node", name)["spec"]["taints"]} == last, 120, "the controllers' taints",
                 lambda: fleet.get("node", name)["spec"])
        claim(fleet, name, fields, *manager)
        yield name
    finally:
        fleet.kubectl("delete", "node", name)


RESERVED = {"f:metadata": {"f:labels": {f"f:{TIER}": {}}}, "f:spec": {"f:taints": {}}}


@pytest.fixture
def claimed(fleet):
    with node_that_claims(fleet, "claimed", RESERVED) as name:
        yield name


@pytest.fixture
def counted(fleet):
    with node_that_claims(fleet, "counted", {"f:metadata": {"f:labels": {f"f:{COUNT}": {}}}}) as name:
        yield name


def test_what_a_node_claims_that_the_operator_wrote_stays_as_it_is_labelled(ready, fleet):
    deep = functools.reduce(lambda inner, _: {"f:more": inner}, range(300), {})  # the watch of all Nodes shows it
    with node_that_claims(fleet, "labelled", {**RESERVED, "f:status": deep}, "penstock-operator") as name:
        node = fleet.get("node", name)
        assert json.dumps(node["metadata"]["managedFields"]).count("f:more") == 300
        taints = node["spec"]["taints"]
        for value, driver in (("true", "true"), ("false", None)):
            fleet.kubectl("label", "node", name, "feature.node.kubernetes.io/pci-10de.present=true", f"nvidia.com/gpu.deploy.operands={value}", "--overwrite")
            wait_for(lambda driver=driver: fleet.labels(name).get("nvidia.com/gpu.deploy.driver") == driver, 60, "the operator to act", lambda: fleet.labels(name))
            assert fleet.labels(name)[TIER] == "restricted" and fleet.get("node", name)["spec"]["taints"] == taints


def test_what_a_node_claims_that_an_agent_wrote_takes_nothing_else_along(ready, fleet, claimed, counted):
    """With an empty apply, the server would remove all labels of a Node of which nobody else owns one."""
    def said(name: str = claimed) -> tuple:
        node = fleet.get("node", name)
        return node["metadata"]["labels"], node["spec"]["taints"], [entry["fieldsV1"] for entry in node["metadata"].get("managedFields", ()) if entry["manager"] == "penstock-labels"]
    before, taints = said(), said(counted)[1]
    assert before[2] and KEPT_TAINT in str(before[1])
    wait_for(lambda: {f"NodeState {name}" for name in fleet.nodes} <= set(written_by_agents(fleet)), 60, "the agents to have written what is taken back")
    forget_taken_back(fleet)
    ready.delete("penstocks", "simulated")
    ready.delete("clusterpolicies", "cluster-policy")
    wait_for(lambda: any("what agents wrote to 5 nodes (counted, n1, n2, n3, n4)" in message for message in taken_back(fleet)), 60, "the Event about the other nodes",
             lambda: taken_back(fleet))
    assert said() == before
    assert said(counted) == ({TIER: "restricted"}, taints, [])
    fleet.kubectl("label", "node", counted, f"{COUNT}=8")
    claim(fleet, counted, {"f:metadata": {"f:labels": {f"f:{COUNT}": {}}}})
    for name in (claimed, counted):
        done = fleet.cluster.run(fleet.programs / "penstock", "cleanup", "--cluster", "--node", name)
        assert (f"node {name}: what the field manager penstock-labels has applied stays" in done.stderr) == (name == claimed), done
    assert said() == before
    assert said(counted) == ({TIER: "restricted"}, taints, [])


@pytest.fixture
def amd(fleet):
    """Two of AMD's GPUs on n4, beside NVIDIA's, with the label that the NFD rule of AMD's chart writes."""
    machine = fleet.nodes["n4"].machine
    first = 1 + max((int(file.name[4:]) for file in (machine.root / "dev/dri").glob("card*")), default=-1)
    amd = Amd(machine.root, "mi210", gpus=2, first=first, on_disk=True)
    fleet.kubectl("label", "node", "n4", f"{AMD_NODE}=true")
    yield amd
    amd.unload()
    amd.close()
    fleet.kubectl("label", "node", "n4", f"{AMD_NODE}-")


def device_config(name: str = "gpus", namespace: str = NAMESPACE, **spec) -> dict:
    return {"apiVersion": "amd.com/v1alpha1", "kind": "DeviceConfig", "metadata": {"name": name, "namespace": namespace},
            "spec": {"driver": {"enable": False}, "selector": {AMD_NODE: "true"}} | spec}


def test_a_device_config_serves_amds_gpus_alone_and_beside_a_cluster_policy(operator, fleet, amd):
    def shown() -> tuple:
        return operator.policy(AMD, "gpus").get("status"), operator.log()

    def is_ready() -> bool:
        conditions = operator.policy(AMD, "gpus").get("status", {}).get("conditions", ())
        return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)

    def amounts() -> dict[str, int]:
        found = {name: int(fleet.get("node", name)["status"]["allocatable"].get(AMD_GPU, 0)) for name in fleet.nodes}
        return {name: amount for name, amount in found.items() if amount}

    def agents() -> tuple[str, int]:
        daemon_set = fleet.get("daemonset", "-n", NAMESPACE, "penstock-agent")
        return daemon_set["metadata"]["ownerReferences"][0]["kind"], daemon_set["status"]["desiredNumberScheduled"]

    for kind in ("clusterpolicies", "penstocks"):  # of the scenarios before, where they were chosen without the last of them
        fleet.kubectl("delete", kind, "--all", "--timeout=400s")
    elsewhere = device_config("elsewhere", "default", selector={})
    operator.apply(NATIVE, elsewhere, device_config())
    wait_for(lambda: is_ready() and amounts() == {"n4": len(amd.minors)}, 120, "AMD's GPUs of n4", lambda: (amounts(), shown()))
    assert agents() == ("Penstock", 1)
    counted = dict.fromkeys(("nodesMatchingSelectorNumber", "desiredNumber", "availableNumber"), 1)
    wait_for(lambda: operator.policy(AMD, "gpus")["status"]["devicePlugin"] == counted, 60, "the node to have reported, and to be counted", shown)

    operator.apply(cluster_policy())
    operator.wait_state("ready")
    wait_for(is_ready, 60, "the DeviceConfig to be ready", shown)
    wait_for(lambda: (agents(), amounts(), operator.policy()["status"]["nodes"]["byState"]) ==
             (("ClusterPolicy", len(fleet.nodes)), {"n4": len(amd.minors)}, {"ready": len(fleet.nodes)}), 60,
             "the agents of all nodes, and AMD's GPUs", lambda: (agents(), amounts(), shown()))
    operator.delete("clusterpolicies", "cluster-policy")
    wait_for(lambda: is_ready() and agents()[1] == 1, 120, "the agents of the other nodes to end", lambda: (agents(), shown()))

    fleet.cluster.api.delete("penstocks", "simulated")
    operator.delete(AMD, "gpus")
    operator.delete("penstocks", "simulated")
    assert not fleet.kubectl("get", "daemonset,configmap,service", *SELECTED, "-o", "name").stdout
    wait_for(lambda: not amounts(), 60, "the Node objects to have no GPUs", amounts)
    found = fleet.get(AMD, "elsewhere")
    assert "status" not in found and "finalizers" not in found["metadata"], "objects in other namespaces are not the operator's"
    fleet.kubectl("delete", AMD, "elsewhere", "--timeout=300s")
