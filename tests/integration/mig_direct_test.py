"""`penstock` as `nvidia-mig-parted` on machines where no agent runs: it divides the GPUs itself, and finds out who holds them."""
import contextlib
import fcntl
import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from mig_machine import MigParted, modes, parts, places, smi
from node import alive, wait_until


@pytest.fixture
def alone(make_node) -> MigParted:
    """A machine on which no agent ever ran."""
    return MigParted(make_node(machine="dgx-a100"))


def with_state(mig: MigParted) -> MigParted:
    """The same, with the state directory of the node's agent."""
    command = mig.command
    mig.command = lambda *words: [*command(*words), "--state-dir", str(mig.node.state_dir)]
    return mig


def test_this_process_divides(alone):
    mig, node = with_state(alone), alone.node
    node.sim("set", "1", "process=1:100:Xorg:G")  # the mode of GPU 1 needs a reset, which this prevents
    failed = mig.apply("all-1g.5gb", status=1)
    assert "without an agent" in failed.stderr and " 1: " in failed.stderr
    assert parts(node) == {str(gpu): ["1g.5gb"] * 7 for gpu in (0, 2, 3, 4, 5, 6, 7)}, "the others are divided"
    node.sim("set", "1", "no-processes")
    mig.apply("all-balanced")
    mig("assert", "-f", mig.file, "-c", "all-balanced")
    file = node.home / "checkpoint.json"
    mig("checkpoint", "-f", file)
    before = places(node)
    mig.apply("custom-config")
    mig("restore", "-f", file)
    assert places(node) == before
    assert "impossible" in mig("restore", "-f", "-", input=file.read_text().replace('"Size":4', '"Size":3'), status=1).stderr
    assert "only an agent waits" in mig.apply("all-disabled", "--wait", "1m", status=1).stderr
    assert not node.state_dir.exists() and places(node) == before
    done = mig("-d", "apply", "-f", mig.file, "-c", "all-disabled")
    assert "GPU 0: dividing: destroy" in done.stderr
    assert modes(node) == ["Disabled"] * 8
    # An agent that starts takes what is there, and applies nothing of it.
    mig.apply("all-1g.5gb")
    node.start_agent(devices=8 + 56)
    assert "layout" not in node.report() and parts(node)["0"] == ["1g.5gb"] * 7


def test_a_gpu_that_fails_becomes_as_before(alone):
    mig, node = with_state(alone), alone.node
    mig.apply("all-balanced")
    before = places(node)
    node.sim("fault", "3", "error", "nvmlComputeInstanceDestroy", "999")
    failed = mig.apply("all-1g.5gb", status=1)
    node.sim("heal", "3")
    assert re.search(r" 3: destroy .*unknown error", failed.stderr) and "as before" not in failed.stderr, failed.stderr
    now = places(node)
    assert [place for place in now if place[0] == "3"] == [place for place in before if place[0] == "3"]
    assert len(parts(node)["3"]) == 4
    assert {place[1] for place in now if place[0] != "3"} == {"1g.5gb"}
    # Where that fails, too, it is said, and the next call goes on from there.
    node.sim("fault", "3", "error", "nvmlDeviceCreateGpuInstanceWithPlacement", "999")
    assert "could not become as before" in mig.apply("all-1g.5gb", status=1).stderr
    node.sim("heal", "3")
    mig.apply("all-1g.5gb")
    assert parts(node) == {str(gpu): ["1g.5gb"] * 7 for gpu in range(8)}


def test_what_is_held_stays(alone):
    mig, node = with_state(alone), alone.node
    mig.apply("all-balanced")
    before = places(node)
    # By what the last agent recorded.
    node.start_agent(devices=8 + 32)
    node.start("--device", "0:0", "--", "sleep", "1000")
    wait_until(lambda: node.holders(), "the part to be held")
    ledger = node.state_dir / "ledger.json"
    wait_until(lambda: ledger.exists() and '"leases": [{' in json.dumps(json.loads(ledger.read_text())), "the checkpoint of the ledger")
    node.kill_agent()
    refused = mig.apply("all-1g.5gb", status=1)
    assert "held by the run of root, as the agent that ended recorded" in refused.stderr
    assert places(node) == before, "nothing was changed, also of the other GPUs"
    # What it left unfinished is its successor's.
    journal = node.state_dir / "changes.json"
    kept = journal.read_text() if journal.exists() else None
    for text, why in (('{"version": 1, "changes": [{"kind": "divide", "devices": [{"id": "GPU-1"}], "step": "divide"}]}', "start an agent"), ("{", "changes.json"),
                      ('{"version": 99}', "newer")):
        journal.write_text(text)
        assert why in mig.apply("all-1g.5gb", status=1).stderr, text
        assert journal.read_text() == text, "it is left to the agent"
    journal.unlink() if kept is None else journal.write_text(kept)
    ledger.write_text("no JSON")
    assert "ledger.json" in mig.apply("all-1g.5gb", status=1).stderr
    assert ledger.read_text() == "no JSON" and places(node) == before


