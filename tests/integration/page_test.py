"""The page at / in a headless Chromium: what it shows, on which screens, for whom, and what it does when the agent, a node or the browser goes away. The
pictures of the pages are in the folder `pictures` of the build folder."""
import http.server
import json
import os
import re
import signal
import socket
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import downloads  # noqa: E402
from browser import Browser  # noqa: E402
from node import PATIENCE, Node, wait_until  # noqa: E402
from webpages import where  # noqa: E402

# "hunter2", hashed at bcrypt's lowest cost.
WEB = "basic_auth_users: {eva: $2b$04$abcdefghijklmnopqrstuuV3duMsC0HpUex6N9qapiuOHHWkwRXVm}\n"
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 360, "height": 780, "phone": True}
FAST = "telemetry: {interval: 1s}\n"
HOSTILE = "</td><script>document.title='stolen'</script><img src=x onerror=document.title='stolen'> \u202egnp.exe \u0001\u001b[2J 名前 שלום"


@pytest.fixture(scope="module")
def browser():
    with tempfile.TemporaryDirectory(prefix="penstock-browser-") as folder:
        one = Browser(Path(folder))
        yield one
        one.end()


@pytest.fixture
def tab(browser):
    tab = browser.tab()
    tab.open("about:blank")  # not the browser's own page for new tabs
    tab.show(**DESKTOP)
    browser.problems(), browser.traffic()
    yield tab
    tab.close()


@pytest.fixture
def make(request):
    """Makes a machine and its agent; all are stopped when the test ends."""
    with tempfile.TemporaryDirectory(prefix="penstock-page-") as folder:
        made = []

        def make(config: str = FAST, machine: str = "t4-x1", devices: int = 1, listen: str = "127.0.0.1:0", **options) -> Node:
            home = Path(folder, str(len(made)))
            home.mkdir()
            made.append(Node(home, request.config.getoption("--programs").resolve(), machine, config, listen=listen, **options))
            made[-1].start_agent(devices=devices)
            return made[-1]

        yield make
        for node in made:
            node.end()


@pytest.fixture(scope="session")
def pictures(request):
    folder = request.config.getoption("--programs").resolve().parent / "pictures"
    folder.mkdir(exist_ok=True)
    return folder


def shows(tab, text: str, selector: str = "body"):
    wait_until(lambda: re.search(text, tab.text(selector)), f"{text!r} on the page", every=0.2, seen=lambda: tab.text(selector)[-3000:])


def has_no_barriers(tab):
    """axe-core finds nothing that keeps people from using the page."""
    tab.js(downloads.axe().read_text() + "; window.axe = axe;")
    found = tab.js("return axe.run(document, {resultTypes: ['violations']}).then(({violations, passes}) => ({passes: passes.length, violations:"
                   " violations.map(({id, help, nodes}) => ({id, help, nodes: nodes.slice(0, 3).map(({html, failureSummary}) => [html, failureSummary])}))}))")
    assert found["violations"] == [] and found["passes"] > 10, json.dumps(found["violations"], indent=1)


def fits(tab):
    width, screen = tab.js("return [document.documentElement.scrollWidth, innerWidth]")
    assert width <= screen, f"the page is {width} pixels wide on a screen of {screen}"


# --- what it shows ---------------------------------------------------------------------------------------------------------------------------
def test_the_page_shows_devices_holders_queue_and_values_and_fetches_nothing_from_elsewhere(make, tab, browser, pictures):
    node = make(machine="dgx-a100", devices=8)
    holder = node.hold(2, "sleep", "1000")
    node.sim("set", "0", "utilization=75", f"process={holder.pid}:4096:python")
    node.start("--gpus", 7, "--", "true")
    wait_until(lambda: len(node.queue()) == 1, "a queued run")
    tab.cdp("Network.enable")
    tab.cdp("Network.setCacheDisabled", cacheDisabled=True)
    at = where(node.log())
    tab.open(at + "/")
    shows(tab, r"GPU 0(?s:.*)Healthy(?s:.*)75\s%")
    shows(tab, "All healthy", ".summary")
    shows(tab, r"Free\s+6\s+of 8 GPUs offered", ".summary")
    shows(tab, r"run\s+root", ".devices")
    shows(tab, r"root\s+7 GPUs", ".queue")
    wait_until(lambda: tab.js("return document.querySelectorAll('svg.chart .line').length") >= 16, "charts")

    def charts() -> list[str]:
        return tab.js("return [...document.querySelectorAll('svg.chart')].map((chart) => chart.getAttribute('aria-label'))")
    wait_until(lambda: any(re.fullmatch(r"Use in the last hour: lowest \d+\s%, highest 75\s%", one) for one in charts()), "the chart of use", seen=charts)
    assert len(charts()) == 24
    traffic = browser.traffic()
    urls = {one["params"]["request"]["url"] for one in traffic if one["method"] == "Network.requestWillBeSent"}
    assert at + "/" in urls and all(url.startswith(at + "/") for url in urls), urls
    first = {one["params"]["request"]["url"]: one["params"]["requestId"] for one in reversed(traffic) if one["method"] == "Network.requestWillBeSent"}
    received = sum(one["params"]["encodedDataLength"] for one in traffic if one["method"] == "Network.loadingFinished" and one["params"]["requestId"] in first.values())
    assert 5_000 < received < 100_000, received
    assert browser.problems() == []
    has_no_barriers(tab)
    fits(tab)
    tab.picture(pictures / "desktop.png")
    tab.show(**PHONE)
    fits(tab)
    has_no_barriers(tab)
    tab.picture(pictures / "phone.png")


