"""The chart gpu-operator on four nodes, as NVIDIA's instructions install theirs (walkthrough A): from a repository's index into a namespace made before,
with a user's values; upgraded, rolled back, and uninstalled without a trace; and where NVIDIA's definitions and objects of users were there before."""
import contextlib
import json
import os
import re
import subprocess
import sys
import time

import parts
import pytest
import yaml
from api import ESTABLISHED
from actors import GPU, wait_for
from driver_containers import BareNode
from fleet import ACCELERATORS, MACHINE, ROOT, Fleet
from operators import DEFINITIONS, MONITOR, UPGRADES, cluster_policy, delete_policies, leader, state_of, taken_back, written_by_agents
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
        self.environment = os.environ | parts.BRIEF | {f"HELM_{name}_HOME": str(folder / name.lower()) for name in ("CACHE", "CONFIG", "DATA")}
        self.values = folder / "values.json"
        done = subprocess.run([ROOT / "deploy/helm/package", "--url", f"http://127.0.0.1:{PORT}", folder / "served"], capture_output=True, text=True,
                              env=os.environ | {"HELM": str(fleet.cluster.parts.tools / "helm"), "SOURCE_DATE_EPOCH": "1700000000"})
        assert done.returncode == 0, done.stderr
        self.values.write_text(json.dumps(VALUES))
        self.server = subprocess.Popen([*fleet.cluster.entering(), sys.executable, "-m", "http.server", str(PORT), "--bind", "127.0.0.1", "--directory",
                                        str(folder / "served")], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def helm(self, *words) -> str:
        return self.fleet.cluster.run("helm", *words, env=self.environment).stdout

    def remove(self):
        """Whatever there is of the release, and its definitions."""
        self.fleet.kubectl("scale", "deployment", "-n", NAMESPACE, "gpu-operator", "--replicas=1", check=False)  # for what waits for the operator
        delete_policies(self.fleet, NAMESPACE)
        self.fleet.cluster.run("helm", "uninstall", RELEASE, "-n", NAMESPACE, "--no-hooks", "--ignore-not-found", env=self.environment, check=False)
        self.fleet.kubectl("delete", "customresourcedefinition", *DEFINITIONS, "--ignore-not-found", "--timeout=300s", check=False)

    def log(self) -> str:
        answers = [self.fleet.kubectl(*words, "-n", NAMESPACE, check=False) for words in (
            ("get", "pods", "-o", "wide"), ("logs", "-l", "app=gpu-operator", "--tail=40"), ("get", "clusterpolicy,penstock", "-o", "yaml"))]
        return "\n".join(answer.stdout + answer.stderr for answer in answers)

    def policy(self) -> dict:
        return self.fleet.get("clusterpolicies", "cluster-policy")

    def state(self) -> str:
        return state_of(self.policy())

    def wait_ready(self, deadline: float = 240):
        wait_for(lambda: self.state() == "ready", deadline, "the ClusterPolicy to be ready", self.log)


@contextlib.contextmanager
def served_chart(fleet: Fleet):
    """The chart in a repository that helm knows, and no agents; afterwards nothing of its release."""
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
        chart.remove()


@pytest.fixture(scope="module")
def chart(fleet):
    with served_chart(fleet) as chart:
        yield chart


@pytest.fixture
def removed(chart):
    """For a scenario that uninstalls the release: where it fails, the next one can install another all the same."""
    yield
    chart.remove()


@pytest.fixture
def monitors(chart, fleet):
    """The kind ServiceMonitor."""
    fleet.kubectl("apply", "--server-side", "-f", MONITOR)
    yield
    fleet.kubectl("delete", "-f", MONITOR, "--timeout=300s")


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
        found = fleet.get("endpointslices", "-n", NAMESPACE, "-l", "kubernetes.io/service-name=gpu-operator")
        return [f"{address}:{one['ports'][0]['port']}" for one in found["items"] for endpoint in one["endpoints"] or () for address in endpoint["addresses"]]

    [address] = wait_for(addresses, 60, "the Service to have an endpoint", chart.log)
    page = fleet.cluster.view().page(f"http://{address}/metrics")
    for line in ('penstock_operator_nodes{state="ready"} 4', "gpu_operator_gpu_nodes_total 4"):
        assert f"\n{line}\n" in page, page


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


KINDS = ("clusterrole", "clusterrolebinding", "role", "rolebinding", "daemonset", "deployment", "serviceaccount", "configmap", "service", "servicemonitor", "job", "pod", "lease",
         "runtimeclass", "validatingadmissionpolicy", "validatingadmissionpolicybinding", "clusterpolicy", "nvidiadriver", "gpucluster", "deviceconfig", "penstock", "nodestate", "secret")


def wait_nothing_left(fleet: Fleet):
    """Of the release, on the nodes and in the API server."""
    for name, node in fleet.nodes.items():
        def remains(name=name, node=node) -> list[str]:
            metadata = fleet.get("node", name)["metadata"]
            files = node.view.below("/run/penstock", "/var/lib/penstock", "/run/cdi")
            return [*ours(metadata["labels"]), *(key for key in metadata["annotations"] if key == UPGRADES), *files]
        wait_for(lambda remains=remains: not remains(), 60, f"nothing to remain on {name}", remains)

    def left() -> list[str]:
        return [name for name in fleet.cluster.api.names(*KINDS) if any(word in name for word in ("penstock", "gpu-operator", "nvidia", "cluster-policy", "gpu-cluster", "of-none"))]
    wait_for(lambda: not left(), 60, "the API server to have no object of the release", left)
    wait_for(lambda: all(fleet.get("node", name)["status"]["allocatable"].get(GPU, "0") == "0" for name in fleet.nodes), 60, "the Node objects to have no GPUs")


@pytest.mark.usefixtures("removed")
def test_helm_uninstall_leaves_nothing(chart, fleet, measure):
    with measure("helm uninstall gpu-operator"):
        chart.helm("uninstall", "--namespace", NAMESPACE, RELEASE, "--wait", "--timeout", "240s")
    wait_nothing_left(fleet)
    assert not written_by_agents(fleet)
    # The operator has done its part before it went.
    wait_for(lambda: any("what agents left on the hosts of 4 of 4 nodes" in message for message in taken_back(fleet)), 60, "the Event", lambda: taken_back(fleet))
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
@pytest.mark.usefixtures("monitors", "removed")
def test_helm_uninstall_removes_also_what_an_operator_that_is_gone_has_left(chart, fleet, measure):
    """The operator's Deployment has no pod any more, so that nothing answers the deletion of its objects."""
    more = chart.values.with_name("more.json")
    more.write_text(json.dumps({"extraObjects": EXTRA, "clusterPolicy": {"deployCR": False}, "penstock": {"cleanup": {"timeout": "5s"}}}))
    chart.helm("install", "--create-namespace", "--namespace", NAMESPACE, RELEASE, "nvidia/gpu-operator", "-f", chart.values, "-f", more)
    # A server that has much to do serves the objects of a definition some time after it has said that it does.
    wait_for(lambda: fleet.kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": OF_USERS}), check=False).returncode == 0, 60,
             "the objects to be accepted", every=0.5)
    chart.wait_ready()
    fleet.wait_advertised(60)
    for one in EXTRA:
        wait_for(lambda one=one: fleet.get(*named(one)).get("status"), 60, f"the operator to answer {one['kind']}", chart.log)

    def finalizers() -> list:
        return [fleet.get(*named(one))["metadata"].get("finalizers") for one in OF_USERS]
    wait_for(lambda: all(finalizers()), 60, "the operator to hold the users' objects", chart.log)
    wait_for(lambda: fleet.get("servicemonitors", "-n", NAMESPACE)["items"], 60, "the ServiceMonitor", chart.log)

    fleet.kubectl("scale", "deployment", "-n", NAMESPACE, "gpu-operator", "--replicas=0")
    wait_for(lambda: not fleet.get("pods", "-n", NAMESPACE, "-l", "app=gpu-operator")["items"], 120, "the operator's pod to end")
    with measure("helm uninstall gpu-operator, without the operator"):
        chart.helm("uninstall", "--namespace", NAMESPACE, RELEASE, "--wait", "--timeout", "240s")
    assert not any(finalizers()), "users could not delete what they made"
    for one in OF_USERS:
        fleet.kubectl("delete", *named(one), "--timeout=300s")
    wait_nothing_left(fleet)
    fleet.kubectl("delete", "crd", *DEFINITIONS)
    fleet.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


@pytest.fixture
def bare(fleet):
    node = BareNode(fleet.nodes["n3"])
    yield node
    node.restore()


@pytest.mark.usefixtures("removed")
def test_a_node_without_a_driver_says_so_and_the_others_are_ready(chart, fleet, bare, measure):
    """Walkthrough A, with the chart's default `driver.enabled`: three nodes have a driver, which is adopted; the image for the fourth cannot be pulled."""
    name = bare.node.name
    others = sorted({*fleet.nodes} - {name})

    def status() -> dict:
        return chart.policy().get("status", {})

    def condition() -> dict:
        return next((one for one in status().get("conditions", ()) if one["type"] == "Ready"), {})

    def said() -> bool:
        nodes = status().get("nodes", {})
        return nodes.get("byState") == {"notReady": 1, "ready": len(others)} and [(one["name"], one["reason"]) for one in nodes["notReady"]] == [(name, "NoDriver")]

    def on_node() -> tuple[str, str]:
        state = next((one for one in fleet.get("nodestate", name).get("status", {}).get("conditions", ()) if one["type"] == "Ready"), {})
        mark = next((one for one in fleet.get("node", name)["status"]["conditions"] if one["type"] == "penstock.io/AcceleratorsReady"), {})
        return f"{state.get('status')} {state.get('reason')}", f"{mark.get('status')} {mark.get('reason')}"

    fleet.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", "--timeout=300s")  # of the scenario before
    fleet.kubectl("create", "namespace", NAMESPACE)
    with measure("helm install gpu-operator: three nodes ready, the fourth says that it has no driver", goal=10):
        chart.helm("install", "--namespace", NAMESPACE, RELEASE, "nvidia/gpu-operator", "-f", chart.values)
        wait_for(said, 240, "the ClusterPolicy to name the node without a driver", lambda: (status(), chart.log()))
    wait_for(lambda: on_node() == ("False NoDriver", "False DriverFailed"), 60, "the node to say so itself", on_node)
    fleet.wait_advertised(60, but={name: 0})
    fleet.hold("user", others[0], 1)
    fleet.wait_held("user")

    def drivers() -> dict[str, str]:
        pods = fleet.get("pods", "-n", NAMESPACE, "-l", "app.kubernetes.io/component=nvidia-driver")["items"]
        return {pod["spec"].get("nodeName"): pod["spec"]["containers"][0]["image"] for pod in pods}
    wait_for(lambda: drivers().keys() == {name}, 60, "a driver's pod on the one node", drivers)
    assert re.fullmatch("nvcr.io/nvidia/driver:[0-9.]+-[a-z]+[0-9.]+", drivers()[name])
    wait_for(lambda: condition().get("reason") == "DriverNotReady" and name in condition()["message"] and "ImagePull" in json.dumps(status().get("drivers")), 120,
             "the policy to say what prevents the driver", status)
    assert {key: fleet.labels(key)["nvidia.com/gpu.deploy.driver"] for key in fleet.nodes} == dict.fromkeys(others, "pre-installed") | {name: "true"}
    fleet.clear()
    chart.helm("uninstall", "--namespace", NAMESPACE, RELEASE, "--wait", "--timeout", "240s")
    fleet.kubectl("delete", "crd", *DEFINITIONS)


NVIDIAS = parts.gpu_operator_definitions()
POLICIES, NATIVES, POLICY = "clusterpolicies.nvidia.com", "penstocks.penstock.io", "gpu-cluster-policy"


def found_before() -> list[dict]:
    """NVIDIA's own definitions, that of ClusterPolicy with a field that is newer than Penstock, and Penstock's own definition of a later release."""
    definitions = {one["metadata"]["name"]: one for file in NVIDIAS.glob("*.yaml") for one in yaml.safe_load_all(file.read_text()) if one}
    [version] = definitions[POLICIES]["spec"]["versions"]
    version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["devicePlugin"]["properties"]["newer"] = {"type": "object", "additionalProperties": {"type": "integer"}}
    later = yaml.safe_load((ROOT / "deploy/crds/penstock.io_penstocks.yaml").read_text())
    later["metadata"]["annotations"] = {"penstock.io/version": "999.0.0"}
    return [*definitions.values(), later]


@pytest.mark.usefixtures("removed")
def test_nvidias_definitions_and_users_objects_that_were_there_before_are_served_and_stay(chart, fleet):
    """NVIDIA's definitions are replaced, a later one of Penstock stays and is named with a remedy that works; objects keep their spec, also a field of a definition
    that is newer; after an uninstall they are as before, and NVIDIA's definitions can be applied again."""
    def apply(*objects: dict):
        file = fleet.cluster.dir / "before.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        done = []

        def is_applied() -> bool:
            done.append(fleet.kubectl("apply", "--validate=strict", "-f", file, check=False))  # as NVIDIA's chart does
            return done[-1].returncode == 0
        # A server that has much to do serves the objects of a definition some time after it has said that it does.
        wait_for(is_applied, 60, "the objects to be accepted", lambda: done[-1].stderr, every=0.5)

    def get(kind: str, name: str) -> dict:
        return fleet.get(kind, name)

    def conditions(kind: str, name: str) -> dict[str, dict]:
        return {one["type"]: one for one in get(kind, name).get("status", {}).get("conditions", ())}

    def generator(name: str) -> str:
        return get("customresourcedefinitions", name)["metadata"]["annotations"].get("controller-gen.kubebuilder.io/version", "")

    def schema(definition: dict) -> dict:
        return definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]

    def is_ours(name: str) -> bool:
        plural, _, group = name.partition(".")
        ours = yaml.safe_load((ROOT / f"deploy/crds/{group}_{plural}.yaml").read_text())
        return schema(get("customresourcedefinitions", name))["description"] == schema(ours)["description"]

    def restart_operator():
        """Returns when the next one leads and has looked at each definition: it watches the objects of a definition only after that."""
        begin, first = time.time(), leader(fleet, NAMESPACE)
        fleet.kubectl("delete", "pod", "-n", NAMESPACE, "-l", "app=gpu-operator")
        pod = wait_for(lambda: (now := leader(fleet, NAMESPACE)) not in ("", first) and now, 120, "another operator to lead", chart.log)

        def asked(verb: str) -> set[str]:
            """Names of objects, or else of kinds."""
            return {event["objectRef"].get("name") or event["objectRef"]["resource"]
                    for event in fleet.audit.between(begin, who=f"system:serviceaccount:{NAMESPACE}:gpu-operator")
                    if event["verb"] == verb and event["user"].get("extra", {}).get("authentication.kubernetes.io/pod-name") == [pod]}
        kinds = {name.partition(".")[0] for name in DEFINITIONS}
        wait_for(lambda: asked("get") >= {*DEFINITIONS} and asked("watch") >= kinds, 120, "the next operator to have looked at the definitions",
                 lambda: (asked("get"), asked("watch"), chart.log()))

    definitions = found_before()
    apply(*definitions)
    for definition in definitions:
        fleet.kubectl("wait", f"--for={ESTABLISHED}", "--timeout=60s", f"crd/{definition['metadata']['name']}")
    sections = {key: {} for key in ("daemonsets", "toolkit", "gfd", "dcgm", "dcgmExporter", "nodeStatusExporter")}
    policy = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": POLICY},
              "spec": sections | {"operator": {"defaultRuntime": "containerd"}, "driver": {"enabled": False}, "devicePlugin": {"newer": {"a": 1}}}}
    driver = {"apiVersion": "nvidia.com/v1alpha1", "kind": "NVIDIADriver", "metadata": {"name": "before"},
              "spec": {"driverType": "gpu", "usePrecompiled": False, "image": "driver", "repository": "nvcr.io/nvidia", "version": "580.126.20", "nodeSelector": {"team": "none"}}}
    apply(policy, driver)
    before = {name: get(kind, name) for kind, name in (("clusterpolicies", POLICY), ("nvidiadrivers", "before"))}
    assert before[POLICY]["spec"]["devicePlugin"]["newer"] == {"a": 1} and not is_ours(POLICIES)

    fleet.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", "--timeout=300s")  # of the scenario before
    fleet.kubectl("create", "namespace", NAMESPACE)
    chart.helm("install", "--namespace", NAMESPACE, RELEASE, "nvidia/gpu-operator", "-f", chart.values, "--set", "clusterPolicy.deployCR=false")
    wait_for(lambda: state_of(get("clusterpolicies", POLICY)) == "ready", 240, "the ClusterPolicy to be ready", chart.log)
    fleet.wait_advertised(60)
    assert is_ours(POLICIES) and is_ours("nvidiadrivers.nvidia.com") and generator(POLICIES)
    said = conditions("clusterpolicies", POLICY)
    assert "spec.devicePlugin.newer: " in said["FieldsServed"]["message"] and "DefinitionsApplied" not in said
    wait_for(lambda: conditions("nvidiadrivers", "before").get("Ready", {}).get("reason") == "Ignored", 60, "the NVIDIADriver to be answered", chart.log)
    fleet.kubectl("patch", "clusterpolicy", POLICY, "--type=merge", "-p", json.dumps({"spec": {"devicePlugin": {"env": [{"name": "FAIL_ON_INIT_ERROR", "value": "true"}]}}}))
    assert get("clusterpolicies", POLICY)["spec"]["devicePlugin"]["newer"] == {"a": 1}

    kept = conditions("penstocks", "penstock")["DefinitionsApplied"]
    assert kept["status"] == "False" and "penstocks.penstock.io is of release 999.0.0" in kept["message"], kept
    events = fleet.get("events", "-n", "default", "--field-selector", "involvedObject.kind=Penstock,reason=DefinitionsKept")["items"]
    assert [event["message"] for event in events] == [kept["message"]], events
    remedy = re.search("`kubectl (.*?)`", kept["message"])[1].split()
    fleet.kubectl(*remedy)
    fleet.kubectl("delete", "pod", "-n", NAMESPACE, "-l", "app=gpu-operator")  # its successor looks at once
    wait_for(lambda: "DefinitionsApplied" not in conditions("penstocks", "penstock") and get("customresourcedefinitions", NATIVES)["metadata"]["annotations"]["penstock.io/version"] != "", 120,
             "the operator's own definition", chart.log)

    # Another program writes over ours; it is written again, and then there is nothing to write.
    apply(*(one for one in definitions if one["metadata"]["name"] == POLICIES))
    assert not is_ours(POLICIES)
    restart_operator()
    assert is_ours(POLICIES)

    def generations() -> dict[str, int]:
        return {name: get("customresourcedefinitions", name)["metadata"]["generation"] for name in DEFINITIONS}
    written = generations()
    restart_operator()
    assert generations() == written, "definitions were written although they agree"
    wait_for(lambda: state_of(get("clusterpolicies", POLICY)) == "ready", 120, "the ClusterPolicy to be ready", chart.log)

    chart.helm("uninstall", "--namespace", NAMESPACE, RELEASE, "--wait", "--timeout", "240s")
    after = {name: get(kind, name) for kind, name in (("clusterpolicies", POLICY), ("nvidiadrivers", "before"))}
    before[POLICY]["spec"]["devicePlugin"]["env"] = [{"name": "FAIL_ON_INIT_ERROR", "value": "true"}]
    for name, one in after.items():
        assert one["metadata"]["uid"] == before[name]["metadata"]["uid"] and "finalizers" not in one["metadata"], one["metadata"]
        assert without_defaults(before[name]["spec"], one["spec"]) == before[name]["spec"], name
    # Once the chart's Penstock was deleted, the ClusterPolicy alone said what agents do with engines.
    assert not [name for name, node in fleet.nodes.items() if "penstock-runtime" in node.run("cat", "/etc/containerd/config.toml").stdout]
    apply(*definitions[:-1])
    assert not is_ours(POLICIES)
    fleet.kubectl("label", "clusterpolicy", POLICY, "back=true")
    assert get("clusterpolicies", POLICY)["spec"]["devicePlugin"]["newer"] == {"a": 1}
    fleet.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def without_defaults(before: dict, after: dict) -> dict:
    """`after` with the keys that it had `before`: a definition adds its own defaults."""
    return {key: without_defaults(before[key], value) if isinstance(value, dict) and isinstance(before[key], dict) else value for key, value in after.items()
            if key in before}
