"""Measures the agents of a thousand nodes with one real API server that is killed and restarted: their requests, the highest rate, and the time until all
watch again. The agents are Penstock's client library and informers, all in one process. Needs root; starts a separate etcd and API server, without
controllers, so that the server has no other clients."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from control_plane import ControlPlane
from figures import Bench
from inside import SERVER, wait_until

RIGHTS = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "fleet"}, "rules": [
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["create", "get", "list", "watch"]},
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}]}
LOOPS = 2


class Fleet:
    """bench-kube-fleet: an agent for each node, controlled by commands on standard input."""

    def __init__(self, cluster, programs: Path, agents: int):
        self.cluster, self.watches = cluster, 2 * agents
        kubeconfig = self.give_rights()
        self.process = subprocess.Popen([*cluster.entering(), str(programs / "bench-kube-fleet"), str(kubeconfig), str(agents), str(LOOPS)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def give_rights(self) -> Path:
        """A service account's token, like a pod's: an administrator's requests would bypass the server's own queues."""
        self.kubectl("create", "-f", "-", input=json.dumps(RIGHTS))
        self.kubectl("create", "serviceaccount", "fleet")
        self.kubectl("create", "clusterrolebinding", "fleet", "--clusterrole=fleet", "--serviceaccount=default:fleet")
        self.kubectl("create", "configmap", "fleet", "--from-literal=round=0")
        token = self.kubectl("create", "token", "fleet", "--duration=6h").strip()
        path = self.cluster.dir / "fleet.kubeconfig"
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "fleet", "users": [{"name": "fleet", "user": {"token": token}}],
            "clusters": [{"name": "fleet", "cluster": {"server": f"https://{SERVER}:6443", "certificate-authority": str(self.cluster.dir / "pki/ca.crt")}}],
            "contexts": [{"name": "fleet", "context": {"cluster": "fleet", "user": "fleet"}}]}))
        return path

    def kubectl(self, *words, **options) -> str:
        return self.cluster.run("kubectl", *words, **options).stdout

    def tell(self, command: str) -> dict:
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"bench-kube-fleet ended at `{command}` with {self.process.wait()}")
        return json.loads(line)

    def settle(self, seconds: float, quiet: float) -> dict:
        """Waits until every watch is open and no request was sent for a while: an attempt that hangs ends after 10 s."""
        def settled():
            told = self.tell("counts")
            return told if told["open"] == self.watches and told["seconds"] - told["last_attempt"] > quiet else None
        return wait_until(settled, seconds, "the fleet to watch again", 0.25)

    def memory(self) -> float:
        """MiB of the process per agent. The command enters the cluster with nsenter, which becomes the program."""
        status = Path(f"/proc/{self.pid()}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024 / (self.watches / 2)

    def pid(self) -> int:
        """nsenter forks when it enters a pid namespace: the program is its child, or its child's child."""
        pid = self.process.pid
        while True:
            if Path(f"/proc/{pid}/comm").read_text().strip().startswith("bench-kube"):
                return pid
            pid = int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])

    def server_watches(self) -> int:
        """The number of the fleet's watches that the server itself counts."""
        text = self.kubectl("get", "--raw", "/metrics")
        lines = re.findall(r'^apiserver_longrunning_requests\{.*resource="(nodes|configmaps)".*verb="WATCH".*\} (\S+)$', text, re.M)
        return int(sum(float(count) for _, count in lines))

    def spread_of_one_change(self, number: int) -> float:
        """Seconds until all agents have one change of the ConfigMap that they share."""
        before = self.tell("counts")["maps_changed"]
        start = time.monotonic()
        self.kubectl("patch", "configmap", "fleet", "-p", json.dumps({"data": {"round": str(number)}}))
        wait_until(lambda: self.tell("counts")["maps_changed"] >= before + self.watches // 2, 60, "one change to reach all", 0.02)
        return time.monotonic() - start

    def end(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            self.process.wait(30)


def restart(fleet: Fleet, down: float) -> dict:
    """Kills the server, restarts it after a pause, and waits until all agents are quiet."""
    fleet.tell("mark")
    start = time.monotonic()
    fleet.cluster.kill("apiserver")
    time.sleep(down)
    fleet.cluster.start("apiserver")
    wait_until(lambda: fleet.cluster.run("kubectl", "get", "--raw", "/readyz", check=False).returncode == 0, 60, "the API server")
    ready = time.monotonic() - start
    told = fleet.settle(180, 12)
    return told | {"ready": ready, "all_watch": max(0.0, told["last_attempt"] - ready)}


def measure(programs, smoke: bool) -> Bench:
    agents = 20 if smoke else 1000
    bench = Bench("fleet", f"The agents of {agents:,} nodes, each with a watch of its Node and of a ConfigMap, before one API server")
    directory = Path(tempfile.mkdtemp(prefix="penstock-bench-", dir="/tmp"))
    directory.chmod(0o755)
    cluster = ControlPlane(directory)
    fleet = None
    try:
        cluster.up()
        fleet = Fleet(cluster, programs, agents)
        fleet.tell("create")
        fleet.tell("mark")
        begun = fleet.tell("watch")
        if begun["synced"] != fleet.watches:
            raise RuntimeError(f"only {begun['synced']} of {fleet.watches} lists came: {begun}")
        record(bench, fleet, begun, smoke)
    finally:
        if fleet:
            fleet.end()
        cluster.down()
        shutil.rmtree(directory, ignore_errors=True)
    return bench


def record(bench: Bench, fleet: Fleet, begun: dict, smoke: bool):
    bench.add("start: all begin at once to the last first list", "s", begun["seconds"])
    bench.add("start: requests", "", begun["attempts"], detail=True)
    fleet.settle(60, 1)
    fleet.tell("mark")
    time.sleep(2 if smoke else 60)
    rest = fleet.tell("counts")
    bench.add("at rest: requests in a minute", "", rest["attempts"], goal=1)
    bench.add("one change of the ConfigMap to all agents", "s", [fleet.spread_of_one_change(i) for i in range(1, 2 if smoke else 6)])
    for name, down in (("restart", 0), ("second restart", 0), ("restart, 30 s down", 30))[:1 if smoke else 3]:
        told = restart(fleet, down)
        bench.add(f"{name}: greatest rate of requests that reached it", "/s", told["peak_reached"], goal=1000)
        bench.add("attempts to connect included", "/s", told["peak_attempts"], detail=True)
        bench.add(f"{name}: ready to all watching again, and quiet", "s", told["all_watch"], goal=30)
        bench.add("kill to ready", "s", told["ready"], detail=True)
        bench.add("requests that reached it", "", told["reached"], detail=True)
        bench.add("watches whose version the server no longer had (410)", "", told.get("expired", 0), detail=True)
        bench.add("lists without such a reason", "", told.get("lists_without_expiry", 0), goal=1, detail=True)
        server = fleet.server_watches()
        if server < fleet.watches or told["troubled"]:
            raise RuntimeError(f"{fleet.watches} watches should be open, the server counts {server}: {told}")
    bench.add("one change of the ConfigMap to all agents, afterwards", "s", fleet.spread_of_one_change(99))
    bench.add("the agents' process, for one agent", "MiB", fleet.memory())
    bench.note("The server keeps no history over a restart: it answers a watch from a version older than its start with 410, and the informer lists "
               "again, at random within 5 s. With one object selected by name such a list is one more watch request. While the server starts it answers some "
               "requests with 403: it has not loaded its roles yet.")
    bench.note(f"Requests are counted by the clients; the server's own count of open watches was compared with theirs after each restart. "
               f"Clients and server share this machine's {os.cpu_count()} cores.")
