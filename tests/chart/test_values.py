"""The chart accepts the values of NVIDIA's device plugin chart under their names, and rejects others with these messages."""
import json

import pytest
import yaml

# Every name in NVIDIA's chart (values.yaml and values.schema.json of its 0.17 to 0.20), a possible value, and the environment variable that it becomes, if any.
NVIDIA = {
    "config.name": ("x", None), "config.map": ({"default": "version: v1"}, None), "config.default": ("a", None),
    "config.fallbackStrategies": (["named", "single", "empty"], None),
    "compatWithCPUManager": (True, ("PASS_DEVICE_SPECS", "true")), "migStrategy": ("none", ("MIG_STRATEGY", "none")),
    "failOnInitError": (False, ("FAIL_ON_INIT_ERROR", "false")),
    "deviceListStrategy": ("envvar,cdi-cri", ("DEVICE_LIST_STRATEGY", "envvar,cdi-cri")),
    "deviceIDStrategy": ("index", ("DEVICE_ID_STRATEGY", "index")), "nvidiaDriverRoot": ("/run/nvidia/driver", None),
    "nvidiaDevRoot": ("/run/nvidia/driver", None), "gdrcopyEnabled": (False, ("GDRCOPY_ENABLED", "false")),
    "gdsEnabled": (True, ("GDS_ENABLED", "true")), "mofedEnabled": (True, ("MOFED_ENABLED", "true")),
    "deviceDiscoveryStrategy": ("nvml", ("DEVICE_DISCOVERY_STRATEGY", "nvml")), "nvidiaDriverCapabilities": ("utility", None),
    "logVerbosity": (4, None), "nameOverride": ("stock", None), "fullnameOverride": ("penstock", None), "namespaceOverride": ("other", None),
    "selectorLabelsOverride": ({"a": "b"}, None), "componentSelectorLabels.enabled": (True, None), "allowDefaultNamespace": (True, None),
    "legacyDaemonsetAPI": (False, None), "imagePullSecrets": ([{"name": "s"}], None), "image.repository": ("r", None),
    "image.pullPolicy": ("Always", None), "image.tag": ("1", None), "image.digest": ("sha256:" + "0" * 64, None), "updateStrategy": ({"type": "OnDelete"}, None),
    "podAnnotations": ({"a": "b"}, None), "podSecurityContext": ({"fsGroup": 1}, None), "securityContext": ({"privileged": True}, None),
    "resources": ({"limits": {"memory": "1Gi"}}, None), "nodeSelector": ({"a": "b"}, None), "affinity": ({"podAffinity": {}}, None),
    "tolerations": ([{"operator": "Exists"}], None), "priorityClassName": ("p", None), "runtimeClassName": ("nvidia", None),
    "devicePlugin.enabled": (False, None), "devicePlugin.enableHostNetwork": (True, None), "devicePlugin.resources": ({"limits": {"cpu": 1}}, None),
    "devicePlugin.containers.main.env": ([{"name": "A", "value": "b"}], ("A", "b")),
    "gfd.enabled": (True, None), "gfd.nameOverride": ("x", None), "gfd.namespaceOverride": ("x", None), "gfd.noTimestamp": (True, None),
    "gfd.sleepInterval": ("10s", None), "gfd.securityContext": ({"privileged": True}, None), "gfd.enableHostNetwork": (True, None),
    "gfd.resources": ({}, None), "nfd": ({"enabled": True, "worker": {}}, None), "mps.root": ("/run/nvidia/mps", None),
    "mps.enableHostPID": (True, None), "mps.enableHostNetwork": (True, None), "mps.resources": ({}, None),
    "configManager.resources": ({"limits": {"cpu": 1}}, None),
    "cdi.nvidiaHookPath": ("/usr/bin/nvidia-ctk", ("NVIDIA_CDI_HOOK_PATH", "/usr/bin/nvidia-ctk")),
    "cdi.featureFlags": ("a,b", ("CDI_FEATURE_FLAGS", "a,b")),
}

# Command lines of NVIDIA's own instructions, without the names of the release and the chart.
INSTRUCTIONS = [
    "--set compatWithCPUManager=true --set resources.requests.cpu=100m --set resources.limits.memory=512Mi",
    "--set migStrategy=mixed", "--set gfd.enabled=true", "--set gfd.enabled=true --set devicePlugin.enabled=false",
    "--set config.name=nvidia-plugin-configs", "--set runtimeClassName=nvidia", "--set-string nodeSelector.nvidia\\.com/gpu=true",
    "--set config.default=config0 --set-file config.map.config0=FILE --set-file config.map.config1=FILE", "--set-file config.map.config=FILE",
    "--set nfd.enabled=false --set gfd.enabled=true", "--set deviceListStrategy=volume-mounts", "--set mps.root=/run/nvidia/mps",
]


