"""MIG by the label that NVIDIA's MIG manager follows."""
import json

import pytest
from actors import BUSYBOX, GPU, wait_for
from fleet import NAMESPACE, allocatable
from test_sharing import configure, running, wait_one_waits

LABEL, STATE, REASON = "nvidia.com/mig.config", "nvidia.com/mig.config.state", "penstock.io/layout-reason"
DCGM, NVSM, CLIENT = (f"nvidia.com/gpu.deploy.{operand}" for operand in ("dcgm", "nvsm", "client"))
PRODUCT = "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"


def ask(fleet, layout: str | None):
    fleet.cluster.api.merge("node", "n4", {"metadata": {"labels": {LABEL: layout}}})


def wait_layout(fleet, state: str, **amounts: int):
    """Waits until the Node shows that state of the layout, and so much of each resource."""
    wanted = {f"nvidia.com/{name.replace('_', '-')}": count for name, count in amounts.items()}
    fleet.watch.wait(lambda nodes: nodes["n4"]["metadata"]["labels"].get(STATE) == state and allocatable(nodes["n4"]) == wanted, 120,
                     f"n4 to have {wanted} and the state {state}")


@pytest.fixture
def a100(installed):
    """The fleet, whose node n4 has one A100, with the strategy single."""
    configure(installed, "n4", "version: v1\nflags: {migStrategy: single}\n", {})
    installed.wait_status("n4", lambda status: "own" in status["configuration"]["origin"], 60)
    try:
        yield installed
    finally:
        installed.clear()
        configure(installed, "n4", "version: v1\nflags: {migStrategy: single}\n", {})
        ask(installed, "all-disabled")
        wait_layout(installed, "success", gpu=1)
        ask(installed, None)
        installed.choose("n4", None)
        wait_for(lambda: STATE not in installed.labels("n4"), 60, "the state's label to be gone", lambda: installed.labels("n4"))


def condition(fleet) -> str:
    """The message of the condition LayoutApplied while it is False."""
    conditions = fleet.get("nodestate", "n4")["status"]["conditions"]
    return next((one.get("message", "") for one in conditions if one["type"] == "LayoutApplied" and one["status"] == "False"), "")


def annotation(fleet) -> str | None:
    return fleet.get("node", "n4")["metadata"].get("annotations", {}).get(REASON)


def host_engine(fleet):
    """A DaemonSet as the GPU Operator's for DCGM: on nodes with the label, it has the GPU open, and takes the whole time that it is given to end. Device
    files of simulated GPUs cannot be opened, so it opens a file of that name."""
    command = "trap '' TERM; mkdir -p /x/dev; : > /x/dev/nvidia0; exec 3< /x/dev/nvidia0; while true; do sleep 1; done"
    container = {"name": "main", "image": BUSYBOX, "imagePullPolicy": "Never", "command": ["sh", "-c", command]}
    spec = {"nodeSelector": {DCGM: "true"}, "terminationGracePeriodSeconds": 8, "containers": [container]}
    labels = {"app": "nvidia-dcgm"}
    fleet.create({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "nvidia-dcgm"},
                  "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}}})


def clients(fleet) -> tuple:
    labels = fleet.labels("n4")
    return tuple(labels.get(key) for key in (DCGM, NVSM, CLIENT))


@pytest.fixture
def dcgm(a100):
    """DCGM's host engine runs on n4, by its label; NVSM is switched off there."""
    a100.cluster.api.merge("node", "n4", {"metadata": {"labels": {DCGM: "true", NVSM: "false"}}})
    host_engine(a100)
    try:
        wait_for(lambda: running(a100, "nvidia-dcgm") == 1, 60, "the host engine to run", lambda: a100.kubectl("get", "pods").stdout)
        yield a100
    finally:
        a100.kubectl("delete", "daemonset", "nvidia-dcgm")
        a100.cluster.api.merge("node", "n4", {"metadata": {"labels": {DCGM: None, NVSM: None}}})


def deploy(fleet, replicas: int):
    container = {"name": "main", "image": "registry.local/busybox:1", "imagePullPolicy": "Never", "command": ["sh", "-c", "exec sleep 100000"],
                 "resources": {"limits": {GPU: 1}}}
    spec = {"nodeSelector": {"nvidia.com/gpu.product": PRODUCT}, "terminationGracePeriodSeconds": 0, "containers": [container]}
    fleet.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "cuda-vectoradd"},
                  "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "cuda-vectoradd"}},
                           "template": {"metadata": {"labels": {"app": "cuda-vectoradd"}}, "spec": spec}}})


