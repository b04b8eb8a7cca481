"""Measures the idle cost of all Penstock processes: proportional memory, and processor time. Eight GPUs, both allocators enabled and the page served, the
kubelet reading its list, health polled at the default interval. Then measures memory again after work, which must be released."""
import os
import time
from pathlib import Path

from bed import Bed, now
from figures import Bench

KIB = 1024
TICKS = os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> dict:
    """smaps_rollup in KiB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    return {line.split(":")[0]: int(line.split()[1]) for line in lines}


def share_of(pid: int, words: tuple) -> int:
    """PSS in KiB of the mappings whose path contains one of the words."""
    total, counted = 0, False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        first = line.split(maxsplit=1)[0]
        if not first.endswith(":"):
            counted = any(word in line for word in words)
        elif counted and first == "Pss:":
            total += int(line.split()[1])
    return total


def ticks(pid: int) -> float:
    """Seconds in user and system mode, from the kernel's clock ticks."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def precise(pid: int) -> float | None:
    """The same in nanoseconds from the scheduler; None if the kernel does not count it."""
    try:
        return sum(int(Path(task, "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir()) / 1e9
    except FileNotFoundError:
        return None


def resident(pid: int, most: bool = False) -> float:
    """RSS in MiB; `most`: the maximum since `forget_most`."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:" if most else "VmRSS:")[2].split()[0]) / KIB


def forget_most(pid: int):
    Path(f"/proc/{pid}/clear_refs").write_text("5")  # proc(5)


def switches(pid: int) -> int:
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += sum(int(line.split()[1]) for line in Path(task, "status").read_text().splitlines() if "ctxt_switches" in line)
    return total


def measure(programs, smoke: bool) -> Bench:
    bench = Bench("footprint", "All our processes, 8 GPUs, at rest")
    with Bed(programs) as bed:
        begin = bed.start_agent()
        bed.kubelet.wait_listed(8, begin)
        time.sleep(0.2 if smoke else 35)  # the agent checks a new kubelet every second for half a minute
        pids = bed.processes()
        before = {name: (ticks(pid), precise(pid), switches(pid)) for name, pid in pids.items()}
        start = now()
        time.sleep(0.5 if smoke else 60)
        seconds = (now() - start) / 1e9
        after = {name: (ticks(pid), precise(pid), switches(pid)) for name, pid in pids.items()}
        kept = {name: memory(pid) for name, pid in pids.items()}
        library = sum(share_of(pid, ("libnvidia-ml", str(bed.root))) for pid in pids.values())
        rest = resident(pids["agent"])
        forget_most(pids["agent"])
        bed.kubelet.calls("allocate", 64, 2 if smoke else 150)
        time.sleep(0.2 if smoke else 10)
        peak, back = resident(pids["agent"], most=True) - rest, resident(pids["agent"]) - rest
        for _ in range(10 if smoke else 1000):
            bed.page("/metrics")
        worked = sum(memory(pid)["Pss"] for pid in pids.values())
        time.sleep(0.2 if smoke else 25)
        settled = sum(memory(pid)["Pss"] for pid in pids.values())
        threads = {name: len(os.listdir(f"/proc/{pid}/task")) for name, pid in pids.items()}

    bench.add("PSS", "MiB", sum(found["Pss"] for found in kept.values()) / KIB, goal=11)
    for name, found in kept.items():
        bench.add(name, "MiB", found["Pss"] / KIB, detail=True)
        bench.add(f"{name}, memory of its own (anonymous)", "MiB", found["Pss_Anon"] / KIB, detail=True)
    bench.add("the simulated driver's library and state, included above", "MiB", library / KIB, detail=True)
    bench.add("RSS", "MiB", sum(found["Rss"] for found in kept.values()) / KIB)
    bench.add("peak RSS of the agent in 9,600 allocations by 64 callers at once, above idle", "MiB", peak, goal=16)
    bench.add("the same 10 s after them", "MiB", back, goal=1, detail=True)
    bench.add("PSS after 1,000 more metrics pages", "MiB", worked / KIB)
    bench.add("the same, 25 s later", "MiB", settled / KIB, detail=True)
    for what, place in (("clock ticks", 0), ("scheduler", 1)):
        used = {name: None if before[name][place] is None else 100 * (after[name][place] - before[name][place]) / seconds for name in pids}
        if None in used.values():
            continue
        bench.add(f"processor time by {what}", "% of a core", sum(used.values()), goal=0.3)
        for name, percent in used.items():
            bench.add(name, "% of a core", percent, detail=True)
    for name in pids:
        bench.add(f"{name}: context switches", "1/s", (after[name][2] - before[name][2]) / seconds)
    bench.note(f"Processor time over {seconds:.0f} s; threads: {', '.join(f'{name} {count}' for name, count in threads.items())}.")
    return bench
