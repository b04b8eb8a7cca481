"""The queue for GPUs on a simulated DGX A100, with users of the test's own: limits of competing users, runs that declare their duration, and
places that survive an agent's restart. Needs root: real control groups."""
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from node import PATIENCE, Node, alive, wait_until  # noqa: E402

USERS = 100
ANN, BOB = 64001, 64002  # users without a name
OPEN = "allocators: {local: {group: users}}\n"


@pytest.fixture
def make_node(make_node):
    def make(limits: str = "", **options) -> Node:
        config = OPEN + (f"queue: {{perUser: {{{limits}}}}}\n" if limits else "")
        node = make_node(config=config, **options)
        node.programs = Path(shutil.copytree(node.programs, node.home / "bin"))  # so that every user can execute them
        node.start_agent()
        return node
    return make


def by(user: int) -> dict:
    return {"user": user, "group": user, "extra_groups": [USERS], "env": {"PATH": os.environ["PATH"]}}


def hold(node: Node, user: int, gpus: int, *words) -> subprocess.Popen:
    program = node.start("--gpus", gpus, *words, "--", "sleep", "1000", **by(user))
    wait_until(lambda: any(program.pid in holder["pids"] for holder in node.holders()), f"{gpus} GPUs to be held")
    return program


def wait_in_line(node: Node, user: int, gpus: int, *words) -> subprocess.Popen:
    """Starts a run that is queued, and that holds its devices once it is served."""
    before = len(node.queue())
    program = node.start("--gpus", gpus, *words, "--", "sleep", "1000", **by(user))
    wait_until(lambda: len(node.queue()) == before + 1, "one more run to be queued")
    return program


def held_by(node: Node, *programs: subprocess.Popen) -> int:
    pids = {program.pid for program in programs}
    return sum(bool(pids & set(holder["pids"])) for holder in node.holders())


def saved(node: Node) -> str:
    """The places and terms on disk, where the agent writes them a moment after they change."""
    file = node.state_dir / "queue.json"
    return file.read_text() if file.exists() else ""


def end(node: Node, program: subprocess.Popen):
    program.kill()
    program.wait()


# Limits of competing users.


def test_a_user_alone_knows_no_limits(make_node):
    node = make_node("gpus: 2, waiting: 1, time: 1s")
    everything = hold(node, ANN, 8)
    waiting = [wait_in_line(node, ANN, 8) for _ in range(3)]
    node.penstock("queue")
    assert everything.poll() is None and all(program.poll() is None for program in waiting)
    end(node, everything)
    wait_until(lambda: held_by(node, waiting[0]) == 8, "the next run to hold everything")


def test_what_is_beyond_a_users_limit_comes_after_all_others(make_node):
    node = make_node("gpus: 2")
    assert "limits of each user while others wait: 2 devices (queue.perUser)" in node.penstock("status").stdout
    everything = hold(node, ANN, 8)
    first, second, third, fourth = (wait_in_line(node, ANN, 2) for _ in range(4))
    bob = wait_in_line(node, BOB, 2)
    root = node.start("--gpus", 4, "--", "sleep", "1000")
    wait_until(lambda: len(node.queue()) == 6, "root's run to be queued, too")
    assert [entry["user"] for entry in node.queue()] == [str(BOB), "root", *[str(ANN)] * 4]
    end(node, everything)
    wait_until(lambda: held_by(node, first, bob, root) == 8, "the other users and the run within the limit to be served")
    assert held_by(node, second, third, fourth) == 0
    end(node, bob)
    wait_until(lambda: held_by(node, second) == 2, "the run beyond the limit to be served when no other user waits")


def test_requests_beyond_the_limit_are_refused_while_others_wait(make_node):
    node = make_node("waiting: 2")
    hold(node, ANN, 8)
    wait_in_line(node, ANN, 1)
    wait_in_line(node, ANN, 1)
    wait_in_line(node, BOB, 1)
    refused = node.penstock("run", "--", "true", check=False, **by(ANN))
    assert refused.returncode == 125
    assert "queue.perUser.waiting" in refused.stderr and "you have 2 requests queued" in refused.stderr
    wait_in_line(node, BOB, 1)
    root = [node.start("--", "true") for _ in range(3)]
    wait_until(lambda: len(node.queue()) == 7, "root's requests to be queued without a limit")
    assert all(program.poll() is None for program in root)


