"""The objects that the chart gpu-operator renders besides the ClusterPolicy: the operator, its rights and the agents', ConfigMaps, hooks."""
import json
import os
import subprocess

import pytest
import yaml

from conftest import OPERATOR_NAMESPACE, ROOT, Rendered, deployment

CRDS = ROOT / "deploy/crds"


def is_hook(thing: dict) -> bool:
    return "helm.sh/hook" in thing["metadata"].get("annotations", {})


def rules_of(role: dict) -> set[tuple]:
    return {(resource, verb, tuple(rule.get("resourceNames", ()))) for rule in role["rules"] for resource in rule["resources"]
            for verb in rule["verbs"]}


# --- the operator -------------------------------------------------------------------------------------------------------------------------
def test_helm_finds_nothing_wrong(operator):
    done = operator.run("lint", "--strict", "--namespace", OPERATOR_NAMESPACE, operator.path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("kubernetes, policy", [("1.18.0", False), ("1.25.16", False), ("1.31.4", False), ("1.36.3", True)])
def test_what_depends_on_the_servers_version(operator, kubernetes, policy):
    """From 1.32 on every token names its node, by which the admission policy recognizes an agent."""
    def others(things):
        return [thing for thing in things if not thing["kind"].startswith("ValidatingAdmission")]

    things = operator.render(kubernetes=kubernetes)
    assert ("ValidatingAdmissionPolicy" in things.kinds()) == policy and others(things) == others(operator.render())
    assert "incompatible" in operator.refusal(kubernetes="1.17.0")


def test_the_operator_has_one_unprivileged_container(operator):
    things = operator.render()
    template = deployment(things)
    pod, [container] = template["spec"], template["spec"]["containers"]
    assert container["image"] == operator.image() and container["command"] == ["/usr/bin/penstock-operator"]
    context = container["securityContext"]
    assert context["capabilities"] == {"drop": ["ALL"]} and context["runAsNonRoot"] and context["readOnlyRootFilesystem"]
    assert not {"hostPID", "hostNetwork", "volumes"} & set(pod) and pod["serviceAccountName"] == "gpu-operator"
    environment = {one["name"]: one for one in container["env"]}
    assert environment["PENSTOCK_IMAGE"]["value"] == container["image"] and environment["PENSTOCK_PULL_POLICY"]["value"] == "IfNotPresent"
    assert environment["POD_NAMESPACE"]["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.namespace"}} and "POD_NAME" in environment
    selector = things.one("Deployment", "gpu-operator")["spec"]["selector"]["matchLabels"]
    assert selector == {"app": "gpu-operator", "app.kubernetes.io/component": "gpu-operator"}
    assert selector.items() <= template["metadata"]["labels"].items()


def test_the_operators_values_reach_its_pod(operator):
    given = {"tolerations": [{"operator": "Exists"}], "affinity": {"podAffinity": {}}, "nodeSelector": {"a": "b"}, "resources": {"limits": {"memory": "1Gi"}},
             "annotations": {"c": 1, "openshift.io/scc": "restricted-readonly"}, "labels": {"l": "m"}, "priorityClassName": "p",
             "logging": {"level": "debug"}, "imagePullSecrets": ["s", {"name": "t"}], "env": [{"name": "HTTPS_PROXY", "value": "http://p"}],
             "upgradeCRD": False}
    own = {"image": {"repository": "r.example/p", "tag": 2, "pullPolicy": "Never"}, "replicas": 2, "serviceAccount": {"name": "agents"}}
    things = operator.render(values={"operator": given, "penstock": own})
    template = deployment(things)
    pod, [container] = template["spec"], template["spec"]["containers"]
    assert pod["tolerations"] == [{"operator": "Exists"}] and pod["affinity"]["podAffinity"] == {}
    assert pod["nodeSelector"] == {"a": "b", "kubernetes.io/os": "linux"} and container["resources"]["limits"] == {"memory": "1Gi"}
    assert template["metadata"]["annotations"] == {"c": "1"} and template["metadata"]["labels"]["l"] == "m"
    assert pod["priorityClassName"] == "p" and pod["imagePullSecrets"] == [{"name": "s"}, {"name": "t"}]
    assert container["args"] == ["--listen=:8080", "--agent-service-account=agents", "--no-crds", "--verbose"]
    environment = {one["name"]: one.get("value") for one in container["env"]}
    assert environment["PENSTOCK_IMAGE"] == container["image"] == "r.example/p:2" and container["imagePullPolicy"] == "Never"
    assert environment["PENSTOCK_PULL_SECRETS"] == "s,t" and environment["HTTPS_PROXY"] == "http://p"
    assert things.one("Deployment", "gpu-operator")["spec"]["replicas"] == 2 and things.one("ServiceAccount", "agents")


