"""Measures the operator in a cluster of 1,001 nodes, before one real API server: how soon nodes are labelled and at which rate, what it writes, and what it costs.
One node has a real agent on a simulated machine; the other nodes are played: their Node objects with what a kubelet and NFD write, and copies of what the agent
has written. Needs root; starts a separate etcd and API server, without controllers, so that the server has no other clients. Writes are counted in the API
server's audit log."""
import copy
import json
import math
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from datetime import datetime
from pathlib import Path

import yaml
from bed import Bed
from control_plane import ControlPlane
from figures import ROOT, Bench
from footprint import KIB, memory, precise, resident
from inside import SERVER, wait_until

sys.path.append(str(ROOT / "tests/e2e/fleet"))
from witnesses import Audit, summed  # noqa: E402

SPACE, FIRST = "gpu-operator", "n0"
OPERATOR, AGENT, LOAD = (f"system:serviceaccount:{SPACE}:{name}" for name in ("penstock-operator", "penstock", "load"))
AUDIT = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["ResponseStarted", "ResponseComplete"],
         "rules": [{"level": "Metadata", "users": [OPERATOR, AGENT]}, {"level": "None"}]}
POLICY, STATES, NODES = "/apis/nvidia.com/v1/clusterpolicies/cluster-policy", "/apis/penstock.io/v1alpha1/nodestates", "/api/v1/nodes"
SETS = f"/apis/apps/v1/namespaces/{SPACE}/daemonsets"
PODS = f"/api/v1/namespaces/{SPACE}/pods"
PRESENT, POOL = "nvidia.com/gpu.present", "penstock.io/driver-pool"
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
VERSION = "550.54.15"
MB_PER_MIB = 1.048576


# --- what kubelets and NFD write --------------------------------------------------------------------------------------------------------
def now() -> str:
    return datetime.now().astimezone().isoformat(timespec="seconds")


def features() -> dict[str, str]:
    """As many labels as NFD writes to a server with GPUs."""
    cpu = ("ADX AESNI AMXBF16 AMXINT8 AMXTILE AVX AVX2 AVX512BF16 AVX512BITALG AVX512BW AVX512CD AVX512DQ AVX512F AVX512FP16 AVX512IFMA AVX512VBMI AVX512VNNI "
           "AVX512VL BHI_CTRL CETIBT CETSS CLDEMOTE CMPXCHG8 FMA3 FSRM FXSR GFNI IA32_ARCH_CAP IBPB LAHF MOVBE MOVDIR64B OSXSAVE SERIALIZE SHA SYSCALL TME TSXLDTRK "
           "VAES VMX VPCLMULQDQ WAITPKG WBNOINVD X87 XGETBV1 XSAVE XSAVEC XSAVEOPT XSAVES").split()
    prefix = "feature.node.kubernetes.io/"
    return {f"{prefix}cpu-cpuid.{flag}": "true" for flag in cpu} | {
        f"{prefix}cpu-hardware_multithreading": "true", f"{prefix}cpu-model.family": "6", f"{prefix}cpu-model.vendor_id": "Intel",
        f"{prefix}kernel-version.full": "5.15.0-105-generic", f"{prefix}kernel-version.major": "5", f"{prefix}memory-numa": "true",
        f"{prefix}pci-10de.present": "true", f"{prefix}pci-15b3.present": "true", f"{prefix}rdma.available": "true", f"{prefix}rdma.capable": "true",
        f"{prefix}system-os_release.ID": "ubuntu", f"{prefix}system-os_release.VERSION_ID": "22.04",
        f"{prefix}system-os_release.VERSION_ID.major": "22", f"{prefix}system-os_release.VERSION_ID.minor": "04"}


BEGIN = now()


