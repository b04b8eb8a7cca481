"""The verbs that ask a cluster, end to end: kubeconfig, HTTP, objects, text. And what kubectl gets when it completes a command line."""
import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from api_server import ApiServer  # noqa: E402
from node import PATIENCE, wait_until  # noqa: E402

GPU = "nvidia.com/gpu"


def node_state(healthy: int = 8, **status) -> dict:
    devices = [{"id": f"GPU-{i}", "vendor": "nvidia", "model": "NVIDIA A100-SXM4-40GB", "index": i, "door": "kubelet",
                "health": {"state": "healthy"} if i < healthy else {"state": "unhealthy", "reason": "XID 79: it has fallen off the bus"},
                "resource": GPU, "sharing": "none", "slots": 1, "free": 1 if 0 < i < healthy else 0, "isolation": "hardware",
                "holders": {"held": 1 if i == 0 else 0}} for i in range(8)]
    return {"kind": "NodeState", "status": {
        "version": "0.1.0", "vendors": [{"vendor": "nvidia", "driver": "550.54.15"}], "devices": devices,
        "doors": [{"name": "kubelet", "state": "open", "resources": [GPU]}], "configuration": {"origin": "defaults"}} | status}


@pytest.fixture
def api(tmp_path):
    server = ApiServer(tmp_path)
    for name, healthy in (("gpu-1", 8), ("gpu-2", 7)):
        server.put("nodes", name, metadata={
            "labels": {"kubernetes.io/hostname": name, "nvidia.com/gpu.count": "8", "both": "x", "zone": "a"},
            "managedFields": [{"manager": "penstock-labels", "operation": "Apply",
                               "fieldsV1": {"f:metadata": {"f:labels": {"f:nvidia.com/gpu.count": {}, "f:both": {}}}}},
                              {"manager": "someone", "operation": "Update", "fieldsV1": {"f:metadata": {"f:labels": {"f:both": {}, "f:zone": {}}}}}]},
            status={"conditions": [{"type": "Ready", "status": "True"}], "capacity": {GPU: "8"}, "allocatable": {GPU: str(healthy)}})
        server.put("nodestates", name, **node_state(healthy))
    server.put("nodes", "cpu-1", status={"conditions": [{"type": "Ready", "status": "True"}]})
    yield server
    server.stop()


