"""Whichever daemon is killed at whatever moment, no GPU is lost and none is allocated twice."""
import time

import pytest
from actors import Agent, wait_for
from invariants import nothing_given_twice, wait_until_ledger_agrees


@pytest.fixture
def three_pods(agent, kubernetes, machine) -> dict[str, set[str]]:
    """Three pods of two GPUs that restart whenever they end; returns the GPUs of each. Two GPUs are free."""
    for name in ("a", "b", "c"):
        kubernetes.create_pod(name, gpus=2, restart="Always")
    kubernetes.wait_running("a", "b", "c")
    return nothing_given_twice(kubernetes, machine)


def all_is_as_before(before, agent, kubernetes, machine):
    """The pods still have their GPUs, the ledger matches, and exactly the two free GPUs are allocatable."""
    kubernetes.wait_running(*before, deadline=60)
    kubernetes.wait_for_gpus(8)
    wait_until_ledger_agrees(agent, kubernetes, machine)
    assert nothing_given_twice(kubernetes, machine) == before
    kubernetes.run_pod("rest", gpus=2)
    kubernetes.create_pod("too-many", gpus=1)
    wait_for(lambda: "Insufficient nvidia.com/gpu" in kubernetes.why_pending("too-many"), 60, "the excess pod to stay Pending")
    given = nothing_given_twice(kubernetes, machine)
    assert given.pop("rest") == set(machine.minors()) - set.union(*before.values())
    assert given == before


def test_nothing_is_lost_when_the_kubelet_is_killed(three_pods, cluster, agent, kubernetes, machine):
    cluster.kill("kubelet")
    cluster.start("kubelet")
    wait_for(lambda: kubernetes.gpus_the_kubelet_has() == set(machine.minors()), 60, "the new kubelet to have the list")
    all_is_as_before(three_pods, agent, kubernetes, machine)


def test_nothing_is_lost_when_containerd_is_killed(three_pods, cluster, agent, kubernetes, machine):
    cluster.kill("containerd")
    cluster.start("containerd")
    all_is_as_before(three_pods, agent, kubernetes, machine)


def test_nothing_is_lost_when_the_agent_is_killed(three_pods, agent, kubernetes, machine):
    agent.kill()
    agent.start()
    wait_until_ledger_agrees(agent, kubernetes, machine, deadline=60)
    all_is_as_before(three_pods, agent, kubernetes, machine)


def test_nothing_is_lost_when_the_kubelet_restarts_while_the_agent_is_away(three_pods, cluster, agent, kubernetes, machine):
    agent.kill()
    cluster.kill("kubelet")
    cluster.start("kubelet")
    agent.start()
    all_is_as_before(three_pods, agent, kubernetes, machine)


def test_a_pod_that_ended_while_the_agent_was_away_frees_its_gpus(three_pods, agent, kubernetes, machine):
    agent.kill()
    kubernetes.delete_pod("b")
    agent.start()
    freed = three_pods.pop("b")
    kubernetes.wait_for_gpus(8)
    kubernetes.run_pod("heir", gpus=4)
    given = nothing_given_twice(kubernetes, machine)
    assert freed < given.pop("heir")
    assert given == three_pods
    wait_until_ledger_agrees(agent, kubernetes, machine)


def test_two_agents_hand_over(three_pods, cluster, agent, kubernetes, machine, request):
    second = Agent(cluster, machine, agent.programs, name="second-agent")
    second.start()
    request.addfinalizer(second.kill)
    try:
        wait_for(lambda: str(agent.pid()) in second.log(), 60, "the second agent to name the first")
        assert second.running()
        assert agent.status()["agentPid"] == agent.pid()

        agent.stop()
        away = time.monotonic()
        second.wait_serving()
        wait_for(lambda: kubernetes.gpus_the_kubelet_has() == set(machine.minors()), 60, "the second agent's list at the kubelet")
        print(f"the kubelet had no list for at most {time.monotonic() - away:.2f} s")
        all_is_as_before(three_pods, second, kubernetes, machine)
        assert second.status()["agentPid"] == second.pid()
    finally:
        second.stop()
        agent.start()
    kubernetes.wait_for_gpus(8)


def test_after_a_reboot_pods_come_back_with_gpus_of_their_own(three_pods, cluster, agent, kubernetes, machine):
    agent.at_every_boot()
    cluster.reboot()

    created = set()  # anew: a pod that is admitted before any plugin has registered fails permanently

    def run_again():
        pods = {pod["metadata"]["name"]: pod["status"] for pod in kubernetes.get("pods")["items"]}
        for name in three_pods:
            if pods.get(name, {}).get("reason") == "UnexpectedAdmissionError":
                kubernetes.delete_pod(name)
                kubernetes.create_pod(name, gpus=2, restart="Always")
                created.add(name)
        containers = {name: pods.get(name, {}).get("containerStatuses", [{}])[0] for name in three_pods}  # none while the kubelet starts
        return all(one.get("ready") and (name in created or one["restartCount"] > 0) for name, one in containers.items())

    wait_for(run_again, 120, "the pods to run again")
    kubernetes.wait_for_gpus(8)
    given = nothing_given_twice(kubernetes, machine)
    assert set(given) == set(three_pods)
    wait_until_ledger_agrees(agent, kubernetes, machine)
    kubernetes.run_pod("rest", gpus=2)
    nothing_given_twice(kubernetes, machine)
