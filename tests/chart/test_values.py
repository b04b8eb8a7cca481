"""The values of NVIDIA's device plugin chart under their names, and what is refused with which words."""
import json

import pytest
import yaml

# Every name in NVIDIA's chart (values.yaml and values.schema.json of its 0.17 to 0.20), a value that somebody may give it, and the
# environment variable that it becomes, if it becomes one.
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

# Command lines of NVIDIA's own instructions, the release's name and chart aside.
INSTRUCTIONS = [
    "--set compatWithCPUManager=true --set resources.requests.cpu=100m --set resources.limits.memory=512Mi",
    "--set migStrategy=mixed", "--set gfd.enabled=true", "--set gfd.enabled=true --set devicePlugin.enabled=false",
    "--set config.name=nvidia-plugin-configs", "--set runtimeClassName=nvidia", "--set-string nodeSelector.nvidia\\.com/gpu=true",
    "--set config.default=config0 --set-file config.map.config0=FILE --set-file config.map.config1=FILE", "--set-file config.map.config=FILE",
    "--set nfd.enabled=false --set gfd.enabled=true", "--set deviceListStrategy=volume-mounts", "--set mps.root=/run/nvidia/mps",
]


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
    assert pod["nodeSelector"] == {"a": "b", "kubernetes.io/os": "linux"} and pod["affinity"] == {"podAffinity": {}}
    assert pod["tolerations"] == [{"operator": "Exists"}] and pod["priorityClassName"] == "p" and pod["runtimeClassName"] == "nvidia"
    assert container["securityContext"] == {"privileged": True} and container["resources"]["limits"] == {"memory": "1Gi"}
    assert container["imagePullPolicy"] == "Never" and "--verbose" in container["args"]
    assert things.one("DaemonSet")["spec"]["template"]["metadata"]["annotations"]["a"] == "b"


def test_variables_of_nvidias_plugin_that_its_chart_has_no_value_for_can_be_given(chart):
    variables = [{"name": "DP_DISABLE_HEALTHCHECKS", "value": "94,95"}, {"name": "DP_ENABLE_HEALTHCHECKS", "value": "13"}]
    found = chart.render(values={"devicePlugin.containers.main.env": variables}).environment()
    assert (found["DP_DISABLE_HEALTHCHECKS"], found["DP_ENABLE_HEALTHCHECKS"]) == ("94,95", "13")


def test_mps_gets_its_folder_only_where_it_is_asked_for(chart):
    without = chart.render(values={"mps.root": "/srv/mps"})
    assert "mps" not in without.host_paths() and "/srv/mps" not in without.mounts()
    usual = chart.render(values={"penstock.mps.enabled": True})
    assert usual.host_paths()["mps"] == "/run/nvidia/mps" and usual.mounts()["/run/nvidia/mps"] == {
        "name": "mps", "mountPath": "/run/nvidia/mps", "mountPropagation": "Bidirectional"}
    moved = chart.render(values={"penstock.mps.enabled": True, "mps.root": "/srv/mps"})
    assert moved.host_paths()["mps"] == "/srv/mps" and "/srv/mps" in moved.mounts()
    assert yaml.safe_load(moved.node_config())["sharing"]["mps"]["root"] == "/srv/mps"


@pytest.mark.parametrize("values", [{"penstock.privileged": False}, {"runtimeClassName": "nvidia"}], ids=json.dumps)
def test_mps_without_a_privileged_container_is_refused(chart, values):
    assert "penstock.privileged=true" in chart.refusal(values={"penstock.mps.enabled": True, **values})


def test_names_and_namespaces_can_be_overridden(chart):
    things = chart.render(values={"fullnameOverride": "gpu", "namespaceOverride": "kube-system", "selectorLabelsOverride": {"app": "gpu"}})
    daemonset = things.one("DaemonSet", "gpu")
    assert daemonset["metadata"]["namespace"] == "kube-system" and daemonset["spec"]["selector"]["matchLabels"] == {"app": "gpu"}
    assert daemonset["spec"]["template"]["metadata"]["labels"]["app"] == "gpu"


def test_labels_without_a_device_plugin_and_the_other_way_round(chart):
    config = yaml.safe_load(chart.render(values={"devicePlugin.enabled": False}).node_config())
    assert config["doors"]["kubelet"]["enabled"] == "off" and config["labels"]["node"] == "auto"
    config = yaml.safe_load(chart.render(values={"gfd.enabled": False}).node_config())
    assert config["doors"]["kubelet"]["enabled"] == "on" and config["labels"]["node"] == "off"
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
    ({"namespace": "x"}, "say --namespace"),
    ({"config": {"name": "x", "map": {"a": "version: v1"}}}, "give one of them"),
    ({"config": {"map": {"a": "version: v1", "b": "version: v1"}}}, "nothing says which of them"),
    ({"config": {"map": {"a": "version: v1"}, "default": "c"}}, 'has no key "c"; it has a'),
    ({"config": {"map": {"a": "version: [v1"}}}, "config.map.a is no YAML"),
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
