"""AMD's accelerators beside NVIDIA's GPUs on a real kubelet and containerd: divided by the label of AMD's Device Config Manager, and opened by pods that do not run as root."""
import re
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "support"))

from actors import BUSYBOX, GPU, wait_for  # noqa: E402
from amd import Amd  # noqa: E402

RESOURCE = "amd.com/gpu"
PROFILE, STATE = "dcm.amd.com/gpu-config-profile", "dcm.amd.com/gpu-config-profile-state"
MISSING, REFUSED = "No such device or address", "Operation not permitted"  # ENXIO: nothing drives the simulated device; EPERM: the device cgroup


@pytest.fixture
def amd(cluster, machine, agent, kubernetes):
    """Makes eight GPUs on a node that has eight A100."""
    made = []

    def make(**how) -> Amd:
        made.append(Amd(machine.root, inside=tuple(cluster.entering()), **how))
        restart(agent, f"cluster: {{enabled: on, kubeconfig: {cluster.dir}/pki/admin.kubeconfig}}\n")
        wait_for_amount(kubernetes, 8)
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


def amount(kubernetes) -> int:
    return int(kubernetes.get("node", "n1")["status"]["allocatable"].get(RESOURCE, 0))


def wait_for_amount(kubernetes, count: int):
    wait_for(lambda: amount(kubernetes) == count, 120, f"the node to have {count} of {RESOURCE}", lambda: kubernetes.get("node", "n1")["status"]["allocatable"])


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


def test_a_label_divides_the_gpus_and_a_pod_that_is_not_root_opens_its_partition(agent, kubernetes, amd):
    amd = amd(answers=True)
    kubernetes.kubectl("label", "node", "n1", f"{PROFILE}=cpx", "--overwrite")
    wait_for(lambda: label(kubernetes, STATE) == "success", 120, "the GPUs to be divided", lambda: (label(kubernetes, STATE), amd.written, agent.describe()))
    wait_for_amount(kubernetes, 64)
    assert kubernetes.gpus() == 8, "NVIDIA's stay as they are"
    start_pod(kubernetes, "user", {RESOURCE: 1}, runAsUser=1000, runAsGroup=1000, runAsNonRoot=True)
    expected = files_of(kubernetes, agent, "user", amd)
    assert len(expected) == 3
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
    files = kubernetes.inside("both", "ls /dev").split()
    assert len([file for file in files if file.startswith("nvidia") and file[6:].isdigit()]) == 1, files
    kubernetes.delete_pod("both")
    amd.errors(2, "umc", uncorrectable=1)
    wait_for_amount(kubernetes, 7)
    assert kubernetes.gpus() == 8
