"""A made-up vendor beside NVIDIA's GPUs: an agent that is linked with one more row of vendors (tests/acme) discovers, offers, hands out, measures and resets its
devices, and the product's own agent contains nothing of it."""
import collections
import itertools
import json
import os
import random
import signal
import subprocess
from pathlib import Path

import pytest

from acme import ENOUGH, STATE, WISH, Acme
from api_server import ApiServer
from broker import exchange
from mig_machine import parts
from monitored import Kubelet
from node import Node, wait_until

MIG_WISH, MIG_STATE = "nvidia.com/mig.config", "nvidia.com/mig.config.state"


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
    file = node.home / "features"
    lines = file.read_text().splitlines() if file.exists() else []
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
    wait_until(lambda: labels(node) == {"acme.com/gpu.count": "4", "acme.com/gpu.first": "A-0"}, "its labels", seen=lambda: labels(node))
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
    assert found["A-0"]["parts"] == 7 and found["A-0"]["withheld"] == ""
    assert run(node, "--device", "A-0-6") == "A-0-6 none"
    refused = node.penstock("run", "--device", "A-0", "--", "true", check=False)
    assert "it is divided into parts" in refused.stderr
    node.acme.set("A-0", fault="ecc 2")
    broken = wait_until(lambda: (one := node.penstock("run", "--device", "A-0-1", "--wait", "0", "--", "true", check=False)).returncode and
                        "code 2" in one.stderr and one, "a refusal by the fault")
    assert "A-0, of which it is a part: code 2" in broken.stderr
    node.acme.set("A-0", fault=None)
    wait_until(lambda: node.penstock("run", "--device", "A-0-1", "--wait", "0", "--", "true", check=False).returncode == 0, "the parts to be usable again")
    node.acme.divide("A-0-6", 2)
    wait_until(lambda: "A-0-6-1" in devices(node), "the parts of a part")
    wait_until(lambda: devices(node)["A-0-6"].get("parts"), "the part that was divided to say so")
    assert run(node, "--device", "A-0-6-1") == "A-0-6-1 none"
    node.acme.remove("A-0-6-0")
    node.acme.remove("A-0-6-1")
    wait_until(lambda: "A-0-6-0" not in devices(node) and not devices(node)["A-0-6"].get("parts"), "the part to be whole again")
    assert run(node, "--device", "A-0-6") == "A-0-6 none"


def test_parts_follow_their_device_to_another_allocator(node):
    node.acme.divide("A-0", 2)
    node.start_agent(devices=14)
    assert run(node, "--device", "A-0-1") == "A-0-1 none"
    held = node.start("--device", "A-0-1", "--", "sleep", "1000")
    wait_until(lambda: any(holder["device"] == "A-0-1" for holder in node.holders()), "A-0-1 to be held")
    refused = node.penstock("assign", "A-0", "none", check=False)
    assert "(A-0-1) is held by" in refused.stderr
    moving = node.start_penstock("assign", "A-0", "none", "--wait", "10m")
    wait_until(lambda: "being moved to no allocator: held by" in devices(node)["A-0-1"].get("withheld", ""), "A-0-1 to wait for its holder")
    assert "not assigned to local users" in node.penstock("run", "--device", "A-0-0", "--wait", "0", "--", "true", check=False).stderr
    held.kill()
    held.communicate()
    assert "device 5: local -> none: acknowledged" in moving.communicate()[0] and moving.returncode == 0
    node.kill_agent()
    node.start_agent(devices=14)
    assert not devices(node)["A-0-1"]["allocator"]
    node.penstock("assign", "A-0", "default")
    assert run(node, "--device", "A-0-1") == "A-0-1 none"


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

    def reasons() -> list[str]:
        return [vendor["reason"] for vendor in node.report()["vendors"] if vendor["vendor"] == "acme"]
    wait_until(reasons, "the first look of its worker", seen=lambda: node.report()["vendors"])
    assert "there is no Acme driver at" in reasons()[0]
    node.acme.install("2.0")
    wait_until(lambda: len(devices(node)) == 4, "the devices of the driver that came")


