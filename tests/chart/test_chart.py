"""The objects that the chart renders from its values, compared by structure; the end-to-end tests run them."""
import json
import re
import subprocess

import pytest
import yaml

from conftest import ROOT

SETTINGS = {
    "defaults": {},
    "a ConfigMap of ours": {"config.map": {"default": "version: v1\n", "a100": "version: v1\n"}, "config.default": "a100"},
    "a ConfigMap of theirs": {"config.name": "time-slicing-config"},
    "a driver container": {"nvidiaDriverRoot": "/run/nvidia/driver"},
    "driver and devices apart": {"nvidiaDriverRoot": "/run/nvidia/driver", "nvidiaDevRoot": "/run/nvidia"},
    "a runtime class": {"runtimeClassName": "nvidia"},
    "labels alone": {"devicePlugin.enabled": False},
    "no labels": {"gfd.enabled": False},
    "labels all ways": {
        "penstock.labels": {"node": "on", "nodeFeature": "auto", "featuresFile": "/etc/f/features.d/penstock"}, "gfd.noTimestamp": True},
    "little": {"penstock.nodeState.enabled": False, "penstock.nodeStatus": False, "penstock.readyCondition": False, "penstock.events": False},
    "files for those who wait": {"penstock.validation": {"directory": "/run/nvidia/validations", "exporterNames": True}},
    "no containers for the validation": {"penstock.validation": {"container": False}},
    "files of AMD's programs": {"penstock.parts.modeProfilesConfigMap": "default-dcm-config", "penstock.telemetry.exporterConfigMap": "gpu-config",
                                "penstock.telemetry.healthSocket": True},
    "MPS": {"penstock.mps.enabled": True, "mps.root": "/srv/mps"},
    "a NodeConfig": {"penstock.config": {"health": {"poll": "2s"}, "doors": {"assign": [{"devices": [0], "door": "none"}]}}},
}


def program_version() -> str:
    return re.search(r"project\(penstock VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text()).group(1)


AMD64 = {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}


def terms_of(pod: dict) -> list[dict]:
    """The nodes that a pod's affinity requires."""
    return pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]


def rules_of(role: dict) -> set[tuple]:
    return {(resource, verb, tuple(rule.get("resourceNames", ()))) for rule in role["rules"] for resource in rule["resources"]
            for verb in rule["verbs"]}


