"""Measures what AMD's accelerators cost, on files written after amdgpu's (tests/support/amd.py): memory and processor time at rest, with and without them; the worker's
looks at 63 partitions; the metrics page and collection; changes of the compute mode and of the health, to the kubelet's list. The files of the modes answer as the kernel
does; the time that this takes is measured apart, and subtracted. Needs root, to mount them."""
import contextlib
import json
import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from types import MappingProxyType

from bed import PATIENCE, Bed, now
from figures import ROOT, Bench, ratio
from footprint import KIB, memory
from page import rest, spent

sys.path += [str(ROOT / "tests/support"), str(ROOT / "tests/integration")]
from amd import NODES, Amd, profile  # noqa: E402
from api_server import ApiServer  # noqa: E402
from worker import Worker  # noqa: E402

GPU = "amd.com/gpu"
PARTS = {"mode": "CPX", "board": True}  # a BMC's card leaves 63 of 64 partitions with device files
NODE, LABEL = "/api/v1/nodes/n1", "dcm.amd.com/gpu-config-profile"
POLL_MS = 1000
SETTLED = 0.005  # seconds: a thread's time counts once it has stopped


class Kernel(Amd):
    """Notes when it was busy with a change of a mode, by which calls of the worker wait."""

    busy: list[tuple[int, int]]

    def __init__(self, *arguments, **options):
        self.busy = []
        super().__init__(*arguments, **options)

    def written_to(self, gpu: int, text: str):
        begin = now()
        try:
            super().written_to(gpu, text)
        finally:
            self.busy.append((begin, now()))

    def took(self, since: int) -> float:
        """Milliseconds."""
        return sum(end - begin for begin, end in self.busy if begin >= since) / 1e6

    def ids(self) -> set[str]:
        """Those of the devices that are offered, of GPUs with a single mode."""
        return {self.id(gpu) if mode == "SPX" else f"{self.id(gpu)}-{part}" for gpu, mode in enumerate(self.modes)
                for part in range(1 if mode == "SPX" else len(self.minors[gpu]))}


class Instinct(Bed):
    """A Bed whose machine has AMD's GPUs as well; `amd`: options of Amd, or None for a machine without."""

    def __init__(self, programs: Path, machine: str = "empty", config: str = "", resource: str = GPU, amd: dict | None = MappingProxyType({})):
        super().__init__(programs, machine, config=config, resource=resource)
        self.amd = None if amd is None else Kernel(self.root, **amd)

    def __exit__(self, *failure):
        try:
            self.end_agent()
        finally:
            if self.amd:
                self.amd.close()  # before the folders in which it is mounted are removed
            super().__exit__(*failure)

    def processes(self) -> dict:
        """The agent, and workers by vendor."""
        found = {"agent": self.agent.pid}
        for task in Path(f"/proc/{self.agent.pid}/task").iterdir():
            with contextlib.suppress(OSError):  # exited since the listing
                for pid in map(int, (task / "children").read_text().split()):
                    words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
                    found[f"worker {words[1]}" if words[0].endswith("penstock-worker") else words[0]] = pid
        return found

    def wait_offered(self, ids: set[str], after: int) -> int:
        return self.kubelet.events.wait(lambda event: event["event"] == "list" and set(event["healthy"]) == ids, after, f"a list of {len(ids)}")[0]


def timed(worker: Worker, *calls: tuple) -> tuple[float, float]:
    """Milliseconds of the calls together, and of the worker's processor time for them."""
    before, begin = spent({"worker": worker.process.pid}), now()
    for one in calls:
        worker.call(*one)
    took = (now() - begin) / 1e6
    time.sleep(SETTLED)
    return took, (spent({"worker": worker.process.pid}) - before) * 1e3


