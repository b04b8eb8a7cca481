"""The chart accepts the values of NVIDIA's device plugin chart under their names, and rejects others with these messages."""
import json
import re
import shutil

import pytest
import yaml

from conftest import ROOT, Chart

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
    assert yaml.safe_load(moved.node_config())["sharing"] == {"serverRoots": {"nvidia": "/srv/mps"}}
    former = chart.render(values={"mps.root": "/srv/mps", "penstock.config": {"sharing": {"mps": {"hostRoot": "/host"}}}})
    assert yaml.safe_load(former.node_config())["sharing"] == {"mps": {"root": "/srv/mps", "hostRoot": "/host"}}
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


def paths_of(schema: dict, kind, at: tuple = ()) -> list[str]:
    """The paths of the values whose part of the schema is of this kind."""
    here = [".".join(at)] if kind(schema) else []
    return here + [path for key, below in schema.get("properties", {}).items() for path in paths_of(below, kind, (*at, key))]


KINDS = {
    "switches": lambda schema: True in schema.get("enum", ()),
    "lists": lambda schema: {"array", "string"} <= set(schema.get("type", ())),
    "numbers": lambda schema: "string" in schema.get("type", ()) and "minimum" in schema,
    "texts": lambda schema: isinstance(schema.get("additionalProperties"), dict) and "number" in schema["additionalProperties"]["type"],
}


def read_as(chart, kind: str) -> list[str]:
    """The paths of this kind that the templates read."""
    listed = (chart.path / "templates/_read.tpl").read_text().partition(f"${kind} := list")[2].partition("-}}")[0]
    return [word.strip('"') for word in listed.split()]


@pytest.mark.parametrize("kind", KINDS)
def test_the_templates_read_every_form_that_the_schema_accepts(chart, kind):
    assert read_as(chart, kind) == paths_of(json.loads((chart.path / "values.schema.json").read_text()), KINDS[kind]) != []


def test_true_and_false_may_be_texts_as_terraform_writes_them(chart, tmp_path):
    names = read_as(chart, "switches")
    assert {"gfd.enabled", "failOnInitError", "penstock.mps.enabled", "penstock.labels.node"} <= set(names)
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


LISTS = {
    "config.fallbackStrategies": ["single", "empty"], "deviceListStrategy": ["envvar", "cdi-cri"], "imagePullSecrets": ["a", "b"],
    "cdi.featureFlags": ["a", "b"], "penstock.architectures": ["amd64", "arm64"], "penstock.telemetry.names": ["dcgm", "accelerator"],
    "penstock.telemetry.exclude": ["DCGM_*", "x"], "penstock.telemetry.include": ["DCGM_FI_DEV_GPU_*"], "penstock.telemetry.holderLabels": ["app", "b/*"],
}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_may_be_a_text_with_commas(chart, name):
    config = {"config.name": "theirs"}
    listed = chart.render(values={**config, name: LISTS[name]})
    assert listed == chart.render(values={**config, name: ",".join(LISTS[name])}) == chart.render(values={**config, name: ", ".join(LISTS[name])})
    assert listed != chart.render(values=config)


def test_every_list_is_tested(chart):
    assert list(LISTS) == read_as(chart, "lists")


@pytest.mark.parametrize("name, wrong", [
    ("deviceListStrategy", []), ("deviceListStrategy", ["envvars"]), ("deviceListStrategy", [1]), ("deviceListStrategy", "envvar,"),
    ("deviceListStrategy", "envvar cdi-cri"), ("config.fallbackStrategies", "named,simple"), ("penstock.telemetry.names", "dcgm,nvml"),
    ("penstock.telemetry.names", ["nvml"]), ("penstock.architectures", "amd64;arm64"), ("imagePullSecrets", [{"names": "a"}]), ("imagePullSecrets", [1]),
    ("penstock.port", "http"), ("penstock.port", "65536"), ("penstock.port", 0), ("penstock.usage.idleBelow", "2"),
    ("penstock.terminationGracePeriodSeconds", "10s"), ("podAnnotations", {"a": ["b"]}), ("nodeSelector", {"a": {}})], ids=json.dumps)
