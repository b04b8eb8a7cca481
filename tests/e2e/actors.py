"""The participants of a scenario: the Kubernetes of the test cluster, the simulated machine, and Penstock's agent, with the operations that scenarios use.
This module reads and acts; the assertions are in the scenarios."""
import contextlib
import functools
import json
import os
import re
import signal
import subprocess
import threading
from pathlib import Path

import pytest

import parts
from api import RequestFailed
from cluster import Cluster, CommandFailed, die_with_parent
from inside import LEAST, cgroup_hierarchies, define, wait_until

GPU = "nvidia.com/gpu"
BUSYBOX, DEBIAN = "registry.local/busybox:1", "registry.local/debian:1"  # the second one has a C library; neither contains any driver files
OPENED, REFUSED = "allowed", "refused"
BRIEFLY = ("env", *(f"{name}={value}" for name, value in parts.BRIEF.items()))


def wait_for(predicate, deadline: float, what: str, details=lambda: "", every: float = 0.1):
    """Polls until the answer is true, and returns it; a command or request that fails meanwhile counts as false. `details` adds text to the failure message.
    A deadline is far longer than a healthy but busy machine needs, so a timeout indicates a defect and never slowness; it is never below LEAST."""
    def ask():
        try:
            return predicate()
        except (CommandFailed, RequestFailed) as error:
            failures.append(str(error))
            return None

    def detailed():
        try:
            return details()
        except (CommandFailed, RequestFailed) as error:
            return error

    failures: list[str] = []
    try:
        return wait_until(ask, max(deadline, LEAST), what, every)
    except TimeoutError as error:
        pytest.fail("\n".join([str(error), str(detailed()), *failures[-1:]]))


class KubeletPeer:
    """What the kubelet of a node reports about devices, queried by a program that keeps running: the kubelet's own list is more complete and more recent than
    its Node object."""

    def __init__(self, cluster: Cluster, node: int = 1):
        self.lock = threading.Lock()
        # The node mounts this folder as /var/lib/kubelet.
        socket = cluster.dir / f"n{node}/kubelet/pod-resources/kubelet.sock"
        self.process = subprocess.Popen([cluster.parts.peer / "kubelet-peer", "answer", socket], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, bufsize=1, preexec_fn=die_with_parent)

    def _ask(self, question: str) -> dict:
        with self.lock:
            self.process.stdin.write(f"{question}\n")
            said = json.loads(self.process.stdout.readline())
        if "error" in said:
            raise CommandFailed(f"the kubelet, asked for {question}: {said['error']}")
        return said["answer"]

    def lists(self, vendor: str = "nvidia.com") -> dict[str, set[str]]:
        """Resource name -> allocatable ids, as pod-resources GetAllocatableResources reports; fails if the kubelet does not answer."""
        found: dict[str, set[str]] = {}
        for device in self._ask("allocatable").get("devices", []):
            if device["resource_name"].startswith(f"{vendor}/") and device["device_ids"]:
                found.setdefault(device["resource_name"], set()).update(device["device_ids"])
        return found

    def gave(self, vendor: str = "nvidia.com") -> dict[str, set[str]]:
        """Pod -> device ids, as pod-resources List reports."""
        found: dict[str, set[str]] = {}
        for pod in self._ask("list").get("pod_resources", []):
            for container in pod.get("containers", []):
                for device in container.get("devices", []):
                    if device["resource_name"].startswith(f"{vendor}/"):
                        found.setdefault(pod["name"], set()).update(device["device_ids"])
        return found


