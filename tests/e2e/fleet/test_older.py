"""An older Kubernetes with one node: Penstock installs, serves, is reconfigured, and is upgraded without another node to drain to (walkthrough O); the chart gpu-operator,
whose pods need no more of the network than its policies permit."""
import json
import os
import signal
import time

import pytest
from actors import wait_for
from driver_rollouts import NEW, OLD, SIMULATED, running_rollout
from fleet import NAMESPACE
from network_policies import Enforced, connects
from operators import OPERATOR, cluster_policy
from test_gpu_operator_chart import RELEASE, served_chart, wait_nothing_left
from test_operator_rights import assert_used, rights_of_the_chart

PROGRAMS = {"operator": "penstock-operator", "agent": "penstock-agent"}


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


@pytest.fixture(scope="module")
def chart(older):
    with served_chart(older) as chart:
        yield chart


def test_the_chart_gpu_operator_makes_an_older_kubernetes_serve_its_gpus(chart, older, measure):
    restricted = chart.values.with_name("restricted.json")
    restricted.write_text(json.dumps({"networkPolicy": {"enabled": True, "egress": {"enabled": True}}}))
    with measure(f"Kubernetes {older.cluster.parts.version}, one node: helm install gpu-operator", of=older) as it:
        said = chart.helm("install", "--create-namespace", "--namespace", OPERATOR, RELEASE, "nvidia/gpu-operator", "-f", chart.values, "-f", restricted)
        it.done = chart.wait_ready()
    assert "1.32" in said and not older.kubectl("get", "validatingadmissionpolicies", "-o", "name").stdout, "what this server lacks is said, and not used"
    older.wait_advertised(60)
    older.hold("held", "n1", 2)
    older.wait_held("held")
    older.check()
    older.delete_all_pods()


def test_operator_and_agent_need_no_more_of_the_network_than_the_policies_of_their_chart_permit(chart, older):
    """Both start again within these limits, and do all that they do; what no rule permits is dropped."""
    node = older.nodes["n1"]

    def running() -> dict[str, int]:
        """Those of which there is one: what an agent is about to run has its name for a moment."""
        names = node.processes()
        found = {what: [pid for pid, one in names.items() if one == name] for what, name in PROGRAMS.items()}
        return {what: pids[0] for what, pids in found.items() if len(pids) == 1}

    def selected(label: str) -> dict:
        [pod] = older.get("pods", "-n", OPERATOR, "-l", f"app.kubernetes.io/name={label}")["items"]
        return pod

    def lease() -> str:
        return older.get("lease", "penstock-operator", "-n", OPERATOR)["spec"]["holderIdentity"]

    def asked(account: str) -> set[str]:
        return {event["verb"] for event in older.audit.between(begin, who=f"system:serviceaccount:{OPERATOR}:{account}")}
    before = wait_for(lambda: len(found := running()) == 2 and found, 60, "operator and agent to run", running)
    leads, began = lease(), node.kubelet_has()
    pods = {"operator": selected(OPERATOR), "agent": selected("penstock")}
    limits = {what: Enforced(older, pods[what], before[what]) for what in PROGRAMS}
    begin = time.time()
    for pid in before.values():
        os.kill(pid, signal.SIGTERM)
    now = wait_for(lambda: len(found := running()) == 2 and not {*found.values()} & {*before.values()} and found, 120, "both to be started again", running)
    for what, limit in limits.items():
        limit.pid = now[what]
    wait_for(lambda: lease() not in ("", leads) and asked("gpu-operator") >= {"watch"}, 120, "the operator to lead again", chart.log)
    wait_for(lambda: asked("penstock") >= {"list", "watch"}, 120, "the agent to read its node", older.logs)
    older.kubectl("patch", "clusterpolicy", "cluster-policy", "--type=merge", "-p", json.dumps({"spec": {"dcgmExporter": {"service": {"type": "NodePort"}}}}))
    wait_for(lambda: older.get("service", "nvidia-dcgm-exporter", "-n", OPERATOR)["spec"]["type"] == "NodePort", 60, "a change to take effect", chart.log)
    chart.wait_ready()
    wait_for(lambda: node.kubelet_has() == began, 60, "the kubelet to have the GPUs", older.logs)
    older.hold("within", "n1", 1)
    older.wait_held("within")
    addresses = {what: pod["status"]["podIP"] for what, pod in pods.items()}
    for what, port in (("operator", 8080), ("agent", 9400)):
        assert "penstock_" in node.view.page(f"http://{addresses[what]}:{port}/metrics")
    dropped = {what: limit.dropped() for what, limit in limits.items()}
    assert dropped == dict.fromkeys(PROGRAMS, {"input": 0, "output": 0})
    assert connects(now["agent"], addresses["agent"], 9400) and not connects(now["agent"], addresses["operator"], 8080, within=3)
    assert limits["agent"].dropped()["output"] > 0, "an agent does not need the operator's page"
    older.delete_all_pods()


def test_helm_uninstall_leaves_nothing_of_the_chart_gpu_operator(chart, older):
    try:
        chart.helm("uninstall", "--namespace", OPERATOR, RELEASE, "--wait", "--timeout", "240s")
        wait_nothing_left(older)
    finally:
        chart.remove()  # where this fails, the next scenario can install its own all the same


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
