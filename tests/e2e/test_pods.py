"""A real kubelet allocates GPUs: the devices that a pod gets, those it does not get, and the reported holders."""
from actors import OPENED, REFUSED, wait_for
from invariants import nothing_given_twice


def test_the_node_offers_the_eight_gpus_of_the_machine(agent, kubernetes, machine):
    assert kubernetes.gpus("capacity") == 8
    assert kubernetes.gpus_the_kubelet_has() == set(machine.minors())
    assert {device["id"] for device in agent.status()["devices"]} == set(machine.minors())
    assert {device["health"]["state"] for device in agent.status()["devices"]} == {"healthy"}


def test_a_pod_of_two_opens_exactly_its_two_gpus(agent, kubernetes, machine):
    kubernetes.run_pod("two", gpus=2)
    uuids = kubernetes.gpus_of("two", machine)
    assert len(set(uuids)) == 2
    minors = machine.minors()
    own = {minors[uuid] for uuid in uuids}
    assert kubernetes.openable("two", range(8)) == {minor: OPENED if minor in own else REFUSED for minor in range(8)}
    assert kubernetes.device_files("two") == {f"nvidia{minor}" for minor in own}


def test_a_pod_that_asks_for_none_opens_none(agent, kubernetes):
    kubernetes.run_pod("none")
    assert set(kubernetes.openable("none", range(8)).values()) == {REFUSED}


def test_the_ninth_waits_and_runs_when_one_ends(agent, kubernetes, machine):
    eight = [f"one-{i}" for i in range(8)]
    for name in eight:
        kubernetes.create_pod(name, gpus=1)
    kubernetes.wait_running(*eight)
    assert len(nothing_given_twice(kubernetes, machine)) == 8

    kubernetes.create_pod("ninth", gpus=1)
    wait_for(lambda: "Insufficient nvidia.com/gpu" in kubernetes.why_pending("ninth"), 60, "the ninth pod to be Pending for lack of a GPU")
    freed = set(kubernetes.gpus_of("one-3", machine))
    kubernetes.delete_pod("one-3")
    kubernetes.wait_running("ninth")
    assert nothing_given_twice(kubernetes, machine)["ninth"] == freed


def test_a_gpu_comes_back_when_its_pod_has_succeeded(agent, kubernetes, machine):
    kubernetes.run_pod("seven", gpus=7)
    kubernetes.create_pod("short", gpus=1, command="true")
    wait_for(lambda: kubernetes.phase("short") == "Succeeded", 60, "the short pod to end")
    kubernetes.run_pod("next", gpus=1)
    nothing_given_twice(kubernetes, machine)
    wait_for(lambda: set(agent.held_by_pods()) == {"seven", "next"}, 60, "penstock ps to forget the pod that ended")


def test_penstock_ps_names_pod_namespace_and_container(agent, kubernetes, machine):
    kubernetes.create_pod("named", gpus=2)
    wait_for(lambda: kubernetes.phase("named") == "Running", 60, "the pod to run")
    held = wait_for(lambda: [holder for holder in agent.holders("pod") if holder["pod"] == "named"], 60, "penstock ps to name the pod")
    assert {(holder["namespace"], holder["container"]) for holder in held} == {("default", "main")}
    assert {holder["device"] for holder in held} == set(kubernetes.gpus_of("named", machine))
    kubernetes.delete_pod("named")
    wait_for(lambda: not agent.holders(), 60, "the ledger to be empty after the pod is gone")
