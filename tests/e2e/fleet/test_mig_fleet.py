"""MIG by the label that NVIDIA's MIG manager follows."""
import json
import os
import random

import pytest
import yaml
from actors import BUSYBOX, GPU, wait_for
from fleet import BY_UUID, NAMESPACE, allocatable
from test_sharing import TIME_SLICING_CONFIG, all_of, configure, running, wait_one_waits

LABEL, STATE, REASON = "nvidia.com/mig.config", "nvidia.com/mig.config.state", "penstock.io/layout-reason"
DCGM, NVSM, CLIENT = (f"nvidia.com/gpu.deploy.{operand}" for operand in ("dcgm", "nvsm", "client"))
PRODUCT = "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"
MANY_LAYOUTS = 200 if os.environ.get("PENSTOCK_CHECK_ALL") == "1" else 20


def ask(fleet, layout: str | None):
    fleet.cluster.api.merge("node", "n4", {"metadata": {"labels": {LABEL: layout}}})


def wait_layout(fleet, state: str, amounts: dict[str, int] | None = None, **more: int):
    """Waits until the Node shows that state of the layout, and so much of each resource."""
    wanted = {f"nvidia.com/{name}": count for name, count in ((amounts or {}) | more).items()}
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
    spec = {"nodeSelector": {DCGM: "true"}, "terminationGracePeriodSeconds": 45, "containers": [container]}
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
        a100.kubectl("delete", "pods", "-l", "app=nvidia-dcgm", "--grace-period=0", "--force")  # it would take the whole time that it is given
        a100.cluster.api.merge("node", "n4", {"metadata": {"labels": {DCGM: None, NVSM: None}}})


def deploy(fleet, replicas: int, product: str = PRODUCT):
    container = {"name": "main", "image": "registry.local/busybox:1", "imagePullPolicy": "Never", "command": ["sh", "-c", "exec sleep 100000"],
                 "resources": {"limits": {GPU: 1}}}
    spec = {"nodeSelector": {"nvidia.com/gpu.product": product}, "terminationGracePeriodSeconds": 0, "containers": [container]}
    fleet.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "cuda-vectoradd"},
                  "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "cuda-vectoradd"}},
                           "template": {"metadata": {"labels": {"app": "cuda-vectoradd"}}, "spec": spec}}})


def divide_by_label(fleet, measure, product: str = PRODUCT) -> dict[str, set[str]]:
    """Walkthrough E on a node with the strategy single, however its agent was installed. Returns what the kubelet gave to which pod."""
    with measure("a node is labelled: seven MIG devices on the Node object"):
        ask(fleet, "all-1g.5gb")
        wait_layout(fleet, "success", gpu=7)
    fleet.watch.wait(lambda nodes: nodes["n4"]["metadata"]["labels"].get("nvidia.com/gpu.product") == product, 60, "the product of the instances")
    deploy(fleet, 8, product)
    wait_for(lambda: running(fleet, "cuda-vectoradd") == 7, 120, "seven pods to run", lambda: fleet.kubectl("get", "pods").stdout)
    wait_one_waits(fleet, "cuda-vectoradd")
    gave = fleet.nodes["n4"].kubelet_gave()
    assert len(gave) == 7
    assert len(set().union(*gave.values())) == 7
    return gave


def test_mig_by_label_seven_pods_run_on_seven_instances_and_the_eighth_waits(a100, measure):
    """And what is held is not destroyed."""
    gave = divide_by_label(a100, measure)
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


def test_mig_on_one_node_and_time_slicing_on_another_at_once(a100):
    """Walkthrough F: E on the A100 and C on the T4."""
    t4 = a100.nodes["n3"]
    t4.wanted = {GPU: all_of(t4, 4)}
    a100.edit({"by-uuid": BY_UUID, "own": "version: v1\nflags: {migStrategy: single}\n", "tesla-t4": yaml.safe_load(TIME_SLICING_CONFIG)["data"]["tesla-t4"]})
    a100.choose("n3", "tesla-t4")
    ask(a100, "all-1g.5gb")
    wait_layout(a100, "success", gpu=7)
    a100.watch.wait(lambda nodes: allocatable(nodes["n3"]) == {GPU: 4}, 60, "four shares of the T4")
    a100.watch.wait(lambda nodes: nodes["n4"]["metadata"]["labels"].get("nvidia.com/gpu.product") == PRODUCT, 60, "the product of the instances")
    deploy(a100, 8)
    a100.hold("shared", "n3", 5)
    wait_for(lambda: running(a100, "cuda-vectoradd") == 7 and running(a100, "shared") == 4, 120, "seven pods on the A100 and four on the T4",
             lambda: a100.kubectl("get", "pods").stdout)
    wait_one_waits(a100, "cuda-vectoradd")
    wait_one_waits(a100, "shared")
    gave = a100.nodes["n4"].kubelet_gave()
    assert len(gave) == len(set().union(*gave.values())) == 7