def test_a_form_that_means_nothing_is_refused_by_its_name(chart, name, wrong):
    assert name.rpartition(".")[2] in chart.refusal(values={name: wrong})


def test_pull_secrets_are_names_or_objects(chart):
    expected = [{"name": "a"}, {"name": "b"}]
    for given in ("a,b", ["a", "b"], expected, ["a", {"name": "b"}]):
        assert chart.render(values={"imagePullSecrets": given}).pod()["imagePullSecrets"] == expected


def test_numbers_may_be_texts(chart):
    values = {"penstock.port": 9999, "penstock.usage.idleBelow": 0.05, "penstock.terminationGracePeriodSeconds": 20}
    numbers = chart.render(values=values)
    assert numbers == chart.render(values={name: str(value) for name, value in values.items()}) != chart.render()
    assert list(values) == read_as(chart, "numbers")


def test_numbers_and_switches_in_labels_selectors_and_variables_become_texts(chart):
    names = [name for name in read_as(chart, "texts") if not name.startswith("penstock.metrics.")]
    assert len(names) >= 4
    given = {"a": True, "b": 1, "c": 12345678, "d": 0.5, "e": "x"}
    expected = {"a": "true", "b": "1", "c": "12345678", "d": "0.5", "e": "x"}
    for name in names:
        assert chart.render(values={name: given}) == chart.render(values={name: expected}) != chart.render()
    things = chart.render(values={"tolerations": [{"key": "gpu", "value": True}], "devicePlugin.containers.main.env": [{"name": "A", "value": 1}]})
    assert things.pod()["tolerations"] == [{"key": "gpu", "value": "true"}] and things.environment()["A"] == "1"


# --- layouts of GPUs
def test_layouts_are_mounted_and_a_missing_map_does_not_keep_the_agent_from_starting(chart):
    things = chart.render(values={"migManager.config.name": "theirs"})
    assert yaml.safe_load(things.node_config())["parts"] == {"layouts": "/etc/penstock-layouts/config.yaml"}
    assert {"name": "layouts", "configMap": {"name": "theirs", "optional": True}} in things.pod()["volumes"]
    assert things.mounts()["/etc/penstock-layouts"] == {"name": "layouts", "mountPath": "/etc/penstock-layouts", "readOnly": True}
    changed = chart.render(values={"migManager.config.name": "theirs", "migManager.config.default": "all-balanced"})
    assert yaml.safe_load(changed.node_config())["parts"]["defaultLayout"] == "all-balanced"


def test_without_values_of_the_mig_manager_no_layout_is_followed(chart):
    for values in ({}, {"migManager": None}, {"migManager.config": None}, {"migManager.config": {"name": "", "default": ""}}):
        things = chart.render(values=values)
        assert "parts" not in yaml.safe_load(things.node_config()) and "layouts" not in {volume["name"] for volume in things.pod()["volumes"]}


def test_the_services_that_are_stopped_are_mounted_and_a_clean_up_can_start_them(chart):
    things = chart.render(values={"migManager.gpuClientsConfig.name": "theirs"})
    assert yaml.safe_load(things.node_config())["parts"] == {"clientServices": "/etc/penstock-clients/clients.yaml"}
    assert {"name": "clients", "configMap": {"name": "theirs", "optional": True}} in things.pod()["volumes"]
    assert things.mounts()["/etc/penstock-clients"] == {"name": "clients", "mountPath": "/etc/penstock-clients", "readOnly": True}
    for values, privileged in (({"migManager.gpuClientsConfig.name": "theirs"}, True), ({"penstock.parts.modeProfilesConfigMap": "dcm"}, True), ({}, None)):
        pod = chart.render(values=values).one("DaemonSet", "penstock-cleanup")["spec"]["template"]["spec"]
        assert (pod["containers"][0]["securityContext"].get("privileged"), pod.get("hostPID")) == (privileged, privileged), values