def conditions() -> list[dict]:
    texts = {"MemoryPressure": ("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
             "DiskPressure": ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
             "PIDPressure": ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
             "Ready": ("True", "KubeletReady", "kubelet is posting ready status")}
    return [{"type": kind, "status": status, "reason": reason, "message": message, "lastHeartbeatTime": now(), "lastTransitionTime": BEGIN}
            for kind, (status, reason, message) in texts.items()]


def images() -> list[dict]:
    """The fifty largest, as a kubelet lists them."""
    return [{"names": [f"registry.example.com/team-{i % 7}/service-{i}@sha256:{i:064x}", f"registry.example.com/team-{i % 7}/service-{i}:1.{i}.0"],
             "sizeBytes": 10**9 - i * 10**7} for i in range(50)]


def node(name: str) -> dict:
    labels = {"kubernetes.io/arch": "amd64", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "amd64",
              "beta.kubernetes.io/os": "linux", "node.kubernetes.io/instance-type": "gpu-8", "topology.kubernetes.io/region": "r1",
              "topology.kubernetes.io/zone": "r1-a"} | features()
    resources = {"cpu": "224", "ephemeral-storage": "28T", "hugepages-1Gi": "0", "hugepages-2Mi": "0", "memory": "2113407800Ki", "pods": "110"}
    kubelet = {"architecture": "amd64", "bootID": name, "containerRuntimeVersion": "containerd://1.7.24", "kernelVersion": "5.15.0-105-generic",
               "kubeProxyVersion": "v1.33.0", "kubeletVersion": "v1.33.0", "machineID": name, "operatingSystem": "linux", "osImage": "Ubuntu 22.04.4 LTS",
               "systemUUID": name}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {
        "name": name, "labels": labels, "annotations": {
            "nfd.node.kubernetes.io/feature-labels": ",".join(key.partition("/")[2] for key in features()), "node.alpha.kubernetes.io/ttl": "0",
            "volumes.kubernetes.io/controller-managed-attach-detach": "true"}},
        "spec": {"podCIDR": "10.0.0.0/24", "providerID": f"example:///{name}"},
        "status": {"addresses": [{"type": "InternalIP", "address": "10.1.2.3"}, {"type": "Hostname", "address": name}], "capacity": resources,
                   "allocatable": resources, "conditions": conditions(), "images": images(), "nodeInfo": kubelet}}


class Call(dict):
    """One request of the load."""

    def __init__(self, method: str, path: str, body: dict, kind: str = "application/json", **query: str):
        super().__init__(method=method, path=path, body=body, type=kind, query=query)


def heartbeat(name: str) -> Call:
    """As a kubelet writes every five minutes."""
    return Call("PATCH", f"{NODES}/{name}/status", {"status": {"conditions": conditions()}}, "application/strategic-merge-patch+json")


