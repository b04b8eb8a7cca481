"""Each of the simulated machines with AMD's accelerators (tests/support/amd.py), as the agent shows it: devices, modes, labels, links, and names as AMD's tools have them."""
import json
import subprocess

import pytest

from amd import MACHINES, Amd
from node import Node, wait_until


@pytest.fixture
def node(make_node) -> Node:
    """A machine without GPUs of NVIDIA, not yet with an agent."""
    return on(make_node, "empty")


def on(make_node, machine: str) -> Node:
    node = make_node(machine=machine, config="labels: {featuresFile: HOME/features}\ntelemetry: {interval: 1s}\n")
    node.config.write_text(node.config.read_text().replace("HOME", str(node.home)))
    node.listen = f"unix:{node.home}/page.sock"
    return node


def strategy(node: Node, name: str):
    node.config.write_text(f"{node.config.read_text()}parts: {{strategy: {name}}}\n")


def devices(node: Node) -> dict[str, dict]:
    return {device["id"]: device for device in node.report()["devices"] if device["vendor"] == "amd"}


def labels(node: Node) -> dict[str, str]:
    file = node.home / "features"
    lines = file.read_text().splitlines() if file.exists() else []
    return {key.removeprefix("amd.com/gpu."): value for key, value in (line.split("=", 1) for line in lines) if key.startswith("amd.com/gpu.")}


def labelled(node: Node, **expected: str):
    wanted = {name.replace("_", "-"): value for name, value in expected.items()}
    wait_until(lambda: wanted.items() <= labels(node).items(), "its labels", seen=lambda: labels(node))


def series(node: Node, family: str) -> dict[str, float]:
    """The values of one family by device."""
    page = subprocess.run(["curl", "-sS", "--unix-socket", node.home / "page.sock", "http://node/metrics"], check=True, capture_output=True, text=True).stdout
    found = (line.removeprefix(f'{family}{{device="').split('"', 1) for line in page.splitlines() if line.startswith(f'{family}{{device="'))
    return {device: float(rest.split()[-1]) for device, rest in found}


def sampled(node: Node, family: str, count: int) -> dict[str, float]:
    found: dict[str, float] = {}

    def complete() -> bool:
        found.clear()
        found.update(series(node, family))
        return len(found) == count
    wait_until(complete, f"{family} of {count} devices", seen=lambda: found)
    return found


def named(node: Node) -> dict[str, list[str]]:
    """The device files of each name that containers can ask for."""
    def specs() -> list[dict]:
        return [spec for file in node.cdi_dir.glob("*.json") if (spec := json.loads(file.read_text()))["kind"] == "amd.com/gpu"]
    wait_until(specs, "the specification for containers")
    return {device["name"]: sorted(one["path"] for one in device["containerEdits"]["deviceNodes"]) for spec in specs() for device in spec["devices"]}


def models(node: Node) -> set[tuple]:
    return {(one["model"], one["memoryBytes"] >> 30) for one in devices(node).values()}


def test_two_gpus_of_an_mi250x_are_two_devices_and_cannot_be_divided(node):
    amd = Amd(node.root, "mi250x")
    node.start_agent()
    assert set(devices(node)) == {amd.id(gpu) for gpu in range(8)} and models(node) == {("AMD Instinct MI250X", 64)}
    labelled(node, device_id="7408", product_name="AMD_Instinct_MI250X", vram="64G", cu_count="110", simd_count="440", compute_partitioning_supported="false",
             memory_partitioning_supported="false")
    assert "compute-memory-partition" not in labels(node)
    assert {"/dev/dri/card7", "/dev/dri/renderD135"} <= set(named(node)["7"])
    power = sampled(node, "accelerator_power_watts", 8)
    assert [power[amd.id(gpu)] for gpu in range(4)] == [140, 0, 140, 0], "the first of a card measures both"
    assert set(sampled(node, "accelerator_temperature_celsius", 8).values()) == {47}


