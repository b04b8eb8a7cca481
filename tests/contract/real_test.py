"""The cases of the contract suites on the real parts: a kube-apiserver with its etcd, and the
kubelet's own device manager."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "support")]

import control_plane  # noqa: E402
import api  # noqa: E402
import parts  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
CRDS = [ROOT / "deploy/helm/penstock/files/penstock.io_nodestates.yaml", *sorted((ROOT / "deploy/crds").glob("*.yaml"))]


@pytest.fixture
def programs(request) -> Path:
    """The folder of the suites' programs."""
    return Path(request.config.getoption("--programs")).parent / "tests"


def run(program: Path, only: str, environment: dict[str, str], log=lambda: "", least: int = 5):
    """Runs the cases that a pattern names; none of them may be missing or skipped."""
    listed = subprocess.run([program, "--gtest_list_tests", f"--gtest_filter={only}"], check=True,
                            capture_output=True, text=True).stdout
    cases = sum(line.startswith("  ") for line in listed.splitlines())
    done = subprocess.run([program, f"--gtest_filter={only}"], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env=os.environ | environment)
    assert done.returncode == 0 and f"[  PASSED  ] {cases} test" in done.stdout, \
        f"{done.stdout}\n{log()}"
    assert cases >= least


def with_crds(server: control_plane.ControlPlane) -> control_plane.ControlPlane:
    kubectl = [parts.packages() / "sbin/kubectl", "--kubeconfig", server.admin]
    files = [*CRDS, parts.tools() / "nfd-api-crds.yaml"]
    names = [word for file in files for word in ("-f", file)]
    for command in (["apply", "--server-side", *names], ["wait", f"--for={api.ESTABLISHED}", "--timeout=60s", *names]):
        subprocess.run([str(word) for word in (*kubectl, *command)], check=True, cwd=server.folder,
                       env={"PATH": os.defpath, "HOME": str(server.folder)})
    return server


def environment_of(server: control_plane.ControlPlane) -> dict[str, str]:
    return {"PENSTOCK_CONTRACT_KUBECONFIG": str(server.admin), "PENSTOCK_CONTRACT_ETCD": server.etcd_url}


def test_an_api_server_answers_as_the_fake_does(programs, tmp_path):
    # A page that goes on from a compacted version comes from etcd, not from a cache that still knows it.
    server = control_plane.ControlPlane(tmp_path, flags=("--feature-gates=ListFromCacheSnapshot=false",))
    try:
        with_crds(server)
        run(programs / "api_server_contract", "Contract/*/real", environment_of(server), server.log)
    finally:
        server.stop()


def test_an_api_server_without_streaming_lists_answers_as_the_fake_does(programs, tmp_path):
    server = control_plane.ControlPlane(tmp_path, flags=("--feature-gates=WatchList=false",))
    try:
        run(programs / "api_server_contract", "Older/*/real", environment_of(server), server.log, least=1)
    finally:
        server.stop()


def test_the_kubelets_device_manager_does_as_the_fake_does(programs):
    run(programs / "kubelet_contract", "*/real",
        {"PENSTOCK_CONTRACT_KUBELET": str(parts.kubelet_devices() / "kubelet-devices")})
