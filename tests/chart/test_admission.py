"""The chart on a real API server: the writes that its admission policy permits to the holder of a node agent's token, and a second release."""
import json
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import control_plane  # noqa: E402
import parts  # noqa: E402
from node import wait_until  # noqa: E402

# The identity of the agent on n1, as the API server derives them from a token of that pod.
SAFE_LOAD = "nvidia.com/gpu-driver-upgrade.driver-wait-for-safe-load"
AGENT = {"Impersonate-User": "system:serviceaccount:penstock:penstock", "Impersonate-Group": "system:authenticated",
         "Impersonate-Extra-authentication.kubernetes.io%2Fnode-name": "n1"}


class Cluster:
    def __init__(self, plane: control_plane.ControlPlane):
        self.plane = plane
        self.context = ssl.create_default_context(cafile=plane.keys / "ca.crt")
        self.context.load_cert_chain(plane.keys / "admin.crt", plane.keys / "admin.key")

    def kubectl(self, *words, text: str | None = None) -> str:
        done = subprocess.run([parts.packages() / "sbin/kubectl", f"--kubeconfig={self.plane.admin}", *words], capture_output=True, text=True,
                              input=text, timeout=60)
        return done.stdout + done.stderr

    def as_agent(self, method: str, path: str, thing: dict, kind: str = "application/json") -> str:
        """The API server's answer to a write by n1's agent: "", or the reason of the rejection. Dry run: nothing is written."""
        request = urllib.request.Request(f"{self.plane.url}{path}?dryRun=All", json.dumps(thing).encode(), AGENT | {"Content-Type": kind}, method=method)
        try:
            with urllib.request.urlopen(request, context=self.context, timeout=60):
                return ""
        except urllib.error.HTTPError as error:
            return json.loads(error.read())["message"]

    def patch(self, node: str, patch: dict, subresource: str = "") -> str:
        return self.as_agent("PATCH", f"/api/v1/nodes/{node}{subresource}", patch, "application/strategic-merge-patch+json")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, chart):
    plane = control_plane.ControlPlane(tmp_path_factory.mktemp("plane"), flags=("--allow-privileged=true",))
    try:
        cluster = Cluster(plane)
        rights = [thing for thing in chart.render() if "helm.sh/hook" not in thing["metadata"].get("annotations", {})
                  and thing["kind"] in {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}]
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"labels": {"zone": "a"}, "annotations": {"a": "b"}}}
        nodes = [node | {"metadata": node["metadata"] | {"name": name}} for name in ("n1", "n2")]
        cluster.kubectl("create", "namespace", "penstock")
        crds = parts.tools() / "nfd-api-crds.yaml"
        cluster.kubectl("apply", "--server-side", "-f", crds)
        cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", "-f", crds)
        said = cluster.kubectl("apply", "-f-", text=yaml.safe_dump_all([*rights, *nodes]))
        assert "error" not in said.lower(), said
        wait_until(lambda: "own-node" in cluster.patch("n2", {"metadata": {"labels": {"nvidia.com/x": "1"}}}), "the policy to be enforced")
        yield cluster
    finally:
        plane.stop()


def test_what_the_agent_writes_is_admitted(cluster):
    labels = {"metadata": {"labels": {"nvidia.com/gpu.count": "8", "feature.node.kubernetes.io/x": "1", "penstock.io/x": "1", "a.penstock.io/x": "1"}}}
    assert cluster.patch("n1", labels) == ""
    amd = {"amd.com/gpu.cu-count": "304", "beta.amd.com/gpu.cu-count.304": "8", "dcm.amd.com/gpu-config-profile-state": "success"}
    assert cluster.patch("n1", {"metadata": {"labels": amd}}) == ""
    assert cluster.patch("n1", {"metadata": {"annotations": {"penstock.io/layout-reason": "x"}}}) == ""
    assert cluster.patch("n1", {"metadata": {"annotations": {SAFE_LOAD: "true"}}}) == "", "a driver's pod waits until its node is empty"
    capacity = {"status": {"capacity": {"nvidia.com/gpu": "8"}, "allocatable": {"nvidia.com/gpu": "8"}}}
    assert cluster.patch("n1", capacity, "/status") == ""
    partitions = {"status": {"capacity": {"amd.com/cpx_nps4": "64"}, "allocatable": {"amd.com/cpx_nps4": "64"}}}
    assert cluster.patch("n1", partitions, "/status") == ""
    for status in ("True", "False"):
        ready = {"type": "penstock.io/AcceleratorsReady", "status": status, "reason": "x", "lastTransitionTime": "2026-11-21T03:42:00Z"}
        assert cluster.patch("n1", {"status": {"conditions": [ready]}}, "/status") == ""


