"""MIG devices on a real kubelet: each is offered under the name of its profile, and a pod gets its files and no others."""
import os
import subprocess

import pytest
from actors import BUSYBOX, wait_for

PROFILE = "nvidia.com/mig-3g.20gb"


class Divided:
    """GPU 0 of the machine, in MIG mode while a test uses it."""

    def __init__(self, machine):
        self.root = machine.root
        self.smi("-mig", "1", "-i", "0")

    def smi(self, *arguments):
        subprocess.run([self.root / "usr/bin/nvidia-smi", *arguments], check=True, stdout=subprocess.DEVNULL,
                       env=os.environ | {"LD_LIBRARY_PATH": str(self.root / "usr/lib/x86_64-linux-gnu")})

    def create(self, profiles: str):
        self.smi("mig", "-i", "0", "-cgi", profiles, "-C")

    def destroy(self):
        self.smi("mig", "-i", "0", "-dci")
        self.smi("mig", "-i", "0", "-dgi")

    def end(self):
        try:
            self.destroy()
        except subprocess.CalledProcessError:
            pass  # there was nothing
        self.smi("-mig", "0", "-i", "0")


@pytest.fixture
def divided(machine, agent, kubernetes):
    gpu = Divided(machine)
    try:
        yield gpu
    finally:
        gpu.end()
        agent.configure("")
        kubernetes.wait_for_gpus(8, deadline=60)


def create_pod(kubernetes, name: str, resource: str = PROFILE):
    container = {"name": "main", "image": BUSYBOX, "imagePullPolicy": "Never", "command": ["sh", "-c", "exec sleep 100000"],
                 "resources": {"limits": {resource: 1}}}
    kubernetes.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
                       "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container]}})


def capabilities(kubernetes, pod: str) -> list[str]:
    return sorted(kubernetes.inside(pod, "ls /dev/nvidia-caps").split())


def wait_for_amount(kubernetes, count: int, resource: str = PROFILE):
    kubernetes.wait_for_gpus(count, resource=resource)


def test_pods_get_mig_devices_of_the_profile_that_they_ask_for(agent, kubernetes, divided):
    divided.create("3g.20gb,3g.20gb")
    wait_for_amount(kubernetes, 2)
    kubernetes.wait_for_gpus(7)
    for name in ("first", "second"):
        create_pod(kubernetes, name)
        kubernetes.wait_running(name)
    create_pod(kubernetes, "third")
    # Of each pod: the file of its GPU instance and that of its compute instance. Not those by which MIG is managed.
    first, second = capabilities(kubernetes, "first"), capabilities(kubernetes, "second")
    assert len(first) == len(second) == 2
    assert not {*first} & {*second}
    assert "nvidia-cap1" not in first + second
    files = kubernetes.inside("first", "ls /dev").split()
    assert "nvidia0" in files and "nvidia1" not in files

    def holders() -> list[str]:
        held = [device for device in agent.status()["devices"] if device.get("profile") == "3g.20gb" and device["holders"]]
        return sorted(device["holders"][0].get("pod", "") for device in held)
    wait_for(lambda: holders() == ["first", "second"], 60, "status to name the pods", holders)
    assert kubernetes.phase("third") == "Pending"
    kubernetes.delete_pod("first")
    kubernetes.wait_running("third")
    assert capabilities(kubernetes, "third") == first
    for name in ("second", "third"):
        kubernetes.delete_pod(name)


def test_a_profile_that_disappears_goes_to_zero(agent, kubernetes, divided):
    divided.create("3g.20gb")
    wait_for_amount(kubernetes, 1)
    divided.destroy()
    wait_for_amount(kubernetes, 0)
    divided.create("1g.5gb,1g.5gb,1g.5gb")
    wait_for_amount(kubernetes, 3, "nvidia.com/mig-1g.5gb")
    ran = agent.penstock("assign", "0:1", "local")
    assert ran.returncode == 0
    wait_for_amount(kubernetes, 2, "nvidia.com/mig-1g.5gb")
    inside = agent.penstock("run", "--device", "0:1", "--", "sh", "-c", "echo $NVIDIA_VISIBLE_DEVICES").stdout
    assert inside.startswith("MIG-")
    agent.penstock("assign", "0:1", "default")
    wait_for_amount(kubernetes, 3, "nvidia.com/mig-1g.5gb")


def test_strategies(agent, kubernetes, divided):
    divided.create("3g.20gb,3g.20gb")
    wait_for_amount(kubernetes, 2)
    agent.configure("parts: {strategy: none}\n")
    wait_for_amount(kubernetes, 0)
    kubernetes.wait_for_gpus(7)
    agent.configure("parts: {strategy: single}\n")
    wait_for(lambda: any("most devices of this node are whole" in device["withheld"] for device in agent.status()["devices"]), 60, "the reason", agent.status)
    kubernetes.wait_for_gpus(7)
    whole = [device for device in agent.status()["devices"] if "parent" not in device and device["index"] == 5]
    assert whole[0]["resource"] == "nvidia.com/gpu"
