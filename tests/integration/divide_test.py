"""`penstock mig apply` on simulated machines: GPUs are divided as a layout says, what is held stays, and a division that fails, is killed or is undone by a
reboot ends in a layout that was asked for."""
import json
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from monitored import Kubelet
from mig_machine import compute_places, modes, parts, smi
from node import Node, wait_until

ROUNDS = 1000 if os.environ.get("PENSTOCK_CHECK_ALL") == "1" else 60


def layout(name: str, *rules: tuple) -> str:
    """A configuration file of mig-parted: rules of devices and their parts; None: MIG is disabled."""
    text = f"version: v1\nmig-configs:\n  {name}:\n"
    for devices, parts in rules:
        text += f"  - devices: {json.dumps(devices)}\n    mig-enabled: {'false' if parts is None else 'true'}\n    mig-devices: {json.dumps(parts or {})}\n"
    return text


def apply(node: Node, text: str, *words, check=True) -> subprocess.CompletedProcess:
    file = node.home / "layout.yaml"
    file.write_text(text)
    return node.penstock("mig", "apply", "-f", file, *words, check=check)


def offered(node: Node) -> dict[str, str]:
    """Number of each device that is offered -> its resource."""
    devices = (node.report() or {"devices": []})["devices"]
    return {str(device.get("number", device["index"])): device["resource"] for device in devices if device.get("resource")}


def state(node: Node) -> tuple[str, str]:
    found = (node.report() or {}).get("layout", {})
    return found.get("state", ""), found.get("reason", "")


def await_state(node: Node, wanted: str):
    wait_until(lambda: state(node)[0] == wanted, f"the layout to be {wanted}", seen=lambda: node.penstock("status", check=False).stdout)


@pytest.fixture
def node(make_node) -> Node:
    node = make_node(machine="dgx-h200")
    node.start_agent()
    return node


def test_gpus_are_divided_and_become_whole_again(node):
    done = apply(node, layout("mixed", ([0, 1], {"3g.71gb": 1, "1g.18gb": 2}), ([2], {}), ([3, 4, 5, 6, 7], None)))
    assert "GPU 0: divided" in done.stdout
    assert parts(node) == {"0": ["1g.18gb", "1g.18gb", "3g.71gb"], "1": ["1g.18gb", "1g.18gb", "3g.71gb"]}
    assert modes(node) == ["Enabled"] * 3 + ["Disabled"] * 5
    assert sorted(offered(node).values()) == ["nvidia.com/gpu"] * 5 + ["nvidia.com/mig-1g.18gb"] * 4 + ["nvidia.com/mig-3g.71gb"] * 2
    assert state(node) == ("success", "")
    status = node.penstock("status").stdout
    assert "layout: mixed, success" in status
    before = node.log().count("device is being divided")
    again = apply(node, (node.home / "layout.yaml").read_text(), "-o", "json")
    assert {one["state"] for one in json.loads(again.stdout)["divided"]} == {"divided"}
    assert node.log().count("device is being divided") == before, "nothing had to be done"
    assert node.penstock("mig", "assert", "-f", node.home / "layout.yaml", "--driver-root", node.root, "--dev-root", node.root, "--sysfs-root",
                         node.root / "sys").returncode == 0
    apply(node, layout("whole", ("all", None)))
    assert parts(node) == {}
    assert modes(node) == ["Disabled"] * 8
    assert len(offered(node)) == 8


def test_what_is_held_stays_and_what_is_in_the_way_is_named(node):
    apply(node, layout("first", ([0], {"3g.71gb": 1, "1g.18gb": 2})))
    holder = node.start("--device", next(number for number, resource in offered(node).items() if "3g" in resource), "--", "sleep", "1000")
    wait_until(lambda: node.holders(), "the part to be held")
    [held] = {one["device"] for one in node.holders()}
    # Another layout, of which the held part is a part, too.
    apply(node, layout("second", ([0], {"3g.71gb": 1, "2g.35gb": 1})))
    assert parts(node)["0"] == ["2g.35gb", "3g.71gb"]
    assert {one["device"] for one in node.holders()} == {held}
    assert holder.poll() is None
    # One in which it has no place.
    refused = apply(node, layout("third", ([0], {"7g.141gb": 1}), ([1], {"7g.141gb": 1})), check=False)
    assert refused.returncode == 1
    assert held in refused.stderr and "held by" in refused.stderr
    assert list(parts(node)) == ["0"], "nothing was changed, also of the other GPU"
    assert node.report()["layout"]["name"] == "second"
    waiting = node.start_penstock("mig", "apply", "-f", node.home / "layout.yaml", "--wait", "10m")
    wait_until(lambda: parts(node).get("1") == ["7g.141gb"], "the other GPU to be divided")
    # While it is tried again there is no reason.
    wait_until(lambda: (now := state(node))[0] == "failed" and held in now[1], "the part to be named until its holder ends", seen=lambda: state(node))
    assert holder.poll() is None
    holder.kill()
    holder.communicate()
    out, _ = waiting.communicate(timeout=60)
    assert waiting.returncode == 0, out
    assert parts(node) == {"0": ["7g.141gb"], "1": ["7g.141gb"]}


