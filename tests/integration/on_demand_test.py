"""MIG devices that are created when a run asks for them, and removed when it ends, on simulated machines: what users see, what stays, and what remains
after faults, crashes and abandoned requests."""
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from broker import connected  # noqa: E402
from mig_machine import parts, smi  # noqa: E402
from node import PATIENCE, Node, wait_until  # noqa: E402

SHOW = ("sh", "-c", "echo $CUDA_VISIBLE_DEVICES")


def nothing_is_left(node: Node):
    wait_until(lambda: parts(node) == {}, "all parts to be removed", seen=lambda: f"{parts(node)}\n{node.log()[-3000:]}")
    wait_until(lambda: json.loads((node.state_dir / "parts.json").read_text()).get("parts", {}) == {}, "the list of parts to be empty")
    assert "GPU instance" not in smi(node, "mig", "-lgi", check=False).replace("No GPU instances found", "")


def set_aside(make_node, gpus=(0, 1), machine="dgx-a100", more="", start=True) -> Node:
    """A node whose first GPUs are set aside, in MIG mode."""
    node = make_node(machine=machine, config=f"parts: {{onDemand: {json.dumps([str(gpu) for gpu in gpus])}}}\n{more}")
    for gpu in gpus:
        smi(node, "-mig", "1", "-i", str(gpu))
    if start:
        node.launch_agent()
        wait_until(lambda: len(node.usable()) == 8, "all GPUs to be read", seen=node.log)
    return node


def hold(node: Node, *words, **options) -> subprocess.Popen:
    program = node.start(*words, "--", "sleep", "1000", **options)
    wait_until(lambda: any(program.pid in holder["pids"] for holder in node.holders()), f"{words} to be served",
               seen=lambda: f"{node.queue()}\n{node.log()[-2000:]}")
    return program


def held(node: Node, program: subprocess.Popen) -> list[str]:
    """The ids of the devices that a program holds."""
    return sorted(holder["device"] for holder in node.holders() if program.pid in holder["pids"])


def queued(node: Node, *words, **options) -> tuple[subprocess.Popen, str]:
    """A run that waits, and what for."""
    before = {run["ticket"] for run in node.queue()}
    program = node.start(*words, "--", *SHOW, **options)
    run = wait_until(lambda: next((run for run in node.queue() if run["ticket"] not in before and run["reason"] and "is being created" not in run["reason"]),
                            None),
                     f"{words} to be queued")
    return program, run["reason"]


@pytest.fixture
def node(make_node) -> Node:
    return set_aside(make_node)


def test_a_run_gets_a_part_that_exists_only_while_it_runs(node):
    assert parts(node) == {}
    done = node.penstock("run", "--mig", "1g.5gb", "--", *SHOW)
    assert re.fullmatch(r"MIG-\S+\n", done.stdout) and "1g.5gb" in done.stderr
    nothing_is_left(node)
    program = hold(node, "--mig", "3g.20gb")
    assert parts(node) == {"0": ["3g.20gb"]}
    assert "3g.20gb" in node.penstock("status").stdout
    program.kill()
    nothing_is_left(node)


def test_a_request_that_does_not_wait_is_served(node):
    assert node.penstock("run", "--wait", "0", "--mig", "2g.10gb", "--", *SHOW).stdout.startswith("MIG-")
    hold(node, "--mig", "7g.40gb")
    hold(node, "--mig", "7g.40gb")
    done = node.penstock("run", "--wait", "0", "--mig", "1g.5gb", "--", "true", check=False)
    assert done.returncode == 124 and "1g.5gb cannot be created now; GPU 0 (" in done.stderr and "held by r-" in done.stderr, done.stderr


