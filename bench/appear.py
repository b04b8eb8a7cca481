"""Measures the time from the rename of the driver's library into place, while the agent already waits for it, to the kubelet's list of eight GPUs.
The phases end at lines in the agent's log (timestamped on arrival here, some 0.1 ms late) and at calls that reach the kubelet; the agent registers
while it still reads devices, so these two may come in either order."""
import random
import subprocess
import time

from bed import Bed, now
from figures import Bench, ratio

LIBRARY = "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"
PHASES = ("noticed", "worker open", "described", "read", "registered", "listed")


def one(bed: Bed) -> list:
    """The ends of the phases in milliseconds since the library appeared, of one agent that was started before its driver was installed."""
    library = bed.root / LIBRARY
    absent = library.with_name("not-yet")
    library.rename(absent)
    begin = bed.start_agent("--verbose")
    bed.logged("ready", begin)
    time.sleep(random.uniform(0.1, 0.6))  # at a random moment between the agent's retries
    appears = now()
    absent.rename(library)
    ends = [bed.logged("the driver's files changed", appears), bed.logged("driver found", appears), bed.logged("facts of all devices read", appears),
            bed.logged("penstock-agent devices read", appears), bed.kubelet.wait_registered(appears), bed.kubelet.wait_listed(8, appears)[0]]
    bed.end_agent()
    bed.kubelet.wait_listed(0, appears)
    return [(end - appears) / 1e6 for end in ends]


def own_tool(bed: Bed) -> float:
    """The driver's own list, from a separate program: the time that the driver itself and a process start need."""
    begin = now()
    subprocess.run([bed.root / "usr/bin/nvidia-smi", "-L"], stdout=subprocess.DEVNULL, check=True,
                   env={"LD_LIBRARY_PATH": str((bed.root / LIBRARY).parent)})
    return (now() - begin) / 1e6


def measure(programs, smoke: bool) -> Bench:
    bench = Bench("appear", "Driver present to the kubelet's list, 8 GPUs")
    with Bed(programs) as bed:
        tool, runs = [], []
        for _ in range(1 if smoke else 30):
            tool.append(own_tool(bed))
            runs.append(one(bed))
    whole = [ends[-1] for ends in runs]
    bench.add("library appears to listed", "ms", whole, goal=100)
    for phase, moments in zip(PHASES, zip(*runs)):
        bench.add(f"at: {phase}", "ms", moments, detail=True)
    bench.add("baseline: nvidia-smi -L of the same driver", "ms", tool)
    bench.add("ratio to the baseline", "x", ratio(whole, tool))
    bench.note("noticed includes 10 ms in which the watch waits for a burst of changes to end.")
    return bench
