"""Devices closed to whole control groups (`allocators.local.closedCgroups`): which devices an unprivileged user in such a group can still
open, and how they are opened again. Needs root and the unified hierarchy of this machine. Device files are simulated: open() fails with ENXIO
if it is allowed, and with EPERM if not."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from limits_test import NOBODY, USERS, Groups, refuse_devices, ALONE  # noqa: E402
from node import PATIENCE, Node, wait_until  # noqa: E402
from run_test import READ_ONLY_CGROUPS  # noqa: E402

PYTHON = "/usr/bin/python3"
# Opens the GPUs' device files; if there is a last argument, first moves into that control group.
OPEN = """
import errno, os, sys
if len(sys.argv) > 2: open(sys.argv[2] + "/cgroup.procs", "w").write(str(os.getpid()))
answers = set()
for i in range(8):
    try: os.open(f"{sys.argv[1]}/dev/nvidia{i}", os.O_RDWR)
    except OSError as error: answers.add(errno.errorcode[error.errno])
print(*sorted(answers))
"""
# Opens its device once for each line on standard input.
OPEN_WHEN_ASKED = """
import errno, os, sys
for _ in sys.stdin:
    try: os.open(sys.argv[1], os.O_RDWR)
    except OSError as error: print(errno.errorcode[error.errno], flush=True)
