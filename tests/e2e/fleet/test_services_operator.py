"""Services of the agents, as a ClusterPolicy asks for them: GPUs that are shared by MPS, the exporter's fields, the validator's files."""
import re

import pytest
from actors import GPU, wait_for
from fleet import ACCELERATORS, BY_UUID, CONFIG_MAP, NAMESPACE, Fleet, pod_on
from operators import NATIVE, cluster_policy, running_operator
from test_mps_fleet import CLIENT, LIMIT, SHARED, by_mps, processes, said, start
from test_sharing import configure
from test_validation_fleet import FOLDER, wait_files

NODE = "n4"  # with one A100
MPS, JOBS, COUNTERS = "/run/shared-gpus", "/run/jobs-of-gpus", "our-counters"
LIST = "# field, type, help\nDCGM_FI_DEV_GPU_TEMP, gauge, Temperature.\nDCGM_FI_DRIVER_VERSION, label, Driver.\n"
SERVICE = f"/api/v1/namespaces/{NAMESPACE}/services/nvidia-dcgm-exporter:gpu-metrics/proxy/metrics"
FILES = {"driver-ready", "toolkit-ready", "plugin-ready"}


@pytest.fixture(scope="module")
def operator(fleet):
    with running_operator(fleet) as operator:
        yield operator


@pytest.fixture
def node(fleet):
    yield fleet.nodes[NODE]
    fleet.clear()
    fleet.kubectl("delete", "configmap", "-n", NAMESPACE, CONFIG_MAP, COUNTERS, "--ignore-not-found")


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


def series(fleet: Fleet, node: str = NODE) -> dict[str, list[dict[str, str]]]:
    """Family -> labels of each series on that node's page, through the Service, which leads to any of the agents; empty if it was another one."""
    found: dict[str, list[dict[str, str]]] = {}
    for line in fleet.cluster.api.request("GET", SERVICE).splitlines():
        if match := re.match(r"(DCGM_\w+){(.*)} ", line):
            found.setdefault(match[1], []).append(dict(re.findall(r'(\w+)="([^"]*)"', match[2])))
    return found if any(one.get("hostname") == node for them in found.values() for one in them) else {}


def test_the_fields_of_the_exporter_show_on_the_page_behind_its_service(operator, node, fleet):
    operator.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": COUNTERS, "namespace": NAMESPACE}, "data": {"dcgm-metrics.csv": LIST}})
    serve(operator, fleet, dcgmExporter={"config": {"name": COUNTERS}, "hpcJobMapping": {"enabled": True, "directory": JOBS}, "enablePodLabels": True,
                                         "podLabelAllowlistRegex": ["^app$", "^example.com/"], "enablePodUID": True})
    node.run("sh", "-c", f"echo 18301 > {JOBS}/0; echo 18302 >> {JOBS}/0")
    labels = {"app": "holder", "example.com/team": "vision", "other": "no"}
    fleet.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "holder", "labels": labels}, "spec": pod_on(NODE, "exec sleep 100000")})
    fleet.wait_held("holder")
    uid = fleet.get("pod", "holder")["metadata"]["uid"]
    [uuid] = node.machine.minors()
    wanted = [{"UUID": uuid, "pod": "holder", "namespace": "default", "container": "main", "pod_uid": uid, "app": "holder", "example_com_team": "vision", "hpc_job": job,
               "DCGM_FI_DRIVER_VERSION": "550.54.15"} for job in ("18301", "18302")]

    def shown() -> dict[str, list[dict[str, str]]]:
        return {family: [{key: one.get(key) for key in (*wanted[0], "other") if key in one} for one in them] for family, them in series(fleet).items()}
    wait_for(lambda: shown() == {"DCGM_FI_DEV_GPU_TEMP": wanted}, 60, "only the list's series, with the labels of pod and jobs", lambda: (shown(), wanted))
    for name in fleet.nodes:
        wait_files(fleet, name, FILES)
    ready = dict(line.split("=", 1) for line in node.run("cat", f"{FOLDER}/driver-ready").stdout.splitlines())
    assert ready["NVIDIA_DRIVER_ROOT"] == ACCELERATORS, ready
    fleet.clear()
    node.run("rm", "-f", f"{JOBS}/0")
    without = {"UUID": uuid, "DCGM_FI_DRIVER_VERSION": "550.54.15"}
    wait_for(lambda: shown() == {"DCGM_FI_DEV_GPU_TEMP": [without]}, 60, "the series to have no pod and no job", shown)