@pytest.mark.parametrize("level, verbose", [("info", False), ("debug", True), ("error", False), (0, False), (2, True), ("3", True)])
def test_the_log_level(operator, level, verbose):
    [container] = deployment(operator.render(values={"operator.logging.level": level}))["spec"]["containers"]
    assert ("--verbose" in container["args"]) == verbose


def test_one_image_serves_everything_wherever_the_registry_is(operator):
    for values, image in (({"penstock.image.registry": "r.example:5000"}, "r.example:5000/penstock"),
                          ({"global.imageRegistry": "site.example/m"}, "site.example/m/penstock"),
                          ({"operator": {"repository": "nvcr.io/nvidia", "image": "gpu-operator", "version": "v26.7.0"}}, "localhost/penstock")):
        images = {container["image"] for thing in operator.render(values=values) if thing["kind"] in {"Deployment", "DaemonSet", "Job"}
                  for container in thing["spec"]["template"]["spec"]["containers"]}
        assert {name.rpartition(":")[0] for name in images} == {image}
    digest = "sha256:" + "0a" * 32
    [container] = deployment(operator.render(values={"penstock.image.digest": digest}))["spec"]["containers"]
    assert container["image"] == f"localhost/penstock@{digest}"


# --- rights -------------------------------------------------------------------------------------------------------------------------------
def test_nothing_may_do_everything(operator):
    things = operator.render("--api-versions", "security.openshift.io/v1")
    forbidden = {"*", "secrets", "clusterroles", "clusterrolebindings", "roles", "rolebindings", "pods/exec"}
    of_pods = {"ClusterRole": {"list", "watch"}, "Role": {"create", "delete"}}  # of drivers; a Role is of the operator's own namespace
    of_prometheus = "gpu-operator-prometheus"  # of the cluster, which reads what it scrapes
    for role in (thing for thing in things if thing["kind"] in {"Role", "ClusterRole"} and thing["metadata"]["name"] != of_prometheus):
        for resource, verb, _ in rules_of(role):
            assert resource not in forbidden and verb != "*", (role["metadata"]["name"], resource)
            assert resource != "pods" or verb in of_pods[role["kind"]], (role["metadata"]["name"], verb)
    created = {rule for rule in rules_of(things.one("ClusterRole", "gpu-operator")) if rule[1] == "create"}
    assert created == {("customresourcedefinitions", "create", ()), ("runtimeclasses", "create", ()), ("pods/eviction", "create", ())}
    without = rules_of(operator.render(values={"operator.upgradeCRD": False}).one("ClusterRole", "gpu-operator"))
    assert not [rule for rule in without if rule[0] == "customresourcedefinitions"]


def test_the_agents_rights_are_those_of_the_other_chart(operator, chart):
    ours, theirs = operator.render(), chart.render()
    # A ClusterPolicy can ask for pods' labels at any time.
    assert rules_of(ours.one("ClusterRole", "penstock")) == rules_of(theirs.one("ClusterRole", "penstock")) | {("pods", verb, ()) for verb in ("list", "watch")}
    assert rules_of(ours.one("Role", "penstock")) == {("configmaps", verb, ()) for verb in ("list", "watch")}
    without = operator.render(values={"penstock.rbac.podLabels": False})
    assert rules_of(without.one("ClusterRole", "penstock")) == rules_of(theirs.one("ClusterRole", "penstock"))
    for things, says_so in ((ours, False), (without, True)):  # the operator answers a policy that asks for them
        assert ("--no-pod-labels" in deployment(things)["spec"]["containers"][0]["args"]) == says_so
    assert ours.one("ServiceAccount", "penstock")["metadata"]["namespace"] == OPERATOR_NAMESPACE
    policy, other = (things.one("ValidatingAdmissionPolicy", "penstock-own-node")["spec"] for things in (ours, theirs))
    assert policy["validations"] == other["validations"]
    assert f"system:serviceaccount:{OPERATOR_NAMESPACE}:penstock" in policy["matchConditions"][0]["expression"]


