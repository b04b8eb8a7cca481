"""The chart gpu-operator on a real API server: helm's install, upgrade and rollback, and what it creates passes the CRDs' schemas field by field."""
import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import control_plane  # noqa: E402
import parts  # noqa: E402
from conftest import OPERATOR_NAMESPACE, ROOT  # noqa: E402
from node import wait_until  # noqa: E402
from test_gpu_operator import FIELDS, FIXTURE, THEIRS  # noqa: E402

CRDS = ROOT / "deploy/helm/gpu-operator/crds"
KINDS = {"ClusterPolicy", "NVIDIADriver", "GPUCluster", "Penstock"}


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
    plane = control_plane.ControlPlane(tmp_path_factory.mktemp("plane"), flags=("--allow-privileged=true",))
    try:
        server = Server(plane, operator)
        made = server.kubectl("create", "-f", CRDS)
        assert made.returncode == 0, made.stderr
        wait_until(lambda: server.kubectl("get", "clusterpolicies,nvidiadrivers,gpuclusters,penstocks").returncode == 0, "the kinds to be served")
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
        if not FIXTURE.exists():
            pytest.skip("NVIDIA's values.yaml is not in this checkout")
        file = FIXTURE
    else:
        file.write_text(yaml.safe_dump(values))
    made = resources(operator.render("-f", file))
    assert made and not server.refused(made)


def test_everything_else_passes_the_servers_own_schemas(server, operator):
    things = operator.render(values={"networkPolicy.enabled": True, "devicePlugin.config": {"create": True, "name": "c", "data": {"a": "version: v1"}},
                                     "penstock.metrics.dashboards.enabled": True, "operator.cleanupCRD": True})
    assert not server.refused(things)


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
