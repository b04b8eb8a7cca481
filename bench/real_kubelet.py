"""Measures the same path as appear.py with a real kubelet: from the rename of the driver's library into place to the kubelet's
GetAllocatableResources, and to the Node object. The kubelet writes the node's status every 10 s, unless the agent, joined to the API server,
updates the Node object itself. With the API server joined, also measures the cost of all Penstock processes, the requests of an idle agent,
and the delay of a label after a hardware change. Needs root; starts a separate Kubernetes."""
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from appear import LIBRARY
from bed import RESOURCE, Lines, now
from figures import ROOT, Bench
from footprint import KIB, memory

sys.path.append(str(ROOT / "tests/e2e/cluster"))
from inside import define  # noqa: E402
import cluster as kubernetes  # noqa: E402


LABEL = "nvidia.com/gpu.count"


class Node:
    """A node of the cluster with a simulated machine, an agent on it, and observers of the kubelet's count and of the Node."""

    def __init__(self, cluster, programs: Path):
        self.cluster, self.programs = cluster, programs
        self.root, self.home = cluster.dir / "machine", cluster.dir / "n1"
        subprocess.run([programs / "penstock-sim", "--root", self.root, "start", "dgx-a100"], check=True, stdout=subprocess.DEVNULL)
        agent = [programs / "penstock-agent", "--driver-root", self.root, "--dev-root", self.root, "--sysfs-root", self.root / "sys",
                 "--kubelet-dir", "/var/lib/kubelet", "--state-dir", cluster.dir / "agent/state", "--run-dir", cluster.dir / "agent/run",
                 "--node-name", "n1", "--listen", "127.0.0.1:9400"]
        define(self.home, "agent", agent)
        define(self.home, "joined", [*agent, "--kubeconfig", cluster.dir / "pki/admin.kubeconfig"])
        for daemon in ("agent", "joined"):
            (self.home / f"log/{daemon}.log").unlink(missing_ok=True)
        self.started = []
        count = self.watch([programs / "bench-allocatable", self.home / "kubelet/pod-resources/kubelet.sock", RESOURCE])
        self.kubelet = Lines(count, json.loads, lambda line: line["at"])
        path = RESOURCE.replace(".", "\\.")
        self.object = Lines(self.watch([*cluster.entering(), "kubectl", "get", "node", "n1", "--watch", "-o",
                                        f"jsonpath={{.status.allocatable.{path}}}{{\"\\n\"}}"]))
        label = LABEL.replace(".", "\\.")
        self.label = Lines(self.watch([*cluster.entering(), "kubectl", "get", "node", "n1", "--watch", "-o",
                                       f"jsonpath={{.metadata.labels.{label}}}{{\"\\n\"}}"]))

    def watch(self, command):
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        self.started.append(process)
        return process.stdout

    def end(self):
        for process in self.started:
            process.kill()
            process.wait()

    def start(self, daemon: str):
        log = self.home / f"log/{daemon}.log"
        log.unlink(missing_ok=True)
        self.cluster.start(daemon)
        kubernetes.wait_until(lambda: log.exists() and " ready " in log.read_text(), 10, "the agent to be ready")

    def one(self, daemon: str) -> tuple[float, float]:
        """Milliseconds to the kubelet's own count and to the Node object."""
        library = self.root / LIBRARY
        absent = library.with_name("not-yet")
        library.rename(absent)
        begin = now()
        self.start(daemon)
        self.object.wait(lambda line: line.strip() in ("", "0"), begin if self.object.seen and self.object.seen[-1][1].strip() == "8" else 0,
                         "a Node without devices")
        time.sleep(0.3)
        appears = now()
        absent.rename(library)
        counted = self.kubelet.wait(lambda line: line["count"] == 8, appears, "the kubelet's count")[0]
        written = self.object.wait(lambda line: line.strip() == "8", appears, "the Node object")[0]
        self.cluster.kill(daemon)
        self.kubelet.wait(lambda line: line["count"] == 0, written, "the kubelet to release the devices")
        return (counted - appears) / 1e6, (written - appears) / 1e6

    def processes(self) -> dict[str, int]:
        """Penstock's processes by name, with their pids outside the namespaces."""
        inside = f"{self.cluster.dir}/".encode()
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if Path(words[0].decode(errors="replace")).name in ("penstock-agent", "penstock-worker") and any(inside in word for word in words):
                found[Path(words[0].decode()).name] = int(folder.name)
        return found

    def requests(self) -> dict[str, int]:
        page = self.cluster.run("busybox", "wget", "-q", "-O", "-", "http://127.0.0.1:9400/metrics").stdout
        return {kind: int(count) for kind, count in re.findall(r'penstock_api_requests_total\{kind="(\w+)"\} (\d+)', page)}

    def label_follows(self, *change: str, count: str) -> float:
        """Milliseconds from the start of the command that changes the hardware to the label on the Node."""
        begin = now()
        subprocess.run([self.programs / "penstock-sim", "--root", self.root, *change], check=True, stdout=subprocess.DEVNULL)
        written = self.label.wait(lambda line: line.strip() == count, begin, f"the label {LABEL}={count}")[0]
        return (written - begin) / 1e6


def at_rest(node: Node, bench: Bench, smoke: bool):
    node.start("joined")
    node.label.wait(lambda line: line.strip() == "8", 0, "the labels")
    time.sleep(1 if smoke else 40)  # the agent checks a new kubelet every second for half a minute, and counts requests every ten
    before = node.requests()
    time.sleep(1 if smoke else 120)
    after = node.requests()
    kept = {name: memory(pid) for name, pid in node.processes().items()}
    bench.add("PSS with the API server joined", "MiB", sum(found["Pss"] for found in kept.values()) / KIB, goal=16)
    for name, found in kept.items():
        bench.add(name, "MiB", found["Pss"] / KIB, detail=True)
    bench.add("writes to the API server in two idle minutes", "requests", after["write"] - before["write"], goal=1)
    bench.add("reads in the same time", "requests", after["read"] - before["read"])
    bench.add("watches started in the same time", "requests", after["watch"] - before["watch"])
    took = []
    for _ in range(1 if smoke else 8):
        took.append(node.label_follows("fault", "7", "remove", count="7"))
        took.append(node.label_follows("heal", "7", count="8"))
        time.sleep(0.5)
    bench.add("GPU unplugged or plugged in, to the label on the Node", "ms", took, goal=1000)
    node.cluster.kill("joined")


def measure(programs, smoke: bool) -> Bench:
    bench = Bench("cluster", "With a real kubelet and API server, 8 GPUs")
    directory = Path(tempfile.mkdtemp(prefix="penstock-bench-", dir="/tmp"))
    directory.chmod(0o755)
    cluster = kubernetes.Cluster(directory)
    try:
        cluster.up(tied=True)
        node = Node(cluster, programs)
        try:
            alone = [node.one("agent") for _ in range(1 if smoke else 6)]
            joined = [node.one("joined") for _ in range(1 if smoke else 8)]
            at_rest(node, bench, smoke)
        finally:
            node.end()
    finally:
        cluster.down()
        shutil.rmtree(directory, ignore_errors=True)
    bench.add("library appears to GetAllocatableResources", "ms", [counted for counted, _ in [*alone, *joined]], goal=100)
    bench.add("library appears to the Node object, with the agent's one patch", "ms", [written for _, written in joined], goal=1000)
    bench.add("library appears to the Node object, by the kubelet's own interval", "ms", [written for _, written in alone])
    bench.note("GetAllocatableResources is queried every 15 ms. The kubelet writes the Node object on its own schedule, every 10 s.")
    return bench
