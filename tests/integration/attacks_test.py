"""Attacks of an unprivileged user, or of a process in a container, on the agent and the command-line tool, which run as root. Needs root, to
act as both."""
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import faults  # noqa: E402
import webpages  # noqa: E402
from node import PATIENCE, Node, wait_until  # noqa: E402

ATTACKER = 12345
# Pretends to be a kubelet whose arguments name an engine's socket. If LISTEN is set, the process also listens at that socket.
FAKE = """
import os, socket, sys, time
with open("/proc/self/comm", "w") as comm:
    comm.write("kubelet")
if os.environ["LISTEN"]:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(os.environ["LISTEN"])
    listening.listen(64)
open(os.environ["READY"], "w").close()
time.sleep(10_000)
"""
IN_A_CONTAINER = ["unshare", "--user", "--map-root-user", "--mount", "--propagation", "private"]


class Attacker:
    """An unprivileged user with a folder."""

    def __init__(self):
        self.home = Path(tempfile.mkdtemp(prefix="attacker-"))
        self.mark, self.processes = self.home / "executed", []
        os.chown(self.home, ATTACKER, ATTACKER)
        self.home.chmod(0o777)

    def start(self, program: str, *arguments, listen: Path | None = None, wrapper=()) -> subprocess.Popen:
        """Starts the fake kubelet; the user chooses the name of its program."""
        copy = self.home / program
        shutil.copy(Path(sys.base_prefix) / "bin/python3", copy)
        ready = self.home / f"ready{len(self.processes)}"
        environment = os.environ | {"LISTEN": str(listen or ""), "READY": str(ready), "PYTHONHOME": sys.base_prefix}
        command = ["setpriv", f"--reuid={ATTACKER}", f"--regid={ATTACKER}", "--clear-groups", *wrapper, copy, "-c", FAKE, *arguments]
        self.processes.append(subprocess.Popen(command, env=environment, start_new_session=True))
        wait_until(ready.exists, "the attacker to be ready")
        return self.processes[-1]

    def put_a_script_at(self, program: str):
        """Replaces the program that runs with a script that leaves a mark."""
        script = self.home / "script"
        script.write_text(f"#!/bin/sh\nid > {self.mark}\necho containerd github.com/containerd/containerd v1.7.20 x\n")
        script.chmod(0o755)
        script.replace(self.home / program)

    def end(self):
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        shutil.rmtree(self.home)


@pytest.fixture
def attacker():
    if os.getuid() != 0:
        pytest.fail("needs root")
    attacker = Attacker()
    yield attacker
    attacker.end()


@pytest.fixture
def node(request):
    """A node with a kubelet's folder; the agent looks for that kubelet's engine."""
    home = Path(tempfile.mkdtemp(prefix="penstock-attacked-"))
    (home / "kubelet/device-plugins").mkdir(parents=True)
    node = Node(home, request.config.getoption("--programs").resolve(), listen="127.0.0.1:0", kubelet=home / "kubelet",
                config="allocators: {assign: [{devices: [7], allocator: local}]}\n")
    yield node
    node.end()


def configure(request, attacker, *words) -> subprocess.CompletedProcess:
    program = request.config.getoption("--programs").resolve() / "penstock"
    command = [program, "runtime", "configure", "--cdi.enabled", "--no-runtime", "--dry-run", "--state-dir", attacker.home / "memory", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)


@pytest.mark.parametrize("wrapper", [[], IN_A_CONTAINER], ids=["on the machine", "in a container"])
@pytest.mark.parametrize("program", ["kubelet", "containerd"])
def test_root_executes_nothing_of_a_process_that_calls_itself_kubelet(request, attacker, program, wrapper):
    engine = attacker.home / "e.sock"
    attacker.start(program, f"--container-runtime-endpoint=unix://{engine}", listen=engine, wrapper=wrapper)
    attacker.put_a_script_at(program)
    done = configure(request, attacker)
    assert done.returncode != 0 and not attacker.mark.exists(), done.stdout + done.stderr
    assert "no suitable container engine is running" in done.stderr or "is not accepted as a process of the machine itself" in done.stderr
    # The same holds if an administrator names the socket.
    named = configure(request, attacker, "--socket", engine)
    assert named.returncode != 0 and not attacker.mark.exists(), named.stdout + named.stderr
    assert f"the socket {engine} is not trusted: {attacker.home} belongs to user {ATTACKER}" in named.stderr