BY_MPS = "version: v1\nsharing:\n  mps:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 4}\n"
BY_RULE = "apiVersion: penstock.io/v1alpha1\nkind: NodeConfig\nsharing: {rules: [{strategy: time-slicing, replicas: 2}, {strategy: mps, replicas: 2}]}\n"
UNPRIVILEGED = [{"penstock.privileged": False}, {"runtimeClassName": "nvidia"}, {"securityContext": {"capabilities": {"drop": ["ALL"]}}}]


def leaves(values: dict, at: str = "") -> set[str]:
    found = set()
    for key, value in values.items():
        path = f"{at}{key}"
        nested = isinstance(value, dict) and value
        found |= leaves(value, path + ".") if nested else {path}
    return found


@pytest.mark.parametrize("name", NVIDIA)
def test_a_name_of_nvidias_chart_is_known(chart, name):
    value, variable = NVIDIA[name]
    extra = {"config.map": {"a": "version: v1"}} if name == "config.default" else {}
    things = chart.render(values={**extra, name: value})
    if variable:
        assert things.environment()[variable[0]] == variable[1]
    else:
        assert not set(things.environment()) & {known[0] for _, known in NVIDIA.values() if known}


@pytest.mark.parametrize("words", INSTRUCTIONS)
def test_a_command_line_of_nvidias_instructions_is_taken(chart, tmp_path, words):
    file = tmp_path / "dp-example-config.yaml"
    file.write_text("version: v1\nflags:\n  migStrategy: none\n  plugin:\n    deviceListStrategy: [envvar]\n")
    chart.render(*words.replace("FILE", str(file)).split())


def test_values_reach_the_pod(chart):
    values = {name: NVIDIA[name][0] for name in (
        "imagePullSecrets", "podAnnotations", "podSecurityContext", "securityContext", "nodeSelector", "affinity", "tolerations",
        "priorityClassName", "runtimeClassName", "resources")}
    things = chart.render(values={**values, "logVerbosity": 5, "image.pullPolicy": "Never"})
    pod, container = things.pod(), things.container()
    assert pod["imagePullSecrets"] == [{"name": "s"}] and pod["securityContext"] == {"fsGroup": 1}
    assert pod["nodeSelector"] == {"a": "b", "kubernetes.io/os": "linux"} and pod["affinity"]["podAffinity"] == {}
    assert pod["tolerations"] == [{"operator": "Exists"}] and pod["priorityClassName"] == "p" and pod["runtimeClassName"] == "nvidia"
    assert container["securityContext"] == {"privileged": True} and container["resources"]["limits"] == {"memory": "1Gi"}
    assert container["imagePullPolicy"] == "Never" and "--verbose" in container["args"]
    assert things.one("DaemonSet")["spec"]["template"]["metadata"]["annotations"]["a"] == "b"


def test_variables_of_nvidias_plugin_that_its_chart_has_no_value_for_can_be_given(chart):
    variables = [{"name": "DP_DISABLE_HEALTHCHECKS", "value": "94,95"}, {"name": "DP_ENABLE_HEALTHCHECKS", "value": "13"}]
    found = chart.render(values={"devicePlugin.containers.main.env": variables}).environment()
    assert (found["DP_DISABLE_HEALTHCHECKS"], found["DP_ENABLE_HEALTHCHECKS"]) == ("94,95", "13")


def test_mps_needs_no_value_in_the_privileged_form(chart):
    usual = chart.render()
    assert usual.host_paths()["mps"] == "/run/nvidia/mps" and usual.mounts()["/run/nvidia/mps"] == {
        "name": "mps", "mountPath": "/run/nvidia/mps", "mountPropagation": "Bidirectional"}
    moved = chart.render(values={"mps.root": "/srv/mps"})
    assert moved.host_paths()["mps"] == "/srv/mps" and "/srv/mps" in moved.mounts()
    assert yaml.safe_load(moved.node_config())["sharing"]["mps"]["root"] == "/srv/mps"
    chart.render(values={"config.map": {"a": BY_MPS}})
    assert chart.render(values={"penstock.mps.enabled": True}).container() == usual.container()


@pytest.mark.parametrize("values", [{"penstock.mps.enabled": False}, *UNPRIVILEGED], ids=json.dumps)
def test_without_privileges_or_on_request_the_folder_for_mps_is_not_mounted(chart, tmp_path, values):
    assert "mps" not in chart.render(values=values).host_paths()
    assert "mps.root: no MPS server can be started" in chart.notes(tmp_path, values={**values, "mps.root": "/srv/mps"})


