"""Penstock's operator on the cluster, from the objects of the chart gpu-operator, with exactly the rights that these give, and the policies that scenarios apply."""
import contextlib
import json
import time
from pathlib import Path

import parts
import yaml
from actors import BRIEFLY, wait_for
from fleet import ACCELERATORS, IMAGE, MACHINE, NAMESPACE, ROOT, Fleet, merged

OPERATOR = "gpu-operator"
UPGRADES = "nvidia.com/gpu-driver-upgrade-enabled"
OURS = f"system:serviceaccount:{NAMESPACE}:{OPERATOR}"
DEFINITIONS = ("clusterpolicies.nvidia.com", "nvidiadrivers.nvidia.com", "gpuclusters.nvidia.com", "deviceconfigs.amd.com", "penstocks.penstock.io",
               "nodestates.penstock.io")
SAMPLES = ROOT / "src/api/compat/nvidia/testdata"
# The real definition of the kind ServiceMonitor.
MONITOR = parts.monitor_definitions() / "monitoring.coreos.com_servicemonitors.yaml"
SAMPLE = SAMPLES / "cluster-policy/olm.yaml"  # as the OLM bundle has it

# What simulated nodes need besides a ClusterPolicy: the driver root, the machine's files, and nothing on the real machine's disk.
NATIVE = {"apiVersion": "penstock.io/v1alpha1", "kind": "Penstock", "metadata": {"name": "simulated"}, "spec": {
    "agent": {"imagePullPolicy": "Never", "volumes": [{"name": "hardware", "hostPath": {"path": MACHINE}}],
              "volumeMounts": [{"name": "hardware", "mountPath": "/driver-root/.penstock-sim"}]},
    "hostPaths": {"installDir": ""},
    "node": {"paths": {"hostDriverRoot": ACCELERATORS, "sysfsRoot": "/driver-root/sys"}, "labels": {"machineTypeFile": "/driver-root/sys/class/dmi/id/product_name"},
             "health": {"probation": "1s"}, "containers": {"configureEngine": "off"}}}}

# The field daemonsets of a ClusterPolicy: how many agents are replaced at the same time.
ONE_AT_A_TIME, TWO_AT_ONCE, ALL_AT_ONCE = ({"updateStrategy": "RollingUpdate", "rollingUpdate": {"maxUnavailable": most}} for most in ("1", "2", "100%"))

CHART = ROOT / "deploy/helm/gpu-operator"
# The chart's own objects: the operator with its rights, and what its agents need. The hooks of an uninstall and the ClusterPolicy are for scenarios that use helm.
CHART_VALUES = {"penstock": {"image": {"repository": IMAGE.rpartition(":")[0], "tag": IMAGE.rpartition(":")[2], "pullPolicy": "Never"},
                             "cleanup": {"enabled": False}, "admissionPolicy": False},
                "operator": {"nodeSelector": {"kubernetes.io/hostname": "n1"}}, "clusterPolicy": {"deployCR": False}}


class Operator:
    """The operator of a fleet's cluster."""

    def __init__(self, fleet: Fleet):
        self.fleet = fleet

    def install(self):
        """The namespace, the operator, and what the agents need."""
        self.fleet.cluster.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        self.apply(*self.objects())

    def objects(self, namespace: str = NAMESPACE) -> list[dict]:
        """What the chart renders."""
        file = self.fleet.cluster.dir / "chart-values.json"
        file.write_text(json.dumps(CHART_VALUES))
        return [one for one in yaml.safe_load_all(self.fleet.cluster.run(*BRIEFLY, "helm", "template", OPERATOR, CHART, "-n", namespace, "-f", file).stdout) if one]

    def apply(self, *them: dict):
        """As `kubectl apply --server-side --force-conflicts`."""
        for one in them:
            self.fleet.cluster.api.apply(one)

    def uninstall(self):
        """Leaves nothing by which an install of the chart could fail."""
        for one in reversed(self.objects()):
            self.fleet.delete(one["kind"], one["metadata"]["name"], namespace=one["metadata"].get("namespace", ""))
        self.fleet.delete("customresourcedefinition", *DEFINITIONS)

    def delete(self, kind: str, name: str):
        self.fleet.delete(kind, name, namespace=NAMESPACE)

    def wait_definitions(self):
        """Until the operator has applied its definitions."""
        for kind in ("clusterpolicies.nvidia.com", "penstocks.penstock.io", "nodestates.penstock.io"):
            wait_for(lambda kind=kind: any(one["type"] == "Established" and one["status"] == "True" for one in self.fleet.get(
                "customresourcedefinition", kind)["status"].get("conditions") or ()), 120, f"{kind} to be served", self.log)

    def policy(self, kind: str = "clusterpolicies", name: str = "cluster-policy") -> dict:
        return self.fleet.get(kind, name, "-n", NAMESPACE)

    def state(self, kind: str = "clusterpolicies", name: str = "cluster-policy") -> str:
        """Empty where the object is ready as it was before its last change."""
        return state_of(self.policy(kind, name))

    def wait_state(self, state: str, deadline: float = 120, kind: str = "clusterpolicies", name: str = "cluster-policy"):
        def shown() -> str:
            return json.dumps(self.policy(kind, name).get("status"), indent=1) + self.log()
        wait_for(lambda: self.state(kind, name) == state, deadline, f"{kind} {name} to be {state}", shown)

    def condition(self, type_: str, kind: str = "clusterpolicies", name: str = "cluster-policy") -> dict:
        return next(one for one in self.policy(kind, name)["status"]["conditions"] if one["type"] == type_)

    def log(self) -> str:
        answer = self.fleet.kubectl("logs", "-n", NAMESPACE, "-l", f"app={OPERATOR}", "--tail=60", check=False)
        return answer.stdout + answer.stderr

    def writes(self, begin: float, who: str = OURS) -> list[dict]:
        """Writes of users whose name starts with that prefix, but the renewals of the Lease."""
        return [event for event in self.fleet.audit.writes(begin, who=who) if event.get("objectRef", {}).get("resource") != "leases"]

    def wait_quiet(self, seconds: float = 15, who: str = OURS):
        begin = time.time()
        wait_for(lambda: time.time() >= begin + seconds and not self.writes(time.time() - seconds, who), 180, f"{seconds} s without a write",
                 lambda: self.fleet.audit.told(self.writes(time.time() - seconds, who), time.time()), every=0.5)


