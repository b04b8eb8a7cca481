"""`penstock top` on a simulated machine: its output with and without a terminal, and that it restores the terminal however it ends."""
import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import sys
import tempfile
import termios
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from node import Node, use_large_pids, wait_until  # noqa: E402

DEADLINE = 60
ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"


@pytest.fixture
def node(request):
    """A machine with an agent, in a folder with a short name, because socket paths have a length limit."""
    home = Path(tempfile.mkdtemp(prefix="penstock-top-", dir="/tmp"))
    node = Node(home, request.config.getoption("--programs").resolve(), "dgx-h100")
    try:
        node.start_agent()
        yield node
    finally:
        node.end()


class Terminal:
    """A program on its own terminal, and its output."""

    def __init__(self, node: Node, *words: str, columns: int = 80, rows: int = 24, **environment: str):
        command = [str(node.programs / "penstock"), "--run-dir", str(node.run_dir), "top", *words]
        self.written = b""
        begin, looked = os.pipe()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.close(looked)
            os.read(begin, 1)  # until the terminal's settings have been read
            settings = {"PATH": "/usr/bin:/bin", "TERM": "xterm-256color", "LANG": "C.UTF-8"} | environment
            # The size is set before the program reads it.
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execve(command[0], command, settings)
        self.before = termios.tcgetattr(self.fd)
        os.close(looked)
        os.close(begin)
        self.status = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)

    def read_until(self, predicate, what: str):
        deadline = time.monotonic() + DEADLINE
        while not predicate(self.written):
            assert time.monotonic() < deadline, f"waited for {what}; it wrote {self.written[-3000:]!r}"
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    self.written += os.read(self.fd, 65536)
                except OSError:  # the program has exited
                    assert predicate(self.written), f"ended before {what}; it wrote {self.written[-3000:]!r}"

    def forget(self):
        self.written = b""

    def wait_for(self, text: str):
        """Waits until the text is drawn again."""
        self.forget()
        self.read_until(lambda written: text.encode() in written, text)

    def press(self, keys: str, then: str):
        self.forget()
        os.write(self.fd, keys.encode())
        self.read_until(lambda written: then.encode() in written, f"{then!r} after {keys!r}")

    def wait_for_frame(self):
        """Waits until the last frame is complete: a read may end within one."""
        self.read_until(lambda written: b"q quit" in written.rpartition(b"\x1b[H")[2], "a complete frame")

    def resize(self, columns: int, rows: int):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def end(self) -> int:
        """Its waitpid status, after all its output was read."""
        def ended():
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = status if pid else None
            with contextlib.suppress(OSError):
                while select.select([self.fd], [], [], 0)[0]:
                    self.written += os.read(self.fd, 65536)
            return pid
        wait_until(ended, "the program to exit", DEADLINE)
        return self.status

    def screen(self) -> list[str]:
        """The lines of the last frame without colours."""
        frame = self.written.rpartition(b"\x1b[H")[2].decode()
        return [re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", line).rstrip() for line in frame.split("\r\n")]

    def is_as_it_was(self) -> bool:
        return termios.tcgetattr(self.fd) == self.before and self.written.rpartition(LEAVE)[2] == b"" and b"\x1b[?25h" in self.written


def busy(node: Node):
    """Two programs that hold GPUs, and their processes as the simulated driver reports them."""
    use_large_pids()
    first, second = node.hold(1), node.hold(2)
    for program in (first, second):  # `penstock run` holds the GPUs before it executes the program
        wait_until(lambda pid=program.pid: Path(f"/proc/{pid}/comm").read_text() == "sleep\n", "the program to be executed")
    holders = {holder["pids"][0]: holder["index"] for holder in node.holders()}
    node.sim("set", str(holders[first.pid]), f"process={first.pid}:20480:train:60", "temperature=71")
    node.sim("set", str(holders[second.pid]), f"process={second.pid}:40960:serve:20")
    return first, second


def test_one_frame_has_what_the_machine_has(node):
    first, second = busy(node)

    def sampled() -> dict:
        return json.loads(node.penstock("top", "-o", "json").stdout)

    def fresh(now: dict) -> bool:
        return now["intervalSeconds"] == 1 and {first.pid, second.pid} <= {process["pid"] for process in now["processes"]}
    samples = wait_until(lambda: fresh(now := sampled()) and now, "samples of both programs", seen=sampled)  # it waits only a few seconds for new ones
    assert samples["intervalSeconds"] == 1, "the sampling interval while a client watches"
    by_pid = {process["pid"]: process for process in samples["processes"]}
    assert by_pid[first.pid]["memoryBytes"] == 20480 << 20
    assert by_pid[first.pid]["command"] == "sleep 1000" and by_pid[first.pid]["kind"] == "run"
    index = by_pid[first.pid]["index"]
    device = next(device for device in samples["devices"] if device["index"] == index)
    assert device["temperatureCelsius"] == 71 and device["free"] == 0 and device["powerLimitWatts"] == 700
    assert device["memoryUsedBytes"] >= 20480 << 20
    assert sum(process["pid"] is None for process in samples["processes"]) == 1, "the second program has no process on its other GPU"

    text = node.penstock("top", "--once", env={"LANG": "C.UTF-8"}).stdout
    assert "\x1b" not in text, "no escape sequences without a terminal"
    assert max(len(line) for line in text.splitlines()) == 80
    assert "8 devices" in text and "20.0G" in text and "71C" in text and text.count("held") == 3
    assert node.penstock("top").stdout.count("\n") == text.count("\n"), "one frame without a terminal"
    assert node.penstock("top", "--once", env={"LANG": "C"}).stdout.isascii()
    assert second.poll() is None


def test_lives_on_a_terminal(node):
    first, second = busy(node)
    held = next(holder["index"] for holder in node.holders() if holder["pids"] == [first.pid])
    with Terminal(node) as terminal:
        terminal.read_until(lambda written: ENTER in written, "the alternate screen")
        terminal.wait_for("8 devices")
        terminal.wait_for("40.0G")
        terminal.press("m", "MEMv")
        terminal.wait_for_frame()
        rows = [line for line in terminal.screen() if "sleep 1000" in line]
        assert rows[0].split()[0] == str(second.pid), "the process with more memory comes first"
        terminal.press("m", "MEM^")
        terminal.press(f"/gpu {held}\r", "(1 of 3 processes)")
        terminal.press("\x1b", f"{second.pid}")
        terminal.press("h", "Any key goes back")
        terminal.press("x", "8 devices")
        node.sim("set", "all", "temperature=83")
        terminal.wait_for("83C")  # without a key press
        terminal.resize(160, 50)
        terminal.wait_for("COMMAND")
        terminal.wait_for_frame()
        assert len(terminal.screen()) == 50
        os.write(terminal.fd, b"q")
        assert os.waitstatus_to_exitcode(terminal.end()) == 0
        assert terminal.is_as_it_was()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGSEGV, signal.SIGABRT, "Ctrl-C"])
