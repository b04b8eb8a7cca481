"""A second release in one cluster: the chart asks the API server who owns what only one release can own. The server here answers those requests alone."""
import http.server
import json
import threading

import pytest
import yaml

KINDS = {"/apis/apiextensions.k8s.io/v1": ("CustomResourceDefinition", "customresourcedefinitions"),
         "/apis/rbac.authorization.k8s.io/v1": ("ClusterRole", "clusterroles")}


class Cluster:
    """Answers what helm's lookup requests: a group's kinds, and objects of the cluster by name."""

    def __init__(self, folder):
        self.objects, self.asked = {}, []
        cluster = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                status, answer = cluster.answer(self.path.partition("?")[0])
                body = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *words):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever).start()
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.write_text(yaml.safe_dump({
            "apiVersion": "v1", "kind": "Config", "current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "users": [{"name": "a", "user": {}}],
            "clusters": [{"name": "a", "cluster": {"server": f"http://127.0.0.1:{self.server.server_port}"}}]}))

    def answer(self, path: str) -> tuple[int, dict]:
        if path in KINDS:
            kind, plural = KINDS[path]
            return 200, {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": path.removeprefix("/apis/"),
                         "resources": [{"name": plural, "singularName": "", "namespaced": False, "kind": kind, "verbs": ["get", "list"]}]}
        self.asked.append(path)
        if path in self.objects:
            return 200, self.objects[path]
        return 404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404, "message": "not found"}

    def has(self, kind: str, name: str, release: str | None = None, namespace: str = "penstock"):
        path = next(path for path, (known, _) in KINDS.items() if known == kind)
        owner = {"meta.helm.sh/release-name": release, "meta.helm.sh/release-namespace": namespace} if release else {}
        self.objects[f"{path}/{KINDS[path][1]}/{name}"] = {
            "apiVersion": path.removeprefix("/apis/"), "kind": kind, "metadata": {"name": name, **({"annotations": owner} if owner else {})}}


@pytest.fixture
def cluster(tmp_path):
    cluster = Cluster(tmp_path)
    yield cluster
    cluster.server.shutdown()
    cluster.server.server_close()


def render(chart, cluster, *words, **options):
    return chart.try_render("--dry-run=server", "--kubeconfig", cluster.kubeconfig, *words, **options)


def test_the_first_release_and_its_upgrades_are_taken(chart, cluster):
    assert render(chart, cluster).returncode == 0
    assert cluster.asked, "the API server was asked"
    for kind, name in (("CustomResourceDefinition", "nodestates.penstock.io"), ("ClusterRole", "penstock")):
        cluster.has(kind, name, "penstock")
        assert render(chart, cluster).returncode == 0
        cluster.has(kind, name)  # of the plain manifest: helm itself names what it may not adopt
        assert render(chart, cluster).returncode == 0


def test_a_second_release_is_refused_with_the_values_that_it_needs(chart, cluster):
    cluster.has("CustomResourceDefinition", "nodestates.penstock.io", "first", "gpu")
    said = render(chart, cluster).stderr
    assert 'CustomResourceDefinition nodestates.penstock.io belongs to the release "first" in the namespace "gpu"' in said
    assert "penstock.nodeState.crd=false here and penstock.cleanup.enabled=false in both releases" in said
    half = render(chart, cluster, values={"penstock.nodeState.crd": False})
    assert half.returncode != 0 and "penstock.cleanup.enabled=false in both" in half.stderr
    whole = render(chart, cluster, values={"penstock.nodeState.crd": False, "penstock.cleanup.enabled": "false"})
    assert whole.returncode == 0, whole.stderr


def test_a_release_of_the_same_name_in_another_namespace_needs_another_full_name(chart, cluster):
    cluster.has("ClusterRole", "penstock", "penstock", "gpu")
    cluster.has("CustomResourceDefinition", "nodestates.penstock.io", "penstock", "gpu")
    said = render(chart, cluster).stderr
    assert "ClusterRole penstock belongs to" in said and "fullnameOverride" in said and "CustomResourceDefinition" in said, "both at once"
    values = {"fullnameOverride": "second", "penstock.nodeState.crd": False, "penstock.cleanup.enabled": False}
    assert render(chart, cluster, values=values).returncode == 0


def test_an_upgrade_that_worked_before_asks_nothing(chart, cluster):
    cluster.has("CustomResourceDefinition", "nodestates.penstock.io", "first")
    assert render(chart, cluster, "--is-upgrade").returncode == 0 and not cluster.asked


def test_the_notes_of_one_release_of_several_name_what_the_other_needs(chart, tmp_path):
    both = chart.notes(tmp_path, values={"penstock.nodeState.crd": False, "penstock.cleanup.enabled": False})
    assert "unless penstock.cleanup.enabled=false is set there, too" in both
    one = chart.notes(tmp_path, values={"penstock.nodeState.crd": False})
    assert "set penstock.cleanup.enabled=false in each of several releases" in one
