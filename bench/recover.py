"""From the cure of a GPU to the kubelet's list with it: its probation, and what the agent adds to that."""
import time

from bed import Bed, now
from figures import Bench

PROBATION = 2.0
# The one that stays and is seen by looking; the one that is an event, on a driver that says itself that nothing needs to be done any more.
WAYS = (("lost, and there again", "550.54.15", ("lost",)), ("XID 48, and the driver says that it is over", "570.133.20", ("xid", "48")))


def measure(programs, smoke: bool) -> Bench:
    bench = Bench("recover", f"A cured GPU back on the kubelet's list, probation {PROBATION:g} s")
    for title, driver, fault in WAYS:
        added = []
        with Bed(programs, config=f"health:\n  probation: {PROBATION:g}s\n", driver=driver) as bed:
            begin = bed.start_agent()
            bed.kubelet.wait_listed(8, begin)
            for gpu in range(1 if smoke else 8):
                begin = now()
                bed.sim("fault", gpu, *fault)
                bed.kubelet.wait_listed(7, begin)
                time.sleep(0.2 + 0.13 * gpu)  # not in step with the agent's looks
                begin = now()
                bed.sim("heal", gpu)
                added.append((bed.kubelet.wait_listed(8, begin)[0] - begin) / 1e9 - PROBATION)
        bench.add(f"{title}: beyond the probation", "s", added, goal=1)
    bench.note("Each GPU once: one that relapses has a longer probation.")
    return bench