CALLS = ["nvmlDeviceSetMigMode", "nvmlDeviceCreateGpuInstanceWithPlacement", "nvmlGpuInstanceGetComputeInstanceProfileInfo",
         "nvmlGpuInstanceCreateComputeInstance", "nvmlGpuInstanceDestroy", "nvmlComputeInstanceDestroy", "nvmlDeviceGetMigDeviceHandleByIndex"]


@pytest.mark.parametrize("call", CALLS)
def test_a_gpu_that_cannot_be_divided_is_as_before_and_the_others_are_divided(node, call):
    apply(node, layout("before", ([0, 1], {"2g.35gb": 2}), ([2, 3], None)))
    before = parts(node)
    node.sim("fault", "0", "error", call, "999")
    node.sim("fault", "2", "error", call, "999")
    done = apply(node, layout("after", ([0, 1], {"1g.18gb": 3}), ([2, 3], {"4g.71gb": 1})), check=False)
    withheld = [number for number in offered(node) if number.startswith("0")] == []
    node.sim("heal", "0")
    node.sim("heal", "2")
    assert done.returncode == 1, done.stdout
    assert "unknown error" in done.stderr, done.stderr
    assert re.search(r"\b[02]: ", done.stderr)
    found = parts(node)
    assert found["1"] == ["1g.18gb"] * 3 and found["3"] == ["4g.71gb"]
    if found.get("0") not in (before["0"], ["1g.18gb"] * 3):  # the fault also prevents that it becomes as before
        assert withheld
    apply(node, (node.home / "layout.yaml").read_text())  # at once, not after a pause
    assert parts(node) == {"0": ["1g.18gb"] * 3, "1": ["1g.18gb"] * 3, "2": ["4g.71gb"], "3": ["4g.71gb"]}


# As each machine's driver places them, one after the other, and as Penstock places 2c, 2c and 3c in one that is new.
PLACED = {"dgx-a100": ("7g.40gb", ["1c.7g.40gb 0:1", "2c.7g.40gb 4:2", "3c.7g.40gb 1:3"], ["2c.7g.40gb 0:2", "2c.7g.40gb 2:2", "3c.7g.40gb 4:3"]),
          "dgx-h200": ("7g.141gb", ["1c.7g.141gb 6:1", "2c.7g.141gb 4:2", "3c.7g.141gb 0:4"], ["2c.7g.141gb 0:2", "2c.7g.141gb 2:2", "3c.7g.141gb 4:4"])}


