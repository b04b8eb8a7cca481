"""The agent's HTTP endpoint under scrapers, users and attackers: formats, TLS, credentials, sockets, many clients, and slow clients. The
clients are curl, openssl, Python's own and a real Prometheus."""
import base64
import concurrent.futures
import contextlib
import gzip
import hashlib
import http.client
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from certificates import Authority  # noqa: E402
from node import PATIENCE, Node, wait_until  # noqa: E402
from prometheus import Prometheus  # noqa: E402
from sockets import open_socket  # noqa: E402

# "hunter2", hashed at bcrypt's lowest cost and at the usual cost.
CHEAP = "$2b$04$abcdefghijklmnopqrstuuV3duMsC0HpUex6N9qapiuOHHWkwRXVm"
USUAL = "$2y$10$abcdefghijklmnopqrstuu7gIUFBKrYXdzQy8HrouzMJyZ4cijAb2"
TOKEN = "a-long-random-token"
OPEN_METRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"


class Pages:
    """An agent, and requests to its HTTP endpoint."""

    def __init__(self, home: Path, programs: Path, listen: str = "127.0.0.1:0", web: str | None = None, machine: str = "t4-x1", http: str = "",
                 deadline: str = "5s", sockets: dict | None = None):
        self.web = home / "web.yaml"
        if web is not None:
            self.web.write_text(web)
            http += f", webConfigFile: {self.web}"
        self.node = Node(home, programs, machine, f"http: {{deadline: {deadline}{http}}}\n", listen=listen, sockets=sockets)

    def start(self, wrapper: tuple = (), devices: int = 1):
        self.node.start_agent(wrapper, devices)
        self.at = wait_until(lambda: re.search(r"pages at=(\S+)", self.node.log()), "the pages to be opened").group(1)
        self.port = int(self.at.rpartition(":")[2]) if self.at.startswith("http") else 0
        return self

    def protect(self, text: str):
        """Replaces the web configuration, and waits until the agent has logged that it read it."""
        before = self.node.log().count("web configuration ")
        beside = self.web.with_suffix(".new")
        beside.write_text(text)
        beside.rename(self.web)
        wait_until(lambda: self.node.log().count("web configuration ") > before, "the web configuration to be read")

    def get(self, path: str = "/metrics", tls: ssl.SSLContext | None = None, **fields) -> http.client.HTTPResponse:
        """The response, with its body read."""
        made = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=PATIENCE, context=tls) if tls else \
            http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        with contextlib.closing(made) as connection:
            connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in fields.items()})
            answer = connection.getresponse()
            answer.body = answer.read()
            return answer

    def raw(self, text: bytes) -> bytes:
        """Sends the text; returns the response until the agent closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE) as one:
            one.sendall(text)
            return b"".join(iter(lambda: one.recv(65536), b""))

    def processor_seconds(self) -> float:
        """Processor time of the agent since its start, independent of other programs on the machine."""
        return time.clock_gettime(~self.node.agent.pid << 3 | 2)

    def rss(self) -> int:
        return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.node.agent.pid}/status").read_text()).group(1)) * 1024


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.fixture
def make(request):
    """Makes agents; all are stopped when the test ends."""
    with tempfile.TemporaryDirectory(prefix="penstock-pages-") as folder:
        made = []

        def make(**options) -> Pages:
            home = Path(folder, str(len(made)))
            home.mkdir()
            made.append(Pages(home, request.config.getoption("--programs").resolve(), **options))
            return made[-1]

        yield make
        for pages in made:
            pages.node.end()


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path / "ca")


def tls_config(authority: Authority, more: str = "", pair=None) -> str:
    certificate, key = pair or authority.server()
    return f"tls_server_config:\n  cert_file: {certificate}\n  key_file: {key}\n{more}"


def trusting(authority: Authority, pair=None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(authority.certificate))
    if pair:
        context.load_cert_chain(*map(str, pair))
    return context


# --- formats ------------------------------------------------------------------------------------------------------------------------------
def test_the_page_comes_in_the_form_that_is_asked_for_and_packed_it_is_the_same(make):
    pages = make().start()

    def families(page: bytes):
        return [line for line in page.decode().splitlines() if line.startswith("#")]

    text = pages.get()
    assert text.status == 200 and text.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert text.headers["Vary"] == "Accept, Accept-Encoding" and b"# EOF" not in text.body
    metrics = pages.get(Accept=OPEN_METRICS)
    assert metrics.headers["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8" and metrics.body.endswith(b"# EOF\n")
    packed = pages.get(Accept_Encoding="gzip", Accept=OPEN_METRICS)
    assert packed.headers["Content-Encoding"] == "gzip" and len(packed.body) < len(metrics.body) / 4

    def unpacked():
        return gzip.decompress(pages.get(Accept_Encoding="gzip", Accept=OPEN_METRICS).body)

    def curl():
        return subprocess.run(["curl", "-sS", "--compressed", f"{pages.at}/metrics"], capture_output=True, timeout=PATIENCE, check=True).stdout

    # The first collections and requests add families; afterwards pages differ only in values.
    wait_until(lambda: families(pages.get(Accept=OPEN_METRICS).body) == families(unpacked()), "the same families compressed and uncompressed")
    wait_until(lambda: families(pages.get().body) == families(curl()), "the same families with and without compression by curl")
    index = pages.get("/")
    assert index.headers["Content-Type"] == "text/html; charset=utf-8" and b'href="/metrics"' in index.body
    assert [pages.get(path).body for path in ("/healthz", "/health", "/readyz")] == [b"ok\n"] * 3
    assert pages.get("/nothing").status == 404


def test_a_connection_stays_for_the_next_request(make):
    pages = make().start()
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", pages.port, timeout=PATIENCE)) as connection:
        for _ in range(5):
            connection.request("GET", "/metrics")
            assert connection.getresponse().read() and connection.sock is not None
            name = connection.sock.getsockname()
            connection.request("HEAD", "/metrics")
            head = connection.getresponse()
            assert int(head.headers["Content-Length"]) > 0 and head.read() == b"" and connection.sock.getsockname() == name


# --- TLS --------------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("wanted, allowed", [
    ("NoClientCert", {"none", "stranger", "known", "other"}), ("RequestClientCert", {"none", "stranger", "known", "other"}),
    ("RequireAnyClientCert", {"stranger", "known", "other"}), ("VerifyClientCertIfGiven", {"none", "known", "other"}),
    ("RequireAndVerifyClientCert", {"known", "other"}), ("RequireAndVerifyClientCert\n  client_allowed_sans: [spiffe://us/known, 10.1.2.3]", {"known"}),
    ("RequireAnyClientCert\n  client_allowed_sans: [other.example]", {"other"})])
def test_clients_are_asked_for_certificates_as_the_configuration_says(make, authority, tmp_path, wanted, allowed):
    ca = "" if wanted == "NoClientCert" else f"  client_ca_file: {authority.certificate}\n"
    pages = make(web=tls_config(authority, f"  client_auth_type: {wanted}\n{ca}")).start()
    wait_until(lambda: "web configuration applied" in pages.node.log(), "TLS")
    clients = {"none": None, "known": authority.client("known", "URI:spiffe://us/known"), "other": authority.client("other", "DNS:other.example"),
               "stranger": Authority(tmp_path / "elsewhere", "somebody else").client("stranger")}
    got = set()
    for name, pair in clients.items():
        try:
            assert pages.get(tls=trusting(authority, pair)).status == 200
            got.add(name)
        except (ssl.SSLError, ConnectionResetError, BrokenPipeError, http.client.RemoteDisconnected):
            pass
    assert got == allowed


def test_versions_ciphers_and_curves_are_those_that_were_chosen(make, authority):
    pages = make(web=tls_config(authority, "  max_version: TLS12\n  cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384]\n"
                                           "  curve_preferences: [CurveP384]\n")).start()
    wait_until(lambda: "web configuration applied" in pages.node.log(), "TLS")

    def agreed(*words) -> str:
        return subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{pages.port}", *words], input="", capture_output=True, text=True,
                              timeout=PATIENCE).stdout

    said = agreed()
    assert "TLSv1.2, Cipher is ECDHE-ECDSA-AES256-GCM-SHA384" in said and "Server Temp Key: ECDH, secp384r1" in said
    assert "Cipher is (NONE)" in agreed("-tls1_3") and "Cipher is (NONE)" in agreed("-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256")


def test_certificates_are_replaced_under_load_without_a_failure(make, authority):
    pair = authority.server("first")
    certificate, key = (authority.home / name for name in ("in-use.crt", "in-use.key"))
    for file, target in zip(pair, (certificate, key)):
        shutil.copyfile(file, target)
    pages = make(web=tls_config(authority, pair=(certificate, key))).start()
    wait_until(lambda: "web configuration applied" in pages.node.log(), "TLS")
    context = trusting(authority)
    ended = []

    def ask():
        count = 0
        while not ended:
            assert pages.get("/healthz", tls=context).status == 200
            count += 1
        return count

    with concurrent.futures.ThreadPoolExecutor(4) as clients:
        asking = [clients.submit(ask) for _ in range(4)]
        try:
            for turn in range(5):
                applied = pages.node.log().count("web configuration applied")
                for file, target in zip(authority.server(f"turn{turn}"), (certificate, key)):
                    shutil.copyfile(file, target.with_suffix(".new"))
                    target.with_suffix(".new").rename(target)
                wait_until(lambda: pages.node.log().count("web configuration applied") > applied, "the new certificate")
        finally:
            ended.append(True)
        assert all(one.result(PATIENCE) > 0 for one in asking)
    served = ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(("127.0.0.1", pages.port)))
    assert served == ssl.PEM_cert_to_DER_cert(certificate.read_text())


def test_a_bad_file_changes_nothing_and_is_named(make, authority):
    good = tls_config(authority)
    pages = make(web=good).start()
    wait_until(lambda: "web configuration applied" in pages.node.log(), "TLS")
    served = ssl.get_server_certificate(("127.0.0.1", pages.port))
    plain = authority.server("plain")
    locked = authority.home / "locked.key"
    subprocess.run(["openssl", "pkey", "-in", plain[1], "-aes256", "-passout", "pass:secret", "-out", locked], check=True)
    other = authority.server("other")
    for text, said in ((tls_config(authority, pair=(plain[0], other[1])), f"{other[1]} is not the key of the first certificate in {plain[0]}"),
                       (tls_config(authority, pair=(plain[0], locked)), f"{locked} is encrypted with a passphrase"),
                       (tls_config(authority, pair=("/none.crt", plain[1])), "open /none.crt: No such file or directory"),
                       (good + "basic_auth_users: {alice: secret}\n", "is not a bcrypt hash of a password"),
                       (good.replace("cert_file", "cert_fil"), "did you mean \\\"cert_file\\\"?")):
        pages.protect(text)
        last = [line for line in pages.node.log().splitlines() if "web configuration " in line][-1]
        assert "rejected" in last and said in last
        assert pages.get(tls=trusting(authority)).status == 200
    assert ssl.get_server_certificate(("127.0.0.1", pages.port)) == served
    assert pages.raw(b"GET /metrics HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 400") and b"HTTPS" in pages.raw(b"GET / HTTP/1.1\r\n\r\n")


def test_before_a_right_file_only_probes_are_answered(make):
    pages = make(web="tls_server_config: {cert_file: /none, key_file: /none}\n").start()
    wait_until(lambda: "web configuration rejected" in pages.node.log(), "the file to be refused")
    assert pages.get("/metrics").status == pages.get("/debug/state").status == 503
    assert pages.get("/healthz").status == pages.get("/readyz").status == 200
    pages.protect("{}\n")
    assert pages.get("/metrics").status == 200


# --- credentials ------------------------------------------------------------------------------------------------------------------------
def test_passwords_and_tokens_let_one_in_and_nothing_else_does(make):
    token = hashlib.sha256(TOKEN.encode()).hexdigest()
    pages = make(web=f"basic_auth_users: {{alice: {CHEAP}}}\nbearer_tokens: {{prometheus: sha256:{token}}}\n").start()
    wait_until(lambda: "web configuration applied" in pages.node.log(), "users")
    denied = pages.get()
    assert denied.status == 401 and denied.headers.get_all("WWW-Authenticate") == ['Basic realm="penstock", charset="UTF-8"', 'Bearer realm="penstock"']
    assert pages.get(Authorization=basic("alice", "hunter2")).status == 200
    assert pages.get(Authorization=f"Bearer {TOKEN}").status == 200
    for wrong in (basic("alice", "hunter"), basic("alice", ""), basic("bob", "hunter2"), "Bearer " + token, "Bearer", "Basic !", "Digest x"):
        assert pages.get(Authorization=wrong).status == 401, wrong
    assert pages.get("/debug/state").status == pages.get("/").status == 401 and pages.get("/healthz").status == 200
    curl = subprocess.run(["curl", "-sS", "-u", "alice:hunter2", "-o", "/dev/null", "-w", "%{http_code}", f"{pages.at}/metrics"],
                          capture_output=True, text=True, timeout=PATIENCE)
    assert curl.stdout == "200"


def test_who_guesses_is_stopped_and_who_knows_is_not(make):
    pages = make(web=f"basic_auth_users: {{alice: {CHEAP}}}\n").start()
    wait_until(lambda: "web configuration applied" in pages.node.log(), "users")
    assert pages.get(Authorization=basic("alice", "hunter2")).status == 200
    tried = [pages.get(Authorization=basic("alice", str(guess))).status for guess in range(14)]
    assert tried[:10] == [401] * 10 and 429 in tried[10:]
    assert pages.get(Authorization=basic("alice", "hunter2")).status == 200


def test_an_unknown_user_costs_as_much_as_a_wrong_password_and_a_known_password_costs_nothing(make):
    """Compares processor time, which an attacker could measure. Computing a hash costs ten times as much as skipping it."""
    pages = make(web=f"basic_auth_users: {{alice: {USUAL}}}\n").start()
    wait_until(lambda: "web configuration applied" in pages.node.log(), "users")

    def cost(status: int, *guesses: tuple[str, str]) -> float:
        before = pages.processor_seconds()
        assert [pages.get(Authorization=basic(*guess)).status for guess in guesses] == [status] * len(guesses)
        return (pages.processor_seconds() - before) / len(guesses)

    wrong = cost(401, *(("alice", f"no{turn}") for turn in range(4)))
    unknown = cost(401, *(("bob", f"no{turn}") for turn in range(4)))
    assert 1 / 4 < unknown / wrong < 4, f"{wrong} {unknown}"
    assert pages.get(Authorization=basic("alice", "hunter2")).status == 200
    known = cost(200, *(("alice", "hunter2") for _ in range(5)))
    assert known < wrong / 4, f"{wrong} {known}: a correct password is cached"


# --- sockets ----------------------------------------------------------------------------------------------------------------------------
def test_both_families_of_addresses_and_a_unix_socket(make):
    both = make(listen=":0").start()
    for host in ("127.0.0.1", "::1"):
        with contextlib.closing(http.client.HTTPConnection(host, both.port, timeout=PATIENCE)) as connection:
            connection.request("GET", "/healthz")
            assert connection.getresponse().status == 200
    six = make(listen="[::1]:0").start()
    assert six.at.startswith("http://[::1]:")
    assert subprocess.run(["curl", "-sS", "-g", f"{six.at}/healthz"], capture_output=True, text=True, timeout=PATIENCE).stdout == "ok\n"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", six.port), PATIENCE)
    path = both.node.home / "pages.sock"
    local = make(listen=f"unix:{path}").start()
    asked = subprocess.run(["curl", "-sS", "--unix-socket", path, "http://x/healthz"], capture_output=True, text=True, timeout=PATIENCE)
    assert asked.stdout == "ok\n" and local.at == f"unix:{path}"


def test_sockets_of_systemd_are_taken_by_their_name(make):
    with contextlib.ExitStack() as stack:
        sockets = {name: stack.enter_context(open_socket()) for name in ("other", "pages")}
        ports = {name: one.getsockname()[1] for name, one in sockets.items()}
        pages = make(listen="systemd:pages", sockets=sockets).start()
        assert pages.port == ports["pages"] and pages.get("/healthz").status == 200
        pages.node.end_agent()
        all_of_them = make(listen="systemd:", sockets=sockets).start()
        for port in ports.values():
            all_of_them.port = port
            assert all_of_them.get("/healthz").status == 200
        all_of_them.node.end_agent()
        unknown = make(listen="systemd:nobody", sockets=sockets)
        with pytest.raises(AssertionError, match="the agent ended with 1"):
            unknown.node.start_agent()
        assert 'systemd passed no socket named' in unknown.node.log() and "other, pages" in unknown.node.log()


def test_systemd_starts_the_agent_with_the_first_scrape(make):
    pages = make(listen="systemd:")
    path = pages.node.home / "pages.sock"
    with open(pages.node.home / "agent.log", "wb") as log:
        pages.node.agent = subprocess.Popen(["systemd-socket-activate", "-l", path, *pages.node.agent_command()], stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL)
    wait_until(path.exists, "the socket", seen=pages.node.log)
    assert not pages.node.run_dir.exists(), "systemd starts no agent before the first connection"
    asked = subprocess.run(["curl", "-sS", "--unix-socket", path, "http://x/healthz"], capture_output=True, text=True, timeout=PATIENCE)
    assert asked.stdout == "ok\n", asked.stderr
    pages.node.end_agent()


# --- many clients, and slow clients -----------------------------------------------------------------------------------------------------
def test_two_hundred_clients_at_once_are_served_or_told_that_there_are_too_many(make):
    pages = make(machine="dgx-a100").start(devices=8)
    pages.get()
    before = pages.rss()

    def scrape(_):
        try:
            return pages.get(Accept_Encoding="gzip" if _ % 2 else "identity").status
        except OSError as error:
            return repr(error)

    with concurrent.futures.ThreadPoolExecutor(200) as clients:
        for _ in range(3):
            answers = list(clients.map(scrape, range(200)))
            assert set(answers) <= {200, 503} and answers.count(200) >= 64, answers
    assert pages.rss() - before < 16 << 20
    assert pages.get().status == 200


@contextlib.contextmanager
def slow_clients(pages: Pages, count: int):
    """Clients of which every second one sends half a request; the others send a whole request and never read."""
    with contextlib.ExitStack() as stack:
        yield (slow(stack, pages, turn) for turn in range(count))


def slow(stack: contextlib.ExitStack, pages: Pages, turn: int) -> socket.socket:
    one = stack.enter_context(socket.create_connection(("127.0.0.1", pages.port), PATIENCE))
    one.sendall(b"GET /metrics HTTP/1.1\r\nX-Slow: " if turn % 2 else b"GET /metrics HTTP/1.1\r\n\r\n")
    return one


def test_hundreds_of_slow_clients_keep_no_scraper_waiting(make):
    """The deadline for slow clients is ten minutes, so a scraper that waits for one of them fails."""
    pages = make(deadline="10m").start()
    with slow_clients(pages, 300) as slow_ones:
        there = []
        for turn, one in enumerate(slow_ones):
            there.append(one)
            if turn % 10 == 0:
                assert pages.get().status == 200
        assert not any(ended(one) for one in there[1::2])


def test_slow_clients_are_ended(make):
    pages = make(deadline="1s").start()
    with slow_clients(pages, 100) as slow_ones:
        there = list(slow_ones)
        wait_until(lambda: all(ended(one) for one in there[1::2]), "the connections of slow clients to be closed")


def ended(one: socket.socket) -> bool:
    one.setblocking(False)
    try:
        return one.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def test_heads_that_are_too_large_and_requests_in_a_row_are_refused(make):
    pages = make().start()
    assert pages.raw(b"GET / HTTP/1.1\r\nX: " + b"x" * 9000).startswith(b"HTTP/1.1 431")
    assert pages.raw(b"GET /" + b"x" * 20000 + b" HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 431")
    answer = pages.raw(b"GET /healthz HTTP/1.1\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n")
    assert answer.count(b"HTTP/1.1 200") == 1 and b"Connection: close" in answer
    assert pages.raw(b"GET / HTTP/1.1\nHost: x\n\n" + b"\r\n\r\n").startswith(b"HTTP/1.1 400")
    assert pages.raw(b"\x16\x03\x01\x02\x00\r\n\r\n").startswith(b"HTTP/1.1 400")
    assert pages.raw(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").startswith(b"HTTP/1.1 400")
    assert pages.raw(b"DELETE /metrics HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 405")


# --- Prometheus itself ------------------------------------------------------------------------------------------------------------------
def test_prometheus_scrapes_through_tls_with_credentials(make, authority, tmp_path):
    token = hashlib.sha256(TOKEN.encode()).hexdigest()
    pages = make(web=tls_config(authority) + f"basic_auth_users: {{alice: {USUAL}}}\nbearer_tokens: {{prometheus: sha256:{token}}}\n").start()
    wait_until(lambda: "web configuration applied" in pages.node.log(), "TLS")
    common = {"scheme": "https", "tls_config": {"ca_file": str(authority.certificate)}, "static_configs": [{"targets": [f"127.0.0.1:{pages.port}"]}]}
    server = Prometheus(tmp_path / "prometheus", [
        common | {"job_name": "password", "basic_auth": {"username": "alice", "password": "hunter2"}},
        common | {"job_name": "token", "authorization": {"credentials": TOKEN}}, common | {"job_name": "nobody"}])
    try:
        wait_until(lambda: up(server) == {"password": "1", "token": "1", "nobody": "0"}, "Prometheus to be authorized", seen=lambda: up(server))
    finally:
        server.stop()


def up(server: Prometheus) -> dict:
    return {series["metric"]["job"]: series["value"][1] for series in server.query("up")}