def test_a_run_beyond_its_time_is_ended_for_another_user_and_only_then(make_node):
    node = make_node("time: 10s")
    longest, other = hold(node, ANN, 4), hold(node, ANN, 4)
    by_root = node.start("--gpus", 8, "--", "sleep", "1000")
    wait_until(lambda: len(node.queue()) == 1, "root's run to be queued")
    own = wait_in_line(node, ANN, 8)
    assert longest.wait(PATIENCE) == -signal.SIGTERM and other.wait(PATIENCE) == -signal.SIGTERM
    wait_until(lambda: held_by(node, by_root) == 8, "root to be served")
    text = longest.communicate()[1]
    assert "after 10s this run may be ended if another user waits" in text
    bob = wait_in_line(node, BOB, 1)
    node.penstock("queue")
    assert by_root.poll() is None, "root has no time limit"
    assert own.poll() is None and bob.poll() is None
    assert re.search(r"terminating the run.*root waits for its devices", node.log())


def test_who_waits_oneself_does_not_keep_a_run_from_being_ended_for_another_user(make_node):
    node = make_node("time: 1s")
    everything = hold(node, ANN, 8)
    own = wait_in_line(node, ANN, 8)
    assert everything.poll() is None
    bob = node.start("--gpus", 8, "--", "sleep", "1000", **by(BOB))
    assert everything.wait(PATIENCE) == -signal.SIGTERM
    assert bob.wait(PATIENCE) == -signal.SIGTERM, "the run is served, and ended after its time"
    wait_until(lambda: held_by(node, own) == 8, "the first user's queued run to be served")


def test_no_run_is_ended_for_who_asks_for_more_than_the_limit_and_is_alone_in_line(make_node):
    node = make_node("gpus: 2, time: 1s")
    runs = [hold(node, BOB, 2), hold(node, BOB, 2)]
    hold(node, BOB, 4)
    beyond = wait_in_line(node, ANN, 4)
    for _ in range(20):  # each makes the agent serve the queue again; the runs exceed their time
        node.start("--device", 0, "--wait", "100ms", "--", "true", **by(ANN)).wait(PATIENCE)
    assert beyond.poll() is None and all(run.poll() is None for run in runs) and "terminating the run" not in node.log()
    within = node.start("--gpus", 2, "--", "true", **by(ANN))
    wait_until(lambda: len(node.queue()) == 2, "another run of the same user to be queued")
    end(node, beyond)
    assert within.wait(PATIENCE) == 0
    assert sum(run.poll() == -signal.SIGTERM for run in runs) == 1


def test_a_run_is_not_ended_for_who_does_not_wait_until_its_end(make_node):
    node = make_node("time: 1s")
    run = hold(node, BOB, 8)
    for _ in range(100):
        hasty = node.start("--gpus", 8, "--wait", "20ms", "--", "true", **by(ANN))
        assert hasty.wait(PATIENCE) == 124
    short = node.start("--gpus", 8, "--wait", "5s", "--", "true", **by(ANN))
    assert short.wait(PATIENCE) == 124
    assert run.poll() is None and "terminating the run" not in node.log()
    patient = node.start("--gpus", 8, "--wait", "31s", "--", "true", **by(ANN))
    assert patient.wait(PATIENCE) == 0
    assert run.wait(PATIENCE) == -signal.SIGTERM


def test_many_requests_for_one_gpu_keep_nobody_from_the_others(make_node):
    node = make_node()
    holder = node.start("--device", 0, "--", "sleep", "1000", **by(ANN))
    wait_until(lambda: held_by(node, holder) == 1, "GPU 0 to be held")
    for _ in range(70):
        node.start("--device", 0, "--", "true", **by(ANN))
    wait_until(lambda: len(node.queue()) == 70, "all runs to be queued")
    for user in (BOB, ANN):
        victim = node.start("--device", 1, "--wait", f"{PATIENCE}s", "--", "true", **by(user))
        assert victim.wait(2 * PATIENCE) == 0, victim.communicate()[1]
    assert len(node.queue()) == 70