def test_none_starts_meanwhile(alone):
    mig, node = with_state(alone), alone.node
    node.run_dir.mkdir()
    lock = node.run_dir / "agent.lock"
    lock.touch(mode=0o600)
    with lock.open("r+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert "lock" in mig.apply("all-enabled", status=1).stderr
    assert modes(node) == ["Disabled"] * 8
    mig.apply("all-enabled")
    assert modes(node) == ["Enabled"] * 8


def test_a_recorded_holder_that_has_ended_holds_nothing(alone):
    mig, node = with_state(alone), alone.node
    mig.apply("all-balanced")
    node.start_agent(devices=8 + 32)
    ended, stays = (node.start("--device", f"{gpu}:0", "--", "sleep", "1000") for gpu in (0, 1))
    ledger = node.state_dir / "ledger.json"
    wait_until(lambda: ledger.exists() and len(json.loads(ledger.read_text())["leases"]) == 2, "the checkpoint of the ledger")
    node.kill_agent()
    ended.kill()
    ended.communicate()
    refused = mig.apply("all-1g.5gb", status=1).stderr
    assert "1: " in refused and "0: " not in refused, refused
    stays.kill()
    stays.communicate()
    assert json.loads(ledger.read_text())["leases"], "it has them still"
    mig.apply("all-1g.5gb")
    assert parts(node)["0"] == parts(node)["1"] == ["1g.5gb"] * 7


def test_processes_that_the_driver_reports_hold_what_they_use(alone):
    mig, node = with_state(alone), alone.node
    mig.apply("all-balanced")
    before = places(node)
    instance = re.search(r"\|\s+0\s+MIG 3g.20gb\s+\d+\s+(\d+)\s+\d+:", smi(node, "mig", "-lgi"))[1]
    node.sim("set", "0", f"process={os.getpid()}:100:train.py:C:gi{instance}/ci0")
    assert f"held by process {os.getpid()}" in mig.apply("all-1g.5gb", status=1).stderr
    assert places(node) == before
    node.sim("set", "0", "no-processes")
    mig.apply("all-1g.5gb")


def test_a_gpu_whose_processes_cannot_be_read_is_named_and_nothing_changes(alone):
    mig, node = with_state(alone), alone.node
    mig.apply("all-balanced")
    before = places(node)
    # Each call that hangs costs a worker process; the next one serves the other GPUs.
    node.sim("fault", "3", "hang", "nvmlDeviceGetComputeRunningProcesses", "forever")
    failed = mig.apply("all-1g.5gb", status=1).stderr
    assert re.search(r"agent: 3: the processes .*are unknown: .*did not answer within 5s", failed) and "4: " not in failed, failed
    assert places(node) == before
    node.sim("heal", "3")
    mig.apply("all-1g.5gb")


def test_a_gpu_that_does_not_respond_is_named_where_the_layout_means_all(alone):
    mig, node = with_state(alone), alone.node
    node.sim("fault", "7", "lost")
    failed = mig.apply("all-1g.5gb", status=1).stderr
    assert "GPU 7 does not answer" in failed and "the GPU is lost" in failed, failed
    assert parts(node) == {}
    only = "version: v1\nmig-configs: {a: [{devices: [0], mig-enabled: true, mig-devices: {1g.5gb: 7}}]}"
    mig("apply", "-f", "-", input=only)
    assert parts(node) == {"0": ["1g.5gb"] * 7}


def test_a_gpu_that_hangs_hides_no_part_of_the_others(alone):
    mig, node = with_state(alone), alone.node
    mig.apply("all-balanced")
    before = places(node)
    rules = node.home / "one.yaml"
    rules.write_text("""version: v1
mig-configs:
  small: [{devices: [0], mig-enabled: true, mig-devices: {1g.5gb: 7}}]
  same: [{devices: [0], mig-enabled: true, mig-devices: {1g.5gb: 2, 2g.10gb: 1, 3g.20gb: 1}}]
  large: [{devices: [0], mig-enabled: true, mig-devices: {1g.5gb: 2, 2g.10gb: 2}}]
""")
    instance = re.search(r"\|\s+0\s+MIG 3g.20gb\s+\d+\s+(\d+)\s+\d+:", smi(node, "mig", "-lgi"))[1]
    node.sim("set", "0", f"process={os.getpid()}:100:train.py:C:gi{instance}/ci0")
    node.sim("fault", "7", "hang", "all", "forever")
    refused = mig("apply", "-f", rules, "-c", "small", status=1).stderr
    assert f"held by process {os.getpid()}" in refused and "device 7 was skipped" not in refused.splitlines()[-1], refused
    mig("assert", "-f", rules, "-c", "same")
    assert "1g.5gb" in mig("export").stdout
    mig("apply", "-f", rules, "-c", "same")
    assert "7 was skipped" in mig("checkpoint", "-f", node.home / "state.json", status=1).stderr
    node.sim("set", "0", "no-processes")
    mig("apply", "-f", rules, "-c", "large")
    node.sim("heal", "7")
    now = places(node)
    assert [place for place in now if place[0] != "0"] == [place for place in before if place[0] != "0"]
    assert parts(node)["0"] == ["1g.5gb"] * 2 + ["2g.10gb"] * 2
    kept = {place for place in before if place[0] == "0" and place[1] != "3g.20gb"}
    assert kept <= set(now), "those that the layout has stayed"


def workers(node) -> list[int]:
    """The worker processes that use this node's simulated machine."""
    found = []
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0") if folder.name.isdigit() else [b""]
            if words[0].endswith(b"penstock-worker") and any(str(node.root).encode() in word for word in words):
                found.append(int(folder.name))
    return [pid for pid in found if alive(pid)]


def dividing(mig: MigParted, call: str, milliseconds: int) -> subprocess.Popen:
    """An apply that has begun with GPU 0, and needs this long for each such call."""
    mig.node.sim("fault", "all", "hang", call, str(milliseconds))
    program = subprocess.Popen(mig.command("-d", "apply", "-f", mig.file, "-c", "all-1g.5gb"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               stdin=subprocess.DEVNULL)
    for line in program.stderr:
        if "GPU 0: dividing: create" in line:
            return program
    raise AssertionError("it divides nothing")


def test_a_worker_process_that_dies_once_is_replaced(alone):
    mig, node = with_state(alone), alone.node
    mig.apply("all-enabled")
    program = dividing(mig, "nvmlDeviceCreateGpuInstanceWithPlacement", 300)
    [worker] = workers(node)
    os.kill(worker, signal.SIGKILL)
    out, err = program.communicate(timeout=120)
    assert (program.returncode, out) == (0, "MIG configuration applied successfully\n"), err
    assert parts(node) == {str(gpu): ["1g.5gb"] * 7 for gpu in range(8)}


def test_a_worker_process_that_dies_again_is_an_error(alone):
    mig, node = with_state(alone), alone.node
    mig.apply("all-enabled")
    program = dividing(mig, "nvmlDeviceCreateGpuInstanceWithPlacement", 600)
    killed = set()
    while program.poll() is None and len(killed) < 2:
        for worker in set(workers(node)) - killed:
            # The second one ends while it divides, not while it looks.
            if killed:
                wait_until(lambda: "create" in program.stderr.readline(), "the second try")
            os.kill(worker, signal.SIGKILL)
            killed.add(worker)
    err = program.communicate(timeout=120)[1].splitlines()[-1]
    assert program.returncode == 1
    assert re.search(r" 0: create 1g.5gb at slice \d: the worker \(pid \d+\) was killed by signal 9$", err), err
    now = parts(node)
    assert "0" not in now and now["1"] == ["1g.5gb"] * 7


def test_a_signal_ends_it_after_the_gpu_that_is_being_divided(alone):
    mig, node = with_state(alone), alone.node
    mig.apply("all-enabled")
    program = dividing(mig, "nvmlDeviceCreateGpuInstanceWithPlacement", 1000)
    program.send_signal(signal.SIGTERM)
    err = program.communicate(timeout=120)[1]
    assert program.returncode == -signal.SIGTERM
    assert "interrupted, and as before: GPU 1, 2, 3, 4, 5, 6, 7" in err
    assert parts(node) == {"0": ["1g.5gb"] * 7}


def test_a_worker_process_leaves_signals_to_the_program(alone):
    mig, node = with_state(alone), alone.node
    mig.apply("all-enabled")
    program = dividing(mig, "nvmlDeviceCreateGpuInstanceWithPlacement", 100)
    [worker] = workers(node)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(worker, number)
    err = program.communicate(timeout=120)[1]
    assert program.returncode == 0, err
    # dividing() has read the first step; with another worker process it would be made again.
    assert err.count("dividing: create") == 8 * 7 - 1, err


def test_an_interrupt_from_the_terminal_leaves_a_reset_alone(alone):
    mig, node = with_state(alone), alone.node
    tool, log, go = node.root / "usr/bin/nvidia-smi", node.home / "log", node.home / "go"
    real = tool.rename(tool.with_name("nvidia-smi-real"))
    tool.write_text(f"""#!/bin/bash
trap 'echo interrupted >> {log}' INT HUP TERM
echo begun >> {log}
until [ -e {go} ]; do sleep 0.05; done
echo ended >> {log}
exec {real} "$@"
""")
    tool.chmod(0o755)
    rules = node.home / "one.yaml"
    rules.write_text("version: v1\nmig-configs: {a: [{devices: [0], mig-enabled: true, mig-devices: {1g.5gb: 7}}]}")
    node.sim("set", "0", "process=1:100:Xorg:G")  # so that the mode needs a reset
    program = subprocess.Popen(mig.command("apply", "-f", rules), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
                               start_new_session=True)
    wait_until(log.exists, "the reset")
    node.sim("set", "0", "no-processes")
    os.killpg(program.pid, signal.SIGINT)
    go.touch()
    err = program.communicate(timeout=120)[1]
    assert program.returncode == -signal.SIGINT, err
    assert log.read_text() == "begun\nended\n", err
    real.rename(tool)
    assert parts(node) == {"0": ["1g.5gb"] * 7}, err
