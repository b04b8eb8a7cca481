"""A made-up vendor on a real kubelet: the agent that knows it (tests/acme) takes over from the product's agent and back again. Every trace of the vendor is
there with the row that names it, and gone without."""
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "support"))

from acme import ENOUGH, STATE, WISH, Acme  # noqa: E402
from actors import BUSYBOX, GPU, Agent, wait_for  # noqa: E402

RESOURCE = "acme.com/gpu"
MIG_WISH, MIG_STATE = "nvidia.com/mig.config", "nvidia.com/mig.config.state"


@pytest.fixture
def acme(cluster, machine):
    made = Acme(machine.root, 2, divisible=True)
    yield made
    made.end()


@pytest.fixture
def other(cluster, machine, agent, acme, kubernetes):
    """The agent with one more vendor, in place of the product's."""
    other = Agent(cluster, machine, agent.programs.parent / "acme", name="acme-agent")
    connected = f"cluster: {{enabled: on, kubeconfig: {cluster.dir}/pki/admin.kubeconfig}}\n"
    other.configure(connected)
    agent.configure(connected)
    agent.stop()
    other.start()
    try:
        yield other
    finally:
        if other.running():
            other.stop()
        agent.configure("")
        agent.ensure_running()
        kubernetes.wait_for_gpus(8)


def labels(kubernetes) -> dict[str, str]:
    return {key: value for key, value in kubernetes.get("node", "n1")["metadata"]["labels"].items() if key.startswith("acme.com/")}


@pytest.fixture
def wish(other, kubernetes):
    """Sets labels of the Node by which users ask how devices are divided; afterwards they are gone."""
    def set_labels(**layouts: str):
        kubernetes.kubectl("label", "--overwrite", "node", "n1", *(f"{key}={layouts[vendor]}" for vendor, key in keys.items() if vendor in layouts))
    keys = {"acme": WISH, "nvidia": MIG_WISH}
    yield set_labels
    kubernetes.kubectl("label", "node", "n1", *(f"{key}-" for key in keys.values()))


def start_pod(kubernetes, name: str, count: int = 1, resource: str = RESOURCE):
    container = {"name": "main", "image": BUSYBOX, "imagePullPolicy": "Never", "command": ["sh", "-c", "exec sleep 100000"],
                 "resources": {"limits": {resource: count}}}
    kubernetes.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
                       "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container]}})
    kubernetes.wait_running(name)


def devices_of(kubernetes, pod: str, acme: Acme) -> set[str]:
    """The devices whose files the container has."""
    files = set(kubernetes.inside(pod, "ls /dev").split())
    return {name for name, facts in acme.devices.items() if f"acme{facts['index']}" in files}


def test_a_pod_gets_a_device_of_a_vendor_that_the_product_does_not_know(other, acme, kubernetes, agent):
    kubernetes.wait_for_gpus(2, resource=RESOURCE)
    kubernetes.wait_for_gpus(8)
    wait_for(lambda: labels(kubernetes) == {"acme.com/gpu.count": "2", "acme.com/gpu.first": "A-0"}, 60, "its labels", lambda: labels(kubernetes))

    start_pod(kubernetes, "one")
    held = devices_of(kubernetes, "one", acme)
    assert len(held) == 1
    index = acme.devices[min(held)]["index"]
    assert kubernetes.inside("one", f"head -c 4 /dev/acme{index} | wc -c").strip() == "4"
    wait_for(lambda: other.held_by_pods() == {"one": held}, 60, "penstock ps to name the pod")

    def measured() -> bool:
        lines = [line for line in other.metrics().splitlines() if line.startswith("accelerator_utilization_ratio") and f'device="{min(held)}"' in line]
        return any(line.endswith(" 0.37") for line in lines) and 'pod="one"' in other.metrics()
    wait_for(measured, 60, "its measured values, and the pod", lambda: [line for line in other.metrics().splitlines() if "acme" in line or "A-0" in line])


