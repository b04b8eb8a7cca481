"""Assertions that hold in every state."""
from actors import GPU, Agent, Kubernetes, Machine, wait_for


def pods_that_run(kubernetes: Kubernetes) -> dict[str, int]:
    """Name -> number of requested GPUs."""
    found = {}
    for pod in kubernetes.get("pods")["items"]:
        limits = pod["spec"]["containers"][0].get("resources", {}).get("limits", {})
        if GPU in limits and kubernetes.ready(pod["metadata"]["name"]):
            found[pod["metadata"]["name"]] = int(limits[GPU])
    return found


def nothing_given_twice(kubernetes: Kubernetes, machine: Machine) -> dict[str, set[str]]:
    """Each running pod sees as many existing GPUs as it requested, and no GPU is seen by two pods. Returns the GPUs of each pod."""
    asked = pods_that_run(kubernetes)
    seen = {pod: kubernetes.gpus_of(pod, machine) for pod in asked}
    for pod, count in asked.items():
        assert len(seen[pod]) == len(set(seen[pod])) == count, f"{pod} requested {count} and sees {seen[pod]}"
        assert set(seen[pod]) <= set(machine.minors()), f"{pod} sees a GPU that does not exist: {seen[pod]}"
    everything = [uuid for uuids in seen.values() for uuid in uuids]
    assert len(everything) == len(set(everything)), f"a GPU was allocated twice: {seen}"
    return {pod: set(uuids) for pod, uuids in seen.items()}


def wait_until_ledger_agrees(agent: Agent, kubernetes: Kubernetes, machine: Machine, deadline: float = 120):
    """Waits until `penstock ps` reports exactly what the pods see."""
    def disagreement():
        given, said = nothing_given_twice(kubernetes, machine), agent.held_by_pods()
        return None if given == said else f"the pods see {given}, penstock ps reports {said}"

    last: list[str | None] = []
    wait_for(lambda: last.append(disagreement()) or last[-1] is None, deadline, "penstock ps to agree with the pods", lambda: last[-1:])
