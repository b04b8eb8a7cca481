"""MIG devices of a simulated machine with a kubelet: their series, their health, and changes of them."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from monitored import Fleet, Monitored  # noqa: E402
from node import wait_until  # noqa: E402

PROFILE = "3g.71gb"
RESOURCE = f"nvidia.com/mig-{PROFILE}"
# A poll that never comes: what is noticed, is noticed by an event.
CONFIG = "telemetry: {interval: 1s, names: [dcgm, accelerator]}\nhealth: {poll: 1h, probation: 1s}\n"


def smi(node: Monitored, *words: str):
    environment = dict(os.environ, PENSTOCK_SIM_STATE=str(node.root / ".penstock-sim/state"))
    subprocess.run([node.root / "usr/bin/nvidia-smi", *words], check=True, env=environment, stdout=subprocess.DEVNULL)


@pytest.fixture
def node(request):
    fleet = Fleet(request.config.getoption("--programs").resolve())
    node = fleet.add("n1", "dgx-h200", CONFIG)
    smi(node, "-i", "0", "-mig", "1")
    smi(node, "mig", "-i", "0", "-cgi", f"{PROFILE},{PROFILE}", "-C")
    yield node
    fleet.end()


def parts(node: Monitored) -> dict[str, dict]:
    """The MIG devices by number."""
    return {device["number"]: device for device in node.report()["devices"] if device.get("number") and device["health"]["state"] != "gone"}


def divided(node: Monitored, count: int = 2) -> dict[str, dict]:
    return wait_until(lambda: len(parts(node)) == count and parts(node), f"{count} MIG devices", seen=lambda: node.penstock("status").stdout)


def series(node: Monitored, family: str) -> list[tuple[dict[str, str], float]]:
    found = re.findall(rf"^{family}\{{(.*)\}} (\S+)$", node.metrics(), re.M)
    return [(dict(re.findall(r'([A-Za-z_]+)="([^"]*)"', labels)), float(value)) for labels, value in found]


def of_gpu(node: Monitored, family: str) -> list[tuple[dict[str, str], float]]:
    return [(labels, value) for labels, value in series(node, family) if labels["gpu"] == "0"]


def states(node: Monitored) -> dict[str, str]:
    return {str(device.get("number") or device["index"]): device["health"]["state"] for device in node.report()["devices"]}


def test_a_change_is_noticed_without_a_poll(node):
    divided(node)
    node.kubelet_program.healthy(2, RESOURCE)
    smi(node, "mig", "-i", "0", "-dci")
    smi(node, "mig", "-i", "0", "-dgi")
    divided(node, 0)
    node.kubelet_program.healthy(0, RESOURCE)


def test_series_are_those_of_dcgm_exporter_and_name_the_pod(node):
    divided(node)
    node.kubelet_program.healthy(2, RESOURCE)
    [device] = node.kubelet_program.start("ml", "train", resource=RESOURCE)
    instance = next(part for part in parts(node).values() if part["id"] == device)
    ids = sorted(labels["GPU_I_ID"] for labels, _ in wait_until(lambda: of_gpu(node, "DCGM_FI_DEV_FB_USED"), "memory of MIG devices"))
    number = ids[list(parts(node)).index(instance["number"])]
    node.sim("set", "0", f"process=4711:1024:python:C:40:gi{number}/ci0", "temperature=61")

    def of(family: str) -> dict[str, tuple[dict[str, str], float]]:
        return {labels.get("GPU_I_ID", ""): (labels, value) for labels, value in of_gpu(node, family)}

    wait_until(lambda: of("DCGM_FI_DEV_FB_USED")[number][1] == 1024, "the used memory", seen=lambda: of("DCGM_FI_DEV_FB_USED"))
    wait_until(lambda: of("DCGM_FI_PROF_GR_ENGINE_ACTIVE").get(number, ({}, 0))[1] > 0, "activity", seen=lambda: of("DCGM_FI_PROF_GR_ENGINE_ACTIVE"))
    for family in ("DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"):
        wait_until(lambda: of(family)[number][0].get("pod") == "train", f"the pod in {family}", seen=lambda: of(family))
        assert sorted(of(family)) == ids, "the GPU has no series of its own"
        labels = of(family)[number][0]
        assert list(labels)[:7] == ["gpu", "UUID", "pci_bus_id", "device", "modelName", "GPU_I_PROFILE", "GPU_I_ID"]
        assert (labels["gpu"], labels["GPU_I_PROFILE"], labels["namespace"], labels["container"]) == ("0", PROFILE, "ml", "main")
        assert labels["UUID"].startswith("GPU-")
        assert "pod" not in next(labels for key, (labels, _) in of(family).items() if key != number)
    wait_until(lambda: all(value == 61 for _, value in of_gpu(node, "DCGM_FI_DEV_GPU_TEMP")), "the GPU's temperature on each instance")
    assert not of_gpu(node, "DCGM_FI_PROF_PCIE_TX_BYTES"), "DCGM has it of GPUs only"
    assert [labels for labels, _ in series(node, "DCGM_FI_DEV_GPU_TEMP") if labels["gpu"] == "1"][0].get("GPU_I_ID") is None

    own = [labels for labels, _ in series(node, "accelerator_memory_used_bytes") if labels["device"] == device]
    assert own and own[0]["index"] == instance["number"]
    facts = [labels for labels, _ in series(node, "accelerator_info") if labels["device"] == device]
    assert facts[0]["profile"] == PROFILE and facts[0]["part_of"].startswith("GPU-")

    top = json.loads(node.penstock("top", "-o", "json").stdout)
    shown = next(one for one in top["devices"] if one["id"] == device)
    assert (shown["number"], shown["profile"]) == (instance["number"], PROFILE)
    assert [process["number"] for process in top["processes"] if process["pid"] == 4711] == [instance["number"]], "once"
    assert instance["number"] in node.penstock("top", "--once").stdout
    assert instance["number"] in node.penstock("plan", "--explain").stdout


def test_an_xid_of_an_instance_leaves_the_others_in_use(node):
    devices = divided(node)
    node.kubelet_program.healthy(2, RESOURCE)
    [first, second] = sorted(devices)
    ids = sorted(int(labels["GPU_I_ID"]) for labels, _ in wait_until(lambda: of_gpu(node, "DCGM_FI_DEV_FB_USED"), "memory of MIG devices"))

    # The driver does not ask for a reset of the GPU: the instance alone is concerned.
    node.sim("fault", "0", "xid", "95", "--alone", "--instance", f"{ids[0]}/0")
    wait_until(lambda: any(one["reason"].startswith("XID 95") for one in [parts(node)[first]["health"]]) or
               evidence(node, devices[first]["id"], "95"), "the XID against the first instance", seen=lambda: node.penstock("status").stdout)
    assert evidence(node, devices[first]["id"], "95") and not evidence(node, devices[second]["id"], "95")
    assert states(node)["0"] == states(node)[second] == "healthy"

    # It asks: the GPU is unhealthy, and none of its parts gets new work.
    node.sim("fault", "0", "xid", "95", "--instance", f"{ids[1]}/0")
    wait_until(lambda: states(node)["0"] == "unhealthy", "the GPU to be unhealthy", seen=lambda: node.penstock("status").stdout)
    node.kubelet_program.healthy(0, RESOURCE)


def evidence(node: Monitored, device: str, code: str) -> bool:
    return any(labels["device"] == device and labels["code"] == code for labels, _ in series(node, "accelerator_evidence_total"))
