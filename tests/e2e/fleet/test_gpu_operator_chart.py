"""The chart gpu-operator on four nodes, as NVIDIA's instructions install theirs (walkthrough A): from a repository's index into a namespace made before,
with a user's values; upgraded, rolled back, and uninstalled without a trace."""
import json
import os
import subprocess
import sys

import pytest
from actors import GPU, wait_for
from fleet import ACCELERATORS, MACHINE, ROOT, Fleet, merged
from operators import DEFINITIONS, MONITOR, UPGRADES, cluster_policy, state_of
from test_install import ours

NAMESPACE = RELEASE = "gpu-operator"
DEPLOYED = ("container-toolkit", "dcgm", "dcgm-exporter", "device-plugin", "driver", "gpu-feature-discovery", "node-status-exporter", "operator-validator")
# As in the documentation, but for nodes with a driver of their own, as these are: there NVIDIA's operator writes this, too.
DEPLOY = dict.fromkeys(DEPLOYED, "true") | {"driver": "pre-installed"}
PORT = 8879
# What simulated nodes need: the driver root, the machine's files, and engines left alone. Everything else is as the chart has it.
VALUES = {"penstock": {
    "image": {"repository": "localhost/penstock", "tag": "e2e", "pullPolicy": "Never"},
    "spec": {
        "agent": {"volumes": [{"name": "hardware", "hostPath": {"path": MACHINE}}],
                  "volumeMounts": [{"name": "hardware", "mountPath": "/driver-root/.penstock-sim"}]},
        "hostPaths": {"installDir": ""},
        "node": {"paths": {"hostDriverRoot": ACCELERATORS, "sysfsRoot": "/driver-root/sys"}, "labels": {"machineTypeFile": "/driver-root/sys/class/dmi/id/product_name"},
                 "health": {"probation": "1s"}, "containers": {"configureEngine": "off"}}}}}


