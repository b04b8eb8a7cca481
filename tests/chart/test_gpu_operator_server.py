"""The chart gpu-operator on a real API server: helm's install, upgrade and rollback, and what it creates passes the CRDs' schemas field by field."""
import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import control_plane  # noqa: E402
import downloads  # noqa: E402
import parts  # noqa: E402
from conftest import OPERATOR_NAMESPACE, ROOT  # noqa: E402
from node import wait_until  # noqa: E402
from test_gpu_operator import FIELDS, NEWEST, THEIRS  # noqa: E402

CRDS = ROOT / "deploy/helm/gpu-operator/crds"
KINDS = {"ClusterPolicy", "NVIDIADriver", "GPUCluster", "DeviceConfig", "Penstock"}


class Server:
    def __init__(self, plane: control_plane.ControlPlane, operator):
        self.plane, self.operator = plane, operator

    def kubectl(self, *words, text: str | None = None) -> subprocess.CompletedProcess:
        return subprocess.run([parts.packages() / "sbin/kubectl", f"--kubeconfig={self.plane.admin}", *map(str, words)], capture_output=True, text=True,
                              input=text, timeout=60)

    def helm(self, *words) -> subprocess.CompletedProcess:
        return self.operator.run(*words, "--namespace", OPERATOR_NAMESPACE, "--kubeconfig", self.plane.admin)

    def refused(self, things: list) -> str:
        """What the server has against these objects with strict validation of fields; empty: nothing."""
        done = self.kubectl("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f-", text=yaml.safe_dump_all(things))
        return done.stderr if done.returncode else "".join(line for line in done.stderr.splitlines() if "Warning" in line)


@pytest.fixture(scope="module")
def server(tmp_path_factory, operator):
    plane = control_plane.ControlPlane(tmp_path_factory.mktemp("plane"), flags=("--allow-privileged=true", "--enable-admission-plugins=OwnerReferencesPermissionEnforcement"))
    try:
        server = Server(plane, operator)
        made = server.kubectl("create", "-f", CRDS)
        assert made.returncode == 0, made.stderr
        wait_until(lambda: server.kubectl("get", "clusterpolicies,nvidiadrivers,gpuclusters,deviceconfigs,penstocks").returncode == 0, "the kinds to be served")
        server.kubectl("create", "namespace", OPERATOR_NAMESPACE)
        yield server
    finally:
        plane.stop()


def resources(things: list) -> list:
    return [thing for thing in things if thing["kind"] in KINDS]


@pytest.mark.parametrize("section", sorted({name.partition(".")[0] for name in FIELDS}))
def test_every_field_that_a_value_becomes_is_one_of_the_schema(server, operator, section):
    values = {name: given for name, (given, _) in FIELDS.items() if name.partition(".")[0] == section}
    assert not server.refused(resources(operator.render(values=values)))


@pytest.mark.parametrize("name", ["nothing", "drivers", "a GPUCluster", *THEIRS, "the newest"])
def test_what_a_values_file_makes_passes_the_schemas(server, operator, tmp_path, name):
    values = {"nothing": {}, "drivers": {"driver": {"nvidiaDriverCRD": {"enabled": True}}, "gds": {"enabled": True}, "gdrcopy": {"enabled": True}},
              "a GPUCluster": {"gpuCluster": {"deployCR": True}, "clusterPolicy": {"deployCR": False}, "draDriver": {"version": "v0.5.0"}}, **THEIRS}.get(name)
    file = tmp_path / "values.yaml"
    if values is None:
        file = NEWEST
    else:
        file.write_text(yaml.safe_dump(values))
    made = resources(operator.render("-f", file))
    assert made and not server.refused(made)


def test_everything_else_passes_the_servers_own_schemas(server, operator):
    things = operator.render(values={"networkPolicy": {"enabled": True, "egress": {"enabled": True}}, "devicePlugin.config": {"create": True, "name": "c", "data": {"a": "version: v1"}},
                                     "penstock.metrics.dashboards.enabled": True, "operator.cleanupCRD": True})
    assert not server.refused(things)


def served(server: Server, definitions: str, kind: str):
    """Adds definitions, and waits until the kind is served."""
    made = server.kubectl("apply", "--server-side", "-f-", text=definitions)
    assert made.returncode == 0, made.stderr
    wait_until(lambda: server.kubectl("get", kind, "-A").returncode == 0, f"{kind} to be served")


CSV = ROOT / "deploy/olm/bundle/manifests/penstock-gpu-operator.clusterserviceversion.yaml"