def looks(bench: Bench, programs: Path, smoke: bool):
    first, described, later, polls, alone = [], [], [], [], []
    with Instinct(programs, amd=PARTS | {"metrics": "1.8"}) as bed:
        folder = bed.amd.sys / NODES
        files = [str(file) for file in folder.rglob("*") if file.is_file()]
        links = sum("_links/" in file for file in files)
        for _ in range(1 if smoke else 20):
            begin = now()
            subprocess.run(["cat", *files], check=True, stdout=subprocess.DEVNULL)
            alone.append((now() - begin) / 1e6)
            with Worker(bed.programs, bed.root, "amd") as worker:
                time.sleep(0.02)  # the program has started
                first.append(timed(worker, ("open",)))
                gpus = worker.call("list")["addresses"]
                devices = [*gpus, *(f"{gpu}/{part}" for number, gpu in enumerate(gpus) for part in range(len(bed.amd.minors[number])))]
                described.append(timed(worker, *(("describe", one) for one in devices)))
                for _ in range(10):
                    later.append(timed(worker, ("list",)))
                    polls.append(timed(worker, *(("read", one) for one in gpus)))  # with their partitions
    for name, values, options in ((f"first look at 63 partitions, {links} links among {len(files)} files", first, {"goal": 50}),
                                  ("later look", later, {"goal": 2, "judged": "max" if smoke else "p99"}),
                                  (f"facts of all {len(devices)} devices, after the first look", described, {}),
                                  (f"a poll of all {len(devices)} devices, in {len(gpus)} calls", polls, {})):
        bench.add(name, "ms", [took for took, _ in values], **options)
        bench.add("processor time", "ms", [processor for _, processor in values], detail=True)
    bench.add("baseline: cat of all files of the topology, of which the look reads a quarter", "ms", alone)
    bench.add("first look: ratio to the baseline", "x", ratio([took for took, _ in first], alone))


