"""Four nodes with different simulated machines, Penstock on them from this build's image and chart, and what users and the nodes report. This module reads
and acts; the assertions are in the scenarios."""
import fcntl
import json
import os
import signal
import subprocess
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import parts
import reports
from actors import BRIEFLY, BUSYBOX, GPU, KubeletPeer, Kubernetes, Machine, wait_for
from api import RequestFailed
from catalogue import MACHINES
from cluster import Cluster, CommandFailed
from witnesses import AUDIT_POLICY, Audit, KubeletList, NodeWatch

ROOT = Path(__file__).parents[3]
NAMESPACE, RELEASE, CONFIG_MAP = "penstock", "penstock", "penstock-configs"
CONFIG_LABEL = "nvidia.com/device-plugin.config"
AGENTS = "app.kubernetes.io/name=penstock"  # their pods, however they were installed
IMAGE = "localhost/penstock:e2e"
RUN_DIR = "/run/penstock"  # of the agents, on each node
ACCELERATORS = "/opt/accelerators"  # where each node has its own machine
BY_UUID, BY_INDEX = ("version: v1\nflags:\n  plugin:\n    deviceIDStrategy: %s\n" % strategy for strategy in ("uuid", "index"))
WITHOUT_CDI = "n3"  # containerd 1.7's default; on the other nodes CDI is enabled
# Containers that end again and again start again after 5 s, not after 10, 20, 40 s and more; 1.31 cannot be told so.
RESTARTS = "crashLoopBackOff: {maxContainerRestartPeriod: 5s}\n"
STRICT = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement"  # as on OpenShift
MACHINE = f"{ACCELERATORS}/.penstock-sim"
VALUES = {
    "image": {"repository": "localhost/penstock", "tag": "e2e", "pullPolicy": "Never"},
    "nvidiaDriverRoot": ACCELERATORS,
    # Configurations that users already have: files of NVIDIA's device plugin, one for each kind of node, and a default.
    "config": {"map": {"by-uuid": BY_UUID, "by-index": BY_INDEX}, "default": "by-uuid"},
    # The driver's programs change the hardware although the driver root is read-only; the simulated hardware is a file in it.
    "penstock": {"extraVolumes": [{"name": "hardware", "hostPath": {"path": MACHINE}}],
                 "extraVolumeMounts": [{"name": "hardware", "mountPath": "/driver-root/.penstock-sim"}], "config": {
        "paths": {"sysfsRoot": "/driver-root/sys"},
        "labels": {"machineTypeFile": "/driver-root/sys/class/dmi/id/product_name"},
        "health": {"probation": "1s"},  # probation of a recovered device; the default is too long for scenarios
    }},
}


def merged(below: dict, above: dict) -> dict:
    return below | {key: merged(below[key], value) if isinstance(value, dict) and isinstance(below.get(key), dict) else value
                    for key, value in above.items()}


def slots(uuid: str, replicas: int) -> set[str]:
    """The kubelet's ids of a device that is shared into so many replicas."""
    return {uuid} if replicas == 1 else {f"{uuid}::{n}" for n in range(replicas)}


def device_of(slot: str) -> str:
    return slot.split("::")[0]


def pod_on(node: str, command: str, resource: str = GPU, image: str = BUSYBOX) -> dict:
    """The spec of a pod with one GPU, or one share of a GPU."""
    container = {"name": "main", "image": image, "imagePullPolicy": "Never", "command": ["sh", "-c", command],
                 "resources": {"limits": {resource: 1}}}
    return {"terminationGracePeriodSeconds": 0, "nodeSelector": {"kubernetes.io/hostname": node}, "containers": [container]}


