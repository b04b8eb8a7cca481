"""Services of the agents, as a ClusterPolicy asks for them: GPUs that are shared by MPS."""
import pytest
from actors import GPU, wait_for
from fleet import BY_UUID, CONFIG_MAP, NAMESPACE
from operators import NATIVE, cluster_policy, running_operator
from test_mps_fleet import CLIENT, LIMIT, SHARED, by_mps, processes, said, start
from test_sharing import configure

NODE = "n4"  # with one A100
MPS = "/run/shared-gpus"


@pytest.fixture(scope="module")
def operator(fleet):
    with running_operator(fleet) as operator:
        yield operator


@pytest.fixture
def node(fleet):
    yield fleet.nodes[NODE]
    fleet.clear()
    fleet.kubectl("delete", "configmap", "-n", NAMESPACE, CONFIG_MAP, "--ignore-not-found")


def serve(operator, fleet, **spec):
    operator.apply(NATIVE, cluster_policy(**spec))
    operator.wait_state("ready", 240)
    fleet.wait_offered()


def test_a_cluster_policy_shares_a_gpu_by_mps_in_the_folder_that_it_names(operator, node, fleet):
    [uuid] = node.machine.minors()
    fleet.edit({"by-uuid": BY_UUID})
    serve(operator, fleet, devicePlugin={"config": {"name": CONFIG_MAP, "default": "by-uuid"}, "mps": {"root": MPS}})
    configure(fleet, NODE, by_mps(4), {SHARED: {uuid: 4}})
    wait_for(lambda: node.kubelet_lists() == node.offers(), 120, "the kubelet to have the shares", lambda: (node.kubelet_lists(), said(node)))
    fleet.wait_advertised(60)
    for name in ("one", "two"):
        start(fleet, name, node=NODE)
    fleet.wait_held("one", "two")
    fleet.check()
    pipe = fleet.inside("one", "echo $CUDA_MPS_PIPE_DIRECTORY").strip()
    assert pipe and pipe == fleet.inside("two", "echo $CUDA_MPS_PIPE_DIRECTORY").strip()
    fits = fleet.inside("one", f"{CLIENT} --allocate {LIMIT - 1000}")
    assert f"limit {LIMIT} 25" in fits and f"allocated {LIMIT - 1000}" in fits, fits
    refused = fleet.inside("two", f"{CLIENT} --allocate {LIMIT + 1} || echo ended with $?")
    assert "ended with 2" in refused, refused
    files = node.run("find", MPS, "-type", "s").stdout
    assert files, node.run("find", MPS).stdout
    assert not node.run("find", "/run/nvidia/mps", "-mindepth", "1", check=False).stdout, "the folder of other policies"
    wait_for(lambda: fleet.labels(NODE).get("nvidia.com/mps.capable") == "true", 60, "the label of the node", lambda: fleet.labels(NODE))
    assert {name: fleet.labels(name)["nvidia.com/mps.capable"] for name in fleet.nodes if name != NODE} == dict.fromkeys(("n1", "n2", "n3"), "false")
    # Taken back with the label of the node.
    fleet.clear()
    wait_for(lambda: node.kubelet_lists() == {GPU: {uuid}}, 120, "the GPU to be whole again", lambda: said(node))
    wait_for(lambda: not processes(node), 120, "the servers to exit", lambda: (processes(node), said(node)))
