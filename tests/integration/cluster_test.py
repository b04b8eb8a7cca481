"""The verbs that ask a cluster, end to end against a real API server: kubeconfig, TLS, permissions,
objects, and output; also the completion that kubectl asks for."""
import fcntl
import json
import re
import ssl
import subprocess
import sys
import tarfile
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import control_plane  # noqa: E402
import parts  # noqa: E402
from node import PATIENCE, wait_until  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]

GPU = "nvidia.com/gpu"


def node_state(healthy: int = 8, **status) -> dict:
    devices = [{"id": f"GPU-{i}", "vendor": "nvidia", "model": "NVIDIA A100-SXM4-40GB", "index": i, "allocator": "kubelet",
                "health": {"state": "healthy"} if i < healthy else {"state": "unhealthy", "reason": "XID 79: it has fallen off the bus"},
                "resource": GPU, "sharing": "none", "slots": 1, "free": 1 if 0 < i < healthy else 0, "isolation": "hardware",
                "holders": {"held": 1 if i == 0 else 0}} for i in range(8)]
    return {"kind": "NodeState", "status": {
        "version": "0.1.0", "vendors": [{"vendor": "nvidia", "driver": "550.54.15"}], "devices": devices,
        "allocators": [{"name": "kubelet", "state": "open", "resources": [GPU]}], "configuration": {"origin": "defaults"}} | status}


def ageless(text: str) -> str:
    """The text without ages and the spaces that align them."""
    return re.sub(r" +", " ", re.sub(r"\b\d+(ms|s)\b", "AGE", text))


COLLECTIONS = ["/api/v1/nodes", "/apis/penstock.io/v1alpha1/nodestates",
               "/api/v1/namespaces/ml/pods",
               "/apis/apps/v1/namespaces/kube-system/daemonsets",
               "/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/penstock/nodefeatures"]
