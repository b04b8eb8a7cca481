"""Measures the time from a fault of a device to the kubelet's list without it, for each source of faults that the agent reads. The
clock starts before penstock-sim is executed, so each figure includes a process start."""
import subprocess
import time

from bed import Bed, now
from figures import Bench

# The driver raises an event for XID 48. For XID 79, a GPU that fell off the bus, this driver raises none: the wait for events fails,
# once.
WAYS = (("XID 79, by the kernel's log alone", ("79", "--no-event", "--alone")),
        ("XID 79, by the driver alone, which reports only that a device is lost", ("79", "--no-log")),
        ("XID 48, by the driver's event alone", ("48", "--no-log")))


def tool(bed: Bed) -> float:
    """penstock-sim without an operation."""
    begin = now()
    subprocess.run([bed.programs / "penstock-sim", "--root", bed.root, "status"], check=True, stdout=subprocess.DEVNULL)
    return (now() - begin) / 1e6


def one(bed: Bed, gpu: int, left: int, fault: tuple) -> float:
    """Milliseconds to the list of the remaining devices."""
    begin = now()
    bed.sim("fault", gpu, "xid", *fault)
    return (bed.kubelet.wait_listed(left, begin)[0] - begin) / 1e6


def measure(programs, smoke: bool) -> Bench:
    bench = Bench("health", "A fault to ListAndWatch")
    with Bed(programs) as bed:
        for title, fault in WAYS:
            whole = []
            for _ in range(1 if smoke else 15):
                begin = bed.start_agent()
                bed.kubelet.wait_listed(8, begin)
                for gpu in range(2 if smoke else 7):
                    whole.append(one(bed, gpu, 7 - gpu, fault))
                ended = now()
                bed.end_agent()
                bed.forget()  # this driver cannot report that an XID is cleared
                bed.kubelet.wait_listed(0, ended)
                bed.sim("heal", "all")
            bench.add(title, "ms", whole, goal=15)
        bench.add("baseline: penstock-sim status, a process that changes nothing", "ms", [tool(bed) for _ in range(1 if smoke else 20)])
    bench.note("Devices are polled every 5 s; a figure near that would mean that the agent missed the event.")
    return bench
