"""Penstock's operator on the cluster, installed by plain objects with exactly the rights that it needs, and the policies that scenarios apply."""
import json
import time
from pathlib import Path

import yaml
from actors import wait_for
from fleet import ACCELERATORS, IMAGE, MACHINE, NAMESPACE, ROOT, Fleet, merged

OPERATOR = "penstock-operator"
OURS = f"system:serviceaccount:{NAMESPACE}:{OPERATOR}"
DEFINITIONS = ("clusterpolicies.nvidia.com", "nvidiadrivers.nvidia.com", "gpuclusters.nvidia.com", "penstocks.penstock.io", "nodestates.penstock.io")
SAMPLE = ROOT / "src/api/compat/nvidia/testdata/cluster-policy/olm.yaml"  # as the OLM bundle has it

# What simulated nodes need besides a ClusterPolicy: the driver root, the machine's files, and nothing on the real machine's disk.
NATIVE = {"apiVersion": "penstock.io/v1alpha1", "kind": "Penstock", "metadata": {"name": "simulated"}, "spec": {
    "agent": {"imagePullPolicy": "Never", "volumes": [{"name": "hardware", "hostPath": {"path": MACHINE}}],
              "volumeMounts": [{"name": "hardware", "mountPath": "/driver-root/.penstock-sim"}]},
    "hostPaths": {"installDir": ""},
    "node": {"paths": {"hostDriverRoot": ACCELERATORS, "sysfsRoot": "/driver-root/sys"}, "labels": {"machineTypeFile": "/driver-root/sys/class/dmi/id/product_name"},
             "health": {"probation": "1s"}, "containers": {"configureEngine": "off"}}}}

CLUSTER_RULES = [
    {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["get", "create", "patch"]},
    {"apiGroups": ["nvidia.com"], "resources": ["clusterpolicies"], "verbs": ["list", "watch", "patch"]},
    {"apiGroups": ["nvidia.com"], "resources": ["nvidiadrivers", "gpuclusters"], "verbs": ["list", "watch"]},
    {"apiGroups": ["nvidia.com"], "resources": ["clusterpolicies/status", "nvidiadrivers/status", "gpuclusters/status"], "verbs": ["patch"]},
    {"apiGroups": ["penstock.io"], "resources": ["penstocks"], "verbs": ["list", "watch", "patch"]},
    {"apiGroups": ["penstock.io"], "resources": ["penstocks/status"], "verbs": ["patch"]},
    {"apiGroups": ["penstock.io"], "resources": ["nodestates"], "verbs": ["list", "watch"]},
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch", "patch"]},
    {"apiGroups": [""], "resources": ["namespaces"], "resourceNames": [NAMESPACE], "verbs": ["get", "patch"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]},
    {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
    {"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims"], "verbs": ["list", "watch"]},
    {"apiGroups": ["node.k8s.io"], "resources": ["runtimeclasses"], "verbs": ["list", "watch", "create", "patch", "delete"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
]
RULES = [
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["delete"]},
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "update"]},
    *({"apiGroups": [group], "resources": [kind], "verbs": ["list", "watch", "create", "patch", "delete"]}
      for group, kind in (("apps", "daemonsets"), ("", "configmaps"), ("", "services"), ("monitoring.coreos.com", "servicemonitors"))),
]


