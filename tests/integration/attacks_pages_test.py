"""What a client without rights and credentials learns from the agent's HTTP endpoint, and what it can do to the endpoint."""
import base64
import contextlib
import gzip
import hashlib
import http.client
import json
import re
import socket
import socketserver
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import broker  # noqa: E402
from node import PATIENCE, Node, use_large_pids, wait_until  # noqa: E402
from webpages import fetch, where  # noqa: E402

SECRET = "hf_VERYSECRET"
TOKEN = "a-long-random-token"


@pytest.fixture
def make(request):
    """Makes a machine and its agent; both are stopped when the test ends."""
    with tempfile.TemporaryDirectory(prefix="penstock-attacked-") as folder:
        made = []

        def make(config: str = "", machine: str = "t4-x1", listen: str = "127.0.0.1:0") -> Node:
            home = Path(folder, str(len(made)))
            home.mkdir()
            made.append(Node(home, request.config.getoption("--programs").resolve(), machine, config, listen=listen))
            made[-1].start_agent(devices=8 if machine == "dgx-a100" else 1)
            wait_until(lambda: ask_from(made[-1], "/readyz", "127.0.0.1") == 200, "the drivers of all vendors to have been looked for", seen=made[-1].log)
            return made[-1]

        yield make
        for node in made:
            node.end()


def hold_with_a_secret(node: Node) -> int:
    """A process with a secret in its command line that the simulated driver reports on the GPU."""
    use_large_pids()
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
    wait_until(lambda: SECRET in node.penstock("ps", "-o", "json").stdout, "the command line, which root sees")


def test_pages_tell_both_to_those_who_bring_credentials(make, tmp_path):
    web = tmp_path / "web.yaml"
    web.write_text(f"bearer_tokens: {{people: 'sha256:{hashlib.sha256(TOKEN.encode()).hexdigest()}'}}\n")
    node = make(f"telemetry: {{interval: 1s}}\nhttp: {{webConfigFile: {web}}}\n")
    wait_until(lambda: "web configuration applied" in node.log(), "the tokens", seen=node.log)
    pid = hold_with_a_secret(node)
    bring = {"Authorization": f"Bearer {TOKEN}"}
    wait_until(lambda: f'pid="{pid}"' in reads(node, "/metrics", **bring), "the process on the page", every=0.2)
    wait_until(lambda: SECRET in reads(node, "/metrics", **bring), "its command line", every=0.2)
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


# --- the page at / -------------------------------------------------------------------------------------------------------------------------
DATA = ("/ui/state", "/ui/history", "/ui/holders?device=", "/ui/queue")
# "hunter2", hashed at bcrypt's lowest cost.
USERS = "basic_auth_users: {eva: $2b$04$abcdefghijklmnopqrstuuV3duMsC0HpUex6N9qapiuOHHWkwRXVm}\n"


def ask(node: Node, path: str, method: str = "GET", **fields) -> http.client.HTTPResponse:
    """The response with its body; the path is sent as it is."""
    port = int(where(node.log()).rpartition(":")[2])
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)) as connection:
        connection.putrequest(method, path, skip_host="Host" in fields)
        for name, value in fields.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        answer = connection.getresponse()
        answer.text = answer.read().decode()
        return answer


def test_a_website_that_points_its_name_at_this_machine_reads_nothing_of_the_page(make):
    """DNS rebinding: the browser of a user of this machine sends the website's requests here, with the website's name."""
    node = make()
    hold_with_a_secret(node)
    for path in ("/", *DATA, "/ui/page.js"):
        for host in ("evil.example", "evil.example:9400", "localhost.evil.example", "127.0.0.1.evil.example", "[::1].evil.example", "0.0.0.0:9400"):
            answer = ask(node, path, Host=host)
            assert answer.status == 403 and "root" not in answer.text and "GPU-" not in answer.text, (path, host, answer.text)
        # Nor by a target that names another host than the header.
        assert ask(node, f"http://evil.example{path}", Host="localhost").status == 403
        assert ask(node, path, Host="localhost").status == 200, path


def test_other_sites_get_no_right_to_read_or_embed_the_page_or_to_change_anything(make):
    node = make()
    for path in ("/", *DATA):
        answer = ask(node, path, Origin="https://evil.example", Sec_Fetch_Site="cross-site")
        names = {name.lower() for name in answer.headers}
        assert not {name for name in names if name.startswith("access-control-")} and "set-cookie" not in names
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
        assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin" and answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
            assert ask(node, path, method).status == 405, (method, path)