def test_the_doctor_says_which_engine_it_does_not_trust_and_why(request, attacker):
    usual = Path("/run/containerd")  # empty on this machine
    usual.mkdir()
    try:
        os.chown(usual, ATTACKER, ATTACKER)
        attacker.start("containerd", listen=usual / "containerd.sock")
        program = request.config.getoption("--programs").resolve() / "penstock"
        done = subprocess.run([program, "runtime", "doctor"], capture_output=True, text=True, timeout=PATIENCE)
        line = next((line for line in done.stdout.splitlines() if "/run/containerd/containerd.sock" in line), "")
        assert line.startswith("unknown") and "was not queried" in line and f"{usual} belongs to user {ATTACKER}" in line, done.stdout + done.stderr
    finally:
        shutil.rmtree(usual)


def test_the_agent_does_not_ask_an_engine_of_somebody_else(attacker, node):
    engine = attacker.home / "e.sock"
    attacker.start("kubelet", f"--container-runtime-endpoint=unix://{engine}", listen=engine)
    node.start_agent()
    wait_until(lambda: "container engine not queried" in node.log(), "the agent to look for an engine", seen=node.log)
    assert str(engine) not in node.log()
    assert f"it runs as user {ATTACKER}" in node.log()


@pytest.mark.parametrize("wrapper", [[], IN_A_CONTAINER], ids=["on the machine", "in a container"])
def test_a_pipe_in_the_place_of_a_file_stops_nothing(attacker, node, wrapper):
    pipe = attacker.home / "config.yaml"
    os.mkfifo(pipe, 0o666)
    attacker.start("kubelet", f"--config={pipe}", wrapper=wrapper)
    node.start_agent()
    assert node.penstock("run", "--wait", "10s", "--", "true").returncode == 0
    node.end_agent()


def answer(node, path: str) -> tuple[int, str]:
    return webpages.answer(webpages.where(node.log()) + path)


@pytest.fixture
def systemd(monkeypatch, tmp_path):
    """systemd's notification socket, with a watchdog interval of 0.6 s."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "600000")
        yield listening


def watchdog_is_fed(systemd: socket.socket, seconds: float) -> bool:
    systemd.settimeout(seconds)
    with contextlib.suppress(TimeoutError):
        while b"WATCHDOG=1" not in systemd.recv(4096):
            pass
        return True
    return False


def drain(systemd: socket.socket):
    systemd.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            systemd.recv(4096)


def test_a_thread_that_hangs_is_seen_by_probes_and_does_not_keep_the_agent_from_ending(node, systemd):
    hanging = faults.Faults(node.home, {"config": node.config})
    node.start_agent(wrapper=hanging.wrapper())
    # Ready once the drivers of all vendors were looked for.
    wait_until(lambda: answer(node, "/readyz") == (200, "ok\n"), "the agent to be ready", seen=lambda: answer(node, "/readyz"))
    assert answer(node, "/healthz") == answer(node, "/readyz") == (200, "ok\n")
    assert watchdog_is_fed(systemd, PATIENCE)
    hanging.look(faults.Point("openat", "config", 1, faults.HANG))
    node.agent.send_signal(signal.SIGHUP)
    wait_until(lambda: hanging.hit, "the agent to read its configuration again")
    for path in ("/healthz", "/readyz"):
        status, why = wait_until(lambda: (seen := answer(node, path))[0] == 503 and seen, "the probe to fail", every=1, seen=node.log)
        assert 'thread "io" has not responded for' in why, why
    assert answer(node, "/metrics")[0] == 200, "other requests are still answered"
    drain(systemd)
    assert not watchdog_is_fed(systemd, 3), "the watchdog is no longer fed, so that systemd restarts the agent"
    node.agent.terminate()
    assert node.agent.wait(PATIENCE) == 0, node.log()
    assert "exiting while a thread is blocked on a file" in node.log()
    hanging.close()