def made_by_olm(csv: dict) -> list[dict]:
    """The accounts and rights that OLM makes from a bundle that is installed into the operator's namespace."""
    group, space, made = "rbac.authorization.k8s.io", {"namespace": OPERATOR_NAMESPACE}, []
    for where, kind in (("permissions", "Role"), ("clusterPermissions", "ClusterRole")):
        for one in csv["spec"]["install"]["spec"][where]:
            account = one["serviceAccountName"]
            metadata = {"name": f"olm-{account}"} | (space if kind == "Role" else {})
            made += [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account} | space},
                     {"apiVersion": f"{group}/v1", "kind": kind, "metadata": metadata, "rules": one["rules"]},
                     {"apiVersion": f"{group}/v1", "kind": f"{kind}Binding", "metadata": metadata, "roleRef": {"apiGroup": group, "kind": kind, "name": metadata["name"]},
                      "subjects": [{"kind": "ServiceAccount", "name": account} | space]}]
    return made


def test_the_bundle_of_olm_passes_the_schemas(server):
    """OLM's own definition of a ClusterServiceVersion, and the definitions that the bundle brings."""
    served(server, subprocess.run([downloads.olm_peer(), "definition"], check=True, capture_output=True, text=True).stdout, "clusterserviceversions")
    csv = yaml.safe_load(CSV.read_text())
    csv["metadata"]["namespace"] = OPERATOR_NAMESPACE
    assert not server.refused([csv])
    examples = json.loads(csv["metadata"]["annotations"]["alm-examples"])
    assert {one["kind"] for one in examples} == KINDS and not server.refused(examples)
    deployments = [{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": one["name"], "namespace": OPERATOR_NAMESPACE, "labels": one["label"]},
                    "spec": one["spec"]} for one in csv["spec"]["install"]["spec"]["deployments"]]
    others = [yaml.safe_load(file.read_text()) for file in CSV.parent.glob("gpu-operator*")]
    for one in others:
        one["metadata"]["namespace"] = OPERATOR_NAMESPACE
    assert len(others) == 3 and not server.refused([*made_by_olm(csv), *deployments, *others])