@pytest.mark.parametrize("values", UNPRIVILEGED, ids=json.dumps)
def test_mps_without_a_privileged_container_is_refused(chart, tmp_path, values):
    remedy = "securityContext" if "securityContext" in values else "penstock.privileged=true"
    assert remedy in chart.refusal(values={"penstock.mps.enabled": True, **values})
    for shared in ({"config.map": {"a": BY_MPS}}, {"penstock.config": yaml.safe_load(BY_RULE)}, {"config.map": {"a": BY_RULE}}):
        said = chart.refusal(values={**shared, **values})
        assert remedy in said and ("config.map.a" in said or "penstock.config" in said)
        assert "and penstock.mps.enabled is false" in chart.notes(tmp_path, values={**shared, **values, "penstock.mps.enabled": False})
    named = chart.notes(tmp_path, values={"config.name": "theirs", **values})
    assert "ConfigMap theirs shares by MPS are not offered" in named and remedy in named


def test_what_shares_by_time_slicing_alone_is_taken_in_every_form(chart, tmp_path):
    text = BY_MPS.replace("mps", "timeSlicing")
    for values in ({}, *UNPRIVILEGED):
        assert "MPS" not in chart.notes(tmp_path, values={"config.map": {"a": text, "b": "", "c": "sharing: none"}, "config.default": "a", **values}).replace(
            "starts no MPS server", "")


@pytest.mark.parametrize("repository", [
    "nvcr.io/nvidia/k8s-device-plugin", "registry.corp:5000/mirror/k8s-device-plugin", "k8s-device-plugin:v0.17.1", "r/nvidia-k8s-device-plugin",
    "nvcr.io/nvidia/k8s/dcgm-exporter", "nvcr.io/nvidia/gpu-feature-discovery@sha256:00", "r/k8s-cuda-sample"])
def test_an_image_of_nvidias_that_was_carried_over_is_refused(chart, repository):
    said = chart.refusal(values={"image.repository": repository, "image.tag": "v0.17.1"})
    assert f"image.repository: {repository} is an image of NVIDIA's" in said and "Set image.repository to" in said


@pytest.mark.parametrize("repository", ["r.corp:5000/k8s-device-plugin/penstock", "penstock", "r/penstock-device-plugin", "r/k8s-device-plugin-penstock"])
def test_an_image_that_may_be_ours_is_taken(chart, repository):
    assert chart.render(values={"image.repository": repository}).container()["image"].startswith(repository + ":")


