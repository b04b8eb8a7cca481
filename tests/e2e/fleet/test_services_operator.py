"""Services of the agents, as a ClusterPolicy asks for them: GPUs that are shared by MPS, the exporter's fields, the validator's files; and as labels of the
Nodes ask, which switch single services off."""
import re

import pytest
from actors import GPU, wait_for
from fleet import ACCELERATORS, BY_UUID, CONFIG_MAP, NAMESPACE, Fleet, pod_on
from operators import ALL_AT_ONCE, NATIVE, cluster_policy
from test_mig_fleet import STATE, ask, wait_layout
from test_mps_fleet import CLIENT, LIMIT, SHARED, by_mps, processes, said, start
from test_sharing import configure
from test_validation_fleet import FOLDER, ready_files, wait_files
from test_walkthroughs_operator import undivide
from witnesses import OURS as AGENTS_TOO

NODE = "n4"  # with one A100
MPS, JOBS, COUNTERS = "/run/shared-gpus", "/run/jobs-of-gpus", "our-counters"
LIST = "# field, type, help\nDCGM_FI_DEV_GPU_TEMP, gauge, Temperature.\nDCGM_FI_DRIVER_VERSION, label, Driver.\n"
SERVICE = f"/api/v1/namespaces/{NAMESPACE}/services/nvidia-dcgm-exporter:gpu-metrics/proxy/metrics"
FILES = {"driver-ready", "toolkit-ready", "plugin-ready"}


@pytest.fixture
def node(fleet):
    yield fleet.nodes[NODE]
    fleet.clear()
    fleet.kubectl("delete", "configmap", "-n", NAMESPACE, CONFIG_MAP, COUNTERS, "--ignore-not-found")


def serve(operator, fleet, **spec):
    operator.apply(NATIVE, cluster_policy(daemonsets=ALL_AT_ONCE, **spec))
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

    def others() -> dict[str, str | None]:
        return {name: fleet.labels(name).get("nvidia.com/mps.capable") for name in fleet.nodes if name != NODE}
    wait_for(lambda: others() == dict.fromkeys(("n1", "n2", "n3"), "false"), 60, "the labels of the other nodes", others)
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


# --- labels of a Node -----------------------------------------------------------------------------------------------------------------
DEPLOY, WORKLOAD = "nvidia.com/gpu.deploy.", "nvidia.com/gpu.workload.config"
WISHES = {f"{DEPLOY}dcgm-exporter": "false", f"{DEPLOY}node-status-exporter": "paused-for-driver-upgrade", f"{DEPLOY}operator-validator": "false",
          f"{DEPLOY}mig-manager": "false", WORKLOAD: "vm-passthrough"}


def remarks(fleet: Fleet, node: str) -> str:
    """What the node's condition says of its configuration."""
    conditions = fleet.get("nodestate", node)["status"]["conditions"]
    return next(one.get("message", "") for one in conditions if one["type"] == "ConfigurationApplied")


def serves(fleet: Fleet, node: str) -> dict[str, bool]:
    """Which services show on that node: families of its page, the validator's files."""
    families = {"exporter": "DCGM_FI_DEV_GPU_TEMP", "status": "gpu_operator_node_driver_ready", "own": "penstock_build_info"}
    return {name: fleet.metric(node, family) is not None for name, family in families.items()} | {"files": bool(ready_files(fleet, node))}


ALL = dict.fromkeys(("exporter", "status", "own", "files"), True)


@pytest.fixture
def labelled(operator, fleet):
    """`labelled(node, labels)`: the node has these labels, until the end."""
    given: dict[str, set[str]] = {}

    def label(node: str, labels: dict[str, str]):
        given.setdefault(node, set()).update(labels)
        fleet.kubectl("label", "node", node, *(f"{key}={value}" for key, value in labels.items()), "--overwrite")
    yield label
    for node, keys in given.items():  # at once: label by label, those of the operator would be taken back again and again
        fleet.kubectl("label", "node", node, *(f"{key}-" for key in keys))
    undivide(fleet)


