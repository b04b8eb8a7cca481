"""NetworkPolicies, enforced in the network namespaces of pods that run: the network of these clusters, CNI's bridge, does not know them. What a policy does not permit
is dropped there, and counted."""
import contextlib
import json
import socket
import subprocess
from collections.abc import Iterable
from pathlib import Path

from api import network_of
from fleet import Fleet

TABLE = "policies"
HOOKS = {"ingress": ("input", "iifname", "saddr", "from"), "egress": ("output", "oifname", "daddr", "to")}


def selects(selector: dict, pod: dict) -> bool:
    assert selector.keys() <= {"matchLabels"}, f"not evaluated here: {selector}"
    return selector.get("matchLabels", {}).items() <= pod["metadata"]["labels"].items()


def numbers_of(port: int | str, pods: Iterable[dict]) -> set[int]:
    """A name is a port of the containers to which the connection leads."""
    if isinstance(port, int):
        return {port}
    return {one["containerPort"] for pod in pods for container in pod["spec"]["containers"] for one in container.get("ports", []) if one.get("name") == port}


def nft(pid: int, *arguments: str, text: str = "") -> str:
    """Runs the machine's nft in the network of that process."""
    done = subprocess.run(["nsenter", "-t", str(pid), "-n", "nft", *arguments], input=text, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stderr}{text}"
    return done.stdout


def connects(pid: int, address: str, port: int, within: float = 60) -> bool:
    """Whether a process in that network can open a connection, within so many seconds."""
    with network_of(Path(f"/proc/{pid}")), socket.socket() as opened:
        opened.settimeout(within)
        with contextlib.suppress(OSError):
            opened.connect((address, port))
            return True
    return False


class Enforced:
    """What the policies of its namespace permit to one pod, from now on; also to the containers that its kubelet starts again, which keep the network."""

    def __init__(self, fleet: Fleet, pod: dict, pid: int):
        """`pid`: a process of the pod."""
        self.pid = pid
        namespace = pod["metadata"]["namespace"]
        self.pods = fleet.get("pods", "-n", namespace)["items"]
        self.policies = [one["spec"] for one in fleet.get("networkpolicies", "-n", namespace)["items"] if selects(one["spec"]["podSelector"], pod)]
        assert self.policies, f"no policy selects {pod['metadata']['name']}"
        text = "\n".join(self.chain(way, pod) for way in HOOKS if any(way.title() in one["policyTypes"] for one in self.policies))
        nft(pid, "-f", "-", text=f"table ip {TABLE} {{\n{text}\n}}\n")

    def chain(self, way: str, pod: dict) -> str:
        hook, device, address, peers = HOOKS[way]
        # Policies are about opening connections. Those from before are not tracked, so that their packets are told by their flags.
        rules = [f"{device} lo accept", "ct state established,related accept", "tcp flags & (syn | ack) != syn accept"]
        for rule in (rule for policy in self.policies for rule in policy.get(way, [])):
            for peer in rule.get(peers) or [None]:
                others = [one for one in self.pods if peer is not None and selects(peer["podSelector"], one)]
                addresses = ", ".join(one["status"]["podIP"] for one in others if one["status"].get("podIP"))
                match = f"ip {address} {{ {addresses} }} " if peer is not None else ""
                for port in rule["ports"]:
                    numbers = numbers_of(port["port"], [pod] if way == "ingress" else others)
                    assert numbers, f"{port} is no port of a container"
                    rules += [f"{match}{port['protocol'].lower()} dport {number} accept" for number in sorted(numbers)]
        return f"chain {hook} {{ type filter hook {hook} priority 0; policy accept;\n" + "\n".join([*rules, "counter drop"]) + "\n}"

    def dropped(self) -> dict[str, int]:
        """Packets by chain."""
        listed = json.loads(nft(self.pid, "-j", "list", "table", "ip", TABLE))["nftables"]
        return {rule["chain"]: one["counter"]["packets"] for rule in (one["rule"] for one in listed if "rule" in one) for one in rule["expr"] if "counter" in one}