# Runs that declare their duration.


@pytest.mark.parametrize("said, milliseconds", [("90", "5400000ms"), ("2:00:00", "7200000ms"), ("1-12", "129600000ms"), ("2h30m", "9000000ms")])
def test_a_time_is_said_as_slurm_has_it(make_node, said, milliseconds):
    node = make_node()
    hold(node, ANN, 8)
    wait_in_line(node, BOB, 1, "--time", said)
    assert node.queue()[0]["time"] == milliseconds


def test_a_run_ends_when_the_time_is_over_that_it_declared(make_node):
    node = make_node()
    program = node.start("--time", "10s", "--", "sh", "-c", "trap 'echo asked to end; exit 7' TERM; while :; do sleep 0.1; done", **by(ANN))
    assert program.wait(PATIENCE) == 7
    out, err = program.communicate()
    assert out == "asked to end\n"
    assert "this run is ended after 10s (--time)" in err
    wait_until(lambda: not node.holders(), "the device to be released")
    wrong = node.penstock("run", "--time", "soon", "--", "true", check=False)
    assert wrong.returncode == 125 and "1-12 (days-hours)" in wrong.stderr


def test_a_run_that_does_not_listen_is_killed_also_by_the_next_agent_and_asked_once(make_node):
    node = make_node()
    program = node.start("--time", "10s", "--", "sh", "-c", "trap 'echo asked to end' TERM; while :; do sleep 0.1; done", **by(ANN))
    wait_until(lambda: "terminating the run" in node.log(), "the run to be terminated")
    wait_until(lambda: '"killed"' in saved(node), "the kill to be saved")
    node.kill_agent()
    node.start_agent()
    assert program.wait(90) == -signal.SIGKILL
    assert program.communicate()[0] == "asked to end\n"


# Starts this many children; prints how many of them received SIGTERM.
MANY = """
import os, signal, sys, time
parent, (reader, writer) = os.getpid(), os.pipe()
def asked(*_):
    if os.getpid() != parent:
        os.write(writer, b"x")
        os._exit(0)
signal.signal(signal.SIGTERM, asked)
for _ in range(int(sys.argv[1])):
    if os.fork() == 0:
        while True: time.sleep(0.1)
os.close(writer)
print("begun", flush=True)
print(len(b"".join(iter(lambda: os.read(reader, 4096), b""))), flush=True)
"""


def test_all_processes_of_a_large_run_are_asked_to_end_with_few_descriptors(make_node):
    node = make_node("time: 1s")
    run = node.start("--gpus", 8, "--", "/usr/bin/python3", "-c", MANY, 300, **by(ANN))
    assert run.stdout.readline() == "begun\n"
    descriptors = max(int(one.name) for one in Path(f"/proc/{node.agent.pid}/fd").iterdir())
    resource.prlimit(node.agent.pid, resource.RLIMIT_NOFILE, (descriptors + 32, descriptors + 32))
    bob = node.start("--gpus", 8, "--", "true", **by(BOB))
    assert run.stdout.readline() == "300\n"
    assert bob.wait(PATIENCE) == 0


def test_a_short_run_goes_ahead_where_it_delays_nobody(make_node):
    node = make_node()
    six = hold(node, ANN, 6, "--time", "1h")
    large = wait_in_line(node, BOB, 8)
    long = wait_in_line(node, ANN, 1, "--time", "2h")
    silent = wait_in_line(node, ANN, 1)
    short = hold(node, ANN, 2, "--time", "30m")
    wait_until(lambda: "expectedStart" in node.queue()[0], "a start to be expected")
    queue = node.queue()
    assert [entry["gpus"] for entry in queue] == [8, 1, 1]
    assert "expectedStart" in queue[0] and "time" not in queue[0]
    assert "expectedStart" not in queue[2], "no start is expected behind a run without --time"
    assert re.search(r" (1h|59m)", node.penstock("queue").stdout)
    end(node, six)
    assert held_by(node, long, silent) == 0
    end(node, short)
    wait_until(lambda: held_by(node, large) == 8, "the large run to be served")