def test_the_documented_time_slicing_of_an_a100_on_a_node_that_is_divided(a100):
    """Walkthrough C's key a100-40gb: eight shares of a GPU, and one of a MIG device 1g.5gb, which means that it is not shared."""
    configure(a100, "n4", yaml.safe_load(TIME_SLICING_CONFIG)["data"]["a100-40gb"], {})
    a100.watch.wait(lambda nodes: allocatable(nodes["n4"]) == {GPU: 8}, 60, "eight shares of the A100")
    ask(a100, "all-1g.5gb")
    wait_layout(a100, "success", {"mig-1g.5gb": 7})
    devices = [device for device in a100.nodes["n4"].status()["devices"] if device.get("profile")]
    assert [(device["sharing"], device["shares"]) for device in devices] == [("none", 1)] * 7
    a100.watch.wait(lambda nodes: nodes["n4"]["metadata"]["labels"].get("nvidia.com/mig-1g.5gb.count") == "7", 60, "the labels")
    labels = a100.labels("n4")
    assert (labels["nvidia.com/mig-1g.5gb.replicas"], labels["nvidia.com/mig-1g.5gb.sharing-strategy"]) == ("1", "none")
    assert labels["nvidia.com/mig-1g.5gb.product"] == PRODUCT
    a100.hold("instance", "n4", 7, "nvidia.com/mig-1g.5gb")
    a100.wait_held("instance")
    a100.delete_all_pods()
    ask(a100, "all-disabled")
    wait_layout(a100, "success", gpu=8)


def test_a_pod_on_a_mig_device_notices_nothing_of_many_layouts(a100):
    configure(a100, "n4", "version: v1\nflags: {migStrategy: mixed}\n", {})
    layouts = {"all-balanced": {"mig-1g.5gb": 2, "mig-2g.10gb": 1, "mig-3g.20gb": 1}, "all-1g.5gb": {"mig-1g.5gb": 7}}
    ask(a100, "all-balanced")
    wait_layout(a100, "success", layouts["all-balanced"])
    a100.hold("held", "n4", 1, "nvidia.com/mig-1g.5gb")
    a100.wait_held("held")
    gave = a100.nodes["n4"].kubelet_gave()
    choice = random.Random(18)
    for _ in range(MANY_LAYOUTS):
        for _ in range(choice.randint(0, 2)):  # replaced before or while they are applied
            ask(a100, choice.choice(list(layouts)))
        layout = choice.choice(list(layouts))
        ask(a100, layout)
        wait_layout(a100, "success", layouts[layout])
        assert a100.nodes["n4"].kubelet_gave() == gave, layout
    (pod,) = a100.get("pods", "-l", "app=held")["items"]
    assert (pod["status"]["phase"], pod["status"]["containerStatuses"][0]["restartCount"]) == ("Running", 0)
    a100.delete_all_pods()


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
    wanted = {DCGM: "paused-for-mig-change", STATE: "pending"}
    dcgm.watch.wait(lambda nodes: wanted.items() <= nodes["n4"]["metadata"]["labels"].items(), 60, "the host engine to be paused")
    wait_for(lambda: "in use by sh (process " in json.dumps(dcgm.nodes["n4"].status()["devices"]), 60, "what is waited for to be named",
             lambda: dcgm.nodes["n4"].status()["devices"])
    wait_layout(dcgm, "success", gpu=3)
    wait_for(lambda: clients(dcgm) == ("true", "false", None), 60, "the labels as before", lambda: clients(dcgm))
    wait_for(lambda: running(dcgm, "nvidia-dcgm") == 1, 60, "the host engine to run again", lambda: dcgm.kubectl("get", "pods").stdout)


def test_an_agent_that_is_killed_while_programs_are_stopped_leaves_the_next_one_to_start_them(dcgm):
    ask(dcgm, "all-2g.10gb")
    dcgm.watch.wait(lambda nodes: nodes["n4"]["metadata"]["labels"].get(DCGM) == "paused-for-mig-change", 60, "the host engine to be paused")
    dcgm.kubectl("delete", "pod", "-n", NAMESPACE, dcgm.agent_pods()["n4"], "--force", "--grace-period=0")
    wait_layout(dcgm, "success", gpu=3)
    wait_for(lambda: clients(dcgm) == ("true", "false", None), 60, "the labels as before", lambda: clients(dcgm))