def build_image(programs: Path) -> Path:
    """The image of these programs; suites that run in parallel build it once."""
    places = (programs.glob("penstock*"), programs.parent.glob("lib/*.so"), (ROOT / "deploy/image").iterdir())
    folder = programs.parent / "e2e-image"
    folder.mkdir(exist_ok=True)
    archive = folder / f"{parts.key(*(file for place in places for file in sorted(place) if file.is_file()))}.tar"
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            for outdated in folder.glob("*.tar"):
                outdated.unlink()
            done = subprocess.run([ROOT / "deploy/image/build", archive.with_suffix(".new"), "--programs", programs, "--name", IMAGE],
                                  capture_output=True, text=True)
            assert done.returncode == 0, f"deploy/image/build: {done.stdout}{done.stderr}"
            archive.with_suffix(".new").rename(archive)
    return archive


class Node:
    """One node seen from inside: its machine, its kubelet, and the agent that runs on it."""

    def __init__(self, cluster: Cluster, k: int, machine: str, programs: Path):
        self.cluster, self.k, self.name, self.programs = cluster, k, f"n{k}", programs
        self.view = cluster.view(k)
        self.machine = Machine(cluster.dir / self.name / "machine", programs, machine)
        self.kubelet = KubeletPeer(cluster, k)
        self.wanted: dict[str, dict[str, int]] = {}  # resource -> UUID -> replicas, as a scenario configured it; empty: all whole
        self.at_boot()
        (cluster.dir / self.name / "containerd-cdi").write_text(str(self.name != WITHOUT_CDI).lower())

    def at_boot(self, *more: tuple[str, str]):
        """What is bound into the node's files before its daemons start, besides its machine: (source, target)."""
        mounts = ((str(self.machine.root), ACCELERATORS), *more)
        (self.cluster.dir / self.name / "mounts").write_text("".join(f"{source} {target}\n" for source, target in mounts))

    def run(self, *command, **options) -> subprocess.CompletedProcess:
        return self.cluster.run(*command, node=self.k, **options)

    def penstock(self, *arguments, **options) -> subprocess.CompletedProcess:
        """Runs the command-line tool on the node itself, without an API server."""
        return self.run(self.programs / "penstock", "--run-dir", RUN_DIR, *arguments, **options)

    def status(self) -> dict:
        return self.view.agent(RUN_DIR, "status")

    def allocator(self, name: str) -> dict:
        return next((allocator for allocator in self.status()["allocators"] if allocator["name"] == name), {"state": "", "reason": ""})

    def device(self, uuid: str) -> dict:
        """An agent that started a moment ago answers before its worker has reported the devices."""
        return wait_for(lambda: next((device for device in self.status()["devices"] if device["id"] == uuid), None), 60, f"the agent of {self.name} to list {uuid}")

    def uuids(self) -> list[str]:
        """The machine's GPUs, in the order of their indices."""
        return [device["id"] for device in sorted(self.status()["devices"], key=lambda device: device["index"])]

    def offers(self) -> dict[str, set[str]]:
        """Resource -> slots that the kubelet should have when all devices are healthy."""
        wanted = self.wanted or {GPU: {uuid: 1 for uuid in self.machine.minors()}}
        return {resource: set().union(*(slots(uuid, replicas) for uuid, replicas in shares.items())) for resource, shares in wanted.items()}

    def held(self) -> dict[str, set[str]]:
        """Pod -> slots, as the agent reports."""
        found: dict[str, set[str]] = {}
        for holder in self.view.agent(RUN_DIR, "ps")["holders"]:
            found.setdefault(holder.get("pod") or holder["kind"], set()).add(holder["slot"] or holder["device"])
        return found

    def kubelet_lists(self) -> dict[str, set[str]]:
        return self.kubelet.lists()

    def kubelet_has(self, resource: str = GPU) -> set[str]:
        return self.kubelet_lists().get(resource, set())

    def kubelet_gave(self) -> dict[str, set[str]]:
        return self.kubelet.gave()

    def processes(self) -> dict[int, str]:
        """Pid on the machine -> program name, for the processes of the agent's pod."""
        group, found = f"/bench-{self.cluster.dir.name}-{self.name}/", {}
        for process in Path("/proc").iterdir():
            try:
                if process.name.isdigit() and group in (process / "cgroup").read_text() and "penstock" in os.readlink(process / "exe"):
                    found[int(process.name)] = Path(os.readlink(process / "exe")).name
            except OSError:
                continue  # it has exited
        return found

    def agents(self) -> list[int]:
        return [pid for pid, name in self.processes().items() if name == "penstock-agent"]

    def agent(self) -> int:
        """The agent's own process. A program that the agent is about to run has the agent's name until it is executed."""
        [agent] = wait_for(lambda: len(found := self.agents()) == 1 and found, 60, f"one agent on {self.name}", self.processes)
        return agent

    def kill_agent(self):
        """Kills the agent as the OOM killer does. Returns when the kubelet has restarted the container."""
        killed = self.agent()
        os.kill(killed, signal.SIGKILL)
        wait_for(lambda: self.agents() not in ([], [killed]), 120, f"the kubelet of {self.name} to start the agent again")

    def footprint(self) -> tuple[float, str]:
        """PSS in MiB of all processes of the agent's pod together, and of each."""
        each = Counter()
        for pid, name in self.processes().items():
            try:
                pss = next(line for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines() if line.startswith("Pss:"))
            except OSError:
                continue  # it has exited
            each[name] += int(pss.split()[1]) / 1024
        return sum(each.values()), ", ".join(f"{name} {mib:.1f}" for name, mib in each.items())


