"""helm upgrade from image and chart of 0.1.0 to those of this checkout while pods hold GPUs and
shares of GPUs, and helm rollback from there: one node, whose first two GPUs are shared by
time-slicing, or the first one by MPS."""
import json
import subprocess
from dataclasses import dataclass

import parts
import pytest
import released
from actors import GPU, wait_for
from catalogue import LABELS
from fleet import NAMESPACE, RELEASE, Fleet
from test_install import ours
from test_mps_fleet import CLIENT, SHARED, by_mps, client_holds, processes, said, start
from test_sharing import sliced, wait_one_waits

NODE, OLD, TODAY = "n1", "0.1.0", "e2e"  # the last two are tags of images
TIME_SLICED, MPS = ({"config": {"map": {"shared": text}, "default": "shared"}}
                    for text in (sliced(4, rename=SHARED, devices=[0, 1]), by_mps(4, 0)))
ENABLED = {"penstock": {"mps": {"enabled": True}}}  # without it 0.1.0's chart mounts no folder for MPS
# NVIDIA's control daemon looks for its server in PATH. 0.1.0 passes it the PATH of the agent's
# container, which suffices only where the driver root has a C library, so that the daemon runs
# inside it. The simulated machine has none: there 0.1.0 needs the driver's programs in PATH; this
# checkout's agent adds them itself.
SERVER_IN_PATH = {"devicePlugin": {"containers": {"main": {"env": [
    {"name": "PATH", "value": "/driver-root/usr/bin:/usr/sbin:/usr/bin:/sbin:/bin"}]}}}}
WANTED = {f"nvidia.com/{key}": value for key, value in LABELS[NODE].items()} | {
    "nvidia.com/gpu.isolation": "none"}
WHEN_WRITTEN = "nvidia.com/gfd.timestamp"


@dataclass
class Seen:
    """The state that must be the same before and after."""
    kubelet: dict[str, set[str]]  # pod -> slots
    containers: dict[str, tuple[str, int]]  # pod -> id of its container, and restarts
    leases: dict[str, tuple[str, str]]  # slot -> id of the lease, and when it began
    labels: dict[str, str]  # everything except the time of the record

    @classmethod
    def now(cls, fleet: Fleet) -> "Seen":
        """Returns once the labels match the configuration: a starting agent writes labels before
        it has read the configuration."""
        fleet.watch.wait(lambda nodes: nodes[NODE]["metadata"]["labels"].items() >= WANTED.items(),
                         60, "the labels of the configuration")
        node, labels = fleet.nodes[NODE], ours(fleet.labels(NODE))
        statuses = {pod["metadata"]["name"]: pod["status"]["containerStatuses"][0]
                    for pod in fleet.get("pods")["items"]}
        holders = json.loads(node.penstock("ps", "-o", "json").stdout)["holders"]
        return cls(kubelet=node.kubelet_gave(),
                   containers={pod: (one["containerID"], one["restartCount"])
                               for pod, one in statuses.items()},
                   leases={one["slot"]: (one["lease"], one["since"]) for one in holders},
                   labels={key: labels[key] for key in labels if key != WHEN_WRITTEN})


@pytest.fixture(scope="module")
def old_release() -> released.Release:
    return released.release(OLD)


@pytest.fixture(scope="module")
def one_node(start_fleet, old_release):
    fleet = start_fleet(machines={NODE: "dgx-a100"})
    fleet.cluster.import_image(old_release.image, 1)
    return fleet


@pytest.fixture
def install_010(one_node, old_release, measure):
    """install_010(values, shared): 0.1.0 serves a node without pods, on which so many GPUs are
    shared."""
    fleet = one_node

    def install(values: dict, shared: int) -> Fleet:
        fleet.clear()
        if fleet.values is not None:
            fleet.uninstall()
            fleet.wait_advertised(60, but={NODE: 0})
        with measure("helm install of 0.1.0", of=fleet):
            fleet.install(values | {"image": {"tag": OLD}}, chart=old_release.chart)
            fleet.wait_rolled_out()
        uuids = fleet.nodes[NODE].uuids()
        fleet.nodes[NODE].wanted = {GPU: {uuid: 1 for uuid in uuids[shared:]},
                                    SHARED: {uuid: 4 for uuid in uuids[:shared]}}
        fleet.wait_advertised(120)
        assert tag(fleet) == OLD
        return fleet
    return install


@pytest.fixture
def held_since_010(install_010):
    """Three pods hold GPUs and five hold shares, all allocated by 0.1.0."""
    fleet = install_010(TIME_SLICED, shared=2)
    fleet.hold("whole", NODE, 3)
    fleet.hold("share", NODE, 5, SHARED)
    fleet.wait_held("whole", "share")
    fleet.check()
    return fleet