# --- the cluster ------------------------------------------------------------------------------------------------------------------------
class Scene:
    """The control plane, the operator, one real agent, and the players of all other nodes."""

    def __init__(self, programs: Path, nodes: int, bed: Bed):
        self.programs, self.names, self.bed = programs, [f"node-{i:04}" for i in range(nodes)], bed
        self.cluster = ControlPlane(bed.home / "cluster")
        self.started: list[subprocess.Popen] = []
        self.operator = 0  # its pid

    def up(self):
        policy, log = self.cluster.dir / "audit.json", self.cluster.dir / "log/audit.log"
        policy.parent.mkdir(parents=True)
        policy.write_text(json.dumps(AUDIT))
        self.cluster.up(f"--audit-policy-file={policy} --audit-log-path={log}")
        self.api, self.audit = self.cluster.api, Audit(log)
        self.kubectl("create", "namespace", SPACE)
        load = self.start(self.programs / "bench-kube-load", self.access("load"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.load = load

    def kubectl(self, *words) -> str:
        return self.cluster.run("kubectl", *words).stdout

    def access(self, account: str) -> Path:
        """A service account's kubeconfig: an administrator's requests would bypass the server's own queues."""
        self.kubectl("create", "serviceaccount", account, "-n", SPACE)
        self.kubectl("create", "clusterrolebinding", account, "--clusterrole=cluster-admin", f"--serviceaccount={SPACE}:{account}")
        token = self.kubectl("create", "token", account, "-n", SPACE, "--duration=6h").strip()
        path = self.cluster.dir / f"{account}.kubeconfig"
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "it", "users": [{"name": "it", "user": {"token": token}}],
            "clusters": [{"name": "it", "cluster": {"server": f"https://{SERVER}:6443", "certificate-authority": str(self.cluster.dir / "pki/ca.crt")}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}]}))
        return path

    def start(self, *command, **options) -> subprocess.Popen:
        process = subprocess.Popen([*self.cluster.entering(), *(str(word) for word in command)], **options)
        self.started.append(process)
        return process

    @staticmethod
    def pid_of(process: subprocess.Popen, name: str) -> int:
        """nsenter forks when it enters a pid namespace: the program is its child, or its child's child."""
        def found():
            pid = process.pid
            while Path(f"/proc/{pid}/comm").read_text().strip() != name[:15]:
                children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
                if not children:
                    return 0
                pid = int(children[0])
            return pid
        return wait_until(found, 20, f"the start of {name}")

    def start_operator(self):
        log = open(self.bed.home / "operator.log", "a")
        process = self.start(self.programs / "penstock-operator", "--kubeconfig", self.access("penstock-operator"), "--namespace", SPACE, "--agent-image",
                             "localhost/penstock:bench", "--listen", "127.0.0.1:8080", stderr=log)
        self.operator = self.pid_of(process, "penstock-operator")

    def start_agent(self):
        """The agent of the first node, which writes its labels and its NodeState."""
        bed, log = self.bed, open(self.bed.home / "agent.log", "a")
        self.start(self.programs / "penstock-agent", "--config", bed.config, "--driver-root", bed.root, "--dev-root", bed.root, "--sysfs-root", bed.root / "sys",
                   "--kubelet-dir", bed.kubelet_dir, "--cdi-root", bed.home / "cdi", "--state-dir", bed.home / "state", "--run-dir", bed.run_dir,
                   "--listen", "127.0.0.1:9400", "--node-name", FIRST, "--kubeconfig", self.access("penstock"), stderr=log)

    def end(self):
        for process in self.started:
            process.kill()
            process.wait()
        self.cluster.down()

    def send(self, calls: list[Call], at_once: int = 16, per_second: float = 0) -> dict:
        """The load sends these requests; its answer has the seconds that took."""
        self.begin(calls, at_once, per_second)
        return self.result()

    def begin(self, calls: list[Call], at_once: int = 16, per_second: float = 0):
        file = self.bed.home / "calls"
        file.write_text("".join(json.dumps(call) + "\n" for call in calls))
        self.load.stdin.write(f"send {file} {at_once} {per_second}\n")
        self.load.stdin.flush()

    def result(self) -> dict:
        told = json.loads(self.load.stdout.readline())
        if told.get("failed"):
            raise RuntimeError(f"{told['failed']} of {told['sent']} requests of the load failed: {told['why']}")
        return told

    def patch(self, path: str, change: dict):
        self.api.request("PATCH", path, change, MERGE)

    def get(self, path: str) -> dict:
        return json.loads(self.api.request("GET", path))

    def policy(self) -> dict:
        return self.get(POLICY)

    def set_agents(self, count: int):
        """As the controller of DaemonSets says it."""
        generation = wait_until(lambda: self.find(f"{SETS}/penstock-agent"), 60, "the agents' DaemonSet")["metadata"]["generation"]
        self.patch(f"{SETS}/penstock-agent/status", {"status": {"observedGeneration": generation} | dict.fromkeys(
            ("currentNumberScheduled", "desiredNumberScheduled", "numberAvailable", "numberReady", "updatedNumberScheduled"), count)})

    def find(self, path: str) -> dict | None:
        try:
            return self.get(path)
        except RuntimeError:
            return None

    def writes(self, begin: float, resource: str = "", who: str = OPERATOR) -> list[dict]:
        """Of the operator since then, but the renewals of its Lease."""
        def kind(event):
            reference = event.get("objectRef", {})
            return "/".join(filter(None, (reference.get("resource", ""), reference.get("subresource"))))
        return [event for event in self.audit.writes(begin, who=who) if kind(event) != "leases" and (not resource or kind(event) == resource)]

    def wait_quiet(self, begin: float, seconds: float = 6) -> float:
        """Until the operator has written nothing for a while; returns the time of its last write since `begin`."""
        wait_until(lambda: time.time() - begin > seconds and not self.writes(time.time() - seconds), 300, "the operator to be quiet", 0.5)
        return max((at_of(event) for event in self.writes(begin)), default=begin)

    def cost(self) -> float:
        return precise(self.operator)

    def footprint(self) -> tuple[float, float]:
        """RSS and PSS in MB."""
        return resident(self.operator) * MB_PER_MIB, memory(self.operator)["Pss"] / KIB * MB_PER_MIB


