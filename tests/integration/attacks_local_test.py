"""What one local user can learn about another user's programs through the local socket, and that a hostile name cannot control a terminal.
Needs root, to act as two users."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

SUPPORT = Path(__file__).parents[1] / "support"
sys.path.insert(0, str(SUPPORT))

import webpages  # noqa: E402
from node import PATIENCE, Node, wait_until  # noqa: E402

USER = 12345
SECRET = "hf_VERYSECRET"


@pytest.fixture
def node(request):
    if os.getuid() != 0:
        pytest.fail("needs root")
    home = Path(tempfile.mkdtemp(prefix="penstock-attacked-"))
    home.chmod(0o755)
    node = Node(home, request.config.getoption("--programs").resolve(), "t4-x1", "telemetry: {interval: 1s}\n", listen="127.0.0.1:0")
    node.start_agent(devices=1)
    (node.run_dir / "penstock.sock").chmod(0o666)  # as if the users were in its group
    yield node
    node.end()


def as_user(node: Node, *words) -> str:
    """The output of `penstock` for an unprivileged user who may use the local socket."""
    command = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", node.programs / "penstock", "--run-dir", node.run_dir, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def test_a_user_sees_of_others_programs_their_names_alone(node):
    program = node.hold(1, "sh", "-c", f"sleep 1000 # --hf-token={SECRET}")
    node.sim("set", "0", f"process={program.pid}:100:sh")
    node.start("--wait", "1h", "--", "sh", "-c", f"sleep 999 # {SECRET}")
    theirs = subprocess.Popen(["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", node.programs / "penstock", "--run-dir",
                               node.run_dir, "run", "--wait", "1h", "--", "sleep", "998"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    node.started.append(theirs)
    wait_until(lambda: len(node.queue()) == 2, "both runs to be queued")
    wait_until(lambda: any(one["pid"] == program.pid for one in json.loads(node.penstock("top", "-o", "json").stdout)["processes"]), "the sample", every=0.2)
    holder = json.loads(as_user(node, "ps", "-o", "json"))["holders"][0]
    assert (holder["command"], holder["user"]) == ("sh", "root") and program.pid in holder["pids"]
    assert {entry["command"] for entry in json.loads(as_user(node, "queue", "-o", "json"))["queue"]} == {"sh", "sleep 998"}
    for words in (["ps"], ["queue"], ["status", "-o", "json"], ["top", "-o", "json"], ["usage", "--idle", "-o", "json"], ["plan", "-o", "json"],
                  ["plan", "--explain"]):
        assert SECRET not in as_user(node, *words), words
    for words in (["ps"], ["queue"], ["status", "-o", "json"], ["top", "-o", "json"]):
        assert SECRET in node.penstock(*words).stdout, words


def test_a_user_sees_their_own_commands_whole(node):
    command = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", node.programs / "penstock", "--run-dir", node.run_dir, "run", "--",
               "sleep", "997"]
    node.started.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    wait_until(lambda: node.holders(), "the run to hold a device")
    assert json.loads(as_user(node, "ps", "-o", "json"))["holders"][0]["command"] == "sleep 997"


HOSTILE = ["\u009b31mred", "\u009d0;title\u009c", "\u202egnp.exe", "\u2066isolated", "\x1b[2J"]


def test_a_hostile_name_does_nothing_to_a_terminal(node):
    evil = node.home / ("evil" + "".join(HOSTILE))
    shutil.copy("/usr/bin/sleep", evil)
    node.hold(1, evil, "1000")
    node.start("--wait", "1h", "--", evil, "999")
    wait_until(node.queue, "one run to be queued")
    labelled = node.penstock("run", "--label", "experiment=\u009b31m", "--wait", "0s", "--", "true", check=False)
    assert labelled.returncode != 0 and "printable" in labelled.stderr, labelled.stderr
    for words in (["ps"], ["ps", "-o", "json"], ["queue"], ["queue", "-o", "json"], ["status"], ["top", "--once"], ["top", "-o", "json"]):
        shown = node.penstock(*words).stdout
        assert not any(mark in shown for word in HOSTILE for mark in word if not mark.isascii() or mark == "\x1b"), words
        assert "\\u009b" not in shown and "\\u202e" not in shown, words
    assert not any(mark in node.log() for mark in "\u009b\u009d\u202e\u2066")


@pytest.fixture
def held_memory(node):
    """A process whose command line and environment block every reader. No other program of the test may read them."""
    folder = node.home / "held"
    folder.mkdir()
    ready, told = os.pipe()
    held = subprocess.Popen([sys.executable, SUPPORT / "held_memory.py", folder], stdout=told, stdin=subprocess.DEVNULL, start_new_session=True)
    os.close(told)
    assert os.read(ready, 5) == b"held\n"
    # Uninterruptible: it waits for its own memory. Before, it may wait for its other thread.
    wait_until(lambda: Path(f"/proc/{held.pid}/stat").read_text().rpartition(")")[2].split()[0] == "D", "its memory to be locked")
    yield held
    os.killpg(held.pid, signal.SIGKILL)
    held.wait()
    os.close(ready)
    subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_process_whose_memory_cannot_be_read_stops_nothing(node, held_memory):
    reader = subprocess.Popen(["cat", f"/proc/{held_memory.pid}/cmdline"], stdout=subprocess.DEVNULL)
    node.started.append(reader)
    node.sim("set", "0", f"process={held_memory.pid}:100:python3")
    outside = wait_until(lambda: [one for one in node.holders() if one["pids"] == [held_memory.pid]], "the process to be found on the GPU", every=0.2)
    assert outside[0]["state"] == "outside" and re.fullmatch(r"\[.+\]", outside[0]["command"]), outside
    assert reader.poll() is None, "a reader without a deadline still blocks"
    for _ in range(20):
        assert webpages.answer(webpages.where(node.log()) + "/healthz")[0] == 200
        assert node.penstock("ps").returncode == 0
    node.sim("set", "0", "no-processes")
    wait_until(lambda: not node.holders(), "the GPU to be free", every=0.2)
    assert node.penstock("run", "--wait", "1m", "--", "true").returncode == 0