def test_the_one_in_front_is_served_beside_a_flow_of_short_runs(make_node):
    """Short runs of two seconds always fit. The first run in the queue is served as soon as the last device that it needs is released."""
    node = make_node()
    hold(node, ANN, 6, "--time", "14s")  # a run of 2 s is served in the first 12 s of them: each may last 30 s longer than it declares
    large = wait_in_line(node, BOB, 8)
    served = 0
    while large.poll() is None and not held_by(node, large):
        flow = [node.start("--time", "2s", "--wait", "2s", "--", "true", **by(ANN)) for _ in range(4)]
        served += sum(program.wait(PATIENCE) == 0 for program in flow)
    assert held_by(node, large) == 8
    assert served > 0, "some short runs must be served earlier"


def test_the_one_in_front_is_served_beside_a_flow_of_short_runs_that_do_not_listen(make_node):
    """Each run declares five seconds and ignores SIGTERM, so it is killed 30 s later. The first run in the queue starts as expected."""
    node = make_node()
    hold(node, ANN, 7, "--time", "20s")
    large = wait_in_line(node, BOB, 8)
    promised = wait_until(lambda: node.queue()[0].get("expectedStart"), "a start to be expected")
    served = 0
    while waiting := node.queue():
        late = datetime.fromisoformat(waiting[0]["expectedStart"]) - datetime.fromisoformat(promised)
        assert late < timedelta(seconds=15), f"{served} runs started earlier and delay the first in the queue"  # each by 30 s
        run = node.start("--wait", "0s", "--time", "5s", "--", "bash", "-c", 'trap "" TERM; while :; do sleep 0.1; done', **by(ANN))
        wait_until(lambda: run.poll() is not None or held_by(node, run), "the run to be served or refused")
        served += run.poll() is None
    wait_until(lambda: held_by(node, large) == 8, "the first run in the queue to be served")
    assert served > 0, "some short runs must be served earlier"


def test_starts_are_expected_no_later_than_anybody_can_know(make_node):
    node = make_node()
    hold(node, ANN, 8, "--time", "1h")
    for _ in range(31):
        node.start("--gpus", 8, "--time", "87600h", "--", "true", **by(ANN))
    wait_until(lambda: len(node.queue()) == 31, "all runs to be queued")
    starts = wait_until(lambda: [entry["expectedStart"] for entry in node.queue() if "expectedStart" in entry], "a start to be expected")
    assert len(starts) == 1 and starts[0] > node.queue()[0]["since"]


# Places survive an agent's restart.


def served_in_order(node: Node, programs: list[subprocess.Popen]):
    """Asserts that the runs hold all GPUs one after the other, in this order."""
    for program in programs:
        wait_until(lambda: held_by(node, program) == 8, "the next run to be served")
        assert [other for other in programs if held_by(node, other)] == [program]
        end(node, program)


@pytest.mark.parametrize("how", ["killed", "ended"])
def test_who_waits_keeps_the_place_when_the_agent_is_started_anew(make_node, how):
    node = make_node()
    holder = hold(node, ANN, 8)
    waiting = [wait_in_line(node, user, 8) for user in (BOB, ANN, BOB, ANN)]
    tickets = [entry["ticket"] for entry in node.queue()]
    since = [entry["since"] for entry in node.queue()]
    wait_until(lambda: all(ticket in saved(node) for ticket in tickets), "the places to be saved")
    for _ in range(2):
        node.kill_agent() if how == "killed" else node.end_agent()
        node.start_agent()
        late = node.start("--gpus", 8, "--wait", "1m", "--", "sleep", "1000", **by(BOB))
        wait_until(lambda: sum(bool(entry["command"]) for entry in node.queue()) == 5, "all runs to be queued again, and a new one")
        assert [entry["ticket"] for entry in node.queue()][:4] == tickets and [entry["since"] for entry in node.queue()][:4] == since
        end(node, late)
        wait_until(lambda: len(node.queue()) == 4, "the new run to leave the queue")
    end(node, holder)
    served_in_order(node, waiting)
    said = waiting[0].communicate()[1]
    assert re.search(r"penstock: the agent .* exited before it answered; waiting up to 10m for the agent, to keep the place q-\d+\n", said)