def test_on_openshift_the_agents_are_admitted_by_constraints_of_their_own(operator):
    assert "SecurityContextConstraints" not in operator.render().kinds()
    for words, values in ((("--api-versions", "security.openshift.io/v1"), {}), ((), {"platform.openshift": True}), ((), {"penstock.openshift.enabled": "true"})):
        things = operator.render(*words, values=values)
        allowed = things.one("SecurityContextConstraints")
        assert allowed["allowPrivilegedContainer"] and allowed["allowHostPID"] and not allowed["allowHostNetwork"]
        assert "runAsUser" not in deployment(things)["spec"]["containers"][0]["securityContext"]
    for value in ("dcgmExporter.hostNetwork", "driver.hostNetwork"):
        network = operator.render(values={"platform.openshift": True, value: "true"})
        assert network.one("SecurityContextConstraints")["allowHostNetwork"]


def test_the_constraints_permit_driver_containers_too(operator):
    """They have the same account, and a root that they write to: constraints that require a read-only one make it read-only where a pod says nothing."""
    allowed = operator.render(values={"platform.openshift": True}).one("SecurityContextConstraints")
    assert allowed["readOnlyRootFilesystem"] is False and {"configMap", "hostPath"} <= set(allowed["volumes"]) and allowed["seLinuxContext"] == {"type": "RunAsAny"}
    own = operator.render(values={"platform.openshift": True, "penstock.spec": {"agent": {"volumes": [{"name": "a", "emptyDir": {}}]}}})
    assert "emptyDir" in own.one("SecurityContextConstraints")["volumes"]


# --- ConfigMaps, custom resources and others ----------------------------------------------------------------------------------------------
def test_config_maps_are_created_from_the_values(operator):
    files = {"a": "version: v1\n", "b.yml": "version: v1\nflags: {migStrategy: none}\n"}
    things = operator.render(values={
        "devicePlugin.config": {"create": True, "name": "plugin", "default": "a", "data": files},
        "migManager.config": {"create": True, "name": "mig", "data": {"config.yaml": "version: v1\nmig-configs: {}\n"}},
        "dcgmExporter.config": {"create": True, "name": "counters", "data": "DCGM_FI_DEV_GPU_TEMP, gauge, x\n"}})
    assert things.one("ConfigMap", "plugin")["data"] == files
    assert yaml.safe_load(things.one("ConfigMap", "mig")["data"]["config.yaml"]) == {"version": "v1", "mig-configs": {}}
    assert things.one("ConfigMap", "counters")["data"] == {"dcgm-metrics.csv": "DCGM_FI_DEV_GPU_TEMP, gauge, x\n"}
    spec = things.one("ClusterPolicy", "cluster-policy")["spec"]
    assert spec["devicePlugin"]["config"] == {"name": "plugin", "default": "a"} and spec["dcgmExporter"]["config"] == {"name": "counters"}
    assert spec["migManager"]["config"] == {"name": "mig", "default": "all-disabled"}
    text = operator.render(values={"migManager.config": {
        "create": True, "name": "mig", "data": "all-off:\n  - devices: all\n    mig-enabled: false\n"}})
    layouts = yaml.safe_load(text.one("ConfigMap", "mig")["data"]["config.yaml"])["mig-configs"]
    assert layouts == {"all-off": [{"devices": "all", "mig-enabled": False}]}
    existing = operator.render(values={"devicePlugin.config": {"name": "theirs"}})
    assert not [thing for thing in existing if thing["kind"] == "ConfigMap" and not is_hook(thing)]


