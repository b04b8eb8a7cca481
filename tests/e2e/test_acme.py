"""A made-up vendor on a real kubelet: the agent that knows it (tests/acme) takes over from the product's agent and back again. Every trace of the vendor is
there with the row that names it, and gone without."""
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "support"))

from acme import ENOUGH, Acme  # noqa: E402
from actors import BUSYBOX, GPU, Agent, wait_for  # noqa: E402

RESOURCE = "acme.com/gpu"


@pytest.fixture
def acme(cluster, machine):
    made = Acme(machine.root, 2)
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


def start_pod(kubernetes, name: str, count: int = 1):
    container = {"name": "main", "image": BUSYBOX, "imagePullPolicy": "Never", "command": ["sh", "-c", "exec sleep 100000"],
                 "resources": {"limits": {RESOURCE: count}}}
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


def test_without_its_row_no_trace_is_left(other, acme, kubernetes, agent):
    kubernetes.wait_for_gpus(2, resource=RESOURCE)
    wait_for(lambda: labels(kubernetes), 120, "the vendor's labels")
    other.stop()
    agent.start()
    wait_for(lambda: not labels(kubernetes), 60, "its labels to be gone", lambda: labels(kubernetes))
    kubernetes.wait_for_gpus(8)
    kubernetes.wait_for_gpus(0, resource=RESOURCE)
    assert not list(Path("/var/run/cdi").glob("*acme*"))
    assert {device["vendor"] for device in agent.status()["devices"]} == {"nvidia"}
    agent.stop()
    assert GPU in kubernetes.get("node", "n1")["status"]["allocatable"]
