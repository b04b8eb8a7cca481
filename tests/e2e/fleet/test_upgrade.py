"""helm upgrade under load: on every node a new agent pod takes over from the old one."""
from fleet import Fleet


def pods(fleet: Fleet, app: str) -> dict[str, tuple]:
    """uid -> containers and GPUs of each pod."""
    found = fleet.get("pods", "-l", f"app={app}")["items"]
    return {pod["metadata"]["uid"]: ([(one["containerID"], one["restartCount"]) for one in pod["status"]["containerStatuses"]],
                                     frozenset(fleet.device_files(pod["metadata"]["name"]))) for pod in found}


def test_an_upgrade_under_load_takes_nothing_from_pods(installed, measure, remark, away):
    for node, count in {"n1": 4, "n2": 2, "n4": 1}.items():
        installed.hold(f"held-{node}", node, count)
    installed.wait_held("held-n1", "held-n2", "held-n4")
    before = {node: pods(installed, f"held-{node}") for node in ("n1", "n2", "n4")}
    old = installed.agent_pods()
    samplers = installed.sample_kubelets()
    # Pods that are scheduled between the end of the old agent's list and the registration of the new one fail permanently.
    installed.churn("churn", "n1", pods=12, at_once=3, failures=6)
    with measure("helm upgrade under load: all nodes have the new agent"):
        installed.install({"podAnnotations": {"upgraded": "yes"}})
        installed.wait_rolled_out()
    gaps = {name: sampler.longest_without(len(installed.nodes[name].machine.minors())) for name, sampler in samplers.items()}
    installed.wait_churned("churn", 420)  # a Job waits up to 6 min before it replaces pods that failed
    remark("  pods rejected during the change of agents", str(installed.get("job", "churn")["status"].get("failed", 0)))
    assert set(installed.agent_pods().values()).isdisjoint(old.values())
    assert {node: pods(installed, f"held-{node}") for node in before} == before
    installed.check()
    away(gaps)