class Machine:
    """A simulated machine below `root`, created by penstock-sim. It shares no code with the agent: facts are read from its files."""

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
        """Adds a process, by its pid in the node's namespace, to the GPU."""
        self._sim("set", gpu, f"process={pid}:{mebibytes}:{name}")

    def no_processes(self, gpu: str):
        self._sim("set", gpu, "no-processes")

    def heal_mps(self):
        self._sim("heal", "mps")

    def replace(self, place: str, uuid: str, serial: str):
        """Replaces the board at that PCI address by another one of the same model."""
        self._sim("fault", place, "remove")
        self._sim("set", place, f"uuid={uuid}", f"serial={serial}")
        self._sim("heal", place)

    def install(self, version: str):
        """Loads that driver; its files replace those of the previous driver."""
        self._sim("heal", "driver", "--driver", version)

    def uninstall(self):
        """Unloads the driver and removes its files, until `heal`."""
        self.fault("driver", "uninstall")

    def cure(self, gpu: str):
        """Clears the faults of one GPU without touching the driver's files."""
        self._sim("heal", gpu)

    def heal(self):
        """Clears all faults. Does nothing on a machine without faults, because clearing rewrites files, which an agent notices."""
        if self.broken:
            self._sim("heal", "all")
        self.broken = False

    def minors(self) -> dict[str, int]:
        """GPU UUID -> minor number of its device file, as the driver's /proc files report."""
        found = {}
        for file in (self.root / "proc/driver/nvidia/gpus").glob("*/information"):
            facts = dict(re.split(r":\s+", line, maxsplit=1) for line in file.read_text().splitlines() if ":" in line)
            found[facts["GPU UUID"].strip()] = int(facts["Device Minor"])
        return found


class Agent:
    """penstock-agent on node n1, in the node's namespaces, and the `penstock` client of it."""

    def __init__(self, cluster: Cluster, machine: Machine, programs: Path, name: str = "agent", listen: str = "127.0.0.1:9400"):
        self.cluster, self.machine, self.programs, self.name = cluster, machine, programs, name
        self.home = cluster.dir / "n1"
        self.run_dir, self.state_dir = cluster.dir / "agent/run", cluster.dir / "agent/state"
        self.config = cluster.dir / f"agent/{name}.yaml"
        self.config.parent.mkdir(exist_ok=True)
        self.configure("")
        # --proc-root stays /proc, which shows the holders of a device; the simulated tree has only the driver's part of it.
        define(self.home, name, [
            programs / "penstock-agent", "--config", self.config, "--driver-root", machine.root, "--dev-root", machine.root,
            "--sysfs-root", machine.root / "sys", "--kubelet-dir", "/var/lib/kubelet", "--state-dir", self.state_dir,
            "--run-dir", self.run_dir, "--node-name", "n1", "--listen", listen])
        self.listen = listen

    def configure(self, more: str):
        """Sets the scenario's part of the configuration, which may be empty; writes it as editors do: a complete new file, then a rename."""
        beside = self.config.with_suffix(".new")
        beside.write_text(CONFIG + more)
        beside.rename(self.config)

    def start(self):
        self.cluster.start(self.name)

    def wait_serving(self):
        wait_for(lambda: self.status()["agentPid"] == self.pid(), 60, f"{self.name} to answer")

    def kill(self):
        self.cluster.kill(self.name, number=signal.SIGKILL)

    def stop(self):
        self.cluster.kill(self.name, number=signal.SIGTERM)
        wait_for(lambda: not self.running(), 60, f"{self.name} to end after SIGTERM")

    def running(self) -> bool:
        pid = self.pid()
        return pid is not None and self.cluster.view().alive(pid)

    def pid(self) -> int | None:
        """The path as the node sees it."""
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
        return self.cluster.view().agent(self.run_dir, "status")

    def describe(self) -> str:
        answer = self.penstock("status", check=False)
        return answer.stdout + answer.stderr

    def device(self, uuid: str) -> dict:
        """An agent that started a moment ago answers before its worker has reported the devices."""
        return wait_for(lambda: next((device for device in self.status()["devices"] if device["id"] == uuid), None), 60, f"{self.name} to list {uuid}")

    def kubelet_allocator(self) -> dict:
        """Its state is empty while the agent starts."""
        return next((allocator for allocator in self.status()["allocators"] if allocator["name"] == "kubelet"), {"state": "", "reason": "", "deviceList": []})

    def holders(self, kind: str | None = None) -> list[dict]:
        try:
            found = self.cluster.view().agent(self.run_dir, "ps")["holders"]
        except RequestFailed:
            return []
        return [holder for holder in found if kind in (None, holder["kind"])]

    def held_by_pods(self) -> dict[str, set[str]]:
        """Pod name -> UUIDs, as the agent reports."""
        found: dict[str, set[str]] = {}
        for holder in self.holders("pod"):
            found.setdefault(holder["pod"], set()).add(holder["device"])
        return found

    def metrics(self) -> str:
        return self.cluster.view().page(f"http://{self.listen}/metrics")


# How long a recovered device stays on probation; the default is too long for scenarios.
CONFIG = """apiVersion: penstock.io/v1alpha1
kind: NodeConfig
health:
  probation: 1s
"""


