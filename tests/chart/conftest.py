"""Fixtures of the chart's tests: helm from the cluster's cache, the chart, and this build's `penstock`, which reads what the chart writes for the agent."""
import functools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests/e2e/cluster")]

import parts  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--programs", type=Path, default=ROOT / "build/dev/bin", help="folder of penstock")


OPERATOR_NAMESPACE = "gpu-operator"


class Rendered(list):
    """The objects that the chart renders from a set of values."""

    def one(self, kind: str, name: str = "penstock") -> dict:
        found = [thing for thing in self if thing["kind"] == kind and thing["metadata"]["name"] == name]
        assert len(found) == 1, f"{kind} {name}: {len(found)} of them among {[(t['kind'], t['metadata']['name']) for t in self]}"
        return found[0]

    def kinds(self) -> set[str]:
        return {thing["kind"] for thing in self}

    def pod(self) -> dict:
        return self.one("DaemonSet")["spec"]["template"]["spec"]

    def container(self) -> dict:
        return self.pod()["containers"][0]

    def environment(self) -> dict[str, str]:
        return {variable["name"]: variable.get("value") for variable in self.container()["env"]}

    def mounts(self) -> dict[str, dict]:
        return {mount["mountPath"]: mount for mount in self.container()["volumeMounts"]}

    def host_paths(self) -> dict[str, str]:
        return {volume["name"]: volume["hostPath"]["path"] for volume in self.pod()["volumes"] if "hostPath" in volume}

    def node_config(self) -> str:
        return self.one("ConfigMap", "penstock-agent")["data"]["node.yaml"]


def read_all(text: str) -> list[dict]:
    """The objects of a text, read five times as fast as by yaml.safe_load_all."""
    return [thing for thing in yaml.load_all(text, Loader=yaml.CSafeLoader) if thing]


class Chart:
    """deploy/helm/penstock as users of helm see it."""

    release = namespace = "penstock"

    def __init__(self, helm: Path):
        self.helm, self.path = helm, ROOT / "deploy/helm/penstock"

    def run(self, *words: str) -> subprocess.CompletedProcess:
        return subprocess.run([str(self.helm), *map(str, words)], capture_output=True, text=True, stdin=subprocess.DEVNULL, env=os.environ | parts.BRIEF)

    def try_render(self, *words: str, values: dict | None = None, namespace: str | None = None, kubernetes: str = "1.36.3"):
        given = ["--set-json", ",".join(f"{key}={json.dumps(value)}" for key, value in values.items())] if values else []
        words = ("template", self.release, str(self.path), "--namespace", namespace or self.namespace, "--kube-version", kubernetes, *given, *map(str, words))
        unchanging = self.path == type(self)(self.helm).path and not any(word.startswith(("-f", "--values", "--set-file")) for word in words)
        return rendered_once(self, words) if unchanging else self.run(*words)

    def render(self, *words: str, **options) -> Rendered:
        done = self.try_render(*words, **options)
        assert done.returncode == 0, done.stderr
        return Rendered(read_all(done.stdout))

    def copy(self, folder: Path) -> "Chart":
        """A copy of the chart that a test may change."""
        copied = type(self)(self.helm)
        copied.path = folder / self.release
        shutil.copytree(self.path, copied.path, dirs_exist_ok=True)
        return copied

    def notes(self, folder: Path, *words, **options) -> str:
        """The text that helm prints after an install. Without a cluster helm prints none, so a copy of the chart has it in an object."""
        copy = self.copy(folder)
        notes = copy.path / "templates/NOTES.txt"
        (copy.path / "templates/notes.yaml").write_text(
            '{{- define "notes" }}' + notes.read_text() + '{{ end }}\n{kind: Notes, metadata: {name: notes}, text: {{ include "notes" . | toJson }}}\n')
        return copy.render(*words, **options).one("Notes", "notes")["text"]

    def refusal(self, *words: str, **options) -> str:
        done = self.try_render(*words, **options)
        assert done.returncode != 0, "the values were accepted"
        return done.stderr


@functools.cache
def rendered_once(chart: Chart, words: tuple) -> subprocess.CompletedProcess:
    """Many tests look at what the same values render."""
    return chart.run(*words)


class OperatorChart(Chart):
    """deploy/helm/gpu-operator as users of helm see it."""

    release, namespace = "gpu-operator", OPERATOR_NAMESPACE

    def __init__(self, helm: Path):
        super().__init__(helm)
        self.path = ROOT / "deploy/helm/gpu-operator"

    def policy(self, values: dict | None = None, *words) -> dict:
        """The spec of the ClusterPolicy."""
        return self.render(*words, values=values).one("ClusterPolicy", "cluster-policy")["spec"]

    def image(self) -> str:
        return "localhost/penstock:" + yaml.safe_load((self.path / "Chart.yaml").read_text())["appVersion"]


def at(thing, path: str):
    """What stands at a path of a document, or None."""
    for word in path.split("."):
        thing = thing.get(word) if isinstance(thing, dict) else None
    return thing


def leaves(values: dict, path: str = ""):
    """Path and value of everything in a document that is not a map."""
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def deployment(things: Rendered) -> dict:
    """The template of the operator's pod."""
    return things.one("Deployment", "gpu-operator")["spec"]["template"]


@pytest.fixture(scope="session")
def chart() -> Chart:
    return Chart(parts.tools() / "helm")


@pytest.fixture(scope="session")
def operator() -> OperatorChart:
    return OperatorChart(parts.tools() / "helm")


@pytest.fixture(scope="session")
def programs(request) -> Path:
    return request.config.getoption("--programs")