def test_a_driver_object_is_created_on_request(operator):
    for values in ({}, {"driver.nvidiaDriverCRD": {"enabled": True, "deployDefaultCR": False}}, {"driver.nvidiaDriverCRD.enabled": True, "driver.enabled": False}):
        assert "NVIDIADriver" not in operator.render(values=values).kinds()
    spec = operator.render(values={
        "driver.nvidiaDriverCRD": {"enabled": True, "nodeSelector": {"pool": "a"}}, "driver.version": 570, "driver.repoConfig.configMapName": "repos",
        "driver.licensingConfig.configMapName": "l", "driver.virtualTopology.config": "v", "daemonsets.labels": {"a": "b"},
        "gds": {"enabled": True, "version": "1"}}).one("NVIDIADriver", "default")["spec"]
    assert (spec["version"], spec["driverType"], spec["kernelModuleType"], spec["repository"]) == ("570", "gpu", "auto", "nvcr.io/nvidia")
    assert spec["repoConfig"] == {"name": "repos"} and spec["licensingConfig"] == {"name": "l", "nlsEnabled": True}
    assert spec["virtualTopologyConfig"] == {"name": "v"} and spec["nodeSelector"] == {"pool": "a"} and spec["labels"] == {"a": "b"}
    assert spec["gds"] == {"enabled": True, "version": "1"} and spec["tolerations"][0]["key"] == "nvidia.com/gpu"


def test_a_gpu_cluster_takes_the_place_of_the_policy(operator, tmp_path):
    values = {"gpuCluster.deployCR": True, "clusterPolicy.deployCR": False,
              "draDriver": {"version": "v0.5.0", "featureGates": {"MPSSupport": "true"}, "computeDomains": {"enabled": "false"}}}
    things = operator.render(values=values)
    assert "ClusterPolicy" not in things.kinds()
    spec = things.one("GPUCluster", "gpu-cluster")["spec"]
    assert spec["draDriver"]["computeDomains"] == {"enabled": False} and {"dcgm", "dcgmExporter", "hostPaths", "daemonsets"} <= set(spec)
    assert "not served yet" in operator.notes(tmp_path, values=values)
    assert "nothing runs on the nodes until you create one" in operator.notes(tmp_path, values={"clusterPolicy.deployCR": False})


def test_our_own_resource_is_created_on_request(operator):
    assert "Penstock" not in operator.render().kinds()
    assert operator.render(values={"penstock.spec": {"agent": {"hostNetwork": True}}}).one("Penstock")["spec"] == {"agent": {"hostNetwork": True}}


def test_extra_objects_are_rendered_as_maps_and_as_texts_with_templates(operator):
    things = operator.render(values={"extraObjects": [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"a": "{{ .Release.Name }}"}},
        'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: two}\ndata: {a: "{{ .Values.mig.strategy }}"}\n']})
    assert things.one("ConfigMap", "one")["data"] == {"a": "gpu-operator"} and things.one("ConfigMap", "two")["data"] == {"a": "single"}