@pytest.mark.parametrize("machine", PLACED)
def test_two_two_and_three_slices_of_compute_share_a_gpu_instance(make_node, machine):
    seven, others, placed = PLACED[machine]
    node = make_node(machine=machine)
    node.start_agent()
    smi(node, "-i", "0", "-mig", "1")
    smi(node, "mig", "-i", "0", "-cgi", seven)
    smi(node, "mig", "-i", "0", "-cci", f"1c.{seven},3c.{seven},2c.{seven}")
    assert compute_places(node) == others
    wait_until(lambda: f"nvidia.com/mig-2c.{seven}" in offered(node).values(), "the parts of the other program")
    text = layout("shared", ([0], {f"2c.{seven}": 2, f"3c.{seven}": 1}))
    # The first compute instance that is created is refused, after all others were destroyed: they become as they were, at the same slices.
    node.sim("fault", "0", "error", "nvmlGpuInstanceCreateComputeInstanceWithPlacement", "999", "--count", "1")
    failed = apply(node, text, check=False)
    assert failed.returncode == 1 and "create 3c" in failed.stderr, failed.stderr
    wait_until(lambda: compute_places(node) == others, "the GPU to be as before")
    await_state(node, "failed")
    apply(node, text)
    shared = compute_places(node)
    assert [one.split(".")[0] for one in shared] == ["2c", "2c", "3c"]
    assert sorted(offered(node).values()) == ["nvidia.com/gpu"] * 7 + [f"nvidia.com/mig-2c.{seven}"] * 2 + [f"nvidia.com/mig-3c.{seven}"]
    # Those that fit stay.
    apply(node, layout("smaller", ([0], {f"1c.{seven}": 2, f"2c.{seven}": 1, f"3c.{seven}": 1})))
    smaller = compute_places(node)
    assert [one.split(".")[0] for one in smaller] == ["1c", "1c", "2c", "3c"] and set(smaller[2:]) < set(shared), (shared, smaller)
    apply(node, text)
    assert compute_places(node) == shared
    # Where nothing is there, also after a failure with the GPU instance alone, and after an agent that is killed.
    apply(node, layout("whole", ([0], None)))
    node.sim("fault", "0", "error", "nvmlGpuInstanceCreateComputeInstanceWithPlacement", "999", "--count", "1")
    assert apply(node, text, check=False).returncode == 1
    wait_until(lambda: parts(node) == {} and modes(node)[0] == "Disabled", "the GPU to be as before")
    await_state(node, "failed")
    apply(node, text)
    assert compute_places(node) == placed
    node.kill_agent()
    node.launch_agent()
    await_state(node, "success")
    assert compute_places(node) == placed
    listed = node.penstock("mig", "list", "--driver-root", node.root, "--dev-root", node.root, "--sysfs-root", node.root / "sys").stdout
    assert re.search(rf"3c\.{seven} +4-{int(placed[2][-1]) + 3} ", listed), listed


@pytest.mark.parametrize("seed", range(4))
def test_an_agent_that_is_killed_at_any_moment_leaves_the_next_one_to_finish(node, seed):
    chance = random.Random(seed)
    for number in range(6):
        wanted = chance.choice([{"1g.18gb": 7}, {"3g.71gb": 2}, {"7g.141gb": 1}, None, {"1c.3g.71gb": 2, "2g.35gb": 1},
                                {"2c.7g.141gb": 2, "3c.7g.141gb": 1}])
        text = layout(f"l{number}", ("all", wanted))
        profiles = sorted(profile for profile, count in (wanted or {}).items() for _ in range(count))
        divided = {str(gpu): profiles for gpu in range(8)} if wanted else {}
        (node.home / "layout.yaml").write_text(text)
        moment = chance.random() * 0.25
        client = node.start_penstock("mig", "apply", "-f", node.home / "layout.yaml")
        try:
            client.wait(moment)
        except subprocess.TimeoutExpired:
            pass
        node.kill_agent()
        client.communicate()
        node.launch_agent()
        wait_until(lambda: len(node.usable()) >= 8 and state(node)[0] in ("", "success"), "the next agent to finish", seen=lambda: node.penstock("status", check=False).stdout)
        name = node.report().get("layout", {}).get("name")
        if name == f"l{number}":  # the request was recorded: the next agent has finished it
            assert parts(node) == divided
        apply(node, text)
        assert parts(node) == divided, name
    assert "damaged" not in node.log()