def test_mig_by_label_seven_pods_run_on_seven_instances_and_the_eighth_waits(a100, measure):
    """Walkthrough E; and what is held is not destroyed."""
    with measure("a node is labelled: seven MIG devices on the Node object"):
        ask(a100, "all-1g.5gb")
        wait_layout(a100, "success", gpu=7)
    a100.watch.wait(lambda nodes: nodes["n4"]["metadata"]["labels"].get("nvidia.com/gpu.product") == PRODUCT, 60, "the product of the instances")
    deploy(a100, 8)
    wait_for(lambda: running(a100, "cuda-vectoradd") == 7, 120, "seven pods to run", lambda: a100.kubectl("get", "pods").stdout)
    wait_one_waits(a100, "cuda-vectoradd")
    gave = a100.nodes["n4"].kubelet_gave()
    assert len(gave) == 7
    assert len(set().union(*gave.values())) == 7
    # Another layout, while they run: it is said who is in the way, and nothing changes.
    ask(a100, "all-balanced")
    wait_layout(a100, "failed", gpu=7)
    assert a100.nodes["n4"].kubelet_gave() == gave
    wait_for(lambda: "held by pod default/cuda-vectoradd" in condition(a100), 60, "the condition to name who is in the way", lambda: condition(a100))
    wait_for(lambda: annotation(a100) == condition(a100), 60, "the same text as an annotation", lambda: annotation(a100))
    wait_for(lambda: any(event["reason"] == "LayoutFailed" for event in a100.events("n4")), 60, "the Event", lambda: a100.events("n4"))
    # When they have ended, it is applied without a further request.
    a100.kubectl("scale", "deployment/cuda-vectoradd", "--replicas=0")
    a100.watch.wait(lambda nodes: nodes["n4"]["metadata"]["labels"].get(STATE) == "success", 120, "the layout to be applied")
    wait_for(lambda: len([device for device in a100.nodes["n4"].status()["devices"] if device.get("profile")]) == 4, 60, "four instances")
    wait_for(lambda: annotation(a100) is None, 60, "the annotation to be gone", lambda: annotation(a100))


def test_a_layout_that_does_not_exist_is_named_with_the_nearest(a100):
    ask(a100, "all-1g.5bg")
    wait_layout(a100, "failed", gpu=1)
    assert 'did you mean "all-1g.5gb"' in a100.nodes["n4"].status()["layout"]["reason"]
    ask(a100, "all-1g.5gb")
    wait_layout(a100, "success", gpu=7)


def test_a_label_that_changes_ten_times_in_a_second_ends_as_the_last_one_says(a100):
    for layout in ["all-1g.5gb", "all-2g.10gb", "all-3g.20gb", "all-disabled", "all-balanced"] * 2 + ["all-2g.10gb"]:
        ask(a100, layout)
    wait_layout(a100, "success", gpu=3)


def test_a_program_that_has_the_gpu_open_is_stopped_while_it_is_divided(dcgm):
    ask(dcgm, "all-2g.10gb")
    dcgm.watch.wait(lambda nodes: nodes["n4"]["metadata"]["labels"].get(DCGM) == "paused-for-mig-change", 60, "the host engine to be paused")
    wait_for(lambda: "in use by sh (process " in json.dumps(dcgm.nodes["n4"].status()["devices"]), 60, "what is waited for to be named",
             lambda: dcgm.nodes["n4"].status()["devices"])
    assert dcgm.labels("n4")[STATE] == "pending"
    wait_layout(dcgm, "success", gpu=3)
    wait_for(lambda: clients(dcgm) == ("true", "false", None), 60, "the labels as before", lambda: clients(dcgm))
    wait_for(lambda: running(dcgm, "nvidia-dcgm") == 1, 60, "the host engine to run again", lambda: dcgm.kubectl("get", "pods").stdout)


def test_an_agent_that_is_killed_while_programs_are_stopped_leaves_the_next_one_to_start_them(dcgm):
    ask(dcgm, "all-2g.10gb")
    dcgm.watch.wait(lambda nodes: nodes["n4"]["metadata"]["labels"].get(DCGM) == "paused-for-mig-change", 60, "the host engine to be paused")
    dcgm.kubectl("delete", "pod", "-n", NAMESPACE, dcgm.agent_pods()["n4"], "--force", "--grace-period=0")
    wait_layout(dcgm, "success", gpu=3)
    wait_for(lambda: clients(dcgm) == ("true", "false", None), 60, "the labels as before", lambda: clients(dcgm))
