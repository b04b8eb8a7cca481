"""MIG devices shared by MPS on simulated machines, for local programs and for pods: limits, layouts, servers that are killed, agents that are replaced.
Needs root: real control groups."""
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from monitored import Fleet  # noqa: E402
from mig_machine import smi  # noqa: E402
from node import Node, alive, wait_until  # noqa: E402

RESOURCE = "nvidia.com/mig-1g.5gb"
LIMIT = 4864 // 3  # MiB, of a third of a 1g.5gb
NAMES = ("nvidia-cuda-mps-control", "nvidia-cuda-mps-server")


def divide(node: Node, gpu: int, profiles: str):
    smi(node, "-mig", "1", "-i", str(gpu))
    smi(node, "mig", "-i", str(gpu), "-cgi", profiles, "-C")


def parts(node: Node) -> list[str]:
    """The profiles of all MIG devices, as the driver lists them."""
    return re.findall(r"^\s+MIG (\S+)", smi(node, "-L"), re.M)


def devices(node: Node, resource: str = RESOURCE) -> list[dict]:
    return [device for device in (node.report() or {"devices": []})["devices"] if device.get("resource") == resource]


def servers(node: Node) -> dict[str, dict]:
    return {server["set"]: server for server in (node.report() or {"servers": []})["servers"]}