def test_pods_on_other_gpus_and_on_parts_that_stay_notice_nothing_of_random_layouts(make_node, request):
    """1,000 layouts with PENSTOCK_CHECK_ALL=1. GPUs 0 to 3 are divided again and again, one of them with a part that a pod holds."""
    home = Path(tempfile.mkdtemp(prefix="kubelet-", dir="/tmp"))  # paths of sockets must be short
    kubelet = Kubelet(home, request.config.getoption("--programs").resolve())
    try:
        node = make_node(machine="dgx-h200", kubelet=kubelet.dir)
        node.start_agent()
        apply(node, layout("first", ([0], {"3g.71gb": 2})))
        kubelet.healthy(2, "nvidia.com/mig-3g.71gb")
        [part] = kubelet.start("ml", "part", resource="nvidia.com/mig-3g.71gb")
        [whole] = kubelet.start("ml", "whole")
        wait_until(lambda: len(node.holders()) == 2, "both pods to be holders")
        others = {device["id"] for device in node.usable() if device["index"] in range(4, 8)} | {whole}
        kubelet.healthy(7)
        kubelet.steady(), kubelet.steady("nvidia.com/mig-3g.71gb")  # from now on
        chance, applied, refused, missed = random.Random(18), 0, 0, set()
        for number in range(ROUNDS):
            rules = [([gpu], chance.choice([{"1g.18gb": 7}, {"3g.71gb": 2}, {"3g.71gb": 1, "1g.18gb": 3}, {"7g.141gb": 1}, {"2g.35gb": 3}, {}, None])) for gpu in range(4)]
            done = apply(node, layout(f"l{number}", *rules), check=False)
            applied, refused = applied + (done.returncode == 0), refused + (done.returncode == 1)
            assert done.returncode in (0, 1), done.stderr
            assert done.returncode == 0 or "held by pod ml/" in done.stderr, done.stderr
            assert part in smi(node, "-L"), f"after {rules}"
            assert part in kubelet.steady("nvidia.com/mig-3g.71gb"), f"after {rules}"
            steady = {*kubelet.steady()}
            assert others <= steady, f"after {rules}"
            missed |= {device["id"] for device in node.usable() if device["index"] in range(4)} - steady
        assert len(missed) >= 3, "those that were divided"
        assert applied > ROUNDS / 20 and refused > ROUNDS / 4
        assert {(holder["pod"], holder["device"]) for holder in node.holders()} == {("part", part), ("whole", whole)}
    finally:
        kubelet.stop()
        shutil.rmtree(home)


def test_after_a_reboot_the_gpus_are_divided_again(node):
    apply(node, layout("kept", ([0, 1], {"1g.18gb": 7}), ([2], {})))
    node.end_agent()
    # Nothing of the mode and the parts outlives a reboot of this machine.
    kept = node.state_dir / "layout.json"
    kept.write_text(re.sub(r'"boot": "[^"]*"', '"boot": "the boot before"', kept.read_text()))
    for gpu in ("0", "1"):
        smi(node, "mig", "-dci", "-i", gpu)
        smi(node, "mig", "-dgi", "-i", gpu)
    smi(node, "-i", "0,1,2", "-mig", "0")
    node.launch_agent()
    await_state(node, "success")
    assert parts(node) == {"0": ["1g.18gb"] * 7, "1": ["1g.18gb"] * 7}
    assert modes(node)[:4] == ["Enabled"] * 3 + ["Disabled"]


def test_while_the_kubelet_waits_for_the_gpus_to_be_divided_again_the_status_says_so(make_node):
    node = make_node(machine="dgx-h200", config="allocators: {kubelet: {enabled: on}, assign: [{allocator: local}]}\n")
    node.start_agent()
    apply(node, layout("kept", ([0], {"1g.18gb": 7})))
    node.end_agent()
    kept = node.state_dir / "layout.json"
    kept.write_text(re.sub(r'"boot": "[^"]*"', '"boot": "the boot before"', kept.read_text()))
    smi(node, "mig", "-dci", "-i", "0")
    smi(node, "mig", "-dgi", "-i", "0")
    node.sim("fault", "0", "hang", "nvmlDeviceCreateGpuInstanceWithPlacement", "forever")
    node.launch_agent()
    await_state(node, "pending")
    text = "divided again after a reboot; the kubelet gets them after that, or at "
    wait_until(lambda: text in state(node)[1], "the reason", seen=lambda: node.report())
    assert text in node.allocator("kubelet")["reason"]
    condition = next(one for one in node.report()["conditions"] if one["type"] == "LayoutApplied")
    assert condition["message"] == "kept: " + state(node)[1]
    assert text in node.penstock("status").stdout
    node.sim("heal", "0")
    await_state(node, "success")
    assert state(node)[1] == "" and "reboot" not in node.allocator("kubelet").get("reason", "")


def test_the_layout_of_the_configuration_is_followed_once_and_a_users_stays(make_node):
    node = make_node(machine="dgx-h200", config="parts: {defaultLayout: all-3g.71gb}\n")
    node.launch_agent()
    await_state(node, "success")
    assert parts(node) == {str(gpu): ["3g.71gb"] * 2 for gpu in range(8)}
    apply(node, layout("mine", ("all", {"7g.141gb": 1})))
    node.kill_agent()
    node.launch_agent()
    await_state(node, "success")
    assert parts(node) == {str(gpu): ["7g.141gb"] for gpu in range(8)}
    node.config.write_text(node.config.read_text().replace("all-3g.71gb", "all-3g.71bg"))
    node.agent.send_signal(signal.SIGHUP)
    wait_until(lambda: (now := state(node))[0] == "failed" and 'did you mean "all-3g.71gb"' in now[1], "the layout to be failed with a proposal",
               seen=lambda: state(node))
    node.config.write_text(node.config.read_text().replace("all-3g.71bg", "all-disabled"))
    node.agent.send_signal(signal.SIGHUP)
    wait_until(lambda: parts(node) == {}, "the next layout of the configuration")


