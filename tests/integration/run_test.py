"""`penstock run` on a simulated DGX A100 with real control groups. Needs root. Each test asserts one property that local users rely on."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from node import PATIENCE, Node, alive, wait_until  # noqa: E402

# Opens every GPU's device file and prints the results by index. Without a driver, open() fails with ENXIO if it is allowed.
OPEN_ALL = """
import errno, os, sys
for i in range(8):
    try:
        os.open(f"{sys.argv[1]}/dev/nvidia{i}", os.O_RDWR)
        print("opened")
    except OSError as error:
        print(errno.errorcode[error.errno])
"""
READ_ONLY_CGROUPS = ("unshare", "--mount", "--propagation", "private", "sh", "-c",
                     "for at in $(awk '$3 ~ /^cgroup2?$/ {print $2}' /proc/self/mounts); do mount -o remount,bind,ro $at || exit 1; done; exec \"$@\"", "sh")
PYTHON = "/usr/bin/python3"  # executable by every user
NOBODY, USERS = 65534, 100


@pytest.fixture
def node(make_node) -> Node:
    node = make_node()
    node.start_agent()
    return node


def free(node: Node):
    wait_until(lambda: not node.holders(), "all devices to be released")


# The command and its devices.


def test_a_command_can_open_its_own_gpu_and_no_other(node):
    lines = node.penstock("run", "--device", "3", "--", PYTHON, "-c", OPEN_ALL, node.root).stdout.split()
    assert lines == ["EPERM"] * 3 + ["ENXIO"] + ["EPERM"] * 4


# Opens each device of a list "major:minor" by a file that it creates, and prints the results: device rules match numbers, not names.
OPEN_NUMBERS = """
import errno, os, sys, tempfile
folder = tempfile.mkdtemp()
for number in sys.argv[1:]:
    file = f"{folder}/{number}"
    os.mknod(file, 0o20600, os.makedev(*map(int, number.split(":"))))
    try:
        os.open(file, os.O_RDWR)
        print("opened")
    except OSError as error:
        print(errno.errorcode[error.errno])
    os.unlink(file)