def test_gpus_are_filled_and_requests_wait_for_what_is_held(node):
    runs = [hold(node, "--mig", "1g.5gb") for _ in range(7)]
    assert parts(node) == {"0": ["1g.5gb"] * 7}, "the other GPU stays free as a whole"
    large = hold(node, "--mig", "4g.20gb")
    assert parts(node)["1"] == ["4g.20gb"]
    waiting, reason = queued(node, "--mig", "4g.20gb")
    assert "4g.20gb cannot be created now" in reason and "held by r-" in reason
    large.kill()
    assert waiting.communicate(timeout=PATIENCE)[0].startswith("MIG-")
    for run in runs:
        run.kill()
    nothing_is_left(node)


def test_several_parts_are_created_at_once_or_not_at_all(node):
    assert len(node.penstock("run", "--mig", "3g.20gb", "--gpus", "4", "--", *SHOW).stdout.split(",")) == 4
    nothing_is_left(node)
    one = hold(node, "--mig", "4g.20gb")
    waiting, reason = queued(node, "--mig", "3g.20gb", "--gpus", "4")
    assert "cannot be created now" in reason
    assert parts(node) == {"0": ["4g.20gb"]}, "nothing was created for a request that it does not serve"
    one.kill()
    assert len(waiting.communicate(timeout=PATIENCE)[0].split(",")) == 4


def test_a_large_request_is_not_starved_by_small_ones(make_node):
    node = set_aside(make_node, gpus=[0])
    small = hold(node, "--mig", "1g.5gb")
    large, _ = queued(node, "--mig", "7g.40gb")
    later, reason = queued(node, "--mig", "1g.5gb")
    assert "1 run is ahead" in reason, "although there is room for it"
    small.kill()
    assert large.communicate(timeout=PATIENCE)[0].startswith("MIG-")
    assert later.communicate(timeout=PATIENCE)[0].startswith("MIG-")


@pytest.mark.parametrize("words, says", [
    (("--mig", "1g.6gb"), "no GPU of this node is divided into parts, and 1g.6gb was requested"),
    (("--mig", "small"), '"small" is no MIG profile'),
    (("--mig", "1g.5gb", "--model", "*H100*"), "1g.5gb was requested"),
    (("--mig", "1g.5gb", "--gpus", "15"), "requested 15 parts 1g.5gb, and of those there can be 14"),
])
def test_requests_that_can_never_be_served_say_why(node, words, says):
    done = node.penstock("run", "--wait", "0", *words, "--", "true", check=False)
    assert done.returncode == 125 and says in done.stderr, done.stderr


