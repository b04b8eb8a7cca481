"""Files of NVIDIA's device plugin in a ConfigMap, chosen by node labels, are applied without a restart, and an invalid one changes nothing."""
import base64

import pytest
from actors import wait_for
from fleet import BY_INDEX as INDEX
from fleet import BY_UUID as UUID
from fleet import CONFIG_LABEL, WITHOUT_CDI, Fleet

# In the environment, because CDI has one name for a device whatever the configuration names it.
BY_UUID, BY_INDEX = (text + "    deviceListStrategy: envvar\n" for text in (UUID, INDEX))
GOOD = {"by-uuid": BY_UUID, "by-index": BY_INDEX}


@pytest.fixture
def configured(installed):
    """All nodes use the cluster's default."""
    installed.edit(GOOD)
    in_force(installed, {name: "by-uuid" for name in installed.nodes})
    wait_strategy(installed, "envvar")
    yield installed
    installed.edit({"by-uuid": UUID, "by-index": INDEX})
    wait_strategy(installed, "cdi-cri")


def wait_strategy(fleet: Fleet, name: str):
    """The origin of a configuration does not tell which text of a key is in effect. On the node without CDI both texts have the same effect."""
    wait_for(lambda: all(node.allocator("kubelet").get("deviceList", [])[:1] == [name] for node in fleet.nodes.values() if node.name != WITHOUT_CDI), 60,
             f"{name} to be in effect", fleet.logs)


def configurations(fleet: Fleet) -> dict[str, dict]:
    return {name: node.status()["configuration"] for name, node in fleet.nodes.items()}


def in_force(fleet: Fleet, keys: dict[str, str], deadline: float = 60):
    def agreed() -> bool:
        said = configurations(fleet)
        return all(f"key {key}" in said[name]["origin"] and not said[name]["problem"] for name, key in keys.items())
    wait_for(agreed, deadline, f"the configurations {keys} to be in effect", lambda: (configurations(fleet), fleet.logs()))


def visible(fleet: Fleet, node: str) -> str:
    """The environment variable with the devices of a new pod on that node."""
    fleet.hold("look", node, 1)
    fleet.wait_held("look")
    pod = fleet.get("pods", "-l", "app=look")["items"][0]["metadata"]["name"]
    word = fleet.told(pod)[0]
    fleet.delete_pod(pod)
    return word


def test_a_cluster_default_and_one_node_that_overrides_it(configured, measure):
    """Walkthrough D."""
    with measure("one node is labelled with another configuration"):
        configured.choose("n1", "by-index")
        in_force(configured, {"n1": "by-index", "n2": "by-uuid", "n3": "by-uuid", "n4": "by-uuid"})
    assert CONFIG_LABEL in configurations(configured)["n1"]["origin"]
    assert visible(configured, "n1").isdigit()
    assert visible(configured, "n3").startswith("GPU-")
    with measure("the label is removed"):
        configured.choose("n1", None)
        in_force(configured, {"n1": "by-uuid"})
    assert visible(configured, "n1").startswith("GPU-")
    configured.check()


def test_an_edited_config_map_applies_without_a_restart(configured, measure):
    pods = configured.agent_pods()
    with measure("the ConfigMap is edited: in effect on four nodes"):
        configured.edit(GOOD | {"by-uuid": BY_INDEX})
        in_force(configured, {name: "by-uuid" for name in configured.nodes})
        wait_for(lambda: visible(configured, "n4").isdigit(), 60, "the edit to count on n4")
    assert configured.agent_pods() == pods
    configured.edit(GOOD)


def test_a_broken_configuration_changes_nothing_and_says_so_until_it_is_mended(configured, measure):
    configured.hold("before", "n1", 3)
    configured.wait_held("before")
    typo = BY_UUID.replace("uuid", "uid")

    def refused(name: str) -> bool:
        said = configured.nodes[name].status()["configuration"]
        return "deviceIDStrategy" in said["problem"] and "key by-uuid" in said["problemOrigin"]
    with measure("a typo in the ConfigMap: four nodes report it"):
        configured.edit(GOOD | {"by-uuid": typo})
        wait_for(lambda: all(refused(name) for name in configured.nodes), 60, "all nodes to name the typo", configured.logs)
    for node in configured.nodes.values():
        condition = next(one for one in node.status()["conditions"] if one["type"] == "ConfigurationApplied")
        assert not condition["status"], condition
    wait_for(lambda: any("deviceIDStrategy" in event["message"] for event in configured.events("n2")), 60, "an Event on the Node",
             lambda: configured.events("n2"))
    assert configured.metric("n1", "penstock_config_last_reload_successful") == 0
    assert visible(configured, "n3").startswith("GPU-")
    configured.check()
    with measure("the typo is fixed"):
        configured.edit(GOOD)
        in_force(configured, {name: "by-uuid" for name in configured.nodes})
    assert configured.metric("n1", "penstock_config_last_reload_successful") == 1
    configured.check()


def test_what_nvidias_plugin_passes_over_is_said_and_changes_no_capacity(configured):
    configured.edit(GOOD | {"by-uuid": BY_UUID + "maxShares: 4\n"})

    def remarked(name: str) -> bool:
        return "maxShares: is unknown" in str(configured.nodes[name].status()["configuration"].get("remarks"))
    wait_for(lambda: all(remarked(name) for name in configured.nodes), 60, "all nodes to name the key", configured.logs)
    for node in configured.nodes.values():
        condition = next(one for one in node.status()["conditions"] if one["type"] == "ConfigurationApplied")
        assert condition["status"] and condition["reason"] == "AppliedWithRemarks", condition
    wait_for(lambda: any("maxShares" in event["message"] for event in configured.events("n2")), 60, "an Event on the Node",
             lambda: configured.events("n2"))
    assert configured.metric("n1", "penstock_config_remarks") == 1
    configured.check()
    configured.edit(GOOD)
    wait_for(lambda: not any(remarked(name) for name in configured.nodes), 60, "the message to disappear", configured.logs)


@pytest.mark.parametrize("what, change", [
    ("it is deleted", lambda fleet: fleet.configure(None)),
    ("it has two keys, none of them the default", lambda fleet: fleet.configure({"any": BY_INDEX, "other": BY_INDEX})),
    ("the key is binary", lambda fleet: fleet.configure({"by-index": BY_INDEX}, {"by-uuid": base64.b64encode(b"\xff\xfe\x00").decode()})),
    ("the key is empty of sense", lambda fleet: fleet.configure(GOOD | {"by-uuid": "version: v7\n"})),
], ids=["deleted", "two keys", "binary", "version"])
def test_a_config_map_that_cannot_be_used_changes_nothing(configured, what, change):
    change(configured)
    wait_for(lambda: all(said["problem"] for said in configurations(configured).values()), 60, f"all nodes to report that {what}",
             lambda: (configurations(configured), configured.logs()))
    assert visible(configured, "n2").startswith("GPU-")
    configured.configure(GOOD)
    in_force(configured, {name: "by-uuid" for name in configured.nodes})
    configured.check()


def test_reloads_while_twenty_pods_come_and_go(configured, measure):
    with measure("ten reloads while 20 pods churn"):
        configured.churn("churn", "n1", pods=20, at_once=8)
        for i in range(10):
            configured.edit(GOOD | {"by-uuid": (BY_INDEX, BY_UUID)[i % 2]})
        configured.wait_churned("churn")
    told = configured.kubectl("logs", "-l", "job-name=churn", "--tail=-1", "--max-log-requests=20").stdout.split()
    assert len(told) == 20 and all(word.isdigit() or word.startswith("GPU-") for word in told), told
    configured.check()