def allocatable(node: dict, of: str = "allocatable") -> dict[str, int]:
    """Penstock's resources in a Node object; a kubelet keeps removed ones, with 0."""
    said = node.get("status", {}).get(of, {})
    return {resource: int(count) for resource, count in said.items() if resource.startswith("nvidia.com/") and count != "0"}


class Fleet(Kubernetes):
    """The cluster of those nodes."""

    def __init__(self, cluster: Cluster, programs: Path, tied: bool, machines: dict[str, str] = MACHINES):
        super().__init__(cluster)
        self.programs, self.values, self.rounds = programs, None, 0
        self.nodes = {name: Node(cluster, k, machine, programs) for k, (name, machine) in enumerate(machines.items(), 1)}
        with ThreadPoolExecutor(1) as beside:  # building the image takes as long as the nodes need to be Ready
            packing = beside.submit(build_image, programs)
            policy = cluster.dir / "audit-policy.yaml"
            policy.write_text(AUDIT_POLICY)
            (cluster.dir / "log").mkdir(parents=True, exist_ok=True)
            self.audit = Audit(cluster.dir / "log/audit.log")
            cluster.up(len(self.nodes), tied=tied, kubelet_settings=RESTARTS if cluster.release == "current" else "", apiserver_flags=f"--audit-policy-file={policy} --audit-log-path={self.audit.log} {STRICT}")
            archive = packing.result()
        cluster.import_image(archive, len(self.nodes))
        self.watch = NodeWatch(cluster.api)
        self.watch.start()

    def stop_watching(self):
        (self.cluster.dir / "log/agents.log").write_text(self.logs(-1))
        self.watch.stop()

    # --- installing
    def helm(self, *arguments, **options) -> subprocess.CompletedProcess:
        return self.cluster.run(*BRIEFLY, "helm", "--namespace", NAMESPACE, *arguments, **options)

    def install(self, values: dict | None = None, *options, chart: Path = ROOT / "deploy/helm/penstock"):
        """helm upgrade --install, with the scenario's values on top of the common ones. Does not wait for pods."""
        file = self.cluster.dir / "values.json"
        file.write_text(json.dumps(merged(VALUES, values or {})))
        self.helm("upgrade", "--install", "--create-namespace", "-f", file, RELEASE, chart, *options)
        self.values = values or {}

    def ensure_installed(self, values: dict | None = None):
        if self.values != (values or {}):
            self.install(values)

    def restart_agents(self):
        """As `kubectl rollout restart`: new agents take over node by node, with the values of the release. Does not wait for pods."""
        self.rounds += 1
        template = {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": str(self.rounds)}}}
        self.cluster.api.merge("daemonset", RELEASE, {"spec": {"template": template}}, NAMESPACE)

    def uninstall(self):
        self.helm("uninstall", RELEASE, "--wait", "--timeout", "300s")
        self.values = None

    # --- the agents
    def agent_pods(self) -> dict[str, str]:
        """Node -> name of the newest agent pod on it."""
        pods = self.get("pods", "-n", NAMESPACE, "-l", AGENTS)["items"]
        pods.sort(key=lambda pod: pod["metadata"]["creationTimestamp"])
        return {pod["spec"].get("nodeName", ""): pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]}

    def logs(self, lines: int = 10) -> str:
        """The last log lines of every agent."""
        answer = self.kubectl("logs", "-n", NAMESPACE, "-l", AGENTS, "--prefix", f"--tail={lines}", check=False)
        return answer.stdout + answer.stderr

    def last_words(self, nodes: list[str]) -> str:
        """The last log lines of the agents on those nodes."""
        pods = self.agent_pods()
        return "\n".join(f"--- {name}\n" + reports.tail(
            self.kubectl("logs", "-n", NAMESPACE, pods.get(name, "no-agent"), "--tail=60", check=False).stdout, reports.LINES // len(nodes))
            for name in nodes)

    def everything(self) -> str:
        """Everything that helps to analyse a failure afterwards."""
        asked = [("get", "pods", "-A", "-o", "wide"), ("get", "events", "-A", "--sort-by=.lastTimestamp"), ("describe", "nodes"),
                 ("get", "all,configmap,validatingadmissionpolicy", "-n", NAMESPACE, "-o", "yaml"), ("get", "clusterpolicies,penstocks,nvidiadrivers,deviceconfigs", "-A", "-o", "yaml"),
                 ("logs", "-n", NAMESPACE, "-l", "app=gpu-operator", "--tail=-1")]
        said = [f"# kubectl {' '.join(words)}\n{(done := self.kubectl(*words, check=False)).stdout}{done.stderr}" for words in asked]
        status = [f"# penstock status on {name}\n{node.penstock('status', check=False).stdout}" for name, node in self.nodes.items()]
        return "\n".join([*said, *status, "# logs of the agents", self.logs(-1)])

    def rolled_out(self) -> bool:
        status = self.get("daemonset", "-n", NAMESPACE, RELEASE)
        wanted, said = status["metadata"]["generation"], status["status"]
        return said.get("observedGeneration") == wanted and said["desiredNumberScheduled"] == len(self.nodes) == said.get(
            "updatedNumberScheduled") == said.get("numberReady") and len(self.get(
                "pods", "-n", NAMESPACE, "-l", AGENTS)["items"]) == len(self.nodes)

    def has_no_old_agents(self) -> bool:
        pods = self.get("pods", "-n", NAMESPACE, "-l", AGENTS)["items"]
        nodes = [pod["spec"].get("nodeName") for pod in pods]
        return len(set(nodes)) == len(nodes) and not any("deletionTimestamp" in pod["metadata"] for pod in pods)

    def wait_permission(self, account: str, verb: str, resource: str, allowed: bool, *where: str):
        """Waits until the API server has learnt that the account of our namespace has this right, or has it no more."""
        ask = ("auth", "can-i", verb, resource, f"--as=system:serviceaccount:{NAMESPACE}:{account}", *where)
        wait_for(lambda: (self.kubectl(*ask, check=False).stdout.strip() == "yes") == allowed, 60, f"{account} to be {'allowed' if allowed else 'refused'} to {verb} {resource}")

    def wait_rolled_out(self, deadline: float = 120):
        wait_for(self.rolled_out, deadline, "the agents of this release on all nodes, and no others", self.logs)

    def wait_quiet(self, seconds: float = 15, deadline: float = 180):
        """Waits until the agents have sent no write for so many seconds, so that all effects of the last scenario are complete. An agent that was just
        started may not have begun to write: the time before the call does not count."""
        begin = time.time()
        wait_for(lambda: time.time() >= begin + seconds and not self.audit.writes(time.time() - seconds), deadline, f"{seconds} s without a write of the agents",
                 lambda: self.audit.told(self.audit.writes(time.time() - seconds), time.time()), every=0.5)

    def wait_offered(self, deadline: float = 120):
        """Waits until each kubelet has the list of the newest agent, and the Node objects, too. Until that agent has registered, kubelets reject pods, while the Node
        objects are as they were. An agent that is to be replaced may still serve beside one that is ready."""
        wait_for(self.has_no_old_agents, deadline, "the agents that were replaced to have ended", self.logs)
        for node in self.nodes.values():
            wait_for(lambda node=node: node.kubelet_lists() == {key: ids for key, ids in node.offers().items() if ids}, deadline,  # noqa: B023
                     f"the kubelet of {node.name} to have its devices", node.kubelet_lists)
        self.wait_advertised(deadline)

    # --- what the Node objects say
    def wait_advertised(self, deadline: float, but: dict[str, int] | None = None) -> float:
        """Waits until every Node's allocatable matches its machine and the scenario's configuration; the nodes in `but` have so many GPUs and nothing else.
        Returns the time of the match."""
        wanted = {name: {resource: len(ids) for resource, ids in node.offers().items()} for name, node in self.nodes.items()}
        wanted |= {name: {GPU: count} for name, count in (but or {}).items()}
        try:
            return self.watch.wait(lambda nodes: all(allocatable(nodes.get(name, {})) == {key: count for key, count in its.items() if count}
                                                     for name, its in wanted.items()), deadline, f"the Node objects to have {wanted}")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.logs()}") from None

    def labels(self, node: str) -> dict[str, str]:
        return self.get("node", node)["metadata"]["labels"]

    # --- configuration
    def choose(self, node: str, key: str | None):
        """Sets the node's label that chooses a key of the ConfigMap; None removes it."""
        self.cluster.api.merge("node", node, {"metadata": {"labels": {CONFIG_LABEL: key}}})

    def configure(self, data: dict[str, str] | None, binary: dict[str, str] | None = None):
        """Replaces the ConfigMap of the release by another one, or deletes it."""
        self.cluster.api.delete("configmap", CONFIG_MAP, NAMESPACE)
        if data is not None:
            self.create(self.config_map(data, binary))

    def edit(self, data: dict[str, str]):
        """`kubectl apply --server-side`: one write."""
        self.cluster.api.apply(self.config_map(data))

    def config_map(self, data: dict[str, str], binary: dict[str, str] | None = None) -> dict:
        labels, annotations = {"app.kubernetes.io/managed-by": "Helm"}, {"meta.helm.sh/release-name": RELEASE,
                                                                         "meta.helm.sh/release-namespace": NAMESPACE}
        return {"apiVersion": "v1", "kind": "ConfigMap", "data": data, "binaryData": binary or {},
                "metadata": {"name": CONFIG_MAP, "namespace": NAMESPACE, "labels": labels, "annotations": annotations}}

    def events(self, node: str) -> list[dict]:
        """Penstock's Events on the Node."""
        found = self.get("events", "-n", "default", "--field-selector", f"involvedObject.kind=Node,involvedObject.name={node}")["items"]
        return [event for event in found if "penstock" in json.dumps([event.get("source", {}), event.get("reportingComponent", "")])]

    def wait_status(self, node: str, predicate, deadline: float):
        wait_for(lambda: predicate(self.nodes[node].status()), deadline, f"the status of {node}",
                 lambda: (self.nodes[node].penstock("status", check=False).stdout, self.logs()))

    def page(self, node: str) -> str:
        """The metrics of that node's agent."""
        pod = self.get("pod", "-n", NAMESPACE, self.agent_pods()[node])
        return self.nodes[node].view.page(f"http://{pod['status']['podIP']}:9400/metrics")

    def metric(self, node: str, name: str) -> float | None:
        """The sum of a metric family on that page."""
        values = [float(line.split()[-1]) for line in self.page(node).splitlines() if line.startswith((f"{name} ", f"{name}{{"))]
        return sum(values) if values else None

    def sample_kubelets(self) -> dict[str, KubeletList]:
        return {name: self.sample_kubelet(name) for name in self.nodes}

    def sample_kubelet(self, node: str, resource: str = GPU) -> KubeletList:
        return KubeletList(self.cluster, self.nodes[node].k, resource)

    # --- pods
    def churn(self, name: str, node: str, pods: int, at_once: int, command: str = "sleep 0.5", failures: int = 0):
        """A Job whose pods take one GPU each and soon exit; so many of them may fail."""
        spec = {"restartPolicy": "Never"} | pod_on(node, f'echo "$NVIDIA_VISIBLE_DEVICES"; {command}')
        self.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
                     "spec": {"completions": pods, "parallelism": at_once, "backoffLimit": failures, "template": {"spec": spec}}})

    def wait_churned(self, name: str, deadline: float = 180):
        """Waits until all pods of the Job have succeeded; a failed pod fails the scenario."""
        def complete() -> bool:
            job = self.get("job", name)
            status, spec = job["status"], job["spec"]
            assert status.get("failed", 0) <= spec["backoffLimit"], (
                f"pods of {name} failed: {self.kubectl('describe', 'pods', '-l', f'job-name={name}', '--field-selector=status.phase=Failed').stdout[-4000:]}")
            return status.get("succeeded", 0) == spec["completions"]
        wait_for(complete, deadline, f"the pods of {name} to succeed", lambda: self.kubectl("get", "pods", check=False).stdout)

    def hold(self, name: str, node: str, pods: int, resource: str = GPU):
        """Pods that hold one GPU or one share each, without a controller, because controllers' caches are outdated for a while after an API server outage."""
        self.rounds += 1  # no name is reused: a scheduler that missed a deletion exits when it finds the same name on another node
        items = [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"{name}-{self.rounds}-{i}", "labels": {"app": name}},
                  "spec": pod_on(node, "exec sleep 100000", resource)} for i in range(pods)]
        self.create({"apiVersion": "v1", "kind": "List", "items": items})

    def wait_held(self, *names: str, deadline: float = 120):
        def running() -> bool:
            pods = self.get("pods", "-l", f"app in ({','.join(names)})")["items"]
            return bool(pods) and all(pod["status"].get("containerStatuses", [{}])[0].get("ready") for pod in pods)
        wait_for(running, deadline, f"the pods {', '.join(names)} to run", lambda: self.kubectl("get", "pods", "-o", "wide", check=False).stdout)

    def deploy(self, name: str, node: str, replicas: int, **spec):
        """A Deployment on one node, of pods that hold one GPU each: its controller replaces pods that failed permanently. `spec`: of the pods, besides."""
        self.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
                     "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
                              "template": {"metadata": {"labels": {"app": name}}, "spec": pod_on(node, "exec sleep 100000") | spec}}})

    def deployed(self, name: str) -> bool:
        said = self.get("deployment", name)
        return said["status"].get("readyReplicas", 0) == said["spec"]["replicas"] == said["status"].get("updatedReplicas", 0)

    def wait_deployed(self, *names: str, deadline: float = 120):
        for name in names:
            wait_for(lambda name=name: self.deployed(name), deadline, f"the pods of {name} to run",
                     lambda: self.kubectl("get", "pods", "-o", "wide", check=False).stdout)

    def restart_controllers(self):
        """After an API server outage the controllers' caches are outdated for up to a minute; the scheduler may even have exited."""
        for daemon in ("controller-manager", "scheduler"):
            self.cluster.kill(daemon)
            self.cluster.start(daemon)

    def delete_workloads(self):
        """Also all pods. Deletes each kind explicitly: the garbage collector, which would follow owner references, may take minutes after an API server outage, and
        a ReplicaSet that it has not deleted makes pods."""
        for kind in ("deployments", "replicasets", "jobs"):
            def none(kind=kind) -> bool:
                if not self.get(kind)["items"]:
                    return True
                self.cluster.api.delete(kind)
                return False
            wait_for(none, 180, f"the {kind} of the last scenario to be gone")
        self.delete_all_pods()

    def clear(self):
        """Removes the scenarios' pods, clears all faults, and removes the nodes' own configurations."""
        self.delete_workloads()
        for node in self.get("nodes")["items"]:
            if CONFIG_LABEL in node["metadata"]["labels"]:
                self.choose(node["metadata"]["name"], None)
        for node in self.nodes.values():
            node.wanted = {}
            node.machine.heal()

    # --- the invariant
    def check(self, deadline: float = 60, complete: bool = True):
        """Checks on every node that the kubelet's allocations, the containers' devices and the ledger agree, that no slot is allocated twice, and that no
        device is allocated both whole and in shares. With `complete`, the allocated and allocatable slots must also match the machine and the configuration."""
        last: list[str] = []

        def whole() -> bool:
            with ThreadPoolExecutor(len(self.nodes)) as beside:
                wrong = [said for said in beside.map(lambda node: self.disagreement(node, complete), self.nodes.values()) if said]
            last[:] = wrong
            return not wrong
        begin = time.monotonic()
        wait_for(whole, deadline, "pods, kubelets and ledgers to agree", lambda: "\n".join(last))
        return time.monotonic() - begin

    def disagreement(self, node: Node, complete: bool) -> str:
        try:
            gave, held = node.kubelet_gave(), node.held()
            if wrong := self.given_wrongly(node, gave):
                return f"{node.name}: {wrong}: {gave}"
            if gave != held:
                return f"{node.name}: the kubelet allocated {gave}, the agent reports {held}"
            if complete and (wrong := self.incomplete(node, gave)):
                return f"{node.name}: {wrong}"
            seen, meant = {pod: set(self.gpus_of(pod, node.machine)) for pod in gave}, {pod: set(map(device_of, ids)) for pod, ids in gave.items()}
            return "" if seen == meant else f"{node.name}: the kubelet allocated {gave}, the containers see {seen}"
        except (CommandFailed, RequestFailed) as error:
            return f"{node.name}: {error}"

    @staticmethod
    def given_wrongly(node: Node, gave: dict[str, set[str]]) -> str:
        flat = [id for ids in gave.values() for id in ids]
        if len(flat) != len(set(flat)):
            return "the kubelet allocated a slot twice"
        if strange := set(map(device_of, flat)) - set(node.machine.minors()):
            return f"the kubelet allocated {strange}, which the machine does not have"
        on_device = Counter(map(device_of, flat))
        if doubled := [id for id in flat if "::" not in id and on_device[id] > 1]:
            return f"the kubelet allocated {doubled} whole, and shares of it"
        return ""

    def incomplete(self, node: Node, gave: dict[str, set[str]]) -> str:
        """The slots that the kubelet or the Node object lacks or has in excess, and the allocated slots that are not offered."""
        offers, lists, said = node.offers(), node.kubelet_lists(), self.watch.nodes[node.name]
        if lists != offers:
            return f"the kubelet has {lists}, machine and configuration require {offers}"
        if strange := set().union(*gave.values()) - set().union(*offers.values()):
            return f"the kubelet allocated {strange}, machine and configuration require {offers}"
        counts = {resource: len(ids) for resource, ids in offers.items()}
        if not allocatable(said, "capacity") == allocatable(said) == counts:
            return f"expected {counts}, but capacity is {allocatable(said, 'capacity')} and allocatable {allocatable(said)}"
        return ""
