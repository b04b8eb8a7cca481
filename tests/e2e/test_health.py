"""A GPU that fails is withdrawn alone; one that recovers is advertised again."""
import pytest
from actors import wait_for
from invariants import nothing_given_twice


@pytest.mark.parametrize("fault, reason", [(("xid", "79"), "79"), (("lost",), "lost")], ids=["xid 79", "lost"])
def test_a_gpu_that_failed_is_taken_out_alone_and_comes_back_when_cured(agent, kubernetes, machine, fault, reason):
    broken = sorted(machine.minors())[3]
    machine.fault(broken, *fault)
    kubernetes.wait_for_gpus(7)
    assert broken not in kubernetes.gpus_the_kubelet_has()
    wait_for(lambda: (health := agent.device(broken)["health"])["state"] == "unhealthy" and reason in health["reason"].lower(), 60, "status to name the cause",
             agent.describe)
    assert sum(device["health"]["state"] == "healthy" for device in agent.status()["devices"]) == 7
    machine.heal()
    kubernetes.wait_for_gpus(8, deadline=60)
    assert agent.device(broken)["health"]["state"] == "healthy"


def test_pods_on_other_gpus_and_new_pods_do_not_notice_a_gpu_that_failed(agent, kubernetes, machine):
    kubernetes.run_pod("before", gpus=2)
    broken = sorted(set(machine.minors()) - set(kubernetes.gpus_of("before", machine)))[0]
    machine.fault(broken, "xid", "79")
    kubernetes.wait_for_gpus(7)
    kubernetes.run_pod("after", gpus=5)
    given = nothing_given_twice(kubernetes, machine)
    assert broken not in given["before"] | given["after"]
