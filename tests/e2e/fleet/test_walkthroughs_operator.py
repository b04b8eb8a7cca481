"""Walkthroughs once more, through ClusterPolicies: only what the policy says and what people write differs from the scenarios with the chart, whose functions
are played here. All of it while nothing may leave the site."""
import json
from pathlib import Path

import images as debian  # of tests/support; parts.py knows its folder
import oci
import pytest
from actors import GPU, wait_for
from fleet import BY_UUID, CONFIG_MAP, NAMESPACE, allocatable, pod_on
from operators import ALL_AT_ONCE, NATIVE, cluster_policy, running_operator
from test_mig_fleet import LABEL, PRODUCT, STATE, ask, divide_by_label, wait_layout
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
        site.apply(NATIVE, cluster_policy(daemonsets=ALL_AT_ONCE, **spec))
        site.wait_state("ready", 240)
        fleet.wait_offered()
        return site
    yield begin
    fleet.clear()
    fleet.kubectl("delete", "configmap", "-n", NAMESPACE, CONFIG_MAP, "time-slicing-config", "layouts", "--ignore-not-found")


VECTORADD = "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda11.7.1-ubuntu20.04"
# The pod of NVIDIA's documentation.
FIRST_POD = f"""
apiVersion: v1
kind: Pod
metadata:
  name: cuda-vectoradd
spec:
  restartPolicy: OnFailure
  containers:
  - name: cuda-vectoradd
    image: "{VECTORADD}"
    resources:
      limits:
        nvidia.com/gpu: 1
"""


def provide_vectoradd(fleet):
    """Imports an image of Penstock's program under the name of NVIDIA's."""
    layer = oci.Layer("penstock-vectoradd")
    for path, source in debian.files(Path("/bin/busybox")).items():
        layer.add(path, source)
    layer.add("/usr/bin/penstock-vectoradd", fleet.programs / "penstock-vectoradd")
    archive = fleet.cluster.dir / "vectoradd.tar"
    oci.Image(VECTORADD, ["/usr/bin/penstock-vectoradd"], [layer]).write(archive)
    fleet.cluster.import_image(archive, len(fleet.nodes))


def test_an_install_with_egress_blocked_serves_a_first_pod(walk, fleet, measure):
    """Walkthroughs P and B, with the published pod. The image is Penstock's, under the published name; "Test PASSED" needs a GPU that computes: here it ends
    where the simulated driver's library does. n3 is cordoned: its engine injects no CDI devices, and only pods of the RuntimeClass have the libraries there."""
    provide_vectoradd(fleet)
    with measure("egress blocked: policy is applied, four nodes are ready"):
        walk()
    fleet.kubectl("cordon", "n3")
    try:
        fleet.kubectl("apply", "-f", "-", input=FIRST_POD)

        def said() -> str:
            return fleet.logs_of("cuda-vectoradd")

        def ended() -> bool:  # it is started again, and then has said nothing
            text = said()
            return "libcuda.so.1 has no cuInit" in text and text.endswith("Test FAILED\n")
        wait_for(ended, 120, "the first pod to end", lambda: fleet.kubectl("describe", "pod", "cuda-vectoradd", check=False).stdout)
        [container] = fleet.get("pod", "cuda-vectoradd")["spec"]["containers"]
        assert container["image"] == VECTORADD and container["resources"]["limits"] == {GPU: "1"}
    finally:
        fleet.kubectl("uncordon", "n3")
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


def undivide(fleet):
    """n4 with a whole GPU and no pods, whatever it had."""
    fleet.clear()
    ask(fleet, "all-disabled")
    wait_layout(fleet, "success", gpu=1)


