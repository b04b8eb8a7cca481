"""A GPU that fails loses only its own shares; one that recovers, is reset or is replaced is used again; one that flaps stays withdrawn; and a GPU that is
assigned to another allocator leaves the first one before the second one offers it."""
import time
from itertools import groupby

import pytest
from actors import GPU, wait_for
from fleet import BY_UUID, Fleet, device_of, slots
from test_sharing import all_of, configure, sliced

PROBATION = 4  # seconds
VALUES = {"penstock": {"config": {"health": {"probation": f"{PROBATION}s", "probationMost": f"{2 * PROBATION}s", "reset": "idle"},
                                  "allocators": {"local": {"enabled": "on"}}}}}


@pytest.fixture
def watched(fleet):
    """Agents that reset idle devices, and also serve local users of the nodes."""
    fleet.clear()
    fleet.ensure_installed(VALUES)
    fleet.wait_advertised(120)
    fleet.wait_rolled_out()
    yield fleet
    fleet.edit({"by-uuid": BY_UUID})


@pytest.fixture
def sliced_dgx(watched):
    """The DGX's GPUs, each shared four times, with one pod on each."""
    node = watched.nodes["n1"]
    configure(watched, "n1", sliced(4), {GPU: all_of(node, 4)})
    watched.wait_advertised(60)
    watched.hold("share", "n1", 8)
    watched.wait_held("share")
    assert all(len(on(node, uuid)) == 1 for uuid in node.machine.minors()), "shares are not distributed"
    watched.check()
    return watched


def on(node, uuid: str) -> set[str]:
    """The pods that hold shares of a GPU, as the kubelet reports."""
    return {pod for pod, ids in node.kubelet_gave().items() if uuid in map(device_of, ids)}


def health_in_pods(fleet: Fleet, app: str) -> dict[str, set[str]]:
    """Pod -> the health of its devices in its own status."""
    return {pod["metadata"]["name"]: {resource["health"] for container in pod["status"].get("containerStatuses", [])
                                      for its in container.get("allocatedResourcesStatus", []) for resource in its["resources"]}
            for pod in fleet.get("pods", "-l", f"app={app}")["items"]}


def wait_event(fleet: Fleet, node: str, reason: str, words: str):
    wait_for(lambda: any(event["reason"] == reason and words in event["message"] for event in fleet.events(node)), 60,
             f"an Event {reason} on {node} with {words}", lambda: [(event["reason"], event["message"]) for event in fleet.events(node)])


def test_an_xid_takes_out_all_shares_of_its_gpu_and_no_others_and_a_cure_brings_them_back(sliced_dgx, measure):
    node = sliced_dgx.nodes["n1"]
    broken = node.uuids()[5]
    labels, lost = sliced_dgx.labels("n1"), slots(broken, 4)
    with measure("XID 79 on a shared GPU: the kubelet's list has none of its shares", goal=1):
        node.machine.fault(broken, "xid", "79")
        wait_for(lambda: node.kubelet_has() == node.offers()[GPU] - lost, 60, "the kubelet to list none of that GPU's shares", node.kubelet_lists)
    said = wait_for(lambda: "79" in (said := node.device(broken))["health"]["reason"] and said, 60, "status to name the XID",
                    lambda: node.device(broken))
    assert said["health"]["state"] == "unhealthy" and said["free"] == 0, said
    assert all(device["health"]["state"] == "healthy" for device in node.status()["devices"] if device["id"] != broken)
    wait_event(sliced_dgx, "n1", "DeviceUnhealthy", "79")
    [sick] = on(node, broken)
    wanted = {pod: {"Unhealthy" if pod == sick else "Healthy"} for pod in node.kubelet_gave()}
    wait_for(lambda: health_in_pods(sliced_dgx, "share") == wanted, 60, f"the status of {sick}, and no other pod's, to report Unhealthy",
             lambda: health_in_pods(sliced_dgx, "share"))
    # The kubelet writes the Node object later than its own list.
    sliced_dgx.watch.wait(lambda nodes: [nodes["n1"]["status"][of][GPU] for of in ("capacity", "allocatable")] == ["32", "28"], 60,
                          "n1 to have 32 shares, 28 of them allocatable")
    sampler = sliced_dgx.sample_kubelet("n1")
    with measure("the GPU recovers: its shares are back (its probation and 1 s)", goal=PROBATION + 1) as it:
        node.machine.cure(broken)
        it.done = sampler.until(32)
    sampler.stop()
    assert it.seconds() > PROBATION - 0.5, "it was used again before its probation ended"
    wait_event(sliced_dgx, "n1", "DeviceRecovered", "GPU")
    wait_for(lambda: set().union(*health_in_pods(sliced_dgx, "share").values()) == {"Healthy"}, 60, "all pods' devices to be healthy again")
    sliced_dgx.wait_advertised(60)
    wait_for(lambda: sliced_dgx.labels("n1") == labels, 60, "the labels as before", lambda: (labels, sliced_dgx.labels("n1")))
    sliced_dgx.check()