def test_the_operator_works_with_the_rights_that_olm_gives_it(server, programs, tmp_path):
    """It takes the bundle's example, finds nodes by the labels of the NFD Operator, leaves the definitions to OLM, and takes everything back."""
    csv = yaml.safe_load(CSV.read_text())
    [container] = csv["spec"]["install"]["spec"]["deployments"][0]["spec"]["template"]["spec"]["containers"]
    [policy] = [one for one in json.loads(csv["metadata"]["annotations"]["alm-examples"]) if one["kind"] == "ClusterPolicy"]
    found = {"a": "pci-10de.present", "b": "pci-0300_10de.present", "c": "pci-0302_10de.present", "none": "pci-15b3.present"}
    nodes = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {f"feature.node.kubernetes.io/{label}": "true"}}} for name, label in found.items()]
    rights = made_by_olm(csv)
    applied = server.kubectl("apply", "--server-side", "-f-", text=yaml.safe_dump_all([*rights, *nodes]))
    assert applied.returncode == 0, applied.stderr
    token = server.kubectl("create", "token", "gpu-operator", "-n", OPERATOR_NAMESPACE).stdout.strip()
    access = yaml.safe_load(server.plane.admin.read_text())
    access["users"] = [{"name": one["name"], "user": {"token": token}} for one in access["users"]]
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(access))

    def get(*words) -> dict:
        done = server.kubectl("get", *words, "-o", "json")
        return json.loads(done.stdout) if done.returncode == 0 else {}

    def present() -> set[str]:
        return {one["metadata"]["name"] for one in get("nodes").get("items", ()) if one["metadata"]["labels"].get("nvidia.com/gpu.present") == "true"}

    def may(*words) -> bool:
        return server.kubectl("auth", "can-i", *words, f"--as=system:serviceaccount:{OPERATOR_NAMESPACE}:gpu-operator").returncode == 0
    # The server follows rights a moment after they are made; a refusal would be in the log.
    wait_until(lambda: may("list", "clusterpolicies.nvidia.com") and may("create", "daemonsets.apps", "-n", OPERATOR_NAMESPACE),
               "the rights to be in force", every=0.2)

    def seen() -> str:
        return log.read_text()[-3000:] + server.kubectl("get", "clusterpolicy", "-o", "yaml").stdout
    log = tmp_path / "log"
    with open(log, "wb") as out:
        operator = subprocess.Popen(
            [programs / "penstock-operator", *(word for word in container["args"] if not word.startswith("--listen")), "--listen=off", f"--kubeconfig={tmp_path}/kubeconfig"],
            env={"POD_NAMESPACE": OPERATOR_NAMESPACE, "POD_NAME": "one", "PENSTOCK_IMAGE": container["image"]}, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
    try:
        server.kubectl("apply", "--server-side", "-f-", text=yaml.safe_dump(policy))
        agents = wait_until(lambda: get("daemonset", "-n", OPERATOR_NAMESPACE, "penstock-agent"), "the agents", seen=seen)
        pod = agents["spec"]["template"]["spec"]
        assert pod["containers"][0]["image"] == container["image"] and pod["serviceAccountName"] == "penstock"
        assert wait_until(lambda: present() == {*found} - {"none"}, "the labels of nodes", seen=seen)
        assert wait_until(lambda: get("clusterpolicy", policy["metadata"]["name"]).get("status", {}).get("state") == "notReady", "a status: no agent runs here", seen=seen)
        managers = {field["manager"] for one in get("crd", "--show-managed-fields")["items"] for field in one["metadata"]["managedFields"]}
        assert "penstock-operator" not in managers
        server.kubectl("delete", "clusterpolicy", policy["metadata"]["name"], "--wait=false")
        # No controller runs here that would end the DaemonSet.
        assert wait_until(lambda: not present() and get("daemonset", "-n", OPERATOR_NAMESPACE, "penstock-agent")["metadata"].get("deletionTimestamp"),
                          "everything to be taken back", seen=seen)
        assert "forbidden" not in log.read_text().lower(), seen()
    finally:
        operator.kill()
        operator.wait()
        for kind, name in (("clusterpolicy", policy["metadata"]["name"]), ("daemonset", "penstock-agent")):
            server.kubectl("patch", kind, name, "-n", OPERATOR_NAMESPACE, "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
        server.kubectl("delete", "-f-", "--ignore-not-found", text=yaml.safe_dump_all([*nodes, *rights[::-1]]))


def test_monitors_pass_the_schema_of_the_prometheus_operator(server, operator):
    served(server, (parts.monitor_definitions() / "monitoring.coreos.com_servicemonitors.yaml").read_text(), "servicemonitors")
    own = {"interval": "30s", "scrapeTimeout": "5s", "honorLabels": True, "additionalLabels": {"release": "p"}, "relabelings": [{"action": "labeldrop", "regex": "x"}]}
    for values in ({}, {"operator.metrics.serviceMonitor": own}):
        monitors = [one for one in operator.render("--api-versions", "monitoring.coreos.com/v1/ServiceMonitor", values=values) if one["kind"] == "ServiceMonitor"]
        assert len(monitors) == 1 and not server.refused(monitors)


def test_the_operator_may_own_what_it_makes_where_the_server_asks_for_a_right_to_block(server, operator):
    """OwnerReferencesPermissionEnforcement, as on OpenShift: owner references that block their owner's deletion need a right on its finalizers,
    and the owner's kind in a list that the server reads rarely. The operator's references need neither."""
    roles = [one for one in operator.render() if one["kind"] in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding") and one["metadata"]["name"] == "gpu-operator"]

    def owned(**more) -> subprocess.CompletedProcess:
        reference = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "name": "owner", "uid": "1234", "controller": True, **more}
        thing = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owned", "namespace": OPERATOR_NAMESPACE, "ownerReferences": [reference]}}
        return server.kubectl("apply", "--server-side", "--dry-run=server", f"--as=system:serviceaccount:{OPERATOR_NAMESPACE}:gpu-operator", "-f-",
                              text=yaml.safe_dump(thing))

    try:
        assert server.kubectl("apply", "--server-side", "--force-conflicts", "-f-", text=yaml.safe_dump_all(roles)).returncode == 0
        assert wait_until(lambda: owned().returncode == 0, "the operator to own an object")
        assert wait_until(lambda: "cannot set blockOwnerDeletion" in owned(blockOwnerDeletion=True).stderr, "the server to ask for the right")
    finally:
        assert server.kubectl("delete", "-f-", text=yaml.safe_dump_all(roles)).returncode == 0


def test_install_upgrade_rollback_and_uninstall(server):
    """Without nodes: the hooks of an uninstall need one."""
    def policy() -> dict:
        return json.loads(server.kubectl("get", "clusterpolicy", "cluster-policy", "-o", "json").stdout)["spec"]

    installed = server.helm("install", "gpu-operator", server.operator.path)
    assert installed.returncode == 0, installed.stderr
    assert "kubectl get clusterpolicy cluster-policy" in installed.stdout and policy()["mig"]["strategy"] == "single"
    upgraded = server.helm("upgrade", "gpu-operator", server.operator.path, "--reset-then-reuse-values", "--set", "mig.strategy=mixed")
    assert upgraded.returncode == 0 and policy()["mig"]["strategy"] == "mixed", upgraded.stderr
    again = server.operator.run("install", "second", server.operator.path, "--namespace", "second", "--kubeconfig", server.plane.admin, "--dry-run=server")
    assert again.returncode and 'belongs to the release "gpu-operator" in the namespace "gpu-operator"' in again.stderr
    assert server.helm("rollback", "gpu-operator", "1").returncode == 0 and policy()["mig"]["strategy"] == "single"
    removed = server.helm("uninstall", "gpu-operator", "--no-hooks")
    assert removed.returncode == 0, removed.stderr
    left = server.kubectl("get", "clusterpolicy,deployment,clusterrole,clusterrolebinding,role,rolebinding,validatingadmissionpolicy", "-A", "-o", "name").stdout
    assert not [name for name in left.split() if "gpu-operator" in name or "penstock" in name or "cluster-policy" in name]