@pytest.mark.parametrize("node, patch, subresource", [
    ("n2", {"metadata": {"labels": {"nvidia.com/gpu.count": "64"}}}, ""),
    ("n1", {"metadata": {"labels": {"evilpenstock.io/x": "1"}}}, ""),
    ("n1", {"metadata": {"labels": {"metricsexporter.amd.com/x": "1"}}}, ""),
    ("n1", {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}, ""),
    ("n1", {"metadata": {"labels": {"zone": None}}}, ""),
    ("n1", {"metadata": {"annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}}}, ""),
    ("n1", {"metadata": {"annotations": {"a": None}}}, ""),
    ("n1", {"metadata": {"annotations": {SAFE_LOAD: "false"}}}, ""),
    ("n2", {"metadata": {"annotations": {SAFE_LOAD: "true"}}}, ""),
    ("n1", {"metadata": {"annotations": {"penstock.iox/a": "b"}}}, ""),
    ("n1", {"metadata": {"annotations": {"evil.penstock.io/a": "b"}}}, ""),
    ("n1", {"metadata": {"finalizers": ["penstock.io/never"]}}, ""),
    ("n1", {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n2", "uid": "x"}]}}, ""),
    ("n1", {"spec": {"unschedulable": True}}, ""),
    ("n1", {"status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.9"}]}}, "/status"),
    ("n1", {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}, "/status"),
    ("n2", {"status": {"conditions": [{"type": "penstock.io/AcceleratorsReady", "status": "True"}]}}, "/status"),
    ("n1", {"status": {"conditions": [{"type": "penstock.io/AcceleratorsReady", "status": "True"}, {"type": "DiskPressure", "status": "True"}]}}, "/status"),
    ("n1", {"status": {"conditions": [{"type": "evil.penstock.io/AcceleratorsReady", "status": "True"}]}}, "/status"),
], ids=["another node", "a domain that ends alike", "another domain of a vendor's", "a role", "a label taken away", "an annotation", "an annotation taken away", "a driver that waits, with another value", "a driver that waits on another node", "an annotation of a domain that begins alike",
        "an annotation of a domain that ends alike", "a finalizer", "an owner",
        "cordon", "addresses", "conditions", "another node's condition", "another condition beside its own", "a condition that ends alike"])
def test_nothing_else_is(cluster, node, patch, subresource):
    said = cluster.patch(node, patch, subresource)
    assert "ValidatingAdmissionPolicy 'penstock-own-node'" in said and "denied request" in said, said


@pytest.mark.parametrize("node, admitted", [("n1", True), ("n2", False)])
def test_only_the_own_nodes_feature_is_deleted(cluster, node, admitted):
    name = f"penstock-features-for-{node}"
    feature = {"apiVersion": "nfd.k8s-sigs.io/v1alpha1", "kind": "NodeFeature",
               "metadata": {"name": name, "namespace": "penstock", "labels": {"nfd.node.kubernetes.io/node-name": node}}, "spec": {"labels": {"a": "b"}}}
    assert "error" not in (said := cluster.kubectl("apply", "-f-", text=json.dumps(feature))).lower(), said
    said = cluster.as_agent("DELETE", f"/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/penstock/nodefeatures/{name}", {})
    assert (said == "") == admitted and ("denied request" in said) != admitted, said


@pytest.mark.parametrize("kind, name, admitted", [("Node", "n1", True), ("Node", "n2", False), ("Pod", "n1", False), ("ConfigMap", "x", False)])
def test_events_are_about_the_own_node(cluster, kind, name, admitted):
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": f"e.{kind.lower()}.{name}", "namespace": "default"}, "type": "Normal", "reason": "x",
             "involvedObject": {"apiVersion": "v1", "kind": kind, "name": name, **({} if kind == "Node" else {"namespace": "default"})}}
    said = cluster.as_agent("POST", "/api/v1/namespaces/default/events", event)
    assert (said == "") == admitted and ("denied request" in said) != admitted, said


def test_a_cluster_without_the_policy_is_told_what_a_stolen_token_is_good_for(chart, cluster):
    def notes(**values) -> str:
        given = ",".join(f"{key}={json.dumps(value)}" for key, value in values.items())
        done = chart.run("install", "other", chart.path, "--namespace", "penstock", "--dry-run=client",
                         "--kubeconfig", cluster.plane.admin, "--set-json", given)
        assert done.returncode == 0, done.stderr
        return " ".join(done.stdout.partition("NOTES:")[2].split())

    without = notes(**{"penstock.admissionPolicy": False})
    assert "not limited to its own node" in without and "labels and taints of all nodes (penstock.labels.node=off" in without
    assert "penstock.nodeStatus=false" in without
    assert "taints" not in notes(**{"penstock.admissionPolicy": False, "penstock.labels.node": "off", "penstock.nodeStatus": False,
                                    "penstock.readyCondition": False})
    assert "own node" not in notes(**{"penstock.admissionPolicy": True})


def test_a_second_release_needs_the_values_that_the_refusal_names(chart, cluster):
    def helm(verb: str, release: str, *words):
        return chart.run(verb, release, chart.path, "--namespace", release, "--kubeconfig", cluster.plane.admin, "--set", f"fullnameOverride={release}", *words)

    first = helm("install", "first", "--create-namespace")
    assert first.returncode == 0, first.stderr
    refused = helm("install", "second", "--dry-run=server")
    assert refused.returncode != 0 and 'nodestates.penstock.io belongs to the release "first" in the namespace "first"' in refused.stderr
    needed = ("--set", "penstock.nodeState.crd=false,penstock.cleanup.enabled=false")
    assert "penstock.nodeState.crd=false here and penstock.cleanup.enabled=false in both releases" in refused.stderr
    second = helm("install", "second", "--create-namespace", *needed)
    assert second.returncode == 0 and "unless penstock.cleanup.enabled=false is set there, too" in second.stdout, second.stderr
    for release, words in (("first", ("--set", "penstock.cleanup.enabled=false")), ("second", ())):
        upgraded = helm("upgrade", release, "--reset-then-reuse-values", *words)
        assert upgraded.returncode == 0, upgraded.stderr
