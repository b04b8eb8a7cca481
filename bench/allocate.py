"""Measures the kubelet's Allocate calls to a running agent over its socket, from one caller and from 64, compared with empty calls to the same
server by the same callers over the same connection. A call's latency includes the caller's own part: encoding, its threads, the socket."""
from bed import Bed
from figures import Bench, ratio
from footprint import precise

MICROSECONDS = 1e-3  # of nanoseconds


def measure(programs, smoke: bool) -> Bench:
    bench = Bench("allocate", "Allocate")
    scale = 50 if smoke else 1
    with Bed(programs) as bed:
        begin = bed.start_agent()
        bed.kubelet.wait_listed(8, begin)
        agent = bed.processes()["agent"]

        def load(what: str, callers: int, each: int, pause_us: int = 0):
            before = precise(agent)
            found = bed.kubelet.calls(what, callers, max(1, each // scale), pause_us)
            spent = None if before is None else (precise(agent) - before) / len(found["latencies"]) * 1e6
            return [value * MICROSECONDS for value in found["latencies"]], found["took"] / 1e9, spent

        load("allocate", 4, 200)  # warms connection and threads
        for title, callers, each, pause_us in (("one caller", 1, 4000, 0), ("64 callers, each one call in 100 ms", 64, 50, 100_000),
                                               ("64 callers without a pause", 64, 400, 0)):
            empty, empty_took, empty_spent = load("options", callers, each, pause_us)
            full, took, spent = load("allocate", callers, each, pause_us)
            goal = {} if pause_us == 0 and callers > 1 else {"goal": 250 if callers == 1 else 800, "judged": "max" if smoke else "p99"}
            bench.add(f"Allocate, {title}", "µs", full, **goal)
            bench.add("baseline: an empty call, same callers", "µs", empty, detail=True)
            bench.add("ratio of the medians", "x", ratio(full, empty), detail=True)
            if spent is not None:
                bench.add("processor time of the agent for one", "µs", spent, detail=True)
                bench.add("the same for an empty call", "µs", empty_spent, detail=True)
            if pause_us == 0:
                bench.add("calls answered", "1/s", len(full) / took, detail=True)
                bench.add("empty calls answered", "1/s", len(empty) / empty_took, detail=True)
        preferred, _, _ = load("prefer", 1, 2000)
        bench.add("GetPreferredAllocation, 4 of 8 GPUs, one caller", "µs", preferred, goal=1000, judged="max" if smoke else "p99")
    bench.note("Without a pause 64 callers keep 64 calls waiting at any time, so latency is 64 divided by the calls per second that caller and server "
               "achieve on this machine's cores; the empty call shows the part that is not the agent's.")
    return bench