def test_network_policies_admit_only_the_pages_and_whom_they_name(operator):
    assert "NetworkPolicy" not in operator.render().kinds()
    peer, other = {"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}, {"podSelector": {}}
    things = operator.render(values={
        "networkPolicy": {"enabled": True, "ingress": {"from": [peer]}}, "dcgmExporter.networkPolicy": {"ingress": {"from": [other]}}})
    assert things.one("NetworkPolicy", "gpu-operator")["spec"]["ingress"] == [{"ports": [{"protocol": "TCP", "port": "metrics"}], "from": [peer]}]
    assert things.one("NetworkPolicy")["spec"]["ingress"][0]["from"] == [peer, other]
    one = operator.render(values={"dcgmExporter.networkPolicy.enabled": "true"})
    assert [thing["metadata"]["name"] for thing in one if thing["kind"] == "NetworkPolicy"] == ["penstock"]


def test_egress_is_restricted_to_the_api_server_dns_and_the_other_agents(operator):
    def ports(rule: dict) -> set:
        return {(one["protocol"], one["port"]) for one in rule["ports"]}

    dns = {(protocol, port) for protocol in ("TCP", "UDP") for port in (53, 5353)}
    assert operator.render(values={"networkPolicy.enabled": True}).one("NetworkPolicy")["spec"]["policyTypes"] == ["Ingress"]
    things = operator.render(values={"networkPolicy": {"enabled": True, "egress": {"enabled": "true"}}})
    own, agents = (things.one("NetworkPolicy", name)["spec"] for name in ("gpu-operator", "penstock"))
    assert own["policyTypes"] == agents["policyTypes"] == ["Ingress", "Egress"]
    assert [ports(rule) for rule in own["egress"]] == [{("TCP", 443), ("TCP", 6443)}, dns] and not any("to" in rule for rule in own["egress"])
    assert agents["egress"][:2] == own["egress"]
    assert agents["egress"][2] == {"ports": [{"protocol": "TCP", "port": "metrics"}], "to": [{"podSelector": agents["podSelector"]}]}
    api = [{"ipBlock": {"cidr": "10.0.0.1/32"}}]
    narrow = operator.render(values={"networkPolicy": {"enabled": True, "egress": {"enabled": True, "ports": [16443], "to": api}}})
    assert narrow.one("NetworkPolicy", "gpu-operator")["spec"]["egress"][0] == {"ports": [{"protocol": "TCP", "port": 16443}], "to": api}
    assert "ports" in operator.refusal(values={"networkPolicy.egress.ports": [0]})


MONITORING = ("--api-versions", "monitoring.coreos.com/v1/ServiceMonitor")


def test_the_operators_metrics_have_a_service_and_a_monitor_where_the_kind_is(operator):
    things = operator.render()
    service, pod = things.one("Service", "gpu-operator"), deployment(things)
    assert "ServiceMonitor" not in things.kinds() and service["spec"]["ports"][0]["port"] == 8080
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    assert service["spec"]["ports"][0]["targetPort"] in {port["name"] for port in pod["spec"]["containers"][0]["ports"]}
    monitor = operator.render(*MONITORING).one("ServiceMonitor", "gpu-operator")
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["spec"]["namespaceSelector"] == {"matchNames": [OPERATOR_NAMESPACE]}
    assert monitor["spec"]["endpoints"] == [{"port": service["spec"]["ports"][0]["name"], "path": "/metrics", "honorLabels": False}]
    own = {"enabled": True, "interval": "30s", "scrapeTimeout": "5s", "honorLabels": "true", "additionalLabels": {"release": 1},
           "relabelings": [{"action": "labeldrop", "regex": "x"}]}
    monitor = operator.render(*MONITORING, values={"operator.metrics.serviceMonitor": own}).one("ServiceMonitor", "gpu-operator")
    [endpoint] = monitor["spec"]["endpoints"]
    assert (endpoint["interval"], endpoint["scrapeTimeout"], endpoint["honorLabels"], endpoint["relabelings"]) == ("30s", "5s", True, own["relabelings"])
    assert monitor["metadata"]["labels"]["release"] == "1"
    for off in (False, "false"):
        assert "ServiceMonitor" not in operator.render(*MONITORING, values={"operator.metrics.serviceMonitor.enabled": off}).kinds()


OPENSHIFT = tuple(word for api in ("security.openshift.io/v1", "console.openshift.io/v1", "monitoring.coreos.com/v1/ServiceMonitor") for word in ("--api-versions", api))


def test_openshifts_console_and_prometheus_find_what_they_show(operator, tmp_path):
    things = operator.render(*OPENSHIFT)
    board = things.one("ConfigMap", "penstock-dashboard-gpu")
    assert board["metadata"]["namespace"] == "openshift-config-managed"
    assert {"console.openshift.io/dashboard": "true", "console.openshift.io/odc-dashboard": "true"}.items() <= board["metadata"]["labels"].items()
    [text] = board["data"].values()
    assert json.loads(text) == json.loads((ROOT / "deploy/dashboards/console/gpu.json").read_text())
    binding = things.one("RoleBinding", "gpu-operator-prometheus")
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "prometheus-k8s", "namespace": "openshift-monitoring"}]
    assert "openshift.io/cluster-monitoring=true" in operator.notes(tmp_path, *OPENSHIFT)
    assert not [thing for thing in operator.render() if "prometheus" in thing["metadata"]["name"] or thing["metadata"].get("namespace", "").startswith("openshift")]
    assert "penstock-dashboard-gpu" not in {thing["metadata"]["name"] for thing in operator.render(*OPENSHIFT, values={"penstock.metrics.console.enabled": False})}
    assert operator.render(values={"penstock.metrics.console.enabled": "true"}).one("ConfigMap", "penstock-dashboard-gpu")