class Wishing:
    """The node in a cluster and with a kubelet; Acme's devices can be divided by their driver, as a label of the Node asks."""

    def __init__(self, node: Node, programs: Path):
        self.node, self.api, self.kubelet = node, ApiServer(node.home), Kubelet(node.home, programs)
        node.acme.end()
        self.acme = node.acme = Acme(node.root, 2, divisible=True)
        node.name, node.kubelet = "n1", self.kubelet.dir
        node.config.write_text(f"{node.config.read_text()}cluster: {{kubeconfig: {self.api.kubeconfig}}}\n")
        self.label({})

    def label(self, labels: dict[str, str]):
        self.api.put("/api/v1/nodes/n1", "Node", metadata={"labels": labels})

    def wish(self, name: str, nvidia: str | None = None):
        """Which layouts the labels of the two vendors name."""
        self.label({WISH: name} | ({MIG_WISH: nvidia} if nvidia else {}))

    def states(self) -> tuple:
        """The labels as written last that say how the layouts stand, of Acme and of NVIDIA."""
        written = [body["metadata"]["labels"] for _, path, body in list(self.api.writes) if path == "/api/v1/nodes/n1" and "labels" in body.get("metadata", {})]
        return tuple(written[-1].get(key) for key in (STATE, MIG_STATE)) if written else (None, None)

    def until(self, acme: str | None, nvidia: str | None = None):
        wait_until(lambda: self.states() == (acme, nvidia), f"the layouts to be {acme}, {nvidia}", seen=lambda: (self.states(), self.layout(), self.node.log()[-3000:]))

    def layout(self) -> dict:
        return (self.node.report() or {}).get("layout", {})

    def reason(self, *words: str) -> str:
        """Why the layout is not there, once that has these words; while it is tried again there is none."""
        def has() -> str | None:
            why = self.layout().get("reason", "")
            return why if all(word in why for word in words) else None
        return wait_until(has, f"a reason with {words}", seen=lambda: (self.layout(), self.node.log()[-3000:]))

    def ask(self, parts: dict[str, int], **keys) -> dict:
        """Asks the agent itself for the same parts of all devices; the last line of its answer."""
        rule = {"allDevices": True, "partitioned": True, "parts": [{"profile": profile, "count": count} for profile, count in parts.items()]}
        return exchange(self.node.run_dir, {"op": "divide", "layout": json.dumps({"name": "asked", "rules": [rule]})} | keys)[-1]

    def end(self):
        self.kubelet.stop()
        self.node.kill_agent()
        self.api.down()


@pytest.fixture
def wishing(node, request):
    made = Wishing(node, request.config.getoption("--programs").resolve())
    node.start_agent(devices=10)
    yield made
    made.end()


def divided(acme: Acme, device: str) -> dict[str, int]:
    """How many parts of each profile a device has."""
    return dict(collections.Counter(acme.parts(device).values()))


def test_labels_of_two_vendors_divide_the_devices_of_each(wishing):
    acme, kubelet = wishing.acme, wishing.kubelet
    kubelet.healthy(2, "acme.com/gpu")
    wishing.wish("all-1of4", nvidia="all-3g.20gb")
    wishing.until("success", "success")
    assert [divided(acme, device) for device in ("A-0", "A-1")] == [{"1of4": 4}] * 2
    theirs = parts(wishing.node)
    assert theirs == {str(gpu): ["3g.20gb"] * 2 for gpu in range(8)}
    kubelet.healthy(8, "acme.com/1of4")
    kubelet.healthy(16, "nvidia.com/mig-3g.20gb")
    # Neither label says anything of the other's devices, and a layout of one is none of the other.
    wishing.wish("all-3g.20gb", nvidia="all-3g.20gb")
    wishing.until("failed", "success")
    reason = wishing.reason('"all-3g.20gb" is not among the layouts made from this node\'s devices')
    assert "all-1of2" in reason and "all-1g" not in reason
    assert divided(acme, "A-0") == {"1of4": 4}, "what was applied stays"
    wishing.wish("all-disabled", nvidia="all-3g.20gb")
    wishing.until("success", "success")
    assert (acme.mode("A-0"), acme.parts("A-0"), parts(wishing.node)) == ("off", {}, theirs)
    kubelet.healthy(2, "acme.com/gpu")
    kubelet.healthy(16, "nvidia.com/mig-3g.20gb")


def test_switches_and_options_of_one_vendors_users_say_nothing_of_another(wishing, node):
    node.config.write_text(f"{node.config.read_text()}parts: {{migStrategy: single, defaultLayout: all-7g.40gb}}\n")
    node.agent.send_signal(signal.SIGHUP)
    wishing.until(None, "success")
    assert wishing.acme.parts("A-0") == {}, "the default names a layout of MIG"
    wishing.kubelet.healthy(8, "nvidia.com/gpu")
    wishing.label({"nvidia.com/gpu.deploy.mig-manager": "false", MIG_WISH: "all-disabled", WISH: "all-1of2"})
    wait_until(lambda: wishing.states()[0] == "success", "Acme's devices to be divided", seen=wishing.states)
    wishing.kubelet.healthy(4, "acme.com/1of2")
    assert parts(node) == {str(gpu): ["7g.40gb"] for gpu in range(8)}, "no label divides these now"


