"""AMD's GPUs change their compute mode: by the Node's label of AMD's Device Config Manager (DCM), with its file, its states and its Events. The files of the mode answer
as the kernel does. Needs root, to mount them."""
import contextlib
import dataclasses
import json
import os
import re
from pathlib import Path

import pytest

from amd import Slow, profile
from amd_switching import AGAIN, CHANGED, WISH, Switching
from node import wait_until

pytestmark = pytest.mark.timeout(1200)


def test_issue_54_a_label_divides_all_gpus_and_makes_them_whole_again(switching):
    node = switching()
    node.kubelet.healthy(8, "amd.com/gpu")
    node.wish("cpx")
    node.until("success")
    assert node.amd.modes == ["CPX"] * 8
    node.kubelet.healthy(64, "amd.com/gpu")
    wait_until(lambda: "SuccessfullyPartitioned" in node.events(), "the Event", seen=node.events)
    assert "PartitionInProgress" in node.events()
    assert len(node.kubelet.start("ml", "train", 1, "amd.com/gpu")) == 1
    assert len(node.amd.written) == 8, "each was written once"
    node.wish("spx")
    node.until("failure")
    wait_until(lambda: "held by pod ml/train" in node.layout().get("reason", ""), "the held partition, which stays, to be named", seen=node.layout)
    assert sorted(node.amd.modes) == ["CPX"] + ["SPX"] * 7, "the others are whole"


def test_a_gpu_that_is_not_named_serves_on(switching):
    node = switching()
    node.kubelet.healthy(8, "amd.com/gpu")
    node.wish("some")
    node.until("success")
    assert node.amd.modes == ["SPX", "CPX", "CPX", "SPX", "DPX", "SPX", "SPX", "SPX"]
    node.kubelet.healthy(5, "amd.com/gpu")

    def reasons() -> list[str]:
        return [one.get("reason", "") for one in node.node.report()["devices"] if one["id"] == f"{node.amd.id(1)}-0"]
    wait_until(lambda: reasons() and "most devices of this node are whole" in str(node.node.report()), "the partitions to be withheld", seen=reasons)


@pytest.mark.parametrize("any_process", [True, False])
def test_a_process_in_the_way_is_named_and_the_mode_is_changed_once_it_has_ended(switching, any_process):
    node = switching(any_process=any_process)
    node.amd.process(os.getpid(), gpus=(0,) if not any_process else ())
    node.wish("cpx")
    node.until("failure")
    reason = node.reason()
    assert f"{os.getpid()} (" not in reason, "process ids stay on the node"
    if any_process:
        assert "a process on other GPUs" in reason and "EBUSY" in reason and "no process of the machine" in reason, reason
        assert f"{os.getpid()} (" in node.node.log(), "the log names it"
    else:
        assert "0: " in reason and "held by a process" in reason and "1: " not in reason, reason
    assert node.amd.modes[0] == "SPX" and node.amd.modes[1] == ("SPX" if any_process else "CPX"), "only what is in the way counts"
    wait_until(lambda: "PartitionFailure" in node.events(), "the Event", seen=node.events)
    wait_until(lambda: len([one for one in node.node.report()["devices"] if one["vendor"] == "amd" and one["health"]["state"] == "healthy"
                            and one.get("resource")]) >= 8, "the GPUs to be offered again")
    node.amd.ends(os.getpid())
    node.until("success")
    assert node.amd.modes == ["CPX"] * 8


def test_a_write_without_effect_is_found_out_and_undone(switching):
    node = switching()
    node.amd.ignores.add(3)
    node.wish("cpx")
    node.until("failure")
    assert re.search(r"3: .*accepted CPX and is still in SPX: the write had no effect", node.reason()), node.layout()
    assert node.amd.modes == ["CPX"] * 3 + ["SPX"] + ["CPX"] * 4
    node.amd.ignores.clear()
    node.until("success")


