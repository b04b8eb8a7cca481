"""One release of the chart for nodes of two vendors: one node has a GPU of NVIDIA, one AMD's accelerators and nothing of NVIDIA. AMD's are divided by the label and the file of
AMD's Device Config Manager, with the rights and under the admission policy of the chart, offered to pods, measured, and withdrawn at a fault."""
import json
import sys
from pathlib import Path

import pytest
from actors import GPU, wait_for
from fleet import ACCELERATORS, NAMESPACE, pod_on

sys.path.append(str(Path(__file__).parents[2] / "support"))

from amd import Amd, profile  # noqa: E402

AMD_GPU, PROFILES = "amd.com/gpu", "dcm-profiles"
LABEL, STATE = "dcm.amd.com/gpu-config-profile", "dcm.amd.com/gpu-config-profile-state"
PLACE = "/simulated-sys"  # in the pod. A real /sys can be written to there; the driver's root cannot.
VALUES = {"penstock": {"parts": {"modeProfilesConfigMap": PROFILES}, "telemetry": {"interval": "1s"},
                       "extraVolumes": [{"name": "hardware", "hostPath": {"path": f"{ACCELERATORS}/.penstock-sim"}}, {"name": "simulated-sys", "hostPath": {"path": f"{ACCELERATORS}/sys"}}],
                       "extraVolumeMounts": [{"name": "hardware", "mountPath": "/driver-root/.penstock-sim"}, {"name": "simulated-sys", "mountPath": PLACE}],
                       "config": {"paths": {"sysfsRoot": PLACE}}}}


@pytest.fixture(scope="module")
def fleet(start_fleet):
    return start_fleet(machines={"n1": "t4-x1", "n2": "empty"})


@pytest.fixture(scope="module")
def amd(fleet):
    """On n2, with the chart on both nodes."""
    amd = Amd(fleet.nodes["n2"].machine.root, gpus=2, answers=True, inside=tuple(fleet.cluster.entering(2)))
    fleet.kubectl("create", "namespace", NAMESPACE)
    fleet.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": PROFILES, "namespace": NAMESPACE},
                  "data": {"config.json": json.dumps({"gpu-config-profiles": {"train": profile(("SPX", 2)), "serve": profile(("CPX", 2))}})}})
    fleet.install(VALUES)
    fleet.wait_rolled_out()
    yield amd
    fleet.delete_all_pods()
    fleet.uninstall()
    amd.unload()
    amd.close()


def test_each_node_offers_the_gpus_of_its_vendor_under_the_names_of_that_vendor(fleet, amd):
    def offered() -> dict[str, dict[str, str]]:
        return {name: {key: value for key, value in fleet.get("node", name)["status"]["allocatable"].items() if key in (GPU, AMD_GPU) and value != "0"} for name in fleet.nodes}
    wait_for(lambda: offered() == {"n1": {GPU: "1"}, "n2": {AMD_GPU: "2"}}, 120, "each node to offer its own", lambda: (offered(), fleet.logs()))

    def prefixes(node: str) -> set[str]:
        return {key.split("/")[0] for key in fleet.labels(node) if key.split("/")[0] in ("nvidia.com", "amd.com", "beta.amd.com")}
    wait_for(lambda: (prefixes("n1"), prefixes("n2")) == ({"nvidia.com"}, {"amd.com", "beta.amd.com"}), 60, "the labels of one vendor each", lambda: (prefixes("n1"), prefixes("n2")))
    wait_for(lambda: "penstock-worker" in fleet.nodes["n2"].processes().values(), 60, "a worker on n2", fleet.nodes["n2"].processes)
    assert [vendor["vendor"] for vendor in fleet.nodes["n2"].status()["vendors"]] == ["amd"]


def test_walkthrough_q_the_label_of_dcm_divides_the_gpus_and_a_pod_that_is_not_root_gets_a_partition(fleet, amd):
    def wish(name: str):
        fleet.kubectl("label", "node", "n2", f"{LABEL}={name}", "--overwrite")

    def wait_applied(count: int):
        def shown() -> tuple[str, str, int]:
            return (fleet.labels("n2").get(STATE, ""), fleet.get("node", "n2")["status"]["allocatable"].get(AMD_GPU, ""),
                    len(fleet.nodes["n2"].kubelet.lists("amd.com").get(AMD_GPU, ())))
        wait_for(lambda: shown() == ("success", str(count), count), 120, f"{count} devices", lambda: (shown(), amd.written, fleet.last_words(["n2"])))
    wish("serve")
    wait_applied(16)
    assert amd.modes == ["CPX"] * 2
    spec = pod_on("n2", "exec sleep 100000", AMD_GPU) | {"securityContext": {"runAsUser": 1000, "runAsGroup": 1000, "runAsNonRoot": True}}
    fleet.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "infer"}, "spec": spec})
    fleet.wait_running("infer")
    files = {*fleet.inside("infer", "find /dev/dri /dev/kfd -type c").split()}
    assert len(files) == 3 and "/dev/kfd" in files, files
    refused = fleet.inside("infer", f"for file in {' '.join(files)}; do (: <$file) 2>&1 || true; done")
    assert refused.count("No such device or address") == 3, f"the device group lets them be opened, and nothing drives them: {refused}"
    node = fleet.nodes["n2"]
    [[device]] = wait_for(lambda: [*node.held().values()], 60, "the agent to know what the pod has", node.held)
    wait_for(lambda: [line for line in fleet.page("n2").splitlines() if line.startswith("gpu_") and 'pod="infer"' in line], 60, "AMD's metrics to name the pod",
             lambda: fleet.page("n2")[-3000:])

    whole = next(gpu for gpu in range(2) if not device.startswith(amd.id(gpu)))
    amd.errors(whole, "umc", uncorrectable=1)
    wait_for(lambda: fleet.get("node", "n2")["status"]["allocatable"].get(AMD_GPU) == "8", 60, "the partitions of a GPU with an uncorrectable error to be withdrawn", fleet.logs)
    assert fleet.ready("infer")
    node.kill_agent()
    wait_for(lambda: [*node.held().values()] == [{device}], 60, "the agent to know it after it was killed", lambda: node.penstock("ps", check=False))
    wish("train")
    wait_for(lambda: fleet.labels("n2").get(STATE) == "failure" and "default/infer" in json.dumps(node.status().get("layout", {})), 120, "the pod to be named that is in the way",
             lambda: (fleet.labels("n2").get(STATE), node.status().get("layout")))
    assert fleet.ready("infer") and any(event["reason"].startswith("Partition") for event in fleet.events("n2")), fleet.events("n2")
