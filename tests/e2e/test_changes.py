"""Changes of devices on a real kubelet: moves to another allocator and resets, also under agents that are killed in between."""
import pytest
from actors import wait_for
from invariants import wait_until_ledger_agrees


def reason(agent, gpu: str) -> str:
    device = agent.device(gpu)
    return f"{device.get('withheld', '')} {device['health']['reason']}"


@pytest.fixture
def put_back(agent, machine):
    yield
    agent.configure("")
    agent.ensure_running()
    for gpu in machine.minors():
        agent.penstock("assign", gpu, "default", "--wait", "1m")


@pytest.mark.usefixtures("put_back")
def test_a_gpu_moves_when_its_pod_ends_whichever_agent_runs_then(agent, kubernetes, machine):
    kubernetes.run_pod("holder", gpus=1)
    wait_until_ledger_agrees(agent, kubernetes, machine)
    [held] = kubernetes.gpus_of("holder", machine)
    refused = agent.penstock("assign", held, "local", check=False)
    assert "held by pod default/holder" in refused.stderr
    agent.configure(f"allocators: {{assign: [{{devices: [{held}], allocator: local}}]}}\n")
    journal = agent.state_dir / "changes.json"
    wait_for(lambda: "being moved to local users: held by pod default/holder" in reason(agent, held), 60, "the move to begin", lambda: reason(agent, held))
    kubernetes.wait_for_gpus(7)
    for _ in range(2):
        # An agent that is killed before the journal is on disk has not begun.
        wait_for(lambda: held in journal.read_text() if journal.exists() else False, 60, "the move to be in the journal")
        agent.kill()
        agent.start()
        agent.wait_serving()
        wait_for(lambda: "being moved to local users" in reason(agent, held), 60, "the next agent to go on", lambda: reason(agent, held))
    assert agent.device(held)["allocator"] == ""
    kubernetes.delete_pod("holder")
    wait_for(lambda: agent.device(held)["allocator"] == "local", 120, "the GPU to be with the local users", lambda: reason(agent, held))
    assert held not in kubernetes.gpus_the_kubelet_has()
    ran = agent.penstock("run", "--device", held, "--", "sh", "-c", "echo $NVIDIA_VISIBLE_DEVICES")
    assert held in ran.stdout
    agent.configure("")
    kubernetes.wait_for_gpus(8)


def test_a_gpu_is_reset_once_the_kubelet_no_longer_counts_it(agent, kubernetes, machine):
    agent.configure("  reset: idle\n")  # of health
    broken = sorted(machine.minors())[2]
    kubernetes.run_pod("beside", gpus=4)
    machine.fault(broken, "xid", "95", "--no-log")  # the machine's kernel log outlives its simulated reboots
    wait_for(lambda: "device reset complete" in agent.log(), 120, "the reset", lambda: reason(agent, broken))
    kubernetes.wait_for_gpus(8, deadline=60)
    assert kubernetes.phase("beside") == "Running"
    wait_until_ledger_agrees(agent, kubernetes, machine)
    agent.configure("")
