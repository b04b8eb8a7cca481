"""`penstock up`, `status` and `down`: the life cycle of an agent for a user, on simulated machines. Needs no root and no network but the loopback."""
import fcntl
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from node import PATIENCE, wait_until  # noqa: E402


class Home:
    """The folders of one agent, and calls of the program on them."""

    def __init__(self, folder: Path, programs: Path):
        self.run_dir, self.state_dir = folder / "run", folder / "state"
        self.base = [str(programs / "penstock"), "--run-dir", str(self.run_dir), "--state-dir", str(self.state_dir),
                     "--kubelet-dir", str(folder / "none"), "--cdi-root", str(folder / "cdi"), "--driver-root", str(folder),
                     "--listen", "127.0.0.1:0"]
        self.simulated = [part for part in self.base if part not in ("--driver-root", str(folder))]

    def penstock(self, *words: str, simulated: bool = False) -> subprocess.CompletedProcess:
        return subprocess.run([*(self.simulated if simulated else self.base), *words], capture_output=True, text=True, timeout=PATIENCE)

    def start(self, *words: str) -> subprocess.Popen:
        return subprocess.Popen([*self.simulated, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def report(self) -> dict:
        return json.loads(self.penstock("status", "-o", "json").stdout)

    def up(self, machine: str = "dgx-a100") -> subprocess.CompletedProcess:
        return self.penstock("up", "--detach", "--simulate", machine, simulated=True)


@pytest.fixture
def home(request):
    with tempfile.TemporaryDirectory(prefix="penstock-up-") as folder:  # short, because socket paths have a length limit
        home = Home(Path(folder), request.config.getoption("--programs").resolve())
        yield home
        home.penstock("down")


def ended(pid: int) -> bool:
    """Waits until a process has exited; a zombie has no open files."""
    def gone():
        try:
            return not os.listdir(f"/proc/{pid}/fd")
        except (ProcessLookupError, FileNotFoundError, PermissionError):
            return True

    return wait_until(gone, f"process {pid} to be gone")


def test_up_shows_what_it_found_and_down_leaves_nothing_running(home):
    up = home.up()
    assert up.returncode == 0, up.stderr
    rows = [line.split() for line in up.stdout.splitlines() if "A100-SXM4-40GB" in line]
    assert [row[0] for row in rows] == [str(i) for i in range(8)]
    assert all(row[4].startswith("GPU-") and row[5].startswith("0000:") and row[-1] == "healthy" for row in rows), up.stdout
    assert re.search("kubelet +pods +closed", up.stdout) and re.search("local +penstock run +open", up.stdout)

    report = home.report()
    assert len(report["devices"]) == 8 and {allocator["name"]: allocator["state"] for allocator in report["allocators"]} == {"kubelet": "closed", "local": "open"}
    table = home.penstock("status").stdout
    assert table.count("free") == 8 and "\033" not in table
    assert home.penstock("ps").stdout == "no devices are held\n"

    down = home.penstock("down")
    assert down.returncode == 0 and "has stopped" in down.stdout and "simulated machine is removed" in down.stdout
    assert ended(report["agentPid"])
    assert sorted(path.name for path in home.run_dir.iterdir()) == ["agent.lock"]
    again = home.penstock("down")
    assert again.returncode == 0 and "No agent was running" in again.stdout


def test_a_second_agent_is_told_who_the_first_is(home):
    assert home.up().returncode == 0
    pid = home.report()["agentPid"]
    second = home.up("t4-x1")
    assert second.returncode == 1
    assert f"process {pid} since 20" in second.stderr
    assert len(home.report()["devices"]) == 8, "the first one's simulated machine was left alone"


def test_in_the_foreground_an_interrupt_ends_the_agent_and_its_machine(home):
    up = home.start("up", "--simulate", "t4-x1")
    for line in up.stdout:
        if line.startswith("local"):
            break
    pid = home.report()["agentPid"]
    up.send_signal(signal.SIGINT)
    assert up.wait(PATIENCE) == 0
    assert ended(pid) and not (home.run_dir / "sim").exists()


def test_without_a_driver_it_says_what_is_missing_and_keeps_looking(home):
    up = home.penstock("up", "--detach")
    assert up.returncode == 0, up.stderr
    assert up.stdout.startswith("no nvidia driver: ") and "install" in up.stdout and "penstock up --simulate dgx-a100" in up.stdout
    assert home.report()["devices"] == []


def test_what_a_killed_agent_left_is_cleared(home):
    assert home.up().returncode == 0
    pid = home.report()["agentPid"]
    os.kill(pid, signal.SIGKILL)
    assert ended(pid)
    with open(home.run_dir / "agent.lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)  # the kernel closes the agent's files one after the other
    wait_until(lambda: "no agent answers" in home.penstock("status").stderr, "the agent not to answer")
    assert home.up("t4-x1").returncode == 0
    assert len(home.report()["devices"]) == 1


def test_bad_input_gets_one_clear_message_and_changes_nothing(home, tmp_path):
    config = tmp_path / "bad.yaml"
    config.write_text("apiVersion: penstock.io/v1alpha1\nkind: NodeConfig\npats: {}\nhealth: {poll: 5}\n")
    for words in (["up", "--config", str(config)], ["config", "check", str(config)], ["status", "--config", str(config)]):
        bad = home.penstock(*words)
        assert bad.returncode == 1
        assert f'{config}:3:1: unknown key "pats"; did you mean "paths"?' in bad.stderr and f"{config}:4:16: health.poll" in bad.stderr
    unknown = home.up("no-such-machine")
    assert unknown.returncode == 1 and "dgx-a100" in unknown.stderr
    assert home.penstock("up", "--no-such-flag").returncode == 2
    assert home.penstock("no-such-verb").returncode == 2
    assert home.penstock("status").returncode == 1


def test_detached_it_tells_why_the_agent_could_not_start(home):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        up = home.penstock("up", "--detach", "--listen", f"127.0.0.1:{taken.getsockname()[1]}")
    assert up.returncode == 1 and "another program already listens there" in up.stderr and "exited with status 1" in up.stderr


@pytest.mark.parametrize("file", ("ledger.json", "ledger-limits.json", "doors.json", "changes.json", "health.json", "health-marks.json", "configuration.json"))
def test_an_agent_does_not_start_with_state_that_it_cannot_read(home, file):
    (home.state_dir / file).mkdir(parents=True)  # a folder is unreadable also for root
    up = home.up()
    assert up.returncode == 1 and f"{home.state_dir}/{file}: Is a directory" in up.stderr, up.stderr
    (home.state_dir / file).rmdir()
    assert home.up().returncode == 0


def test_a_successor_is_ready_before_it_serves_and_serves_when_the_first_one_ends(home, record_property):
    assert home.up().returncode == 0
    first = home.report()["agentPid"]
    words = Path(f"/proc/{first}/cmdline").read_text().split("\0")[:-1]
    with open(home.run_dir.parent / "second.log", "w") as log:
        second = subprocess.Popen([word for word in words if word != "--no-wait"], stdout=log, stderr=log)
    try:
        pages = pages_at(home.run_dir.parent / "second.log")
        wait_until(lambda: answers(f"{pages}/readyz"), "the successor to be ready")
        assert home.report()["agentPid"] == first
        waiting = json.loads(fetch(f"{pages}/debug/state"))
        assert len(waiting["devices"]) == 8 and {allocator["state"] for allocator in waiting["allocators"]} == {"waiting"}
        assert "another agent" in waiting["allocators"][0]["reason"]
        assert f"process {first}" in (home.run_dir.parent / "second.log").read_text()
        os.kill(first, signal.SIGTERM)
        begin = time.monotonic()
        wait_until(lambda: home.penstock("status").returncode == 0 and home.report()["agentPid"] == second.pid, "the successor to serve")
        record_property("seconds until a successor serves", time.monotonic() - begin)
        assert {device["health"]["state"] for device in home.report()["devices"]} == {"healthy"}
    finally:
        second.terminate()
        assert second.wait(PATIENCE) == 0


def pages_at(log: Path) -> str:
    """The address of an agent that listens on any port, from its log."""
    return wait_until(lambda: re.search(r"pages at=(\S+)", log.read_text()), "the pages to be opened", seen=log.read_text)[1]


def fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        return answer.read().decode()


def answers(url: str) -> bool:
    try:
        return bool(fetch(url))
    except OSError:
        return False


def test_the_pages_are_served(home):
    up = home.up("t4-x1")
    assert up.returncode == 0, up.stderr
    pages = pages_at(home.state_dir / "agent.log")

    def get(path: str) -> str:
        return fetch(pages + path)

    assert get("/healthz") == get("/readyz") == "ok\n"
    wait_until(lambda: json.loads(get("/debug/state"))["devices"] == home.report()["devices"], "the same devices on the pages")
    # The agent reads its own use of memory beside all else.
    page = wait_until(lambda: 'penstock_process_resident_memory_bytes{process="agent"}' in (now := get("/metrics")) and now, "the agent's memory on the page")
    assert 'accelerator_healthy{device="GPU-' in page
    # promtool complains about NVIDIA's names, which are kept, and about nothing else.
    checked = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, text=True, timeout=PATIENCE)
    assert [line for line in checked.stderr.splitlines() if not line.startswith("DCGM_FI_")] == []
