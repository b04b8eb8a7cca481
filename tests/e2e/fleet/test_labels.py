"""Labels follow the hardware, and labels of other owners are not touched."""
import time

from actors import wait_for
from witnesses import summed


def gpu_label(nodes: dict, node: str, key: str) -> str | None:
    return nodes[node]["metadata"]["labels"].get(f"nvidia.com/{key}")


def test_a_gpu_that_is_pulled_and_put_back_shows_in_the_labels(installed, measure):
    machine, watch = installed.nodes["n2"].machine, installed.watch
    watch.wait(lambda nodes: gpu_label(nodes, "n2", "gpu.count.GeForce-RTX-3090") == "1" == gpu_label(nodes, "n2", "gpu.count.Tesla-T4"), 60, "the labels of n2")
    with measure("a GPU is removed: the Node's labels", goal=1) as it:
        machine.fault("0000:65:00.0", "remove")
        it.done = watch.wait(lambda nodes: gpu_label(nodes, "n2", "gpu.count.GeForce-RTX-3090") is None, 60, "the RTX 3090's label to go")
    assert gpu_label(watch.nodes, "n2", "gpu.count.Tesla-T4") == "1"
    installed.wait_advertised(60, but={"n2": 2})
    with measure("the GPU is back: the Node's labels", goal=1) as it:
        machine.heal()
        it.done = watch.wait(lambda nodes: gpu_label(nodes, "n2", "gpu.count.GeForce-RTX-3090") == "1", 60, "the RTX 3090's label to come")
    installed.wait_advertised(60)
    installed.check()


def test_a_driver_that_goes_and_comes_takes_the_labels_along(installed, measure):
    machine, watch = installed.nodes["n4"].machine, installed.watch
    machine.fault("driver", "unload")
    installed.wait_advertised(60, but={"n4": 0})
    with measure("a driver is loaded: the Node object has its GPU"):
        machine.heal()
        installed.wait_advertised(60)
    watch.wait(lambda nodes: gpu_label(nodes, "n4", "cuda.driver-version.full") == "550.54.15", 60, "the driver's labels")


def test_health_changes_no_label(installed):
    machine = installed.nodes["n1"].machine
    before = {key: value for key, value in installed.labels("n1").items() if "nvidia.com" in key}
    machine.fault("0000:47:00.0", "xid", "79")
    installed.wait_advertised(60, but={"n1": 7})
    assert {key: value for key, value in installed.labels("n1").items() if "nvidia.com" in key} == before
    machine.heal()
    installed.wait_advertised(60)


def test_labels_that_somebody_sets_by_hand_stay_theirs(installed):
    installed.kubectl("label", "node", "n3", "team=vision", "nvidia.com/gpu.deploy.dcgm=false")
    begin = time.time()
    installed.nodes["n3"].machine.fault("0000:00:1e.0", "remove")
    installed.wait_advertised(60, but={"n3": 0})
    installed.nodes["n3"].machine.heal()
    installed.wait_advertised(60)
    labels = installed.labels("n3")
    assert (labels["team"], labels["nvidia.com/gpu.deploy.dcgm"]) == ("vision", "false")
    assert len(installed.audit.writes(begin)) < 20, summed(installed.audit.writes(begin))
    installed.kubectl("label", "node", "n3", "team-", "nvidia.com/gpu.deploy.dcgm-")


def test_a_label_of_ours_that_somebody_took_away_comes_back(installed, measure):
    with measure("another client removes a label of Penstock: it is back"):
        installed.kubectl("label", "node", "n3", "nvidia.com/gpu.product-")
        wait_for(lambda: installed.labels("n3").get("nvidia.com/gpu.product") == "Tesla-T4", 60, "the label to be back")