def test_health_changes_are_shown_with_their_reason_and_announced(make, tab, pictures):
    node = make(machine="dgx-a100", devices=8)
    tab.show(**DESKTOP, dark=True)
    tab.open(where(node.log()) + "/")
    shows(tab, "All healthy", ".summary")
    assert tab.js("return document.getElementById('announcements').textContent") == ""
    node.sim("fault", "3", "xid", "79")
    shows(tab, "1 not healthy", ".summary")
    shows(tab, r"GPU 3(?s:.*)✕ Unhealthy(?s:.*)79", "tr.unhealthy")
    announced = tab.js("return document.getElementById('announcements').textContent")
    assert re.match(r"GPU 3 of \S+ is unhealthy: .*(79|lost)", announced), announced  # the reason that was known first
    has_no_barriers(tab)
    tab.picture(pictures / "dark-unhealthy.png")
    tab.show(**DESKTOP)
    has_no_barriers(tab)
    tab.picture(pictures / "unhealthy.png")
    node.sim("heal", "3")
    shows(tab, "All healthy", ".summary")


def test_texts_of_programs_are_shown_as_texts(make, tab, browser, tmp_path, pictures):
    """A command line that is markup, changes the direction of text or controls a terminal; seen by a user with a password in the address."""
    web = tmp_path / "web.yaml"
    web.write_text(WEB)
    node = make(f"{FAST}http: {{webConfigFile: {web}}}\n")
    node.hold(1, "sh", "-c", f"sleep 1000 # {HOSTILE}")
    tab.open(where(node.log()).replace("http://", "http://eva:hunter2@") + "/")
    shows(tab, "sleep 1000 # </td><script>", ".devices")
    text = tab.text(".devices")
    assert "<img src=x onerror=" in text and "名前" in text and not re.search("[\u0001\u001b\u202e]", text), text
    tab.js("document.querySelector('[data-focus=holders]').click()")
    shows(tab, "sleep 1000 # </td><script>", "#details-body")
    assert tab.js("return [document.title, document.querySelectorAll('img').length]") == [f"{node.report()['node']} – Penstock", 0]
    assert browser.problems() == []
    tab.picture(pictures / "hostile.png", whole=False)


def test_long_lists_are_reached_by_keyboard(make, tab, pictures):
    node = make()
    node.hold(1)
    tab.open(where(node.log()) + "/")
    shows(tab, "Details", ".devices")
    for _ in range(20):
        tab.press("Tab")
        if tab.js("return document.activeElement.dataset.focus") == "holders":
            break
    tab.press("Enter")
    shows(tab, r"Holders of GPU 0(?s:.*)root(?s:.*)1 of 1", "dialog[open]")
    has_no_barriers(tab)
    tab.press("Escape")
    wait_until(lambda: not tab.js("return document.getElementById('details').open"), "the dialog to close")
    assert tab.js("return document.activeElement.dataset.focus") == "holders", "the focus is where it was"


def test_without_scripts_the_page_names_what_works(make, tab):
    node = make()
    tab.cdp("Emulation.setScriptExecutionDisabled", value=True)
    tab.open(where(node.log()) + "/")
    tab.cdp("Emulation.setScriptExecutionDisabled", value=False)
    shows(tab, "needs JavaScript(?s:.*)penstock status(?s:.*)Metrics")