def test_nobody_comes_back_to_a_place_for_more_than_it_was_for(make_node):
    node = make_node()
    hold(node, ANN, 8)
    program = subprocess.Popen(["/usr/bin/python3", "-c", GROW, node.run_dir / "penstock.sock"], text=True, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, **by(ANN))
    node.started.append(program)
    ticket = program.stdout.readline().strip()
    stays = wait_in_line(node, BOB, 8)
    wait_until(lambda: saved(node).count('"ticket"') == 2, "the places to be saved")
    node.end_agent()
    node.start_agent()
    wait_until(lambda: [entry["command"] for entry in node.queue()][-1:] == ["sleep 1000"], "the other run to be queued again")
    program.stdin.write(ticket + "\n")
    program.stdin.flush()
    assert program.stdout.readline().strip() not in ("", ticket)
    assert [(entry["user"], entry["gpus"]) for entry in node.queue()] == [(str(BOB), 8), (str(ANN), 8)]
    assert stays.poll() is None


GROW = """
import json, socket, sys
def ask(gpus, ticket):
    peer = socket.socket(socket.AF_UNIX)
    peer.connect(sys.argv[1])
    peer.sendall(json.dumps({"op": "run", "gpus": gpus, "ticket": ticket}).encode() + b"\\n")
    print(json.loads(peer.makefile().readline())["waiting"]["ticket"], flush=True)
    return peer
peer = ask(1, "")
peer = ask(8, sys.stdin.readline().strip())
sys.stdin.read()
"""


def test_a_place_whose_program_ended_meanwhile_is_dropped(make_node):
    node = make_node()
    hold(node, ANN, 8)
    gone = wait_in_line(node, ANN, 8)
    stays = wait_in_line(node, BOB, 8)
    wait_until(lambda: saved(node).count('"pid"') == 2, "the places to be saved")
    node.kill_agent()
    end(node, gone)
    node.start_agent()
    wait_until(lambda: [entry["command"] for entry in node.queue()] == ["sleep 1000"], "one run to be queued again")
    assert node.queue()[0]["user"] == str(BOB) and stays.poll() is None


def test_a_place_that_nobody_comes_back_to_holds_up_the_others_for_a_bounded_time(make_node):
    node = make_node()
    holder = hold(node, ANN, 8)
    stopped = wait_in_line(node, ANN, 8)
    stays = wait_in_line(node, BOB, 8)
    wait_until(lambda: saved(node).count('"pid"') == 2, "the places to be saved")
    stopped.send_signal(signal.SIGSTOP)
    node.kill_agent()
    node.start_agent()
    end(node, holder)
    wait_until(lambda: held_by(node, stays) == 8, "the next run to be served")
    stopped.send_signal(signal.SIGCONT)
    wait_until(lambda: len(node.queue()) == 1, "the other run to be queued at the end")


def test_who_does_not_wait_makes_the_agent_write_nothing(make_node):
    node = make_node()
    hold(node, ANN, 8)
    wait_in_line(node, BOB, 1)
    file = node.state_dir / "queue.json"
    wait_until(lambda: saved(node).count('"pid"') == 1, "the place to be saved")
    files = [file.stat().st_ino]
    for _ in range(1200):
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(str(node.run_dir / "penstock.sock"))
            peer.sendall(b'{"op":"run","gpus":8,"wait":"0s"}\n')
            assert json.loads(peer.makefile().readline())["error"]["code"] == "DEADLINE_EXCEEDED"
        if (now := file.stat().st_ino) != files[-1]:
            files.append(now)
    assert len(files) <= 4, "writes only to reserve more ticket numbers"
    assert file.read_text().count('"pid"') == 1