def objects() -> list[dict]:
    """The operator's own objects."""
    named, subject = {"name": OPERATOR}, {"kind": "ServiceAccount", "name": OPERATOR, "namespace": NAMESPACE}
    rbac = "rbac.authorization.k8s.io"
    here = named | {"namespace": NAMESPACE}
    container = {
        "name": "operator", "image": IMAGE, "imagePullPolicy": "Never", "command": ["/usr/bin/penstock-operator"],
        "env": [{"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
                {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "PENSTOCK_IMAGE", "value": IMAGE}, {"name": "PENSTOCK_PULL_POLICY", "value": "Never"}],
        "ports": [{"name": "metrics", "containerPort": 8080}],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "metrics"}}, "readinessProbe": {"httpGet": {"path": "/readyz", "port": "metrics"}},
        "securityContext": {"runAsNonRoot": True, "runAsUser": 65534, "readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False,
                            "capabilities": {"drop": ["ALL"]}},
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "128Mi"}}}
    labels = {"app": OPERATOR}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": here},
        {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": named, "rules": CLUSTER_RULES},
        {"apiVersion": f"{rbac}/v1", "kind": "ClusterRoleBinding", "metadata": named, "subjects": [subject],
         "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": OPERATOR}},
        {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": here, "rules": RULES},
        {"apiVersion": f"{rbac}/v1", "kind": "RoleBinding", "metadata": here, "subjects": [subject],
         "roleRef": {"apiGroup": rbac, "kind": "Role", "name": OPERATOR}},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": here, "spec": {
            "replicas": 1, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"serviceAccountName": OPERATOR, "terminationGracePeriodSeconds": 10,
                                                                  "nodeSelector": {"kubernetes.io/hostname": "n1"}, "containers": [container]}}}}]


class Operator:
    """The operator of a fleet's cluster."""

    def __init__(self, fleet: Fleet):
        self.fleet = fleet

    def install(self):
        """The namespace, what the chart gives the agents (account and rights), and the operator."""
        fleet = self.fleet
        fleet.kubectl("create", "namespace", NAMESPACE, check=False)
        self.apply(*self.access(), *objects())

    def access(self) -> list[dict]:
        """The agents' account and rights."""
        text = self.fleet.helm("template", "penstock", ROOT / "deploy/helm/penstock", "--show-only", "templates/access.yaml", "--set", "config.name=configs").stdout
        return [one for one in yaml.safe_load_all(text) if one]

    def apply(self, *them: dict):
        """`kubectl apply --server-side`."""
        file = self.fleet.cluster.dir / "objects.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": them}))
        self.fleet.kubectl("apply", "--server-side", "--force-conflicts", "-f", file)

    def uninstall(self):
        """Leaves nothing by which an install of the chart could fail."""
        for one in reversed([*self.access(), *objects()]):
            space = ("-n", one["metadata"]["namespace"]) if "namespace" in one["metadata"] else ()
            self.fleet.kubectl("delete", one["kind"], one["metadata"]["name"], *space, "--ignore-not-found")
        self.fleet.kubectl("delete", "customresourcedefinition", *DEFINITIONS, "--ignore-not-found", "--timeout=60s")

    def delete(self, kind: str, name: str, *options):
        self.fleet.kubectl("delete", kind, name, *options)

    def wait_definitions(self):
        """Until the operator has applied its definitions."""
        for kind in ("clusterpolicies.nvidia.com", "penstocks.penstock.io", "nodestates.penstock.io"):
            wait_for(lambda kind=kind: "True" in self.fleet.kubectl(
                "get", "crd", kind, "-o", 'jsonpath={.status.conditions[?(@.type=="Established")].status}', check=False).stdout,
                120, f"{kind} to be served", self.log, every=0.3)

    def policy(self, kind: str = "clusterpolicies", name: str = "cluster-policy") -> dict:
        return self.fleet.get(kind, name)

    def state(self, kind: str = "clusterpolicies", name: str = "cluster-policy") -> str:
        return self.policy(kind, name).get("status", {}).get("state", "")

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

    def wait_quiet(self, seconds: float = 5, who: str = OURS):
        begin = time.time()
        wait_for(lambda: time.time() >= begin + seconds and not self.writes(time.time() - seconds, who), 120, f"{seconds} s without a write",
                 lambda: self.fleet.audit.told(self.writes(time.time() - seconds, who), time.time()), every=0.5)


def cluster_policy(name: str = "cluster-policy", **spec) -> dict:
    """NVIDIA's sample, with changes."""
    policy = yaml.safe_load(Path(SAMPLE).read_text())
    del policy["spec"]["validator"]  # the sample's plugin is null, which a server refuses in a server-side apply
    policy["metadata"]["name"] = name
    policy["spec"] = merged(policy["spec"], spec)
    return policy
