"""The environment of a benchmark: a simulated machine, an agent, a kubelet, and timestamps of their output. Times are nanoseconds of the
monotonic clock, the same in all processes."""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

RESOURCE = "nvidia.com/gpu"
# A kubelet reads its list in milliseconds; only a benchmark that went wrong reaches this limit.
PATIENCE = 120.0


def now() -> int:
    return time.monotonic_ns()


class Lines:
    """Lines of a stream, each with its time of arrival, collected by a thread."""

    def __init__(self, stream, parse=lambda line: line, when=lambda parsed: now()):
        self.changed = threading.Condition()
        self.seen: list[tuple] = []
        self.thread = threading.Thread(target=self._read, args=(stream, parse, when), daemon=True)
        self.thread.start()

    def _read(self, stream, parse, when):
        for line in stream:
            at = now()
            parsed = parse(line)
            with self.changed:
                self.seen.append((when(parsed) or at, parsed))
                self.changed.notify_all()

    def wait(self, predicate, after: int = 0, what: str = "a line"):
        """The first line after a given time that satisfies the predicate: (time, line)."""
        deadline = time.monotonic() + PATIENCE
        position = 0
        with self.changed:
            while True:
                for at, line in self.seen[position:]:
                    if at >= after and predicate(line):
                        return at, line
                position = len(self.seen)
                if not self.changed.wait(max(0.0, deadline - time.monotonic())):
                    tail = "\n".join(str(line)[:200].rstrip() for _, line in self.seen[-12:])
                    raise RuntimeError(f"{what} did not come within {PATIENCE:.0f} s; the last lines were:\n{tail}")


class Kubelet:
    """bench-kubelet: records the calls that reach it, and makes calls."""

    def __init__(self, programs: Path, folder: Path, resource: str = RESOURCE):
        self.process = subprocess.Popen([programs / "bench-kubelet", folder, resource], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.events = Lines(self.process.stdout, json.loads, lambda event: event["at"])
        self.events.wait(lambda event: event["event"] == "listening", what="the kubelet")

    def wait_listed(self, healthy: int, after: int = 0):
        """The time at which exactly so many devices were listed as healthy, and their ids."""
        at, event = self.events.wait(lambda event: event["event"] == "list" and len(event["healthy"]) == healthy, after, f"a list of {healthy}")
        return at, event["healthy"]

    def wait_registered(self, after: int = 0) -> int:
        return self.events.wait(lambda event: event["event"] == "registered", after, "a registration")[0]

    def calls(self, what: str, callers: int, each: int, pause_us: int = 0) -> dict:
        begin = now()
        self.process.stdin.write(f"calls {what} {callers} {each} {pause_us}\n")
        self.process.stdin.flush()
        answer = self.events.wait(lambda event: event["event"] == "calls", begin, "the calls' end")[1]
        if answer["failed"]:
            raise RuntimeError(f"{answer['failed']} of {callers * each} {what} calls failed")
        return answer

    def end(self):
        self.process.stdin.close()
        self.process.wait(10)


class Bed:
    """A simulated machine below its own folder. `kubelet` false: there is none, and the devices are assigned to local users."""

    def __init__(self, programs: Path, machine: str = "dgx-a100", kubelet: bool = True, config: str = "", driver: str = "", resource: str = RESOURCE):
        self.programs = programs
        self.home = Path(tempfile.mkdtemp(prefix="penstock-bench-", dir="/tmp"))  # paths of sockets must be short
        self.root, self.run_dir = self.home / "machine", self.home / "run"
        self.kubelet_dir = self.home / "kubelet"
        self.config = self.home / "node.yaml"
        self.config.write_text("apiVersion: penstock.io/v1alpha1\nkind: NodeConfig\n" + config)
        self.agent = self.log = self.kubelet = None
        self.sim("start", machine, *(("--driver", driver) if driver else ()))
        if kubelet:
            self.kubelet_dir.mkdir()
            self.kubelet = Kubelet(programs, self.kubelet_dir, resource)

    def __enter__(self):
        return self

    def __exit__(self, failure, *_):
        if failure and self.log:
            print("the agent's last lines:", *(line.rstrip() for _, line in self.log.seen[-12:]), sep="\n  ", file=sys.stderr)
        self.end_agent()
        if self.kubelet:
            self.kubelet.end()
        self.sim("stop")
        shutil.rmtree(self.home, ignore_errors=True)

    def sim(self, *words):
        subprocess.run([self.programs / "penstock-sim", "--root", self.root, *map(str, words)], check=True, stdout=subprocess.DEVNULL)

    def start_agent(self, *options) -> int:
        """Starts the agent and returns the time before the start."""
        command = [self.programs / "penstock-agent", "--config", self.config, "--driver-root", self.root, "--dev-root", self.root,
                   "--sysfs-root", self.root / "sys", "--kubelet-dir", self.kubelet_dir, "--cdi-root", self.home / "cdi",
                   "--state-dir", self.home / "state", "--run-dir", self.run_dir, "--listen", f"unix:{self.run_dir}/pages.sock", *options]
        begin = now()
        self.agent = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.log = Lines(self.agent.stderr)
        return begin

    def logged(self, text: str, after: int = 0) -> int:
        """The time at which the agent logged a text."""
        return self.log.wait(lambda line: text in line, after, f"\"{text}\" in the agent's log")[0]

    def end_agent(self):
        if self.agent:
            self.agent.terminate()
            self.agent.wait(10)
            self.agent.stderr.close()
            self.agent = None

    def forget(self):
        """Removes the state that the next agent would inherit, such as the unhealthy state of a device."""
        shutil.rmtree(self.home / "state", ignore_errors=True)

    def processes(self) -> dict:
        """Penstock's own processes: the agent, and its workers by name."""
        found = {"agent": self.agent.pid}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                stat = Path(f"/proc/{pid}/stat").read_text()
                if int(stat.rpartition(")")[2].split()[1]) == self.agent.pid:
                    found[Path(f"/proc/{pid}/comm").read_text().strip()] = int(pid)
            except (FileNotFoundError, ProcessLookupError):
                continue  # exited since the listing
        return found

    def page(self, path: str) -> bytes:
        """A page of the agent, over a new connection."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.run_dir / "pages.sock"))
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n".encode())
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        if not answer.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"{path}: {answer[:200]}")
        return answer