@pytest.fixture
def run(request, api):
    programs: Path = request.config.getoption("--programs").resolve()

    def run(*words: str, program: str = "kubectl-penstock", code: int = 0) -> str:
        environment = {"KUBECONFIG": str(api.kubeconfig), "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
        done = subprocess.run([programs / program, *words], capture_output=True, text=True, timeout=PATIENCE, env=environment)
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
    assert run("nodes", program="penstock") == run("nodes")


def test_shares_are_shown_and_counted(run, api):
    state = node_state(servers=[{"set": GPU, "kind": "mps", "state": "waiting", "reason": "it has died", "clients": 1, "devices": ["GPU-1"]}])
    state["status"]["devices"][0] |= {"sharing": "time-slicing", "slots": 4, "free": 3, "isolation": "none"}
    state["status"]["devices"][1] |= {"sharing": "mps", "slots": 2, "free": 0, "isolation": "none"}
    api.put("nodestates", "gpu-1", **state)
    rows = {line.split()[0]: line for line in run("nodes").splitlines()}
    assert "3/6 free" in rows["gpu-1"] and "the mps server of nvidia.com/gpu is waiting: it has died" in rows["gpu-1"]
    explained = run("explain", "gpu-1")
    assert [line for line in explained.splitlines() if line.startswith(GPU)][0].split() == [GPU, "8", "8", "12", "10", "1", "0"]
    assert "its shares are unusable" in explained
    status = run("status", "gpu-1")
    assert "3/4 free" in status and "ISOLATION" in status and "it has died" in status


def test_explain_says_why_and_what_next(run, api):
    text = run("explain", "gpu-2")
    assert "device 7: unhealthy: XID 79" in text and "next: " in text
    assert [line for line in text.splitlines() if line.startswith(GPU)][0].split() == [GPU, "8", "7", "8", "7", "1", "0"]
    assert "nothing is wrong" in run("explain", "gpu-1")
    api.put("pods", "waiting", spec={"containers": [{"resources": {"limits": {GPU: "2"}}}]}, status={"phase": "Pending"})
    api.objects["pods"]["waiting"]["metadata"]["namespace"] = "ml"
    assert "waiting: ml/waiting for 2 of nvidia.com/gpu" in run("explain", "gpu-1")
    assert 'the cluster has no node "gpu-3"; did you mean "gpu-' in run("explain", "gpu-3", code=1)


def test_status_is_that_of_the_node_itself(run):
    assert "A100-SXM4-40GB" in run("status", "gpu-1")
    assert "== node gpu-1" in run("status") and "== node gpu-2" in run("status")
    assert len(json.loads(run("status", "gpu-1", "-o", "json"))["devices"]) == 8
    assert run("status", "--node", "gpu-1", program="penstock") == run("status", "gpu-1")


def test_what_the_cluster_lacks_or_refuses_is_said_with_what_to_do(run, api):
    api.missing.add("nodestates")
    assert "install the chart" in run("nodes", code=1)
    assert "no kind NodeState" in run("explain", "gpu-1")
    api.missing.discard("nodestates")
    api.forbidden.add("nodestates")
    forbidden = run("nodes", code=1)
    assert "list" in forbidden and "nodestates" in forbidden, "the rule that is missing"
    assert 'contexts has no "other"' in run("nodes", "--context", "other", code=1)
    assert "/nonexistent" in run("nodes", "--kubeconfig", "/nonexistent", code=1)
    api.stop()
    unreached = run("nodes", code=1)
    assert "no connection to the API server" in unreached and str(api.kubeconfig) in unreached


def test_cleanup_takes_away_what_is_ours_alone_and_is_done_then(run, api):
    api.put("nodefeatures", "penstock-features-for-gpu-1", metadata={
        "namespace": "penstock", "managedFields": [{"manager": "penstock-labels", "operation": "Apply"}]})
    api.put("nodefeatures", "nvidia-features-for-gpu-1", metadata={"namespace": "penstock"})
    told = run("cleanup", "--dry-run")
    assert "would remove node gpu-1: 1 label (nvidia.com/gpu.count)" in told and len(api.objects["nodestates"]) == 2
    done = run("cleanup")
    assert done == told.replace("would remove", "removed")
    assert api.objects["nodes"]["gpu-1"]["metadata"]["labels"] == {"kubernetes.io/hostname": "gpu-1", "both": "x", "zone": "a"}
    assert not api.objects["nodestates"] and list(api.objects["nodefeatures"]) == ["nvidia-features-for-gpu-1"]
    assert run("cleanup") == "nothing of Penstock's is there\n"
    assert run("cleanup", "--cluster", program="penstock") == "nothing of Penstock's is there\n"


def test_cleanup_says_what_it_may_not_do_and_does_the_rest(run, api):
    api.forbidden.add("nodestates")
    told = run("cleanup", "--node", "gpu-1", code=1)
    assert "removed node gpu-1: 1 label" in told and "NodeState objects cannot be read" in told
    assert "nvidia.com/gpu.count" in api.objects["nodes"]["gpu-2"]["metadata"]["labels"], "another node's stay"


def test_migrate_reads_a_cluster(run, api):
    container = {"name": "c", "image": "nvcr.io/nvidia/k8s-device-plugin:v0.17.1", "args": ["--mig-strategy=mixed"]}
    api.put("daemonsets", "nvidia-device-plugin-daemonset", metadata={"namespace": "kube-system"},
            spec={"template": {"spec": {"containers": [container]}}})
    text = run("migrate")
    assert "DaemonSet kube-system/nvidia-device-plugin-daemonset: device plugin" in text
    assert "kubectl -n kube-system delete daemonset nvidia-device-plugin-daemonset" in text
    assert json.loads(run("migrate", "--to", "nvidia", "-o", "json"))["to"] == "nvidia"
    assert all(request.startswith("GET ") for request in api.requests), "it only reads"


def test_migrate_reads_files_without_a_cluster(run):
    folder = Path(__file__).parents[2] / "src/app/penstock/testdata"
    text = run("migrate", "--manifests", str(folder / "nvidia-chart.yaml"), code=1)
    assert 'did you mean "migStrategy"?' in text and "helm -n nvidia uninstall nvdp" in text
    assert "helm -n penstock install penstock" in run("migrate", "--manifests", str(folder / "nvidia-static.yaml"), program="penstock")


def test_kubectl_completes(run):
    complete = lambda *words: run(*words, program="kubectl_complete-penstock").splitlines()  # noqa: E731
    assert [line.split("\t")[0] for line in complete("")] == ["status", "nodes", "explain", "migrate", "cleanup", ":4"]
    assert complete("explain", "gpu-") == ["gpu-1", "gpu-2", ":4"]
    assert complete("nodes", "-o", "") == ["table", "wide", "json", ":4"]
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
        wait_until(lambda: subprocess.run([*words, "--check"], capture_output=True).returncode == 0, "nothing to be left")
        assert lingering.poll() is None
        lingering.terminate()
        assert lingering.wait(PATIENCE) == 0
    assert not (tmp_path / "run").exists() and not (tmp_path / "state").exists()


def test_wrong_use_is_told(run):
    assert "cleanup: --cluster or --host" in run("cleanup", program="penstock", code=2)
    assert "NODE" in run("explain", code=2)
    assert "Examples" in run("--help")
