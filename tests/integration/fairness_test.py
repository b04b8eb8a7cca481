"""Clients of the broker cannot keep other clients from being served: neither by waiting, nor by the size of their requests, nor by their
number. Needs root: real control groups, and users of the test's own."""
import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from node import Node, wait_until  # noqa: E402


@pytest.fixture
def node(make_node) -> Node:
    node = make_node()
    node.start_agent()
    return node


# Expensive requests. The hostile user is `nobody`, who is in the socket's group.

NOBODY, USERS = 65534, 100
PYTHON = "/usr/bin/python3"  # executable by every user
CONNECT = """
import json, socket, sys, threading, time
def connect():
    peer = socket.socket(socket.AF_UNIX)
    peer.connect(sys.argv[1])
    return peer
"""


@pytest.fixture
def open_node(make_node) -> Node:
    """A node whose socket is open to a group."""
    node = make_node(config="allocators: {local: {group: users}}\n")
    node.start_agent()
    return node


def attack(node: Node, program: str) -> subprocess.Popen:
    """Runs a program as the user `nobody` until the node stops. Returns after the program has printed a line, when its attack has begun."""
    node.started.append(subprocess.Popen([PYTHON, "-c", CONNECT + program, node.run_dir / "penstock.sock"], stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL, user=NOBODY, group=NOBODY, extra_groups=[USERS]))
    assert node.started[-1].stdout.readline() == "begun\n", node.started[-1].communicate()
    return node.started[-1]


def answered(node: Node):
    """Asserts that root is served."""
    assert node.report() is not None, "no status"
    node.penstock("ps")
    node.penstock("queue")


def test_a_connection_that_never_stops_asking_keeps_nobody_waiting(open_node):
    attack(open_node, """
peer, lines = connect(), b'{"op":"version"}\\n' * 3000
def drain():
    while peer.recv(1 << 20): pass
threading.Thread(target=drain, daemon=True).start()
peer.sendall(lines)
print("begun", flush=True)
while True: peer.sendall(lines)
""")
    for _ in range(10):
        answered(open_node)


def test_a_user_is_answered_at_a_bounded_rate_and_root_at_any(open_node):
    """Each user may send 400 requests at once and 100 in each second."""
    program = attack(open_node, """
peer = connect()
print("begun", flush=True)
begun = time.monotonic()
peer.sendall(b'{"op":"version"}\\n' * 1000)
reader = peer.makefile()
for _ in range(1000): reader.readline()
print(time.monotonic() - begun, flush=True)
""")
    assert float(program.stdout.readline()) > 5, "600 requests exceed the burst"
    for _ in range(20):
        answered(open_node)


def test_one_user_takes_neither_all_places_nor_those_of_others(open_node):
    open_node.hold(8)
    hostile = attack(open_node, """
peers = []
for _ in range(300):
    peers.append(connect())
    try:
        peers[-1].sendall(b'{"op":"run"}\\n')
        peers[-1].recv(65536)
    except OSError:
        pass
idle = [connect() for _ in range(300)]
print("begun", flush=True)
time.sleep(1000)
""")
    assert len(open_node.queue()) == 264, "three quarters of the queue's places"
    answered(open_node)
    mine = open_node.start("--", "true")
    waiting(open_node, 265)
    ticket = next(entry["ticket"] for entry in open_node.queue() if entry["user"] == "root")
    open_node.penstock("queue", "cancel", ticket)
    assert mine.wait() == 125
    other = {"user": 1, "group": 1, "extra_groups": [USERS]}
    asked = subprocess.run([PYTHON, "-c", CONNECT + "peer = connect(); peer.sendall(b'{\"op\":\"version\"}\\n'); print(peer.recv(65536).decode())",
                            open_node.run_dir / "penstock.sock"], capture_output=True, text=True, **other)
    assert "protocol" in json.loads(asked.stdout), asked
    hostile.kill()
    waiting(open_node, 0)