@pytest.mark.parametrize("mode, parts, units", [("SPX", 1, 80), ("DPX", 2, 40), ("CPX", 4, 20)])
def test_an_mi308x_has_four_chiplets_in_steps_of_eight_minors(node, mode, parts, units):
    amd = Amd(node.root, "mi308x", mode=mode)
    strategy(node, "mixed")
    node.start_agent(devices=8 if parts == 1 else 8 + 8 * parts)
    offered = [one for one in devices(node).values() if one.get("resource") == f"amd.com/{mode.lower()}_nps1"]
    assert len(offered) == 8 * parts and {one["memoryBytes"] for one in offered} == {(192 << 30) // parts}
    labelled(node, device_id="74a2", product_name="AMD_Instinct_MI308X_OAM", cu_count=str(units), compute_memory_partition=f"{mode.lower()}_nps1",
             compute_partitioning_supported="true")
    files = named(node)
    assert {f"/dev/dri/renderD{amd.minors[1][parts - 1]}"} <= set(files[str(2 * parts - 1)]) and amd.minors[1][0] == 136


@pytest.mark.parametrize("mode, parts", [("QPX", 4), ("CPX", 8)])
def test_an_mi355x_has_partitions_in_the_memory_mode_nps2(node, mode, parts):
    Amd(node.root, "mi355x", mode=mode, memory="NPS2")
    strategy(node, "mixed")
    node.start_agent(devices=8 + 8 * parts)
    offered = [one for one in devices(node).values() if one.get("resource") == f"amd.com/{mode.lower()}_nps2"]
    assert len(offered) == 8 * parts and {one["memoryBytes"] for one in offered} == {(288 << 30) // parts}
    labelled(node, device_id="75a3", product_name="AMD_Instinct_MI355_OAM", vram=f"{288 // parts}G", cu_count=str(256 // parts),
             compute_memory_partition=f"{mode.lower()}_nps2", memory_partitioning_supported="true")
    assert set(named(node)) >= {str(number) for number in range(8 * parts)} | {"all"}


def test_both_vendors_have_their_own_names_resources_and_files(make_node):
    node = on(make_node, "dgx-a100")
    amd = Amd(node.root, "two-vendors")
    node.start_agent(devices=16)
    assert {(one["vendor"], one["resource"]) for one in node.report()["devices"]} == {("nvidia", "nvidia.com/gpu"), ("amd", "amd.com/gpu")}
    labelled(node, device_id="740f", product_name="AMD_Instinct_MI210", vram="64G", cu_count="104")
    assert {"/dev/dri/card16", "/dev/dri/renderD144"} <= set(named(node)["0"])
    assert set(devices(node)) == {amd.id(gpu) for gpu in range(8)}


def test_what_is_odd_about_a_machine_costs_only_what_cannot_be_known(node):
    amd = Amd(node.root, "oddities")
    expected = {amd.id(gpu) for gpu in (0, 3, 4, 5, 6, 7)} | {f"GPU-{amd.address(gpu)}" for gpu in (1, 2)}
    node.start_agent(devices=8 + 63 - 1)  # one has no minor, one no node in KFD
    found = devices(node)
    assert {one for one in found if found[one].get("parts")} == expected, "the two with one id have their address for it"
    assert all(one.startswith("GPU-") and int(one[4:20], 16) > 1 << 63 for one in expected if ":" not in one)
    assert {one["model"] for one in found.values()} == {"AMD Instinct MI300X OAM", "AMD Instinct MI300X"}, "the driver does not say it of two"
    assert found[f"{amd.id(4)}-0"]["memoryBytes"] == 0 and found[f"{amd.id(4)}-1"]["memoryBytes"] == 24 << 30
    assert found[amd.id(6)]["memoryBytes"] == 192 << 30, "the sum of the partitions': the driver answers with ones"
    assert found[amd.id(3)]["parts"] == 7 and found[amd.id(7)]["parts"] == 7
    files = named(node)
    assert f"/dev/dri/renderD{amd.minors[1][3]}" in files[f"GPU-{amd.address(1)}-3"], "the other spelling of its platform device"
    assert not any("/dev/dri/card0" in one for one in files.values()), "the BMC's"
    assert len(sampled(node, "accelerator_temperature_celsius", 7)) == 7, "one has an unknown version of gpu_metrics"


@pytest.mark.parametrize("model", sorted(MACHINES))
def test_counters_grow_with_the_clock(node, model):
    now = [0.0]
    amd = Amd(node.root, model, answers=True, clock=lambda: now[0])
    try:
        divided = sum(min(amd.parts(gpu), len(amd.minors[gpu])) for gpu in range(8)) - 1 if amd.modes[0] != "SPX" else 0
        node.start_agent(devices=8 + divided)
        first = sampled(node, "accelerator_energy_joules_total", 7 if divided else 8)[amd.id(0)]
        now[0] = 100.0
        wait_until(lambda: series(node, "accelerator_energy_joules_total").get(amd.id(0)) == first + 14000, "100 s at 140 W")
    finally:
        node.kill_agent()
        amd.close()