# --- other servers ------------------------------------------------------------------------------------------------------------------------
GOLDEN = {"kubernetes-1.18": {"kubernetes": "1.18.0"}, "openshift": {"kubernetes": "1.31.0", "words": OPENSHIFT}}


def differences(operator, words=(), **options) -> dict:
    """What a server makes different from the newest plain Kubernetes: objects that are only there, that are missing, and fields."""
    def named(things) -> dict[str, dict]:
        return {f"{one['kind']} {one['metadata'].get('namespace', '-')}/{one['metadata']['name']}": one for one in things}

    def fields(before, after, path="") -> dict:
        if isinstance(before, dict) and isinstance(after, dict):
            return {at: change for key in sorted({*before, *after}) for at, change in fields(before.get(key), after.get(key), f"{path}.{key}").items()}
        if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
            return {at: change for i, (a, b) in enumerate(zip(before, after)) for at, change in fields(a, b, f"{path}[{i}]").items()}
        return {} if before == after else {path: {"instead of": before, "here": after}}

    usual, here = named(operator.render()), named(operator.render(*words, **options))
    for name, one in here.items():  # a file of its own, compared elsewhere
        if name.startswith("ConfigMap openshift-config-managed/"):
            one["data"] = sorted(one["data"])
    return {"only here": {name: here[name] for name in sorted({*here} - {*usual})}, "missing here": sorted({*usual} - {*here}),
            "different": {name: change for name in sorted({*here} & {*usual}) if (change := fields(usual[name], here[name]))}}


@pytest.mark.parametrize("server", GOLDEN)
def test_what_other_servers_get_is_as_recorded(operator, server):
    """tests/chart/golden; PENSTOCK_UPDATE_GOLDEN=1 renews it."""
    file, found = ROOT / f"tests/chart/golden/{server}.yaml", differences(operator, **GOLDEN[server])
    if os.environ.get("PENSTOCK_UPDATE_GOLDEN"):
        file.write_text(yaml.safe_dump(found, width=150, sort_keys=True))
    assert found == yaml.safe_load(file.read_text())


def test_dashboards_and_rules_are_those_of_the_other_chart(operator, chart):
    def body(thing):
        return {key: value for key, value in thing.items() if key != "metadata"}

    values = {"penstock.metrics": {"dashboards": {"enabled": True}, "rules": {"enabled": True, "openshift": True}}}
    ours = operator.render(values=values)
    theirs = [thing for thing in chart.render(values=values)
              if thing["kind"] == "PrometheusRule" or (thing["kind"] == "ConfigMap" and "dashboard" in thing["metadata"]["name"])]
    assert len(theirs) >= 3
    for thing in theirs:
        assert body(ours.one(thing["kind"], thing["metadata"]["name"])) == body(thing)


# --- uninstalling -------------------------------------------------------------------------------------------------------------------------
def command(things: list, job: str) -> list[str]:
    return Rendered(things).one("Job", job)["spec"]["template"]["spec"]["containers"][0]["command"]