class Chart:
    """helm with a repository of its own, inside the cluster."""

    def __init__(self, fleet: Fleet):
        self.fleet, folder = fleet, fleet.cluster.dir / "charts"
        self.environment = os.environ | {f"HELM_{name}_HOME": str(folder / name.lower()) for name in ("CACHE", "CONFIG", "DATA")}
        self.values = folder / "values.json"
        done = subprocess.run([ROOT / "deploy/helm/package", "--url", f"http://127.0.0.1:{PORT}", folder / "served"], capture_output=True, text=True,
                              env=os.environ | {"HELM": str(fleet.cluster.parts.tools / "helm"), "SOURCE_DATE_EPOCH": "1700000000"})
        assert done.returncode == 0, done.stderr
        self.values.write_text(json.dumps(VALUES))
        self.server = subprocess.Popen([*fleet.cluster.entering(), sys.executable, "-m", "http.server", str(PORT), "--bind", "127.0.0.1", "--directory",
                                        str(folder / "served")], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def helm(self, *words) -> str:
        return self.fleet.cluster.run("helm", *words, env=self.environment).stdout

    def log(self) -> str:
        answers = [self.fleet.kubectl(*words, "-n", NAMESPACE, check=False) for words in (
            ("get", "pods", "-o", "wide"), ("logs", "-l", "app=gpu-operator", "--tail=40"), ("get", "clusterpolicy,penstock", "-o", "yaml"))]
        return "\n".join(answer.stdout + answer.stderr for answer in answers)

    def state(self) -> str:
        return state_of(self.fleet.get("clusterpolicies", "cluster-policy"))

    def wait_ready(self, deadline: float = 240):
        wait_for(lambda: self.state() == "ready", deadline, "the ClusterPolicy to be ready", self.log)


@pytest.fixture(scope="module")
def chart(fleet):
    fleet.clear()
    if fleet.values is not None:
        fleet.uninstall()
        fleet.wait_advertised(60, but={name: 0 for name in fleet.nodes})
    chart = Chart(fleet)
    try:
        wait_for(lambda: chart.helm("repo", "add", "nvidia", f"http://127.0.0.1:{PORT}") or True, 60, "the repository to be served")
        yield chart
    finally:
        chart.server.kill()
        chart.server.wait()
        fleet.cluster.run("helm", "uninstall", RELEASE, "-n", NAMESPACE, "--no-hooks", "--ignore-not-found", check=False)
        fleet.kubectl("delete", "customresourcedefinition", *DEFINITIONS, "--ignore-not-found", "--timeout=60s", check=False)


def test_helm_install_from_a_repository_makes_the_nodes_serve_their_gpus(chart, fleet, measure):
    assert "Update Complete" in chart.helm("repo", "update")
    fleet.kubectl("create", "namespace", NAMESPACE)
    with measure("helm install gpu-operator: four nodes ready", goal=10) as it:
        said = chart.helm("install", "--namespace", NAMESPACE, RELEASE, "nvidia/gpu-operator", "-f", chart.values)
        it.done = chart.wait_ready()
    assert "kubectl get clusterpolicy cluster-policy" in said
    fleet.wait_advertised(60)
    pods = fleet.get("pods", "-n", NAMESPACE)["items"]
    assert sorted(pod["metadata"]["labels"].get("app.kubernetes.io/name") for pod in pods) == ["gpu-operator", *["penstock"] * len(fleet.nodes)]
    assert {pod["status"]["phase"] for pod in pods} == {"Running"}
    for name in fleet.nodes:
        def deploy(name=name) -> dict:
            return {key: fleet.labels(name).get(f"nvidia.com/gpu.deploy.{key}") for key in DEPLOYED}
        wait_for(lambda deploy=deploy: deploy() == DEPLOY, 60, f"the labels of {name}", deploy)
        node = fleet.get("node", name)
        assert node["metadata"]["labels"]["nvidia.com/gpu.present"] == "true"
        assert node["metadata"]["annotations"][UPGRADES] == "true"
        assert int(node["status"]["allocatable"][GPU]) == len(fleet.nodes[name].machine.minors())


def test_the_service_of_the_operators_metrics_leads_to_its_page(chart, fleet):
    def addresses() -> list[str]:
        found = json.loads(fleet.kubectl("get", "endpointslices", "-n", NAMESPACE, "-l", "kubernetes.io/service-name=gpu-operator", "-o", "json").stdout)
        return [f"{address}:{one['ports'][0]['port']}" for one in found["items"] for endpoint in one["endpoints"] or () for address in endpoint["addresses"]]

    [address] = wait_for(addresses, 60, "the Service to have an endpoint", chart.log)
    page = fleet.cluster.run("busybox", "wget", "-q", "-O", "-", f"http://{address}/metrics").stdout
    assert 'penstock_operator_nodes{state="ready"} 4' in page, page


def test_an_upgrade_changes_what_the_value_says_and_a_rollback_takes_it_back(chart, fleet):
    def annotated() -> bool:
        pods = fleet.get("daemonset", "-n", NAMESPACE, "penstock-agent")["spec"]["template"]["metadata"]
        return pods.get("annotations", {}).get("example.com/team") == "gpu"

    chart.helm("upgrade", "--namespace", NAMESPACE, RELEASE, "nvidia/gpu-operator", "-f", chart.values, "--set", "daemonsets.annotations.example\\.com/team=gpu")
    wait_for(annotated, 60, "the agents to have the annotation", chart.log)
    chart.wait_ready()
    fleet.wait_advertised(60)
    chart.helm("rollback", "--namespace", NAMESPACE, RELEASE, "1")
    wait_for(lambda: not annotated(), 60, "the annotation to be gone", chart.log)
    chart.wait_ready()
    fleet.wait_advertised(60)


KINDS = "clusterrole,clusterrolebinding,role,rolebinding,daemonset,deployment,serviceaccount,configmap,service,servicemonitor,job,pod,lease,runtimeclass," \
    "validatingadmissionpolicy,validatingadmissionpolicybinding,clusterpolicy,nvidiadriver,gpucluster,deviceconfig,penstock,nodestate,secret"


def wait_nothing_left(fleet: Fleet):
    """Of the release, on the nodes and in the API server."""
    for name, node in fleet.nodes.items():
        def remains(name=name, node=node) -> list[str]:
            metadata = fleet.get("node", name)["metadata"]
            files = node.run("sh", "-c", "find /run/penstock /var/lib/penstock /var/run/cdi -mindepth 1 2>/dev/null || true").stdout
            return [*ours(metadata["labels"]), *(key for key in metadata["annotations"] if key == UPGRADES), *files.split()]
        wait_for(lambda remains=remains: not remains(), 60, f"nothing to remain on {name}", remains)

    def left() -> list[str]:
        served = KINDS if "servicemonitors" in fleet.kubectl("api-resources", "-o", "name").stdout else KINDS.replace("servicemonitor,", "")
        names = fleet.kubectl("get", served, "-A", "-o", "name").stdout.split()
        return [name for name in names if any(word in name for word in ("penstock", "gpu-operator", "nvidia", "cluster-policy", "gpu-cluster", "of-none"))]
    wait_for(lambda: not left(), 60, "the API server to have no object of the release", left)
    wait_for(lambda: all(fleet.get("node", name)["status"]["allocatable"].get(GPU, "0") == "0" for name in fleet.nodes), 60, "the Node objects to have no GPUs")


def test_helm_uninstall_leaves_nothing(chart, fleet, measure):
    with measure("helm uninstall gpu-operator"):
        chart.helm("uninstall", "--namespace", NAMESPACE, RELEASE, "--wait", "--timeout", "240s")
    wait_nothing_left(fleet)
    # The definitions stay, as with NVIDIA's chart.
    assert fleet.kubectl("get", "crd", "clusterpolicies.nvidia.com", "nodestates.penstock.io").returncode == 0


# Objects of a release beside those of the chart itself, for no node.
EXTRA = [{"apiVersion": "nvidia.com/v1alpha1", "kind": "NVIDIADriver", "metadata": {"name": "of-none"},
          "spec": {"image": "driver", "repository": "localhost", "version": "1", "nodeSelector": {"example.com/driver": "none"}}},
         {"apiVersion": "nvidia.com/v1alpha1", "kind": "GPUCluster", "metadata": {"name": "gpu-cluster"},
          "spec": {"draDriver": {"repository": "localhost", "image": "dra-driver", "version": "1"}}},
         {"apiVersion": "amd.com/v1alpha1", "kind": "DeviceConfig", "metadata": {"name": "of-none", "namespace": NAMESPACE},
          "spec": {"driver": {"enable": False}, "selector": {"example.com/driver": "none"}}}]


# Objects that users made. The ClusterPolicy is the one in effect, the others are not; all wait for the operator when they are deleted.
OF_USERS = [cluster_policy(dcgmExporter={"serviceMonitor": {"enabled": True}}),
            {"apiVersion": "penstock.io/v1alpha1", "kind": "Penstock", "metadata": {"name": "users"}, "spec": {}},
            EXTRA[-1] | {"metadata": {"name": "of-users", "namespace": NAMESPACE}}]


def named(one: dict) -> tuple[str, ...]:
    kinds = "clusterpolicies" if one["kind"] == "ClusterPolicy" else one["kind"].lower() + "s"
    return kinds, one["metadata"]["name"], "-n", NAMESPACE


@pytest.mark.timeout(900)
def test_helm_uninstall_removes_also_what_an_operator_that_is_gone_has_left(chart, fleet, measure):
    """The operator's Deployment has no pod any more, so that nothing answers the deletion of its objects."""
    fleet.kubectl("apply", "--server-side", "-f", MONITOR)
    values = merged(VALUES, {"extraObjects": EXTRA, "clusterPolicy": {"deployCR": False}, "penstock": {"cleanup": {"timeout": "5s"}}})
    chart.values.write_text(json.dumps(values))
    chart.helm("install", "--create-namespace", "--namespace", NAMESPACE, RELEASE, "nvidia/gpu-operator", "-f", chart.values)
    fleet.kubectl("create", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": OF_USERS}))
    chart.wait_ready()
    fleet.wait_advertised(60)
    for one in EXTRA:
        wait_for(lambda one=one: fleet.get(*named(one)).get("status"), 60, f"the operator to answer {one['kind']}", chart.log)

    def finalizers() -> list:
        return [fleet.get(*named(one))["metadata"].get("finalizers") for one in OF_USERS]
    wait_for(lambda: all(finalizers()), 60, "the operator to hold the users' objects", chart.log)
    wait_for(lambda: fleet.kubectl("get", "servicemonitors", "-n", NAMESPACE, "-o", "name").stdout, 60, "the ServiceMonitor", chart.log)

    fleet.kubectl("scale", "deployment", "-n", NAMESPACE, "gpu-operator", "--replicas=0")
    wait_for(lambda: not fleet.kubectl("get", "pods", "-n", NAMESPACE, "-l", "app=gpu-operator", "-o", "name").stdout, 120, "the operator's pod to end")
    with measure("helm uninstall gpu-operator, without the operator"):
        chart.helm("uninstall", "--namespace", NAMESPACE, RELEASE, "--wait", "--timeout", "240s")
    assert not any(finalizers()), "users could not delete what they made"
    for one in OF_USERS:
        fleet.kubectl("delete", *named(one), "--timeout=60s")
    wait_nothing_left(fleet)
    fleet.kubectl("delete", "-f", MONITOR, "--timeout=60s")
    fleet.kubectl("delete", "crd", *DEFINITIONS)
    fleet.kubectl("delete", "namespace", NAMESPACE, "--wait=false")
