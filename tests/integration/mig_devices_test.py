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
CONFIG = "telemetry: {interval: 1s, names: [dcgm, accelerator]}\n"


def smi(node: Monitored, *words: str):
    environment = dict(os.environ, PENSTOCK_SIM_STATE=str(node.root / ".penstock-sim/state"))
    subprocess.run([node.root / "usr/bin/nvidia-smi", *words], check=True, env=environment, stdout=subprocess.DEVNULL)


@pytest.fixture
def node(request):
    fleet = Fleet(request.config.getoption("--programs").resolve())
    home = fleet.home / "n"  # short, because the names of resources are in the paths of sockets
    home.mkdir()
    home.chmod(0o755)
    node = fleet.nodes["n"] = Monitored(home, fleet.programs, "dgx-h200", "n", CONFIG, probation="1s")
    # What is noticed in time is noticed by an event.
    node.config.write_text(node.config.read_text().replace("poll: 100ms", "poll: 1h"))
    node.start_agent()
    smi(node, "-i", "0", "-mig", "1")
    smi(node, "mig", "-i", "0", "-cgi", f"{PROFILE},{PROFILE}", "-C")
    yield node
    fleet.end()


def parts(node: Monitored) -> dict[str, dict]:
    """The MIG devices by number."""
    return {device["number"]: device for device in node.report()["devices"] if device.get("number") and device["health"]["state"] != "gone"}


def divided(node: Monitored) -> dict[str, dict]:
    return wait_until(lambda: len(parts(node)) == 2 and parts(node), "2 MIG devices", seen=lambda: node.penstock("status").stdout)


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
    wait_until(lambda: not parts(node), "no MIG devices", seen=lambda: node.penstock("status").stdout)
    node.kubelet_program.healthy(0, RESOURCE)


def test_series_are_those_of_dcgm_exporter_and_name_the_pod(node):
    divided(node)
    node.kubelet_program.healthy(2, RESOURCE)
    [device] = node.kubelet_program.start("ml", "train", resource=RESOURCE)
    instance = next(part for part in parts(node).values() if part["id"] == device)
    # One MIG device is measured after the other.
    rows = wait_until(lambda: len(now := of_gpu(node, "DCGM_FI_DEV_FB_USED")) == 2 and any("pod" in labels for labels, _ in now) and now,
                      "two MIG devices, and the pod of one", seen=lambda: of_gpu(node, "DCGM_FI_DEV_FB_USED"))
    ids = sorted(labels["GPU_I_ID"] for labels, _ in rows)
    [number] = [labels["GPU_I_ID"] for labels, _ in rows if "pod" in labels]
    node.sim("set", "0", f"process=4711:1024:python:C:40:gi{number}/ci0", "temperature=61")

    def of(family: str) -> dict[str, tuple[dict[str, str], float]]:
        return {labels.get("GPU_I_ID", ""): (labels, value) for labels, value in of_gpu(node, family)}

    wait_until(lambda: of("DCGM_FI_DEV_FB_USED")[number][1] == 1024, "the used memory", seen=lambda: of("DCGM_FI_DEV_FB_USED"))
    wait_until(lambda: of("DCGM_FI_PROF_GR_ENGINE_ACTIVE").get(number, ({}, 0))[1] > 0, "activity", seen=lambda: of("DCGM_FI_PROF_GR_ENGINE_ACTIVE"))
    for family in ("DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"):
        wait_until(lambda: sorted(now := of(family)) == ids and now[number][0].get("pod") == "train", f"the pod in {family}", seen=lambda: of(family))
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
    rows = wait_until(lambda: len(now := of_gpu(node, "DCGM_FI_DEV_FB_USED")) == 2 and now, "memory of both MIG devices",
                      seen=lambda: of_gpu(node, "DCGM_FI_DEV_FB_USED"))
    ids = sorted(int(labels["GPU_I_ID"]) for labels, _ in rows)

    def concerned() -> list[str]:
        found = {labels["device"] for labels, _ in series(node, "accelerator_evidence_total") if labels["code"] == "95"}
        assert found <= {device["id"] for device in devices.values()}
        return [number for number, device in devices.items() if device["id"] in found]

    # The driver does not ask for a reset of the GPU: the instance alone is concerned, and only until then.
    node.sim("fault", "0", "xid", "95", "--alone", "--instance", f"{ids[0]}/0")
    [first] = wait_until(concerned, "the XID", seen=lambda: node.penstock("status").stdout)
    [second] = set(devices) - {first}
    assert states(node)["0"] == states(node)[second] == "healthy"
    wait_until(lambda: states(node)[first] == "healthy", "the end of its probation", seen=lambda: node.penstock("status").stdout)

    def xids() -> dict[str, float]:
        return {labels["GPU_I_ID"]: value for labels, value in of_gpu(node, "DCGM_FI_DEV_XID_ERRORS")}
    wait_until(lambda: xids() == {str(ids[0]): 95, str(ids[1]): 0}, "the series of the XID", seen=xids)

    # It asks: the GPU is unhealthy, and none of its parts gets new work.
    node.sim("fault", "0", "xid", "95", "--instance", f"{ids[1]}/0")
    wait_until(lambda: states(node)["0"] == "unhealthy", "the GPU to be unhealthy", seen=lambda: node.penstock("status").stdout)
    node.kubelet_program.healthy(0, RESOURCE)