STEAL = """
import json, os, socket, sys
peer = socket.socket(socket.AF_UNIX)
peer.connect(sys.argv[1])
peer.sendall(json.dumps({"op": "run", "gpus": 8, "ticket": sys.argv[2]}).encode() + b"\\n")
print(json.loads(peer.makefile().readline())["waiting"]["ticket"], flush=True)
sys.stdin.read()
"""


def test_nobody_takes_the_place_of_another_process(make_node):
    node = make_node()
    hold(node, ANN, 8)
    victim = wait_in_line(node, BOB, 8)
    ticket = node.queue()[0]["ticket"]
    wait_until(lambda: ticket in saved(node), "the place to be saved")
    victim.send_signal(signal.SIGSTOP)
    node.kill_agent()
    node.start_agent()
    for user in (ANN, BOB):  # another user, and another process of the same user
        node.started.append(subprocess.Popen(["/usr/bin/python3", "-c", STEAL, node.run_dir / "penstock.sock", ticket], text=True,
                                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **by(user)))
        assert node.started[-1].stdout.readline().strip() not in ("", ticket)
    victim.send_signal(signal.SIGCONT)
    wait_until(lambda: node.queue()[0]["command"] == "sleep 1000", "the victim's run to be queued again")
    assert (node.queue()[0]["ticket"], node.queue()[0]["user"]) == (ticket, str(BOB))


@pytest.mark.parametrize("text, aside", [('{"version": 99, "new": []}', "queue.json.newer"), ("{", "queue.json.damaged"),
                                         (None, None)])
def test_a_file_that_cannot_be_used_keeps_no_agent_from_starting(make_node, text, aside):
    node = make_node()
    node.end_agent()
    file = node.state_dir / "queue.json"
    if text is None:
        file.unlink(missing_ok=True)
        file.mkdir()
    else:
        file.write_text(text)
    node.start_agent()
    assert aside is None or (node.state_dir / aside).read_text() == text
    node.penstock("run", "--", "true")


def test_programs_that_know_no_tickets_are_served_as_before(make_node):
    """A run of 0.1.0 ignores unknown keys, and loses its place when the agent exits."""
    node = make_node()
    hold(node, ANN, 8)
    old = socket.socket(socket.AF_UNIX)
    old.connect(str(node.run_dir / "penstock.sock"))
    old.sendall(b'{"op":"run","gpus":1}\n')
    waiting = json.loads(old.makefile().readline())["waiting"]
    assert {"ticket", "position", "reason", "user", "command", "gpus", "since"} <= waiting.keys()
    node.end_agent()
    assert old.makefile().readline() == ""


OLD_AGENT = """
import json, os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
print("listens", flush=True)
peer, _ = listener.accept()
request = json.loads(peer.makefile().readline())
print(json.dumps(request), flush=True)
waiting = {"ticket": "q-1", "position": 0, "reason": "none is free", "user": "root", "command": "true", "gpus": 1, "since": "2026-11-21T03:42:00.123Z"}
peer.sendall(json.dumps({"waiting": waiting}).encode() + b"\\n")
"""


def test_an_agent_that_keeps_no_places_is_not_waited_for(make_node):
    node = make_node()
    run_dir = node.home / "old"
    run_dir.mkdir()
    agent = subprocess.Popen(["/usr/bin/python3", "-c", OLD_AGENT, run_dir / "penstock.sock"], stdout=subprocess.PIPE, text=True)
    node.started.append(agent)
    agent.stdout.readline()
    run = subprocess.run([node.programs / "penstock", "--run-dir", run_dir, "run", "--", "true"], capture_output=True, text=True, timeout=PATIENCE,
                         stdin=subprocess.DEVNULL, check=False)
    assert run.returncode == 125 and "exited before it answered" in run.stderr
    assert json.loads(agent.stdout.readline()) == {"op": "run", "gpus": 1, "command": "true"}, "a request has no keys that the old agent does not know"
    assert not alive(agent.pid) or agent.wait(PATIENCE) == 0