def test_what_is_wrong_with_a_profile_is_said_with_its_place_and_nothing_changes(switching):
    node = switching()
    for name, event, texts in (
            ("many", "InvalidProfileInfo", ("is for 9 devices (numGPUsAssigned: 9, skippedGPUs.ids: 0), and this machine has 8",)),
            ("cpxx", "NonExistentProfile", ('"cpxx" is not among the layouts in', 'did you mean "cpx"?')),
            ("wrong", "InvalidComputeType", ("config.json:1:", "gpu-config-profiles.wrong.profiles[0].computePartition", 'is "APX"; it can be SPX, DPX')),
            ("memory", "InvalidMemoryType", ("gpu-config-profiles.memory.profiles[0].memoryPartition", 'is "NPS5"; it can be NPS1, NPS2')),
            ("nps2", "InvalidProfileInfo", ('the mode memory-partition is "NPS1", not "NPS2", which the device does not have: it can be NPS1, NPS4',)),
            ("mixed", "InvalidProfileInfo", ("profiles[1].memoryPartition", "the GPUs of a machine have one memory mode"))):
        mixed = profile(("CPX", 4), ("CPX", 4))
        mixed["profiles"][1]["memoryPartition"] = "NPS4"
        node.write(cpx=profile(("CPX", 8)), many=profile(("CPX", 9)), wrong=profile(("APX", 8)), memory=profile(("CPX", 8), memory="NPS5"), nps2=profile(("CPX", 8), memory="NPS2"), mixed=mixed)
        node.wish(name)
        wait_until(lambda: node.layout().get("name") == name and node.layout()["state"] == "failed", f"the profile {name} to be refused", seen=node.layout)
        wait_until(lambda: all(text in node.layout().get("reason", "") for text in texts), f"the reason to have {texts}", seen=node.layout)  # noqa: B023
        wait_until(lambda: node.warnings()[-1:] == [event], event, seen=node.events)
    node.until("failure")
    assert node.amd.written == []
    node.file.write_text('{"gpu-config-profiles": {"a": {}, "a": {}}}')
    node.wish("a")
    wait_until(lambda: "InvalidJSONInConfigMap" in node.events(), "the Event", seen=node.events)
    node.write(cpx=profile(("CPX", 8)))
    node.wish("cpx")
    node.until("success")


def test_modes_that_the_driver_refuses_are_explained_and_touch_no_other_gpu(switching):
    """During a reset the driver answers EPERM, and EINVAL to a mode that the memory mode does not allow."""
    node = switching()
    node.kubelet.healthy(8, "amd.com/gpu")
    fits = node.amd.model.fits
    node.amd.resetting.add(1)
    node.amd.model = dataclasses.replace(node.amd.model, fits=fits | {"DPX": ("NPS2",)})
    others = {node.amd.id(gpu) for gpu in (0, 3, 5, 6, 7)}
    node.kubelet.steady("amd.com/gpu")
    node.wish("some")
    whys = {"1": "the driver refuses CPX (EPERM): the GPU is being reset, or is a virtual function, whose host sets the mode",
            "4": "the driver does not accept DPX (EINVAL) in the memory mode NPS1; the GPU has SPX, DPX, QPX, CPX"}

    def named() -> dict[str, str]:
        """Of "1: …EPERM…; 4: …"."""
        parts = re.split(r"(?:^|; )([0-7](?:, [0-7])*): ", node.layout().get("reason", ""))[1:]
        return dict(zip(parts[::2], parts[1::2]))
    wait_until(lambda: named().keys() == whys.keys() and all(why in named().get(gpu, "") for gpu, why in whys.items()), "the two reasons", CHANGED, seen=node.layout)
    node.until("failure")
    assert node.amd.modes == ["SPX", "SPX", "CPX", "SPX", "SPX", "SPX", "SPX", "SPX"]
    wait_until(lambda: node.warnings()[-1:] == ["PartitionFailure"], "the Event", seen=node.events)
    # While they are tried again, ten seconds later, there is no reason.

    def unsaid() -> list[str]:
        status = node.node.penstock("status").stdout
        return [why for why in whys.values() if why not in status]
    wait_until(lambda: not unsaid(), "the two reasons in the status", CHANGED, seen=unsaid)
    node.kubelet.healthy(7, "amd.com/gpu")  # where most GPUs are whole, partitions are not offered
    assert others <= {*node.kubelet.steady("amd.com/gpu")}, "the others never missed a list"
    node.amd.resetting.clear()
    node.amd.model = dataclasses.replace(node.amd.model, fits=fits)
    node.put(**{WISH: "some", AGAIN: "1"})
    wait_until(lambda: node.amd.modes == ["SPX", "CPX", "CPX", "SPX", "DPX", "SPX", "SPX", "SPX"], "what was refused to be tried again", CHANGED, seen=node.layout)
    node.until("success")


