"""Each node's condition says whether its accelerators are ready, and why not; files and Events follow; at rest nothing is written."""
import time
from pathlib import Path

import pytest
from actors import wait_for
from fleet import Fleet
from witnesses import Audit

CONDITION = "penstock.io/AcceleratorsReady"
FOLDER = "/run/nvidia/validations"
VALUES = {"penstock": {"validation": {"directory": FOLDER}}}


@pytest.fixture
def validated(fleet):
    """Agents that keep the files of the validator."""
    fleet.clear()
    fleet.ensure_installed(VALUES)
    fleet.wait_advertised(120)
    fleet.wait_rolled_out()
    return fleet


def condition(node: dict) -> dict:
    return next((one for one in node.get("status", {}).get("conditions", []) if one["type"] == CONDITION), {})


def says(nodes: dict, name: str, status: str, reason: str) -> bool:
    now = condition(nodes.get(name, {}))
    return (now.get("status"), now.get("reason")) == (status, reason)


def wait_condition(fleet: Fleet, name: str, status: str, reason: str, deadline: float = 60) -> float:
    try:
        return fleet.watch.wait(lambda nodes: says(nodes, name, status, reason), deadline, f"{name} to be {status} ({reason})")
    except AssertionError:
        raise AssertionError(f"{name}: {condition(fleet.get('node', name))}\n{fleet.nodes[name].penstock('validate', check=False).stdout}\n{fleet.logs()}") from None


def conditions_written(fleet: Fleet, begin: float) -> list[dict]:
    return [event for event in fleet.audit.writes(begin) if "fieldManager=penstock-condition" in event["requestURI"]]


def ready_files(fleet: Fleet, name: str) -> set[str]:
    return {Path(file).name for file in fleet.nodes[name].view.below(FOLDER)}


def wait_files(fleet: Fleet, name: str, files: set[str]):
    wait_for(lambda: ready_files(fleet, name) == files, 60, f"the files on {name} to be {files}", lambda: ready_files(fleet, name))


def test_a_driver_that_is_unloaded_shows_on_its_node_alone_until_it_is_back(validated, measure):
    fleet, all_files = validated, {"driver-ready", "toolkit-ready", "plugin-ready"}
    for name in fleet.nodes:
        wait_condition(fleet, name, "True", "AllStepsPassed")
        wait_files(fleet, name, all_files)
    fleet.wait_quiet()
    since = condition(fleet.get("node", "n4"))["lastTransitionTime"]
    begin = time.time()
    with measure("a driver is unloaded: the condition of the Node is False", 5) as it:
        fleet.nodes["n4"].machine.fault("driver", "unload")
        it.done = wait_condition(fleet, "n4", "False", "DriverFailed")
    now = condition(fleet.get("node", "n4"))
    assert now["message"].startswith("driver: nvidia: ") and now["lastTransitionTime"] > since
    wait_files(fleet, "n4", set())
    assert fleet.nodes["n4"].penstock("validate", check=False).returncode == 1
    wait_for(lambda: any(event["reason"] == "ValidationFailed" and "driver" in event["message"] for event in fleet.events("n4")), 60, "an Event with the cause",
             lambda: [(event["reason"], event["message"]) for event in fleet.events("n4")])
    with measure("a driver is loaded: the condition of the Node is True", 5) as it:
        fleet.nodes["n4"].machine.heal()
        it.done = wait_condition(fleet, "n4", "True", "AllStepsPassed")
    wait_files(fleet, "n4", all_files)
    for name in fleet.nodes:
        assert condition(fleet.get("node", name))["status"] == "True"
    written = conditions_written(fleet, begin)
    assert {event["requestURI"].split("/")[4] for event in written} == {"n4"}, Audit.told(written, begin)
    fleet.wait_advertised(60)


def test_a_device_file_that_is_missing_shows_on_the_node(validated):
    fleet, node = validated, validated.nodes["n4"]
    wait_condition(fleet, "n4", "True", "AllStepsPassed")
    file = node.machine.root / "dev/nvidia-uvm"
    file.rename(file.with_name("aside"))
    wait_condition(fleet, "n4", "False", "DeviceNodesFailed")
    assert "/dev/nvidia-uvm does not exist" in condition(fleet.get("node", "n4"))["message"]
    file.with_name("aside").rename(file)
    wait_condition(fleet, "n4", "True", "AllStepsPassed")


def test_the_restart_of_an_agent_changes_no_condition(validated):
    fleet = validated
    wait_condition(fleet, "n4", "True", "AllStepsPassed")
    fleet.wait_quiet()
    before, begin = condition(fleet.get("node", "n4")), time.time()
    fleet.nodes["n4"].kill_agent()
    wait_for(lambda: fleet.nodes["n4"].penstock("validate", check=False).returncode == 0, 60, "the new agent to have validated its node")
    # The first write of an agent follows its first reading of the NodeState, some time after it has begun.
    wait_for(lambda: any(event["verb"] == "get" and event.get("objectRef", {}).get("resource") == "nodestates" for event in fleet.audit.between(begin)), 60,
             "the new agent to have read its NodeState")
    fleet.wait_quiet()
    assert condition(fleet.get("node", "n4")) == before
    written = conditions_written(fleet, begin)
    assert not written, Audit.told(written, begin)


def test_go233_a_node_whose_gpus_are_all_held_is_validated(validated):
    """NVIDIA's validator asks for a GPU, and waits for it behind users' pods."""
    fleet = validated
    fleet.hold("all", "n4", 1)
    fleet.wait_held("all")
    assert not [pod for pod in fleet.get("pods", "-A")["items"] if "valid" in pod["metadata"]["name"]]
    fleet.nodes["n4"].machine.fault("driver", "unload")
    wait_condition(fleet, "n4", "False", "DriverFailed")
    fleet.nodes["n4"].machine.heal()
    wait_condition(fleet, "n4", "True", "AllStepsPassed")
    fleet.check()


def test_at_rest_no_condition_is_written(validated):
    fleet = validated
    for name in fleet.nodes:
        wait_condition(fleet, name, "True", "AllStepsPassed")
    fleet.check()
    fleet.wait_quiet(20)


def test_labels_of_the_node_switch_services_of_its_agent_off(validated):
    fleet, pod = validated, "holds-n1"
    fleet.hold(pod, "n1", 2)
    fleet.wait_held(pod)
    labels = {"nvidia.com/gpu.deploy.device-plugin": "false", "nvidia.com/gpu.deploy.gpu-feature-discovery": "paused-for-driver-upgrade"}
    try:
        fleet.kubectl("label", "node", "n1", *(f"{key}={value}" for key, value in labels.items()))
        wait_for(lambda: "nvidia.com/gpu.product" not in fleet.labels("n1"), 60, "the labels to be removed", lambda: fleet.labels("n1"))
        wait_for(lambda: len(fleet.nodes["n1"].kubelet_has()) <= 2, 60, "the kubelet to keep the devices that pods hold",
                 lambda: fleet.nodes["n1"].kubelet_has())
        assert len(set().union(*fleet.nodes["n1"].kubelet_gave().values())) == 2, "pods keep their devices"
    finally:
        fleet.kubectl("label", "node", "n1", *(f"{key}-" for key in labels))
    fleet.wait_advertised(60)
    wait_for(lambda: "nvidia.com/gpu.product" in fleet.labels("n1"), 60, "the labels to be back")
