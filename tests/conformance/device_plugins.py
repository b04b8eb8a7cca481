"""NVIDIA's device plugin and ours, each before a stand-in for the kubelet that tells what they
answer."""
import contextlib
import json
import subprocess
from pathlib import Path

import downloads
import nvidia_programs
from node import PATIENCE, Node, wait_until

# Their plugin knows no other. Where tests run it is not the machine's own.
KUBELET = Path("/var/lib/kubelet")


class Kubelet:
    """What a kubelet asks of plugins, by the program peer."""

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
        """Of each registered resource, the ids with their NUMA nodes. Unhealthy ones are an
        error."""
        found = self.ask("resources").get("resources", {})
        assert all(device["health"] == "Healthy" for its in found.values() for device in its)
        return {name: {device["id"]: device["nodes"] for device in its}
                for name, its in found.items()}

    def prefer(self, resource: str, available, required, size: int) -> list[str]:
        return self.ask("prefer", resource=resource, available=list(available),
                        required=list(required), size=size).get("ids", [])

    def allocate(self, resource: str, ids) -> dict | str:
        """The answer for a container, or the error."""
        answer = self.ask("allocate", resource=resource, ids=list(ids))
        return answer.get("error") or answer["container"]

    def end(self):
        self.process.stdin.close()
        self.process.wait(PATIENCE)


class Refused(Exception):
    """The program ended because of its configuration; with what it said."""


@contextlib.contextmanager
def theirs(root: Path, config: Path, log: Path, *options):
    """A kubelet with NVIDIA's plugin, once it has registered; Refused where it ends instead."""
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
    """A kubelet with our agent on a machine with so many GPUs, once it offers these resources; `of`
    makes what is compared of them."""
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