def under_way(node: Switching, gpu: int = 2) -> Slow:
    """A change of all GPUs of which that of one takes time."""
    slow = node.amd.slow[gpu] = Slow()
    node.wish("cpx")
    assert slow.begun.wait(CHANGED), (node.layout(), node.node.log()[-3000:])
    return slow


def no_change_is_under_way(node: Switching) -> bool:
    return json.loads((node.node.state_dir / "changes.json").read_text())["changes"] == []


def test_a_profile_that_means_something_else_during_its_change_is_followed(switching):
    node = switching()
    slow = under_way(node)
    wait_until(lambda: "being divided as cpx" in str(node.node.report()["devices"]), "the change to be explained", seen=node.node.report)
    node.write(cpx=profile(("DPX", 8)))
    wait_until(lambda: node.node.log().count("layout applied") == 2, "the agent to follow the file", seen=lambda: node.node.log()[-3000:])
    assert node.amd.modes[2] == "SPX" and node.layout()["state"] == "pending"
    slow.end.set()
    node.until("success")
    assert node.amd.modes == ["DPX"] * 8
    node.kubelet.healthy(16, "amd.com/gpu")
    wait_until(lambda: no_change_is_under_way(node), "the journal to be empty")
    assert {gpu: [mode for one, mode in node.amd.written if one == gpu][-1] for gpu in range(8)} == dict.fromkeys(range(8), "DPX")


def test_a_profile_that_vanishes_or_becomes_invalid_during_its_change_is_said_and_the_last_valid_one_applies(switching):
    node = switching()
    slow = under_way(node)
    others = {"spx": profile(("SPX", 8))}
    for text, event, words in (
            (json.dumps({"gpu-config-profiles": others}), "NonExistentProfile", '"cpx" is not among the layouts in'),
            (json.dumps({"gpu-config-profiles": others | {"cpx": profile(("APX", 8))}}), "InvalidComputeType", 'is "APX"; it can be SPX, DPX'),
            ('{"gpu-config-profiles": {"cpx"', "InvalidJSONInConfigMap", "config.json:1:"),
            (None, "ConfigMapNotPresent", "config.json")):
        if text is None:
            node.file.unlink()
        else:
            node.file.with_name("new").write_text(text)
            node.file.with_name("new").rename(node.file)
        wait_until(lambda: node.warnings()[-1:] == [event], event, seen=node.events)  # noqa: B023
        wait_until(lambda: words in node.layout().get("reason", ""), "the reason", seen=node.layout)  # noqa: B023
        assert node.layout()["state"] == "failed" and node.amd.modes[2] == "SPX"
    slow.end.set()
    node.kubelet.healthy(64, "amd.com/gpu")
    wait_until(lambda: no_change_is_under_way(node), "the journal to be empty")
    assert node.amd.modes == ["CPX"] * 8 and sorted(node.amd.written) == [(gpu, "CPX") for gpu in range(8)], "each was written once"
    assert "config.json" in node.layout()["reason"], "the file is still missing"
    node.until("failure")
    node.write(cpx=profile(("CPX", 8)))
    node.until("success")
    assert len(node.amd.written) == 8


def test_a_profile_that_fits_no_machine_during_its_change_leaves_each_gpu_in_one_mode(switching):
    node = switching()
    slow = under_way(node)
    node.write(cpx=profile(("CPX", 9)))
    wait_until(lambda: node.node.log().count("layout applied") == 2, "the agent to follow the file", seen=lambda: node.node.log()[-3000:])
    slow.end.set()
    node.until("failure")
    wait_until(lambda: "is for 9 devices" in node.layout().get("reason", ""), "the reason", seen=node.layout)
    wait_until(lambda: no_change_is_under_way(node), "the journal to be empty")
    node.kubelet.healthy(sum(node.amd.parts(gpu) for gpu in range(8)), "amd.com/gpu")
    assert node.amd.modes == ["CPX"] * 8, "as the last valid file says"
    node.write(cpx=profile(("CPX", 8)))
    node.until("success")


def test_an_agent_that_is_killed_in_the_middle_leaves_the_next_one_to_finish(switching):
    node = switching()
    node.amd.process(1, gpus=(0,))
    node.wish("cpx")
    node.until("failure")
    node.node.kill_agent()
    node.amd.ends(1)
    node.node.launch_agent()
    node.until("success")
    assert node.amd.modes == ["CPX"] * 8


