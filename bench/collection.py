"""Measures the cost of collecting metrics: processor time of all Penstock processes with a collection every second from 8 GPUs that support all
metrics (GPM, 18 links, one process each), every ten seconds (the default), and hardly ever. Includes the simulated driver's time."""
import re
import time

from bed import Bed, now
from figures import Bench
from footprint import precise, switches, ticks

INTERVALS = {"1s": "a collection each second", "10s": "each ten seconds", "1h": "each hour"}


def collections(bed: Bed) -> int:
    return sum(int(count) for count in re.findall(rb"^accelerator_collections_total\{.*\} (\d+)$", bed.page("/metrics"), re.MULTILINE))


def use(bed: Bed, interval: str, seconds: float) -> dict:
    """Percent of a core and context switches per second, by program, and collections per second."""
    bed.config.write_text(f"apiVersion: penstock.io/v1alpha1\nkind: NodeConfig\ntelemetry: {{interval: {interval}}}\n")
    begin = bed.start_agent()
    bed.logged("ready", begin)
    time.sleep(0.2 if seconds < 5 else 5)  # the second collection follows after a second, whatever the interval
    pids = bed.processes()
    used = {name: precise(pid) for name, pid in pids.items()}
    measure = precise if None not in used.values() else ticks
    collected = collections(bed)
    before = {name: (measure(pid), switches(pid)) for name, pid in pids.items()}
    start = now()
    time.sleep(seconds)
    elapsed = (now() - start) / 1e9
    after = {name: (measure(pid), switches(pid)) for name, pid in pids.items()}
    collected = (collections(bed) - collected) / elapsed
    bed.end_agent()
    return {name: (100 * (after[name][0] - before[name][0]) / elapsed, (after[name][1] - before[name][1]) / elapsed)
            for name in pids} | {"collected": collected}


def measure(programs, smoke: bool) -> Bench:
    bench = Bench("collection", "Processor time of all our processes, 8 GPUs of a DGX H100")
    seconds = 0.5 if smoke else 40
    with Bed(programs, machine="dgx-h100", kubelet=False) as bed:
        for gpu in range(8):
            bed.sim("set", gpu, "utilisation=80", f"process={100000 + gpu}:10240:python")
        used = {interval: use(bed, interval, seconds) for interval in INTERVALS}
    collected = {interval: found.pop("collected") for interval, found in used.items()}
    for interval, what in INTERVALS.items():
        bench.add(what, "% of a core", sum(percent for percent, _ in used[interval].values()), goal=1 if interval == "1s" else None)
        for name, (percent, _) in used[interval].items():
            bench.add(name, "% of a core", percent, detail=True)
    bench.add("devices that were collected from, at one collection each second", "1/s", collected["1s"])
    for name, (_, count) in used["1s"].items():
        bench.add(f"{name}: context switches, a collection each second", "1/s", count)
    bench.note(f"Over {seconds:.0f} s each, as the scheduler counts it. The figures include the simulated driver's own time, which the worker spends.")
    return bench