def test_parts_within_parts_are_offered_held_measured_and_go_again(wishing, node):
    acme, kubelet = wishing.acme, wishing.kubelet
    wishing.wish("all-1of8")
    wishing.until("success")
    assert [divided(acme, device) for device in ("A-0", "A-1")] == [{"(1of2)": 2, "1of8": 8}] * 2
    kubelet.healthy(16, "acme.com/1of8")
    found = devices(node)
    assert found["A-0"]["withheld"] and all(found[part]["withheld"] for part, profile in acme.parts("A-0").items() if profile == "(1of2)")
    [held] = kubelet.start("ml", "train", 1, "acme.com/1of8")
    assert found[held]["memoryBytes"] == (ENOUGH // 8) << 20 and f"ACME={held}" in str(kubelet.given())
    wait_until(lambda: [one for one in node.holders() if one["device"] == held and one.get("pod") == "train"], "the pod to hold it", seen=node.holders)
    series = f'accelerator_utilization_ratio{{device="{held}"'
    page = wait_until(lambda: text if series in (text := metrics(node)) else None, "its samples")
    assert next(line for line in page.splitlines() if line.startswith(series)).endswith(" 0.37")
    # What is held stays, with the part in which it lies; the other device becomes whole at once.
    wishing.wish("all-disabled")
    wishing.until("failed")
    wishing.reason(held, "held by pod ml/train")
    device, other = ("A-0", "A-1") if held.startswith("A-0") else ("A-1", "A-0")
    wait_until(lambda: acme.parts(other) == {}, "the other device to be whole", seen=lambda: acme.parts(other))
    assert held in acme.parts(device)
    node.kill_agent()
    node.launch_agent()
    wait_until(lambda: node.report() and [one for one in node.holders() if one["device"] == held], "the next agent to know the holder")
    wishing.reason(held, "held by pod ml/train")
    assert held in acme.parts(device)
    kubelet.end("ml", "train")
    wishing.until("success")
    assert (acme.parts("A-0"), acme.parts("A-1"), acme.mode(device)) == ({}, {}, "off")
    kubelet.healthy(2, "acme.com/gpu")


def test_what_cannot_be_is_refused_and_changes_nothing(wishing):
    acme = wishing.acme
    for vendor, asked, code, words in (("acme", {"1of2": 3}, "INVALID_ARGUMENT", "at most 2 of 1of2 at once, not 3"),
                                       ("acme", {"1of2": 1, "1of8": 5}, "INVALID_ARGUMENT", "1of8"),
                                       ("acme", {"1of3": 1}, "INVALID_ARGUMENT", "no such profile"),
                                       ("nvidia", {"1of2": 2}, "INVALID_ARGUMENT", "no MIG profile"),
                                       ("other", {"1of2": 2}, "NOT_FOUND", "no devices of vendor other can be divided; those of nvidia, amd, acme can")):
        error = wishing.ask(asked, vendor=vendor)["error"]
        assert error["code"] == code and words in error["message"], error
    assert "no MIG profile" in wishing.ask({"1of2": 2})["error"]["message"], "clients of the first releases name no vendor, and mean NVIDIA's"
    modes = json.dumps({"name": "asked", "rules": [{"allDevices": True, "modes": {"compute": "CPX"}}]})
    refused = exchange(wishing.node.run_dir, {"op": "divide", "layout": modes})[-1]["error"]
    assert refused["code"] == "INVALID_ARGUMENT" and "whose devices" in refused["message"], refused
    assert (acme.mode("A-0"), parts(wishing.node)) == ("off", {})
    assert [one["state"] for one in wishing.ask({"1of2": 1, "1of4": 2}, vendor="acme")["divided"]] == ["divided"] * 2
    assert divided(acme, "A-1") == {"1of2": 1, "1of4": 2}


def test_what_the_driver_refuses_is_undone_and_tried_again(wishing):
    acme = wishing.acme
    acme.set("A-1", memory=ENOUGH * 3 // 4)  # less than its profiles promise
    wishing.wish("all-1of2")
    wishing.until("failed")
    wishing.reason("too little of A-1 is left for a 1of2")
    wait_until(lambda: (acme.mode("A-1"), acme.parts("A-1")) == ("off", {}), "A-1 to be as before", seen=lambda: acme.parts("A-1"))
    assert divided(acme, "A-0") == {"1of2": 2}, "the other device is divided"
    acme.set("A-1", memory=ENOUGH)
    wishing.until("success")
    wishing.kubelet.healthy(4, "acme.com/1of2")


def test_a_part_with_a_process_is_not_destroyed(wishing, node):
    acme = wishing.acme
    wishing.wish("all-1of4")
    wishing.until("success")
    part = min(acme.parts("A-0"))
    acme.set("A-0", process=f"{os.getpid()} 512 {part}")
    wait_until(lambda: [one for one in node.holders() if one["device"] == part and os.getpid() in one["pids"]], "the process to be seen", seen=node.holders)
    wishing.wish("all-1of2")
    wishing.until("failed")
    wishing.reason(part, "process")
    assert part in acme.parts("A-0") and divided(acme, "A-1") == {"1of2": 2}
    acme.set("A-0", process=None)
    wishing.until("success")
    assert divided(acme, "A-0") == {"1of2": 2}


def test_a_part_that_is_said_to_be_larger_than_its_device_is_withheld_with_the_reason(wishing, node):
    acme, kubelet = wishing.acme, wishing.kubelet
    acme.set("A-0", says=f"A-0.2 memory {2 * ENOUGH}")
    wishing.wish("all-1of4")
    wishing.until("success")
    wait_until(lambda: "larger than A-0, of which it is a part" in devices(node).get("A-0.2", {}).get("withheld", ""), "the reason", seen=lambda: devices(node))
    assert "larger together than it is" in devices(node)["A-0.1"]["withheld"]
    kubelet.healthy(4, "acme.com/1of4")
    assert all(one.startswith("A-1.") for one in kubelet.start("ml", "train", 4, "acme.com/1of4"))
    acme.set("A-0", says=None)
    kubelet.healthy(8, "acme.com/1of4")


def test_parts_that_are_said_to_lie_in_each_other_lose_nothing(wishing):
    acme, kubelet = wishing.acme, wishing.kubelet
    acme.set("A-0", says=["A-0.1 parent A-0.2", "A-0.2 parent A-0.1"])
    wishing.wish("all-1of2")
    wishing.until("failed")
    wishing.reason("A-0")
    kubelet.healthy(2, "acme.com/1of2")
    acme.set("A-0", says=None)
    wishing.until("success")
    assert divided(acme, "A-0") == {"1of2": 2}
    kubelet.healthy(4, "acme.com/1of2")


class Walk:
    """Random allocations, divisions, faults, resets and ends of the agent, and a model that knows only what is held of which device."""

    def __init__(self, node: Node, seed: int):
        self.node, self.acme, self.random, self.number = node, node.acme, random.Random(seed), 0
        self.held: dict[str, tuple] = {}  # name -> program, its devices with their memory, into how many shares they are divided
        self.assigned: dict[str, str] = {}  # device or part -> what it was assigned to

    def step(self):
        act = self.random.choice([self.run] * 6 + [self.end] * 4 + [self.divide] * 2 + [self.join] * 2 + [self.move] * 2 + [self.break_one, self.heal_one, self.kill_agent])
        what = act() or ""
        print(f"{self.number}: {act.__name__} {what}; held: {({name: (list(one), shares) for name, (_, one, shares) in self.held.items()})}")
        self.number += 1

    def run(self):
        name, shares = f"p{self.number}", self.random.choice([1, 1, 1, 2])
        told = self.node.home / name
        words = ["--gpus", str(self.random.randint(1, 3)), *(["--share", str(shares)] if shares > 1 else [])]
        memory = {one: int(facts["memory"]) for one, facts in self.acme.devices.items()}
        program = self.node.start("--model", "Acme*", *words, "--wait", "0", "--", "sh", "-c", f"echo $ACME > {told}.new; mv {told}.new {told}; exec sleep 1000")
        wait_until(lambda: told.exists() or program.poll() is not None, "a grant or a refusal")
        if program.poll() is not None:
            return f"refused: {program.communicate()[1].strip()}"
        devices = {one: memory[one] for one in told.read_text().strip().split(",")}
        self.check(devices, shares)
        assert not [one for one in devices if self.assigned_to(one) == "none"], f"{devices} of {self.assigned}"
        self.held[name] = (program, devices, shares)
        return f"{name} got {list(devices)} of {shares}"

    def check(self, devices: dict, shares: int):
        for name, (_, others, their_shares) in self.held.items():
            for one, other in itertools.product(devices, others):
                assert not f"{one}-".startswith(f"{other}-") or one == other, f"{one} is a part of {other}, which {name} holds"
                assert not f"{other}-".startswith(f"{one}-") or one == other, f"{other} is a part of {one}, and {name} holds it"
                assert one != other or shares == their_shares > 1, f"{one} is held by {name} in another way"
        every = [(one, memory) for _, others, _ in self.held.values() for one, memory in others.items()] + list(devices.items())
        for device in devices:
            count = sum(1 for one, _ in every if one == device)
            assert count <= shares, f"{device} is held {count} times"
        for whole, memory in {one: int(facts["memory"]) for one, facts in self.acme.devices.items()}.items():
            parts = {one: size for one, size in every if one.startswith(f"{whole}-")}
            assert sum(parts.values()) <= memory, f"more of {whole} is held than there is: {parts}"

    def end(self):
        if not self.held:
            return None
        name = self.random.choice(list(self.held))
        program, devices, _ = self.held.pop(name)
        program.kill()
        program.communicate()
        wait_until(lambda: all(program.pid not in holder["pids"] for holder in self.node.holders()), f"{name} to be forgotten")
        return f"{name} had {list(devices)}"

    def divided(self) -> set[str]:
        return {facts["parent"] for facts in self.acme.devices.values() if "parent" in facts}

    def divide(self):
        free = [one for one in self.acme.devices if one not in self.divided() and one.count("-") < 3]
        one = self.random.choice(free)  # held or not: who manages the hardware asks nobody
        parts = self.random.randint(2, 3)
        self.acme.divide(one, parts)
        wait_until(lambda: f"{one}-{parts - 1}" in devices(self.node), "the parts to be discovered")
        return f"{one} into {parts}"

    def join(self):
        if not (divided := sorted(self.divided())):
            return None
        one = self.random.choice(divided)
        for part in [name for name in self.acme.devices if name.startswith(f"{one}-") and name.count("-") == one.count("-") + 1]:
            self.acme.remove(part)
        wait_until(lambda: not devices(self.node)[one].get("parts"), f"{one} to be whole again")
        return one

    def move(self):
        """Assigns a device, or a part of one, to no allocator or back; one that is held leaves when its holder ends, whichever agent runs then."""
        one, to = self.random.choice(list(self.acme.devices)), self.random.choice(["none", "none", "default", "local"])
        if self.random.random() < 0.5:
            done = self.node.penstock("assign", one, to, check=False)
            if done.returncode == 0:
                self.assign(one, to)
            return f"{one} to {to}: {done.stderr.strip() or 'done'}"
        with open(self.node.home / f"m{self.number}", "w+") as said:
            waiting = self.node.start_penstock("assign", one, to, "--wait", "10m", stderr=said)
            wait_until(lambda: os.stat(said.name).st_size > 0 or waiting.poll() is not None, "the agent to report the move")  # which then outlives it
            self.assign(one, to)
            self.kill_agent()
            waiting.wait()
        return f"{one} to {to}, and the agent was killed"

    def assign(self, device: str, to: str):
        """Parts follow their device, whatever they were assigned before."""
        self.assigned = {one: where for one, where in self.assigned.items() if not f"{one}-".startswith(f"{device}-")}
        if to != "default":
            self.assigned[device] = to

    def assigned_to(self, device: str) -> str:
        above = [one for one in self.assigned if f"{device}-".startswith(f"{one}-")]
        return self.assigned[max(above, key=len)] if above else "default"

    def move_all_back(self):
        for one in sorted(self.acme.devices):
            self.node.penstock("assign", one, "default")

    def break_one(self):
        """The agent resets a device, with its parts, as soon as nothing holds it, where the fault asks for that."""
        one, severity = self.random.choice(list(self.acme.devices)), self.random.choice([2, 3])
        self.acme.set(one, fault=f"ecc {severity}")
        return f"{one}, severity {severity}"

    def heal_one(self):
        for one in self.acme.devices:
            self.acme.set(one, fault=None)

    def kill_agent(self):
        self.node.kill_agent()
        self.node.launch_agent()
        wait_until(lambda: len(devices(self.node)) >= len(self.acme.devices) if self.node.report() else False, "the next agent")


@pytest.mark.parametrize("seed", range(8))
def test_no_capacity_is_held_twice_and_none_is_lost(node, seed):
    node.config.write_text(node.config.read_text().replace("health: {", "health: {reset: idle, "))
    node.start_agent(devices=12)
    walk = Walk(node, seed)
    for _ in range(100):
        walk.step()
    while walk.held:
        walk.end()
    while walk.divided():
        walk.join()
    walk.heal_one()
    walk.move_all_back()
    wait_until(lambda: run_all(node) == "A-0,A-1,A-2,A-3 none", "all devices to be free again", seen=lambda: node.penstock("status", check=False).stdout)


def run_all(node: Node) -> str:
    done = node.penstock("run", "--model", "Acme*", "--gpus", "4", "--wait", "0", "--", "sh", "-c", "echo ${ACME:-none} ${NVIDIA_VISIBLE_DEVICES:-none}", check=False)
    return done.stdout.strip()


def test_the_product_contains_nothing_of_it(request):
    programs: Path = request.config.getoption("--programs")
    for name in ("penstock", "penstock-agent", "penstock-worker", "penstock-operator", "penstock-probe", "penstock-hook", "penstock-runtime"):
        assert b"acme" not in (programs / name).read_bytes().lower(), name
    for name in ("penstock", "penstock-agent", "penstock-worker"):
        assert b"acme" in (programs.parent / "acme" / name).read_bytes().lower(), name
    asked = subprocess.run([programs / "penstock-worker", "acme"], capture_output=True, text=True, check=False)
    assert asked.returncode == 2
    assert json.dumps("acme") in asked.stderr


def test_nonsense_about_capacity_is_told_and_nothing_of_it_is_allocated(node):
    node.acme.divide("A-0", 2)
    node.acme.set("A-0-0", memory=2 * ENOUGH)
    node.acme.divide("A-1", 2)
    node.acme.set("A-1-0", parent="A-1-1")
    node.acme.set("A-1-1", parent="A-1-0")
    node.start_agent(devices=16)
    reasons = {name: one["withheld"] for name, one in devices(node).items() if one["withheld"]}
    circle = "the driver reports that it is a part of itself, or of too many others"
    assert reasons == {"A-0-0": "the driver reports that it is larger than A-0, of which it is a part",
                       "A-0-1": "the driver reports parts of A-0 that are larger together than it is", "A-1-0": circle, "A-1-1": circle}
    shown = node.penstock("status", check=False).stdout
    for reason in reasons.values():
        assert f"not offered: {reason}" in shown
    for name in [*reasons, "A-0"]:
        assert node.penstock("run", "--device", name, "--wait", "0", "--", "true", check=False).returncode != 0, name
    assert run(node, "--model", "Acme*", "--gpus", "3") == "A-1,A-2,A-3 none"
    node.acme.set("A-0-0", memory=ENOUGH // 2)
    node.acme.set("A-1-0", parent="A-1")
    node.acme.set("A-1-1", parent="A-1")
    wait_until(lambda: not any(one["withheld"] for one in devices(node).values()), "all parts to be offered", seen=lambda: devices(node))
    assert run(node, "--model", "Acme Large 1/2", "--gpus", "4") == "A-0-0,A-0-1,A-1-0,A-1-1 none"


def test_a_policy_for_its_kind_of_evidence_overrides_its_verdict(node):
    policy = "health: {policy: [{kind: ecc, codes: [3], action: warn}], "
    node.config.write_text(node.config.read_text().replace("health: {", policy))
    node.acme.set("A-1", fault="ecc 3")  # by itself: a reset is needed
    node.acme.set("A-2", fault="lane 3")
    node.start_agent(devices=11)
    wait_until(lambda: devices(node)["A-2"]["health"]["state"] == "unhealthy", "the fault of a kind that the policy does not name", seen=lambda: devices(node)["A-2"])
    wait_until(lambda: devices(node)["A-1"]["warning"] == "code 3", "the warning", seen=lambda: devices(node)["A-1"])
    assert run(node, "--device", "A-1") == "A-1 none"
    # What no vendor has is refused, with what there is; the product's own programs know no such kind.
    wrong = node.home / "wrong.yaml"
    wrong.write_text("apiVersion: penstock.io/v1alpha1\nkind: NodeConfig\nhealth: {policy: [{kind: eccs, action: warn}]}\n")
    for programs, known in ((node.programs, True), (node.programs.parent / "bin", False)):
        refused = subprocess.run([programs / "penstock", "config", "check", wrong], capture_output=True, text=True)
        assert refused.returncode and '"eccs" is none of xid, ' in refused.stderr, refused
        assert (", wedged, ecc, lane" in refused.stderr) == known, refused.stderr