def test_mig_by_label_with_the_strategy_of_the_cluster_policy(walk, fleet, measure):
    """Walkthrough E; nodes that can be divided are labelled for the MIG manager, with the layout that is the default."""
    walk(mig={"strategy": "single"})

    def marks() -> dict:
        return {name: tuple(fleet.labels(name).get(key) for key in (MIG_MANAGER, LABEL, STATE)) for name in fleet.nodes}
    undivided = {name: ("true", "all-disabled", "success") if name in DIVISIBLE else (None, None, None) for name in fleet.nodes}
    wait_for(lambda: marks() == undivided, 60, f"the nodes to have the labels {undivided}", marks)
    divide_by_label(fleet, measure)
    undivide(fleet)
    assert marks() == undivided


MEBIBYTE = 1_000_000  # what an object may have, but for its own fields
UUIDS = "version: v1\nflags: {plugin: {deviceIDStrategy: uuid}}\n"
LAYOUTS = "version: v1\nmig-configs:\n  all-disabled: [{devices: all, mig-enabled: false}]\n  all-1g.5gb: [{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 7}}]\n"


def padded(text: str) -> str:
    """As large as a ConfigMap can be, and of few values."""
    return text + f"# {'x' * 97}\n" * ((MEBIBYTE - len(text)) // 100)


def flood(text: str) -> str:
    """As large, and of as many values as there is room for."""
    return text + "[" + "1," * ((MEBIBYTE - len(text)) // 2 - 2) + "1]\n"


def put(fleet, name: str, data: dict[str, str]):
    fleet.kubectl("apply", "--server-side", "-n", NAMESPACE, "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}))


def test_mig_by_label_with_a_driver_that_names_products_without_nvidia(walk, fleet, measure):
    """Walkthrough E with a driver before 470, and a pod whose selector has the name of later drivers: it is explained. n4's engine injects CDI devices,
    although CDI does not accept the ids that such a driver gives to MIG devices."""
    machine, product = fleet.nodes["n4"].machine, "A100-SXM4-40GB-MIG-1g.5gb"
    put(fleet, "layouts", {"config.yaml": LAYOUTS})  # such a driver lists profiles only in MIG mode, so none can be made from them
    walk(mig={"strategy": "single"}, migManager={"config": {"name": "layouts", "default": "all-disabled"}})
    machine.install("460.32.03")
    try:
        wait_for(lambda: fleet.labels("n4").get("nvidia.com/gpu.product") == "A100-SXM4-40GB" and fleet.labels("n4").get(STATE) == "success", 120,
                 "the product's name of that driver", lambda: fleet.labels("n4"))
        divide_by_label(fleet, measure, product)
        never = pod_on("n4", "exec sleep 100000") | {"nodeSelector": {"nvidia.com/gpu.product": PRODUCT}}
        fleet.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "never"}, "spec": never})
        wait_for(lambda: "PodScheduled" in str(fleet.get("pod", "never").get("status")), 60, "the scheduler to have looked at the pod")
        said = fleet.cluster.run(fleet.programs / "penstock", "explain", "--pod", "default/never").stdout
        assert f"no node has nvidia.com/gpu.product={PRODUCT}, which its spec.nodeSelector needs" in said, said
        assert f"the nearest value is {product}, of node n4" in said, said
    finally:
        machine.install("550.54.15")
        undivide(fleet)
    wait_for(lambda: fleet.labels("n4").get("nvidia.com/gpu.product") == "NVIDIA-A100-SXM4-40GB", 120, "the product's name", lambda: fleet.labels("n4"))


@pytest.fixture
def flooded(walk, fleet):
    """Afterwards n4 is as before, which needs layouts that are not refused."""
    yield
    put(fleet, "layouts", {"config.yaml": LAYOUTS})
    undivide(fleet)


