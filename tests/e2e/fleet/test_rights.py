"""An agent's token permits changes of its own node's labels and resources, and nothing else."""
import functools
import json

import pytest
from actors import wait_for
from fleet import NAMESPACE, Fleet


@functools.cache
def token_of(fleet: Fleet, pod: str) -> str:
    """The token of the agent in that pod."""
    uid = fleet.get("pod", "-n", NAMESPACE, pod)["metadata"]["uid"]
    return fleet.kubectl("create", "token", "penstock", "-n", NAMESPACE, "--bound-object-kind=Pod", f"--bound-object-name={pod}",
                         f"--bound-object-uid={uid}").stdout.strip()


def as_agent(fleet: Fleet, node: str, *arguments) -> str:
    """kubectl's answer to a thief of that agent's token."""
    token = token_of(fleet, fleet.agent_pods()[node])
    answer = fleet.cluster.run("kubectl", "--kubeconfig=/dev/null", "--server=https://10.90.0.11:6443",
                               f"--certificate-authority={fleet.cluster.dir}/pki/ca.crt", f"--token={token}", *arguments, check=False)
    return answer.stdout + answer.stderr


@pytest.fixture
def guarded(installed):
    """An API server enforces a new admission policy some moments after its creation: until then it admits everything that RBAC permits."""
    probe = json.dumps({"metadata": {"annotations": {"penstock.io/e2e": "x"}}})
    answers: list[str] = []
    wait_for(lambda: answers.append(as_agent(installed, "n1", "patch", "node", "n2", "--dry-run=server", "-p", probe)) or
             "ValidatingAdmissionPolicy" in answers[-1], 60, "the admission policy to be enforced", lambda: answers[-1:], every=0.5)
    return installed


@pytest.mark.parametrize("what, node, patch", [
    ("another node's label", "n2", {"metadata": {"labels": {"nvidia.com/gpu.count": "64"}}}),
    ("a label that is not Penstock's", "n1", {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}),
    ("a taint", "n1", {"spec": {"taints": [{"key": "x", "effect": "NoExecute"}]}}),
], ids=["another node", "a foreign label", "a taint"])
def test_an_agents_token_writes_only_what_is_its_own(guarded, what, node, patch):
    own = {"metadata": {"labels": {"nvidia.com/gpu.e2e": "1"}}}
    answer = as_agent(guarded, "n1", "patch", "node", "n1", "-p", json.dumps(own))
    assert "patched" in answer, answer
    answer = as_agent(guarded, "n1", "patch", "node", node, "-p", json.dumps(patch))
    assert "forbidden" in answer.lower(), f"{what}: {answer}"
    guarded.kubectl("label", "node", "n1", "nvidia.com/gpu.e2e-")


@pytest.mark.parametrize("what", [("secrets", "-A"), ("pods", "-A"), ("configmaps", "-n", "kube-system")], ids=lambda what: what[0])
def test_an_agents_token_reads_nothing_that_it_has_no_need_of(installed, what):
    answer = as_agent(installed, "n1", "get", *what)
    assert "forbidden" in answer.lower(), answer