NODES, STATES, PODS, SETS, FEATURES = COLLECTIONS
APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Cluster:
    """An API server with the objects of a test."""

    def __init__(self, folder: Path):
        self.plane = control_plane.ControlPlane(folder)
        self.rules: list[dict] = []
        self.context = ssl.create_default_context(cafile=self.plane.keys / "ca.crt")
        self.context.load_cert_chain(self.plane.keys / "admin.crt", self.plane.keys / "admin.key")
        files = [ROOT / "deploy/helm/penstock/files/penstock.io_nodestates.yaml",
                 parts.tools() / "nfd-api-crds.yaml"]
        self.definitions = [one for file in files for one in yaml.safe_load_all(file.read_text())
                            if one]
        for namespace in ("ml", "penstock"):
            self.do("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        self.install()

    def install(self):
        for one in self.definitions:
            if self.get(f"{DEFINITIONS}/{one['metadata']['name']}") is None:
                self.do("POST", DEFINITIONS, one)
        wait_until(lambda: all(self.get(path) is not None for path in (STATES, FEATURES)),
                   "the kinds to be served")

    def do(self, method: str, path: str, body: dict | None = None, kind="application/json"):
        """The response, or None if not found. Retries while the API server prepares a new kind."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.plane.url + path, method=method, data=data,
                                         headers={"Content-Type": kind})

        def answer() -> list:
            try:
                with urllib.request.urlopen(request, context=self.context,
                                            timeout=PATIENCE) as got:
                    return [json.load(got)]
            except urllib.error.HTTPError as error:
                if error.code == 404:
                    return [None]
                if error.code == 429:
                    return []
                raise AssertionError(f"{method} {path}: {error.read().decode()}") from error
        return wait_until(answer, f"{method} {path}", every=0.1)[0]

    def get(self, path: str) -> dict | None:
        return self.do("GET", path)

    def apply(self, path: str, manager: str, body: dict):
        return self.do("PATCH", f"{path}?fieldManager={manager}&force=true", body, APPLY)

    def names(self, collection: str) -> list[str]:
        return [one["metadata"]["name"] for one in self.get(collection)["items"]]

    def clear(self):
        for collection in COLLECTIONS:
            self.do("DELETE", collection + "?gracePeriodSeconds=0")

    def add_node(self, name: str, status: dict, owned: dict[str, dict] | None = None):
        """`owned` maps field managers to the labels that they apply."""
        labels = {"kubernetes.io/hostname": name} if owned else {}
        self.do("POST", NODES, {"metadata": {"name": name, "labels": labels}})
        for manager, its in (owned or {}).items():
            self.apply(f"{NODES}/{name}", manager, {
                "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": its}})
        self.do("PATCH", f"{NODES}/{name}", {"spec": {"taints": None}}, MERGE)  # taints of a new node
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        self.do("PATCH", f"{NODES}/{name}/status", {"status": ready | status}, MERGE)

    def set_state(self, name: str, state: dict):
        before = self.get(f"{STATES}/{name}")
        version = {"resourceVersion": before["metadata"]["resourceVersion"]} if before else {}
        body = {"apiVersion": "penstock.io/v1alpha1", "metadata": {"name": name} | version} | state
        self.do(*(("PUT", f"{STATES}/{name}") if before else ("POST", STATES)), body)

    def allow(self, *rules: dict):
        """Replaces all permissions of the user of `kubeconfig_of_a_user`."""
        role = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
        binding = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
        for path in (role, binding):
            self.do("DELETE", f"{path}/test")
        wait_until(lambda: not any(map(self.may, self.rules)), "the API server to know that the permissions are gone", every=0.1)
        self.rules = list(rules)
        self.do("POST", role, {"metadata": {"name": "test"}, "rules": list(rules)})
        group = "rbac.authorization.k8s.io"
        self.do("POST", binding, {
            "metadata": {"name": "test"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "test"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": "penstock"}]})
        wait_until(lambda: all(map(self.may, self.rules)), "the API server to know the permissions", every=0.1)

    def may(self, rule: dict) -> bool:
        """Whether the API server permits that user what the rule says: it reads roles a moment after they change."""
        attributes = {"group": rule["apiGroups"][-1], "resource": rule["resources"][-1], "verb": rule["verbs"][-1]}
        answer = self.do("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": "penstock", "resourceAttributes": attributes}})
        return answer["status"]["allowed"]

    def kubeconfig_of_a_user(self, folder: Path, user: dict | None = None) -> Path:
        """`user` is the kubeconfig's credentials; by default the token."""
        config = yaml.safe_load(self.plane.admin.read_text())
        (token,) = self.plane.tokens
        config["users"][0]["user"] = user or {"token": token}
        (file := folder / "user.kubeconfig").write_text(yaml.safe_dump(config))
        return file


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.plane.stop()


@pytest.fixture
def api(cluster):
    cluster.clear()
    for name, healthy in (("gpu-1", 8), ("gpu-2", 7)):
        cluster.add_node(name, {"capacity": {GPU: "8"}, "allocatable": {GPU: str(healthy)}}, {
            "penstock-labels": {"nvidia.com/gpu.count": "8", "both": "x"},
            "someone": {"both": "x", "zone": "a"}})
        cluster.set_state(name, node_state(healthy))
    cluster.add_node("cpu-1", {})
    return cluster


@pytest.fixture
def run(request, api):
    programs: Path = request.config.getoption("--programs").resolve()

    def run(*words: str, program="kubectl-penstock", code=0, kubeconfig=api.plane.admin) -> str:
        environment = {"KUBECONFIG": str(kubeconfig), "PATH": f"{programs}:/usr/bin:/bin",
                       "HOME": "/nonexistent"}
        done = subprocess.run([programs / program, *words], capture_output=True, text=True,
                              timeout=PATIENCE, env=environment)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


def test_nodes_are_shown_with_what_is_wrong(run):
    rows = {line.split()[0]: line for line in run("nodes").splitlines()}
    assert "8/8" in rows["gpu-1"] and rows["gpu-1"].endswith("-")
    assert "7/8" in rows["gpu-2"] and "1 unhealthy" in rows["gpu-2"]
    assert "no report: is the agent running there?" in rows["cpu-1"]
    nodes = json.loads(run("nodes", "-o", "json"))["nodes"]
    assert [node["name"] for node in nodes] == ["cpu-1", "gpu-1", "gpu-2"]
    assert ageless(run("nodes", program="penstock")) == ageless(run("nodes"))


def test_shares_are_shown_and_counted(run, api):
    state = node_state(servers=[{"set": GPU, "kind": "mps", "state": "waiting", "reason": "it has died", "clients": 1, "devices": ["GPU-1"]}])
    state["status"]["devices"][0] |= {"sharing": "time-slicing", "slots": 4, "free": 3, "isolation": "none"}
    state["status"]["devices"][1] |= {"sharing": "mps", "slots": 2, "free": 0, "isolation": "none"}
    api.set_state("gpu-1", state)
    rows = {line.split()[0]: line for line in run("nodes").splitlines()}
    assert "3/6 free" in rows["gpu-1"] and "the mps server of nvidia.com/gpu is waiting: it has died" in rows["gpu-1"]
    explained = run("explain", "gpu-1")
    assert [line for line in explained.splitlines() if line.startswith(GPU)][0].split() == [GPU, "8", "8", "12", "10", "1", "0"]
    assert "its shares are advertised as unhealthy" in explained
    status = run("status", "gpu-1")
    assert "3/4 free" in status and "ISOLATION" in status and "it has died" in status


def test_explain_says_why_and_what_next(run, api):
    text = run("explain", "gpu-2")
    assert "device 7: unhealthy: XID 79" in text and "next: " in text
    assert [line for line in text.splitlines() if line.startswith(GPU)][0].split() == [GPU, "8", "7", "8", "7", "1", "0"]
    assert "nothing is wrong" in run("explain", "gpu-1")
    api.do("POST", PODS, {"metadata": {"name": "waiting"}, "spec": {"containers": [
        {"name": "c", "image": "i", "resources": {"limits": {GPU: "2"}}}]}})
    assert "waiting: ml/waiting for 2 of nvidia.com/gpu" in run("explain", "gpu-1")
    assert 'the cluster has no node "gpu-3"; did you mean "gpu-' in run("explain", "gpu-3", code=1)


def test_status_is_that_of_the_node_itself(run):
    assert "A100-SXM4-40GB" in run("status", "gpu-1")
    assert "== node gpu-1" in run("status") and "== node gpu-2" in run("status")
    assert len(json.loads(run("status", "gpu-1", "-o", "json"))["devices"]) == 8
    alike = run("status", "--node", "gpu-1", program="penstock")
    assert ageless(alike) == ageless(run("status", "gpu-1"))


def test_what_the_cluster_lacks_is_said_with_what_to_do(run, api):
    api.do("DELETE", f"{DEFINITIONS}/nodestates.penstock.io")
    try:
        wait_until(lambda: api.get(STATES) is api.get("/apis/penstock.io/v1alpha1") is None,
                   "the kind to be gone")
        assert "install the chart" in run("nodes", code=1)
        assert "not have the kind NodeState" in run("explain", "gpu-1")
    finally:
        wait_until(lambda: api.get(f"{DEFINITIONS}/nodestates.penstock.io") is None,
                   "the definition to be gone")
        api.install()


def test_what_the_cluster_refuses_is_said(run, api, tmp_path):
    api.allow({"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["get", "list"]})
    forbidden = run("nodes", code=1, kubeconfig=api.kubeconfig_of_a_user(tmp_path))
    assert "list" in forbidden and "nodestates" in forbidden, "the message names the missing permission"


def test_credentials_come_from_an_exec_plugin(run, api, tmp_path):
    api.allow({"apiGroups": ["", "penstock.io"], "resources": ["nodes", "pods", "nodestates"],
               "verbs": ["get", "list"]})
    version, (token,) = "client.authentication.k8s.io/v1", api.plane.tokens
    plugin = tmp_path / "plugin"

    def give(token: str):
        credential = {"apiVersion": version, "kind": "ExecCredential", "status": {"token": token}}
        plugin.write_text(f"#!/bin/sh\necho '{json.dumps(credential)}'\n")
        plugin.chmod(0o755)
    give(token)
    kubeconfig = api.kubeconfig_of_a_user(tmp_path, {"exec": {
        "apiVersion": version, "command": str(plugin), "interactiveMode": "Never"}})
    assert ageless(run("nodes", kubeconfig=kubeconfig)) == ageless(run("nodes"))
    give("token-of-nobody")
    assert "Unauthorized" in run("nodes", kubeconfig=kubeconfig, code=1)


def test_a_server_that_cannot_be_reached_is_named_with_the_kubeconfig(run, api):
    assert 'contexts has no "other"' in run("nodes", "--context", "other", code=1)
    assert "/nonexistent" in run("nodes", "--kubeconfig", "/nonexistent", code=1)
    api.plane.stop_server()
    try:
        unreached = run("nodes", code=1)
    finally:
        api.plane.start_server()
    assert "no connection to the API server" in unreached and str(api.plane.admin) in unreached


def test_kubectl_finds_the_verbs(run, request, api):
    programs = request.config.getoption("--programs").resolve()
    environment = {"PATH": f"{programs}:/usr/bin:/bin", "KUBECONFIG": str(api.plane.admin)}
    done = subprocess.run([parts.packages() / "sbin/kubectl", "penstock", "nodes"], text=True,
                          capture_output=True, timeout=PATIENCE, env=environment)
    assert done.returncode == 0 and ageless(done.stdout) == ageless(run("nodes")), done.stderr


def test_cleanup_takes_away_what_is_ours_alone_and_is_done_then(run, api):
    for name, manager in (("penstock-features-for-gpu-1", "penstock-labels"),
                          ("nvidia-features-for-gpu-1", "gpu-feature-discovery")):
        api.apply(f"{FEATURES}/{name}", manager, {
            "apiVersion": "nfd.k8s-sigs.io/v1alpha1", "kind": "NodeFeature",
            "metadata": {"name": name, "namespace": "penstock"}, "spec": {"labels": {"a": "b"}}})
    told = run("cleanup", "--namespace", "penstock", "--dry-run")
    assert "would remove node gpu-1: 1 label (nvidia.com/gpu.count)" in told
    assert len(api.names(STATES)) == 2
    done = run("cleanup", "--namespace", "penstock")
    assert done == told.replace("would remove", "removed")
    assert api.get(f"{NODES}/gpu-1")["metadata"]["labels"] == {
        "kubernetes.io/hostname": "gpu-1", "both": "x", "zone": "a"}
    assert not api.names(STATES) and api.names(FEATURES) == ["nvidia-features-for-gpu-1"]
    assert run("cleanup") == "nothing of Penstock's was found\n"
    assert run("cleanup", "--cluster", program="penstock") == "nothing of Penstock's was found\n"


def test_cleanup_says_what_it_may_not_do_and_does_the_rest(run, api, tmp_path):
    api.allow({"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "patch"]},
              {"apiGroups": ["nfd.k8s-sigs.io"], "resources": ["nodefeatures"],
               "verbs": ["get", "list", "delete"]})
    told = run("cleanup", "--node", "gpu-1", code=1, kubeconfig=api.kubeconfig_of_a_user(tmp_path))
    assert "removed node gpu-1: 1 label" in told and "NodeState objects cannot be read" in told
    labels = api.get(f"{NODES}/gpu-2")["metadata"]["labels"]
    assert "nvidia.com/gpu.count" in labels, "another node's labels stay"


def test_migrate_reads_a_cluster(run, api, tmp_path):
    container = {"name": "c", "image": "nvcr.io/nvidia/k8s-device-plugin:v0.17.1",
                 "args": ["--mig-strategy=mixed"]}
    labels = {"name": "nvidia-device-plugin-ds"}
    api.do("POST", SETS, {
        "metadata": {"name": "nvidia-device-plugin-daemonset"},
        "spec": {"selector": {"matchLabels": labels},
                 "template": {"metadata": {"labels": labels},
                              "spec": {"containers": [container]}}}})
    api.allow({"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]})
    reader = api.kubeconfig_of_a_user(tmp_path)  # read-only
    text = run("migrate", kubeconfig=reader)
    assert "could not be read" not in text, "kinds that the cluster lacks are no read errors"
    assert "DaemonSet kube-system/nvidia-device-plugin-daemonset: device plugin" in text
    assert "kubectl -n kube-system delete daemonset nvidia-device-plugin-daemonset" in text
    there = run("migrate", "--to", "nvidia", "-o", "json", kubeconfig=reader)
    assert json.loads(there)["to"] == "nvidia"


def test_migrate_names_what_it_may_not_read_and_goes_on(run, api, tmp_path):
    rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}, {"apiGroups": ["apps"], "resources": ["daemonsets"], "verbs": ["list"]}]
    api.allow(*rules)
    plan = json.loads(run("migrate", "-o", "json", kubeconfig=api.kubeconfig_of_a_user(tmp_path)))
    for kind in ("pods", "configmaps", "services", "runtimeclasses"):
        assert any(line.startswith(f"{kind} could not be read, so what they use is not known") for line in plan["remarks"]), plan["remarks"]


def test_migrate_reads_files_without_a_cluster(run):
    folder = Path(__file__).parents[2] / "src/analysis/migrate/nvidia/testdata"
    text = run("migrate", "--manifests", str(folder / "nvidia-chart.yaml"), code=1)
    assert 'did you mean "migStrategy"?' in text and "helm -n nvidia uninstall nvdp" in text
    assert "helm -n penstock install penstock" in run("migrate", "--manifests", str(folder / "nvidia-static.yaml"), program="penstock")


def test_kubectl_completes(run):
    complete = lambda *words: run(*words, program="kubectl_complete-penstock").splitlines()  # noqa: E731
    assert [line.split("\t")[0] for line in complete("")] == ["status", "nodes", "policies", "explain", "migrate", "support-bundle", "cleanup", ":4"]
    assert complete("explain", "gpu-") == ["gpu-1", "gpu-2", ":4"]
    assert complete("nodes", "-o", "") == ["table", "wide", "json", "yaml", "name", "jsonpath=", ":4"]
    assert any(line.startswith("--kubeconfig\t") for line in complete("nodes", "--kube"))
    assert complete("nodes", "--kubeconfig", "") == [":0"]


def test_on_a_host_it_clears_what_an_agent_left_and_lingers_until_it_is_ended(request, tmp_path):
    program = request.config.getoption("--programs").resolve() / "penstock"
    for file in ("run/agent.lock", "state/ledger.json"):
        (tmp_path / file).parent.mkdir()
        (tmp_path / file).write_text("")
    words = [program, "cleanup", "--host", "--run-dir", tmp_path / "run", "--state-dir", tmp_path / "state"]
    assert subprocess.run([*words, "--check"], capture_output=True).returncode == 1
    with subprocess.Popen([*words, "--linger"], stdout=subprocess.PIPE, text=True) as lingering:
        assert lingering.stdout.readline().startswith("removed ")
        wait_until(lambda: subprocess.run([*words, "--check"], capture_output=True).returncode == 0, "the cleanup to be complete")
        assert lingering.poll() is None
        lingering.terminate()
        assert lingering.wait(PATIENCE) == 0
    assert not (tmp_path / "run").exists() and not (tmp_path / "state").exists()


def test_on_a_host_nothing_is_taken_back_while_an_agent_runs(request, tmp_path):
    program = request.config.getoption("--programs").resolve() / "penstock"
    lock = tmp_path / "run/agent.lock"
    lock.parent.mkdir()
    lock.touch(mode=0o600)
    words = [program, "cleanup", "--host", "--keep-state", "--check", "--run-dir", lock.parent, "--state-dir", tmp_path / "state", "--cdi-root", tmp_path / "cdi"]
    assert subprocess.run(words).returncode == 0
    with open(lock, "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        checked = subprocess.run(words, capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (1, "left: an agent that has not ended\n")


def test_wrong_use_is_told(run):
    assert "cleanup: choose --cluster" in run("cleanup", program="penstock", code=2)
    assert "NODE" in run("explain", code=2)
    assert "Examples" in run("--help")


def test_a_support_bundle_is_an_archive_that_tar_reads(run, tmp_path):
    archive = tmp_path / "bundle.tar.gz"
    assert re.search(r"\d+ files, \d+ KiB", run("support-bundle", "--file", str(archive)))
    assert archive.stat().st_mode & 0o777 == 0o600
    with tarfile.open(archive) as opened:
        folder = opened.getnames()[0].split("/")[0]
        files = {name.removeprefix(folder + "/"): opened.extractfile(name).read().decode() for name in opened.getnames()}
    assert {node["metadata"]["name"] for node in json.loads(files["objects/nodes.json"])["items"]} == {"gpu-1", "gpu-2", "cpu-1"}
    assert "device 7: unhealthy: XID 79" in files["nodes/gpu-2.txt"]
    assert "3 nodes, 0 pods of Penstock" in files["index.txt"] and "NOT READ" not in files["index.txt"]
    assert "pass --force" in run("support-bundle", "--file", str(archive), code=1)
    run("support-bundle", "--force", "--file", str(archive))


def test_a_support_bundle_names_what_its_caller_may_not_read(run, api, tmp_path):
    api.allow({"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]})
    archive = tmp_path / "bundle.tar.gz"
    run("support-bundle", "--file", str(archive), kubeconfig=api.kubeconfig_of_a_user(tmp_path))
    with tarfile.open(archive) as opened:
        index = opened.extractfile(opened.getnames()[0]).read().decode()
    assert "objects/nodes.json" in index
    assert re.search(r"nodestates: NOT READ: .*list", index), index