def test_an_agent_that_ends_while_it_restores_leaves_the_next_one_to_restore_before_the_kubelet_gets_gpus(make_node, request):
    home = Path(tempfile.mkdtemp(prefix="kubelet-", dir="/tmp"))
    kubelet = Kubelet(home, request.config.getoption("--programs").resolve())
    try:
        node = make_node(machine="dgx-a100", kubelet=kubelet.dir)
        node.start_agent()
        apply(node, layout("kept", ("all", {"7g.40gb": 1})))
        node.end_agent()
        kept = node.state_dir / "layout.json"
        kept.write_text(re.sub(r'"boot": "[^"]*"', '"boot": "the boot before"', kept.read_text()))
        for gpu in range(8):
            smi(node, "mig", "-dci", "-i", str(gpu))
            smi(node, "mig", "-dgi", "-i", str(gpu))
        smi(node, "-mig", "0")
        kubelet.told()
        node.launch_agent()
        wait_until(lambda: parts(node), "a GPU to be divided")  # one after the other, because each is reset
        node.kill_agent()
        node.launch_agent()
        await_state(node, "success")
        kubelet.healthy(8, "nvidia.com/mig-7g.40gb")
        assert kubelet.told() == [], "no GPU was offered whole"
    finally:
        kubelet.stop()
        shutil.rmtree(home)


def test_what_other_programs_change_stays_until_the_layout_is_applied_again(node):
    apply(node, layout("ours", ([0], {"1g.18gb": 3})))
    smi(node, "mig", "-dci", "-i", "0")
    smi(node, "mig", "-dgi", "-i", "0")
    smi(node, "mig", "-cgi", "7g.141gb", "-C", "-i", "0")
    wait_until(lambda: "nvidia.com/mig-7g.141gb" in offered(node).values(), "the part of the other program")
    node.kill_agent()
    node.launch_agent()
    wait_until(lambda: "nvidia.com/mig-7g.141gb" in offered(node).values(), "the next agent")
    assert parts(node) == {"0": ["7g.141gb"]}
    apply(node, layout("ours", ([0], {"1g.18gb": 3})))
    assert parts(node) == {"0": ["1g.18gb"] * 3}


def test_a_gpu_that_a_display_server_uses_is_divided_once_that_ends(make_node):
    node = make_node(machine="dgx-a100")
    node.start_agent()
    node.sim("set", "0", "process=1:100:Xorg:G")
    apply(node, layout("divided", ([0, 1], {"1g.5gb": 7})), check=False)
    node.sim("set", "0", "no-processes")
    await_state(node, "success")
    assert parts(node) == {"0": ["1g.5gb"] * 7, "1": ["1g.5gb"] * 7}


def test_layouts_that_cannot_be_are_refused_with_all_reasons(node):
    file = layout("odd", ([0], {"1g.19gb": 1, "3g.71gb": 3}), ([1], {"7g.141gb": 2}), ([9], {"1g.18gb": 1}))
    refused = apply(node, file, check=False)
    assert refused.returncode == 1
    assert "9" in refused.stderr
    refused = apply(node, layout("odd", ([0], {"2g.18gb": 1}), ([1], {"7g.141gb": 2}), ([2], {"1g.18gb": 1})), check=False)
    assert refused.returncode == 1
    assert "0: " in refused.stderr and "did you mean" in refused.stderr and "1: there can be at most 1 of 7g.141gb" in refused.stderr
    assert parts(node) == {} and "layout" not in node.report()


def test_a_gpu_that_failed_is_tried_again_without_a_request(node):
    node.sim("fault", "0", "error", "nvmlDeviceSetMigMode", "999")
    assert apply(node, layout("later", ([0], {"1g.18gb": 7})), check=False).returncode == 1
    await_state(node, "failed")
    node.sim("heal", "0")
    await_state(node, "success")
    assert parts(node) == {"0": ["1g.18gb"] * 7}
