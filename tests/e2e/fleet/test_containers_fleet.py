"""Containers on four nodes: pods get the driver where containerd injects CDI devices, and only their device files elsewhere; a container that restarts needs
no agent."""
import json
import re

import pytest
from actors import BUSYBOX, DEBIAN, GPU, OPENED, REFUSED, wait_for
from fleet import NAMESPACE, WITHOUT_CDI, Fleet, Node, pod_on

HOOK = "/var/lib/penstock/penstock-hook"
SPECIFICATION = "/var/run/cdi/k8s.device-plugin.nvidia.com-gpu.json"
MODELS = {"n1": "NVIDIA A100-SXM4-40GB", "n4": "NVIDIA A100-SXM4-40GB"}


def listed(output: str) -> list[str]:
    """The UUIDs that nvidia-smi -L lists."""
    return re.findall(r"^GPU \d+: .* \(UUID: (GPU-\S+)\)$", output, re.M)


@pytest.fixture
def pods(installed):
    """`pods(node, name, command)`: a pod with one GPU on that node, whose container restarts when it ends. Not before the kubelet has the list of the
    newest agent: it rejects a pod between two lists."""
    def start(node: str, name: str, command: str):
        its = installed.nodes[node]
        wait_for(lambda: its.kubelet_lists() == its.offers(), 60, f"the kubelet of {node} to have its GPUs", its.kubelet_lists)
        installed.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
                          "spec": pod_on(node, command, image=DEBIAN)})
    return start


def test_each_node_says_how_its_engine_gives_devices(installed):
    for name, node in installed.nodes.items():
        allocator = node.allocator("kubelet")
        expected = ["envvar", "device-files"] if name == WITHOUT_CDI else ["cdi-cri"]
        assert allocator["deviceList"] == expected and "containerd 1.7" in allocator["deviceListReason"], f"{name}: {allocator}"
        named = {device["name"] for device in json.loads(node.run("cat", SPECIFICATION).stdout)["devices"]}
        assert named == set(node.machine.minors()), name
    assert "enable_cdi" in installed.nodes[WITHOUT_CDI].allocator("kubelet")["deviceListReason"]


def test_jobs_that_run_nvidia_smi_list_their_one_gpu(installed, measure):
    """Walkthrough H, on two nodes at once; the programs that the specifications call are on the host, and run there."""
    for name in MODELS:
        assert HOOK in installed.nodes[name].run("cat", SPECIFICATION).stdout
        container = {"name": "main", "image": DEBIAN, "imagePullPolicy": "Never", "command": ["nvidia-smi"], "resources": {"limits": {GPU: 1}}}
        spec = {"restartPolicy": "Never", "nodeSelector": {"kubernetes.io/hostname": name}, "containers": [container]}
        installed.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": f"smi-{name}"},
                          "spec": {"backoffLimit": 0, "template": {"spec": spec}}})
    with measure("Jobs that run nvidia-smi are complete"):
        installed.kubectl("wait", "--for=condition=Complete", "--timeout=180s", "--request-timeout=190s", *(f"job/smi-{name}" for name in MODELS))
    for name, model in MODELS.items():
        said = installed.kubectl("logs", f"job/smi-{name}").stdout
        assert said.count(model) == 1, said


def test_a_pod_without_cdi_has_its_device_file_and_no_other(installed, pods):
    node = installed.nodes[WITHOUT_CDI]
    pods(WITHOUT_CDI, "plain", "exec sleep 100000")
    installed.wait_held("plain")
    [minor] = node.machine.minors().values()
    assert installed.openable("plain", (minor, 7)) == {minor: OPENED, 7: REFUSED}
    installed.check()


# A program named kubelet, whose configuration file is a FIFO without a writer.
CALLS_ITSELF_KUBELET = ("cp /bin/busybox /tmp/kubelet && mkfifo -m 666 /tmp/config.yaml && "
                        "exec -a busybox /tmp/kubelet sh -c 'while :; do sleep 1000; done' kubelet --config=/tmp/config.yaml")


def test_a_pod_that_calls_itself_the_kubelet_changes_nothing_for_an_agent_that_starts(installed):
    container = {"name": "main", "image": BUSYBOX, "imagePullPolicy": "Never", "command": ["sh", "-c", CALLS_ITSELF_KUBELET]}
    installed.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "impostor"},
                      "spec": {"hostPID": True, "terminationGracePeriodSeconds": 0, "nodeSelector": {"kubernetes.io/hostname": "n1"},
                               "containers": [container]}})
    node = installed.nodes["n1"]
    wait_for(lambda: "/tmp/kubelet" in node.view.executables(), 60, "the impostor to run on the node")
    installed.kubectl("delete", "pod", "-n", NAMESPACE, installed.agent_pods()["n1"])
    installed.wait_rolled_out()
    wait_for(lambda: (allocator := node.allocator("kubelet")).get("deviceList") == ["cdi-cri"] and "containerd 1.7" in allocator["deviceListReason"], 60,
             "the agent to know how the engine gives devices", lambda: node.allocator("kubelet"))
    installed.check()


def test_a_container_starts_again_in_its_place_while_its_agent_is_replaced(installed, pods):
    pods("n1", "phoenix", "nvidia-smi -L; exec sleep 100000")
    before = wait_for(lambda: listed(installed.logs_of("phoenix")), 60, "the pod to list its GPU")
    assert len(before) == 1
    installed.restart_agents()
    end_container(installed, installed.nodes["n1"], "phoenix")
    installed.wait_rolled_out()
    wait_for(lambda: restarts(installed, "phoenix") == 1 and listed(installed.logs_of("phoenix")) == before, 60,
             "the container to list the same GPU again", lambda: installed.get("pod", "phoenix")["status"])
    installed.check()


def restarts(fleet: Fleet, pod: str) -> int:
    return fleet.get("pod", pod)["status"]["containerStatuses"][0]["restartCount"]


def end_container(fleet: Fleet, node: Node, pod: str):
    """Kills the process from outside, as a crash does, since a namespace's first process ignores signals from inside."""
    container = fleet.get("pod", pod)["status"]["containerStatuses"][0]["containerID"].removeprefix("containerd://")
    node.run("ctr", "-n", "k8s.io", "task", "kill", "--signal", "KILL", container)