def test_a_request_that_does_not_wait_is_served_while_others_come_and_go(node):
    """Each of their ends is an occasion to try the queue, also while a part is being created."""
    others = [subprocess.Popen(["sh", "-c", 'while :; do "$@"; done', "sh", node.programs / "penstock", "--run-dir", node.run_dir, "run", "--gpus", "1", "--", "true"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(2)]
    try:
        for _ in range(20):
            assert node.penstock("run", "--wait", "0", "--mig", "2g.10gb", "--", *SHOW).stdout.startswith("MIG-")
    finally:
        for one in others:
            one.kill()
    assert "was of no use" not in node.log()


@pytest.mark.parametrize("config, words, says", [
    ("sharing: {rules: [{resource: nvidia.com/mig-1g.5gb, strategy: time-slicing, replicas: 4}]}\n", (), "is shared 4 ways: request it with --share 4"),
    ("allocators: {local: {enabled: on}}\n", ("--memory", "1G"), "cannot enforce a limit of memory"),
])
def test_a_request_that_no_part_could_serve_is_refused(make_node, config, words, says):
    node = set_aside(make_node, more=config)
    done = node.penstock("run", "--mig", "1g.5gb", *words, "--", "true", check=False)
    assert done.returncode == 125 and says in done.stderr, done.stderr
    wait_until(lambda: parts(node) == {}, "nothing to be left")


def test_a_share_of_a_part(make_node):
    node = set_aside(make_node, more="sharing: {rules: [{resource: nvidia.com/mig-1g.5gb, strategy: time-slicing, replicas: 2}]}\n")
    first, second = hold(node, "--mig", "1g.5gb", "--share", "2"), hold(node, "--mig", "1g.5gb", "--share", "2")
    assert held(node, first) == held(node, second) and parts(node) == {"0": ["1g.5gb"]}
    first.kill()
    wait_until(lambda: not held(node, first), "the first to end")
    assert parts(node) == {"0": ["1g.5gb"]}
    second.kill()
    nothing_is_left(node)


@pytest.mark.parametrize("strategy", ["none", "single"])
def test_with_another_strategy_nothing_is_created(make_node, strategy):
    node = set_aside(make_node, start=False)
    node.config.write_text(node.config.read_text().replace("parts: {", f"parts: {{strategy: {strategy}, "))
    node.launch_agent()
    wait_until(lambda: "parts.onDemand: has no effect: it needs parts.strategy: mixed" in node.log(), "the remark")
    done = node.penstock("run", "--mig", "1g.5gb", "--", "true", check=False)
    assert done.returncode == 125 and "no GPU of this node is divided into parts" in done.stderr, done.stderr


# What is not ours.


def test_parts_of_other_programs_stay_and_are_offered(node):
    smi(node, "mig", "-i", "0", "-cgi", "2g.10gb", "-C")
    wait_until(lambda: any(device.get("profile") for device in node.usable()), "the part to be found")
    other = hold(node, "--mig", "2g.10gb")
    ours = hold(node, "--mig", "1g.5gb")
    assert parts(node) == {"0": ["1g.5gb", "2g.10gb"]}
    other.kill()
    ours.kill()
    wait_until(lambda: parts(node) == {"0": ["2g.10gb"]}, "only the part that was created on demand to be removed")


def test_a_gpu_instance_of_another_program_without_compute_instances_is_not_in_the_way(make_node):
    node = set_aside(make_node, gpus=[0])
    smi(node, "mig", "-i", "0", "-cgi", "2g.10gb")
    program = hold(node, "--mig", "1g.5gb")
    program.kill()
    wait_until(lambda: parts(node) == {}, "the part to be removed", seen=node.log)
    assert "2g.10gb" in smi(node, "mig", "-lgi")


def test_a_gpu_that_is_not_in_the_mode_or_not_set_aside_is_not_touched(make_node):
    node = set_aside(make_node, gpus=[0])
    smi(node, "-mig", "1", "-i", "3")
    (node.config).write_text(node.config.read_text().replace('["0"]', '["0", "2"]'))
    node.agent.send_signal(1)
    wait_until(lambda: json.loads(node.penstock("plan", "-o", "json").stdout)["changes"] == [], "the configuration to be in force", seen=node.log)
    first = hold(node, "--mig", "7g.40gb")
    waiting, reason = queued(node, "--mig", "7g.40gb")
    assert "its mode mig is not enabled" in reason and "GPU 3" not in reason
    assert parts(node) == {"0": ["7g.40gb"]}
    assert smi(node, "--query-gpu=mig.mode.current", "--format=csv,noheader").split()[2] == "Disabled"
    first.kill()
    assert waiting.communicate(timeout=PATIENCE)[0].startswith("MIG-")


def test_a_layout_sets_only_the_mode_of_a_gpu_that_is_set_aside(make_node):
    node = make_node(machine="dgx-h200", config='parts: {onDemand: ["0"]}\n')
    node.start_agent()
    layout = node.home / "layout.yaml"
    layout.write_text('version: v1\nmig-configs:\n  all:\n  - devices: [0, 1]\n    mig-enabled: true\n    mig-devices: {"3g.71gb": 2}\n')
    node.penstock("mig", "apply", "-f", layout)
    assert parts(node) == {"1": ["3g.71gb", "3g.71gb"]}
    program = hold(node, "--mig", "1g.18gb")
    assert parts(node)["0"] == ["1g.18gb"]
    node.penstock("mig", "apply", "-f", layout)
    assert node.report()["layout"]["state"] == "success" and parts(node)["0"] == ["1g.18gb"]
    roots = ("--driver-root", node.root, "--dev-root", node.root, "--sysfs-root", node.root / "sys")
    node.penstock("mig", "assert", "-f", layout, *roots)
    plan = json.loads(node.penstock("mig", "plan", "-f", layout, "-o", "json", *roots).stdout)
    assert [device["steps"] for device in plan["devices"]] == [[], []]
    program.kill()
    wait_until(lambda: "0" not in parts(node), "the part to be removed")
    assert node.report()["layout"]["state"] == "success"


# Users.


def by(user: int) -> dict:
    return {"user": user, "group": user, "extra_groups": [100], "env": {"PATH": os.environ["PATH"]}}


def test_a_part_counts_as_a_fraction_before_it_exists(make_node):
    """Each user may have one GPU, and ann holds half of one."""
    ann, bob = 64001, 64002
    node = set_aside(make_node, more="allocators: {local: {group: users}}\nqueue: {perUser: {gpus: 1}}\n")
    node.programs = Path(shutil.copytree(node.programs, node.home / "bin"))  # every user can execute them
    holders = [hold(node, "--mig", "3g.20gb", **by(ann)), hold(node, "--mig", "4g.20gb"), hold(node, "--mig", "7g.40gb")]
    within, beyond, other = [queued(node, "--mig", "3g.20gb", **by(user))[0] for user in (ann, ann, bob)]
    assert [run["user"] for run in node.queue()] == [str(ann), str(bob), str(ann)], "the second of ann would be her third half"
    for run in holders:
        run.kill()
    assert all(run.communicate(timeout=PATIENCE)[0].startswith("MIG-") for run in (within, beyond, other))
    nothing_is_left(node)


def test_a_run_that_has_lasted_too_long_makes_room_for_another_user(make_node):
    """The run of ann leaves room for the whole GPU that bob requests."""
    ann, bob = 64001, 64002
    node = set_aside(make_node, more="allocators: {local: {group: users}}\nqueue: {perUser: {time: 10s}}\n")
    node.programs = Path(shutil.copytree(node.programs, node.home / "bin"))  # every user can execute them
    small = hold(node, "--mig", "1g.5gb", **by(ann))
    large = hold(node, "--mig", "7g.40gb")  # of root, who has no limit
    waiting, _ = queued(node, "--mig", "7g.40gb", **by(bob))
    assert wait_until(lambda: (now := node.queue()) == [] or now[0].get("expectedStart"), "a start to be expected", seen=node.queue)
    assert waiting.communicate(timeout=PATIENCE)[0].startswith("MIG-")
    assert small.wait(PATIENCE) != 0 and large.poll() is None
    large.kill()
    nothing_is_left(node)


def test_requests_that_are_abandoned_leave_nothing_and_delay_no_one(make_node):
    """1,000 requests of one user, each abandoned as soon as it is made or a moment later, while another user is served."""
    node = set_aside(make_node, gpus=[0])
    chance = random.Random(7)
    abandon = "import sys; from pathlib import Path; from broker import connected\n" \
              "import json, time\n" \
              "for pause in json.load(sys.stdin):\n" \
              "    with connected(Path(sys.argv[1])) as connection:\n" \
              "        connection.sendall(json.dumps({'op': 'run', 'command': 'x', 'mig': '1g.5gb'}).encode() + b'\\n')\n" \
              "        time.sleep(pause)\n"
    loop = subprocess.Popen([sys.executable, "-c", abandon, node.run_dir], stdin=subprocess.PIPE, text=True,
                            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1] / "support")})
    loop.stdin.write(json.dumps([chance.choice([0, 0, 0, 0.01, 0.03]) for _ in range(1000)]))
    loop.stdin.close()
    served = 0
    while loop.poll() is None:
        assert node.penstock("run", "--mig", "3g.20gb", "--", *SHOW).stdout.startswith("MIG-")
        served += 1
    assert loop.returncode == 0 and served > 0
    nothing_is_left(node)
    wait_until(lambda: node.queue() == [] and node.holders() == [], "no run to wait or to hold", seen=lambda: (node.queue(), node.holders()))