def test_answers_that_nobody_reads_are_bounded_together(open_node):
    """Each connection requests as many reports as fit into its socket buffer, and reads none."""
    def resident() -> int:
        status = Path(f"/proc/{open_node.agent.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) >> 10
    before = resident()
    attack(open_node, """
peers = [connect() for _ in range(150)]
for peer in peers:
    peer.setblocking(False)
    peer.send(b'{"op":"status"}\\n' * 200)
print("begun", flush=True)
time.sleep(1000)
""")
    for _ in range(20):
        answered(open_node)
    assert resident() - before < 40, "MiB"


def test_a_connection_that_sends_nonsense_ends(open_node):
    program = attack(open_node, """
peer = connect()
print("begun", flush=True)
peer.sendall(b"nonsense\\n" * 1000)
answers = 0
reader = peer.makefile()
try:
    while reader.readline(): answers += 1
except ConnectionResetError:
    pass
print(answers, flush=True)
""")
    assert int(program.stdout.readline()) == 16


def test_plans_are_made_while_others_are_answered(open_node):
    """Several connections request plans of 64 KiB of the most expensive configuration."""
    rules = ",".join("{devices: [%d], strategy: time-slicing, replicas: 4}" % (i % 8) for i in range(900))
    text = "apiVersion: penstock.io/v1alpha1\nkind: NodeConfig\nsharing: {rules: [" + rules + "]}\n"
    attack(open_node, f"""
line = json.dumps({{"op": "plan", "text": {text!r}}}).encode() + b"\\n"
def ask():
    peer = connect()
    reader = peer.makefile()
    while True:
        peer.sendall(line)
        reader.readline()
for _ in range(8): threading.Thread(target=ask, daemon=True).start()
print("begun", flush=True)
time.sleep(1000)
""")
    for _ in range(10):
        answered(open_node)
    assert "changes" in json.loads(open_node.penstock("plan", "-o", "json").stdout), "root's plan is served"


def waiting(node: Node, count: int):
    wait_until(lambda: len(node.queue()) == count, f"{count} to wait", seen=node.queue)


# Requests that wait.


def test_a_request_for_a_broken_gpu_holds_up_nobody(node):
    node.sim("fault", "7", "xid", "79")
    wait_until(lambda: len(node.usable()) == 7, "GPU 7 to be unhealthy")
    every, named = node.start("--gpus", 8, "--", "true"), node.start("--device", 7, "--", "true")
    waiting(node, 2)
    assert node.penstock("run", "--gpus", "7", "--wait", "0", "--", "echo", "served").stdout == "served\n"
    # The first reason may be that the GPU is lost.
    wait_until(lambda: ["XID 79" in entry["reason"] for entry in node.queue()] == [True, True], "both requests to be held up by the XID", seen=node.queue)
    assert (every.poll(), named.poll()) == (None, None), "both requests still wait in their places"


def test_a_request_for_what_others_hold_is_not_overtaken(node):
    node.hold(7)
    node.start("--gpus", 2, "--", "true")
    waiting(node, 1)
    done = node.penstock("run", "--wait", "0", "--", "true", check=False)
    assert (done.returncode, "ahead of it" in done.stderr) == (124, True), done.stderr


# Requests during the start.


def test_a_request_while_the_agent_starts_waits_for_the_devices(make_node):
    """Each GPU answers slowly, so that requests reach an agent that has read none, one, two, ... of them."""
    node = make_node()
    for gpu in range(8):
        node.sim("fault", str(gpu), "hang", "nvmlDeviceGetMemoryInfo", "300")
    node.launch_agent()
    wait_until((node.run_dir / "penstock.sock").exists, "the socket")
    programs = []
    for looked_at in range(8):
        wait_until(lambda: len(node.usable()) >= looked_at, f"{looked_at} usable devices")
        programs += [node.start("--gpus", 8, "--", "true"), node.start("--device", 7, "--", "true")]
    for program in programs:
        said = program.communicate()[1]
        assert program.returncode == 0, said