def test_the_page_is_closed_on_the_network_until_credentials_are_configured(make, tmp_path):
    node = make(listen="0.0.0.0:0")
    for path in ("/", *DATA, "/ui/page.js"):
        for host in ("localhost", "127.0.0.1", "gpu1.example"):
            answer = ask(node, path, Host=host, Authorization="Basic ZXZhOmh1bnRlcjI=", X_Forwarded_For="127.0.0.1")
            assert answer.status == 403 and "http.webConfigFile" in answer.text and "GPU-" not in answer.text
    assert ask(node, "/metrics").status == 200 and ask(node, "/readyz").status == 200
    web = tmp_path / "web.yaml"
    web.write_text(USERS)
    node = make(f"http: {{webConfigFile: {web}}}\n", listen="0.0.0.0:0")
    wait_until(lambda: "web configuration applied" in node.log(), "the users")
    bring = "Basic " + base64.b64encode(b"eva:hunter2").decode()
    for path in ("/", *DATA, "/ui/page.js"):
        assert ask(node, path).status == 401
        assert ask(node, path, Authorization="Basic " + base64.b64encode(b"eva:wrong").decode()).status == 401
        assert ask(node, path, Authorization=bring, Host="gpu1.example").status == 200, path


def test_the_page_tells_no_command_line_and_no_process_id_without_credentials(make):
    node = make("telemetry: {interval: 1s}\n")
    pid = hold_with_a_secret(node)
    state = json.loads(ask(node, "/ui/state").text)
    device = state["devices"][0]
    assert device["holderCount"] >= 1 and device["holders"][0]["user"] == "root"
    for path in ("/ui/state", "/ui/state?detail=processes", f"/ui/holders?device={device['id']}", "/ui/queue?detail=processes"):
        text = ask(node, path).text
        assert SECRET not in text and str(pid) not in text and "sleep" not in text


def test_no_path_leads_out_of_the_pages_files(make):
    node = make()
    for path in ("/ui/", "/ui", "/ui/..", "/ui/../debug/state", "/ui/../../etc/passwd", "/ui/%2e%2e/%2e%2e/etc/passwd", "/ui//etc/passwd", "/ui/page.js/",
                 "/ui/page.js%00", "/ui/..%5c..%5cetc", "/ui/index.html", "/page.js", "//", "/ui/state/"):
        answer = ask(node, path)
        assert answer.status == 404 and "root:" not in answer.text, path
    for query in ("?device=../../etc/passwd", "?device=%00", "?device=%", "?device=" + "x" * 7000, "?from=-1", "?from=99999999999999999999", "?node=0", "?node=-1",
                  "?node=file:///etc/passwd", "?&&==&", "?from=%30%30"):
        assert ask(node, "/ui/holders" + query).status in (200, 404), query


def test_hostile_command_lines_stay_texts_in_valid_json(make, tmp_path):
    web = tmp_path / "web.yaml"
    web.write_text(USERS)
    node = make(f"http: {{webConfigFile: {web}}}\n")
    wait_until(lambda: "web configuration applied" in node.log(), "the users", seen=node.log)
    command = "sleep 1000 # \udcff\udcfe </script> \" ' \\ \x01\x1b[2J \u202e 名前" + "y" * 100_000  # the first two are bytes that are no characters
    node.hold(1, "sh", "-c", command)
    answer = ask(node, "/ui/state", Authorization="Basic " + base64.b64encode(b"eva:hunter2").decode())
    assert answer.headers["Content-Type"] == "application/json" and len(answer.text) < 8_000
    assert "sleep 1000" in json.loads(answer.text)["devices"][0]["holders"][0]["command"]
    assert not re.search("[\x00-\x09\x0b-\x1f]", answer.text), "control characters are escaped"