def test_an_uninstall_waits_for_the_operator_and_then_removes_what_is_left(operator):
    things = [thing for thing in operator.render() if is_hook(thing)]
    when = {thing["metadata"]["name"]: thing["metadata"]["annotations"]["helm.sh/hook"] for thing in things if thing["kind"] == "Job"}
    assert when == {"gpu-operator-uninstall": "pre-delete", "penstock-cleanup": "post-delete"}
    assert command(things, "gpu-operator-uninstall") == [
        "/usr/bin/penstock", "cleanup", "--policies", f"--release={OPERATOR_NAMESPACE}/gpu-operator", "--timeout=180s"]
    assert command(things, "penstock-cleanup") == ["/usr/bin/penstock", "cleanup", "--cluster", f"--namespace={OPERATOR_NAMESPACE}", "--operator",
                                                   f"--after-daemonset={OPERATOR_NAMESPACE}/penstock-cleanup"]
    for thing in things:
        assert "hook-succeeded" in thing["metadata"]["annotations"]["helm.sh/hook-delete-policy"]
    whole = operator.render(values={"operator.cleanupCRD": "true", "penstock.cleanup.timeout": "3m"})
    assert "--crds" in command(whole, "penstock-cleanup") and "--timeout=3m" in command(whole, "gpu-operator-uninstall")
    assert {("customresourcedefinitions", "delete"), ("deviceconfigs", "list")} <= {rule[:2] for rule in rules_of(whole.one("ClusterRole", "penstock-cleanup"))}
    assert not [thing for thing in operator.render(values={"penstock.cleanup.enabled": False}) if is_hook(thing)]


def test_the_clean_up_of_a_node_sees_its_engines_whatever_the_values_say(operator):
    """A policy that a user has written may have had them configured."""
    for values in ({}, {"toolkit.enabled": False}, {"penstock.spec": {"node": {"containers": {"configureEngine": "off"}}}}):
        pod = operator.render(values=values).one("DaemonSet", "penstock-cleanup")["spec"]["template"]["spec"]
        assert pod["hostPID"] and pod["containers"][0]["securityContext"]["privileged"]


def test_the_clean_up_of_a_node_knows_the_folders(operator):
    things = operator.render(values={"toolkit.installDir": "/opt/programs"})
    config = yaml.safe_load(things.one("ConfigMap", "penstock-cleanup")["data"]["node.yaml"])
    assert config["cdi"]["install"] == "/opt/programs/toolkit" and config["paths"]["runDir"] == "/run/penstock"
    pod = things.one("DaemonSet", "penstock-cleanup")["spec"]["template"]["spec"]
    assert "/opt/programs/toolkit" in {volume["hostPath"]["path"] for volume in pod["volumes"] if "hostPath" in volume}
    assert {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in pod["tolerations"] and pod["hostPID"]
    off = yaml.safe_load(operator.render(values={"toolkit.enabled": False}).one("ConfigMap", "penstock-cleanup")["data"]["node.yaml"])
    assert off["cdi"]["install"] == "/var/lib/penstock", "/usr may be one that cannot be written"
    native = operator.render(values={"penstock.spec": {"hostPaths": {"installDir": ""}, "node": {"containers": {"configureEngine": "off"}}}})
    config = yaml.safe_load(native.one("ConfigMap", "penstock-cleanup")["data"]["node.yaml"])
    assert config["cdi"]["install"] == "/var/lib/penstock" and "containers" not in config


def test_the_program_understands_the_hooks_arguments(operator, programs):
    things = operator.render(values={"operator.cleanupCRD": True})
    for job in ("gpu-operator-uninstall", "penstock-cleanup"):
        words = [programs / "penstock", *command(things, job)[1:], "--kubeconfig=/nonexistent"]
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode == 1 and "/nonexistent" in done.stderr, done.stderr


# --- CRDs ---------------------------------------------------------------------------------------------------------------------------------
def test_the_crds_are_installed_with_the_chart(operator):
    done = operator.run("template", "gpu-operator", operator.path, "--namespace", OPERATOR_NAMESPACE, "--include-crds")
    names = {thing["metadata"]["name"] for thing in yaml.safe_load_all(done.stdout) if thing and thing["kind"] == "CustomResourceDefinition"}
    ours = {yaml.safe_load(file.read_text())["metadata"]["name"] for file in CRDS.glob("*.yaml")}
    assert names == ours | {"nodestates.penstock.io"}