# --- the pod ----------------------------------------------------------------------------------------------------------------------------
def test_helm_finds_nothing_wrong(chart):
    done = chart.run("lint", "--strict", "--namespace", "penstock", chart.path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_one_container_and_no_init_container_with_a_read_only_root(chart):
    pod = chart.render().pod()
    assert len(pod["containers"]) == 1 and "initContainers" not in pod
    assert pod["hostPID"] is True and "hostNetwork" not in pod
    assert pod["priorityClassName"] == "system-node-critical" and pod["terminationGracePeriodSeconds"] <= 10
    assert pod["containers"][0]["securityContext"] == {"privileged": True, "readOnlyRootFilesystem": True}


def test_the_image_is_the_one_that_the_build_names(chart):
    assert chart.render().container()["image"] == f"localhost/penstock:{program_version()}"
    assert chart.render(values={"image": {"repository": "r.example/p", "tag": 2}}).container()["image"] == "r.example/p:2"


def test_an_update_brings_the_new_pod_up_first(chart):
    assert chart.render().one("DaemonSet")["spec"]["updateStrategy"] == {
        "type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    own = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "20%"}}
    assert chart.render(values={"updateStrategy": own}).one("DaemonSet")["spec"]["updateStrategy"] == own
    assert chart.render(values={"updateStrategy": {"type": "OnDelete"}}).one("DaemonSet")["spec"]["updateStrategy"] == {"type": "OnDelete"}


def test_on_the_nodes_own_network_an_update_takes_the_old_pod_away_first(chart):
    things = chart.render(values={"devicePlugin.enableHostNetwork": True})
    assert things.pod()["hostNetwork"] is True
    assert things.one("DaemonSet")["spec"]["updateStrategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}
    assert "two pods cannot share" in chart.refusal(values={"devicePlugin.enableHostNetwork": True, "updateStrategy.rollingUpdate.maxSurge": 1})


def test_an_old_kubernetes_that_knows_no_surge_is_not_asked_for_one(chart):
    strategy = chart.render(kubernetes="1.21.14").one("DaemonSet")["spec"]["updateStrategy"]
    assert strategy["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}
    assert "incompatible" in chart.refusal(kubernetes="1.17.0")


def test_probes_ask_the_pages(chart):
    container = chart.render(values={"penstock.port": 9999}).container()
    assert container["ports"] == [{"name": "metrics", "containerPort": 9999}] and "--listen=:9999" in container["args"]
    assert container["livenessProbe"]["httpGet"] == container["startupProbe"]["httpGet"] == {"path": "/healthz", "port": "metrics"}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "metrics"}


def test_of_the_kubelets_folder_only_two_parts_are_mounted(chart):
    paths = chart.render().host_paths()
    assert {path for path in paths.values() if path.startswith("/var/lib/kubelet")} == {
        "/var/lib/kubelet/device-plugins", "/var/lib/kubelet/pod-resources"}
    moved = chart.render(values={"penstock.kubelet.podResourcesDir": "/var/lib/k0s/kubelet/pod-resources"})
    assert moved.host_paths()["pod-resources"] == "/var/lib/k0s/kubelet/pod-resources"
    assert "/var/lib/kubelet/pod-resources" in moved.mounts()


def test_nothing_is_left_in_the_hosts_dev(chart):
    container = chart.render().container()
    assert "/dev" in chart.render().mounts() and not container["terminationMessagePath"].startswith("/dev")


def test_no_folder_of_the_host_is_written_or_made_outside_run_and_var(chart):
    """On Talos, Bottlerocket, Flatcar and Container-Optimized OS one that is missing elsewhere cannot be made, and keeps the pod from starting."""
    things = chart.render()
    read = {mount["name"] for mount in things.container()["volumeMounts"] if mount.get("readOnly")}
    hosts = [(volume["name"], volume["hostPath"]) for volume in things.pod()["volumes"] if "hostPath" in volume]
    written = [host["path"] for name, host in hosts if name not in read or host.get("type", "").endswith("OrCreate")]
    assert "/var/lib/penstock" in written and all(path == "/dev" or path.startswith(("/run/", "/var/")) for path in written), written


def test_a_runtime_class_makes_the_pod_unprivileged_and_brings_driver_and_devices(chart):
    things = chart.render(values={"runtimeClassName": "nvidia"})
    context = things.container()["securityContext"]
    assert "privileged" not in context and context["allowPrivilegeEscalation"] is False and context["readOnlyRootFilesystem"] is True
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert not {"/dev", "/driver-root"} & set(things.mounts())
    assert things.environment()["NVIDIA_VISIBLE_DEVICES"] == "all"
    assert "driverRoot: /driver-root" not in things.node_config()
    assert "/var/run/cdi" not in things.mounts() and yaml.safe_load(things.node_config())["cdi"] == {"enabled": "off"}
    # Of control groups of version 1, readOnly alone covers none; an older Kubernetes does not know the other field. A privileged container could write to them anyway.
    cgroups = {"name": "cgroups", "mountPath": "/host-cgroup", "readOnly": True}
    assert things.mounts()["/host-cgroup"] == cgroups | {"recursiveReadOnly": "IfPossible"}
    for other in (chart.render(values={"runtimeClassName": "nvidia"}, kubernetes="1.30.0"), chart.render()):
        assert other.mounts()["/host-cgroup"] == cgroups | {"mountPropagation": "HostToContainer"}


def test_a_driver_root_elsewhere_is_mounted_and_told_by_its_own_name(chart):
    things = chart.render(values={"nvidiaDriverRoot": "/run/nvidia/driver"})
    assert things.host_paths()["driver-root"] == "/run/nvidia/driver"
    # The files of MIG devices are created below it.
    assert not things.mounts()["/driver-root"]["readOnly"] and things.mounts()["/driver-root"]["mountPropagation"] == "HostToContainer"
    paths = yaml.safe_load(things.node_config())["paths"]
    assert (paths["driverRoot"], paths["hostDriverRoot"]) == ("/driver-root", "/run/nvidia/driver")
    assert (paths["devRoot"], paths["hostDevRoot"]) == ("/driver-root", "/run/nvidia/driver")
    apart = chart.render(values=SETTINGS["driver and devices apart"])
    assert apart.host_paths()["dev-root"] == "/run/nvidia"
    assert apart.mounts()["/driver-root"]["readOnly"] and chart.render().mounts()["/driver-root"]["readOnly"]
    paths = yaml.safe_load(apart.node_config())["paths"]
    assert (paths["devRoot"], paths["hostDevRoot"]) == ("/dev-root", "/run/nvidia")


def test_by_default_every_linux_node_gets_an_agent_and_on_request_the_marked_ones(chart):
    pod = chart.render().pod()
    assert pod["nodeSelector"] == {"kubernetes.io/os": "linux"} and terms_of(pod) == [{"matchExpressions": [AMD64]}]
    terms = terms_of(chart.render(values={"penstock.onlyLabelledNodes": True}).pod())
    assert all(term["matchExpressions"][1:] == [AMD64] for term in terms)
    assert {(rule["key"], *rule["values"]) for term in terms for rule in term["matchExpressions"][:1]} == {
        ("feature.node.kubernetes.io/pci-10de.present", "true"), ("feature.node.kubernetes.io/cpu-model.vendor_id", "NVIDIA"),
        ("nvidia.com/gpu.present", "true"), ("feature.node.kubernetes.io/amd-gpu", "true"),
        *((f"feature.node.kubernetes.io/pci-{device}.present", "true") for device in ("1002", "0380_1002", "1200_1002"))}


def test_the_taints_of_each_vendors_nodes_are_tolerated(chart):
    for workload in ("penstock", "penstock-cleanup"):
        tolerated = chart.render().one("DaemonSet", workload)["spec"]["template"]["spec"]["tolerations"]
        assert {(one["key"], one.get("effect")) for one in tolerated} == {
            ("CriticalAddonsOnly", None), ("nvidia.com/gpu", "NoSchedule"), ("amd.com/gpu", "NoSchedule")}


def test_the_image_runs_on_the_architectures_that_it_is_built_for(chart):
    for workload in ("penstock", "penstock-cleanup"):
        pod = chart.render().one("DaemonSet", workload)["spec"]["template"]["spec"]
        assert terms_of(pod) == [{"matchExpressions": [AMD64]}]
    both = chart.render(values={"penstock.architectures": ["amd64", "arm64"]}).pod()
    assert terms_of(both) == [{"matchExpressions": [AMD64 | {"values": ["amd64", "arm64"]}]}]
    for none in ({"penstock.architectures": []}, {"penstock.architectures": None}, {"nodeSelector": {"kubernetes.io/arch": "arm64"}}):
        assert "affinity" not in chart.render(values=none).pod()


def test_an_affinity_of_ones_own_stays_beside_the_architectures(chart):
    pool, zone, name = ({"key": key, "operator": "Exists"} for key in ("pool", "zone", "metadata.name"))
    own = {"podAntiAffinity": {"x": []}, "nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {"matchExpressions": [zone]}}],
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [pool, zone]}, {"matchFields": [name]}, {}]}}}
    pod = chart.render(values={"affinity": own, "nodeSelector": {"pool": "gpu"}}).pod()
    assert pod["nodeSelector"] == {"pool": "gpu", "kubernetes.io/os": "linux"}
    assert terms_of(pod) == [{"matchExpressions": [pool, zone, AMD64]}, {"matchFields": [name], "matchExpressions": [AMD64]}, {}]
    kept = pod["affinity"]
    assert kept["podAntiAffinity"] == own["podAntiAffinity"]
    assert kept["nodeAffinity"].items() >= {
        "preferredDuringSchedulingIgnoredDuringExecution": own["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]}.items()


# --- the agent's configuration ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("values", SETTINGS.values(), ids=SETTINGS.keys())
def test_the_agent_understands_what_it_is_told(chart, programs, tmp_path, values):
    file = tmp_path / "node.yaml"
    file.write_text(chart.render(values=values).node_config())
    done = subprocess.run([programs / "penstock", "config", "check", file], capture_output=True, text=True)
    assert done.returncode == 0, file.read_text() + done.stdout + done.stderr


def test_a_configmap_is_watched_and_no_pod_restarts_when_it_changes(chart):
    first, second = (chart.render(values={"config.map": {"default": text}}) for text in ("version: v1\n", "version: v1\nflags: {}\n"))
    assert first.one("ConfigMap", "penstock-configs")["data"] != second.one("ConfigMap", "penstock-configs")["data"]
    assert first.one("DaemonSet") == second.one("DaemonSet")
    assert yaml.safe_load(first.node_config())["cluster"]["config"] == {
        "configMap": "penstock-configs", "namespace": "penstock", "fallback": ["named", "single"]}


def test_a_change_of_the_agents_own_settings_restarts_the_pods(chart):
    one, other = (chart.render(values={"penstock.config.health": {"poll": poll}}) for poll in ("1s", "2s"))
    assert one.one("DaemonSet") != other.one("DaemonSet")


def test_an_image_is_named_by_its_digest_where_one_is_given(chart):
    digest = "sha256:" + "0a" * 32
    things = chart.render(values={"image.digest": digest, "image.tag": "1"})
    images = [container["image"] for thing in things if thing["kind"] in {"DaemonSet", "Job"} for container in thing["spec"]["template"]["spec"]["containers"]]
    assert len(images) >= 2 and set(images) == {f"localhost/penstock@{digest}"}
    assert "digest" in chart.refusal(values={"image.digest": "latest"})


IMAGES = [
    ({"registry": "r.example:5000"}, {}, "r.example:5000/penstock"),
    ({"registry": "r.example/mirror", "repository": "team/gpu"}, {}, "r.example/mirror/team/gpu"),
    ({"registry": "r.example", "repository": "docker.io/team/penstock"}, {}, "r.example/team/penstock"),
    ({"registry": "r.example", "repository": "host:5000/penstock"}, {"imageRegistry": ""}, "r.example/penstock"),
    ({"registry": "r.example"}, {"imageRegistry": "site.example"}, "site.example/penstock"),
    ({"registry": "", "repository": "r.example/penstock"}, {"other": "x"}, "r.example/penstock"),
]


@pytest.mark.parametrize("image, site, expected", IMAGES, ids=[case[2] for case in IMAGES])
def test_a_registry_replaces_the_one_that_the_repository_names(chart, image, site, expected):
    digest = "sha256:" + "0a" * 32
    assert chart.render(values={"image": image, "global": site}).container()["image"] == f"{expected}:{program_version()}"
    assert chart.render(values={"image": {**image, "digest": digest}, "global": site}).container()["image"] == f"{expected}@{digest}"


@pytest.mark.parametrize("wrong", ["https://r.example", "r.example/", "R.example", "r.example:", "a b"])
def test_a_registry_that_is_none_is_refused(chart, wrong):
    assert "/image/registry" in (said := chart.refusal(values={"image.registry": wrong})) or "image.registry" in said
    assert "imageRegistry" in chart.refusal(values={"global.imageRegistry": wrong})


def test_its_memory_is_limited(chart):
    assert chart.render().container()["resources"]["limits"] == {"memory": "512Mi"}


# --- rights -----------------------------------------------------------------------------------------------------------------------------
def test_the_rights_are_these_and_no_more(chart):
    things = chart.render()
    assert rules_of(things.one("ClusterRole")) == {
        ("nodes", "get", ()), ("nodes", "list", ()), ("nodes", "watch", ()), ("nodes", "patch", ()), ("nodes/status", "patch", ()),
        *(("nodestates", verb, ()) for verb in ("get", "create", "patch"))}
    events = things.one("Role", "penstock-events")
    assert events["metadata"]["namespace"] == "default" and rules_of(events) == {("events", "create", ()), ("events", "patch", ())}
    assert rules_of(things.one("Role")) == {("nodefeatures", "get", ()), ("nodefeatures", "delete", ())}


def test_a_right_goes_with_what_it_is_for(chart):
    rules = rules_of(chart.render(values={**SETTINGS["little"], "gfd.enabled": False}).one("ClusterRole"))
    assert rules == {("nodes", verb, ()) for verb in ("get", "list", "watch")}
    assert not [thing for thing in chart.render(values={"penstock.events": False}) if thing["metadata"]["name"] == "penstock-events"]
    features = {verb: ("nodefeatures", verb, ()) for verb in ("get", "create", "patch", "delete")}
    named = rules_of(chart.render(values={"config.name": "mine"}).one("Role"))
    assert named - {*features.values()} == {("configmaps", verb, ("mine",)) for verb in ("list", "watch")}
    written = chart.render(values={"penstock.labels.nodeFeature": "on"}).one("Role")
    assert rules_of(written) == {features["get"], features["create"], features["patch"]}
    without = chart.render(values={"penstock.labels.nodeFeature": "on", "gfd.enabled": False}).one("Role")
    assert rules_of(without) == {features["get"], features["delete"]}, "one that an agent wrote before is removed"


def test_writes_are_held_to_the_own_node_where_tokens_name_it(chart):
    policy = chart.render(kubernetes="1.32.0").one("ValidatingAdmissionPolicy", "penstock-own-node")
    assert "system:serviceaccount:penstock:penstock" in policy["spec"]["matchConditions"][0]["expression"]
    assert "ValidatingAdmissionPolicy" not in chart.render(kubernetes="1.31.4").kinds()
    assert "ValidatingAdmissionPolicy" in chart.render(values={"penstock.admissionPolicy": True}, kubernetes="1.31.4").kinds()


def test_the_crd_comes_and_goes_with_its_switches(chart):
    assert "CustomResourceDefinition" in chart.render().kinds()
    for switch in ("enabled", "crd"):
        assert "CustomResourceDefinition" not in chart.render(values={f"penstock.nodeState.{switch}": False}).kinds()


def test_nobody_stays_behind_after_an_uninstall(chart):
    hooks = [thing for thing in chart.render() if "helm.sh/hook" in thing["metadata"].get("annotations", {})]
    assert {thing["kind"] for thing in hooks} == {
        "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ConfigMap", "DaemonSet", "Job"}
    for hook in hooks:
        assert hook["metadata"]["annotations"]["helm.sh/hook"] == "post-delete"
        assert "hook-succeeded" in hook["metadata"]["annotations"]["helm.sh/hook-delete-policy"]
    assert not [thing for thing in chart.render(values={"penstock.cleanup.enabled": False})
                if "helm.sh/hook" in thing["metadata"].get("annotations", {})]


def test_specifications_and_the_programs_that_they_name_are_put_on_the_host(chart):
    rendered = chart.render()
    assert rendered.host_paths()["cdi"] == "/var/run/cdi" and "readOnly" not in rendered.mounts()["/var/run/cdi"]
    config = yaml.safe_load(rendered.node_config())
    assert config["paths"]["cdiRoot"] == "/var/run/cdi" and config["cdi"] == {"enabled": "on", "install": "/var/lib/penstock"}
    assert "/var/lib/penstock" in rendered.mounts()
    elsewhere = chart.render(values={"penstock.cdi.dir": "/etc/cdi", "penstock.cdi.installDir": "/home/kubernetes/bin"})
    assert elsewhere.host_paths() | {"cdi": "/etc/cdi", "programs": "/home/kubernetes/bin"} == elsewhere.host_paths()
    assert yaml.safe_load(elsewhere.node_config())["cdi"]["install"] == "/home/kubernetes/bin"
    without = chart.render(values={"penstock.cdi.enabled": False})
    assert "cdi" not in without.host_paths() and yaml.safe_load(without.node_config())["cdi"] == {"enabled": "off"}


def test_engines_are_configured_on_request_and_by_privileged_pods_alone(chart):
    assert "containers" not in yaml.safe_load(chart.render().node_config())
    rendered = chart.render(values={"penstock.containerEngine.configure": "cdi"})
    assert yaml.safe_load(rendered.node_config())["containers"] == {"configureEngine": "cdi"}
    undoing = rendered.one("DaemonSet", "penstock-cleanup")["spec"]["template"]["spec"]
    assert undoing["hostPID"] and undoing["containers"][0]["securityContext"] == {"privileged": True, "readOnlyRootFilesystem": True}
    refused = chart.try_render(values={"penstock.containerEngine.configure": "cdi", "runtimeClassName": "nvidia"})
    assert refused.returncode and "penstock.containerEngine.configure" in refused.stderr


def test_a_runtime_class_is_made_on_request(chart):
    assert "RuntimeClass" not in chart.render().kinds()
    made = chart.render(values={"penstock.runtimeClass.create": True}).one("RuntimeClass", "nvidia")
    assert made["handler"] == "nvidia"


def test_runtime_classes_under_the_names_of_nvidias_stack_lead_to_one_handler(chart):
    names = ("nvidia", "nvidia-cdi", "nvidia-legacy")
    things = chart.render(values={"penstock.runtimeClasses": [{"name": name} for name in names]})
    assert {thing["metadata"]["name"]: thing["handler"] for thing in things if thing["kind"] == "RuntimeClass"} == dict.fromkeys(names, "nvidia")
    both = chart.render(values={"penstock.runtimeClass": {"create": True, "name": "gpu"},
                                "penstock.runtimeClasses": [{"name": "nvidia.cdi", "handler": "gpu-cdi"}]})
    assert both.one("RuntimeClass", "gpu")["handler"] == "gpu" and both.one("RuntimeClass", "nvidia.cdi")["handler"] == "gpu-cdi"
    vendors = chart.render(values={"penstock.runtimeClass.create": True, "penstock.runtimeClasses": [{"name": "amd", "handler": "amd"}]})
    assert {thing["metadata"]["name"]: thing["handler"] for thing in vendors if thing["kind"] == "RuntimeClass"} == {"nvidia": "nvidia", "amd": "amd"}


@pytest.mark.parametrize("values, words", [
    ({"penstock.runtimeClasses": [{"name": "a"}, {"name": "a", "handler": "b"}]}, '"a" is defined twice'),
    ({"penstock.runtimeClass.create": True, "penstock.runtimeClasses": [{"name": "nvidia"}]}, '"nvidia" is defined twice'),
    ({"penstock.runtimeClasses": [{"handler": "nvidia"}]}, "name"), ({"penstock.runtimeClasses": [{"name": "A"}]}, "runtimeClasses"),
    ({"penstock.runtimeClasses": [{"name": "a", "handler": "a.b"}]}, "handler"),
], ids=json.dumps)
def test_runtime_classes_that_cannot_be_made_are_refused(chart, values, words):
    assert words in chart.refusal(values=values)


# --- OpenShift ---------------------------------------------------------------------------------------------------------------------------
OPENSHIFT = ("--api-versions", "security.openshift.io/v1")


def test_on_openshift_the_pods_are_admitted_by_constraints_of_their_own(chart):
    assert "SecurityContextConstraints" not in chart.render().kinds() | chart.render(*OPENSHIFT, values={"penstock.openshift.enabled": False}).kinds()
    things = chart.render(*OPENSHIFT)
    assert things == chart.render(values={"penstock.openshift.enabled": "true"})
    allowed = things.one("SecurityContextConstraints")
    assert allowed["allowPrivilegedContainer"] and allowed["allowHostPID"] and allowed["allowHostDirVolumePlugin"] and allowed["readOnlyRootFilesystem"]
    assert not (allowed["allowHostNetwork"] or allowed["allowHostPorts"] or allowed["allowHostIPC"] or allowed["users"] or allowed["groups"])
    assert allowed["allowedCapabilities"] == [] and allowed["priority"] is None
    used = {key for volume in things.pod()["volumes"] for key in volume if key != "name"} | {"projected"}
    assert used <= set(allowed["volumes"]) == {"configMap", "hostPath", "projected", "secret"}
    assert rules_of(things.one("Role", "penstock-scc")) == {("securitycontextconstraints", "use", ("penstock",))}
    assert things.one("RoleBinding", "penstock-scc")["subjects"] == [{"kind": "ServiceAccount", "name": "penstock", "namespace": "penstock"}]
    assert not [one for one in chart.render(*OPENSHIFT, values={"penstock.rbac.create": False})
                if one["kind"] == "SecurityContextConstraints" and one["metadata"]["name"] == "penstock"]


def test_constraints_permit_what_the_values_request_and_no_more(chart):
    things = chart.render(*OPENSHIFT, values={
        "runtimeClassName": "nvidia", "devicePlugin.enableHostNetwork": True, "penstock.extraVolumes": [{"name": "x", "emptyDir": {}}]})
    allowed = things.one("SecurityContextConstraints")
    assert allowed["allowHostNetwork"] and allowed["allowHostPorts"] and "emptyDir" in allowed["volumes"]
    assert not allowed["allowPrivilegedContainer"] and not allowed["allowPrivilegeEscalation"]
    own = chart.render(*OPENSHIFT, values={"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}).one("SecurityContextConstraints")
    assert own["allowedCapabilities"] == ["SYS_ADMIN"] and not own["readOnlyRootFilesystem"] and not own["allowPrivilegedContainer"]


def test_on_openshift_the_clean_up_of_the_nodes_has_an_account_without_other_rights(chart):
    things = chart.render(*OPENSHIFT)
    pod = things.one("DaemonSet", "penstock-cleanup")["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == "penstock-cleanup-host" and pod["automountServiceAccountToken"] is False
    assert pod["containers"][0]["securityContext"]["seLinuxOptions"] == {"type": "spc_t"}
    bound = [one for one in things if one["kind"].endswith("Binding") and "penstock-cleanup-host" in json.dumps(one.get("subjects"))]
    assert [one["roleRef"]["name"] for one in bound] == ["penstock-cleanup-scc"]
    for kind, name in (("SecurityContextConstraints", "penstock-cleanup"), ("Role", "penstock-cleanup-scc"), ("RoleBinding", "penstock-cleanup-scc"),
                       ("ServiceAccount", "penstock-cleanup-host")):
        assert things.one(kind, name)["metadata"]["annotations"]["helm.sh/hook"] == "post-delete"
    allowed = things.one("SecurityContextConstraints", "penstock-cleanup")
    assert not (allowed["allowPrivilegedContainer"] or allowed["allowPrivilegeEscalation"] or allowed["allowHostPID"]) and allowed["volumes"] == ["configMap", "hostPath"]
    engines = chart.render(*OPENSHIFT, values={"penstock.containerEngine.configure": "cdi"}).one("SecurityContextConstraints", "penstock-cleanup")
    assert engines["allowPrivilegedContainer"] and engines["allowHostPID"]
    assert "runAsUser" not in things.one("Job", "penstock-cleanup")["spec"]["template"]["spec"]["containers"][0]["securityContext"]
    assert "serviceAccountName" not in chart.render().one("DaemonSet", "penstock-cleanup")["spec"]["template"]["spec"]


def test_the_notes_name_the_label_that_pod_security_needs(chart, tmp_path):
    assert "kubectl label namespace penstock --overwrite pod-security.kubernetes.io/enforce=privileged" in chart.notes(tmp_path)
    assert "podSecurityLabelSync=false" in chart.notes(tmp_path, values={"penstock.openshift.enabled": True})


def test_a_network_policy_admits_only_the_pages_and_whom_it_names(chart):
    assert "NetworkPolicy" not in chart.render().kinds()
    peers = [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}]
    things = chart.render(values={"penstock.networkPolicy": {"enabled": True, "from": peers}})
    spec = things.one("NetworkPolicy")["spec"]
    assert spec["podSelector"] == things.one("DaemonSet")["spec"]["selector"] and spec["policyTypes"] == ["Ingress"]
    assert spec["ingress"] == [{"ports": [{"protocol": "TCP", "port": "metrics"}], "from": peers}]


def test_more_arguments_volumes_and_mounts_are_added(chart):
    things = chart.render(values={"penstock.extraArgs": ["--verbose"], "penstock.extraVolumes": [{"name": "x", "emptyDir": {}}],
                                  "penstock.extraVolumeMounts": [{"name": "x", "mountPath": "/x"}]})
    assert things.container()["args"][-1] == "--verbose" and "/x" in things.mounts() and {"name": "x", "emptyDir": {}} in things.pod()["volumes"]


# --- without helm -----------------------------------------------------------------------------------------------------------------------
def test_the_plain_manifest_is_the_chart_with_its_defaults(chart):
    done = subprocess.run([ROOT / "deploy/manifests/render"], env={"HELM": str(chart.helm), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (ROOT / "deploy/manifests/penstock.yaml").read_text(), "run deploy/manifests/render, see its head"


def test_chart_and_programs_have_one_version(chart):
    words = yaml.safe_load((chart.path / "Chart.yaml").read_text())
    assert words["version"] == words["appVersion"] == program_version()
