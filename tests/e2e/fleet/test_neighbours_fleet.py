"""Other software on the same nodes: another device plugin that already serves, a network that blocks egress; and the plain manifest."""
import contextlib
import json

import pytest
from actors import wait_for
from fleet import ACCELERATORS, IMAGE, ROOT, Fleet
from inside import define

# Drops and records everything that leaves the node, except for the cluster's own networks and the API server. 224.0.0.0/24 never leaves a link: the kernel
# itself announces there that the bridge of the pods, created with the first of them, has an address.
NO_EGRESS = """table ip egress {
    set refused { type ipv4_addr . ipv4_addr . inet_proto . inet_service; flags dynamic; counter; size 1000; timeout 1h; }
    chain inner {
        ip daddr { 127.0.0.0/8, 10.90.0.0/24, 10.244.0.0/16, 10.96.0.0/16, 224.0.0.0/24 } accept
        update @refused { ip saddr . ip daddr . ip protocol . th dport } drop
        drop
    }
    chain out { type filter hook output priority 10; jump inner; }
    chain through { type filter hook forward priority 10; jump inner; }
}
"""


@contextlib.contextmanager
def no_egress(fleet: Fleet):
    for node in fleet.nodes.values():
        node.run("nft", "-f", "-", input=NO_EGRESS)
    try:
        yield
    finally:
        for node in fleet.nodes.values():
            node.run("nft", "delete", "table", "ip", "egress")


def refused_egress(fleet: Fleet) -> dict[str, list]:
    """Node -> what its processes attempted: from, to, protocol, port."""
    found = {}
    for name, node in fleet.nodes.items():
        [refused] = [it["set"] for it in json.loads(node.run("nft", "-j", "list", "set", "ip", "egress", "refused").stdout)["nftables"] if "set" in it]
        if elements := refused.get("elem"):
            found[name] = elements
    return found


@pytest.fixture
def bare(fleet):
    """Four nodes without Penstock and without egress; afterwards Penstock is removed again."""
    fleet.clear()
    if fleet.values is not None:
        fleet.uninstall()
    with no_egress(fleet):
        yield fleet


def manifest() -> str:
    """deploy/manifests/penstock.yaml with this build's image, for machines whose driver and devices lie in a folder."""
    text = (ROOT / "deploy/manifests/penstock.yaml").read_text()
    for there, here in {"image: localhost/penstock:0.1.0": f"image: {IMAGE}",
                        "hostPath: {path: /, type: Directory}": f"hostPath: {{path: {ACCELERATORS}, type: Directory}}",
                        "devRoot: /\n": "devRoot: /driver-root\n", "hostDevRoot: /\n": f"hostDevRoot: {ACCELERATORS}\n",
                        "hostDriverRoot: /\n": f"hostDriverRoot: {ACCELERATORS}\n      sysfsRoot: /driver-root/sys\n"}.items():
        assert there in text, f"the manifest has no {there!r}"
        text = text.replace(f" {there}", f" {here}")
    return text


def test_a_plain_manifest_with_egress_blocked_beside_a_plugin_that_serves_first(bare, measure, request):
    """Walkthroughs N and P, and the takeover from another plugin."""
    define(bare.cluster.dir / "n3", "foreign-plugin", ["kubelet-peer", "serve", "nvidia.com/gpu", "2"])
    bare.cluster.start("foreign-plugin", node=3)
    request.addfinalizer(lambda: bare.cluster.kill("foreign-plugin", node=3))
    bare.wait_advertised(60, but={"n1": 0, "n2": 0, "n3": 2, "n4": 0})  # the kubelet's own interval
    text = manifest()
    try:
        with measure("kubectl apply of the plain manifest, egress blocked: three Node objects have their GPUs"):
            bare.kubectl("apply", "--server-side", "-f", "-", input=text)
            bare.wait_advertised(60, but={"n3": 2})
        allocator = wait_for(lambda: (allocator := bare.nodes["n3"].allocator("kubelet"))["state"] == "stepped-back" and allocator, 60, "our plugin on n3 to wait")
        assert "someone-else" in allocator["reason"]
        assert all(id.startswith("someone-elses") for id in bare.nodes["n3"].kubelet_has())
        with measure("the other plugin exits: ours takes over"):
            bare.cluster.kill("foreign-plugin", node=3)
            bare.wait_advertised(60)
        bare.check()
        assert not refused_egress(bare)
    finally:
        bare.kubectl("delete", "-f", "-", "--ignore-not-found", "--wait=true", "--timeout=180s", input=text)
    bare.wait_advertised(60, but={name: 0 for name in bare.nodes})