def test_another_value_of_the_mig_manager_is_refused(chart):
    assert "nodeSelector" in chart.refusal(values={"migManager.nodeSelector": {"x": "y"}})
    assert "key" in chart.refusal(values={"migManager.gpuClientsConfig": {"key": "x"}})


# --- files of AMD's programs
def test_the_config_maps_of_amds_programs_are_mounted_and_need_not_be_there(chart):
    things = chart.render(values={"penstock.parts.modeProfilesConfigMap": "dcm", "penstock.telemetry.exporterConfigMap": "exporter",
                                  "migManager.config.name": "layouts", "penstock.telemetry.interval": "5s"})
    config = yaml.safe_load(things.node_config())
    assert config["parts"] == {"layouts": "/etc/penstock-layouts/config.yaml", "modeProfiles": "/etc/penstock-modes/config.json"}
    assert config["telemetry"] == {"interval": "5s", "exporterFile": "/etc/penstock-exporter/config.json"}
    for volume, name, folder in (("modes", "dcm", "/etc/penstock-modes"), ("exporter", "exporter", "/etc/penstock-exporter")):
        assert {"name": volume, "configMap": {"name": name, "optional": True}} in things.pod()["volumes"]
        assert things.mounts()[folder] == {"name": volume, "mountPath": folder, "readOnly": True}


def test_without_them_nothing_of_amds_programs_is_mounted(chart):
    usual = chart.render()
    for values in ({"penstock.parts": None}, {"penstock.parts": {"modeProfilesConfigMap": None}}, {"penstock.telemetry.exporterConfigMap": None}):
        assert chart.render(values=values) == usual
    assert not {"modes", "exporter"} & {volume["name"] for volume in usual.pod()["volumes"]}


def test_the_folder_of_amds_health_socket_is_mounted_on_request(chart):
    folder = "/var/lib/amd-metrics-exporter"
    # The agent serves there, in this very folder.
    assert f'"{folder}/amdgpu_device_metrics_exporter_grpc.socket"' in (ROOT / "src/backend/amd/services.cc").read_text()
    for value in (True, "true"):
        things = chart.render(values={"penstock.telemetry.healthSocket": value})
        assert things.mounts()[folder] == {"name": "amd-health", "mountPath": folder}
        assert {"name": "amd-health", "hostPath": {"path": folder, "type": "DirectoryOrCreate"}} in things.pod()["volumes"]
        assert things.node_config() == chart.render().node_config(), "no key of the agent's configuration"
    for value in (False, "false", None):
        assert chart.render(values={"penstock.telemetry.healthSocket": value}) == chart.render()
    assert "healthSocket" in chart.refusal(values={"penstock.telemetry.healthSocket": "/var/lib/amd"})


def test_a_file_of_ones_own_counts_more_than_the_config_map(chart):
    given = {"penstock.telemetry.exporterConfigMap": "exporter", "penstock.config.telemetry": {"exporterFile": "/srv/config.json"}}
    assert yaml.safe_load(chart.render(values=given).node_config())["telemetry"]["exporterFile"] == "/srv/config.json"


