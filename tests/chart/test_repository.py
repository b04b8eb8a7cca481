"""The chart as a repository: deploy/helm/package makes it, a web server on loopback serves it, and helm installs from it."""
import hashlib
import http.server
import json
import os
import subprocess
import tarfile
import threading

import pytest
import yaml

from conftest import ROOT, Rendered

PACKAGE = ROOT / "deploy/helm/package"
EPOCH = "1700000000"


def package(chart, *words, epoch: str | None = EPOCH):
    environment = {"HELM": str(chart.helm), "PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/root")}
    if epoch is not None:
        environment["SOURCE_DATE_EPOCH"] = epoch
    return subprocess.run([PACKAGE, *words], env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)


@pytest.fixture
def repository(chart, tmp_path):
    """A folder with the packaged chart, and the address at which it is served."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *words):
            super().__init__(*words, directory=str(folder))

        def log_message(self, *words):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    threading.Thread(target=server.serve_forever).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/charts"
        done = package(chart, "--url", url, folder / "charts")
        assert done.returncode == 0, done.stderr
        yield folder / "charts", url
    finally:
        server.shutdown()
        server.server_close()


def version(chart) -> str:
    return yaml.safe_load((chart.path / "Chart.yaml").read_text())["version"]


def test_helm_adds_searches_and_installs_from_the_repository(chart, repository, tmp_path):
    environment = os.environ | {f"HELM_{name}_HOME": str(tmp_path / name) for name in ("CACHE", "CONFIG", "DATA")}

    def helm(*words) -> str:
        done = subprocess.run([chart.helm, *words], env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stderr
        return done.stdout

    _, url = repository
    helm("repo", "add", "penstock", url)
    found = yaml.safe_load(helm("search", "repo", "penstock/", "-o", "yaml"))
    assert {(one["name"], one["version"], one["app_version"]) for one in found} == {
        (f"penstock/{name}", version(chart), version(chart)) for name in ("penstock", "gpu-operator")}
    metrics = {"dashboards": {"enabled": True}, "rules": {"enabled": True, "openshift": True}}
    things = Rendered(thing for thing in yaml.safe_load_all(helm(
        "template", "penstock", "penstock/penstock", "--namespace", "penstock", "--kube-version", "1.36.3",
        "--set-json", f"penstock.metrics={json.dumps(metrics)}")) if thing)
    assert things == chart.render(values={"penstock.metrics": metrics}), "the archive has all files of the chart"
    assert {"ConfigMap", "PrometheusRule", "CustomResourceDefinition"} <= things.kinds()


def test_helm_updates_and_installs_the_operators_chart_from_the_repository(operator, repository, tmp_path):
    environment = os.environ | {f"HELM_{name}_HOME": str(tmp_path / name) for name in ("CACHE", "CONFIG", "DATA")}

    def helm(*words) -> str:
        done = subprocess.run([operator.helm, *words], env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stderr
        return done.stdout

    helm("repo", "add", "nvidia", repository[1])
    assert "Update Complete" in helm("repo", "update")
    things = Rendered(thing for thing in yaml.safe_load_all(helm(
        "template", "gpu-operator", "nvidia/gpu-operator", "--namespace", "gpu-operator", "--kube-version", "1.36.3",
        "--set", "penstock.metrics.dashboards.enabled=true")) if thing)
    assert things == operator.render(values={"penstock.metrics.dashboards.enabled": True}), "the archive has what the chart only links to"


def test_the_same_chart_gives_the_same_bytes_and_the_index_their_digest(chart, repository, tmp_path):
    folder, url = repository
    again = package(chart, f"--url={url}", tmp_path / "again")
    names = [f"{name}-{version(chart)}.tgz" for name in ("penstock", "gpu-operator")]
    assert again.returncode == 0 and again.stdout.split() == [str(tmp_path / "again" / name) for name in names]
    assert {path.name for path in folder.iterdir()} == {"index.yaml", *names}
    for file in ("index.yaml", *names):
        assert (folder / file).read_bytes() == (tmp_path / "again" / file).read_bytes()
    index = yaml.safe_load((folder / "index.yaml").read_text())["entries"]
    for name in names:
        [entry] = index[name.rpartition("-")[0]]
        assert entry["urls"] == [f"{url}/{name}"] and entry["digest"] == hashlib.sha256((folder / name).read_bytes()).hexdigest()
        assert str(entry["created"]) == "2023-11-14T22:13:20Z"


def test_the_archive_has_what_the_chart_needs_and_no_generator_or_test(chart, repository):
    folder, _ = repository
    members = []
    for file in folder.glob("*.tgz"):
        with tarfile.open(file) as archive:
            members += archive.getmembers()
    names = {member.name for member in members}
    common = ("Chart.yaml", "values.yaml", "values.schema.json", "README.md", "templates/access.yaml", "templates/_shared.tpl", "files/without-effect.yaml",
              "files/dashboards/gpu.json", "files/alerts/penstock.rules.yaml")
    assert {f"{chart}/{name}" for name in common for chart in ("penstock", "gpu-operator")} <= names
    assert {"penstock/templates/daemonset.yaml", "gpu-operator/templates/operator.yaml", "gpu-operator/crds/penstock.io_nodestates.yaml"} <= names
    assert not [name for name in names if name.endswith((".py", "generate")) or "/tests/" in name]
    assert all((member.isfile() or member.isdir()) and member.uid == member.gid == 0 and member.mtime == int(EPOCH) for member in members)


def test_versions_that_the_folder_already_has_stay_in_the_index(chart, repository):
    folder, url = repository
    assert chart.run("package", chart.path, "--version", "0.0.9", "--destination", folder).returncode == 0
    assert package(chart, "--url", url, folder).returncode == 0
    entries = yaml.safe_load((folder / "index.yaml").read_text())["entries"]["penstock"]
    assert {entry["version"]: entry["urls"] for entry in entries} == {
        known: [f"{url}/penstock-{known}.tgz"] for known in ("0.0.9", version(chart))}


@pytest.mark.parametrize("words, epoch, said", [
    ((), EPOCH, "one folder is expected"), (("a", "b"), EPOCH, "one folder is expected"), (("--url",), EPOCH, "--url needs a URL"),
    (("--url", "charts.example", "a"), EPOCH, "a URL begins with http:// or https://"), (("--to", "a"), EPOCH, "there is no option --to"),
    (("a",), "yesterday", "not a number of seconds")])
def test_a_wrong_call_is_refused_and_writes_nothing(chart, tmp_path, words, epoch, said):
    done = package(chart, *(str(tmp_path / word) if word in ("a", "b") else word for word in words), epoch=epoch)
    assert done.returncode == 2 and said in done.stderr and "usage: deploy/helm/package" in done.stderr
    assert not list(tmp_path.iterdir())
