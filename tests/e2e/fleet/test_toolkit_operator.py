"""The toolkit's fields of a ClusterPolicy on a node whose containerd injects no CDI devices, as its own default is: the agent configures the engine, and pods of the RuntimeClass
get their GPU."""
import os
import re
import signal

import pytest
from actors import DEBIAN, GPU, wait_for
from fleet import NAMESPACE, WITHOUT_CDI
from operators import NATIVE, cluster_policy, forget_taken_back, taken_back, written_by_agents

CLASS, FOLDER, SOCKET, CONFIG = "gpu-containers", "/opt/container-programs", "/run/containerd/containerd.sock", "/etc/containerd/config.toml"
SHOWN, LABEL = (CONFIG, "/etc/containerd/conf.d/*.toml"), "nvidia.com/gpu.deploy.container-toolkit"
# As NVIDIA's documentation names the files of an engine that is installed elsewhere (k3s, RKE2).
ENV = [{"name": "CONTAINERD_CONFIG", "value": CONFIG}, {"name": "CONTAINERD_SOCKET", "value": SOCKET}, {"name": "CONTAINERD_RUNTIME_CLASS", "value": "nvidia"},
       {"name": "CONTAINERD_SET_AS_DEFAULT", "value": "true"}]
OWN_FILES = {key: value for key, value in NATIVE["spec"].items() if key != "hostPaths"}


def native() -> dict:
    """As usual, but the agents configure their engines, and the programs are where the policy says."""
    node = {key: value for key, value in OWN_FILES["node"].items() if key != "containers"}
    return NATIVE | {"spec": OWN_FILES | {"node": node}}


@pytest.fixture
def node(fleet):
    """The node; the engines have their own files again afterwards."""
    before = {one: one.run("cat", CONFIG).stdout for one in fleet.nodes.values()}
    assert not [one.name for one, config in before.items() if "penstock-runtime" in config], "left by another scenario"
    yield fleet.nodes[WITHOUT_CDI]
    fleet.kubectl("label", "node", WITHOUT_CDI, f"{LABEL}-")
    fleet.clear()
    for one, config in before.items():
        one.run("sh", "-c", f"cat > {CONFIG}", input=config)
        one.run("sh", "-c", f"rm -rf /etc/containerd/conf.d /var/lib/penstock/engines {FOLDER}/toolkit/*")  # an agent may still mount the folder
    fleet.cluster.restart_engine(fleet.nodes[WITHOUT_CDI].k)


def listed(output: str) -> list[str]:
    return re.findall(r"\(UUID: (GPU-\S+)\)", output)


def answers(operator) -> str:
    return operator.condition("Ready").get("message", "") + str(operator.policy()["status"]["conditions"])


