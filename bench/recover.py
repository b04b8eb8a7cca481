"""Measures the time from the recovery of a GPU to the kubelet's list with it: its probation, and the agent's additional delay."""
import time

from bed import Bed, now
from figures import Bench

PROBATION = 2.0
# A persistent fault that the agent detects by polling, and an event fault on a driver that itself reports that no action is needed any more.
WAYS = (("lost, and present again", "550.54.15", ("lost",)), ("XID 48, and the driver reports that it is cleared", "570.133.20", ("xid", "48")))


def measure(programs, smoke: bool) -> Bench:
    bench = Bench("recover", f"A recovered GPU back on the kubelet's list, probation {PROBATION:g} s")
    for title, driver, fault in WAYS:
        added = []
        with Bed(programs, config=f"health:\n  probation: {PROBATION:g}s\n", driver=driver) as bed:
            begin = bed.start_agent()
            bed.kubelet.wait_listed(8, begin)
            for gpu in range(1 if smoke else 8):
                begin = now()
                bed.sim("fault", gpu, *fault)
                bed.kubelet.wait_listed(7, begin)
                time.sleep(0.2 + 0.13 * gpu)  # out of step with the agent's polling
                begin = now()
                bed.sim("heal", gpu)
                added.append((bed.kubelet.wait_listed(8, begin)[0] - begin) / 1e9 - PROBATION)
        bench.add(f"{title}: in excess of the probation", "s", added, goal=1)
    bench.note("Each GPU once: a GPU that fails again soon has a longer probation.")
    return bench
