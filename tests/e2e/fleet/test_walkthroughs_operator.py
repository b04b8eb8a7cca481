"""Walkthroughs once more, through ClusterPolicies: only what the policy says and what people write differs from the scenarios with the chart, whose functions
are played here. All of it while nothing may leave the site."""
import pytest
from actors import GPU, wait_for
from fleet import BY_UUID, CONFIG_MAP, IMAGE, NAMESPACE
from operators import NATIVE, cluster_policy, running_operator
from test_mig_fleet import LABEL, STATE, ask, divide_by_label, wait_layout
from test_neighbours_fleet import no_egress, refused_egress
from test_nfd import running_nfd, share_the_nodes
from test_sharing import TIME_SLICING_CONFIG, override_the_default, share_by_label
from witnesses import OURS as AGENTS_TOO

DIVISIBLE = ("n1", "n2", "n4")  # nodes with a GPU that can have MIG devices
MIG_MANAGER = "nvidia.com/gpu.deploy.mig-manager"


@pytest.fixture(scope="module")
def site(fleet):
    """The operator, which is installed while egress is blocked."""
    with no_egress(fleet), running_operator(fleet) as operator:
        yield operator


@pytest.fixture
def walk(site, fleet):
    """`walk(...)`: the operator with that ClusterPolicy in force on four nodes that advertise all their devices."""
    def begin(**spec):
        site.apply(NATIVE, cluster_policy(**spec))
        site.wait_state("ready", 240)  # all agents are replaced, one by one
        fleet.wait_offered()
        return site
    yield begin
    fleet.clear()
    fleet.kubectl("delete", "configmap", "-n", NAMESPACE, CONFIG_MAP, "time-slicing-config", "--ignore-not-found")


def test_an_install_with_egress_blocked_serves_a_first_pod(walk, fleet, measure):
    """Walkthroughs P and B. The image is Penstock's, under the pod's name; "Test PASSED" needs a GPU that computes: here it ends where the simulated
    driver's library does."""
    with measure("egress blocked: policy is applied, four nodes are ready"):
        walk()
    container = {"name": "cuda-vectoradd", "image": IMAGE, "imagePullPolicy": "Never", "command": ["penstock-vectoradd"], "resources": {"limits": {GPU: 1}}}
    # On n3, where the engine injects no CDI devices, only pods of the RuntimeClass have the libraries.
    fleet.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "cuda-vectoradd"},
                  "spec": {"restartPolicy": "Never", "nodeSelector": {"kubernetes.io/hostname": "n1"}, "containers": [container]}})
    wait_for(lambda: fleet.phase("cuda-vectoradd") in ("Succeeded", "Failed"), 60, "the first pod to end",
             lambda: fleet.kubectl("describe", "pod", "cuda-vectoradd", check=False).stdout)
    said = fleet.logs_of("cuda-vectoradd")
    assert "libcuda.so.1 has no cuInit" in said and said.endswith("Test FAILED\n"), said
    assert not refused_egress(fleet)


def test_time_slicing_by_label_through_a_cluster_policy(walk, fleet, measure):
    """Walkthrough C."""
    fleet.kubectl("apply", "-n", NAMESPACE, "-f", "-", input=TIME_SLICING_CONFIG)
    walk(devicePlugin={"config": {"name": "time-slicing-config", "default": ""}})
    share_by_label(fleet, measure)


def test_a_default_of_the_cluster_policy_and_one_node_that_overrides_it(walk, fleet, measure):
    """Walkthrough D."""
    fleet.edit({"by-uuid": BY_UUID})
    walk(devicePlugin={"config": {"name": CONFIG_MAP, "default": "by-uuid"}})
    override_the_default(fleet, measure)


def test_mig_by_label_with_the_strategy_of_the_cluster_policy(walk, fleet, measure):
    """Walkthrough E; nodes that can be divided are labelled for the MIG manager, with the layout that is the default."""
    walk(mig={"strategy": "single"})

    def marks() -> dict:
        return {name: tuple(fleet.labels(name).get(key) for key in (MIG_MANAGER, LABEL, STATE)) for name in fleet.nodes}
    undivided = {name: ("true", "all-disabled", "success") if name in DIVISIBLE else (None, None, None) for name in fleet.nodes}
    wait_for(lambda: marks() == undivided, 60, f"the nodes to have the labels {undivided}", marks)
    divide_by_label(fleet, measure)
    fleet.clear()
    ask(fleet, "all-disabled")
    wait_layout(fleet, "success", gpu=1)
    assert marks() == undivided


def test_a_real_nfd_beside_the_operator(walk, fleet, remark):
    """Walkthrough M."""
    operator = walk()
    with running_nfd(fleet):
        share_the_nodes(fleet, remark, 10, lambda begin: operator.writes(begin, AGENTS_TOO))
    operator.wait_state("ready")


def test_none_of_this_asked_for_anything_outside(site, fleet):
    """Walkthrough P, over all scenarios of this file."""
    assert not refused_egress(fleet)