@pytest.mark.usefixtures("flooded")
def test_config_maps_of_a_mebibyte_are_taken_or_refused_with_one_message(walk, fleet, remark):
    """One node has the large configuration, by its label; the others go on. Of each refused one there is a condition and an Event, and what was in force stays."""
    def configuration(node: str) -> dict:
        return fleet.nodes[node].status()["configuration"]

    def condition(node: str, kind: str) -> dict:
        return next((one for one in fleet.get("nodestate", node)["status"]["conditions"] if one["type"] == kind), {})

    def events(node: str, word: str) -> list[str]:
        return [event["message"] for event in fleet.events(node) if word in event["message"]]

    def most() -> float:  # of that process, ever
        return next(int(line.split()[1]) / 1024 for line in Path(f"/proc/{agent}/status").read_text().splitlines() if line.startswith("VmHWM:"))

    put(fleet, CONFIG_MAP, {"large": padded(UUIDS)})
    put(fleet, "layouts", {"config.yaml": padded(LAYOUTS)})
    walk(mig={"strategy": "single"}, devicePlugin={"config": {"name": CONFIG_MAP, "default": ""}}, migManager={"config": {"name": "layouts", "default": "all-disabled"}})
    fleet.choose("n2", "large")
    wait_for(lambda: "key large" in configuration("n2")["origin"] and not configuration("n2")["problem"], 120, "the large file to be in force", lambda: configuration("n2"))
    ask(fleet, "all-1g.5gb")
    wait_layout(fleet, "success", gpu=7)
    agent = fleet.nodes["n2"].agent()
    before = most()

    put(fleet, CONFIG_MAP, {"large": flood("version: v1\nflags: {}\nsharing: {timeSlicing: {resources: ")[:-1] + "}}\n"})
    wait_for(lambda: "100000 keys and values" in configuration("n2")["problem"], 180, "the file to be refused", lambda: configuration("n2"))
    wait_for(lambda: condition("n2", "ConfigurationApplied").get("status") == "False", 60, "the condition", lambda: condition("n2", "ConfigurationApplied"))
    assert len(condition("n2", "ConfigurationApplied")["message"]) < 1000
    wait_for(lambda: events("n2", "100000 keys and values"), 60, "the Event", lambda: fleet.events("n2"))
    put(fleet, "layouts", {"config.yaml": flood("version: v1\nmig-configs:\n  a: ")})
    wait_for(lambda: "100000 keys and values" in condition("n4", "LayoutApplied").get("message", ""), 180, "the layouts to be refused", lambda: condition("n4", "LayoutApplied"))
    wait_for(lambda: events("n4", "100000 keys and values"), 60, "the Event", lambda: fleet.events("n4"))
    assert fleet.nodes["n2"].agent() == agent, "another process than before"
    after = most()
    remark("most memory of an agent, MiB, with a ConfigMap of 1 MiB: taken, and refused", f"{before:.1f}, {after:.1f}")
    assert after < 128, f"{before} MiB, then {after}"
    fleet.watch.wait(lambda nodes: all(allocatable(nodes[name]) == {GPU: count} for name, count in {"n1": 8, "n2": 3, "n3": 1, "n4": 7}.items()), 60, "all nodes to keep what they have")
    assert not configuration("n1")["problem"] and not configuration("n3")["problem"]

    put(fleet, CONFIG_MAP, {"large": UUIDS})
    put(fleet, "layouts", {"config.yaml": LAYOUTS})
    wait_for(lambda: not configuration("n2")["problem"], 180, "the corrected file to be in force", lambda: configuration("n2"))
    wait_for(lambda: condition("n4", "LayoutApplied").get("status") == "True", 180, "the corrected layouts to be applied", lambda: condition("n4", "LayoutApplied"))


def test_a_real_nfd_beside_the_operator(walk, fleet, remark):
    """Walkthrough M."""
    operator = walk()
    with running_nfd(fleet):
        share_the_nodes(fleet, remark, 10, lambda begin: operator.writes(begin, AGENTS_TOO))
    operator.wait_state("ready")


def test_none_of_this_asked_for_anything_outside(site, fleet):
    """Walkthrough P, over all scenarios of this file."""
    assert not refused_egress(fleet)