def of_ended(pid: int) -> str:
    """A number that grows with each child that has ended: the page faults of those that the process has waited for."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[8]


def at_rest(programs: Path, machine: str, devices: int, amd: dict | None, smoke: bool) -> dict:
    """Whether a process has ended meanwhile; each by process: PSS and memory of their own in MiB, processor time in percent of a core."""
    with Instinct(programs, machine, resource="nvidia.com/gpu" if amd is None else GPU, amd=amd) as bed:
        begin = bed.start_agent()
        if devices:
            bed.kubelet.wait_listed(devices, begin)
        bed.logged("ready", begin)
        time.sleep(0.2 if smoke else 35)  # the agent checks a new kubelet every second for half a minute
        pids, ended = bed.processes(), of_ended(bed.agent.pid)
        start, before = now(), {name: spent({name: pid}) for name, pid in pids.items()}
        time.sleep(0.5 if smoke else 60)
        seconds = (now() - start) / 1e9
        used = {name: 100 * (spent({name: pid}) - before[name]) / seconds for name, pid in pids.items()}
        kept = {name: memory(pid) for name, pid in pids.items()}
        ended = of_ended(bed.agent.pid) != ended
    return {"ended": ended, "PSS": {name: of["Pss"] / KIB for name, of in kept.items()}, "own": {name: of["Pss_Anon"] / KIB for name, of in kept.items()}, "used": used}


def rests(bench: Bench, programs: Path, smoke: bool):
    cases = {"no GPU": ("empty", 0, None), "NVIDIA": ("dgx-a100", 8, None), "AMD": ("empty", 8, {}), "both": ("dgx-a100", 8, {}), "both, AMD in 63 partitions": ("dgx-a100", 63, PARTS)}
    found = {name: at_rest(programs, *case, smoke) for name, case in cases.items()}
    absent = [name for name, vendors in (("no GPU", ("amd", "nvidia")), ("NVIDIA", ("amd",)), ("AMD", ("nvidia",))) for vendor in vendors if f"worker {vendor}" in found[name]["PSS"]]
    absent += [f"ended meanwhile: {name}" for name in ("no GPU", "NVIDIA", "AMD") if found[name]["ended"]]
    bench.add(f"processes of an absent vendor, also such as end at once{': ' * bool(absent)}{', '.join(absent)}", "processes", len(absent), goal=1)
    for name in ("both", "both, AMD in 63 partitions"):
        worker, agent = found[name]["PSS"]["worker amd"], found[name]["own"]["agent"] - found["NVIDIA"]["own"]["agent"]
        bench.add(f"AMD beside NVIDIA ({name}): its worker's PSS, and what the agent has of its own above NVIDIA alone", "MiB", worker + agent, goal=2.5)
        bench.add("worker", "MiB", worker, detail=True)
        bench.add("agent", "MiB", agent, detail=True)
    for name, case in found.items():
        bench.add(f"PSS of all processes, {name}", "MiB", sum(case["PSS"].values()))
        bench.add("memory of their own (anonymous)", "MiB", sum(case["own"].values()), detail=True)
    for name, case in found.items():
        bench.add(f"processor time at rest, {name}", "% of a core", sum(case["used"].values()), goal=0.4 if name.startswith("both") else None)
        for process, percent in case["used"].items():
            bench.add(process, "% of a core", percent, detail=True)


def gauges(page: bytes, family: str) -> dict[str, float]:
    """Milliseconds by vendor."""
    return {vendor: float(value) * 1e3 for vendor, value in re.findall(rf'^{family}\{{vendor="(\w+)"\}} (\S+)$', page.decode(), re.MULTILINE)}


def pages(bench: Bench, programs: Path, smoke: bool):
    took, again, processor, rounds = [], [], [], {"amd": [], "nvidia": []}
    with Instinct(programs, "dgx-a100", config="telemetry: {interval: 1s}\n", amd=PARTS | {"metrics": "1.8"}) as bed:
        bed.kubelet.wait_listed(63, bed.start_agent())
        deadline = time.monotonic() + PATIENCE
        while len(gauges(bed.page("/metrics"), "penstock_collection_round_duration_seconds")) < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(1)  # one more collection
        agent = {"agent": bed.agent.pid}
        for _ in range(3 if smoke else 60):
            time.sleep(0.01 if smoke else 1.1)  # so that each page is of another collection, as with scrapes
            before, begin = spent(agent), now()
            page = bed.page("/metrics")
            took.append((now() - begin) / 1e6)
            time.sleep(SETTLED)
            processor.append((spent(agent) - before) * 1e3)
            begin = now()
            bed.page("/metrics")
            again.append((now() - begin) / 1e6)
            for vendor, ms in gauges(page, "penstock_collection_round_duration_seconds").items():
                if not rounds[vendor] or rounds[vendor][-1] != ms:
                    rounds[vendor].append(ms)
    series = sum(not line.startswith(b"#") for line in page.splitlines())
    bench.add(f"metrics page of 8 GPUs of NVIDIA and 8 of AMD in 63 partitions ({series} series, {len(page) / 1024:.0f} KiB)", "ms", took, goal=2, judged="median")
    bench.add("processor time of the agent", "ms", processor, detail=True)
    bench.add("baseline: the same page again, unchanged", "ms", again, detail=True)
    bench.add("ratio of the medians", "x", ratio(took, again), detail=True)
    bench.add("collection from AMD's 8 GPUs and 63 partitions", "ms", rounds["amd"], goal=50)
    bench.add("from NVIDIA's 8 GPUs, at the same time", "ms", rounds["nvidia"], detail=True)


class Labelled(Instinct):
    """On a node of a cluster, whose label names how the GPUs are divided."""

    def __init__(self, programs: Path, profiles: dict, strategy: str = "single", **options):
        super().__init__(programs, amd={"answers": True}, **options)
        self.api = ApiServer(self.home)
        self.profiles = self.home / "config.json"
        self.profiles.write_text(json.dumps({"gpu-config-profiles": profiles}))
        with self.config.open("a") as config:
            config.write(f"cluster: {{kubeconfig: {self.api.kubeconfig}}}\nparts: {{modeProfiles: {self.profiles}, strategy: {strategy}}}\n")
        self.api.put(NODE, "Node", metadata={"labels": {}})

    def __exit__(self, *failure):
        self.api.down()
        super().__exit__(*failure)

    def ask(self, name: str) -> int:
        """Sets the label and returns the time before."""
        begin = now()
        self.api.put(NODE, "Node", metadata={"labels": {LABEL: name}})
        return begin

    def wait_applied(self, name: str):
        """DCM's label says that the profile is in force."""
        deadline = time.monotonic() + PATIENCE
        while not any(method == "PATCH" and body.get("metadata", {}).get("labels", {}).get(f"{LABEL}-state") == "success" for method, _, body in list(self.api.writes)):
            if time.monotonic() > deadline:
                raise RuntimeError(f"the profile {name} was not applied; GPUs are in {self.amd.modes}")
            time.sleep(0.01)
        self.api.writes.clear()

    def change(self, name: str, ids: set[str]) -> tuple[float, float, float]:
        """From the label to exactly these devices, in milliseconds: without the kernel's time, the kernel's time, and processor time of all Penstock processes."""
        pids = self.processes()
        before, begin = spent(pids), self.ask(name)
        listed = self.wait_offered(ids, begin)
        kernel, processor = self.amd.took(begin), (spent(pids) - before) * 1e3
        self.wait_applied(name)
        return (listed - begin) / 1e6 - kernel, kernel, processor