# Faults and crashes.

CALLS = ["nvmlDeviceCreateGpuInstanceWithPlacement", "nvmlGpuInstanceCreateComputeInstance", "nvmlDeviceGetMigDeviceHandleByIndex"]


@pytest.mark.parametrize("call", CALLS)
def test_where_a_part_cannot_be_created_another_gpu_serves(node, call):
    node.sim("fault", "0", "error", call, "999")
    program = hold(node, "--mig", "1g.5gb")
    assert parts(node).get("1") == ["1g.5gb"]
    waiting, reason = queued(node, "--mig", "7g.40gb")
    assert "GPU 0 (" in reason, reason
    node.sim("heal", "0")
    assert waiting.communicate(timeout=PATIENCE)[0].startswith("MIG-")
    program.kill()
    nothing_is_left(node)


def test_a_part_that_cannot_be_removed_is_removed_later(node):
    node.sim("fault", "0", "error", "nvmlComputeInstanceDestroy", "19")
    assert node.penstock("run", "--mig", "1g.5gb", "--", *SHOW).stdout.startswith("MIG-")
    wait_until(lambda: "is left alone for a while" in node.log(), "the removal to fail")
    assert parts(node) == {"0": ["1g.5gb"]}
    assert node.penstock("run", "--mig", "1g.5gb", "--", *SHOW).stdout.startswith("MIG-"), "it is used meanwhile"
    node.sim("heal", "0")
    nothing_is_left(node)


