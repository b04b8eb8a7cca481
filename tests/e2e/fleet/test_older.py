"""An older Kubernetes with one node: Penstock installs, serves, is reconfigured, and is upgraded without another node to drain to (walkthrough O)."""
import pytest
from actors import wait_for
from driver_rollouts import NEW, OLD, SIMULATED, running_rollout
from fleet import NAMESPACE
from operators import cluster_policy
from test_operator_rights import assert_used, rights_of_the_chart


@pytest.fixture(scope="module")
def older(start_fleet):
    return start_fleet(release="older", machines={"n1": "dgx-a100"})


def test_an_older_kubernetes_on_one_node_installs_serves_changes_and_upgrades(older, measure, away):
    with measure(f"Kubernetes {older.cluster.parts.version}, one node: helm install", of=older) as it:
        older.install()
        it.done = older.wait_advertised(60)
    older.wait_rolled_out()
    wait_for(lambda: older.labels("n1").get("nvidia.com/gpu.product") == "NVIDIA-A100-SXM4-40GB", 60, "the labels", lambda: older.labels("n1"))
    older.hold("held", "n1", 6)
    older.wait_held("held")
    older.check()
    kubelet = older.nodes["n1"].allocator("kubelet")
    assert kubelet["deviceList"] == ["envvar", "device-files"] and "containerd 1.6" in kubelet["deviceListReason"], kubelet
    assert older.nodes["n1"].allocator("cluster")["state"] == "open"
    assert "the API server does not support streaming lists; requesting pages" in older.logs(-1), "what degrades is said"
    with measure("  one node: another configuration", of=older):
        older.choose("n1", "by-index")
        older.wait_status("n1", lambda said: "key by-index" in said["configuration"]["origin"], 60)
    before, sampler = older.nodes["n1"].kubelet_gave(), older.sample_kubelets()["n1"]
    with measure("  one node: helm upgrade", of=older):
        older.install({"podAnnotations": {"upgraded": "yes"}})
        older.wait_rolled_out()
    gap = sampler.longest_without(8)
    assert older.nodes["n1"].kubelet_gave() == before
    older.check()
    away({"n1": gap})
    older.uninstall()
    assert not [key for key in older.labels("n1") if key.startswith("nvidia.com/gpu.product")]


def test_the_operator_on_one_node_installs_changes_and_upgrades_the_driver_below_its_only_pod(older, measure):
    """Walkthrough O through a ClusterPolicy: there is nowhere to drain to, so the pod is started again once its node has the driver."""
    with running_rollout(older, teams={"n1": "blue"}, without=("n1",)) as rollout:
        rollout.apply("blue", OLD, "blue")
        with measure("  one node: ClusterPolicy and NVIDIADriver, until it has its GPUs", of=older):
            rollout.operator.apply(SIMULATED, cluster_policy(driver={"useNvidiaDriverCRD": True}))
            rollout.wait_versions(n1=f"container {OLD}")
            older.wait_advertised(60)
        rollout.operator.wait_state("ready")
        older.deploy("only", "n1", 1)
        older.wait_deployed("only")
        running = ("pods", "-l", "app=only", "--field-selector", "status.phase=Running")  # one that was rejected stays
        [before] = older.get(*running)["items"]
        rollout.operator.apply(cluster_policy(driver={"useNvidiaDriverCRD": True}, daemonsets={"annotations": {"example.com/changed": "yes"}},
                                                dcgmExporter={"enablePodLabels": True}))
        wait_for(lambda: "example.com/changed" in str(older.get("daemonset", "-n", NAMESPACE, "penstock-agent")["spec"]["template"]["metadata"]), 60,
                 "the agents to be changed", rollout.told)
        rollout.operator.wait_state("ready")
        assert [pod["metadata"]["uid"] for pod in older.get(*running)["items"]] == [before["metadata"]["uid"]], "a changed agent touches no pod"
        with measure("  one node: another driver", of=older):
            rollout.apply("blue", NEW, "blue")
            rollout.wait_versions(n1=f"container {NEW}")
            wait_for(lambda: rollout.states() == {"n1": "upgrade-done"}, 120, "the node to be done", rollout.told)
        older.wait_deployed("only")
        assert "unschedulable" not in older.get("node", "n1")["spec"]


@pytest.mark.usefixtures("whole_suite")
def test_each_right_to_list_was_used_since_this_server_does_not_stream_lists(older):
    """What the other suites cannot show (test_operator_rights.py). This server does not have the last two kinds."""
    assert_used({right for right in rights_of_the_chart(older) if right.verb == "list" and right.account in ("gpu-operator", "penstock")
                 and right.resource not in ("servicemonitors", "resourceclaims")}, older)
