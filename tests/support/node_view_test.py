"""tests/e2e/cluster/node_view.py: what is seen of a node from outside is the node's, not the machine's. The node is a process in namespaces of its own, and a second one within them, as the
nodes of a cluster are."""
import subprocess
import sys
from pathlib import Path

import pytest
from node import wait_until

sys.path.append(str(Path(__file__).parents[1] / "e2e/cluster"))

from api import RequestFailed  # noqa: E402
from node_view import NodeView  # noqa: E402

UNSHARE = ("unshare", "-m", "-n", "-p", "-f", "--kill-child", "--propagation", "private", "--mount-proc")
# Serves a page, the agent's protocol and, as an engine, bytes at a socket; beside this is the socket of a server that was killed.
NODE = """
import http.server, json, os, socket, subprocess, sys, threading
name, inner = sys.argv[1], sys.argv[2:]
for command in ("mount -t tmpfs tmpfs /run", "mkdir -p /run/penstock /run/folder/inner", "mount -t tmpfs tmpfs /run/folder/inner", "ip link set lo up"):
    subprocess.run(command.split(), check=True)
for file in ("a.conf", "b.conf", "inner/c"):
    open(f"/run/folder/{file}", "w").write(f"{file} of {name}\\n")

class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/page" else 503)
        self.end_headers()
        self.wfile.write(f"page of {name}".encode())
    def log_message(self, *words):
        pass

def serve(path, answer):
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path)
    listening.listen()
    def loop():
        while True:
            one, _ = listening.accept()
            one.sendall(answer(one.recv(4096)))
            one.close()
    threading.Thread(target=loop, daemon=True).start()

def agent(line):
    asked = json.loads(line)["op"]
    return json.dumps({"error": "unknown"} if asked == "odd" else {"of": name, "asked": asked}).encode() + b"\\n"
serve("/run/penstock/penstock.sock", agent)
serve("/run/engine.sock", lambda preface: b"\\0" * 9 if preface.startswith(b"PRI * HTTP/2.0") else b"")
serve("/run/other.sock", lambda preface: b"")
socket.socket(socket.AF_UNIX).bind("/run/killed.sock")
sleeper = subprocess.Popen(["/bin/sleep", "100000"])
if inner:
    subprocess.Popen(inner)
print(sleeper.pid, flush=True) if inner else open("/run/sleeper", "w").write(str(sleeper.pid))
http.server.ThreadingHTTPServer(("127.0.0.1", 8123), Page).serve_forever()
"""


def first_within(pid: int | str, root: str = "") -> str:
    """The only child of that process, which is the first one of its namespaces."""
    return wait_until(lambda: Path(f"{root}/proc/{pid}/task/{pid}/children").read_text().split(), "the first process")[0]


@pytest.fixture(scope="module")
def nodes():
    """The views of both nodes, and a pid of each, of a sleeping program."""
    inner = [*UNSHARE, sys.executable, "-c", NODE, "n2"]
    with subprocess.Popen([*UNSHARE, sys.executable, "-c", NODE, "n1", *inner], stdout=subprocess.PIPE, text=True) as host:
        sleeper = int(host.stdout.readline())
        first = Path(f"/proc/{first_within(host.pid)}")
        root = f"{first}/root"
        unshare = wait_until(lambda: [file.parent.name for file in Path(f"{root}/proc").glob("[0-9]*/comm") if file.read_text() == "unshare\n"], "the second node")[0]
        second = Path(f"{root}/proc/{first_within(unshare, root)}")
        views = {"n1": NodeView(lambda: first), "n2": NodeView(lambda: second)}
        wait_until(lambda: views["n2"].text("/run/sleeper"), "the second node to be ready")
        yield views, {"n1": sleeper, "n2": int(views["n2"].text("/run/sleeper"))}
        host.kill()


@pytest.mark.parametrize("name", ["n1", "n2"])
def test_what_is_seen_is_of_that_node(nodes, name):
    views, sleepers = nodes
    view = views[name]
    assert wait_until(lambda: view.page("http://127.0.0.1:8123/page"), "the page") == f"page of {name}"
    assert view.agent("/run/penstock", "status") == {"of": name, "asked": "status"}
    assert view.text("/run/folder/*.conf", "/run/none") == f"a.conf of {name}\nb.conf of {name}\n"
    assert sorted(view.below("/run/folder", "/run/none")) == [f"/run/folder/{one}" for one in ("a.conf", "b.conf", "inner", "inner/c")]
    assert view.mounted("/run/folder/inner") and not view.mounted("/run/folder")
    assert view.programs()[sleepers[name]] == ["/bin/sleep", "100000"] and view.alive(sleepers[name])
    assert any(file.endswith("/sleep") for file in view.executables())
    assert not view.alive(4_000_000)
    assert view.speaks_grpc("/run/engine.sock")


def test_what_does_not_answer_is_told_from_what_does(nodes):
    view = nodes[0]["n1"]
    for socket in ("/run/other.sock", "/run/killed.sock", "/run/none.sock", "/run/none/none.sock"):
        assert not view.speaks_grpc(socket), socket
    for failing, code in ((lambda: view.page("http://127.0.0.1:8123/other"), 503), (lambda: view.page("http://127.0.0.1:8124/page"), 0),
                          (lambda: view.agent("/run/none", "status"), 0), (lambda: view.agent("/run/penstock", "odd"), 0)):
        with pytest.raises(RequestFailed) as error:
            failing()
        assert error.value.code == code
