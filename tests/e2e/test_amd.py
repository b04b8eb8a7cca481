"""AMD's accelerators beside NVIDIA's GPUs on a real kubelet and containerd: divided by the label of AMD's Device Config Manager, and opened by pods that do not run as root."""
import os
import random
import re
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "support"))

from actors import BUSYBOX, GPU, wait_for  # noqa: E402
from amd import RENDER, VIDEO, Amd  # noqa: E402

RESOURCE = "amd.com/gpu"
PROFILE, STATE = "dcm.amd.com/gpu-config-profile", "dcm.amd.com/gpu-config-profile-state"
CHANGES = int(os.environ.get("PENSTOCK_CHANGES") or (24 if os.environ.get("PENSTOCK_CHECK_ALL") == "1" else 8))  # of modes, under load
MISSING, REFUSED = "No such device or address", "Operation not permitted"  # ENXIO: nothing drives the simulated device; EPERM: the device cgroup


@pytest.fixture
def amd(cluster, machine, agent, kubernetes):
    """Makes eight GPUs on a node that has eight A100."""
    made = []

    def make(**how) -> Amd:
        made.append(Amd(machine.root, inside=tuple(cluster.entering()), **how))
        restart(agent, f"cluster: {{enabled: on, kubeconfig: {cluster.dir}/pki/admin.kubeconfig}}\n")
        wait_for_amount(kubernetes, 8)
        kubernetes.wait_for_gpus(8)
        return made[0]

    yield make
    kubernetes.delete_all_pods()
    kubernetes.kubectl("label", "node", "n1", f"{PROFILE}-", f"{STATE}-")
    for one in made:
        one.unload()
        one.close()
    agent.stop()  # another would wait after a reboot for the driver of the GPUs that a layout divides
    (agent.state_dir / "layout-amd.json").unlink(missing_ok=True)
    restart(agent, "")
    wait_for_amount(kubernetes, 0)
    kubernetes.wait_for_gpus(8)


def restart(agent, configuration: str):
    if agent.running():
        agent.stop()
    agent.configure(configuration)
    agent.start()
    agent.wait_serving()


def wait_for_amount(kubernetes, count: int):
    kubernetes.wait_for_gpus(count, resource=RESOURCE)


def label(kubernetes, key: str) -> str:
    return kubernetes.get("node", "n1")["metadata"]["labels"].get(key, "")


def start_pod(kubernetes, name: str, limits: dict, **security):
    container = {"name": "main", "image": BUSYBOX, "imagePullPolicy": "Never", "command": ["sh", "-c", "exec sleep 100000"], "resources": {"limits": limits},
                 "securityContext": security}
    kubernetes.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
                       "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container]}})
    kubernetes.wait_running(name)


def opened(kubernetes, pod: str, *files: str) -> dict[str, str]:
    """What opening these files, by default all of AMD's that the container has, is answered with."""
    script = f"for file in {' '.join(files) or '/dev/kfd /dev/dri/*'}; do (: <$file) 2>&1 || true; echo \"$file\"; done"
    said, answers = "", {}
    for line in kubernetes.inside(pod, script).splitlines():
        if line.startswith("/"):
            said, answers[line] = "", said
        else:
            said += line
    return answers


def files_of(kubernetes, agent, pod: str, amd: Amd) -> set[str]:
    """Those of the devices that the agent gave to this pod."""
    amds = {amd.id(gpu) for gpu in range(8)}
    held = wait_for(lambda: [holder["device"] for holder in agent.holders("pod") if holder["pod"] == pod and holder["device"][:len(amd.id(0))] in amds],
                    60, f"the agent to know the devices of {pod}", agent.holders)
    places = [(gpu, int(one.removeprefix(amd.id(gpu)).lstrip("-") or 0)) for one in held for gpu in range(8) if one.startswith(amd.id(gpu))]
    minors = [amd.minors[gpu][part] for gpu, part in places]
    return {"/dev/kfd", *(f"/dev/dri/renderD{minor}" for minor in minors), *(f"/dev/dri/card{minor - 128}" for minor in minors)}


def test_issue_93_a_label_divides_the_gpus_and_a_pod_that_is_not_root_opens_its_partition(agent, kubernetes, amd):
    amd = amd(answers=True)
    kubernetes.kubectl("label", "node", "n1", f"{PROFILE}=cpx", "--overwrite")
    wait_for(lambda: label(kubernetes, STATE) == "success", 120, "the GPUs to be divided", lambda: (label(kubernetes, STATE), amd.written, agent.describe()))
    wait_for_amount(kubernetes, 64)
    assert kubernetes.gpus() == 8, "NVIDIA's stay as they are"
    start_pod(kubernetes, "user", {RESOURCE: 1}, runAsUser=1000, runAsGroup=1000, runAsNonRoot=True)
    expected = files_of(kubernetes, agent, "user", amd)
    assert len(expected) == 3
    # By these groups, which the engine gives the container's process, and not as the owner of files.
    assert {str(VIDEO), str(RENDER)} <= {*kubernetes.inside("user", "id -G").split()}
    answers = opened(kubernetes, "user")
    assert set(answers) == expected and all(MISSING in answer for answer in answers.values()), answers
    start_pod(kubernetes, "root", {RESOURCE: 1})
    other = next(minor for minors in amd.minors for minor in minors if f"/dev/dri/renderD{minor}" not in files_of(kubernetes, agent, "root", amd))
    kubernetes.inside("root", f"mknod /tmp/other c 226 {other}")
    assert REFUSED in opened(kubernetes, "root", "/tmp/other")["/tmp/other"], "the partition of another pod"