def test_what_a_worker_created_before_it_was_killed_is_found_and_removed(node):
    node.sim("fault", "0", "hang", "nvmlGpuInstanceCreateComputeInstance", "20")
    program = node.start("--mig", "1g.5gb", "--", "sleep", "1000")
    wait_until(lambda: "1g.5gb" in smi(node, "mig", "-lgi", check=False), "the GPU instance")
    node.sim("heal", "0")
    worker = subprocess.run(["pgrep", "-P", str(node.agent.pid), "-f", "penstock-worker"], capture_output=True, text=True, check=True)
    os.kill(int(worker.stdout.split()[0]), signal.SIGKILL)
    wait_until(lambda: any(program.pid in holder["pids"] for holder in node.holders()), "it to be served nonetheless", seen=node.log)
    wait_until(lambda: smi(node, "mig", "-lgi", check=False).count("1g.5gb") == 1, "the first instance to be removed", seen=lambda: smi(node, "mig", "-lgi") + node.log()[-3000:])
    program.kill()
    nothing_is_left(node)


@pytest.mark.parametrize("seed", range(4))
def test_an_agent_that_is_killed_at_any_moment_leaves_no_part_behind(make_node, seed):
    node = set_aside(make_node)
    chance = random.Random(seed)
    keeps = hold(node, "--mig", "2g.10gb")
    part = held(node, keeps)
    for _ in range(6):
        runs = [node.start("--mig", chance.choice(["1g.5gb", "3g.20gb"]), "--", "sleep", chance.choice(["0", "0.05", "1000"])) for _ in range(3)]
        try:
            runs[0].wait(chance.random() * 0.3)
        except subprocess.TimeoutExpired:
            pass
        node.kill_agent()
        node.launch_agent()
        wait_until(node.report, "the next agent")
        for run in runs:
            run.kill()
            run.communicate()
    wait_until(lambda: parts(node) in ({"0": ["2g.10gb"]}, {"1": ["2g.10gb"]}), "only the part that is held to be left",
               seen=lambda: f"{parts(node)}\n{node.log()[-3000:]}")
    assert held(node, keeps) == part and keeps.poll() is None
    keeps.kill()
    nothing_is_left(node)


def test_parts_that_are_gone_after_a_reboot_are_forgotten(node):
    run = hold(node, "--mig", "1g.5gb")
    node.end_agent()
    run.kill()
    smi(node, "mig", "-dci", "-i", "0")
    smi(node, "mig", "-dgi", "-i", "0")
    node.launch_agent()
    nothing_is_left(node)