os.rmdir(folder)
"""


def test_a_command_cannot_go_round_by_graphics_or_capability_files(node):
    """A run can open only the DRM nodes of its own GPU, and none of /dev/nvidia-caps, which give access to MIG devices."""
    addresses = {device["index"]: device["pci"] for device in node.report()["devices"]}
    graphics = {index: (node.root / f"sys/bus/pci/devices/{address}/drm").glob("*/dev") for index, address in addresses.items()}
    numbers = {index: sorted(file.read_text().strip() for file in files) for index, files in graphics.items()}
    assert all(len(two) == 2 for two in numbers.values())
    caps = re.search(r"^ *(\d+) nvidia-caps$", (node.root / "proc/devices").read_text(), re.M).group(1)
    asked = [*numbers[3], *numbers[0], *numbers[7], f"{caps}:1", f"{caps}:12", "1:3"]
    lines = node.penstock("run", "--device", "3", "--", PYTHON, "-c", OPEN_NUMBERS, *asked).stdout.split()
    assert lines[2:] == ["EPERM"] * 6 + ["opened"] and "EPERM" not in lines[:2]


def test_a_command_sees_its_gpus_in_its_environment(node):
    ids = {device["index"]: device["id"] for device in node.report()["devices"]}
    seen = dict(line.split("=", 1) for line in node.penstock("run", "--device", "2,5", "env").stdout.splitlines())
    assert seen["CUDA_VISIBLE_DEVICES"] == f"{ids[2]},{ids[5]}"
    assert re.fullmatch(r"r-[0-9a-z]+-\d+", seen["PENSTOCK_LEASE"])


def test_nvidia_smi_lists_the_gpus_of_its_lease(node):
    ids = {device["index"]: device["id"] for device in node.report()["devices"]}
    listed = node.penstock("run", "--device", "2,5", "--", node.root / "usr/bin/nvidia-smi", "-L").stdout
    assert re.findall(r"UUID: (\S+)\)", listed) == [ids[2], ids[5]]


def test_a_command_replaces_penstock_and_keeps_its_own_exit_status_and_signals(node):
    program = node.start("--", "sh", "-c", "echo $$; exit 7")
    assert program.communicate()[0].split() == [str(program.pid)]
    assert program.returncode == 7
    program = node.start("--", "sh", "-c", "kill -TERM $$")
    assert program.wait() == -signal.SIGTERM


def test_a_command_gets_its_words_as_they_were_said(node):
    words = ["[a,b]", "", "--gpus", "--", "-o", "status"]
    assert node.penstock("run", "--", "printf", "%s|", *words).stdout == "|".join(words) + "|"


def test_a_command_has_no_descriptor_of_penstock(node):
    program = f"import os; print([os.readlink(f'/proc/self/fd/{{n}}') for n in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{{n}}')])"
    assert "socket" not in node.penstock("run", "--", PYTHON, "-c", program).stdout


@pytest.mark.parametrize("words, status, says", [
    (("--", "no-such-program"), 127, "command not found"),
    (("--", "/etc/passwd"), 126, "Permission denied"),
    (("--gpus", "9", "--", "true"), 125, "has 8"),
    (("--gpus", "0", "--", "true"), 125, "must be 1 or more"),
    (("--share", "0", "--", "true"), 125, "omit --share for a whole device"),
    (("--model", "*H100*", "--", "true"), 125, "H100"),
    (("--device", "9", "--", "true"), 125, "no device 9"),
    (("--memory", "10Gi", "--", "true"), 125, "cannot enforce"),
    (("--cores", "50", "--", "true"), 125, "cannot enforce"),
    (("--wait", "10", "--", "true"), 125, "unit"),
    ((), 125, "no command given"),
    (("--gpu", "1", "--", "true"), 2, "--gpu"),
])
def test_what_cannot_be_done_is_said_with_its_exit_status(node, words, status, says):
    done = node.penstock("run", *words, check=False)
    assert (done.returncode, says in done.stderr) == (status, True), done.stderr
    wait_until(lambda: node.holders() == [], "no device to be held", seen=node.holders)


def test_without_an_agent_it_says_how_to_start_one(make_node):
    done = make_node().penstock("run", "--", "true", check=False)
    assert done.returncode == 125
    assert "start one with `penstock up`" in done.stderr


# Shares.


def test_a_free_gpu_is_cut_for_a_share_and_is_whole_again(node):
    first = node.start("--share", 2, "--device", 3, "--", "sleep", "1000")
    wait_until(lambda: len(node.holders()) == 1, "the first share to be held")
    second = node.penstock("run", "--share", "2", "--device", "3", "--", PYTHON, "-c", OPEN_ALL, node.root)
    assert second.stdout.split() == ["EPERM"] * 3 + ["ENXIO"] + ["EPERM"] * 4
    assert "share 1 of 2 of GPU 3 (NVIDIA A100-SXM4-40GB), time-slicing; isolation: none" in second.stderr
    assert node.holders()[0]["slot"].endswith("::0")
    assert re.search(r"^INDEX +SHARE.*\n3 +0 +held", node.penstock("ps").stdout)
    whole = node.penstock("run", "--wait", "0", "--device", "3", "--", "true", check=False)
    assert whole.returncode == 124, whole.stderr
    first.kill()
    free(node)
    assert node.penstock("run", "--wait", "0", "--device", "3", "--", "true").stderr == ""


# Assignments.


def allocator_of(node, index: int) -> str:
    return {device["index"]: device["allocator"] for device in node.report()["devices"]}[index]


def test_a_device_goes_to_no_allocator_and_back(node):
    assert "device 3: local -> none: would move" in node.penstock("assign", "3", "none", "--dry-run").stdout
    assert allocator_of(node, 3) == "local"
    assert "device 3: local -> none: acknowledged" in node.penstock("assign", "3", "none").stdout
    assert allocator_of(node, 3) == ""
    assert re.search(r"^3 .* none ", node.penstock("assign").stdout, re.MULTILINE)
    assert node.penstock("run", "--wait", "0", "--device", "3", "--", "true", check=False).returncode != 0
    back = json.loads(node.penstock("assign", "3", "default", "-o", "json").stdout)["moved"][0]
    assert (back["index"], back["to"], back["state"]) == (3, "local", "offered")
    node.penstock("run", "--wait", "0", "--device", "3", "--", "true")


def test_a_device_that_is_held_is_refused_or_waited_for(node):
    holder = node.start("--device", 3, "--", "sleep", "1000")
    wait_until(lambda: len(node.holders()) == 1, "the device to be held")
    refused = node.penstock("assign", "3", "none", check=False)
    assert refused.returncode == 1 and "held by" in refused.stderr, refused.stderr
    assert allocator_of(node, 3) == "local"
    command = [node.programs / "penstock", "--run-dir", node.run_dir, "assign", "3", "none", "--wait", "30s"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as waiting:
        assert "waiting: held by" in waiting.stderr.readline()
        holder.kill()
        assert waiting.wait(PATIENCE) == 0
        assert "acknowledged" in waiting.stdout.read()


@pytest.mark.parametrize("words, status, says", [
    (("3", "lokal"), 2, 'did you mean "local"'),
    (("local",), 2, "no device given"),
    (("99", "none"), 1, "no device 99"),
    (("3", "kubelet"), 1, "closed"),
])
def test_a_move_that_cannot_be_is_said(node, words, status, says):
    done = node.penstock("assign", *words, check=False)
    assert (done.returncode, says in done.stderr) == (status, True), done.stderr


def test_the_verb_of_0_1_0_still_works(node):
    assert allocator_of(node, 3) == "local"
    done = node.penstock("door", "set", "3", "none", "--dry-run")
    assert "device 3: local -> none: would move" in done.stdout and "deprecated: use penstock assign DEVICE" in done.stderr
    listed = node.penstock("door", "list", "-o", "json")
    assert {device["door"] for device in json.loads(listed.stdout)["devices"]} == {"local"} and "deprecated: use penstock assign" in listed.stderr
    assert " door " not in node.penstock("--help").stdout


# The queue.


def test_first_come_first_served(node):
    seven, one = node.hold(7), node.hold(1)
    large = node.start("--gpus", 2, "--", "sh", "-c", "echo served; exec sleep 1000")
    wait_until(lambda: len(node.queue()) == 1, "the large request to be queued")
    small = node.start("--", "sh", "-c", "echo served; exec sleep 1000")
    wait_until(lambda: len(node.queue()) == 2, "the small request to be queued behind it")
    one.kill()
    wait_until(lambda: len(node.held()) == 7, "one device to be released")
    assert [entry["gpus"] for entry in node.queue()] == [2, 1], "the small request must not overtake the large one"
    seven.kill()
    assert large.stdout.readline() == "served\n" and small.stdout.readline() == "served\n"
    assert len(node.held()) == 3


def test_who_waits_without_a_terminal_says_so_once(node):
    holder = node.hold(8)
    waiter = node.start("--", "true")
    line = waiter.stderr.readline()
    assert re.match(r"penstock: waiting for 1 GPU as q-\d+, place 1: .*held by", line)
    holder.kill()
    assert waiter.wait() == 0
    assert waiter.stderr.read() == ""


def test_who_waits_on_a_terminal_sees_a_line_that_renews_itself(node):
    holder = node.hold(8)
    ours, theirs = os.openpty()
    waiter = node.start("--", "true", stderr=theirs)
    os.close(theirs)
    seen = b""
    while b"waiting for 1 GPU" not in seen:
        seen += os.read(ours, 4096)
    assert seen.startswith(b"\r\x1b[K")
    holder.kill()
    assert waiter.wait() == 0
    with contextlib.suppress(OSError):  # at the end of the output
        while True:
            seen += os.read(ours, 4096)
    assert seen.endswith(b"\r\x1b[K"), "the progress line is erased"
    os.close(ours)


@pytest.mark.parametrize("wait", ["0", "200ms"])
def test_a_wait_that_runs_out_is_124(node, wait):
    node.hold(8)
    done = node.penstock("run", "--wait", wait, "--", "true", check=False)
    assert done.returncode == 124
    assert "held by" in done.stderr
    assert node.queue() == []


def test_the_queue_lists_and_cancels(node):
    node.hold(8)
    waiter = node.start("--gpus", 2, "--model", "*A100*", "--", "sleep", "7")
    entry = wait_until(node.queue, "the run to be queued")[0]
    assert (entry["gpus"], entry["model"], entry["command"], entry["user"]) == (2, "*A100*", "sleep 7", "root")
    assert entry["ticket"] in node.penstock("queue").stdout
    node.penstock("queue", "cancel", entry["ticket"])
    assert waiter.wait(PATIENCE) == 125
    assert "cancelled" in waiter.communicate()[1]
    assert node.queue() == []
    assert node.penstock("queue", "cancel", entry["ticket"], check=False).returncode == 1


def test_ctrl_c_gives_the_place_up(node):
    node.hold(8)
    waiter = node.start("--", "true")
    wait_until(node.queue, "the run to be queued")
    waiter.send_signal(signal.SIGINT)
    assert waiter.wait(PATIENCE) == -signal.SIGINT
    wait_until(lambda: not node.queue(), "the queue to be empty")


# Devices are released.


def test_the_devices_come_back_when_the_command_is_killed(node):
    node.hold(8).kill()
    free(node)
    wait_until(lambda: not node.groups(), "the group to be removed")


def test_the_devices_stay_with_a_daemon_whose_parents_were_killed(node):
    program = node.hold(1, "sh", "-c", "setsid sh -c 'sleep 1000 & echo $!; wait' & wait")
    daemon = int(program.stdout.readline())
    leader = int(Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(leader, signal.SIGKILL)
    program.kill()
    program.wait()
    wait_until(lambda: node.holders()[0]["pids"] == [daemon], "the daemon to be the holder")
    os.kill(daemon, signal.SIGKILL)
    free(node)


def test_the_ledger_is_the_same_after_the_agent_was_killed(node):
    two, one = node.hold(2), node.hold(1)
    before = node.holders()
    node.kill_agent()
    node.start_agent()
    assert node.holders() == before
    two.kill()
    wait_until(lambda: len(node.held()) == 1, "the two devices to be released to the new agent")
    one.kill()
    free(node)


def test_what_ended_while_no_agent_ran_is_free_at_once(node):
    holder = node.hold(8)
    node.kill_agent()
    holder.kill()
    holder.wait()
    node.start_agent()
    assert node.holders() == []
    wait_until(lambda: not node.groups(), "the group to be removed")


def test_one_who_waits_is_told_that_the_agent_ended_and_waits_for_the_next(node):
    """queue_test.py tests that the run keeps its place."""
    holder = node.hold(8)
    waiter = node.start("--", "true")
    assert "waiting for 1 GPU" in waiter.stderr.readline()
    node.kill_agent()
    assert re.match(r"penstock: the agent .* exited before it answered; waiting up to 10m", waiter.stderr.readline())
    node.start_agent()
    holder.kill()
    assert waiter.wait(PATIENCE) == 0


def test_nothing_is_lost_or_given_twice_when_many_come_and_go(node):
    program = "import os, time; print(os.environ['CUDA_VISIBLE_DEVICES'], flush=True); time.sleep(0.05)"
    runs = [node.start("--gpus", 1 + i % 3, "--", PYTHON, "-c", program) for i in range(40)]
    most = 0
    while any(run.poll() is None for run in runs):
        holders = node.holders()
        assert len({holder["index"] for holder in holders}) == len(holders), "a device given twice"
        most = max(most, len(holders))
    for i, run in enumerate(runs):
        assert run.returncode == 0, run.communicate()
        assert len(run.communicate()[0].strip().split(",")) == 1 + i % 3
    assert most > 3, "the runs must overlap"
    free(node)


# Permissions.


def as_user(*groups: int) -> dict:
    return {"user": NOBODY, "group": NOBODY, "extra_groups": list(groups), "env": {"PATH": os.environ["PATH"]}}


def test_others_are_refused_with_what_to_do(node):
    node.programs = Path(shutil.copytree(node.programs, node.home / "bin"))
    done = node.penstock("run", "--", "true", check=False, **as_user())
    assert done.returncode == 125
    assert "as root create the group penstock" in done.stderr


def test_members_of_the_group_run_under_their_own_name(make_node):
    node = make_node(config="allocators: {local: {group: users}}\n")
    node.programs = Path(shutil.copytree(node.programs, node.home / "bin"))
    node.start_agent()
    assert "members of group users" in node.allocator("local")["reason"]
    stranger = node.penstock("run", "--", "true", check=False, **as_user())
    assert stranger.returncode == 125 and "you are not in group users" in stranger.stderr

    opened = node.penstock("run", "--device", "0", "--", PYTHON, "-c", OPEN_ALL, node.root, **as_user(USERS)).stdout.split()
    assert opened == ["ENXIO"] + ["EPERM"] * 7
    member = node.start("--gpus", 8, "--", "sleep", "1000", **as_user(USERS))
    holder = wait_until(node.holders, "the member's run to hold a device")[0]
    assert (holder["user"], holder["enforcement"]) == ("nobody", "devices")
    node.start("--", "true")
    ticket = wait_until(node.queue, "root's run to be queued")[0]["ticket"]
    refused = node.penstock("queue", "cancel", ticket, check=False, **as_user(USERS))
    assert refused.returncode == 1 and "belongs to root" in refused.stderr
    assert node.penstock("down", check=False, **as_user(USERS)).returncode == 1
    assert node.agent.poll() is None
    member.kill()


# Calls of the driver's library.


@pytest.mark.parametrize("wanted", [False, True])
def test_workers_are_refused_what_administers_the_machine_where_that_is_wanted(make_node, wanted):
    node = make_node(config="workers: {restrictSystemCalls: true}\n" if wanted else "")
    node.start_agent()
    children = Path(f"/proc/{node.agent.pid}/task/{node.agent.pid}/children").read_text().split()
    worker, = [pid for pid in children if Path(f"/proc/{pid}/comm").read_text() == "penstock-worker\n"]
    states = {re.search(r"^Seccomp:\t(\d)", (task / "status").read_text(), re.M).group(1) for task in Path(f"/proc/{worker}/task").iterdir()}
    assert states == {"2" if wanted else "0"}, "the same filter in each thread"
    node.sim("fault", "3", "xid", "79")
    wait_until(lambda: len(node.usable()) == 7, "the event to be received")
    assert node.penstock("run", "--gpus", "7", "--wait", "0", "--", "true").returncode == 0


# Unprivileged agents.


@pytest.fixture
def weak_node(make_node) -> Node:
    node = make_node()
    node.start_agent(READ_ONLY_CGROUPS)
    return node


def test_without_rights_it_says_visibility_only(weak_node):
    done = weak_node.penstock("run", "--device", "1", "--", "env")
    assert "penstock: visibility only:" in done.stderr and "read-only" in done.stderr
    assert f"CUDA_VISIBLE_DEVICES={weak_node.report()['devices'][1]['id']}\n" in done.stdout
    assert "visibility only" in weak_node.allocator("local")["reason"]
    holder = weak_node.hold(1)
    assert weak_node.holders()[0]["enforcement"] == "visibility"
    holder.kill()
    holder.wait()
    free(weak_node)


def test_without_rights_the_process_tree_is_followed(weak_node):
    program = weak_node.hold(1, "sh", "-c", "setsid sh -c 'sleep 1000 & echo $!' & wait; exec sleep 1000")
    daemon = int(program.stdout.readline())
    program.kill()
    program.wait()
    wait_until(lambda: weak_node.holders()[0]["pids"] == [daemon], "the daemon to be the holder")
    weak_node.kill_agent()
    weak_node.start_agent(READ_ONLY_CGROUPS)
    assert weak_node.holders()[0]["pids"] == [daemon], "the lease survives a restart of the agent"
    os.kill(daemon, signal.SIGKILL)
    wait_until(lambda: not alive(daemon), "the daemon to end")
    free(weak_node)


# Outside processes.


def test_a_gpu_that_somebody_uses_without_asking_is_passed_over(node):
    outsider = subprocess.Popen(["sleep", "1000"])
    try:
        node.sim("set", "0", f"process={outsider.pid}:1024:sleep")
        wait_until(lambda: any(holder["state"] == "outside" for holder in node.holders()), "the outside process to be found")
        ids = node.penstock("run", "--gpus", "7", "--", "printenv", "CUDA_VISIBLE_DEVICES").stdout
        assert node.report()["devices"][0]["id"] not in ids
        assert node.penstock("run", "--device", "0", "--wait", "0", "--", "true", check=False).returncode == 124
    finally:
        outsider.kill()
        outsider.wait()


def test_who_only_draws_keeps_a_gpu_from_nobody(node):
    """A display server uses a few MiB of every GPU and does not block it."""
    screen = subprocess.Popen(["sleep", "1001"])
    try:
        for gpu in ("0", "1"):
            node.sim("set", gpu, f"process={screen.pid}:4:Xorg:G")
        wait_until(lambda: node.penstock("ps").stdout.count("sleep 1001") == 2, "the display server to be found on both GPUs")
        assert node.penstock("run", "--device", "0", "--wait", "0", "--", "true", check=False).returncode == 0
        assert {line.split()[1] for line in node.penstock("ps").stdout.splitlines() if "sleep 1001" in line} == {"graphics"}
        program = node.hold(1)  # the first free GPU: GPU 0
        node.sim("set", "0", f"process={program.pid}:1024:train")
        told = json.loads(node.penstock("ps", "-o", "json").stdout)
        assert [(one["index"], one["pids"], one["kind"]) for one in told["graphicsProcesses"]] == [(0, [screen.pid], "graphics"), (1, [screen.pid], "graphics")]
        assert [(one["index"], one["pids"], one["state"]) for one in told["holders"]] == [(0, [program.pid], "held")]
        # A display server that also computes blocks its GPU like any other process.
        node.sim("set", "1", f"process={screen.pid}:4:Xorg:C")
        wait_until(lambda: any((one["index"], one["state"]) == (1, "outside") for one in node.holders()), "the display server to be found to compute")
        assert node.penstock("run", "--device", "1", "--wait", "0", "--", "true", check=False).returncode == 124
    finally:
        screen.kill()
        screen.wait()


def test_a_run_on_a_gpu_that_was_replaced_is_shown(node):
    before = node.report()["devices"][6]["id"]
    program = node.start("--device", "6", "--", "sleep", "1000")
    wait_until(node.holders, "the GPU to be held")
    node.sim("fault", "6", "remove")
    wait_until(lambda: node.report()["devices"][-1]["health"]["state"] == "gone", "the GPU to be gone")
    node.sim("set", "6", "uuid=GPU-00000000-0000-0000-0000-00000000beef", "serial=another")
    node.sim("heal", "6")
    wait_until(lambda: len(node.usable()) == 8 and before not in {one["id"] for one in node.report()["devices"]}, "another GPU in its place")
    holder, = node.holders()
    assert (holder["device"], holder["index"], holder["state"], holder["pids"]) == (before, None, "held", [program.pid])
    assert holder["note"] == f"{before} was replaced by GPU-00000000-0000-0000-0000-00000000beef"
    shown = node.penstock("ps").stdout
    assert "NOTE" in shown and holder["note"] in shown
    program.kill()
    free(node)


def test_a_gpu_that_is_ill_is_passed_over_and_used_again_once_well(node):
    node.sim("fault", "0", "lost")
    wait_until(lambda: len(node.usable()) == 7, "the fault to be detected")
    waiter = node.start("--gpus", 8, "--", "true")
    wait_until(node.queue, "the request for eight GPUs to be queued")
    node.sim("heal", "0")
    assert waiter.wait(PATIENCE) == 0


def test_down_leaves_nothing_behind(node):
    node.penstock("run", "--", "true")
    node.penstock("down")
    assert node.agent.wait(PATIENCE) == 0
    assert not (node.run_dir / "penstock.sock").exists()
    assert node.group_tree() is None