def processes(node: Node, device: str = "") -> dict[str, list[int]]:
    """The pids of the MPS programs of this machine, by name; only those of one MIG device if it is given."""
    found: dict[str, list[int]] = {name: [] for name in NAMES}
    for proc in Path("/proc").iterdir():
        if not proc.name.isdigit():
            continue
        try:
            exe, environment = Path(os.readlink(proc / "exe")), (proc / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        folder = next((one.decode() for one in environment if one.startswith(b"PENSTOCK_MPS_FOLDER=")), "")
        if exe.name in found and str(node.home) in folder and folder.endswith(device):
            found[exe.name].append(int(proc.name))
    return found


def pid_of(node: Node, device: str) -> int:
    [pid] = processes(node, device)[NAMES[0]]
    return pid


def is_ready(node: Node, device: str) -> bool:
    return servers(node).get(device, {}).get("state") == "ready"


def await_shares(node: Node, count: int) -> list[str]:
    """Waits until this many MIG devices have a server that is ready; returns their ids, by number."""
    def ready() -> list[str]:
        found = [device["id"] for device in sorted(devices(node), key=lambda one: one["number"])]
        return found if len(found) == count and all(is_ready(node, one) for one in found) else []
    return wait_until(ready, f"{count} servers", seen=lambda: f"{node.penstock('status', check=False).stdout}\n{node.log()[-3000:]}")


def share(node: Node, rule: str) -> Node:
    node.config.write_text(node.config.read_text() + f"sharing: {{rules: [{rule}], mps: {{root: {node.home}/mps}}}}\n")
    return node


RULE = f"{{resource: {RESOURCE}, strategy: mps, replicas: 3}}"


@pytest.fixture
def node(make_node) -> Node:
    """A machine of whose GPU 0 two MIG devices of one slice are shared (0:1, 0:2), and one of three slices is not (0:0)."""
    node = share(make_node(), RULE)
    divide(node, 0, "1g.5gb,1g.5gb,3g.20gb")
    node.launch_agent()
    yield node
    node.penstock("down", check=False)


class Client:
    """mps-client under `penstock run`."""

    def __init__(self, node: Node, *words, device: str = ""):
        chosen = ("--device", device) if device else ("--mig", "1g.5gb")
        self.process = node.start(*chosen, "--share", "3", "--", node.root / "usr/bin/mps-client", *words)

    def lines(self, count: int) -> list[str]:
        return [self.process.stdout.readline().strip() for _ in range(count)]

    def end(self):
        self.process.terminate()
        self.process.communicate(timeout=60)


def layout(node: Node, parts_of_0: dict | None) -> Path:
    file = node.home / "layout.yaml"
    file.write_text(f"version: v1\nmig-configs:\n  wanted:\n  - devices: [0]\n    mig-enabled: {'false' if parts_of_0 is None else 'true'}\n"
                    f"    mig-devices: {json.dumps(parts_of_0 or {})}\n")
    return file


def test_holders_of_a_mig_device_share_its_memory_and_processors(node):
    first, second = await_shares(node, 2)
    assert len(processes(node)[NAMES[0]]) == 2, "a server for each"
    one, two = (Client(node, "--allocate", LIMIT, "--hold", device="0:2") for _ in range(2))
    number = {device["id"]: device["number"] for device in devices(node)}
    at = next(device for device in (first, second) if number[device] == "0:2")
    for client in one, two:
        said = client.lines(3)
        assert said[0].startswith("mps server ") and said[1:] == [f"limit {LIMIT} 33.0", f"allocated {LIMIT}"], said
    greedy = Client(node, "--allocate", LIMIT + 1, device="0:2").process
    out, errors = greedy.communicate(timeout=60)
    assert "CUDA_ERROR_OUT_OF_MEMORY" in out
    assert "share" in errors and "0:2" in errors and "isolation: none" in errors, errors
    device = wait_until(lambda: next((device for device in devices(node) if device["id"] == at and device["free"] == 1), None),
                        "the share of the program that was refused memory to be free", seen=lambda: devices(node))
    assert (device["sharing"], device["shares"], device["free"], device["isolation"]) == ("mps", 3, 1, "none")
    assert (device["shareMemoryBytes"], device["shareComputePercent"]) == (LIMIT << 20, 33)
    assert device["withheld"] == "", "nothing differs from what was asked for"
    wait_until(lambda: servers(node)[at]["clients"] == 2, "the clients to be counted", seen=lambda: servers(node))
    assert len(processes(node, at)[NAMES[1]]) == 1
    [other] = [device for device in (first, second) if device != at]
    assert processes(node, other)[NAMES[1]] == []
    # A server that has just started can be taken for one until its process is looked at again.
    wait_until(lambda: not [holder for holder in node.holders() if holder["state"] == "outside"], "the server to be no outside process", seen=node.holders)
    for client in one, two:
        client.end()


def test_a_layout_ends_idle_servers_and_names_clients(node):
    await_shares(node, 2)
    passing = Client(node, device="0:1")
    assert passing.lines(1)[0].startswith("mps server ")
    passing.process.communicate(timeout=60)
    stays = Client(node, "--hold", device="0:2")
    assert stays.lines(1)[0].startswith("mps server ")
    number = {device["number"]: device["id"] for device in devices(node)}
    [server] = processes(node, number["0:1"])[NAMES[1]]
    assert alive(server), "it outlives its client, and keeps the driver from destroying its MIG device"
    kept = pid_of(node, number["0:2"])
    wait_until(lambda: len(node.holders()) == 1, "the share of the program that ended to be free", seen=node.holders)

    refused = node.penstock("mig", "apply", "-f", layout(node, {"7g.40gb": 1}), check=False)
    assert refused.returncode == 1 and number["0:2"] in refused.stderr and "held by" in refused.stderr, refused.stderr
    assert number["0:1"] not in refused.stderr, "an idle server holds nothing"
    assert len(parts(node)) == 3

    node.penstock("mig", "apply", "-f", layout(node, {"1g.5gb": 1, "3g.20gb": 1, "2g.10gb": 1}), timeout=120)
    assert sorted(parts(node)) == ["1g.5gb", "2g.10gb", "3g.20gb"]
    assert not alive(server)
    wait_until(lambda: not (node.home / "mps" / number["0:1"]).exists(), "its folder to be removed")
    assert pid_of(node, number["0:2"]) == kept and stays.process.poll() is None, "what stays is left alone"
    stays.end()
    wait_until(lambda: not node.holders(), "the share to be free")
    node.penstock("mig", "apply", "-f", layout(node, None), timeout=120)
    assert parts(node) == []
    wait_until(lambda: processes(node) == {name: [] for name in NAMES}, "all servers to end", seen=lambda: processes(node))
    wait_until(lambda: os.listdir(node.home / "mps") == [], "their folders to be removed")

    # The same MIG devices again: they have their old UUIDs.
    node.penstock("mig", "apply", "-f", layout(node, {"1g.5gb": 2}), timeout=120)
    await_shares(node, 2)
    again = Client(node, "--allocate", LIMIT)
    assert again.lines(3)[1] == f"limit {LIMIT} 33.0"
    again.end()


def test_a_server_that_is_killed_is_replaced_when_its_clients_have_left(node):
    await_shares(node, 2)
    client = Client(node, "--hold", device="0:1")
    assert client.lines(1)[0].startswith("mps server ")
    number = {device["number"]: device["id"] for device in devices(node)}
    before, other = pid_of(node, number["0:1"]), pid_of(node, number["0:2"])
    os.kill(before, signal.SIGKILL)
    wait_until(lambda: servers(node)[number["0:1"]]["state"] == "waiting", "the death to be noticed", seen=lambda: servers(node))
    assert is_ready(node, number["0:2"]) and pid_of(node, number["0:2"]) == other, "another MIG device is not concerned"
    assert client.process.poll() is None
    client.end()
    wait_until(lambda: is_ready(node, number["0:1"]), "another server", seen=lambda: servers(node))
    assert pid_of(node, number["0:1"]) != before
    later = Client(node, device="0:1")
    assert later.lines(2)[1] == f"limit {LIMIT} 33.0"
    later.end()


def test_the_next_agent_takes_servers_over(node):
    await_shares(node, 2)
    client = Client(node, "--hold", device="0:1")
    assert client.lines(1)[0].startswith("mps server ")
    before = processes(node)
    node.kill_agent()
    node.launch_agent()
    await_shares(node, 2)
    wait_until(lambda: len(node.holders()) == 1, "the holder to be known again")
    assert processes(node) == before and client.process.poll() is None
    client.end()


def test_a_server_ends_with_its_mig_device(node):
    first, second = await_shares(node, 2)
    smi(node, "mig", "-i", "0", "-dci", check=False)  # by another program
    smi(node, "mig", "-i", "0", "-dgi", check=False)
    assert parts(node) == []
    wait_until(lambda: processes(node) == {name: [] for name in NAMES}, "the servers to end", seen=lambda: f"{servers(node)}\n{node.log()[-2000:]}")
    wait_until(lambda: not {first, second} & set(os.listdir(node.home / "mps")), "their folders to be removed")


def test_a_gpu_that_is_shared_whole_is_divided_once_its_server_has_no_clients(make_node):
    node = share(make_node(), "{devices: [0, 1], strategy: mps, replicas: 3}")
    node.launch_agent()
    wait_until(lambda: is_ready(node, "nvidia.com/gpu"), "the server", seen=node.log)
    client = Client(node, "--hold", device="1")
    assert client.lines(1)[0].startswith("mps server ")
    wait_until(lambda: servers(node)["nvidia.com/gpu"]["clients"] == 1, "the client to be counted")
    refused = []

    def names_the_client() -> bool:  # a server that has just started can still be taken for a process of another program
        refused.append(node.penstock("mig", "apply", "-f", layout(node, {"1g.5gb": 1}), check=False))
        assert refused[-1].returncode == 1, refused[-1]
        return "held by 1 clients of the sharing server of nvidia.com/gpu" in refused[-1].stderr
    wait_until(names_the_client, "the client to be named", seen=lambda: refused[-1].stderr)
    client.end()
    node.penstock("mig", "apply", "-f", layout(node, {"1g.5gb": 1}), "--wait", "5m", timeout=120)
    assert parts(node) == ["1g.5gb"]
    wait_until(lambda: is_ready(node, "nvidia.com/gpu"), "a server for the other GPU", seen=node.log)
    again = Client(node, device="1")
    assert again.lines(1)[0].startswith("mps server ")
    again.end()
    node.penstock("down")


def test_more_shares_than_the_device_has_clients_are_refused(make_node):
    node = share(make_node(), f"{{resource: {RESOURCE}, strategy: mps, replicas: 7}}")
    divide(node, 0, "1g.5gb,3g.20gb")
    node.launch_agent()
    wait_until(lambda: len(node.usable()) == 10, "all devices", seen=node.log)
    assert devices(node) == []
    assert "7 shares exceed the number of MPS clients (6 of a 1g.5gb)" in node.penstock("status").stdout
    assert processes(node) == {name: [] for name in NAMES}


def test_pods_get_shares_and_hold_them(request):
    fleet = Fleet(request.config.getoption("--programs"))
    try:
        node = fleet.add("n", "a100-40gb-x1")
        node.end_agent()
        divide(node, 0, "1g.5gb,1g.5gb")
        node.config.write_text(f"version: v1\nflags: {{migStrategy: mixed, mpsRoot: {node.home}/mps}}\n"
                               f"sharing: {{mps: {{resources: [{{name: {RESOURCE}, replicas: 3}}]}}}}\n")
        node.launch_agent()
        node.kubelet_program.healthy(6, RESOURCE)
        [held] = node.kubelet_program.start("ml", "a", 1, RESOURCE)
        device = held.split("::")[0]
        given = node.kubelet_program.given()
        assert f"CUDA_MPS_PIPE_DIRECTORY=/mps/{device}/pipe" in given and f"NVIDIA_VISIBLE_DEVICES={device}" in given, given
        mounts = [one for one in given if f"{node.home}/mps/" in one]
        assert len(mounts) == 2 and all(f"{node.home}/mps/{device}/" in one for one in mounts), "the pipe and /dev/shm of its own server alone"
        assert sum("/dev/nvidia-caps/" in one for one in given) == 2, given
        assert re.fullmatch(r"MIG-[0-9a-f-]{36}::[0-2]", held)
        wait_until(lambda: [holder.get("pod") for holder in node.holders()] == ["a"], "the pod to be known", seen=node.holders)
        with pytest.raises(AssertionError, match="maximum request size for shared resources is 1"):
            node.kubelet_program.start("ml", "two", 2, RESOURCE)
        refused = node.penstock("mig", "apply", "-f", layout(node, {"7g.40gb": 1}), check=False)
        assert refused.returncode == 1 and "held by pod ml/a" in refused.stderr and device in refused.stderr, refused.stderr
        node.kubelet_program.end("ml", "a")
        wait_until(lambda: not node.holders(), "the share to be free")
        node.penstock("mig", "apply", "-f", layout(node, {"7g.40gb": 1}), timeout=120)
        assert parts(node) == ["7g.40gb"]
        node.penstock("down", check=False)
    finally:
        fleet.end()
