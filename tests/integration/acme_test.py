"""A made-up vendor beside NVIDIA's GPUs: an agent that is linked with one more row of vendors (tests/acme) discovers, offers, hands out, measures and resets its
devices, and the product's own agent contains nothing of it."""
import json
import subprocess
from pathlib import Path

import pytest

from acme import Acme
from node import Node, wait_until


@pytest.fixture
def node(make_node) -> Node:
    """Eight GPUs and four devices of Acme, not yet with an agent."""
    node = make_node(config="labels: {featuresFile: HOME/features}\n")
    node.programs = node.programs.parent / "acme"
    node.config.write_text(node.config.read_text().replace("HOME", str(node.home)))
    node.listen = f"unix:{node.home}/page.sock"
    node.acme = Acme(node.root, 4)
    return node


def devices(node: Node) -> dict[str, dict]:
    return {device["id"]: device for device in node.report()["devices"] if device["vendor"] == "acme"}


def labels(node: Node) -> dict[str, str]:
    lines = (node.home / "features").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line.startswith("acme.com/"))


def metrics(node: Node) -> str:
    return subprocess.run(["curl", "-sS", "--unix-socket", node.home / "page.sock", "http://node/metrics"], check=True, capture_output=True, text=True).stdout


def run(node: Node, *words: str) -> str:
    return node.penstock("run", *words, "--", "sh", "-c", "echo ${ACME:-none} ${NVIDIA_VISIBLE_DEVICES:-none}").stdout.strip()


def test_devices_of_two_vendors_stand_side_by_side(node):
    node.start_agent(devices=12)
    found = devices(node)
    assert {(name, one["model"], one["memoryBytes"] >> 20, one["resource"]) for name, one in found.items()} == \
        {(f"A-{i}", "Acme Large", 65536, "acme.com/gpu") for i in range(4)}
    assert {vendor["vendor"]: vendor["driver"] for vendor in node.report()["vendors"]}["acme"] == "1.0"
    assert labels(node) == {"acme.com/gpu.count": "4", "acme.com/gpu.first": "A-0"}
    # A program gets devices of the vendor whose it asks for, and nothing of the other's.
    assert run(node, "--device", "A-2,A-3") == "A-2,A-3 none"
    assert run(node, "--model", "Acme*", "--gpus", "2") == "A-0,A-1 none"
    assert run(node, "--model", "*A100*", "--gpus", "1").startswith("none ")


def test_a_device_of_another_kind_is_called_by_its_kind(node):
    node.start_agent(devices=12)
    refused = node.penstock("run", "--device", "A-1,A-1", "--", "true", check=False)
    assert "named twice" in refused.stderr
    node.start("--device", "A-1", "--", "sleep", "1000")
    wait_until(lambda: any(holder["device"] == "A-1" for holder in node.holders()), "A-1 to be held")
    held = node.penstock("run", "--device", "A-1", "--wait", "0s", "--", "true", check=False)
    assert "accelerator 1 (A-1): held by" in held.stderr
    many = node.penstock("run", "--gpus", "13", "--", "true", check=False)
    assert "requested 13 devices, but this node has 12 devices" in many.stderr


def test_a_fault_withdraws_a_device_and_a_reset_brings_it_back(node):
    node.config.write_text(node.config.read_text().replace("health: {", "health: {reset: idle, "))
    node.start_agent(devices=12)
    node.acme.set("A-1", fault="ecc 3")  # a reset is needed
    wait_until(lambda: "A-1" in node.log() and "from=healthy to=unhealthy" in node.log(), "A-1 to be withdrawn")
    wait_until(lambda: devices(node)["A-1"]["health"]["state"] == "healthy", "A-1 to return after its reset")
    assert "fault=" not in (node.acme.folder / "devices/A-1").read_text()


def test_values_that_it_measures_are_on_the_page(node):
    node.start_agent(devices=12)
    shown = wait_until(lambda: (page := metrics(node)) if 'accelerator_utilization_ratio{device="A-3"' in (page := metrics(node)) else None, "samples")
    line = next(line for line in shown.splitlines() if line.startswith('accelerator_utilization_ratio{device="A-3"'))
    assert line.split()[-1] == "0.37"
    assert 'penstock_driver_present{vendor="acme",version="1.0"} 1' in shown


def test_parts_of_a_device_and_their_parts_are_offered_in_its_place(node):
    node.acme.divide("A-0", 7)
    node.start_agent(devices=19)
    found = devices(node)
    assert found["A-0"]["withheld"] == "it is divided into parts"
    assert run(node, "--device", "A-0-6") == "A-0-6 none"
    refused = node.penstock("run", "--device", "A-0", "--", "true", check=False)
    assert "it is divided into parts" in refused.stderr
    node.acme.divide("A-0-6", 2)
    wait_until(lambda: "A-0-6-1" in devices(node), "the parts of a part")
    wait_until(lambda: devices(node)["A-0-6"].get("withheld"), "the part that was divided to be withheld")
    assert run(node, "--device", "A-0-6-1") == "A-0-6-1 none"
    node.acme.remove("A-0-6-0")
    node.acme.remove("A-0-6-1")
    wait_until(lambda: "A-0-6-0" not in devices(node) and not devices(node)["A-0-6"].get("withheld"), "the part to be whole again")
    assert run(node, "--device", "A-0-6") == "A-0-6 none"


def test_sixteen_devices_of_seven_parts_each(make_node):
    node = make_node(listen="off")
    node.programs = node.programs.parent / "acme"
    acme = Acme(node.root, 16)
    for index in range(16):
        acme.divide(f"A-{index}", 7)
    node.start_agent(devices=8 + 16 + 112)
    assert run(node, "--model", "Acme Large 1/7", "--gpus", "112").count("A-") == 112


def test_without_a_driver_there_is_nothing_of_it_but_the_reason(node):
    node.acme.remove_driver()
    node.start_agent(devices=8)
    absent = next(vendor for vendor in node.report()["vendors"] if vendor["vendor"] == "acme")
    assert "there is no Acme driver at" in absent["reason"]
    node.acme.install("2.0")
    wait_until(lambda: len(devices(node)) == 4, "the devices of the driver that came")


def test_the_product_contains_nothing_of_it(request):
    programs: Path = request.config.getoption("--programs")
    for name in ("penstock", "penstock-agent", "penstock-worker", "penstock-hook", "penstock-runtime"):
        assert b"acme" not in (programs / name).read_bytes().lower(), name
    for name in ("penstock", "penstock-agent", "penstock-worker"):
        assert b"acme" in (programs.parent / "acme" / name).read_bytes().lower(), name
    asked = subprocess.run([programs / "penstock-worker", "acme"], capture_output=True, text=True, check=False)
    assert asked.returncode == 2
    assert json.dumps("acme") in asked.stderr
