"""Nodes with hardware and without a driver: a driver container comes, is replaced and goes, and the agent of the node follows without a restart."""
import contextlib
import json

import pytest
from actors import DEBIAN, GPU, wait_for
from api import RequestFailed
from driver_containers import ROOT_OF_DRIVER, BareNode, driver_pod, provide, wait_ready
from fleet import ACCELERATORS, pod_on

NODE, OLD, NEW = "n4", "535.183.01", "550.54.15"
READY = "/run/nvidia/validations/driver-ready"
VALUES = {"penstock": {"validation": {"directory": "/run/nvidia/validations"}, "config": {"paths": {"driverContainerRoot": ROOT_OF_DRIVER}}}}
ON_HOST = f"{ACCELERATORS}{ROOT_OF_DRIVER}"  # the driver's root of simulated nodes is a folder


@pytest.fixture(scope="module")
def images(fleet):
    return {version: provide(fleet, version) for version in (OLD, NEW)}


@pytest.fixture(scope="module")
def bare(fleet):
    """One node has no driver; the others have drivers of their hosts."""
    fleet.clear()
    fleet.ensure_installed(VALUES)
    fleet.wait_advertised(120)
    fleet.wait_rolled_out()
    bare = BareNode(fleet.nodes[NODE])
    try:
        fleet.wait_advertised(60, but={NODE: 0})
        yield bare
    finally:
        fleet.delete_all_pods()
        bare.restore()


def vendor(fleet, node: str = NODE) -> dict:
    """What the NodeState says of NVIDIA's driver; empty: nothing yet."""
    return next((one for one in fleet.get("nodestate", node).get("status", {}).get("vendors", []) if one["vendor"] == "nvidia"), {})


def wait_vendor(fleet, deadline: float = 60, **wanted) -> dict:
    wait_for(lambda: {key: vendor(fleet).get(key) for key in wanted} == wanted, deadline, f"the NodeState of {NODE} to have {wanted}",
             lambda: (vendor(fleet), fleet.logs()))
    return vendor(fleet)


def specifications(bare) -> str:
    return bare.node.view.text("/run/cdi/*.json")


def host_paths(bare) -> set[str]:
    def found(value):
        if isinstance(value, dict):
            yield from ([value["hostPath"]] if "hostPath" in value else [])
            for one in value.values():
                yield from found(one)
        elif isinstance(value, list):
            for one in value:
                yield from found(one)
    names = bare.node.run("sh", "-c", "ls /var/run/cdi/*.json").stdout.split()
    return {path for name in names for path in found(json.loads(bare.node.run("cat", name).stdout))}


def run_smi(fleet, name: str) -> str:
    """The output of nvidia-smi in a pod with a GPU of that node."""
    spec = {"restartPolicy": "Never"} | pod_on(NODE, "nvidia-smi -L && nvidia-smi --query-gpu=driver_version --format=csv,noheader", image=DEBIAN)
    fleet.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
    wait_for(lambda: fleet.phase(name) in ("Succeeded", "Failed"), 60, f"the pod {name} to end", lambda: fleet.kubectl("describe", "pod", name, check=False).stdout)
    said = fleet.kubectl("logs", name, check=False).stdout
    assert fleet.phase(name) == "Succeeded", said
    fleet.delete_pod(name)
    return said


def test_a_node_without_a_driver_says_so(bare, fleet):
    wait_vendor(fleet, driver="")
    # The module goes before its library does.
    wait_for(lambda: "there is no NVIDIA driver library" in vendor(fleet, NODE).get("reason", ""), 60, "the reason", lambda: vendor(fleet, NODE))
    now = vendor(fleet, NODE)
    assert not {"driverSource", "driverRoot", "driverSince"} & set(now)
    of_hosts = dict.fromkeys(("n1", "n2", "n3"), "host")
    wait_for(lambda: {name: vendor(fleet, name).get("driverSource") for name in of_hosts} == of_hosts, 60, "the drivers of the other nodes", fleet.logs)
    assert bare.module() == "" and not bare.has_root()


def test_a_driver_container_gives_the_node_its_gpus(bare, images, fleet, measure):
    agent = fleet.agent_pods()[NODE]
    fleet.create(driver_pod("driver-old", NODE, images[OLD]))
    wait_for(bare.has_root, 60, "the driver's root", lambda: fleet.kubectl("logs", "driver-old", check=False).stdout)
    with measure("a driver container has put its root: the Node has its GPUs", 5) as it:
        it.done = fleet.wait_advertised(60)
    wait_ready(fleet, "driver-old")
    now = wait_vendor(fleet, driver=OLD, driverSource="container", driverRoot=ON_HOST, reason="")
    started = fleet.get("pod", "driver-old")["status"]["startTime"]
    assert now["driverSince"] >= started, (now, started)
    # CDI specifications and the kubelet's answers name the container's files.
    of_driver = {path for path in host_paths(bare) if "nvidia" in path.removeprefix(ON_HOST).removeprefix(ACCELERATORS) and not path.endswith("penstock-hook")}
    assert of_driver and all(path.startswith(ON_HOST) for path in of_driver), of_driver
    said = run_smi(fleet, "smi-old")
    assert OLD in said and all(uuid in said for uuid in bare.node.machine.minors()), said
    wait_for(lambda: f"IS_HOST_DRIVER=false\nNVIDIA_DRIVER_ROOT={ON_HOST}\n" in bare.node.view.text(READY), 60, "the file of the driver that is ready",
             lambda: bare.node.view.text(READY))
    assert f"of the driver container in {ON_HOST}" in bare.node.penstock("validate", check=False).stdout
    assert fleet.agent_pods()[NODE] == agent
    wait_for(lambda: len(bare.node.agents()) == 1, 60, "one agent", bare.node.processes)


