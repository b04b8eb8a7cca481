"""Measures what MIG devices cost at rest: the proportional memory of all Penstock processes, and the metrics page, of eight GPUs that are divided into seven
MIG devices each and of the same GPUs whole. Both allocators enabled and the page served, health polled at the default interval."""
import subprocess
import time

from bed import Bed, now
from figures import Bench
from footprint import KIB, memory

MACHINE, PROFILES = "dgx-h200", ",".join(["1g.18gb"] * 7)


def divide(bed: Bed):
    for words in (["-mig", "1"], ["mig", "-cgi", PROFILES, "-C"]):
        subprocess.run([bed.root / "usr/bin/nvidia-smi", *words], check=True, stdout=subprocess.DEVNULL,
                       env={"LD_LIBRARY_PATH": str(bed.root / "usr/lib/x86_64-linux-gnu")})


def at_rest(programs, divided: bool, smoke: bool) -> tuple[dict, int, list[float], int]:
    """KiB of memory by process, of PSS in all after metrics pages, the milliseconds of each metrics page, and its bytes."""
    with Bed(programs, machine=MACHINE, config="parts: {strategy: single}\n") as bed:  # one resource for both
        if divided:
            divide(bed)
        begin = bed.start_agent()
        bed.kubelet.wait_listed(56 if divided else 8, begin)
        time.sleep(0.2 if smoke else 65)  # the agent checks a new kubelet every second for half a minute
        kept = {name: memory(pid) for name, pid in bed.processes().items()}
        took, size = [], 0
        for _ in range(3 if smoke else 100):
            time.sleep(0.01 if smoke else 0.5)  # so that the page changes between them, as between scrapes
            start = now()
            size = len(bed.page("/metrics"))
            took.append((now() - start) / 1e6)
        time.sleep(0.2 if smoke else 25)
        worked = sum(memory(pid)["Pss"] for pid in bed.processes().values())
        return kept, worked, took, size


def measure(programs, smoke: bool) -> Bench:
    bench = Bench("parts", "All our processes at rest, 8 GPUs divided into 56 MIG devices")
    whole, whole_worked, whole_took, whole_size = at_rest(programs, False, smoke)
    parts, parts_worked, parts_took, parts_size = at_rest(programs, True, smoke)

    def above(key: str, names) -> float:
        return sum(parts[name][key] - whole.get(name, {key: 0})[key] for name in names) / KIB

    bench.add("PSS above that of 8 whole GPUs", "MiB", above("Pss", parts))
    bench.add("memory of their own (anonymous) above that of 8 whole GPUs", "MiB", above("Pss_Anon", parts), goal=1)
    for name in parts:
        bench.add(name, "MiB", above("Pss_Anon", [name]), detail=True)
    bench.add("PSS", "MiB", sum(found["Pss"] for found in parts.values()) / KIB)
    bench.add("the same of 8 whole GPUs", "MiB", sum(found["Pss"] for found in whole.values()) / KIB, detail=True)
    bench.add("PSS 25 s after metrics pages, above that of 8 whole GPUs", "MiB", (parts_worked - whole_worked) / KIB)
    bench.add(f"the metrics page ({parts_size / 1024:.0f} KiB)", "ms", parts_took, goal=2, judged="median")
    bench.add(f"of 8 whole GPUs ({whole_size / 1024:.0f} KiB)", "ms", whole_took, detail=True)
    bench.note("The agent returns pages of code that it does not use for a while, at moments that differ by seconds: PSS varies by that by several MiB, "
               "so the memory of their own, which does not, is judged.")
    return bench
