"""What a client without rights and credentials learns from the agent's HTTP endpoint, and what it can do to the endpoint."""
import contextlib
import hashlib
import http.client
import json
import socket
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from node import PATIENCE, Node, wait_until  # noqa: E402
from webpages import fetch, where  # noqa: E402

SECRET = "hf_VERYSECRET"
TOKEN = "a-long-random-token"


@pytest.fixture
def make(request):
    """Makes a machine and its agent; both are stopped when the test ends."""
    with tempfile.TemporaryDirectory(prefix="penstock-attacked-") as folder:
        made = []

        def make(config: str = "", machine: str = "t4-x1") -> Node:
            home = Path(folder, str(len(made)))
            home.mkdir()
            made.append(Node(home, request.config.getoption("--programs").resolve(), machine, config, listen="127.0.0.1:0"))
            made[-1].start_agent(devices=8 if machine == "dgx-a100" else 1)
            return made[-1]

        yield make
        for node in made:
            node.end()


def hold_with_a_secret(node: Node) -> int:
    """A process with a secret in its command line that the simulated driver reports on the GPU."""
    program = node.hold(1, "sh", "-c", f"sleep 1000 # --hf-token={SECRET}")
    node.sim("set", "0", f"process={program.pid}:100:sh")
    return program.pid


def reads(node: Node, path: str, **fields) -> str:
    return fetch(where(node.log()) + path, **fields)


def test_pages_without_credentials_tell_no_command_line_and_no_process_id(make):
    node = make("telemetry: {interval: 1s}\n")
    pid = hold_with_a_secret(node)
    series = wait_until(lambda: [line for line in reads(node, "/metrics").splitlines() if line.startswith("accelerator_process_memory_used_bytes{")],
                        "the process's memory on the page", every=0.2)
    state = json.loads(reads(node, "/debug/state"))
    holder = state["devices"][0]["holders"][0]
    assert holder["user"] == "root" and holder["lease"] and holder["state"] == "held"
    assert holder["command"] == "" and holder["pids"] == [] and state["agentPid"] == 0
    assert len(series) == 1 and 'user="root"' in series[0] and float(series[0].split()[-1]) > 0
    for page in (reads(node, "/metrics"), reads(node, "/metrics", Accept="application/openmetrics-text"), reads(node, "/debug/state")):
        assert SECRET not in page and "sleep" not in page
        assert f'"{pid}"' not in page and "pid=" not in page and "command=" not in page
    assert SECRET in node.penstock("ps", "-o", "json").stdout, "root sees the command line"


def test_pages_tell_both_to_those_who_bring_credentials(make, tmp_path):
    web = tmp_path / "web.yaml"
    web.write_text(f"bearer_tokens: {{people: 'sha256:{hashlib.sha256(TOKEN.encode()).hexdigest()}'}}\n")
    node = make(f"telemetry: {{interval: 1s}}\nhttp: {{webConfigFile: {web}}}\n")
    pid = hold_with_a_secret(node)
    bring = {"Authorization": f"Bearer {TOKEN}"}
    wait_until(lambda: f'pid="{pid}"' in reads(node, "/metrics", **bring), "the process on the page", every=0.2)
    assert SECRET in reads(node, "/metrics", **bring)
    state = json.loads(reads(node, "/debug/state", **bring))
    assert pid in state["devices"][0]["holders"][0]["pids"] and SECRET in state["devices"][0]["holders"][0]["command"]


def hostile(node: Node, count: int, addresses: list[str]) -> list[socket.socket]:
    """Clients that stay connected: every second one requests a page and reads nothing of it, the others send half a request."""
    port = int(where(node.log()).rpartition(":")[2])
    there = []
    for turn in range(count):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.settimeout(PATIENCE)
        one.bind((addresses[turn % len(addresses)], 0))
        one.connect(("127.0.0.1", port))
        with contextlib.suppress(ConnectionError):
            one.sendall(b"GET /metrics HTTP/1.1\r\n\r\n" if turn % 2 else b"GET /metrics HTTP/1.1\r\nX-Slow: ")
        there.append(one)
    return there


def ask_from(node: Node, path: str, address: str) -> int:
    """The status of the response; 0 if there is none."""
    port = int(where(node.log()).rpartition(":")[2])
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE, source_address=(address, 0))) as connection:
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        except (ConnectionError, http.client.HTTPException):
            return 0


ONE = ["127.0.0.2"]
MANY = [f"127.0.1.{last}" for last in range(1, 251)]


@pytest.mark.parametrize("addresses", [ONE, MANY], ids=["one address", "250 addresses"])
@pytest.mark.parametrize("prober", ["127.0.0.9", "127.0.0.2"], ids=["from elsewhere", "from a hostile address"])
def test_a_thousand_hostile_clients_keep_no_probe_from_its_answer(make, addresses, prober):
    """A probe succeeds under attack: the kubelet restarts an agent whose probes fail three times."""
    node = make("http: {deadline: 10m}\n", machine="dgx-a100")
    there = hostile(node, 1000, addresses)
    try:
        answers = Counter(ask_from(node, path, prober) for _ in range(100) for path in ("/healthz", "/readyz"))
        assert answers == {200: 200}, answers
        if addresses is ONE:
            pages = Counter(ask_from(node, "/metrics", "127.0.0.9") for _ in range(20))
            assert pages == {200: 20}, pages
    finally:
        for one in there:
            one.close()


def test_probes_are_answered_while_hostile_clients_come_again_and_again(make):
    node = make("http: {deadline: 10m}\n", machine="dgx-a100")
    stop = threading.Event()

    def flood(address: str):
        while not stop.is_set():
            for one in hostile(node, 100, [address]):
                one.close()

    floods = [threading.Thread(target=flood, args=(address,)) for address in ("127.0.0.2", "127.0.0.3", "127.0.0.4")]
    there = hostile(node, 400, MANY)
    for one in floods:
        one.start()
    try:
        answers = Counter(ask_from(node, "/healthz", "127.0.0.9") for _ in range(200))
        assert answers == {200: 200}, answers
    finally:
        stop.set()
        for one in floods:
            one.join()
        for one in there:
            one.close()