def test_at_rest_nothing_is_written(bare, fleet):
    since = wait_vendor(fleet, driver=OLD)["driverSince"]
    fleet.wait_quiet(20)  # the pod that just ended had a GPU
    assert vendor(fleet)["driverSince"] == since


def test_a_root_that_goes_withdraws_the_gpus_with_a_reason(bare, fleet, measure):
    before = bare.module()
    fleet.delete_pod("driver-old")
    assert bare.has_root() and bare.module() == before == OLD, "a container that ends leaves root and module"
    assert fleet.get("node", NODE)["status"]["allocatable"][GPU] != "0"
    with measure("a driver container's root is unmounted: the Node has no GPUs", 5) as it:
        bare.unmount()
        it.done = fleet.wait_advertised(60, but={NODE: 0})
    wait_for(lambda: (now := vendor(fleet)).get("driver") == "" and "there is no NVIDIA driver library" in now.get("reason", "") and "driverSource" not in now,
             60, "the reason", lambda: vendor(fleet))
    wait_for(lambda: ON_HOST not in specifications(bare), 60, "the CDI specifications to be gone", lambda: specifications(bare))
    [device] = bare.node.status()["devices"]
    assert device["health"]["state"] == "gone" and "the driver is gone" in device["health"]["reason"], device


def test_another_version_that_is_put_there_is_followed(bare, images, fleet):
    bare.unload()
    fleet.create(driver_pod("driver-new", NODE, images[NEW]))
    wait_ready(fleet, "driver-new")
    fleet.wait_advertised(60)
    first = wait_vendor(fleet, driver=NEW, driverSource="container")
    assert NEW in run_smi(fleet, "smi-new")
    # A container that starts again mounts its root again, and finds the module loaded: it is opened anew.
    fleet.delete_pod("driver-new")
    fleet.create(driver_pod("driver-again", NODE, images[NEW]))
    wait_ready(fleet, "driver-again")
    wait_for(lambda: vendor(fleet).get("driverSince", "") > first["driverSince"], 60, "the driver to be opened anew", lambda: (vendor(fleet), first))
    fleet.wait_advertised(60)


def test_a_container_that_fails_brings_no_driver(bare, images, fleet):
    fleet.delete_pod("driver-again")
    bare.unmount()
    bare.unload()
    fleet.wait_advertised(60, but={NODE: 0})
    bare.wish(fail="no kernel headers")
    fleet.create(driver_pod("driver-fails", NODE, images[NEW]))
    wait_for(lambda: fleet.get("pod", "driver-fails")["status"].get("containerStatuses", [{}])[0].get("restartCount", 0) > 0, 60, "the driver's container to fail")

    def logs() -> str:
        said = ""
        for which in ({"previous": "true"}, {}):
            with contextlib.suppress(RequestFailed):  # there is none yet
                said += fleet.logs_of("driver-fails", **which)
        return said
    wait_for(lambda: "no kernel headers" in logs(), 60, "the container to say why", logs)
    assert not bare.has_root()
    wait_vendor(fleet, driver="")
    bare.wish()
    wait_ready(fleet, "driver-fails")
    fleet.wait_advertised(60)
    fleet.delete_pod("driver-fails")
    bare.unmount()
    bare.unload()
    fleet.wait_advertised(60, but={NODE: 0})


def test_a_root_of_another_user_is_not_used_and_named(bare, fleet):
    made = f"{ROOT_OF_DRIVER}.other"  # the agent looks as soon as the folder is there: it is whole by then
    library = f"{made}/usr/lib/x86_64-linux-gnu"
    bare.node.run("sh", "-c", f"mkdir -p {library} && cp /bin/true {library}/libnvidia-ml.so.1 && chown -R 65534 {made} && mv -T {made} {ROOT_OF_DRIVER}")
    try:
        wait_for(lambda: "belongs to user 65534" in vendor(fleet).get("reason", ""), 60, "the reason to name the owner", lambda: (vendor(fleet), fleet.logs()))
        assert vendor(fleet)["driver"] == ""
    finally:
        bare.node.run("rm", "-rf", ROOT_OF_DRIVER)