def test_a_security_context_that_takes_privileges_away_is_told_of(chart, tmp_path):
    said = chart.notes(tmp_path, values={"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}})
    assert "securityContext replaces the agent's own and is not privileged" in said and "--set securityContext=null" in said
    for harmless in ({}, {"securityContext": {"privileged": True}}):
        assert "WARNING" not in chart.notes(tmp_path, values=harmless)


def test_what_a_runtime_class_takes_away_is_told(chart, tmp_path):
    said = chart.notes(tmp_path, values={"runtimeClassName": "nvidia"})
    assert "runtimeClassName: nvidia makes the agent's container unprivileged" in said and "does not start once that runtime is uninstalled" in said
    assert "WARNING" not in chart.notes(tmp_path, values={"runtimeClassName": "nvidia", "penstock.privileged": True})


def switches(schema: dict, at: tuple = ()) -> list[str]:
    """The paths of values that may be true or false."""
    here = [".".join(at)] if True in schema.get("enum", ()) else []
    return here + [path for key, below in schema.get("properties", {}).items() for path in switches(below, (*at, key))]


def test_true_and_false_may_be_texts_as_terraform_writes_them(chart, tmp_path):
    names = switches(json.loads((chart.path / "values.schema.json").read_text()))
    assert {"gfd.enabled", "failOnInitError", "penstock.mps.enabled", "penstock.labels.node"} <= set(names)
    listed = (chart.path / "templates/_read.tpl").read_text().partition("$switches := list")[2].partition("-}}")[0]
    assert [word.strip('"') for word in listed.split()] == names, "the switches of the schema are those that the templates read"
    refused = {True: ["legacyDaemonsetAPI", "penstock.metrics.podMonitor.enabled"], False: []}
    for value in (True, False):
        given = {"penstock.metrics.webConfig.secret": "s"} | {name: value for name in names if name not in refused[value]}
        texts = {name: json.dumps(one) if isinstance(one, bool) else one for name, one in given.items()}
        assert chart.render(values=given) == chart.render(values=texts)
    for name in ("gfd.enabled", "penstock.mps.enabled", "devicePlugin.enabled", "penstock.cleanup.enabled", "penstock.labels.node"):
        assert chart.render(values={name: False}) == chart.render(values={name: "false"}) != chart.render()
    assert "was removed" in chart.refusal(values={"legacyDaemonsetAPI": "true"})
    assert "one of" in chart.refusal(values={"gfd.enabled": "yes"})
    assert "gfd.enableHostNetwork: there is one container" in chart.notes(tmp_path, values={"gfd.enableHostNetwork": "true"})


def test_device_list_strategies_may_be_a_list(chart):
    listed = chart.render(values={"deviceListStrategy": ["envvar", "cdi-cri"]})
    assert listed == chart.render(values={"deviceListStrategy": "envvar,cdi-cri"})
    for wrong in ([], ["envvars"], [1]):
        assert "deviceListStrategy" in chart.refusal(values={"deviceListStrategy": wrong})


def test_names_and_namespaces_can_be_overridden(chart):
    things = chart.render(values={"fullnameOverride": "gpu", "namespaceOverride": "kube-system", "selectorLabelsOverride": {"app": "gpu"}})
    daemonset = things.one("DaemonSet", "gpu")
    assert daemonset["metadata"]["namespace"] == "kube-system" and daemonset["spec"]["selector"]["matchLabels"] == {"app": "gpu"}
    assert daemonset["spec"]["template"]["metadata"]["labels"]["app"] == "gpu"


def test_labels_without_a_device_plugin_and_the_other_way_round(chart):
    config = yaml.safe_load(chart.render(values={"devicePlugin.enabled": False}).node_config())
    assert config["allocators"]["kubelet"]["enabled"] == "off" and config["labels"]["node"] == "auto"
    config = yaml.safe_load(chart.render(values={"gfd.enabled": False}).node_config())
    assert config["allocators"]["kubelet"]["enabled"] == "on" and config["labels"]["node"] == "off"
    assert yaml.safe_load(chart.render(values={"gfd.noTimestamp": True}).node_config())["labels"]["timestamp"] is False


@pytest.mark.parametrize("values, words", [
    ({"migstrategy": "none"}, "migstrategy"),
    ({"config": {"maps": {}}}, "maps"),
    ({"gfd": {"enable": True}}, "enable"),
    ({"mps": {"enabled": True}}, "enabled"),
    ({"mps": {"root": "run/mps"}}, "root"),
    ({"penstock": {"nodestate": {}}}, "nodestate"),
    ({"migStrategy": "double"}, "migStrategy"),
    ({"deviceListStrategy": "envvars"}, "deviceListStrategy"),
    ({"nvidiaDriverRoot": "run/nvidia"}, "nvidiaDriverRoot"),
    ({"legacyDaemonsetAPI": True}, "was removed in Kubernetes 1.16"),
    ({"namespace": "x"}, "use --namespace"),
    ({"config": {"name": "x", "map": {"a": "version: v1"}}}, "set only one of them"),
    ({"config": {"map": {"a": "version: v1", "b": "version: v1"}}}, "none of them is selected"),
    ({"config": {"map": {"a": "version: v1"}, "default": "c"}}, 'has no key "c"; it has a'),
    ({"config": {"map": {"a": "version: [v1"}}}, "config.map.a is not YAML"),
], ids=json.dumps)
def test_a_wrong_value_is_refused_by_its_name(chart, values, words):
    assert words in chart.refusal(values=values)


def test_the_namespace_default_is_refused_until_it_is_meant(chart):
    assert 'namespace "default"' in chart.refusal(namespace="default")
    chart.render(namespace="default", values={"allowDefaultNamespace": True})


def test_every_value_is_in_the_charts_readme(chart):
    text = (chart.path / "README.md").read_text()
    names = leaves(yaml.safe_load((chart.path / "values.yaml").read_text())) | set(NVIDIA)
    parents = ("resources.", "updateStrategy.")
    missing = {name for name in names if not name.startswith(parents) and f"`{name}`" not in text}
    assert not missing


def test_dashboards_beside_a_file_of_counters_are_warned_of(chart, tmp_path):
    values = {"penstock.telemetry.countersConfigMap": "theirs", "penstock.metrics.dashboards.enabled": True}
    assert "Set penstock.telemetry.names={dcgm,accelerator}" in chart.notes(tmp_path, values=values)
    for harmless in ({"penstock.telemetry.names": ["dcgm", "accelerator"]}, {"penstock.metrics.dashboards.enabled": False},
                     {"penstock.telemetry.countersConfigMap": ""}):
        assert "WARNING" not in chart.notes(tmp_path, values=values | harmless)