def test_parts_are_allocated_in_place_of_their_device(other, acme, kubernetes):
    kubernetes.wait_for_gpus(2, resource=RESOURCE)
    acme.divide("A-1", 7)
    acme.divide("A-1-3", 2)
    kubernetes.wait_for_gpus(1 + 6 + 2, resource=RESOURCE)
    start_pod(kubernetes, "all", 9)
    held = devices_of(kubernetes, "all", acme)
    assert held == {"A-0", "A-1-3-0", "A-1-3-1", *(f"A-1-{part}" for part in (0, 1, 2, 4, 5, 6))}
    assert sum(int(acme.devices[one]["memory"]) for one in held) <= 2 * ENOUGH


def test_a_label_of_the_node_divides_its_devices_beside_those_of_another_vendor(other, acme, kubernetes, wish):
    def node() -> dict:
        return kubernetes.get("node", "n1")["metadata"]

    def until(acme_is: str | None, nvidia_is: str | None = None):
        wait_for(lambda: [node()["labels"].get(key) for key in (STATE, MIG_STATE)] == [acme_is, nvidia_is], 120, f"the layouts to be {acme_is}, {nvidia_is}",
                 lambda: (node(), other.log()[-3000:]))
    kubernetes.wait_for_gpus(2, resource=RESOURCE)
    wish(acme="all-1of8", nvidia="all-3g.20gb")
    until("success", "success")
    for count, resource in ((16, "acme.com/1of8"), (0, RESOURCE), (16, "nvidia.com/mig-3g.20gb"), (0, GPU)):
        kubernetes.wait_for_gpus(count, resource=resource)
    assert sorted(acme.parts("A-0").values()) == ["(1of2)"] * 2 + ["1of8"] * 8

    start_pod(kubernetes, "one", resource="acme.com/1of8")
    wait_for(lambda: len(other.held_by_pods().get("one", ())) == 1, 60, "penstock ps to name the pod", other.held_by_pods)
    [held] = other.held_by_pods()["one"]
    device = held.split(".")[0]
    assert acme.parts(device)[held] == "1of8" and devices_of(kubernetes, "one", acme) == {device}
    wait_for(lambda: [line for line in other.metrics().splitlines() if line.startswith("accelerator_utilization_ratio") and f'device="{held}"' in line
                      and line.endswith(" 0.37")], 60, "its measured values", other.metrics)
    wish(acme="all-1of3")
    until("failed", "success")
    assert '"all-1of3" is not among the layouts made from this node' in node()["annotations"]["penstock.io/layout-reason"]
    assert held in acme.parts(device), "what was applied stays"

    wish(acme="all-disabled")
    until("failed", "success")
    wait_for(lambda: "default/one" in node()["annotations"].get("penstock.io/layout-reason", ""), 60, "the holder to be named", node)
    assert held in acme.parts(device)
    kubernetes.delete_pod("one")
    until("success", "success")
    kubernetes.wait_for_gpus(2, resource=RESOURCE)
    assert (acme.parts("A-0"), acme.parts("A-1")) == ({}, {})
    kubernetes.wait_for_gpus(16, resource="nvidia.com/mig-3g.20gb")
    wish(nvidia="all-disabled")
    kubernetes.wait_for_gpus(8)


def test_without_its_row_no_trace_is_left(other, acme, kubernetes, agent, wish):
    kubernetes.wait_for_gpus(2, resource=RESOURCE)
    wish(acme="all-disabled")
    wait_for(lambda: labels(kubernetes).get(STATE) == "success", 120, "the vendor's labels", lambda: labels(kubernetes))
    other.stop()
    kubernetes.kubectl("label", "node", "n1", f"{WISH}-")  # which is its user's
    agent.start()
    wait_for(lambda: not labels(kubernetes), 60, "its labels to be gone", lambda: labels(kubernetes))
    kubernetes.wait_for_gpus(8)
    kubernetes.wait_for_gpus(0, resource=RESOURCE)
    # A file with the kubelet's name for devices may be another program's: an agent that does not know the vendor leaves it.
    assert not [name for name in agent.cluster.view().below("/run/cdi") if "penstock-acme" in name]
    assert {device["vendor"] for device in agent.status()["devices"]} == {"nvidia"}
    agent.stop()
    assert GPU in kubernetes.get("node", "n1")["status"]["allocatable"]
