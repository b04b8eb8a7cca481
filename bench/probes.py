"""Measures the kubelet's probe of /healthz and root's `penstock status`, alone and with hostile clients: 1,000 that hold connections to the pages, and
240 of other users that flood the local socket with requests."""
import contextlib
import grp
import http.client
import os
import select
import socket
import subprocess
import sys

from bed import Bed, now
from figures import Bench, ratio

PAGES, FLOOD = 1000, 240
USERS, GROUP = range(20000, 20024), "users"  # the users of the flood, if this process may change its user
PROBER = "127.0.0.9"


def port_of(bed: Bed) -> int:
    return int(bed.log.wait(lambda line: " pages at=" in line, what="the pages")[1].rpartition(":")[2])


def probe(port: int) -> float:
    begin = now()
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10, source_address=(PROBER, 0))) as connection:
        connection.request("GET", "/healthz")
        status = connection.getresponse().status
    if status != 200:
        raise RuntimeError(f"/healthz: {status}")
    return (now() - begin) / 1e6


def status(programs, bed: Bed) -> float:
    begin = now()
    pid = os.posix_spawn(str(programs / "penstock"), ["penstock", "--run-dir", str(bed.run_dir), "status"], os.environ,
                         file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
    ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if ended != 0:
        raise RuntimeError(f"penstock status: {ended}")
    return (now() - begin) / 1e6


@contextlib.contextmanager
def somebody(user: int):
    """Connections made inside the block belong to this user from the server's point of view."""
    if os.geteuid() != 0:
        yield
        return
    os.setegid(grp.getgrnam(GROUP).gr_gid)
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def occupy(stack: contextlib.ExitStack, port: int):
    """Every second client requests a page and reads nothing, the others send half a request."""
    for turn in range(PAGES):
        one = stack.enter_context(socket.socket())
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.bind((f"127.0.1.{turn % 250 + 1}", 0))
        one.connect(("127.0.0.1", port))
        with contextlib.suppress(ConnectionError):
            one.sendall(b"GET /metrics HTTP/1.1\r\n\r\n" if turn % 2 else b"GET /metrics HTTP/1.1\r\nX-Slow: ")


def connect(path: str, user: int) -> socket.socket:
    one = socket.socket(socket.AF_UNIX)
    one.settimeout(0)
    with contextlib.suppress(OSError), somebody(user):
        one.connect(path)
    return one


def flood(path: str):
    """Sends requests over all connections in turn, reads a part of the answers, and reopens the connections that the agent closed; until standard input
    ends. A separate process, because it briefly changes its user to connect."""
    lines = b'{"op":"version"}\n' * 500
    connections = [connect(path, USERS[turn % len(USERS)]) for turn in range(FLOOD)]
    print("begun", flush=True)
    sent, again = 0, 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        for turn, one in enumerate(connections):
            try:
                sent += one.send(lines)
                one.recv(65536)
            except BlockingIOError:
                continue
            except OSError:
                one.close()
                connections[turn] = connect(path, USERS[turn % len(USERS)])
                again += 1
    print(sent // (len(lines) // 500), again)


@contextlib.contextmanager
def flooded_socket(bed: Bed, found: list):
    """Floods the local socket during the block; afterwards `found` has the rates of requests sent and of connections reopened per second."""
    os.chmod(bed.home, 0o711)
    process = subprocess.Popen([sys.executable, "-B", __file__, bed.run_dir / "penstock.sock"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    begin = now()
    yield
    process.stdin.close()
    found += [int(word) / (now() - begin) * 1e9 for word in process.stdout.read().split()]
    process.wait()


def measure(programs, smoke: bool) -> Bench:
    bench = Bench("probes", f"/healthz and penstock status with {PAGES:,} hostile connections to the pages, and {FLOOD} to the local socket")
    times = 5 if smoke else 200
    asked = {"/healthz": lambda bed, port: probe(port), "penstock status": lambda bed, port: status(programs, bed)}
    group = f"allocators: {{local: {{group: {GROUP}}}}}\n" if os.geteuid() == 0 else ""
    with Bed(programs, kubelet=False, config="http: {deadline: 10m}\n" + group) as bed:
        bed.start_agent("--listen", "127.0.0.1:0")
        bed.logged("initial device discovery complete devices=8")
        port = port_of(bed)

        def ask() -> dict:
            return {name: [one(bed, port) for _ in range(times)] for name, one in asked.items()}

        sent = []
        alone = ask()
        with contextlib.ExitStack() as stack:
            occupy(stack, port)
            occupied = ask()
            with flooded_socket(bed, sent):
                flooded = ask()
    for name in asked:
        bench.add(f"{name}, with the connections to the pages", "ms", occupied[name], goal=100)
        bench.add(f"{name}, also with the flood of the local socket", "ms", flooded[name], goal=100)
        bench.add("baseline: alone", "ms", alone[name], detail=True)
        bench.add("ratio of the medians, with both", "x", ratio(flooded[name], alone[name]), detail=True)
    bench.note("penstock status is a separate process; its start is included." + (
        f" The flood comes from {len(USERS)} users, 10 connections each." if os.geteuid() == 0 else " The flood comes from the same user."))
    bench.note(f"The flood sent {sent[0]:.0f} requests per second, and reopened {sent[1]:.0f} connections per second that the agent had closed.")
    return bench


if __name__ == "__main__":
    flood(sys.argv[1])
