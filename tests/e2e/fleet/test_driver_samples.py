"""The NVIDIADrivers of NVIDIA's documentation and repository on the nodes of test_driver_rollout.py, each applied as its file is, with strict validation: which nodes get
which driver from which image, and what the objects say."""
import pytest
import yaml
from actors import wait_for
from driver_containers import provide
from driver_rollouts import BARE, OWNER, SIMULATED, SYSTEM, container
from fleet import NAMESPACE, merged
from operators import SAMPLES, cluster_policy

REGISTRY = "nvcr.io/nvidia"
HOST = {"n1": "host 550.54.15"}


class Samples:
    """The objects that were applied. A Penstock object adds to them what the unloading of simulated modules needs, and nothing else."""

    def __init__(self, rollout, fleet):
        self.rollout, self.fleet, self.names = rollout, fleet, []
        self.kernel = fleet.get("node", "n2")["status"]["nodeInfo"]["kernelVersion"].replace("x86_64", "").replace("_", ".").rstrip(".").lower()  # as in names of images

    def apply(self, sample: str):
        file = SAMPLES / f"nvidia-driver/{sample}.yaml"
        named = {one["metadata"]["name"] for one in yaml.safe_load_all(file.read_text()) if one}
        self.names = sorted({*self.names, *named})
        manager = container("", self.fleet.programs)["manager"]["env"]
        self.rollout.operator.apply(merged(SIMULATED, {"spec": {"drivers": [{"name": name, "prepareEnv": manager} for name in self.names]}}))
        self.fleet.kubectl("apply", "--server-side", "--force-conflicts", "--validate=strict", "-f", file)

    def provide(self, version: str, *tags: str):
        for tag in tags or (f"{version}-{SYSTEM}",):
            provide(self.fleet, version, tag, REGISTRY)

    def remove(self):
        self.fleet.kubectl("delete", "nvidiadrivers", "--all", "--timeout=300s")
        self.rollout.operator.apply(SIMULATED)
        self.names = []
        wait_for(lambda: not self.rollout.driver_pods() and not any(OWNER in node["metadata"]["labels"] for node in self.fleet.get("nodes")["items"]), 120,
                 "the nodes to have no driver of the operator", self.rollout.told)
        for node in self.rollout.bare.values():  # a driver stays loaded when its container ends
            node.unmount()
            node.unload()
        self.rollout.wait_versions(**dict.fromkeys(BARE, ""))
        for label in ("driver.config", "driver.precompiled", "driver.version"):
            self.fleet.kubectl("label", "nodes", "--all", f"{label}-")

    def wait(self, images: dict[str, str], **versions: str):
        """Until the agents find these drivers, and others none; from these images, each by an object that is ready and answers nothing but remarks."""
        self.rollout.wait_versions(240, **(dict.fromkeys(BARE, "") | HOST | {node: f"container {version}" for node, version in versions.items()}))

        def found() -> dict[str, str]:
            return {node: pod["spec"]["containers"][0]["image"] for node, pod in self.rollout.driver_pods().items()}
        wait_for(lambda: found() == images, 60, f"the images {images}", lambda: (found(), self.rollout.told()))
        for name in self.names:
            self.rollout.operator.wait_state("ready", kind="nvidiadrivers", name=name)
            assert self.rollout.operator.condition("FieldsServed", "nvidiadrivers", name)["status"] == "True"
        self.rollout.operator.wait_state("ready" if versions.keys() == set(BARE) else "notReady")  # nodes without a driver

    def owners(self) -> dict[str, str]:
        return {node: owner for node in self.fleet.nodes if (owner := self.fleet.labels(node).get(OWNER))}

    def sets(self) -> set[str]:
        found = self.fleet.get("daemonsets", "-n", NAMESPACE, "-l", "app.kubernetes.io/component=nvidia-driver")["items"]
        return {one["metadata"]["name"] for one in found if one["status"].get("desiredNumberScheduled")}

    def counted(self, name: str) -> list[tuple[int, int]]:
        return [(driver["nodes"], driver["ready"]) for driver in self.rollout.operator.policy("nvidiadrivers", name)["status"]["drivers"]]