# --- values without effect --------------------------------------------------------------------------------------------------------------
TABLE = yaml.safe_load((ROOT / "deploy/helm/penstock/files/without-effect.yaml").read_text())
# What makes each case of the table come true.
CASES = {
    "always": {}, "no configurations": {}, "no injected driver": {}, "no RuntimeClass": {}, "no ConfigMap of counters": {}, "no Service": {},
    "no ServiceMonitor": {}, "no PodMonitor": {}, "no dashboards": {}, "no rules": {}, "no web configuration": {}, "no network policy": {},
    "no device plugin": {"devicePlugin.enabled": False}, "no labels": {"gfd.enabled": False},
    "resources of the plugin": {"devicePlugin.resources": {"limits": {"cpu": 1}}}, "a digest": {"image.digest": "sha256:" + "0" * 64},
    "a global registry": {"global.imageRegistry": "r.example"}, "an affinity": {"affinity": {"podAffinity": {}}},
    "selected architecture": {"nodeSelector": {"kubernetes.io/arch": "amd64"}}, "a security context": {"securityContext": {"privileged": True}},
    "MPS disabled": {"penstock.mps.enabled": False}, "no privileges for MPS": {"runtimeClassName": "nvidia"},
    "no NodeState": {"penstock.nodeState.enabled": False}, "no clean-up": {"penstock.cleanup.enabled": False},
    "a service account of your own": {"penstock.serviceAccount.create": False}, "no CDI": {"penstock.cdi.enabled": False},
}
# Values that the schema accepts for the paths of the table; otherwise a text.
SAMPLES = {
    "deviceDiscoveryStrategy": "tegra", "cdi.nvidiaHookPath": "/usr/bin/nvidia-ctk", "logVerbosity": 1, "nfd": {"deploy": True},
    "config.fallbackStrategies": ["empty"], "deviceListStrategy": "envvar", "deviceIDStrategy": "index", "penstock.labels.node": "on",
    "penstock.labels.nodeFeature": "on", "penstock.labels.featuresFile": "/a/b", "penstock.labels.hostFeatures": "on", "mps.root": "/srv/mps",
    "penstock.nodeState.crd": False, "penstock.cleanup.host": False, "penstock.networkPolicy.from": [{}], "penstock.cdi.dir": "/cdi",
    "penstock.cdi.installDir": "/cdi",
}
SWITCHES = ("enable", "honorLabels", "noTimestamp", "privileged", "onlyLabelled", "compatWith")


def sample(path: str):
    last = path.rpartition(".")[2]
    if path in SAMPLES:
        return SAMPLES[path]
    if last.startswith(SWITCHES):
        return True
    if path.startswith("penstock.metrics.") or last == "annotations":
        return {"labels": {"a": "b"}, "annotations": {"a": "b"}, "interval": "7s", "scrapeTimeout": "7s", "relabelings": [{}], "metricRelabelings": [{}],
                "namespace": "x", "key": "x"}.get(last, {"a": "b"})
    if last in ("resources", "securityContext"):
        return {"limits": {"cpu": 1}}
    return "x"


def test_no_value_is_without_effect_by_default(chart, tmp_path):
    assert "without effect" not in chart.notes(tmp_path)


@pytest.mark.parametrize("case", CASES)
def test_a_value_without_effect_is_named_with_the_remedy(chart, tmp_path, case):
    reasons = {path: row["because"] for row in TABLE["rows"] if row["when"] == case for path in row["values"]}
    said = chart.notes(tmp_path, values={**{path: sample(path) for path in reasons}, **CASES[case]})
    for path, because in reasons.items():
        assert f"  {path}: {because}" in said
        assert re.search(r"\b(Use|Set|Remove|Keep|Install|install|Annotate)\b", because), "the remedy"


def test_a_value_is_named_only_in_its_case(chart, tmp_path):
    effective = {"migStrategy": "mixed", "migManager.config": {"name": "l", "default": "all-1g.5gb"}, "deviceDiscoveryStrategy": "nvml", "cdi.nvidiaHookPath": "/opt/hook", "logVerbosity": 4, "image.tag": "1",
                 "config.name": "x", "config.default": "a", "penstock.telemetry.countersConfigMap": "c", "penstock.telemetry.countersKey": "k",
                 "penstock.metrics.serviceMonitor": {"enabled": True, "interval": "7s"}, "mps.root": "/srv/mps", "resources": {"limits": {"cpu": 1}}}
    assert "without effect" not in chart.notes(tmp_path, values=effective)