"""


@pytest.fixture
def groups():
    if os.getuid() != 0:
        pytest.fail("control groups need root")
    groups = Groups()
    yield groups
    groups.remove()


@pytest.fixture
def make(request, groups):
    nodes = []

    def one(*closed: str) -> Node:
        home = Path(tempfile.mkdtemp(prefix="penstock-closed-"))
        home.chmod(0o755)
        node = Node(home, request.config.getoption("--programs"), config=config_of(groups, *closed))
        nodes.append(node)
        node.programs = Path(shutil.copytree(node.programs, home / "bin"))  # so that unprivileged users can execute them
        node.start_agent()
        return node
    yield one
    for node in nodes:
        node.end()


def config_of(groups: Groups, *closed: str) -> str:
    return f"allocators: {{local: {{group: users, closedCgroups: [{', '.join(f'{groups.top.name}/{one}' for one in closed)}]}}}}\n"


def in_group(group: Path, uid: int = NOBODY) -> dict:
    def enter():
        (group / "cgroup.procs").write_text(str(os.getpid()))
        if uid:
            os.setgroups([USERS])
            os.setregid(uid, uid)
            os.setreuid(uid, uid)
    return {"preexec_fn": enter, "stdin": subprocess.DEVNULL, "text": True, "cwd": "/"}


def opened(node: Node, group: Path, uid: int = NOBODY, wrapper: tuple = (), move_to: Path | None = None) -> str:
    """The results of opening the GPUs in that group: one word if all are the same."""
    words = [*wrapper, PYTHON, "-c", OPEN, node.root, *([move_to] if move_to else [])]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE, **in_group(group, uid))
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def ask(holder: subprocess.Popen) -> str:
    """Has a program of OPEN_WHEN_ASKED open its device; returns the result."""
    holder.stdin.write("\n")
    holder.stdin.flush()
    return holder.stdout.readline().strip()


def closed(node: Node) -> list[str]:
    return node.allocator("local")["closedCgroups"]


def test_nothing_is_closed_by_default(make, groups):
    session = groups.make("user.slice/session-3.scope")
    node = make()
    assert closed(node) == [] and node.allocator("local")["closedCgroupsProblem"] == ""
    assert opened(node, session) == "ENXIO"


def test_users_open_what_they_were_given_and_nothing_else(make, groups):
    session = groups.make("user.slice/session-3.scope", owner=NOBODY)
    elsewhere = groups.make("system.slice/some.service")
    node = make("user.slice")
    assert closed(node) == [f"/{groups.top.name}/user.slice"]
    assert f"closed to /{groups.top.name}/user.slice" in node.penstock("status").stdout
    assert opened(node, session) == "EPERM"
    assert opened(node, session, uid=0) == "ENXIO", "root's daemons can open the devices"
    assert opened(node, elsewhere) == "ENXIO", "groups that are not configured stay open"

    run = ("run", "--device", "2", "--", PYTHON, "-c", OPEN, str(node.root))
    done = subprocess.run([node.programs / "penstock", "--run-dir", node.run_dir, *run], capture_output=True, timeout=PATIENCE, **in_group(session))
    assert done.stdout.split() == ["ENXIO", "EPERM"], done
    assert opened(node, session) == "EPERM", "the end of the run opened nothing to other processes of the session"


def test_who_has_no_privileges_finds_no_way_round(make, groups):
    session = groups.make("user.slice/session-3.scope", owner=NOBODY)
    own = groups.make("user.slice/session-3.scope/own", owner=NOBODY)
    node = make("user.slice")
    assert opened(node, session, move_to=own) == "EPERM", "a group that the user created is closed too"
    namespace = ("unshare", "--user", "--map-root-user")
    assert opened(node, session, wrapper=namespace) == "EPERM", "root in a user namespace of the user is refused too"
    holder = node.start("--device", "1", "--", "sleep", "1000", **{**in_group(session), "stdout": subprocess.DEVNULL})
    group = wait_until(lambda: [one for one in session.iterdir() if one.is_dir() and node.group_name() in one.name], "the lease's group")[0]
    with pytest.raises(AssertionError, match="PermissionError"):
        opened(node, session, move_to=group)
    assert opened(node, session) == "EPERM"
    holder.kill()


def test_all_is_open_again_when_the_agent_is_gone_and_closed_by_the_next(make, groups):
    session = groups.make("user.slice/session-3.scope")
    node = make("user.slice")
    holder = node.start("--device", "4", "--", PYTHON, "-c", OPEN_WHEN_ASKED, f"{node.root}/dev/nvidia4", **{**in_group(session), "stdin": subprocess.PIPE})
    assert ask(holder) == "ENXIO"
    node.kill_agent()
    wait_until(lambda: opened(node, session) == "ENXIO", "the kernel to remove the BPF programs of the dead agent")
    node.start_agent()
    assert closed(node) and opened(node, session) == "EPERM"
    assert ask(holder) == "ENXIO", "a run that holds a device can still open it"
    node.agent.send_signal(signal.SIGTERM)
    assert node.agent.wait(PATIENCE) == 0
    wait_until(lambda: opened(node, session) == "ENXIO", "the devices to be open")
    holder.kill()
    node.start_agent()


def test_nothing_is_closed_while_a_run_lives_that_was_given_devices_without_rights(make, groups):
    session = groups.make("user.slice/session-3.scope")
    node = make("user.slice")
    node.end_agent()
    node.start_agent(READ_ONLY_CGROUPS)
    assert closed(node) == []
    holder = node.start("--device", "4", "--", PYTHON, "-c", OPEN_WHEN_ASKED, f"{node.root}/dev/nvidia4", **{**in_group(session), "stdin": subprocess.PIPE})
    assert ask(holder) == "ENXIO"
    lease = node.holders()[0]["lease"]
    node.kill_agent()
    node.start_agent()
    wait_until(lambda: lease in node.allocator("local")["closedCgroupsProblem"], "the run to be named")
    assert closed(node) == [] and ask(holder) == "ENXIO", "the run still holds the device"
    assert lease in node.penstock("status").stdout
    holder.kill()
    wait_until(lambda: closed(node), "the devices to be closed after the run has ended")
    assert opened(node, session) == "EPERM" and node.allocator("local")["closedCgroupsProblem"] == ""


def test_groups_may_come_and_go_and_the_configuration_change(make, groups):
    node = make("user.slice")
    problem = node.allocator("local")["closedCgroupsProblem"]
    assert closed(node) == [] and f"/{groups.top.name}/user.slice" in problem and "No such file" in problem
    assert "not closed as configured" in node.penstock("status").stdout
    for _ in range(2):
        session = groups.make("user.slice/session-3.scope")
        wait_until(lambda: closed(node) == [f"/{groups.top.name}/user.slice"], "the group to be closed")
        assert opened(node, session) == "EPERM"
        session.rmdir()
        session.parent.rmdir()
        wait_until(lambda: closed(node) == [], "the removal of the group to be noticed")
    session = groups.make("user.slice/session-3.scope")
    wait_until(lambda: closed(node), "the group to be closed")
    text = node.config.read_text()
    node.config.write_text(text.replace(f"[{groups.top.name}/user.slice]", "[]"))
    wait_until(lambda: closed(node) == [], "the new configuration")
    wait_until(lambda: opened(node, session) == "ENXIO", "the devices to be open")
    node.config.write_text(text)
    wait_until(lambda: closed(node), "the old configuration")
    assert opened(node, session) == "EPERM"


def test_a_group_that_is_fenced_in_by_another_says_why_it_is_not_closed(make, groups):
    fenced = groups.make("job_7")
    refuse_devices(fenced, ALONE)
    node = make("job_7")
    assert closed(node) == [] and "exclusive program" in node.allocator("local")["closedCgroupsProblem"]