def test_after_a_reboot_gpus_that_are_to_be_divided_wait_and_those_of_another_vendor_do_not(switching):
    node = switching()
    node.wish("cpx")
    node.until("success")
    node.node.end_agent()
    kept = node.node.state_dir / "layout-amd.json"
    kept.write_text(re.sub(r'"boot": "[^"]*"', '"boot": "the boot before"', kept.read_text()))
    node.amd.switch("SPX")
    module = node.amd.sys / "module/amdgpu"
    module.rename(module.with_name("not_yet_loaded"))
    node.kubelet.told("amd.com/gpu")  # by the agent before
    node.node.launch_agent()
    node.kubelet.healthy(8)
    why = "the devices of amd are being divided again after a reboot; the kubelet gets them after that, or at "
    wait_until(lambda: why in node.node.allocator("kubelet")["reason"], "the reason", seen=node.node.report)
    module.with_name("not_yet_loaded").rename(module)
    wait_until(lambda: node.amd.modes == ["CPX"] * 8, "all GPUs to be divided", CHANGED, seen=node.layout)
    node.kubelet.healthy(64, "amd.com/gpu")
    told = node.kubelet.told("amd.com/gpu")
    assert len(told) == 64, f"no GPU was shown whole: {told}"
    wait_until(lambda: "reboot" not in node.node.allocator("kubelet")["reason"], "no reason any more", seen=node.node.report)


def test_a_mode_that_somebody_else_changed_stays_and_is_said(switching):
    node = switching()
    node.wish("cpx")
    node.until("success")
    node.amd.switch("SPX", gpus=(2,))
    wait_until(lambda: re.search(f"divided otherwise than its layout says.*{node.amd.id(2)}.*another program has changed it", node.node.log()), "the remark",
               seen=lambda: node.node.log()[-3000:])
    node.kubelet.healthy(7 * 8, "amd.com/gpu")
    assert node.layout()["state"] == "success" and node.amd.modes[2] == "SPX", "it stays"
    node.put()
    kept = next(node.node.home.rglob("layout-amd.json"))
    wait_until(lambda: "label" not in json.loads(kept.read_text()), "the agent to see that the label is gone", seen=kept.read_text)
    node.wish("cpx")
    wait_until(lambda: node.amd.modes == ["CPX"] * 8, "the profile to be applied once more", CHANGED, seen=lambda: node.amd.modes)
    node.kubelet.healthy(64, "amd.com/gpu")
    wait_until(lambda: node.layout().get("state") == "success" and "label" in json.loads(kept.read_text()), "the change to have ended", CHANGED, seen=node.layout)
    node.amd.switch("SPX", gpus=(2,))
    node.kubelet.healthy(7 * 8, "amd.com/gpu")
    node.put(**{WISH: "cpx", AGAIN: "1"})
    wait_until(lambda: node.amd.modes == ["CPX"] * 8, "DCM's second label to apply it", CHANGED, seen=lambda: node.amd.modes)


def test_issue_59_and_pr_217_no_process_of_the_agent_opens_dev_kfd(switching):
    """Who has opened it is a process of KFD until it ends, and keeps modes and the driver from being changed. Here from the start over lists, pods and samples to a change of mode and
    the end."""
    node = switching(traced=True)
    node.kubelet.healthy(8, "amd.com/gpu")
    node.kubelet.start("ml", "train", 1, "amd.com/gpu")
    node.kubelet.end("ml", "train")
    node.wish("cpx")
    node.until("success")
    node.kubelet.healthy(64, "amd.com/gpu")
    node.node.penstock("status")
    node.node.penstock("validate", check=False)
    assert (node.node.root / "dev/kfd").exists()
    calls = [line for file in node.node.home.glob("trace.*") for line in file.read_text(errors="replace").splitlines()]
    assert any("current_compute_partition" in line for line in calls) and any("gpu_metrics" in line for line in calls), "the worker's calls are among them"
    assert not [line for line in calls if re.search(r'[/"]kfd"', line) and "O_PATH" not in line and "O_DIRECTORY" not in line]


def awaited(node: Switching, memory: str = "NPS4") -> str:
    wait_until(lambda: f"0, 1, 2, 3, 4, 5, 6, 7: {memory} was requested" in node.layout().get("reason", ""), "the request to be explained for each GPU", CHANGED,
               seen=lambda: (node.layout(), node.amd.written, node.node.log()[-3000:]))
    node.until("failure")
    return node.layout()["reason"]