@pytest.fixture(scope="module")
def of_nvidia(rollout, fleet):
    rollout.operator.apply(SIMULATED, cluster_policy(driver={"useNvidiaDriverCRD": True}))
    samples = Samples(rollout, fleet)
    samples.remove()
    return samples


@pytest.fixture
def samples(of_nvidia):
    yield of_nvidia
    of_nvidia.remove()


def test_demo_gold_and_demo_silver_have_the_nodes_with_their_labels(samples, rollout, fleet):
    """Afterwards demo-gold with the options of earlier documentation, which is an upgrade of its one node."""
    for version in ("580.126.20", "470.141.10", "535.104.12"):
        samples.provide(version)
    fleet.kubectl("label", "node", "n2", "driver.config=gold")
    fleet.kubectl("label", "node", "n3", "driver.config=silver")
    samples.apply("multiple")
    silver = f"{REGISTRY}/driver:470.141.10-{SYSTEM}"
    samples.wait({"n2": f"{REGISTRY}/driver:580.126.20-{SYSTEM}", "n3": silver}, n2="580.126.20", n3="470.141.10")
    assert samples.owners() == {"n2": "demo-gold", "n3": "demo-silver"}
    assert samples.sets() == {f"nvidia-gpu-driver-{name}-{SYSTEM}" for name in ("demo-gold", "demo-silver")}
    assert samples.counted("demo-gold") == samples.counted("demo-silver") == [(1, 1)]
    kept = rollout.driver_pods()["n3"]["metadata"]["uid"]
    samples.apply("options")
    samples.wait({"n2": f"{REGISTRY}/driver:535.104.12-{SYSTEM}", "n3": silver}, n2="535.104.12", n3="470.141.10")
    assert rollout.operator.condition("FieldsServed", "nvidiadrivers", "demo-gold")["reason"] == "AllFieldsServed"
    assert rollout.driver_pods()["n3"]["metadata"]["uid"] == kept, "a node of the other driver was touched"


@pytest.mark.parametrize(("sample", "name", "version"), [("all", "demo-all", "535.104.12"), ("sample", "nvidiadriver-sample", "595.91.07")])
def test_a_driver_without_a_selector_has_all_nodes_but_those_with_a_driver_of_their_host(samples, sample, name, version):
    samples.provide(version)
    samples.apply(sample)
    samples.wait(dict.fromkeys(BARE, f"{REGISTRY}/driver:{version}-{SYSTEM}"), **dict.fromkeys(BARE, version))
    assert samples.owners() == dict.fromkeys(BARE, name)
    assert samples.sets() == {f"nvidia-gpu-driver-{name}-{SYSTEM}"} and samples.counted(name) == [(3, 3)]


def test_a_precompiled_driver_has_the_image_of_the_kernel(samples, rollout, fleet):
    image = f"580-{samples.kernel}-{SYSTEM}"
    samples.provide("580.126.20", image)
    samples.apply("precompiled-all")
    samples.wait(dict.fromkeys(BARE, f"{REGISTRY}/driver:{image}"), **dict.fromkeys(BARE, "580.126.20"))
    [name] = samples.sets()
    assert name.startswith("nvidia-gpu-driver-demo-precomp-all-") and samples.counted("demo-precomp-all") == [(3, 3)]


def test_a_precompiled_driver_of_some_nodes_has_those_with_both_labels(samples, fleet):
    image = f"535-{samples.kernel}-{SYSTEM}"
    samples.provide("535.183.01", image)
    fleet.kubectl("label", "node", "n4", "driver.precompiled=true", "driver.version=535")
    fleet.kubectl("label", "node", "n3", "driver.precompiled=true", "driver.version=550")
    samples.apply("precompiled-some")
    samples.wait({"n4": f"{REGISTRY}/driver:{image}"}, n4="535.183.01")
    assert samples.owners() == {"n4": "demo-precomp"} and samples.counted("demo-precomp") == [(1, 1)]