def test_a_pod_gets_gpus_of_both_vendors(agent, kubernetes, machine, amd):
    first = 1 + max(int(file.name[4:]) for file in (machine.root / "dev/dri").glob("card*"))
    amd = amd(model="mi210", first=first)
    start_pod(kubernetes, "both", {RESOURCE: 2, GPU: 1}, runAsUser=1000, runAsNonRoot=True)
    expected = files_of(kubernetes, agent, "both", amd)
    assert len(expected) == 5
    theirs = {file: answer for file, answer in opened(kubernetes, "both").items() if not file[5:].startswith("dri/") or int(re.sub(r"\D", "", file) or 0) % 128 >= first}
    assert set(theirs) == expected and all(MISSING in answer for answer in theirs.values()), theirs
    files = kubernetes.inside("both", "find /dev -name 'nvidia*' -type c").split()
    assert len([file for file in files if re.fullmatch(r"/dev/nvidia\d+", file)]) == 1 and "/dev/nvidiactl" in files, files
    answers = opened(kubernetes, "both", *files)
    assert set(answers) == {*files} and all(MISSING in answer for answer in answers.values()), answers
    kubernetes.delete_pod("both")
    amd.errors(2, "umc", uncorrectable=1)
    wait_for_amount(kubernetes, 7)
    assert kubernetes.gpus() == 8


def seen_by(kubernetes, pod: str, amd: Amd) -> set[str]:
    """The partitions whose files the pod's container has."""
    files = {*kubernetes.inside(pod, "ls /dev/dri").split()}
    return {f"{amd.id(gpu)}-{part}" for gpu in range(8) for part, minor in enumerate(amd.minors[gpu]) if {f"card{minor - 128}", f"renderD{minor}"} <= files}


def given(kubernetes, agent, amd: Amd) -> dict[str, set[str]]:
    """The partitions of each pod, once the kubelet, the containers and `penstock ps` say the same. Asserts that none has two holders."""
    def once() -> dict[str, set[str]]:
        gave = kubernetes.kubelet.gave("amd.com")
        seen = {pod: seen_by(kubernetes, pod, amd) for pod in gave}
        for pods in (gave, seen):
            everything = [device for devices in pods.values() for device in devices]
            assert len(everything) == len(set(everything)), f"a partition was given twice: {pods}"
        said: dict[str, set[str]] = {}
        for holder in agent.holders("pod"):
            if holder["device"].startswith(tuple(amd.id(gpu) for gpu in range(8))):
                said.setdefault(holder["pod"], set()).add(holder["device"])
        last[:] = [gave, seen, said]
        return gave if gave == seen == said else {}
    last: list = []
    return wait_for(once, 120, "kubelet, containers and penstock ps to agree", lambda: last)


def test_nothing_is_lost_when_the_agent_or_the_kubelet_is_killed_under_pods(cluster, agent, kubernetes, amd):
    amd = amd(answers=True)
    kubernetes.kubectl("label", "node", "n1", f"{PROFILE}=cpx", "--overwrite")
    wait_for_amount(kubernetes, 64)
    counts = {"a": 1, "b": 2, "c": 3}
    for pod, count in counts.items():
        start_pod(kubernetes, pod, {RESOURCE: count})
    before = given(kubernetes, agent, amd)
    assert {pod: len(devices) for pod, devices in before.items()} == counts
    for killed in (("agent",), ("kubelet",), ("agent", "kubelet")):
        if "agent" in killed:
            agent.kill()
        if "kubelet" in killed:
            cluster.kill("kubelet")
            cluster.start("kubelet")
        if "agent" in killed:
            agent.start()
            agent.wait_serving()
        wait_for(lambda: len(kubernetes.kubelet.lists("amd.com").get(RESOURCE, ())) == 64, 120, f"the list after {killed} was killed", agent.describe)  # noqa: B023
        assert given(kubernetes, agent, amd) == before, killed
        assert all(kubernetes.ready(pod) for pod in counts) and amd.modes == ["CPX"] * 8
    wait_for_amount(kubernetes, 64)
    start_pod(kubernetes, "rest", {RESOURCE: 64 - 6})
    after = given(kubernetes, agent, amd)
    assert after.pop("rest").isdisjoint(set().union(*before.values())) and after == before


