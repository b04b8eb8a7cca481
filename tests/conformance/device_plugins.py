"""NVIDIA's device plugin and the agent, each with a fake kubelet that returns their answers."""
import contextlib
import json
import subprocess
from pathlib import Path

import downloads
import nvidia_programs
from node import PATIENCE, Node, wait_until

# The only path that NVIDIA's plugin supports. Tests run in isolation, so it is not the machine's own.
KUBELET = Path("/var/lib/kubelet")


class Kubelet:
    """The kubelet's side of the protocol, through the program `peer`."""

    def __init__(self, folder: Path):
        folder.mkdir(parents=True, exist_ok=True)
        for left in folder.iterdir():
            left.unlink()
        self.process = subprocess.Popen(
            [downloads.nvidia_programs() / "peer", "plugins", folder], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        wait_until((folder / "kubelet.sock").exists, "the kubelet's socket")

    def ask(self, do: str, **arguments) -> dict:
        self.process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def resources(self) -> dict[str, dict[str, list]]:
        """The device ids of each registered resource, with their NUMA nodes. Fails on an unhealthy
        device."""
        found = self.ask("resources").get("resources", {})
        assert all(device["health"] == "Healthy" for its in found.values() for device in its)
        return {name: {device["id"]: device["nodes"] for device in its}
                for name, its in found.items()}

    def prefer(self, resource: str, available, required, size: int) -> list[str]:
        return self.ask("prefer", resource=resource, available=list(available),
                        required=list(required), size=size).get("ids", [])

    def allocate(self, resource: str, ids) -> dict | str:
        """The response for a container, or the error."""
        answer = self.ask("allocate", resource=resource, ids=list(ids))
        return answer.get("error") or answer["container"]

    def end(self):
        self.process.stdin.close()
        self.process.wait(PATIENCE)


class Refused(Exception):
    """The program exited because of its configuration; the argument is its output."""


@contextlib.contextmanager
def theirs(root: Path, config: Path, log: Path, *options):
    """A kubelet with NVIDIA's registered plugin; raises Refused if the plugin exits instead."""
    folder = KUBELET / "device-plugins"
    kubelet = Kubelet(folder)
    command = nvidia_programs.command(
        root, "nvidia-device-plugin", "--config-file", config, "--container-driver-root", root,
        "--kubelet-socket", folder / "kubelet.sock", *options)
    with open(log, "wb") as output:
        plugin = subprocess.Popen(command, env=nvidia_programs.environment(root), stdout=output,
                                  stderr=output, stdin=subprocess.DEVNULL)

    def registered() -> bool:
        if plugin.poll() is not None:
            raise Refused(log.read_text().splitlines()[-1])
        return bool(kubelet.resources())
    try:
        wait_until(registered, "NVIDIA's plugin", seen=lambda: log.read_text()[-3000:])
        yield kubelet
    finally:
        plugin.kill()
        plugin.wait()
        kubelet.end()


@contextlib.contextmanager
def ours(node: Node, config: Path, gpus: int, resources: dict, *options, of=lambda found: found):
    """A kubelet with the agent on a machine with this many GPUs. Waits until the agent offers these
    resources, after `of` has reduced them to what is compared."""
    kubelet = Kubelet(KUBELET / "device-plugins")
    node.kubelet, node.config = KUBELET, config
    try:
        node.options = options
        node.start_agent(devices=gpus)
        wait_until(lambda: of(kubelet.resources()) == resources, f"these resources: {resources}",
                   seen=kubelet.resources)
        yield kubelet
    finally:
        if node.agent is not None:
            node.end_agent()
        kubelet.end()