def flap(node, uuid: str) -> float:
    """Makes the GPU fail and recover six times, each for half a second; returns the longest time, in seconds, that it was healthy in between."""
    well, cured = 0.0, None
    for _ in range(6):
        node.machine.fault(uuid, "xid", "79")
        well = max(well, time.monotonic() - (cured or time.monotonic()))
        time.sleep(0.5)
        cured = time.monotonic()
        node.machine.cure(uuid)
        time.sleep(0.5)
    return well


def test_a_gpu_that_flaps_every_second_goes_once_and_comes_back_once(sliced_dgx, remark):
    node = sliced_dgx.nodes["n1"]
    restless = node.uuids()[6]
    for attempt in range(5):
        told, sampler = len(sliced_dgx.events("n1")), sliced_dgx.sample_kubelet("n1")
        sampler.until(32)
        well = flap(node, restless)
        sampler.until(32, deadline=120)
        sampler.stop()
        if well < PROBATION / 2:
            break  # else this machine stalled meanwhile, and the GPU was healthy longer than its probation: no flapping
    changes = [count for count, _ in groupby(count for _, count in sampler.seen if count != -1)]  # -1: the kubelet did not answer
    remark("a GPU that flaps every second, 6 times: device counts at the kubelet, Events", f"{changes}, {len(sliced_dgx.events('n1')) - told}")
    assert well < PROBATION / 2, f"in five attempts the GPU was once healthy for {well:.1f} s"
    assert changes == [32, 28, 32]
    sliced_dgx.wait_advertised(60)
    sliced_dgx.check()


def test_a_gpu_is_reset_once_nobody_holds_it(watched, measure):
    node = watched.nodes["n4"]  # alone: GPUs that are joined by NVSwitches are reset together
    [broken] = node.machine.minors()
    configure(watched, "n4", sliced(4), {GPU: {broken: 4}})
    watched.wait_advertised(60)
    watched.hold("share", "n4", 2)
    watched.wait_held("share")
    holders = on(node, broken)
    node.machine.fault(broken, "xid", "48")
    wait_for(lambda: not node.kubelet_has(), 60, "the kubelet to list none of that GPU's shares", node.kubelet_lists)
    said = wait_for(lambda: "48" in (said := node.device(broken))["health"]["reason"] and said, 60, "status to name the XID",
                    lambda: node.device(broken))
    assert said["health"]["state"] == "unhealthy" and on(node, broken) == holders, "the pods keep their shares"
    with measure("the last holder of a GPU that needs a reset ends: reset, and used again"):
        watched.delete_pod(*holders)
        wait_for(lambda: node.kubelet_has() == node.offers()[GPU], 60, "the GPU to be reset and used again",
                 lambda: (node.device(broken), node.run("sh", "-c", "tail -c 3000 /var/log/containers/penstock-*.log", check=False).stdout))
    assert watched.metric("n4", "accelerator_resets_total") == 1
    wait_event(watched, "n4", "DeviceReset", broken)
    watched.wait_advertised(60)
    watched.check()


def test_a_gpu_in_whose_place_there_is_another_is_recognised(watched, measure):
    node = watched.nodes["n4"]
    [before] = node.machine.minors()
    place, serial, after = node.device(before)["pci"], node.device(before)["serial"], "GPU-" + before[4:][::-1]
    with measure("a GPU is replaced: the kubelet has the new one"):
        node.machine.replace(place, after, "4711")
        wait_for(lambda: node.kubelet_has() == {after}, 60, "the kubelet to have the new GPU", lambda: (node.kubelet_lists(), watched.logs()))
    assert set(node.machine.minors()) == {after}
    wait_event(watched, "n4", "DeviceReplaced", "was replaced")
    watched.wait_advertised(60)
    watched.hold("new", "n4", 1)
    watched.wait_held("new")
    watched.check()
    watched.kubectl("delete", "pods", "--all", "--wait=true", "--timeout=300s")
    node.machine.replace(place, before, serial)
    wait_for(lambda: node.kubelet_has() == {before}, 60, "the kubelet to have the first GPU again", node.kubelet_lists)
    watched.wait_advertised(60)


def run(node, *words: str) -> str:
    """The GPU that a program of a node's local user sees, started by `penstock run`."""
    return node.penstock("run", *words, "--", "sh", "-c", "echo $NVIDIA_VISIBLE_DEVICES").stdout.strip()


def test_a_gpu_goes_to_the_local_door_and_comes_back(watched, measure):
    node = watched.nodes["n1"]
    moved = node.uuids()[7]
    others = set(node.machine.minors()) - {moved}
    with measure("`penstock assign 7 local`: the kubelet no longer has the GPU and local users do"):
        node.penstock("assign", "7", "local")
    assert node.kubelet_has() == others and node.device(moved)["allocator"] == "local"
    node.wanted = {GPU: {uuid: 1 for uuid in others}}
    watched.wait_advertised(60)
    assert run(node, "--gpus", "1") == moved
    assert run(node, "--share", "2") == moved
    watched.check()
    with measure("... and back"):
        node.penstock("assign", "7", "default")
    node.wanted = {}
    watched.wait_advertised(60)
    watched.hold("all", "n1", 8)
    watched.wait_held("all")
    refused = node.penstock("assign", "7", "local", check=False)
    [holder] = on(node, moved)
    assert refused.returncode and holder in refused.stderr + refused.stdout, refused
    watched.check()