def at_of(event: dict) -> float:
    return datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp()


def rate_of(events: list[dict]) -> float:
    """Requests per second."""
    times = [at_of(event) for event in events]
    return (len(times) - 1) / max(1e-6, max(times) - min(times))


def most_of_one(events: list[dict]) -> int:
    """The most writes of one object."""
    return max(Counter((event["objectRef"]["resource"], event["objectRef"].get("name")) for event in events).values(), default=0)


# --- the phases -------------------------------------------------------------------------------------------------------------------------
class Measures:
    """Runs the phases one after another; each leaves the cluster quiet."""

    def __init__(self, scene: Scene, bench: Bench, smoke: bool):
        self.scene, self.bench, self.smoke = scene, bench, smoke
        self.count = len(scene.names) + 1

    def of_one_node(self):
        scene, bench = self.scene, self.bench
        scene.api.create(node(FIRST))
        scene.start_operator()
        policy = yaml.safe_load((ROOT / "src/api/compat/nvidia/testdata/cluster-policy/olm.yaml").read_text())
        policy["metadata"]["name"] = "cluster-policy"
        policy["spec"]["driver"] |= {"repository": "nvcr.io/nvidia", "image": "driver", "version": VERSION}
        wait_until(lambda: scene.find(POLICY.rpartition("/")[0]) and scene.find(STATES), 60, "the definitions")
        scene.api.request("POST", POLICY.rpartition("/")[0], policy)
        scene.start_agent()
        self.state = wait_until(lambda: (scene.find(f"{STATES}/{FIRST}") or {}).get("status"), 60, "the agent's report") and scene.get(f"{STATES}/{FIRST}")
        scene.set_agents(1)
        time.sleep(1 if self.smoke else 15)  # the agent looks often at first
        self.state = scene.get(f"{STATES}/{FIRST}")
        rss, pss = scene.footprint()
        bench.add("memory of the operator at 1 node: RSS", "MB", rss, goal=15)
        bench.add("PSS", "MB", pss, detail=True)
        self.at_rest([FIRST])

    def nodes_appear(self):
        """All Nodes are created as fast as the server takes them."""
        scene, bench = self.scene, self.bench
        scene.wait_quiet(time.time())
        begin, cost = time.time(), scene.cost()
        told = scene.send([Call("POST", NODES, node(name)) for name in scene.names])
        last = scene.wait_quiet(begin)
        writes = scene.writes(begin, "nodes")
        self.check_labelled()
        bench.add(f"{len(scene.names):,} nodes appear: first Node created to last Node labelled", "s", last - begin)
        bench.add("the creation of the Nodes itself", "s", told["seconds"], detail=True)
        bench.add("writes of a Node, at most", "", most_of_one(writes), goal=2, detail=True)
        bench.add("writes of Nodes in all", "", len(writes), detail=True)
        bench.add("our writes while they appear", "/s", rate_of(writes), detail=True)
        self.appearing = rate_of(writes), (len(writes) + len(scene.names)) / (last - begin)
        bench.add("processor time of the operator", "s", scene.cost() - cost, detail=True)

    def check_labelled(self):
        nodes = self.scene.get(f"{NODES}?labelSelector={PRESENT}=true")["items"]
        if len(nodes) != self.count:
            raise RuntimeError(f"{len(nodes)} of {self.count} nodes are labelled")

    def against_the_limit(self):
        """One field of the policy makes the operator write every Node; the load writes as much as fast as it can."""
        scene, bench = self.scene, self.bench
        begin = time.time()
        scene.patch(POLICY, {"spec": {"driver": {"upgradePolicy": {"autoUpgrade": False}}}})
        scene.wait_quiet(begin)
        annotation = "nvidia.com/gpu-driver-upgrade-enabled"
        begin, cost = time.time(), scene.cost()
        scene.patch(POLICY, {"spec": {"driver": {"upgradePolicy": {"autoUpgrade": True}}}})
        scene.wait_quiet(begin)
        writes, spent = scene.writes(begin, "nodes"), scene.cost() - cost
        example = scene.get(f"{NODES}/{scene.names[0]}")
        ours = next(entry for entry in example["metadata"]["managedFields"] if entry["manager"] == "penstock-operator")["fieldsV1"]["f:metadata"]
        labels = {f"bench.{key[2:].partition('/')[2]}": "true" for key in ours["f:labels"]}
        calls = [Call("PATCH", f"{NODES}/{name}", {"apiVersion": "v1", "kind": "Node", "metadata": {
            "name": name, "labels": labels, "annotations": {f"bench.{annotation.partition('/')[2]}": "true"}}},
                      APPLY, fieldManager="load", force="true") for name in [FIRST, *scene.names]]
        limit = len(calls) / scene.send(calls)["seconds"]
        bench.add("a field that concerns every Node: our writes", "/s", rate_of(writes))
        bench.add("equal writes by the load, 16 at once: the server's limit", "/s", limit, detail=True)
        bench.add("share of that limit", "%", 100 * rate_of(writes) / limit, detail=True)
        labelled, all_writes = self.appearing
        bench.add("share of that limit while the nodes appeared", "%", 100 * labelled / limit, detail=True)
        bench.add("with the creations of the Nodes", "%", 100 * all_writes / limit, detail=True)
        bench.add("writes of an object, at most", "", most_of_one(scene.writes(begin, "nodes")), goal=2, detail=True)
        bench.add("processor time of the operator for one Node", "ms", 1000 * spent / self.count, detail=True)

    # What the agents write.

    def report(self, name: str, round_: int, driver: str = "", ready: bool = True) -> Call:
        """As the real agent does, field by field, with a driver in a container, or none."""
        status = copy.deepcopy(self.state["status"])
        for vendor in status["vendors"]:
            if vendor["vendor"] == "nvidia":
                for key in ("driver", "driverSource", "driverSince"):
                    vendor.pop(key, None)
                if driver:
                    vendor |= {"driver": driver, "driverSource": "container", "driverSince": now()}
        for one in status["conditions"]:
            if one["type"] == "Ready":
                message = f"round {round_}: 8 devices of {name} " + ("are ready" if ready else "do not work, for a reason that is told at some length " * 8)
                one |= {"status": "True" if ready else "False", "reason": "Ready" if ready else "DriverMissing", "message": message, "lastTransitionTime": now()}
        state = {"apiVersion": "penstock.io/v1alpha1", "kind": "NodeState", "metadata": {"name": name}, "status": status}
        return Call("PATCH", f"{STATES}/{name}", state, APPLY, fieldManager="penstock", force="true")

    def reports(self, round_: int, driver: str = "", ready: bool = True) -> list[Call]:
        return [self.report(name, round_, driver, ready) for name in self.scene.names]

    def change_all(self, what: str, calls: list[Call]) -> float:
        """All NodeStates change; adds what that costs, and returns when it began."""
        scene, bench = self.scene, self.bench
        begin, cost = time.time(), scene.cost()
        told = scene.send(calls)
        took, spent = time.time() - begin, scene.cost() - cost
        scene.wait_quiet(begin)
        bench.add(f"{what}: processor time of the operator meanwhile", "% of a core", 100 * spent / took, goal=50)
        bench.add("for one NodeState, with what followed", "ms", 1000 * (scene.cost() - cost) / len(calls), detail=True)
        bench.add("NodeStates written", "/s", len(calls) / told["seconds"], detail=True)
        self.add_status(begin)
        return begin

    def add_status(self, begin: float):
        writes = self.scene.writes(begin, "clusterpolicies/status")
        times = sorted(at_of(event) for event in writes)
        gaps = [later - sooner for sooner, later in zip(times, times[1:])]
        status = self.scene.policy()["status"]
        self.bench.add("writes of the status", "", len(writes), detail=True)
        if gaps:
            self.bench.add("shortest time between two of them", "s", min(gaps), detail=True)
        self.bench.add("size of the status", "KiB", len(json.dumps(status)) / 1024, goal=64, detail=True)
        self.bench.add("nodes named in it", "", len(status["nodes"].get("notReady", [])), goal=21, detail=True)

    def agents_report(self):
        """Labels and NodeStates of all agents for the first time: no driver yet."""
        scene, bench = self.scene, self.bench
        labels = {key: value for key, value in scene.get(f"{NODES}/{FIRST}")["metadata"]["labels"].items() if key.startswith("nvidia.com/gpu.")}
        scene.set_agents(self.count)
        calls = []
        for call, name in zip(self.reports(0, ready=False), scene.names):
            calls += [call, Call("PATCH", f"{NODES}/{name}", {"apiVersion": "v1", "kind": "Node", "metadata": {
                "name": name, "labels": {key: value for key, value in labels.items() if "deploy" not in key and key != PRESENT}}},
                                 APPLY, fieldManager="penstock-labels", force="true")]
        begin = self.change_all("all agents report, without a driver", calls)
        writes = scene.writes(begin, "nodes")
        bench.add("Nodes that get a pool of a driver: writes of one, at most", "", most_of_one(writes), goal=2, detail=True)
        bench.add("writes of Nodes in all", "", len(writes), detail=True)

    def drivers_run(self):
        """The pods of driver containers, and the reports that follow from them."""
        scene, bench = self.scene, self.bench
        name = wait_until(lambda: scene.get(f"{NODES}/{scene.names[0]}")["metadata"]["labels"].get(POOL), 60, "a node's pool")
        template = scene.get(f"{SETS}/{name}")["spec"]["template"]
        calls, ready = [], []
        for node_name in scene.names:
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": template["metadata"] | {"name": f"driver-{node_name}", "namespace": SPACE},
                   "spec": template["spec"] | {"nodeName": node_name, "serviceAccountName": "load", "automountServiceAccountToken": False}}
            calls.append(Call("POST", PODS, pod))
            ready.append(Call("PATCH", f"{PODS}/driver-{node_name}/status", {"status": {
                "phase": "Running", "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": now()}],
                "containerStatuses": [{"name": "nvidia-driver-ctr", "image": "driver", "imageID": "driver", "ready": True, "restartCount": 0, "started": True,
                                       "state": {"running": {"startedAt": now()}}}]}}, MERGE))
        begin, cost = time.time(), scene.cost()
        scene.send(calls)
        scene.send(ready)
        took, spent = time.time() - begin, scene.cost() - cost
        bench.add("all pods of drivers appear and become ready: processor time of the operator meanwhile", "% of a core", 100 * spent / took, goal=50)
        begin = self.change_all("all agents report their driver and are ready", self.reports(1, VERSION))
        writes = scene.writes(begin, "nodes")
        bench.add("writes of a Node, at most (that it is done, and which driver worked)", "", most_of_one(writes), goal=3, detail=True)
        self.wait_state("ready")

    def wait_state(self, state: str):
        self.scene.set_agents(self.count)
        wait_until(lambda: self.scene.policy()["status"]["state"] == state, 60, f"the policy to be {state}")

    def all_change(self):
        self.change_all("all NodeStates change, and no node's readiness", self.reports(2, VERSION))
        self.change_all("all nodes become not ready", self.reports(3, VERSION, ready=False))
        self.change_all("all nodes become ready again", self.reports(4, VERSION))
        self.wait_state("ready")

    def memory(self):
        rss, pss = self.scene.footprint()
        self.bench.add(f"memory of the operator at {self.count:,} nodes: RSS", "MB", rss, goal=40)
        self.bench.add("PSS", "MB", pss, detail=True)

    def at_rest(self, names: list[str] | None = None):
        """Only the kubelets of these nodes, by default of all that are played, write: each its Node's status every five minutes."""
        scene, bench = self.scene, self.bench
        names = names or scene.names
        seconds = 5 if self.smoke else 300
        scene.wait_quiet(time.time())
        begin, cost = time.time(), scene.cost()
        beats = [heartbeat(name) for name in names][:max(1, math.ceil(len(names) * seconds / 300))]
        scene.send(beats, 2, len(beats) / seconds)
        time.sleep(max(0.0, begin + seconds - time.time()))
        spent = scene.cost() - cost
        writes = scene.writes(begin) + scene.writes(begin, who=AGENT)
        if writes:
            bench.note(f"Writes at rest with {len(names):,} nodes: {summed(writes)}")
        nodes = "1 node" if len(names) == 1 else f"{self.count:,} nodes"
        bench.add(f"at rest for {seconds} s with {nodes}: writes of operator and agent but the Lease", "", len(writes), goal=1)
        leases = [event for event in scene.audit.writes(begin, who=OPERATOR) if event not in writes]
        bench.add("renewals of the Lease", "", len(leases), detail=True)
        reads = [event for event in scene.audit.between(begin, who=OPERATOR) if event["verb"] in ("get", "list")]
        bench.add("reads", "", len(reads), detail=True)
        bench.add("processor time of the operator, with the kubelets' heartbeats", "% of a core", 100 * spent / (time.time() - begin), goal=1, detail=True)

    def one_field(self):
        """Fields that concern one object."""
        scene, bench = self.scene, self.bench
        begin = time.time()
        scene.patch(POLICY, {"spec": {"mig": {"strategy": "mixed"}}})
        scene.wait_quiet(begin)
        self.wait_state("ready")
        scene.wait_quiet(time.time())
        writes = [event for event in scene.writes(begin) if event["objectRef"].get("subresource") != "status" and event["objectRef"]["resource"] != "events"]
        bench.add("mig.strategy changes: writes of an object, at most", "", most_of_one(writes), goal=2)
        bench.add("writes in all but the status and Events", "", len(writes), detail=True)
        bench.note(f"After a change of mig.strategy: {summed(writes)}")

    def driver_changes(self):
        """An upgrade begins: the label of each node says so, and the first node is cordoned; nothing goes on, since no DaemonSet controller runs."""
        scene, bench = self.scene, self.bench
        begin, cost = time.time(), scene.cost()
        scene.patch(POLICY, {"spec": {"driver": {"version": "570.86.10"}}})
        last = scene.wait_quiet(begin)
        writes = scene.writes(begin, "nodes")
        names = Counter(event["objectRef"]["name"] for event in writes)
        bench.add("a driver's new version: to the last Node that says so", "s", last - begin)
        bench.add("Nodes written once", "", sum(count == 1 for count in names.values()), detail=True)
        bench.add("Nodes written more often (the node that is upgraded)", "", sum(count > 1 for count in names.values()), detail=True)
        bench.add("processor time of the operator", "s", scene.cost() - cost, detail=True)
        begin, cost = time.time(), scene.cost()
        time.sleep(2 if self.smoke else 60)
        bench.add("while the upgrade waits: processor time of the operator", "% of a core", 100 * (scene.cost() - cost) / (time.time() - begin), goal=1)
        bench.add("writes meanwhile", "", len(scene.writes(begin)), detail=True)


def measure(programs, smoke: bool) -> Bench:
    nodes = 20 if smoke else 1000
    bench = Bench("operator", f"The operator of {nodes + 1:,} nodes before one API server, with a ClusterPolicy and driver containers")
    with Bed(programs, kubelet=False) as bed:
        scene = Scene(programs, nodes, bed)
        try:
            scene.up()
            measures = Measures(scene, bench, smoke)
            begin = time.time()
            for phase in (measures.of_one_node, measures.nodes_appear, measures.against_the_limit, measures.agents_report, measures.drivers_run,
                          measures.all_change, measures.memory, measures.at_rest, measures.one_field, measures.driver_changes, measures.memory):
                phase()
            bench.note(f"All requests of the operator: {summed(scene.audit.between(begin, who=OPERATOR))}.")
        except BaseException:
            print((bed.home / "operator.log").read_text()[-3000:] if (bed.home / "operator.log").exists() else "no operator", file=sys.stderr)
            raise
        finally:
            scene.end()
    return bench
