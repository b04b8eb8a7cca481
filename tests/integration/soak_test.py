"""Many rounds of concurrent work: runs, pods, configurations, faults, killed workers. Asserts that
the agent does not leak: after all rounds it has as many descriptors and threads, and as much
memory, as after the first ones. Needs root. 200 rounds; 2500, which take two minutes, with
PENSTOCK_CHECK_ALL=1."""
import contextlib
import os
import signal
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from monitored import Kubelet, Refused  # noqa: E402
from node import Node, wait_until  # noqa: E402

ALL = os.environ.get("PENSTOCK_CHECK_ALL") == "1"
ROUNDS, FIRST = (2500, 250) if ALL else (200, 40)
CONFIG = """allocators: {assign: [{devices: [0, 1, 2, 3], allocator: local}]}
telemetry: {interval: 1s, keepEnded: 0s}
"""
FAULTY = (6, 7)
MEMORY_MARGIN = 3 << 19  # bytes; with all rounds, a leak of 700 bytes per round exceeds it
DESCRIPTOR_MARGIN, THREAD_MARGIN = 2, 2  # connections and threads of gRPC come and go


@dataclass
class Size:
    """The size of the agent and its workers together."""
    descriptors: int
    threads: int
    memory: int

    def fits(self, first: "Size") -> bool:
        return (self.descriptors <= first.descriptors + DESCRIPTOR_MARGIN
                and self.threads <= first.threads + THREAD_MARGIN
                and self.memory <= first.memory + MEMORY_MARGIN)


def children(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # the thread has ended
            found += map(int, (task / "children").read_text().split())
    return found


def memory_of(pid: int) -> int:
    """Memory without file pages, which are shared with other processes."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Anonymous:"))


def size_of(node: Node) -> Size:
    pids = (node.agent.pid, *children(node.agent.pid))
    return Size(descriptors=sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in pids),
                threads=sum(len(os.listdir(f"/proc/{pid}/task")) for pid in pids),
                memory=sum(memory_of(pid) for pid in pids))


class Load:
    """The agent's load, one round at a time."""

    def __init__(self, node: Node, kubelet: Kubelet):
        self.node, self.kubelet, self.text = node, kubelet, node.config.read_text()
        kinds = ("runs", "pods", "configurations", "faults", "workers killed")
        self.counts = dict.fromkeys(kinds, 0)

    def round(self, number: int):
        self.node.penstock("run", "--label", f"round={number}", "--", "true")
        self.pod(f"pod-{number}")
        self.counts["runs"] += 1
        self.counts["pods"] += 1
        if number % 4 == 0:
            self.reload(number)
        if number % 6 == 0:
            self.fault(FAULTY[number // 6 % 2], ("xid", "79") if number % 12 else ("lost",))
        if number % 50 == 15:
            self.kill_workers()

    def pod(self, name: str):
        """A kubelet that has not yet received the list without a device that failed a moment ago allocates it, and the agent refuses: the pod fails
        and its owner creates another."""
        def started() -> bool:
            try:
                self.kubelet.start("soak", name)
                return True
            except Refused as error:
                if "cannot be used now" not in str(error):
                    raise
                return False
        wait_until(started, f"{name} to start", every=0.1)
        self.kubelet.end("soak", name)

    def reload(self, number: int):
        wrong = number % 12 == 0  # refused by the agent
        value = "timestamps: 1" if wrong else f"timestamp: {'true' if number % 8 else 'false'}"
        self.node.config.write_text(f"{self.text}labels: {{{value}}}\n")
        wait_until(lambda: bool(self.node.report()["configuration"]["problem"]) == wrong,
                   "the configuration to be read")
        self.counts["configurations"] += 1

    def fault(self, device: int, how: tuple):
        self.node.sim("fault", str(device), *how)
        wait_until(lambda: self.node.report()["devices"][device]["health"]["state"] != "healthy",
                   "the device to be unhealthy")
        self.node.sim("heal", str(device))
        self.counts["faults"] += 1

    def kill_workers(self):
        for worker in children(self.node.agent.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
                self.counts["workers killed"] += 1
        self.others_healthy()

    def others_healthy(self):
        """Waits for the devices without faults; the probation of the others grows with each fault."""
        def healthy() -> int:
            return sum(device["index"] not in FAULTY for device in self.node.usable())
        wait_until(lambda: healthy() == 6, "the others to be healthy", every=0.1)

    def settled(self) -> Size:
        """Waits until a worker runs, no run holds a device and the configuration is accepted. The
        kubelet's leases end half a minute after their pods. Returns the size then."""
        self.node.config.write_text(self.text)
        wait_until(lambda: not self.node.report()["configuration"]["problem"],
                   "the configuration to be applied", every=0.1)
        self.others_healthy()
        wait_until(lambda: all(holder["kind"] != "run" for holder in self.node.holders()),
                   "the devices of runs to be released", every=0.1)
        wait_until(lambda: children(self.node.agent.pid), "a new worker", every=0.1)
        return size_of(self.node)


@pytest.fixture
def load(request):
    if os.getuid() != 0:
        pytest.fail("control groups need root")
    home = Path(tempfile.mkdtemp(prefix="penstock-soak-"))
    home.chmod(0o755)
    programs = request.config.getoption("--programs")
    kubelet = Kubelet(home, programs)
    node = Node(home, programs, config=CONFIG, kubelet=kubelet.dir)
    node.start_agent()
    yield Load(node, kubelet)
    kubelet.stop()
    node.end()


def test_the_agent_does_not_grow_with_the_number_of_rounds(load):
    sizes = []
    for number in range(ROUNDS):
        load.round(number)
        if (number + 1) % FIRST == 0:
            sizes.append(load.settled())
            print(f"after {number + 1:4} rounds: {sizes[-1]}")
    print(load.counts)
    assert all(load.counts.values())
    first = sizes[0]
    wait_until(lambda: size_of(load.node).fits(first), f"the agent to shrink to {first}",
               seconds=90, every=1, seen=lambda: size_of(load.node))
    print(f"after all rounds: {size_of(load.node)}")