def test_a_memory_mode_is_requested_and_the_profile_goes_on_once_the_driver_was_loaded_again(switching):
    node = switching()
    node.kubelet.healthy(8, "amd.com/gpu")
    node.write(nps4=profile(("CPX", 8), memory="NPS4"), cpx=profile(("CPX", 8)))
    node.wish("nps4")
    assert "takes effect when the driver is loaded again: unload and load it while no device is in use, or reboot" in awaited(node)
    assert sorted(node.amd.written) == [(gpu, "NPS4") for gpu in range(8)], "each once, and no compute mode that does not fit yet"
    wait_until(lambda: "PartitionFailure" in node.events(), "the Event", seen=node.events)
    node.kubelet.healthy(8, "amd.com/gpu")  # served on until then
    node.node.kill_agent()
    node.node.launch_agent()
    wait_until(lambda: all(node.amd.written.count((gpu, "NPS4")) >= 2 for gpu in range(8)), "an agent that cannot know of the request to repeat it",
               CHANGED, seen=lambda: node.amd.written)
    awaited(node)
    node.amd.reload()
    node.until("success")
    assert (node.amd.memory, node.amd.modes) == ("NPS4", ["CPX"] * 8)
    node.kubelet.healthy(64, "amd.com/gpu")


def test_a_request_of_a_memory_mode_stays_with_the_driver_and_is_followed_by_another_one(switching):
    node = switching()
    node.write(nps4=profile(("CPX", 8), memory="NPS4"), cpx=profile(("CPX", 8)))
    node.wish("nps4")
    awaited(node)
    node.wish("cpx")
    node.until("success")
    assert node.amd.modes == ["CPX"] * 8 and set(node.amd.requested.values()) == {"NPS4"}, "the driver withdraws no request"
    node.amd.reload()
    awaited(node, "NPS1")
    assert node.amd.memory == "NPS4"
    node.amd.reload()
    node.until("success")
    assert (node.amd.memory, node.amd.modes) == ("NPS1", ["CPX"] * 8)


def is_withdrawn(node: Switching) -> bool:
    report = node.node.report()
    return not [one for one in report["devices"] if one["vendor"] == "amd" and one["health"]["state"] == "healthy"] and any(
        vendor["vendor"] == "amd" and "modprobe amdgpu" in vendor.get("reason", "") for vendor in report["vendors"])


def test_a_driver_that_goes_between_the_write_of_a_mode_and_its_reading_is_the_reason(switching):
    node = switching()
    node.kubelet.healthy(8, "amd.com/gpu")
    node.amd.unloads_after = 2
    node.wish("cpx")
    wait_until(lambda: is_withdrawn(node), "the GPUs to go", CHANGED, seen=node.node.report)
    why = "AMD's driver was unloaded while the mode was being changed"
    wait_until(lambda: re.search(rf'device not divided.*{node.amd.id(2)}.*{why}', node.node.log()), "the change to end", CHANGED, seen=lambda: node.node.log()[-3000:])
    said = (why, "AMD's driver was unloaded: ", "no device is there that it divides: see the state of the driver")
    wait_until(lambda: any(one in node.layout().get("reason", "") for one in said), "the reason", CHANGED, seen=node.layout)
    wait_until(lambda: no_change_is_under_way(node), "the journal to be empty")
    assert "had no effect" not in node.node.log()
    node.kubelet.healthy(0, "amd.com/gpu")
    node.amd.unloads_after = None
    node.amd.load()
    node.put(**{WISH: "cpx", AGAIN: "1"})  # else those that failed are tried again after a pause
    wait_until(lambda: node.amd.modes == ["CPX"] * 8, "the GPUs of the driver that came back to be divided", CHANGED, seen=lambda: (node.amd.modes, node.layout()))
    node.until("success")
    node.kubelet.healthy(64, "amd.com/gpu")


def test_a_driver_that_goes_while_a_memory_mode_waits_for_it_brings_the_mode_when_it_returns(switching):
    node = switching()
    node.kubelet.healthy(8, "amd.com/gpu")
    node.write(nps4=profile(("CPX", 8), memory="NPS4"))
    node.wish("nps4")
    awaited(node)
    node.amd.unload()
    wait_until(lambda: is_withdrawn(node), "the GPUs to go", CHANGED, seen=node.node.report)
    node.kubelet.healthy(0, "amd.com/gpu")
    assert node.layout()["state"] == "failed" and "NPS4 was requested" in node.layout()["reason"]
    node.amd.load()
    node.until("success")
    assert (node.amd.memory, node.amd.modes) == ("NPS4", ["CPX"] * 8)
    assert node.amd.written.count((0, "NPS4")) == 1, "it was in force"
    node.kubelet.healthy(64, "amd.com/gpu")