def test_a_pod_of_the_runtime_class_gets_its_gpu_where_the_engine_was_configured_by_the_policy(operator, node, fleet):
    before = node.run("cat", CONFIG).stdout
    fleet.kubectl("label", "node", node.name, f"{LABEL}=false", "--overwrite")
    operator.apply(native(), cluster_policy(toolkit={"env": ENV, "installDir": FOLDER}, operator={"runtimeClass": CLASS}))
    operator.wait_state("ready", 240)
    assert fleet.kubectl("get", "runtimeclass", CLASS, "-o", "jsonpath={.handler}").stdout == "nvidia"
    said = answers(operator)
    assert "spec.toolkit.env[CONTAINERD_SET_AS_DEFAULT]" in said and "spec.toolkit.env[CONTAINERD_CONFIG]" in said, said
    assert "CONTAINERD_RUNTIME_CLASS" not in said and "CONTAINERD_SOCKET" not in said, "these take effect, or ask for what is so anyway"
    wait_for(lambda: "containerd 1.7" in node.allocator("kubelet").get("deviceListReason", ""), 60, "the engine at the socket of the policy to be asked",
             lambda: node.allocator("kubelet"))

    def configured() -> str:
        return node.view.text(*SHOWN)

    def remarks() -> list[str]:
        return node.status()["configuration"].get("remarks", [])
    wait_for(lambda: any(remark.startswith(f"{LABEL}: ") for remark in remarks()), 60, "the label of the node to be named", remarks)
    others = [one for one in fleet.nodes.values() if one is not node]
    wait_for(lambda: all("penstock-runtime" in one.view.text(*SHOWN) for one in others), 60, "the engines of the other nodes to be configured")
    assert configured() == before, "the label was to keep the engine's configuration as it is"
    fleet.kubectl("label", "node", node.name, f"{LABEL}-")
    wait_for(lambda: f"{FOLDER}/toolkit/penstock-runtime" in configured(), 60, "the engine's configuration to name the runtime in the folder of the policy", configured)
    assert node.run("test", "-x", f"{FOLDER}/toolkit/penstock-runtime", check=False).returncode == 0
    fleet.cluster.restart_engine(node.k)
    wait_for(lambda: node.allocator("kubelet").get("deviceList") == ["cdi-cri"], 120, "the agent to see that the engine injects CDI devices", lambda: node.allocator("kubelet"))
    fleet.wait_offered()
    container = {"name": "main", "image": DEBIAN, "imagePullPolicy": "Never", "command": ["sh", "-c", "nvidia-smi -L"], "resources": {"limits": {GPU: 1}}}
    fleet.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "classed", "labels": {"app": "classed"}},
                  "spec": {"restartPolicy": "Never", "runtimeClassName": CLASS, "nodeSelector": {"kubernetes.io/hostname": node.name}, "containers": [container]}})
    wait_for(lambda: fleet.phase("classed") in ("Succeeded", "Failed"), 120, "the pod to end", lambda: fleet.kubectl("describe", "pod", "classed", check=False).stdout)
    assert listed(fleet.logs_of("classed")) == list(node.machine.minors()), fleet.logs_of("classed")

    # Taken back: the class, and the engines' lines on each node, before the last policy is gone.
    fleet.clear()
    forget_taken_back(fleet)
    for kind in ("clusterpolicies", "penstocks"):
        fleet.kubectl("delete", kind, "--all", "-n", NAMESPACE, "--timeout=400s")
    assert configured() == before
    assert fleet.kubectl("get", "runtimeclass", CLASS, check=False).returncode != 0
    assert not node.agents(), node.processes()
    assert not fleet.get("daemonsets", "-n", NAMESPACE)["items"]
    wait_for(lambda: not fleet.get("pods", "-n", NAMESPACE, "-l", "app.kubernetes.io/instance=penstock-host-release")["items"], 60, "the release's pods to end")
    wait_for(lambda: any(f"what agents left on the hosts of {len(fleet.nodes)} of {len(fleet.nodes)} nodes" in message for message in taken_back(fleet)), 60,
             "the Event to count the nodes", lambda: taken_back(fleet))


def test_a_node_that_is_gone_holds_the_deletion_for_a_minute_and_is_named(operator, node, fleet, measure):
    def configured(one) -> bool:
        return "penstock-runtime" in one.view.text(*SHOWN)
    operator.apply(native(), cluster_policy())
    operator.wait_state("ready", 240)
    wait_for(lambda: all(configured(one) for one in fleet.nodes.values()), 120, "the engines to be configured")
    forget_taken_back(fleet)
    fleet.cluster.kill("kubelet", node=3)
    os.kill(fleet.nodes["n3"].agent(), signal.SIGKILL)  # it would write again what is taken back
    try:
        with measure("the last policy deleted, with a node that is gone"):
            for kind in ("clusterpolicies", "penstocks"):
                fleet.kubectl("delete", kind, "--all", "-n", NAMESPACE, "--timeout=180s")
        assert [name for name, one in fleet.nodes.items() if configured(one)] == ["n3"]
        assert not fleet.get("daemonsets", "-n", NAMESPACE)["items"], "their names are the next policy's, whatever n3 still has"
        wait_for(lambda: any("but not everywhere" in message and "n3: " in message and "`penstock cleanup --host --keep-state`" in message for message in taken_back(fleet)), 60,
                 "the Event to name n3", lambda: taken_back(fleet))
        assert not written_by_agents(fleet), "n3 is gone, its Node is not"
    finally:
        fleet.cluster.start("kubelet", node=3)
    wait_for(lambda: not fleet.nodes["n3"].agents(), 120, "the agent of n3 to have ended")
    gone = fleet.nodes["n3"]
    gone.run(gone.programs / "penstock", "cleanup", "--host", "--keep-state")
    assert not configured(gone)