class Load:
    """Pods that want a device of AMD's each: one that runs throughout, and a Deployment's, which replaces those that are deleted or refused."""

    def __init__(self, kubernetes, agent, amd: Amd):
        self.kubernetes, self.agent, self.amd = kubernetes, agent, amd
        start_pod(kubernetes, "throughout", {RESOURCE: 1})
        container = {"name": "main", "image": BUSYBOX, "imagePullPolicy": "Never", "command": ["sh", "-c", "exec sleep 100000"], "resources": {"limits": {RESOURCE: 1}}}
        kubernetes.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "load"},
                           "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "load"}},
                                    "template": {"metadata": {"labels": {"app": "load"}}, "spec": {"terminationGracePeriodSeconds": 0, "containers": [container]}}}})
        self.wait_running(2)

    def running(self) -> list[str]:
        return [pod["metadata"]["name"] for pod in self.kubernetes.get("pods", "-l", "app=load")["items"]
                if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]]

    def wait_running(self, count: int):
        wait_for(lambda: self.place() is not None and len(self.running()) == count, 240, f"{count} pods to run", lambda: self.kubernetes.kubectl("get", "pods", "-o", "wide").stdout)

    def scale(self, count: int):
        self.kubernetes.kubectl("scale", "deployment/load", f"--replicas={count}")

    def place(self) -> dict[str, int]:
        """The GPU of each pod that the kubelet has given a device and that has it still. Asserts that no device was given twice, and that none is in another mode than it
        was when it was given: whole, or a partition."""
        before = self.kubernetes.kubelet.gave("amd.com")
        modes = list(self.amd.modes)
        gave = {pod: device for pod, (device,) in self.kubernetes.kubelet.gave("amd.com").items() if before.get(pod) == {device}}
        assert len({*gave.values()}) == len(gave), f"a device was given twice: {gave}"
        places = {}
        for pod, device in gave.items():
            places[pod] = next(gpu for gpu in range(8) if device.startswith(self.amd.id(gpu)))
            assert (device != self.amd.id(places[pod])) == (modes[places[pod]] == "CPX"), f"{pod} has {device}, whose GPU is in the mode {modes[places[pod]]}"
        return places

    def is_explained(self, mode: str) -> bool:
        """Whether all GPUs are in the mode but those that pods have, which are the reason why not."""
        places, modes, layout = self.place(), list(self.amd.modes), self.agent.status().get("layout", {})
        in_the_way = {gpu: [pod for pod, its in places.items() if its == gpu] for gpu in range(8) if modes[gpu] != mode.upper()}
        named = all(pods and all(f"pod default/{pod}" in layout.get("reason", "") for pod in pods) for pods in in_the_way.values())
        applied = mode in layout.get("name", "").split(", ")  # beside that of another vendor
        return named and applied and (layout.get("state"), label(self.kubernetes, STATE)) == (("failed", "failure") if in_the_way else ("success", "success"))


@pytest.mark.timeout(600 + 75 * CHANGES)
def test_modes_change_while_pods_start_and_end_and_what_a_pod_has_stays(agent, kubernetes, amd):
    """A GPU is held throughout; what a pod has is named as the reason for which it stays. With few pods on whole GPUs most GPUs are divided, so that they are offered."""
    amd = amd(answers=True, any_process=False)
    chance = random.Random(11)
    try:
        load = Load(kubernetes, agent, amd)
        for number in range(CHANGES):
            mode = ("cpx", "spx")[number % 2]
            kubernetes.kubectl("label", "node", "n1", f"{PROFILE}={mode}", "--overwrite")
            if pods := load.running():
                kubernetes.cluster.api.delete("pod", chance.choice(pods))
            load.scale(chance.choice((2, 3)))
            wait_for(lambda: load.is_explained(mode), 240, f"{mode} to apply but for what pods have", lambda: (load.place(), amd.modes, agent.describe()))  # noqa: B023
        wait_for(lambda: "throughout" in load.place() and amd.modes.count("SPX") >= 5, 120, "all GPUs but those of at most three pods to be whole", lambda: (load.place(), amd.modes))
        kubernetes.kubectl("label", "node", "n1", f"{PROFILE}=cpx", "--overwrite")
        load.scale(10)
        load.wait_running(10)
        wait_for(lambda: load.is_explained("cpx"), 240, "cpx to apply but for what pods have", lambda: (load.place(), amd.modes, agent.describe()))
        wait_for(lambda: len(load.place()) == 11, 120, "the kubelet to have forgotten former pods", load.place)
        assert "pod default/throughout" in agent.status()["layout"]["reason"]
        assert kubernetes.pod("throughout")["status"]["containerStatuses"][0]["restartCount"] == 0
    finally:
        kubernetes.kubectl("delete", "deployment/load", "--ignore-not-found")
