"""A node with many shares: sixteen GPUs in 5,000 slots. Measures the time from a fault of one GPU to the kubelet's list without its 312 slots,
the cost of all Penstock processes then, and the time from an edit of the configuration to the resulting list, while every slot that stays is
held. The same limits of memory for 112 parts of sixteen devices of a made-up vendor, each of which is a device of its own (its driver
reports no events, so a fault waits for the next reading)."""
import subprocess
import sys
import time
from pathlib import Path

from bed import Bed, now
from figures import ROOT, Bench
from footprint import KIB, memory

sys.path.append(str(ROOT / "tests/support"))
from acme import Acme  # noqa: E402

SLOTS = 5000
DEVICES, PARTS = 16, 7
# 8 x 313 + 8 x 312.
CUT = """sharing:
  rules:
    - {devices: [0, 1, 2, 3, 4, 5, 6, 7], strategy: time-slicing, replicas: 313}
    - {strategy: time-slicing, replicas: 312}
"""
REPLICAS = "sharing:\n  rules:\n    - {strategy: time-slicing, replicas: %d}\n"


def faults(bench: Bench, programs, smoke: bool):
    """Uses the driver's event alone; the clock starts before penstock-sim is executed."""
    whole, memories = [], {}
    with Bed(programs, "dgx-2", config=CUT) as bed:
        for turn in range(1 if smoke else 4):
            begin = bed.start_agent()
            bed.kubelet.wait_listed(SLOTS, begin)
            if not turn:
                time.sleep(0.2 if smoke else 5)
                memories["at rest"] = pss(bed)
            left = SLOTS
            for gpu in range(15, 13 if smoke else 7, -1):
                begin = now()
                bed.sim("fault", gpu, "xid", "48", "--no-log")
                left -= 312
                whole.append((bed.kubelet.wait_listed(left, begin)[0] - begin) / 1e6)
            memories["after faults"] = pss(bed)
            ended = now()
            bed.end_agent()
            bed.forget()  # this driver cannot report that an XID is cleared
            bed.kubelet.wait_listed(0, ended)
            bed.sim("heal", "all")
        begin = bed.start_agent()
        bed.kubelet.wait_listed(SLOTS, begin)
        held = 20 if smoke else 500  # more than the containers of one kubelet
        allocated = bed.kubelet.calls("allocate", 1, held, 2000)["latencies"]
        memories[f"with {held} slots held"] = pss(bed)
        tool = []
        for _ in range(1 if smoke else 20):
            begin = now()
            subprocess.run([programs / "penstock-sim", "--root", bed.root, "status"], check=True, stdout=subprocess.DEVNULL)
            tool.append((now() - begin) / 1e6)
    bench.add(f"XID 48, by the driver's event alone, to the list, {SLOTS} slots", "ms", whole, goal=50)
    bench.add("baseline: penstock-sim status, a process that changes nothing", "ms", tool, detail=True)
    bench.add(f"Allocate, one every 2 ms, until {held} slots are held", "µs", [nanoseconds / 1000 for nanoseconds in allocated])
    add_memories(bench, memories)


def add_memories(bench: Bench, memories: dict[str, dict]):
    for when, found in memories.items():
        bench.add(f"PSS {when}", "MiB", sum(found.values()) / KIB, goal=26)
        for name, kib in found.items():
            bench.add(name, "MiB", kib / KIB, detail=True)


def pss(bed: Bed) -> dict:
    return {name: memory(pid)["Pss"] for name, pid in bed.processes().items()}


def edits(bench: Bench, programs, smoke: bool):
    """From 4 shares of each of eight GPUs to 8 and back, with all of the first 32 held."""
    grown, shrunk = [], []
    with Bed(programs, config=REPLICAS % 4) as bed:
        head = bed.config.read_text().split("sharing:")[0]

        def edit(replicas: int) -> float:
            other = bed.config.with_suffix(".new")
            other.write_text(head + REPLICAS % replicas)
            begin = now()
            other.rename(bed.config)
            slots = 8 * replicas
            listed, _ = bed.kubelet.events.wait(lambda event: event["event"] == "list" and event["devices"] == slots, begin, f"a list of {slots}")
            return (listed - begin) / 1e6

        begin = bed.start_agent()
        bed.kubelet.wait_listed(32, begin)
        bed.kubelet.calls("allocate", 1, 32)
        for _ in range(1 if smoke else 15):
            grown.append(edit(8))
            shrunk.append(edit(4))
    bench.add("an edit from 4 to 8 replicas to the list, 32 slots held", "ms", grown, goal=1000)
    bench.add("and back from 8 to 4", "ms", shrunk, goal=1000)


class Divided(Bed):
    """A machine with devices of the made-up vendor of the tests, each divided into seven parts, and the agent that knows it."""

    def __init__(self, programs: Path):
        super().__init__(programs, "empty", resource="acme.com/gpu")
        self.programs = programs.parent / "acme"
        acme = Acme(self.root, DEVICES)
        for index in range(DEVICES):
            acme.divide(f"A-{index}", PARTS)


def parts(bench: Bench, programs, smoke: bool):
    memories = {}
    with Divided(programs) as bed:
        begin = bed.start_agent()
        bed.kubelet.wait_listed(DEVICES * PARTS, begin)
        time.sleep(0.2 if smoke else 5)
        memories[f"at rest, {DEVICES * PARTS} parts"] = pss(bed)
        allocated = bed.kubelet.calls("allocate", 1, DEVICES * PARTS, 2000)["latencies"]
        memories[f"with {DEVICES * PARTS} parts held"] = pss(bed)
    bench.add(f"Allocate, one every 2 ms, until {DEVICES * PARTS} parts are held", "µs", [nanoseconds / 1000 for nanoseconds in allocated])
    add_memories(bench, memories)


def measure(programs, smoke: bool) -> Bench:
    bench = Bench("share", f"{SLOTS} slots of 16 GPUs, and changes of sharing")
    faults(bench, programs, smoke)
    edits(bench, programs, smoke)
    parts(bench, programs, smoke)
    return bench