def test_the_table_knows_the_defaults_and_only_values_that_the_schema_accepts(chart):
    defaults, schema = yaml.safe_load((chart.path / "values.yaml").read_text()), json.loads((chart.path / "values.schema.json").read_text())
    for path, value in TABLE["defaults"].items():
        found = defaults
        for word in path.split("."):
            found = found[word]
        assert found == value, path
    known = set(paths_of(schema, lambda _: True))
    assert {path for row in TABLE["rows"] for path in row["values"]} <= known and set(TABLE["defaults"]) <= known
    assert {row["when"] for row in TABLE["rows"]} == set(CASES)


def test_values_of_dcgm_exporters_chart_are_accepted_and_named(chart, tmp_path):
    """The structure of the exporter's values.yaml (4.8), without its image, which is rejected by name."""
    values = yaml.safe_load("""
arguments: [-f, /etc/dcgm-exporter/dcp-metrics-included.csv]
config: {enabled: true, create: true, key: config.yaml, mountPath: /etc/dcgm-exporter/config.yaml, data: "version: 1"}
serviceAccount: {create: true, annotations: {}}
service: {enable: true, type: ClusterIP, port: 9400, address: ":9400"}
serviceMonitor: {enabled: true, interval: 15s, additionalLabels: {release: prometheus}}
extraConfigMapVolumes: [{name: exporter-metrics-volume, configMap: {name: exporter-metrics-config-map}}]
extraVolumeMounts: [{name: exporter-metrics-volume, mountPath: /etc/dcgm-exporter/default-counters.csv}]
kubernetes: {enablePodLabels: true}
securityContext: {runAsNonRoot: false, runAsUser: 0, capabilities: {add: [SYS_ADMIN]}}
hostNetwork: false
customMetrics: "DCGM_FI_DEV_GPU_TEMP, gauge, x"
""")
    said = chart.notes(tmp_path, values=values)
    for name in (*(key for key in values if key not in ("config", "securityContext")), "config.data"):
        assert f"  {name}: " in said
    assert "securityContext replaces the agent's own and is not privileged" in said
    refused = chart.refusal(values={**values, "config": {**values["config"], "name": "exporter-config"}, "image.repository": "nvcr.io/nvidia/k8s/dcgm-exporter"})
    assert "is an image of NVIDIA's" in refused and '"exporter-config" is the exporter\'s YAML' in refused


def test_all_problems_are_reported_at_once(chart):
    said = chart.refusal(namespace="default", values={"namespace": "x", "legacyDaemonsetAPI": True, "config": {"name": "x", "map": {"a": "version: [v1"}}})
    for words in ('namespace "default"', "use --namespace NAME", "was removed in Kubernetes 1.16", "set only one of them", "config.map.a is not YAML"):
        assert words in said


# --- an upgrade -------------------------------------------------------------------------------------------------------------------------
RELEASED = sorted((ROOT / "tests/compat").glob("*/values.yaml"))


@pytest.mark.parametrize("values", [{}, {"gfd.enabled": "true", "penstock.metrics.service.enabled": True, "runtimeClassName": "nvidia"}], ids=json.dumps)
@pytest.mark.parametrize("frozen", RELEASED, ids=lambda path: path.parent.name)
def test_values_of_a_released_chart_render_without_those_that_are_newer(chart, tmp_path, frozen, values):
    """As `helm upgrade --reuse-values` passes them: the values of the newer chart are missing."""
    old = Chart(chart.helm)
    old.path = tmp_path / "chart"
    shutil.copytree(chart.path, old.path)
    shutil.copyfile(frozen, old.path / "values.yaml")
    things, now = old.render("--is-upgrade", values=values), chart.render(values=values)
    assert things.kinds() == now.kinds() and things.environment() == now.environment()
    assert "without effect" not in old.notes(tmp_path, values=values)
    for notes in ("monitoring.coreos.com/v1/ServiceMonitor", "security.openshift.io/v1"):
        old.render("--api-versions", notes, values=values)


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