def test_where_a_released_version_cannot_be_built_the_error_says_what_to_do(tmp_path,
                                                                            monkeypatch):
    subprocess.run(["git", "init", "-q", tmp_path / "shallow"], check=True)
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PENSTOCK_OFFLINE", raising=False)
    for folder in ("shallow", "no-checkout"):
        with pytest.raises(released.NoHistory, match="0.1.0, 449bd013a69c: .*fetch --unshallow"):
            released.release(OLD, tmp_path / folder)
    monkeypatch.setenv("PENSTOCK_OFFLINE", "1")
    with pytest.raises(parts.Missing, match="tests/e2e/released.py"):
        released.release(OLD)


def tag(fleet: Fleet) -> str:
    """The version of the image that the node's agent runs."""
    pod = fleet.get("pod", "-n", NAMESPACE, fleet.agent_pods()[NODE])
    return pod["status"]["containerStatuses"][0]["image"].split(":")[1]


def upgrade(fleet: Fleet, values: dict, measure, away):
    offers = fleet.nodes[NODE].offers()
    samplers = {resource: fleet.sample_kubelet(NODE, resource) for resource in offers}
    with measure("helm upgrade to this checkout", of=fleet):
        fleet.install(values)
        fleet.wait_rolled_out()
    away({resource: sampler.longest_without(len(offers[resource]))
          for resource, sampler in samplers.items()})
    fleet.check()
    assert tag(fleet) == TODAY


def wait_summary(fleet: Fleet, **wanted):
    """Waits until the NodeState has that summary."""
    def summary() -> dict:
        return fleet.get("nodestates", NODE)["status"]["summary"]
    wait_for(lambda: summary().items() >= wanted.items(), 60,
             f"the summary of the NodeState to have {wanted}", summary)


def first(fleet: Fleet, app: str) -> str:
    """One of the pods with that app label."""
    return next(pod for pod in fleet.nodes[NODE].kubelet_gave() if pod.startswith(app))


def fill(fleet: Fleet):
    """New pods take the free slots; one more waits, and gets a slot that a pod of 0.1.0 released."""
    fleet.hold("new-whole", NODE, 3)
    fleet.hold("new-share", NODE, 3, SHARED)
    fleet.wait_held("new-whole", "new-share")
    fleet.check()
    wait_summary(fleet, devices=8, held=8, slots=14, free=0, driver="550.54.15")
    fleet.hold("next", NODE, 1, SHARED)
    wait_one_waits(fleet, "next", SHARED)
    fleet.delete_pod(first(fleet, "share"))
    fleet.wait_held("next")
    fleet.check()


def test_pods_of_010_keep_their_gpus_and_shares_through_an_upgrade_and_new_pods_start(
        held_since_010, measure, away):
    fleet = held_since_010
    before = Seen.now(fleet)
    upgrade(fleet, TIME_SLICED, measure, away)
    assert Seen.now(fleet) == before
    wait_summary(fleet, devices=8, healthy=8, held=5, slots=14, free=6, configuration="shared",
                 sharing="time-slicing", door="open")
    fill(fleet)


def test_after_a_rollback_010_takes_over_what_the_newer_version_left(held_since_010, measure, away):
    fleet = held_since_010
    upgrade(fleet, TIME_SLICED, measure, away)
    fill(fleet)
    before = Seen.now(fleet)
    with measure("helm rollback to 0.1.0", of=fleet):
        fleet.helm("rollback", RELEASE, "0")  # to the previous revision
        fleet.wait_rolled_out()
    fleet.check()
    assert tag(fleet) == OLD
    assert Seen.now(fleet) == before
    fleet.delete_pod(first(fleet, "whole"))
    fleet.hold("after", NODE, 1)
    fleet.wait_held("after")
    fleet.check()
    wait_summary(fleet, held=8, free=0)


def test_an_mps_server_of_010_goes_on_for_its_clients_through_an_upgrade_and_serves_new_ones(
        install_010, measure, away):
    fleet = install_010(MPS | ENABLED | SERVER_IN_PATH, shared=1)
    node = fleet.nodes[NODE]
    start(fleet, "client", f"exec {CLIENT} --hold")
    fleet.wait_held("client")
    server, before = client_holds(fleet, "client"), processes(node)
    assert before
    upgrade(fleet, MPS | ENABLED, measure, away)
    assert before.items() <= processes(node).items(), "the daemon or its server was replaced"
    wait_for(lambda: [its["clients"] for its in node.status()["servers"]] == [1], 60,
             "the new agent to know the client", lambda: said(node))
    pod = fleet.get("pod", "client")["status"]["containerStatuses"][0]
    assert pod["ready"] and pod["restartCount"] == 0
    assert client_holds(fleet, "client") == server
    start(fleet, "another", f"exec {CLIENT} --hold")
    fleet.wait_held("another")
    assert client_holds(fleet, "another") == server
    fleet.check()