def test_labels_of_a_node_switch_single_services_of_its_agent_off(operator, node, labelled, fleet):
    serve(operator, fleet, nodeStatusExporter={"enabled": True})
    for name in fleet.nodes:
        wait_for(lambda name=name: serves(fleet, name) == ALL, 60, f"all services of {name}", lambda name=name: serves(fleet, name))
    wait_layout(fleet, "success", gpu=1)
    labelled(NODE, WISHES)
    wanted = ALL | dict.fromkeys(("exporter", "status", "files"), False)
    wait_for(lambda: serves(fleet, NODE) == wanted, 60, f"{NODE} to have {wanted}", lambda: (serves(fleet, NODE), remarks(fleet, NODE)))
    for key in WISHES:
        wait_for(lambda key=key: f"{key}: " in remarks(fleet, NODE), 60, f"the condition to name {key}", lambda: remarks(fleet, NODE))
        assert f"{key}: " in node.penstock("status").stdout
    assert f'{WORKLOAD}: "vm-passthrough" is not served yet' in remarks(fleet, NODE)
    wait_for(lambda: any(event["reason"] == "ConfigurationAppliedWithRemarks" and WORKLOAD in event["message"] for event in fleet.events(NODE)), 60, "an Event that names it",
             lambda: [(event["reason"], event["message"]) for event in fleet.events(NODE)])
    ask(fleet, "all-1g.5gb")
    operator.wait_quiet(5, who=AGENTS_TOO)
    assert {key: fleet.labels(NODE).get(key) for key in WISHES} == WISHES, "a user's value was replaced"
    assert fleet.labels(NODE)[STATE] == "success" and node.kubelet_lists() == node.offers(), "the GPU was divided"
    assert all(serves(fleet, name) == ALL for name in fleet.nodes if name != NODE)
    operator.wait_state("ready")  # the node is as its labels ask
    fleet.kubectl("label", "node", NODE, *(f"{key}-" for key in WISHES))  # at once, as at the end of `labelled`
    wait_layout(fleet, "success", gpu=7)
    wait_for(lambda: serves(fleet, NODE) == ALL, 60, "all services again", lambda: (serves(fleet, NODE), remarks(fleet, NODE)))
    wait_for(lambda: {key: fleet.labels(NODE).get(key) for key in WISHES} == dict.fromkeys(WISHES, "true") | {WORKLOAD: None}, 60, "the labels of the operator",
             lambda: fleet.labels(NODE))


def test_a_node_that_opts_out_below_workloads_drains_as_they_end(operator, labelled, fleet):
    """What pods hold stays; nothing new is given away, and what is released is withdrawn. Other nodes go on."""
    serve(operator, fleet)
    n1, opt_out = fleet.nodes["n1"], f"{DEPLOY}operands"
    fleet.hold("held", "n1", 2)
    fleet.wait_held("held")

    def containers() -> dict[str, tuple[str, int]]:
        return {pod["metadata"]["name"]: tuple(pod["status"]["containerStatuses"][0][key] for key in ("containerID", "restartCount"))
                for pod in fleet.get("pods", "-l", "app=held")["items"]}
    before = containers()
    gave = n1.kubelet_gave()
    labelled("n1", {opt_out: "false"})

    def amounts() -> tuple[str, str]:
        """What pods have stays in the kubelet's list, but is not given away again (ADR 0068)."""
        status = fleet.get("node", "n1")["status"]
        return status["capacity"][GPU], status["allocatable"][GPU]
    wait_for(lambda: amounts() == ("2", "0"), 60, "the Node to have what the pods hold, and nothing to give away", lambda: (amounts(), n1.kubelet_has()))
    wait_for(lambda: operator.policy()["status"]["nodes"]["byState"] == {"ready": 3, "optedOut": 1}, 60, "the policy to count it", lambda: operator.policy()["status"])
    wait_for(lambda: f"{DEPLOY}device-plugin: " in remarks(fleet, "n1"), 60, "the node to say so", lambda: remarks(fleet, "n1"))
    wait_for(lambda: {key for key in fleet.labels("n1") if key.startswith(DEPLOY)} == {opt_out}, 60, "the operator's labels to be gone", lambda: fleet.labels("n1"))
    fleet.hold("new", "n1", 1)
    fleet.hold("elsewhere", "n2", 1)
    fleet.wait_held("elsewhere")
    [new] = [pod["metadata"]["name"] for pod in fleet.get("pods", "-l", "app=new")["items"]]
    wait_for(lambda: "Insufficient nvidia.com/gpu" in fleet.why_pending(new), 60, "the new pod to wait", lambda: fleet.pod(new))
    assert n1.kubelet_gave() == gave
    assert containers() == before, "a pod was disturbed"
    ended, kept = sorted(before)
    fleet.delete_pod(ended)
    wait_for(lambda: amounts() == ("1", "0"), 60, "the released device to be withdrawn", amounts)
    assert fleet.phase(new) == "Pending"
    fleet.kubectl("label", "node", "n1", f"{opt_out}-")
    wait_for(lambda: fleet.ready(new), 120, "the pod that waited to run", lambda: (fleet.pod(new), n1.kubelet_has()))
    fleet.wait_advertised(60)
    operator.wait_state("ready")
    assert n1.kubelet_gave()[kept] == gave[kept]
    fleet.check()
