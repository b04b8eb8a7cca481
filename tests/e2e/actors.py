"""Who takes part in a scenario: the Kubernetes of the bench, the simulated machine, and Penstock's agent, each with the few things that
scenarios do to them. They ask and act; what should be true is said in the scenarios."""
import json
import re
import signal
import subprocess
from pathlib import Path

import pytest

from cluster import Cluster, CommandFailed
from inside import define, wait_until

GPU = "nvidia.com/gpu"
BUSYBOX, DEBIAN = "registry.local/busybox:1", "registry.local/debian:1"  # the second has a C library; neither has anything of a driver
OPENED, REFUSED = "allowed", "refused"


def wait_for(predicate, deadline: float, what: str, details=lambda: "", every: float = 0.05):
    """Asks until the answer is true, and returns it; a command that fails meanwhile counts as no. `details` tells more when it fails."""
    def ask():
        try:
            return predicate()
        except CommandFailed as error:
            failures.append(str(error))
            return None

    failures: list[str] = []
    try:
        return wait_until(ask, deadline, what, every)
    except TimeoutError as error:
        pytest.fail("\n".join([str(error), str(details()), *failures[-1:]]))


class Machine:
    """A simulated machine below `root`, as penstock-sim starts it. It shares no code with the agent: facts are read from its files."""

    def __init__(self, root: Path, programs: Path, name: str = "dgx-a100"):
        self.root, self.sim, self.broken = root, programs / "penstock-sim", False
        self._sim("start", name, "--replace")

    def _sim(self, *words: str):
        done = subprocess.run([str(self.sim), "--root", str(self.root), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert done.returncode == 0, f"penstock-sim {' '.join(words)}: {done.stderr}"

    def fault(self, gpu: str, *words: str):
        """`gpu` may also be "driver"."""
        self.broken = True
        self._sim("fault", gpu, *words)

    def run_process(self, gpu: str, pid: int, mebibytes: int, name: str):
        """A process, as its node numbers it, is on the GPU."""
        self._sim("set", gpu, f"process={pid}:{mebibytes}:{name}")

    def no_processes(self, gpu: str):
        self._sim("set", gpu, "no-processes")

    def heal_mps(self):
        self._sim("heal", "mps")

    def replace(self, place: str, uuid: str, serial: str):
        """Another board of the same model at that PCI address."""
        self._sim("fault", place, "remove")
        self._sim("set", place, f"uuid={uuid}", f"serial={serial}")
        self._sim("heal", place)

    def install(self, version: str):
        """Loads that driver, whose files take the place of the last one's."""
        self._sim("heal", "driver", "--driver", version)

    def cure(self, gpu: str):
        """One GPU alone: the driver's files are left as they are."""
        self._sim("heal", gpu)

    def heal(self):
        """A machine that is whole is left alone: healing one rewrites its files, which an agent notices."""
        if self.broken:
            self._sim("heal", "all")
        self.broken = False

    def minors(self) -> dict[str, int]:
        """GPU UUID -> minor number of its device file, as the driver's own /proc files say."""
        found = {}
        for file in (self.root / "proc/driver/nvidia/gpus").glob("*/information"):
            facts = dict(re.split(r":\s+", line, maxsplit=1) for line in file.read_text().splitlines() if ":" in line)
            found[facts["GPU UUID"].strip()] = int(facts["Device Minor"])
        return found


class Agent:
    """penstock-agent on node n1, in the node's namespaces, and the `penstock` that talks to it."""

    def __init__(self, cluster: Cluster, machine: Machine, programs: Path, name: str = "agent", listen: str = "127.0.0.1:9400"):
        self.cluster, self.machine, self.programs, self.name = cluster, machine, programs, name
        self.home = cluster.dir / "n1"
        self.run_dir, self.state_dir = cluster.dir / "agent/run", cluster.dir / "agent/state"
        self.config = cluster.dir / f"agent/{name}.yaml"
        self.config.parent.mkdir(exist_ok=True)
        self.configure("")
        # --proc-root stays /proc: who holds a device is found there, and the simulated tree has only the driver's part of it.
        define(self.home, name, [
            programs / "penstock-agent", "--config", self.config, "--driver-root", machine.root, "--dev-root", machine.root,
            "--sysfs-root", machine.root / "sys", "--kubelet-dir", "/var/lib/kubelet", "--state-dir", self.state_dir,
            "--run-dir", self.run_dir, "--node-name", "n1", "--listen", listen])
        self.listen = listen

    def configure(self, more: str):
        """What a scenario adds to the configuration, or nothing; as editors write files: whole, then in its place."""
        beside = self.config.with_suffix(".new")
        beside.write_text(CONFIG + more)
        beside.rename(self.config)

    def start(self):
        self.cluster.start(self.name)

    def wait_serving(self):
        wait_for(lambda: self.status()["agentPid"] == self.pid(), 10, f"{self.name} to answer")

    def kill(self):
        self.cluster.kill(self.name, number=signal.SIGKILL)

    def stop(self):
        self.cluster.kill(self.name, number=signal.SIGTERM)
        wait_for(lambda: not self.running(), 10, f"{self.name} to end after SIGTERM")

    def running(self) -> bool:
        pid = self.pid()
        return pid is not None and self.cluster.run("test", "-d", f"/proc/{pid}", check=False).returncode == 0

    def pid(self) -> int | None:
        """As the node sees it."""
        file = self.home / "run" / f"{self.name}.pid"
        return int(file.read_text()) if file.exists() else None

    def ensure_running(self):
        if not self.running():
            self.start()

    def at_every_boot(self):
        (self.home / "boot").mkdir(exist_ok=True)
        (self.home / "boot" / self.name).touch()

    def log(self) -> str:
        file = self.home / "log" / f"{self.name}.log"
        return file.read_text(errors="replace") if file.exists() else ""

    def penstock(self, *arguments, **options) -> subprocess.CompletedProcess:
        return self.cluster.run(self.programs / "penstock", "--run-dir", self.run_dir, *arguments, **options)

    def status(self) -> dict:
        return json.loads(self.penstock("status", "-o", "json").stdout)

    def describe(self) -> str:
        answer = self.penstock("status", check=False)
        return answer.stdout + answer.stderr

    def device(self, uuid: str) -> dict:
        return next(device for device in self.status()["devices"] if device["id"] == uuid)

    def kubelet_door(self) -> dict:
        return next(door for door in self.status()["doors"] if door["name"] == "kubelet")

    def holders(self, kind: str | None = None) -> list[dict]:
        answer = self.penstock("ps", "-o", "json", check=False)
        if answer.returncode:
            return []
        return [holder for holder in json.loads(answer.stdout)["holders"] if kind in (None, holder["kind"])]

    def held_by_pods(self) -> dict[str, set[str]]:
        """Pod name -> UUIDs, as `penstock ps` says."""
        found: dict[str, set[str]] = {}
        for holder in self.holders("pod"):
            found.setdefault(holder["pod"], set()).add(holder["device"])
        return found

    def metrics(self) -> str:
        return self.cluster.run("busybox", "wget", "-q", "-O", "-", f"http://{self.listen}/metrics").stdout


# How long a cured device is watched before it is offered again; scenarios have no time for the default.
CONFIG = """apiVersion: penstock.io/v1alpha1
kind: NodeConfig
health:
  probation: 1s
"""


class Kubernetes:
    """The cluster as its users see it."""

    def __init__(self, cluster: Cluster):
        self.cluster = cluster

    def kubectl(self, *arguments, **options) -> subprocess.CompletedProcess:
        return self.cluster.run("kubectl", "--request-timeout=10s", *arguments, **options)

    def get(self, *what) -> dict:
        return json.loads(self.kubectl("get", *what, "-o", "json").stdout)

    # --- the node
    def gpus(self, of: str = "allocatable") -> int:
        """What the Node object says; the kubelet writes it."""
        return int(self.get("node", "n1")["status"][of].get(GPU, -1))

    def gpus_the_kubelet_has(self) -> set[str]:
        """Device ids in the kubelet's own list, which the Node object follows; empty while the kubelet is away."""
        answer = self.cluster.run("kubelet-peer", "allocatable", check=False)
        devices = json.loads(answer.stdout).get("devices", []) if answer.returncode == 0 else []
        return {id for device in devices if device["resource_name"] == GPU for id in device["device_ids"]}

    def wait_for_gpus(self, count: int, deadline: float = 30):
        wait_for(lambda: self.gpus() == count, deadline, f"the node to have {count} allocatable GPUs")

    def mend(self):
        """Starts the daemons that a scenario has stopped and not started again."""
        for daemon in ("containerd", "kubelet"):
            pid = (self.cluster.home(daemon) / "run" / f"{daemon}.pid").read_text()
            if self.cluster.run("test", "-d", f"/proc/{pid}", check=False).returncode:
                self.cluster.start(daemon)

    # --- pods
    def create_pod(self, name: str, gpus: int = 0, restart: str = "Never", command: str = "exec sleep 100000", image: str = BUSYBOX):
        container = {"name": "main", "image": image, "imagePullPolicy": "Never", "command": ["sh", "-c", command]}
        if gpus:
            container["resources"] = {"limits": {GPU: gpus}}
        manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
                    "spec": {"restartPolicy": restart, "terminationGracePeriodSeconds": 0, "containers": [container]}}
        self.kubectl("create", "-f", "-", input=json.dumps(manifest))

    def phase(self, pod: str) -> str:
        return self.kubectl("get", "pod", pod, "-o", "jsonpath={.status.phase}", "--ignore-not-found").stdout

    def ready(self, pod: str) -> bool:
        answer = self.kubectl("get", "pod", pod, "-o", "jsonpath={.status.containerStatuses[0].ready}", "--ignore-not-found", check=False)
        return answer.stdout == "true"

    def wait_running(self, *pods: str, deadline: float = 30):
        for pod in pods:
            wait_for(lambda pod=pod: self.ready(pod), deadline, f"pod {pod} to run")

    def run_pod(self, name: str, gpus: int = 0, **options):
        self.create_pod(name, gpus, **options)
        self.wait_running(name)

    def delete_pod(self, *names: str):
        self.kubectl("delete", "pod", *names, "--wait=true", "--timeout=30s", "--ignore-not-found")

    def delete_all_pods(self):
        self.kubectl("delete", "pod", "--all", "--wait=true", "--timeout=60s")

    def logs_of(self, *what: str) -> str:
        """What a pod, or job/NAME, has printed."""
        return self.kubectl("logs", *what).stdout

    def why_pending(self, pod: str) -> str:
        conditions = self.get("pod", pod)["status"].get("conditions", [])
        return next((c.get("message", "") for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"), "")

    def inside(self, pod: str, script: str) -> str:
        return self.kubectl("exec", pod, "--", "sh", "-c", script).stdout

    def gpus_of(self, pod: str, machine: Machine) -> list[str]:
        """The UUIDs of the machine's GPUs whose device files the container has, however they came there."""
        files = self.device_files(pod)
        return [uuid for uuid, minor in machine.minors().items() if f"nvidia{minor}" in files]

    def told(self, pod: str) -> list[str]:
        """What the container is told of its GPUs in its environment: "void" where there is nothing left to do, since they are there."""
        value = self.inside(pod, 'echo "$NVIDIA_VISIBLE_DEVICES"').strip()
        return value.split(",") if value else []

    def openable(self, pod: str, minors) -> dict[int, str]:
        """Which of the NVIDIA minors the container's device rules let it open: asked with device files that it makes itself. No driver
        backs them, so ENXIO means that the rules allow it; EPERM that they do not."""
        script = "".join(f"mknod /tmp/{m} c 195 {m} 2>/dev/null; echo {m}: $(cat /tmp/{m} 2>&1 >/dev/null); " for m in minors)
        answers = dict(line.split(": ", 1) for line in self.inside(pod, script).splitlines())
        return {int(minor): REFUSED if "not permitted" in said else OPENED if "No such device or address" in said else said
                for minor, said in answers.items()}

    def device_files(self, pod: str) -> set[str]:
        return set(self.inside(pod, "ls /dev | grep -E '^nvidia[0-9]+$' || true").split())