OPTIONS = {"-n": "namespace", "-l": "labelSelector", "--field-selector": "fieldSelector"}  # as kubectl and the API name them


class Kubernetes:
    """The cluster from its users' point of view."""

    def __init__(self, cluster: Cluster):
        self.cluster = cluster

    @functools.cached_property
    def kubelet(self) -> KubeletPeer:
        return KubeletPeer(self.cluster)

    def kubectl(self, *arguments, **options) -> subprocess.CompletedProcess:
        """For operations that users run manually; polling uses get()."""
        return self.cluster.run(*BRIEFLY, "kubectl", "--request-timeout=60s", *arguments, **options)

    def get(self, *what: str) -> dict:
        """get("node", "n1"), get("pods", "-n", "penstock", "-l", "app=x"): an object or a list of them, with kubectl's arguments."""
        names, options, words = [], {}, iter(map(str, what))
        for word in words:
            if word in OPTIONS:
                options[OPTIONS[word]] = next(words)
            elif word == "-A":
                options["namespace"] = ""
            else:
                names.append(word)
        return self.cluster.api.get(*names, **options)

    def create(self, manifest: dict):
        self.cluster.api.create(manifest)

    def delete(self, kind: str, *names: str, namespace: str = "default"):
        """As `kubectl delete --ignore-not-found`, which waits until they are gone."""
        for name in names:
            self.cluster.api.delete(kind, name, namespace)
        for name in names:
            # The operator waits for a minute for agents' pods, and for another one for what they left on their hosts.
            wait_for(lambda name=name: not self.cluster.api.exists(kind, name, namespace), 400, f"{kind} {name} to be gone",
                     lambda name=name: self.cluster.api.get(kind, name, namespace))

    # --- the node
    def gpus(self, of: str = "allocatable", resource: str = GPU) -> int:
        """The capacity in the Node object, which the kubelet writes; -1 without one."""
        return int(self.get("node", "n1")["status"][of].get(resource, -1))

    def gpus_the_kubelet_has(self, resource: str = GPU) -> set[str]:
        """Device ids in the kubelet's own list, which the Node object follows; empty while the kubelet does not answer."""
        try:
            return self.kubelet.lists(resource.partition("/")[0]).get(resource, set())
        except CommandFailed:
            return set()

    def wait_for_gpus(self, count: int, deadline: float = 120, resource: str = GPU):
        """Waits until the Node object and the kubelet have so many GPUs. Pods need both: the Node object may still list GPUs that the kubelet lacks, whose pods fail."""
        wait_for(lambda: max(self.gpus(resource=resource), 0) == count == len(self.gpus_the_kubelet_has(resource)), deadline,
                 f"the node and its kubelet to have {count} of {resource}", lambda: (self.gpus(resource=resource), self.gpus_the_kubelet_has(resource)))

    def mend(self):
        """Starts the daemons that a scenario stopped and did not restart."""
        for daemon in ("containerd", "kubelet"):
            pid = (self.cluster.home(daemon) / "run" / f"{daemon}.pid").read_text()
            if not self.cluster.view().alive(int(pid)):
                self.cluster.start(daemon)

    # --- pods
    def create_pod(self, name: str, gpus: int = 0, restart: str = "Never", command: str = "exec sleep 100000", image: str = BUSYBOX):
        container = {"name": "main", "image": image, "imagePullPolicy": "Never", "command": ["sh", "-c", command]}
        if gpus:
            container["resources"] = {"limits": {GPU: gpus}}
        self.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
                     "spec": {"restartPolicy": restart, "terminationGracePeriodSeconds": 0, "containers": [container]}})

    def pod(self, name: str) -> dict | None:
        try:
            return self.get("pod", name)
        except RequestFailed as error:
            if error.code == 404:
                return None
            raise

    def phase(self, name: str) -> str:
        pod = self.pod(name)
        return pod["status"]["phase"] if pod else ""

    def ready(self, name: str) -> bool:
        pod = self.pod(name)
        return bool(pod) and pod["status"].get("containerStatuses", [{}])[0].get("ready", False)

    def wait_running(self, *pods: str, deadline: float = 120):
        def runs(name: str) -> bool:
            pod = self.pod(name)
            if pod and pod["status"]["phase"] == "Failed":
                pytest.fail(f"pod {name} failed: {pod['status']}")
            return bool(pod) and pod["status"].get("containerStatuses", [{}])[0].get("ready", False)
        for pod in pods:
            wait_for(lambda pod=pod: runs(pod), deadline, f"pod {pod} to run", lambda pod=pod: self.pod(pod))

    def run_pod(self, name: str, gpus: int = 0, **options):
        self.create_pod(name, gpus, **options)
        self.wait_running(name)

    def delete_pod(self, *names: str):
        for name in names:
            self.cluster.api.delete("pod", name)
        wait_for(lambda: not any(map(self.pod, names)), 120, f"the pods {', '.join(names)} to be gone")

    def delete_all_pods(self):
        """Deletes the pods in the scenarios' namespace. Repeats it, because a controller that is being deleted may create another pod."""
        def none() -> bool:
            if not self.get("pods")["items"]:
                return True
            self.cluster.api.delete("pods")
            return False
        wait_for(none, 180, "all pods to be gone", lambda: self.kubectl("get", "pods", check=False).stdout)

    def logs_of(self, pod: str, namespace: str = "default", **options: str) -> str:
        return self.cluster.api.log(pod, namespace, **options)

    def why_pending(self, pod: str) -> str:
        conditions = self.get("pod", pod)["status"].get("conditions", [])
        return next((c.get("message", "") for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"), "")

    def inside(self, pod: str, script: str) -> str:
        return self.kubectl("exec", pod, "--", "sh", "-c", script).stdout

    def process_of(self, pod: str, namespace: str = "default") -> Path:
        """The /proc folder of the first process of the pod's container, with the machine's pid."""
        said = self.get("pod", pod, "-n", namespace)
        container = said["status"].get("containerStatuses", [{}])[0].get("containerID", "").removeprefix("containerd://")
        pods = f"bench-{self.cluster.dir.name}-{said['spec'].get('nodeName')}/kubepods"
        for root in cgroup_hierarchies() if container else []:
            for quality in ("besteffort", "burstable", ""):
                processes = root / pods / quality / f"pod{said['metadata']['uid']}" / container / "cgroup.procs"
                with contextlib.suppress(FileNotFoundError):
                    if pids := processes.read_text().split():
                        return Path("/proc", min(pids, key=int))
        raise CommandFailed(f"the container {container or '?'} of {pod} has no process")

    def gpus_of(self, pod: str, machine: Machine) -> list[str]:
        """The UUIDs of the machine's GPUs whose device files the container has, whichever way they were added."""
        files = self.device_files(pod)
        return [uuid for uuid, minor in machine.minors().items() if f"nvidia{minor}" in files]

    def told(self, pod: str) -> list[str]:
        """The container's environment variable that lists its GPUs: "void" where CDI added the devices, so that a runtime hook has nothing to do."""
        # A container counts as started a moment before its process executes the container's own program; until then the process is runc with runc's
        # environment. The kubelet sets this variable in each container.
        text = wait_for(lambda: "KUBERNETES_SERVICE_HOST=" in (seen := (self.process_of(pod) / "environ").read_text()) and seen, 60,
                        f"the process of pod {pod} to have its own environment")
        variables = dict(entry.split("=", 1) for entry in text.split("\0") if "=" in entry)
        value = variables.get("NVIDIA_VISIBLE_DEVICES", "")
        return value.split(",") if value else []

    def openable(self, pod: str, minors) -> dict[int, str]:
        """The NVIDIA minors that the container's device rules allow it to open, tested with device files that this function creates. No driver backs them, so
        ENXIO means that the rules allow it, and EPERM that they do not."""
        script = "".join(f"mknod /tmp/{m} c 195 {m} 2>/dev/null; echo {m}: $(cat /tmp/{m} 2>&1 >/dev/null); " for m in minors)
        answers = dict(line.split(": ", 1) for line in self.inside(pod, script).splitlines())
        return {int(minor): REFUSED if "not permitted" in said else OPENED if "No such device or address" in said else said
                for minor, said in answers.items()}

    def device_files(self, pod: str) -> set[str]:
        """The GPUs that the container's own processes see."""
        try:
            return {name for name in os.listdir(self.process_of(pod) / "root/dev") if re.fullmatch(r"nvidia\d+", name)}
        except OSError as error:  # it has just exited
            raise CommandFailed(f"the device files of {pod}: {error}") from None