def divisions(bench: Bench, programs: Path, smoke: bool):
    divided, whole = [], []
    with Labelled(programs, {"cpx": profile(("CPX", 8)), "spx": profile(("SPX", 8))}) as bed:
        one = bed.amd.ids()
        bed.wait_offered(one, bed.start_agent("--node-name", "n1"))
        bed.amd.modes, modes = ["CPX"] * 8, bed.amd.modes
        parts, bed.amd.modes = bed.amd.ids(), modes
        for _ in range(1 if smoke else 8):
            divided.append(bed.change("cpx", parts))
            whole.append(bed.change("spx", one))
    for name, values, goal in (("8 GPUs from SPX to CPX: label to the list of 64, without the kernel's part", divided, 1000), ("8 GPUs from CPX to SPX, likewise", whole, None)):
        bench.add(name, "ms", [own for own, _, _ in values], goal=goal)
        bench.add("the simulated kernel's part, subtracted", "ms", [kernel for _, kernel, _ in values], detail=True)
        bench.add("processor time", "ms", [processor for _, _, processor in values], detail=True)


def neighbours(bench: Bench, programs: Path, smoke: bool):
    """One GPU is divided, and made whole again: the lists of the others meanwhile."""
    lists, missing, least = [], [], []
    others = tuple(range(1, 8))
    with Labelled(programs, {"cpx": profile(("CPX", 1), skipped=others), "spx": profile(("SPX", 1), skipped=others)}, "mixed", resource="amd.com/spx_nps1") as bed:
        whole = bed.amd.ids()
        rest_ids = whole - {bed.amd.id(0)}
        bed.wait_offered(whole, bed.start_agent("--node-name", "n1"))
        for _ in range(1 if smoke else 10):
            begin = now()
            bed.change("cpx", rest_ids)
            bed.change("spx", whole)
            seen = [event for at, event in list(bed.kubelet.events.seen) if at >= begin and event["event"] == "list"]
            lists.append(len(seen))
            missing.append(sum(not rest_ids <= set(event["healthy"]) for event in seen))
            least.append(min(len(rest_ids & set(event["healthy"])) for event in seen))
    bench.add("1 of 8 GPUs to CPX and back: lists that lack one of the others", "lists", missing, goal=1)
    bench.add("lists in all", "lists", lists, detail=True)
    bench.add("the fewest of the 7 others in a list", "GPUs", least, detail=True)


def error_count(bed: Instinct, gpu: int):
    bed.amd.errors(gpu, "umc", uncorrectable=1)


def kernel_log(bed: Instinct, gpu: int):
    bed.amd.says(gpu, "device wedged, needs recovery", tag="[drm] ")


def faults(bench: Bench, programs: Path, smoke: bool):
    for name, fault, goal in ((f"an uncorrectable error in ras/umc_err_count, polled each {POLL_MS} ms, to ListAndWatch", error_count, POLL_MS + 50),
                              ("a line of amdgpu in the kernel's log to ListAndWatch", kernel_log, 50)):
        took = []
        with Instinct(programs, config=f"health: {{poll: {POLL_MS}ms}}\n") as bed:
            bed.amd.logs("amdgpu: Topology: Add CPU node")
            whole = bed.amd.ids()
            for _ in range(1 if smoke else 6):
                begin = bed.start_agent()
                bed.wait_offered(whole, begin)
                left = set(whole)
                for gpu in range(2 if smoke else 7):
                    time.sleep(random.uniform(0, POLL_MS / 1e3))  # at any moment between two polls
                    left.discard(bed.amd.id(gpu))
                    begin = now()
                    fault(bed, gpu)
                    took.append((bed.wait_offered(left, begin) - begin) / 1e6)
                ended = now()
                bed.end_agent()
                bed.forget()
                bed.kubelet.wait_listed(0, ended)
                for gpu in range(8):
                    bed.amd.errors(gpu, "umc")
                bed.amd.reload()  # which ends what the log says
                bed.amd.logs("amdgpu: Topology: Add CPU node")
        bench.add(name, "ms", took, goal=goal)


def measure(programs, smoke: bool) -> Bench:
    bench = Bench("amd", "AMD's accelerators: 8 MI300X, also in 63 partitions, beside 8 GPUs of NVIDIA and alone")
    if os.geteuid() != 0:
        bench.note("Not measured: needs root, to mount the files of the modes.")
        return bench
    for part in (looks, rests, pages, divisions, neighbours, faults):
        part(bench, programs, smoke)
    bench.note("The files are in memory, and those of a real driver are made when they are read: the kernel's part of a look is another one there.")
    bench.note("PSS of the agent varies by MiB with the moments at which it returns pages of code, so what it has of its own, which does not, is judged. Processor time at rest is over 60 s.")
    bench.note("The first look begins when the worker has started. The played API server looks for changes each 20 ms, which is within the times from a label.")
    bench.note("AMD's own programs: 8.2 s until its agent had read 63 partitions, and 60 s until its plugin withdrew a GPU (k8s-device-plugin, device-metrics-exporter).")
    return bench