def test_leaves_the_terminal_as_it_was(node, how):
    with Terminal(node) as terminal:
        terminal.wait_for("8 devices")
        assert termios.tcgetattr(terminal.fd) != terminal.before
        os.write(terminal.fd, b"\x03") if how == "Ctrl-C" else os.kill(terminal.pid, how)
        ended_by = os.waitstatus_to_exitcode(terminal.end())
        assert -ended_by == (signal.SIGINT if how == "Ctrl-C" else how)
        assert terminal.is_as_it_was()


def test_stops_and_goes_on(node):
    with Terminal(node) as terminal:
        terminal.wait_for("8 devices")
        os.kill(terminal.pid, signal.SIGTSTP)
        wait_until(lambda: os.waitpid(terminal.pid, os.WUNTRACED | os.WNOHANG)[0], "the program to stop", DEADLINE)
        terminal.read_until(lambda written: written.endswith(LEAVE), "the terminal to be restored")
        assert termios.tcgetattr(terminal.fd) == terminal.before
        terminal.forget()
        os.kill(terminal.pid, signal.SIGCONT)
        terminal.read_until(lambda written: ENTER in written and b"8 devices" in written.rpartition(ENTER)[2], "the view to be drawn again")
        os.write(terminal.fd, b"q")
        assert os.waitstatus_to_exitcode(terminal.end()) == 0
        assert terminal.is_as_it_was()


def test_says_so_when_the_agent_goes_and_goes_on_when_it_is_back(node):
    with Terminal(node) as terminal:
        terminal.wait_for("8 devices")
        node.kill_agent()
        terminal.wait_for("outdated")
        terminal.wait_for_frame()
        assert any("H100" in line for line in terminal.screen()), "the last values stay on the screen"
        node.start_agent()
        terminal.wait_for("8 devices")


def test_colours_only_where_they_are_wanted(node):
    with Terminal(node) as terminal:
        terminal.wait_for("8 devices")
        assert b"\x1b[1m" in terminal.written or b"\x1b[2m" in terminal.written
    with Terminal(node, NO_COLOR="1") as terminal:
        terminal.wait_for("8 devices")
        assert not re.search(rb"\x1b\[[0-9;]*m", terminal.written)
    with Terminal(node, TERM="dumb") as terminal:
        assert os.waitstatus_to_exitcode(terminal.end()) == 0, "one frame, because this terminal cannot redraw"
        assert b"8 devices" in terminal.written and b"\x1b" not in terminal.written


def test_wrong_use_and_no_agent_are_told(node):
    done = node.penstock("top", "--interval", "1ms", check=False)
    assert done.returncode == 2 and "--interval" in done.stderr
    done = node.penstock("--run-dir", "/nonexistent", "top", check=False)
    assert done.returncode == 1 and "no agent" in done.stderr.lower(), done.stderr
    assert done.stderr.split(":", 2)[2:] == node.penstock("--run-dir", "/nonexistent", "ps", check=False).stderr.split(":", 2)[2:]
