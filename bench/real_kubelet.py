"""The same way as in appear.py with a real kubelet: from the driver's library renamed into place to the kubelet's GetAllocatableResources, and
to the Node object. The latter is the kubelet's own: it writes the node's status every 10 s. Needs root; starts a Kubernetes of its own."""
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from appear import LIBRARY
from bed import RESOURCE, Lines, now
from figures import ROOT, Bench

sys.path.append(str(ROOT / "tests/e2e/cluster"))
from inside import define  # noqa: E402
import cluster as kubernetes  # noqa: E402


class Node:
    """A node of the cluster with a simulated machine, an agent on it, and two who watch what the kubelet counts."""

    def __init__(self, cluster, programs: Path):
        self.cluster, self.programs = cluster, programs
        self.root, self.home = cluster.dir / "machine", cluster.dir / "n1"
        subprocess.run([programs / "penstock-sim", "--root", self.root, "start", "dgx-a100"], check=True, stdout=subprocess.DEVNULL)
        define(self.home, "agent", [
            programs / "penstock-agent", "--verbose", "--driver-root", self.root, "--dev-root", self.root, "--sysfs-root", self.root / "sys",
            "--kubelet-dir", "/var/lib/kubelet", "--state-dir", cluster.dir / "agent/state", "--run-dir", cluster.dir / "agent/run",
            "--node-name", "n1", "--listen", "off"])
        self.log = self.home / "log/agent.log"
        self.started = []
        count = self.watch([programs / "bench-allocatable", self.home / "kubelet/pod-resources/kubelet.sock", RESOURCE])
        self.kubelet = Lines(count, json.loads, lambda line: line["at"])
        path = RESOURCE.replace(".", "\\.")
        self.object = Lines(self.watch([*cluster.entering(), "kubectl", "get", "node", "n1", "--watch", "-o",
                                        f"jsonpath={{.status.allocatable.{path}}}{{\"\\n\"}}"]))

    def watch(self, command):
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        self.started.append(process)
        return process.stdout

    def end(self):
        for process in self.started:
            process.kill()
            process.wait()

    def one(self) -> tuple[float, float]:
        """Milliseconds to the kubelet's own count and to the Node object."""
        library = self.root / LIBRARY
        absent = library.with_name("not-yet")
        library.rename(absent)
        begin = now()
        self.log.unlink(missing_ok=True)
        self.cluster.start("agent")
        kubernetes.wait_until(lambda: self.log.exists() and " ready " in self.log.read_text(), 10, "the agent to be ready")
        self.object.wait(lambda line: line.strip() in ("", "0"), begin if self.object.seen and self.object.seen[-1][1].strip() == "8" else 0,
                         "a Node without devices")
        time.sleep(0.3)
        appears = now()
        absent.rename(library)
        counted = self.kubelet.wait(lambda line: line["count"] == 8, appears, "the kubelet's count")[0]
        written = self.object.wait(lambda line: line.strip() == "8", appears, "the Node object")[0]
        self.cluster.kill("agent")
        self.kubelet.wait(lambda line: line["count"] == 0, written, "the kubelet to let go")
        return (counted - appears) / 1e6, (written - appears) / 1e6


def measure(programs, smoke: bool) -> Bench:
    bench = Bench("cluster", "Driver present to a real kubelet's GetAllocatableResources and to the Node object, 8 GPUs")
    directory = Path(tempfile.mkdtemp(prefix="penstock-bench-", dir="/tmp"))
    directory.chmod(0o755)
    cluster = kubernetes.Cluster(directory)
    try:
        cluster.up(tied=True)
        node = Node(cluster, programs)
        try:
            found = [node.one() for _ in range(1 if smoke else 8)]
        finally:
            node.end()
    finally:
        cluster.down()
        shutil.rmtree(directory, ignore_errors=True)
    bench.add("library appears to GetAllocatableResources", "ms", [counted for counted, _ in found], goal=100)
    bench.add("library appears to the Node object", "ms", [written for _, written in found])
    bench.note("GetAllocatableResources is asked every 15 ms. The kubelet writes the Node object by its own clock, every 10 s.")
    return bench