def test_a_flood_of_readers_costs_one_state_and_a_huge_queue_is_cut(make):
    node = make()
    node.hold(1)
    with contextlib.ExitStack() as stack:
        for number in range(250):
            connection = stack.enter_context(broker.connected(node.run_dir))
            connection.sendall(json.dumps({"op": "run", "gpus": 1, "command": f"waits {number}"}).encode() + b"\n")
            assert b"waiting" in connection.recv(4096)
        wait_until(lambda: len(node.queue()) == 250, "250 queued runs", seen=lambda: len(node.queue()))
        state = wait_until(lambda: (state := json.loads(ask(node, "/ui/state").text))["queueLength"] == 250 and state, "the queue on the page", every=0.2)
        assert len(state["queue"]) == 10 and "command" not in state["queue"][0]
        pages = [json.loads(ask(node, f"/ui/queue?from={first}").text) for first in (0, 200, 250)]
        assert [len(page["queue"]) for page in pages] == [200, 50, 0] and all(page["count"] == 250 for page in pages)
        stop = threading.Event()

        def flood():
            while not stop.is_set():
                for path in DATA:
                    ask(node, path)

        floods = [threading.Thread(target=flood) for _ in range(8)]
        for one in floods:
            one.start()
        try:
            answers = Counter(ask_from(node, path, "127.0.0.9") for _ in range(50) for path in ("/healthz", "/readyz", "/ui/state"))
            assert answers == {200: 150}, answers
            assert node.report()["devices"], "the control loop answers"
        finally:
            stop.set()
            for one in floods:
                one.join()


class HostileNode(socketserver.StreamRequestHandler):
    """What answers at the address of another node: whatever the test says."""

    def handle(self):
        self.server.heads.append(b"".join(iter(self.rfile.readline, b"\r\n")))
        with contextlib.suppress(OSError):
            self.wfile.write(self.server.answer)
            for _ in range(self.server.more):
                self.wfile.write(b" " * (1 << 20))


def resident(node: Node) -> int:
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{node.agent.pid}/status").read_text()).group(1)) << 10


def test_a_hostile_node_gets_no_credentials_by_a_redirect_and_takes_no_memory(make, tmp_path):
    credentials = tmp_path / "credentials"
    credentials.write_text("bearer node-token")
    credentials.chmod(0o600)
    bomb = gzip.compress(b"[" + b" " * (256 << 20))
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), HostileNode) as server, socketserver.ThreadingTCPServer(("127.0.0.1", 0), HostileNode) as victim:
        for one in (server, victim):
            one.heads, one.answer, one.more = [], b"", 0
            threading.Thread(target=one.serve_forever, daemon=True).start()
        node = make(f'page: {{nodes: ["http://127.0.0.1:{server.server_address[1]}"], credentialsFile: {credentials}}}\n')
        before = resident(node)
        elsewhere = f"http://127.0.0.1:{victim.server_address[1]}/".encode()
        answers = [(b"HTTP/1.1 302 Found\r\nLocation: " + elsewhere + b"\r\nContent-Length: 0\r\n\r\n", 0),
                   (head + b"Content-Encoding: gzip\r\nContent-Length: " + str(len(bomb)).encode() + b"\r\n\r\n" + bomb, 0),
                   (head + b"\r\n", 512), (head.replace(b"application/json", b"text/html") + b"Content-Length: 25\r\n\r\n<script>alert(1)</script>", 0),
                   *((head + field + b"\r\nContent-Length: 9\r\n\r\n{\"a\": 1}\n", 0) for field in (
                       b"Content-Encoding: br", b"Content-Encoding: zstd", b"Content-Encoding: gzip, gzip, br", b"Transfer-Encoding: br, chunked")),
                   (b"HTTP/1.1 304 Not Modified\r\n\r\n", 0), (b"HTTP/2 200\r\n\r\n{}", 0),
                   (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n" + b"\x00" * 100, 0),
                   (b"HTTP/1.1 200 OK\r\nX: " + b"x" * (1 << 20), 0), (b"\x00" * 1000, 0), (b"", 0)]
        for number, (server.answer, server.more) in enumerate(answers):
            asked = len(server.heads)
            problem = wait_until(lambda: (answer := ask(node, f"/ui/queue?node=0&from={number}")).status == 502 and len(server.heads) > asked and answer,
                                 f"answer {number} to be asked for", every=0.3, seen=lambda: (len(server.heads), asked))
            assert problem.headers["Content-Type"] == "application/json" and "problem" in json.loads(problem.text), number
            assert "node-token" not in problem.text and ask(node, "/healthz").status == 200
            # Each failure makes the agent wait longer before it asks again, until the node answers as it should.
            server.answer, server.more = head + b"Content-Length: 2\r\n\r\n{}", 0
            wait_until(lambda: ask(node, f"/ui/queue?node=0&from={number + 1000}").status == 200, "a good answer", every=0.3)
        assert b"Authorization: Bearer node-token" in server.heads[0] and victim.heads == []
        assert resident(node) < before + (32 << 20)
        for one in (server, victim):
            one.shutdown()