def test_the_driver_is_loaded_again_once_no_gpu_is_in_use(switching):
    node = switching(reloads="idle")
    node.kubelet.healthy(8, "amd.com/gpu")
    node.write(nps4=profile(("CPX", 8), memory="NPS4"))
    held = node.kubelet.start("ml", "train", 1, "amd.com/gpu")
    node.wish("nps4")
    wait_until(lambda: "memory-partition cannot be requested while the device is held by pod ml/train" in node.layout().get("reason", ""), "the pod to be named", CHANGED, seen=node.layout)
    node.until("failure")
    wait_until(lambda: len(node.amd.requested) == 7, "the request of the others", CHANGED, seen=lambda: node.amd.written)
    assert node.amd.loads == [] and len(held) == 1
    node.kubelet.end("ml", "train")
    node.until("success")
    assert node.amd.loads == ["-r amdgpu", "amdgpu"], "once"
    assert (node.amd.memory, node.amd.modes) == ("NPS4", ["CPX"] * 8)
    node.kubelet.healthy(64, "amd.com/gpu")


@pytest.mark.parametrize("seen", [False, True], ids=["by a process that is not seen", "by a process that has the file open"])
def test_a_driver_that_cannot_be_unloaded_is_explained_and_the_gpus_serve_on(switching, seen):
    node = switching(reloads="idle", any_process=False)
    node.kubelet.healthy(8, "amd.com/gpu")
    node.write(nps4=profile(("CPX", 8), memory="NPS4"))
    node.amd.process(os.getpid())  # of KFD, on no GPU
    with open("/dev/kfd", "w") if seen else contextlib.nullcontext():  # of this test's own /dev
        node.wish("nps4")
        words = ": 1 process, which the agent's log names" if seen else ""
        wait_until(lambda: f"a display for example{words}): modprobe: FATAL: Module amdgpu is in use" in node.layout().get("reason", ""), "the reason", CHANGED,
                   seen=lambda: (node.layout(), node.amd.loads, node.node.log()[-3000:]))
    assert (f"amdgpu is in use process={os.getpid()} " in node.node.log()) == seen
    node.until("failure")
    assert node.amd.loads == ["-r amdgpu"]
    node.kubelet.healthy(8, "amd.com/gpu")


def waited_for(fifo: Path) -> int | None:
    """The FIFO, opened for writing, once it has a reader."""
    try:
        return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return None


def test_an_agent_that_ends_while_the_driver_is_loaded_again_leaves_it_loaded(switching):
    node = switching(reloads="idle")
    node.kubelet.healthy(8, "amd.com/gpu")
    gate = node.node.root / "gate"
    os.mkfifo(gate)
    node.write(nps4=profile(("CPX", 8), memory="NPS4"))
    node.wish("nps4")
    opened = wait_until(lambda: waited_for(gate), "modprobe to wait", CHANGED, seen=lambda: (node.layout(), node.node.log()[-3000:]))
    node.node.kill_agent()
    node.node.launch_agent()
    wait_until(lambda: "being loaded again" in str(node.node.report()), "the next agent to withhold the GPUs", CHANGED, seen=node.node.report)
    assert node.amd.loads == []
    gate.unlink()
    os.close(opened)
    node.until("success")
    assert node.amd.loads == ["-r amdgpu", "amdgpu"] * 2, "the next agent cannot know what became of the first"
    assert (node.amd.memory, node.amd.modes) == ("NPS4", ["CPX"] * 8)
    node.kubelet.healthy(64, "amd.com/gpu")


def test_walkthrough_q_with_a_bmcs_card_63_partitions_are_served_and_the_missing_one_is_said(switching):
    node = switching(board=True)
    node.kubelet.healthy(8, "amd.com/gpu")
    node.wish("cpx")
    node.until("success")
    node.kubelet.healthy(63, "amd.com/gpu")
    said = "it has 7 of the 8 partitions of the mode CPX; missing: 7, because all 64 minors of DRM are taken, by cards that are not of this driver, too: card0"
    wait_until(lambda: said in node.node.penstock("status").stdout, "the partition that is missing to be named", seen=lambda: node.node.penstock("status").stdout)
    assert [one["id"] for one in node.node.report()["devices"] if one.get("warning")] == [node.amd.id(7)]
    assert node.layout()["state"] == "success"
