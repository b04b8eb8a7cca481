"""The configured capacity does not change while agents are killed, nodes reboot and the API server, which holds the configuration, is down: if a whole GPU
were advertised for a moment, a pod could take it although three shares of it are held."""
import contextlib

import pytest
from actors import GPU, wait_for
from fleet import BY_UUID, Fleet, Node
from test_mps_fleet import SHARED, said, served, start  # noqa: F401  (served is a fixture)
from test_sharing import all_of, configure, sliced

NO_ANSWER, NONE = -1, 0  # the kubelet's grace period; while an agent is away its devices are not allocatable


def shared_by_time(fleet: Fleet, name: str) -> Node:
    node = fleet.nodes[name]
    configure(fleet, name, sliced(4), {GPU: all_of(node, 4)})
    fleet.wait_advertised(60)
    return node


@pytest.fixture
def sliced_node(installed):
    """n2, whose configuration shares its GPUs four times each; five shares are held."""
    shared_by_time(installed, "n2")
    installed.hold("share", "n2", 5)
    installed.wait_held("share")
    installed.check()
    yield installed
    installed.edit({"by-uuid": BY_UUID})


@contextlib.contextmanager
def no_api_server(fleet: Fleet):
    fleet.cluster.kill("apiserver")
    try:
        yield
    finally:
        fleet.cluster.start("apiserver")
        fleet.restart_controllers()


def has_its_offers_again(node: Node):
    """Waits until the kubelet has all offers again, for which the agent needs no API server."""
    wait_for(lambda: node.kubelet_lists() == node.offers(), 120, f"the kubelet of {node.name} to have its shares again",
             lambda: (node.kubelet_lists(), node.penstock("status", check=False).stdout))


def seen_while(fleet: Fleet, node: Node, act) -> dict[str, set[int]]:
    """Per resource, all numbers of devices that the kubelet listed during that action and until all were back."""
    samplers = {resource: fleet.sample_kubelet(node.name, resource) for resource in {*node.offers(), GPU}}
    act()
    has_its_offers_again(node)
    for resource, ids in node.offers().items():
        samplers[resource].until(len(ids))
    return {resource: sampler.counts() - {NO_ANSWER, NONE} for resource, sampler in samplers.items()}


def offered(node: Node) -> dict[str, set[int]]:
    return {GPU: set()} | {resource: {len(ids)} for resource, ids in node.offers().items()}


def test_an_agent_that_is_killed_comes_back_with_the_shares_that_it_offered(sliced_node):
    node, before = sliced_node.nodes["n2"], sliced_node.nodes["n2"].kubelet_gave()
    assert seen_while(sliced_node, node, node.kill_agent) == offered(node)
    assert node.kubelet_gave() == before
    sliced_node.check()


def test_an_agent_that_starts_without_an_api_server_offers_what_was_last_configured(sliced_node, measure):
    node, before = sliced_node.nodes["n2"], sliced_node.nodes["n2"].kubelet_gave()
    with no_api_server(sliced_node):
        with measure("an agent is killed during an API server outage: the kubelet has its shares", of=sliced_node):
            seen = seen_while(sliced_node, node, node.kill_agent)
        configuration = node.status()["configuration"]
    assert seen == offered(node)
    assert "key own" in configuration["origin"], configuration
    sliced_node.wait_advertised(120)
    assert node.kubelet_gave() == before
    sliced_node.check(deadline=120)


def test_a_node_that_boots_never_offers_whole_gpus_where_they_are_shared(installed):
    node = shared_by_time(installed, "n2")
    seen = seen_while(installed, node, lambda: installed.cluster.reboot_node(2))
    assert seen == offered(node), said(node)
    installed.wait_advertised(60)
    installed.wait_rolled_out()
    installed.check(deadline=120)
    installed.edit({"by-uuid": BY_UUID})


def test_an_agent_that_starts_without_an_api_server_keeps_what_it_shares_by_mps(served):  # noqa: F811
    node = served.nodes["n1"]
    start(served, "client")
    served.wait_held("client")
    before = node.kubelet_gave()
    with no_api_server(served):
        seen = seen_while(served, node, node.kill_agent)
    assert seen == offered(node), said(node)
    assert seen[SHARED], "nothing was shared"
    served.wait_advertised(120)
    assert node.kubelet_gave() == before
    served.check(deadline=120)
