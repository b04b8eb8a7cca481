"""helm install makes the nodes report their GPUs; idle agents send no requests; helm uninstall removes everything."""
import time

from actors import GPU, wait_for
from catalogue import LABELS, MODELS
from fleet import NAMESPACE
from witnesses import summed

OUR_LABELS = ("nvidia.com/", "feature.node.kubernetes.io/")


def ours(labels: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in labels.items() if key.startswith(OUR_LABELS)}


def test_four_nodes_advertise_what_they_have_after_helm_install(fleet, measure):
    fleet.clear()
    if fleet.values is not None:
        fleet.uninstall()
        fleet.wait_advertised(60, but={name: 0 for name in fleet.nodes})
    with measure("helm install: four Node objects have their GPUs", goal=5) as it:
        fleet.install()
        it.done = fleet.wait_advertised(60)
    fleet.wait_rolled_out()
    fleet.check()


def test_labels_are_the_machines(installed):
    for name in installed.nodes:
        wanted = {f"nvidia.com/{key}": value for key, value in LABELS[name].items()}
        for model, (count, memory) in MODELS[name].items():
            wanted |= {f"nvidia.com/gpu.present.{model}": "true", f"nvidia.com/gpu.count.{model}": str(count),
                       f"nvidia.com/gpu.memory.{model}": str(memory)}
        wait_for(lambda: wanted.items() <= installed.labels(name).items(), 60, f"the labels of {name}", lambda: (wanted, installed.labels(name)))  # noqa: B023
        found = installed.labels(name)
        assert found["feature.node.kubernetes.io/pci-10de.present"] == "true"
        assert abs(int(found["nvidia.com/gfd.timestamp"]) - time.time()) < 3600
        kernel = installed.get("node", name)["status"]["nodeInfo"]["kernelVersion"]
        assert found["feature.node.kubernetes.io/kernel-version.full"] == kernel


OF_KUBELET = ("DEPRECATION", "kubelet.sock", "kubelet_internal_checkpoint")  # its own files beside the plugins' sockets
MOST_MIB = 64  # far above the goal of 16: how much of a shared library counts depends on its other users; bench/ has the figure


def test_at_rest_nothing_is_written_and_memory_is_bounded(installed, remark, request):
    installed.check()
    seconds = 60 if request.config.getoption("--all") else 20
    installed.wait_quiet(seconds)  # an agent that was not ready for a moment, on a busy machine, writes that
    asked = installed.audit.between(time.time() - seconds)
    remark(f"{seconds} s idle, four nodes", summed(asked) or "no request at all", asked)
    for node in installed.nodes.values():
        pss, each = node.footprint()
        remark(f"PSS of the agent's processes on {node.name}, MiB (goal 16 for a release build)", f"{pss:.1f}: {each}")
        assert pss < MOST_MIB, f"{node.name} needs {pss:.1f} MiB, more than {MOST_MIB}: {each}"


def test_helm_uninstall_leaves_nothing(installed, measure):
    for node in installed.nodes.values():
        assert ours(installed.labels(node.name))
    with measure("helm uninstall"):
        installed.uninstall()
    for node in installed.nodes.values():
        def remains(node=node) -> list[str]:
            sockets = set(node.view.below("/var/lib/kubelet/device-plugins")) - {f"/var/lib/kubelet/device-plugins/{name}" for name in OF_KUBELET}
            return [*ours(installed.labels(node.name)), *sockets, *node.view.below("/run/penstock", "/var/lib/penstock", "/run/cdi")]
        wait_for(lambda remains=remains: not remains(), 60, f"nothing to remain on {node.name}", remains)
    kinds = ("clusterrole", "clusterrolebinding", "role", "rolebinding", "daemonset", "serviceaccount", "configmap", "job", "pod", "validatingadmissionpolicy",
             "validatingadmissionpolicybinding", "customresourcedefinition")

    def left() -> list[str]:
        return [name for name in installed.cluster.api.names(*kinds) if "penstock" in name]
    wait_for(lambda: not left(), 60, "the API server to have no object of Penstock", left)
    assert not installed.kubectl("get", "nodestates", check=False).stdout
    wait_for(lambda: all(installed.get("node", name)["status"]["allocatable"].get(GPU, "0") == "0" for name in installed.nodes), 60,
             "the Node objects to have no GPUs")
    for name in installed.nodes:
        assert not [one for one in installed.get("node", name)["status"]["conditions"] if "penstock" in one["type"]]
    assert not installed.get("secrets", "-n", NAMESPACE)["items"]
