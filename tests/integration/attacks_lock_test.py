"""What an unprivileged user can do with the agent's lock, and which processes `penstock down` ends. Needs root, to act as both users."""
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from node import PATIENCE, Node, alive, wait_until  # noqa: E402

ATTACKER = 12345
UNPRIVILEGED = ["setpriv", f"--reuid={ATTACKER}", f"--regid={ATTACKER}", "--clear-groups"]
# Holds a lock on a file that it can only read, and prints "held".
HOLD = """
import fcntl, sys, time
lock = open(sys.argv[1])
fcntl.flock(lock, fcntl.LOCK_EX | int(sys.argv[2]))
print("held", flush=True)
time.sleep(10_000)
"""


@pytest.fixture
def node(request):
    if os.getuid() != 0:
        pytest.fail("needs root")
    home = Path(tempfile.mkdtemp(prefix="penstock-attacked-"))
    home.chmod(0o755)
    node = Node(home, request.config.getoption("--programs").resolve(), "t4-x1")
    node.run_dir.mkdir()
    yield node
    node.end()


@pytest.fixture
def started():
    """Processes that are killed when the test ends."""
    processes = []
    yield processes
    for process in processes:
        process.kill()
        process.wait()


def hold(lock: Path, started: list, at_once: bool = True) -> subprocess.Popen:
    """A process of another user that holds the lock, or waits for it."""
    wait = 4 if at_once else 0  # LOCK_NB
    started.append(subprocess.Popen([*UNPRIVILEGED, shutil.which("python3", path=os.defpath), "-c", HOLD, str(lock), str(wait)], stdout=subprocess.PIPE, text=True))
    if at_once:
        assert started[-1].stdout.readline() == "held\n"
    else:
        wait_until(lambda: "locks_lock" in Path(f"/proc/{started[-1].pid}/wchan").read_text() or "flock" in syscall_of(started[-1].pid),
                   "the process to wait for the lock")
    return started[-1]


def syscall_of(pid: int) -> str:
    number = Path(f"/proc/{pid}/syscall").read_text().split()[0]
    return "flock" if number in ("73", "32") else number  # x86-64, arm64


def old_lock(node: Node, names: int) -> Path:
    """The lock file as earlier versions created it: every user can open it."""
    lock = node.run_dir / "agent.lock"
    lock.write_text(f"{names}\n")
    lock.chmod(0o644)
    return lock


def down(node: Node) -> subprocess.CompletedProcess:
    return node.penstock("down", check=False)


def test_nobody_without_rights_can_open_the_lock(node):
    node.start_agent(devices=1)
    done = subprocess.run([*UNPRIVILEGED, "cat", node.run_dir / "agent.lock"], capture_output=True, text=True)
    assert done.returncode != 0 and "Permission denied" in done.stderr, done.stdout
    ended = down(node)
    assert ended.returncode == 0 and f"process {node.agent.pid}" in ended.stdout, ended.stdout + ended.stderr
    assert node.agent.wait(PATIENCE) == 0


def test_an_agent_starts_although_somebody_holds_the_lock_of_an_earlier_version(node, started):
    hold(old_lock(node, os.getpid()), started)
    node.start_agent(devices=1)
    assert (node.run_dir / "agent.lock").stat().st_mode & 0o777 == 0o600
    assert (node.run_dir / "agent.lock").read_text() == f"{node.agent.pid}\n"


def test_who_waits_for_the_lock_of_an_earlier_version_never_gets_that_of_the_next_agent(node, started):
    """A user who opened the file while its mode allowed it waits until the agent exits."""
    lock = old_lock(node, os.getpid())
    with open(lock, "r+") as earlier:
        fcntl.flock(earlier, fcntl.LOCK_EX)
        hold(lock, started, at_once=False)
    assert started[-1].stdout.readline() == "held\n"
    node.start_agent(devices=1)
    node.end_agent()
    node.start_agent(devices=1)


def test_down_ends_no_bystander_whose_pid_stands_in_the_file(node, started):
    bystander = subprocess.Popen(["sleep", "1000"])
    started.append(bystander)
    hold(old_lock(node, bystander.pid), started)
    refused = down(node)
    assert refused.returncode == 1 and "has stopped" not in refused.stdout, refused.stdout
    assert "is not visible from here" in refused.stderr and bystander.poll() is None
    # A process that holds the lock and is not an agent is not ended either.
    started[1].kill()
    started[1].wait()
    with open(node.run_dir / "agent.lock", "w") as lock:
        holder = subprocess.Popen(["flock", "--exclusive", "--no-fork", lock.name, "sleep", "1000"])
        started.append(holder)
        print(holder.pid, file=lock)
    wait_until(lambda: "is not an agent" in down(node).stderr, "the process to hold the lock", every=0.2)
    assert holder.poll() is None and bystander.poll() is None


@pytest.fixture
def contained(node):
    """An agent in its own pid namespace; its process id in this namespace."""
    node.start_agent(("unshare", "--pid", "--fork", "--kill-child", "--mount-proc"), devices=1)
    children = Path(f"/proc/{node.agent.pid}/task/{node.agent.pid}/children")
    yield int(children.read_text().split()[0])
    node.agent.kill()
    node.agent.wait()


def test_down_ends_an_agent_of_another_pid_namespace_and_waits_for_its_end(node, contained):
    assert (node.run_dir / "agent.lock").read_text() == "1\n"
    done = down(node)
    assert done.returncode == 0 and "(in another pid namespace) has stopped" in done.stdout, done.stdout + done.stderr
    assert not os.path.exists(f"/proc/{contained}/fd/0"), "the agent has exited"


def test_down_does_not_say_that_an_agent_of_another_pid_namespace_has_ended_while_it_lives(node, contained):
    os.kill(contained, signal.SIGSTOP)
    try:
        done = down(node)
        assert done.returncode == 1 and "has stopped" not in done.stdout, done.stdout
        assert "another pid namespace" in done.stderr and alive(contained), done.stderr
    finally:
        os.kill(contained, signal.SIGCONT)