def state_of(policy: dict) -> str:
    status = policy.get("status", {})
    seen = [one.get("observedGeneration") for one in status.get("conditions", []) if one["type"] == "Ready"]
    return "" if status.get("state") == "ready" and seen != [policy["metadata"]["generation"]] else status.get("state", "")


def taken_back(fleet: Fleet) -> list[str]:
    """Events about policies that have gone, which are written afterwards."""
    return [one["message"] for one in fleet.get("events", "-A")["items"] if one["reason"] == "TakenBack"]


def forget_taken_back(fleet: Fleet):
    """So that taken_back() has what follows alone."""
    fleet.kubectl("delete", "events", "--all-namespaces", "--field-selector", "reason=TakenBack")


def written_by_agents(fleet: Fleet) -> list[str]:
    """What is left of that in the API server."""
    left = [f"NodeState {one['metadata']['name']}" for one in fleet.get("nodestates")["items"]]
    for node in fleet.get("nodes")["items"]:
        managers = [entry["manager"] for entry in node["metadata"]["managedFields"] if entry["manager"] in ("penstock-labels", "penstock-condition")]
        conditions = [one["type"] for one in node["status"]["conditions"] if one["type"].startswith("penstock.io/")]
        left += [f"{node['metadata']['name']}: {one}" for one in managers + conditions]
    return left


def files_of_agents(node) -> list[str]:
    """By which engines and other programs know what the node has."""
    files = node.run("sh", "-c", "cd /var/run/cdi && ls penstock-* k8s.device-plugin.* 2>/dev/null; ls /run/nvidia/validations/*-ready 2>/dev/null; true").stdout
    return files.split()


def leader(fleet: Fleet, namespace: str = NAMESPACE) -> str:
    """The pod of the operator that leads."""
    return fleet.get("lease", "penstock-operator", "-n", namespace)["spec"].get("holderIdentity", "").rpartition("_")[0]


def delete_policies(fleet: Fleet, namespace: str):
    """What holds the definitions, as far as there is any; the operator there answers the deletions."""
    for kind in ("nvidiadrivers", "clusterpolicies", "deviceconfigs", "penstocks"):
        if fleet.cluster.api.exists(kind, namespace=namespace):
            fleet.kubectl("delete", kind, "--all", "-n", namespace, "--timeout=400s", check=False)


@contextlib.contextmanager
def running_operator(fleet: Fleet):
    """The operator instead of the chart's agents; afterwards neither."""
    fleet.clear()
    if fleet.values is not None:
        fleet.uninstall()
    operator = Operator(fleet)
    operator.install()
    operator.wait_definitions()
    try:
        yield operator
    finally:
        delete_policies(fleet, NAMESPACE)
        operator.uninstall()


def cluster_policy(name: str = "cluster-policy", **spec) -> dict:
    """NVIDIA's sample, with changes."""
    policy = yaml.safe_load(Path(SAMPLE).read_text())
    policy["metadata"]["name"] = name
    policy["spec"] = merged(policy["spec"], spec)
    return policy