# --- what it does when something goes away -----------------------------------------------------------------------------------------------
class Between:
    """Passes requests on to an agent, and changes what it answers."""

    def __init__(self):
        self.agent, self.change = "", lambda path, body: body
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                try:
                    with urllib.request.urlopen(outer.agent + self.path, timeout=PATIENCE) as answer:
                        body, status, kind = answer.read(), answer.status, answer.headers["Content-Type"]
                except urllib.error.HTTPError as error:
                    body, status, kind = error.read(), error.code, error.headers["Content-Type"]
                except urllib.error.URLError:
                    return self.close()
                body = outer.change(self.path, body)
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def close(self):
                self.close_connection = True

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.at = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def end(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def between():
    one = Between()
    yield one
    one.end()


def test_a_browser_stays_open_over_an_upgrade_of_the_agent(make, tab, between):
    """It reconnects to the next agent, and loads the page again if that agent has another version."""
    node = make()
    between.agent = where(node.log())
    tab.open(between.at + "/")
    shows(tab, "Live", "#live")
    tab.js("window.before = true")
    node.end_agent()
    shows(tab, "does not answer", "#banner")
    log = len(node.log())
    node.start_agent(devices=1)
    between.agent = where(node.log()[log:])
    shows(tab, "Live", "#live")
    assert tab.js("return [window.before, document.getElementById('banner').hidden]") == [True, True], "the same version: the page was not loaded again"

    build = re.search(r'penstock-build" content="([^"]+)"', urllib.request.urlopen(between.agent + "/").read().decode()).group(1)
    between.change = lambda path, body: body.replace(build.encode(), b"9.9.9-next")
    wait_until(lambda: tab.js("return window.before === undefined && document.readyState === 'complete'"), "the page to be loaded again", every=0.2)
    shows(tab, "Live", "#live")
    between.change = lambda path, body: body.replace(build.encode(), b"9.9.9-other") if path == "/ui/state" else body
    wait_until(lambda: tab.js("return sessionStorage.getItem('penstock-build') === '9.9.9-other'"), "the page to be loaded again", every=0.2)
    shows(tab, "another version than this page", "#banner")  # and not again and again


def test_a_hidden_page_asks_for_nothing(make, tab, between):
    node = make()
    asked = []
    between.change = lambda path, body: asked.append(path) or body
    between.agent = where(node.log())
    tab.open(between.at + "/")
    shows(tab, "Live", "#live")
    tab.js("let hidden = true; Object.defineProperty(document, 'hidden', {get: () => hidden}); window.show = () => { hidden = false; };"
           "document.dispatchEvent(new Event('visibilitychange'));")
    # A timer that the page had set before fires before this one, which is longer.
    tab.js("return new Promise((done) => setTimeout(done, 6000))")
    before = len(asked)
    tab.js("return new Promise((done) => setTimeout(done, 6000))")
    assert len(asked) == before
    tab.js("window.show(); document.dispatchEvent(new Event('visibilitychange'));")
    wait_until(lambda: len(asked) > before, "requests of the visible page")


def test_five_thousand_shares_and_runs_are_not_five_thousand_rows(make, tab, between, pictures):
    node = make(machine="dgx-a100", devices=8)

    def change(path: str, body: bytes) -> bytes:
        if path == "/ui/state":
            state = json.loads(body)
            for device in state["devices"]:
                device |= {"sharing": "time-slicing", "shares": 625, "free": 0, "holderCount": 625,
                           "holders": [{"kind": "pod", "namespace": "ml", "pod": f"notebook-{number}"} for number in range(3)]}
            queued = [{"user": "eva", "count": 1, "since": "2026-01-01T00:00:00Z", "reason": "waits for a GPU"}] * 10
            return json.dumps(state | {"queue": queued, "queueLength": 5000}).encode()
        if path.startswith("/ui/holders?"):
            first = int(re.search(r"from=(\d+)", path).group(1))
            return json.dumps({"holders": [{"kind": "pod", "namespace": "ml", "pod": f"notebook-{n}"} for n in range(first, min(first + 200, 625))],
                               "count": 625}).encode()
        return body

    between.change, between.agent = change, where(node.log())
    tab.open(between.at + "/")
    shows(tab, r"0\s+of 5000 shares offered", ".summary")
    shows(tab, "Show all 5000 queued runs", ".queue")
    assert tab.js("return document.querySelectorAll('tr').length") < 40
    tab.picture(pictures / "shares.png")
    tab.js("document.querySelector('[data-focus=holders]').click()")
    shows(tab, "200 of 625", "dialog[open]")
    tab.js("document.querySelector('#details-more button').click()")
    shows(tab, r"notebook-399(?s:.*)400 of 625", "dialog[open]")
    has_no_barriers(tab)
    tab.picture(pictures / "list.png", whole=False)


# --- several nodes ------------------------------------------------------------------------------------------------------------------------
def test_one_page_shows_several_nodes_and_why_one_does_not_answer(make, tab, browser, pictures):
    second = make(machine="dgx-a100", devices=8, name="gpu2")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nowhere = closed.getsockname()[1]
        node = make(f'{FAST}page: {{nodes: ["{where(second.log())}", "http://127.0.0.1:{nowhere}"]}}\n', name="gpu1")
        second.hold(3)
        tab.open(where(node.log()) + "/")
        shows(tab, r"gpu1(?s:.*)All healthy(?s:.*)gpu2(?s:.*)All healthy\s+5 of 8 GPUs(?s:.*)Does not answer\s+no connection", "#overview")
        tab.js("document.querySelector('#overview a[href=\"#node-0\"]').click()")
        shows(tab, r"GPU 7", "#node-0")
        has_no_barriers(tab)
        tab.picture(pictures / "nodes.png")
        tab.show(**PHONE)
        fits(tab)
        tab.show(**DESKTOP)
        os.kill(second.agent.pid, signal.SIGSTOP)  # a node that hangs
        shows(tab, r"gpu2\s+– Does not answer\s+it did not answer in time", "#overview")
        shows(tab, "What is shown below is from before", "#node-0")
        os.kill(second.agent.pid, signal.SIGCONT)
        shows(tab, r"gpu2\s+✓ All healthy", "#overview")
        assert all(" 502 " in problem for problem in browser.problems()), "a node that is off is answered so"


def test_a_node_that_answers_nonsense_spoils_only_its_own_part(make, tab, between):
    second = make(name="gpu2")
    between.agent = where(second.log())
    nonsense = [{"devices": [None, 5, {"id": {}, "health": 5, "holders": "x", "shares": "many", "model": ["a"]}], "queue": [None, {"since": {}}], "conditions": {"a": 1}},
                {"devices": {"length": 1e9}, "node": {"toString": 5}, "vendors": [[]], "queueLength": "5"}, [], {"devices": [{"id": "__proto__"}] * 5000}]
    between.change = lambda path, body: json.dumps(nonsense[0]).encode() if path.startswith("/ui/state") else b"[1, {]" if path.startswith("/ui/history") else body
    node = make(f'{FAST}page: {{nodes: ["{between.at}"]}}\n', name="gpu1")
    tab.open(where(node.log()) + "/")
    for _ in range(len(nonsense)):
        shows(tab, r"gpu1(?s:.*)All healthy", "#overview")
        tab.js("document.getElementById('node-0').open = true")
        shows(tab, "Live", "#live")
        before = tab.text("#live")
        nonsense.append(nonsense.pop(0))
        wait_until(lambda: tab.text("#live") != before, "the next state", every=0.2)
    shows(tab, r"GPU 0(?s:.*)Healthy", "#node-own")
    between.change = lambda path, body: body
    shows(tab, r"gpu2\s+✓ All healthy", "#overview")


def test_other_nodes_are_read_with_the_agents_credentials_and_shown_without_processes_to_readers_without(make, tmp_path):
    web, credentials = tmp_path / "web.yaml", tmp_path / "credentials"
    web.write_text(WEB)
    credentials.write_text("basic eva:hunter2\n")
    second = make(f"{FAST}http: {{webConfigFile: {web}}}\n", name="gpu2")
    second.hold(1, "sh", "-c", "sleep 1000 # SECRET")
    node = make(f'page: {{nodes: ["{where(second.log())}"], credentialsFile: {credentials}}}\n', name="gpu1")

    def read(path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(where(node.log()) + path, timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    status, text = read("/ui/state?node=0")
    assert status == 502 and "must be readable by root alone" in text and "hunter2" not in text
    credentials.chmod(0o600)
    status, text = wait_until(lambda: (answer := read("/ui/state?node=0"))[0] == 200 and answer, "the other node", every=0.2, seen=lambda: read("/ui/state?node=0"))
    state = json.loads(text)
    assert state["node"] == "gpu2" and state["devices"][0]["holderCount"] == 1 and state["nodes"] == []
    assert "SECRET" not in text and "pids" not in text
    device = state["devices"][0]["id"]
    assert "SECRET" not in read(f"/ui/holders?device={device}&node=0&detail=processes")[1]
    assert read("/ui/state?node=1")[0] == 404 and read("/ui/state?node=http://127.0.0.1/")[0] == 404
