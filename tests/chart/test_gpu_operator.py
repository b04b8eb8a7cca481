"""The chart that takes the place of NVIDIA's gpu-operator chart accepts the values of NVIDIA's charts, and each reaches its field of the ClusterPolicy."""
import json
import re

import pytest
import yaml

from conftest import ROOT, at, deployment, leaves

ENV = [{"name": "A", "value": "b"}]
# Value -> (what a user gives, field of the ClusterPolicy's spec, what stands there): every value of NVIDIA's charts from 23.3 to 26.7 that becomes a field.
FIELDS = {
    "hostPaths.rootFS": ("/host", "/host"), "hostPaths.driverInstallDir": ("/opt/driver", "/opt/driver"), "hostPaths.kubeletRootDir": ("/var/k0s", "/var/k0s"),
    "operator.runtimeClass": ("gpu", "gpu"), "operator.defaultRuntime": ("containerd", "containerd"), "operator.use_ocp_driver_toolkit": (True, True),
    "operator.initContainer": ({"image": "cuda", "version": 12.8}, {"image": "cuda", "version": "12.8"}),
    "daemonsets.labels": ({"a": 1}, {"a": "1"}), "daemonsets.annotations": ({"a": ""}, {"a": ""}), "daemonsets.priorityClassName": ("p", "p"),
    "daemonsets.tolerations": ([{"operator": "Exists"}], [{"operator": "Exists"}]), "daemonsets.updateStrategy": ("OnDelete", "OnDelete"),
    "daemonsets.rollingUpdate.maxUnavailable": (3, "3"), "daemonsets.podSecurityContext": ({"fsGroup": 0}, {"fsGroup": 0}),
    "validator.env": (ENV, ENV), "validator.args": (["a"], ["a"]), "validator.resources": ({"limits": {"cpu": 1}}, {"limits": {"cpu": 1}}),
    **{f"validator.{part}.env": (ENV, ENV) for part in ("plugin", "cuda", "driver", "toolkit", "vfioPCI", "vgpuManager", "vgpuDevices")},
    "mig.strategy": ("mixed", "mixed"), "psa.enabled": ("true", True), "psp.enabled": (True, True),
    "cdi.enabled": ("true", True), "cdi.nriPluginEnabled": ("true", True), "cdi.default": ("true", True),
    "driver.enabled": ("false", False), "driver.usePrecompiled": (True, True), "driver.kernelModuleType": ("open", "open"),
    "driver.useOpenKernelModules": (True, True), "driver.repository": ("r.example/x", "r.example/x"), "driver.image": ("d", "d"), "driver.version": (570, "570"),
    "driver.imagePullPolicy": ("Always", "Always"), "driver.imagePullSecrets": ([{"name": "s"}, "t"], ["s", "t"]),
    "driver.startupProbe": ({"initialDelaySeconds": "5", "periodSeconds": 6, "timeoutSeconds": 7, "failureThreshold": "8"},
                            {"initialDelaySeconds": 5, "periodSeconds": 6, "timeoutSeconds": 7, "failureThreshold": 8}), "driver.livenessProbe": ({"periodSeconds": 3}, {"periodSeconds": 3}),
    "driver.readinessProbe": ({"periodSeconds": 3}, {"periodSeconds": 3}), "driver.rdma.enabled": (True, True), "driver.rdma.useHostMofed": (True, True),
    "driver.manager.env": (ENV, ENV), "driver.manager.repository": ("r", "r"), "driver.manager.image": ("m", "m"), "driver.manager.version": ("v1", "v1"),
    "driver.env": ([{"name": "A", "value": ""}], [{"name": "A", "value": ""}]), "driver.args": (["--x"], ["--x"]), "driver.resources": ({"limits": {"cpu": 1}},) * 2,
    "driver.repoConfig.configMapName": ("c", "c"), "driver.certConfig.name": ("c", "c"), "driver.licensingConfig.secretName": ("s", "s"),
    "driver.licensingConfig.configMapName": ("s", "s"), "driver.licensingConfig.nlsEnabled": (False, False), "driver.virtualTopology.config": ("v", "v"),
    "driver.kernelModuleConfig.name": ("k", "k"), "driver.secretEnv": ("s", "s"), "driver.hostNetwork": (True, True),
    "driver.upgradePolicy.autoUpgrade": (False, False), "driver.upgradePolicy.maxParallelUpgrades": (0, 0), "driver.upgradePolicy.maxUnavailable": (2, 2),
    "driver.upgradePolicy.waitForCompletion": ({"timeoutSeconds": "60", "podSelector": "a=b"}, {"timeoutSeconds": 60, "podSelector": "a=b"}),
    "driver.upgradePolicy.drain": ({"enable": "true", "force": True, "timeoutSeconds": 9, "deleteEmptyDir": True, "podSelector": "a"},
                                   {"enable": True, "force": True, "timeoutSeconds": 9, "deleteEmptyDir": True, "podSelector": "a"}),
    "toolkit.enabled": (False, False), "toolkit.env": (ENV, ENV), "toolkit.installDir": ("/opt/x", "/opt/x"), "toolkit.resources": ({"limits": {"cpu": 1}},) * 2,
    "devicePlugin.enabled": (False, False), "devicePlugin.env": ([{"name": "A", "value": 5}], [{"name": "A", "value": "5"}]), "devicePlugin.args": (["-x"], ["-x"]),
    "devicePlugin.mps.root": ("/mps", "/mps"), "devicePlugin.config": ({"name": "c", "default": "d"}, {"name": "c", "default": "d"}),
    "gfd.enabled": (False, False), "gfd.env": (ENV, ENV), "gfd.args": (["-x"], ["-x"]), "gfd.hostNetwork": (True, True),
    "migManager.enabled": (False, False), "migManager.env": (ENV, ENV), "migManager.config": ({"name": "m", "default": ""}, {"name": "m", "default": ""}),
    "migManager.gpuClientsConfig.name": ("g", "g"),
    "dcgm.enabled": (True, True), "dcgm.env": (ENV, ENV), "dcgm.hostPort": ("5555", 5555), "dcgm.hostNetwork": (True, True),
    "dcgmExporter.enabled": (False, False), "dcgmExporter.annotations": ({"a": "b"}, {"a": "b"}), "dcgmExporter.env": (ENV, ENV), "dcgmExporter.args": (["-x"], ["-x"]),
    "dcgmExporter.hostPID": (True, True), "dcgmExporter.hostNetwork": (True, True), "dcgmExporter.enablePodLabels": (True, True), "dcgmExporter.enablePodUID": (True, True),
    "dcgmExporter.hpcJobMapping": ({"enabled": True, "directory": "/j"}, {"enabled": True, "directory": "/j"}),
    "dcgmExporter.podLabelAllowlistRegex": (["^app$"], ["^app$"]), "dcgmExporter.service": ({"type": "NodePort", "internalTrafficPolicy": "Local"},) * 2,
    "dcgmExporter.serviceMonitor": ({"enabled": False, "interval": "1m", "scrapeTimeout": "5s", "honorLabels": True, "additionalLabels": {"release": 1}, "relabelings": [{"action": "drop"}]},
                                    {"enabled": False, "interval": "1m", "scrapeTimeout": "5s", "honorLabels": True, "additionalLabels": {"release": "1"}, "relabelings": [{"action": "drop"}]}),
    "dcgmExporter.config": ({"name": "counters"}, {"name": "counters"}),
    "nodeStatusExporter.enabled": (True, True), "nodeStatusExporter.resources": ({"limits": {"cpu": 1}},) * 2,
    "sandboxWorkloads.enabled": (True, True), "sandboxWorkloads.defaultWorkload": ("vm-vgpu", "vm-vgpu"), "sandboxWorkloads.mode": ("kata", "kata"),
    **{f"{part}.enabled": (True, True) for part in (
        "gds", "gdrcopy", "vgpuManager", "vgpuDeviceManager", "vfioManager", "sandboxDevicePlugin", "kataSandboxDevicePlugin", "kataManager", "ccManager")},
    "ccManager.defaultMode": ("devtools", "devtools"), "vgpuDeviceManager.config": ({"name": "v", "default": "default"},) * 2,
    "vgpuManager.driverManager.env": (ENV, ENV), "vfioManager.driverManager.version": ("v1", "v1"), "vgpuManager.kernelModuleConfig.name": ("k", "k"),
    "kataManager.config": ({"artifactsDir": "/a", "runtimeClasses": [{"name": "k"}]}, {"artifactsDir": "/a", "runtimeClasses": [{"name": "k"}]}),
    **{f"{part}.{name}": ("x", "x") for part in ("validator", "toolkit", "devicePlugin", "gfd", "migManager", "dcgm", "dcgmExporter", "nodeStatusExporter", "ccManager")
       for name in ("repository", "image", "version", "imagePullPolicy")},
}
# A value that becomes a field of another name.
RENAMED = {
    "driver.nvidiaDriverCRD.enabled": (True, "driver.useNvidiaDriverCRD", True),
    "driver.upgradePolicy.gpuPodDeletion": ({"force": "true", "timeoutSeconds": 8, "deleteEmptyDir": True}, "driver.upgradePolicy.podDeletion",
                                            {"force": True, "timeoutSeconds": 8, "deleteEmptyDir": True}),
}
# Values that only the chart itself reads.
OF_THE_CHART = re.compile(
    r"platform|nfd|node-feature-discovery|clusterPolicy|gpuCluster|draDriver|extraObjects|networkPolicy|penstock|driver\.nvidiaDriverCRD|[a-zA-Z]+\.config\.(create|data)"
    r"|(operator|dcgmExporter|nodeStatusExporter)\.networkPolicy|operator\.(?!runtimeClass|defaultRuntime|use_ocp|initContainer)")


@pytest.mark.parametrize("section", sorted({name.partition(".")[0] for name in FIELDS}))
def test_the_values_of_a_section_reach_their_fields(operator, section):
    fields = {name: case for name, case in FIELDS.items() if name.partition(".")[0] == section}
    policy = operator.policy({name: given for name, (given, _) in fields.items()})
    assert {name: at(policy, name) for name in fields} == {name: expected for name, (_, expected) in fields.items()}


@pytest.mark.parametrize("name", RENAMED)
def test_a_value_whose_field_has_another_name_reaches_it(operator, name):
    given, field, expected = RENAMED[name]
    spec = operator.policy({name: given})
    assert at(spec, field) == expected and at(spec, name) is None


OF_ALL_OPERANDS = ("env", "args", "resources", "hostNetwork", "imagePullPolicy", "imagePullSecrets")


def test_the_tables_have_every_value(operator):
    values = yaml.safe_load((operator.path / "values.yaml").read_text())
    tables = [*FIELDS, *RENAMED, *(f"{part}.{name}" for part in values for name in OF_ALL_OPERANDS)]
    known = {path for path, _ in leaves(values) for name in tables if path == name or path.startswith(name + ".") or name.startswith(path + ".")}
    assert not {path for path, _ in leaves(values) if not OF_THE_CHART.match(path)} - known


@pytest.mark.parametrize("part", ["validator", "driver", "toolkit", "devicePlugin", "gfd", "migManager", "dcgm", "dcgmExporter", "nodeStatusExporter"])
def test_every_operand_passes_on_what_all_operands_have(operator, part):
    given = {"env": ENV, "args": ["-x"], "resources": {"limits": {"cpu": 1}}, "hostNetwork": True, "imagePullPolicy": "Never", "imagePullSecrets": ["s"]}
    spec = operator.policy({f"{part}.{name}": value for name, value in given.items()})[part]
    assert given.items() <= spec.items()


def test_what_is_empty_or_not_set_is_left_out(operator):
    spec = operator.policy({"driver.env": None, "driver.version": "", "devicePlugin.config": {"name": "", "default": ""}, "gds": None, "mig.strategy": ""})
    assert "env" not in spec["driver"] and "version" not in spec["driver"] and "config" not in spec["devicePlugin"] and "gds" not in spec and "mig" not in spec
    required = {"operator", "daemonsets", "driver", "toolkit", "devicePlugin", "dcgm", "dcgmExporter", "gfd", "nodeStatusExporter"}
    assert required <= set(operator.policy(dict.fromkeys(required)))


# --- values files of NVIDIA's charts ------------------------------------------------------------------------------------------------------
# Names that NVIDIA's charts of these years have and the defaults here do not.
OLDER = yaml.safe_load("""
nfd: {enabled: true, nodefeaturerules: false}
psp: {enabled: false}
cdi: {enabled: true, default: false}
operator:
  repository: nvcr.io/nvidia
  image: gpu-operator
  version: v23.9.1
  imagePullPolicy: IfNotPresent
  imagePullSecrets: [ngc]
  defaultRuntime: docker
  initContainer: {image: cuda, repository: nvcr.io/nvidia, version: 12.3.1-base-ubi8, imagePullPolicy: IfNotPresent}
  annotations: {openshift.io/scc: restricted-readonly}
  logging: {timeEncoding: epoch, level: info, develMode: false}
  upgradeCRD: false
validator: {repository: nvcr.io/nvidia/cloud-native, image: gpu-operator-validator, plugin: {env: [{name: WITH_WORKLOAD, value: "false"}]}}
driver:
  useOpenKernelModules: false
  rollingUpdate: null
  licensingConfig: {configMapName: "", nlsEnabled: true}
  manager: {image: k8s-driver-manager, repository: nvcr.io/nvidia/cloud-native, version: v0.6.5, env: [{name: DRAIN_TIMEOUT_SECONDS, value: 0s}]}
dcgm: {hostPort: 5555, repository: nvcr.io/nvidia/cloud-native, image: dcgm, version: 3.3.0-1-ubuntu22.04}
gfd: {repository: nvcr.io/nvidia, image: gpu-feature-discovery, version: v0.8.2-ubi8, env: [{name: GFD_SLEEP_INTERVAL, value: 60s}]}
vfioManager: {enabled: true, image: cuda, version: 12.3.1-base-ubi8, driverManager: {image: k8s-driver-manager, env: [{name: ENABLE_AUTO_DRAIN, value: "false"}]}}
kataManager:
  enabled: false
  config: {artifactsDir: /opt/nvidia-gpu-operator/artifacts/runtimeclasses, runtimeClasses: [{name: kata-nvidia-gpu, nodeSelector: {}, artifacts: {url: x, pullSecret: ""}}]}
node-feature-discovery:
  enableNodeFeatureApi: true
  worker: {tolerations: [{key: nvidia.com/gpu, operator: Exists}], config: {sources: {pci: {deviceLabelFields: [vendor]}}}}
  master: {serviceAccount: {name: node-feature-discovery, create: true}, config: {extraLabelNs: [nvidia.com]}}
""")
del OLDER["driver"]["rollingUpdate"]
THEIRS = {
    "a values file of 2023": OLDER,
    "as Terraform writes it": {"driver": {"enabled": "false", "version": 570}, "toolkit": {"enabled": "true"}, "psa": {"enabled": "true"}, "operator": {"cleanupCRD": "false"}},
    "nothing but sections": dict.fromkeys(("driver", "toolkit", "devicePlugin", "gfd", "dcgm", "dcgmExporter", "migManager", "validator", "operator", "daemonsets", "cdi", "mig", "psa",
                                           "hostPaths", "sandboxWorkloads", "nodeStatusExporter", "nfd", "gds", "node-feature-discovery")),
    "network policies": {"networkPolicy": {"enabled": True, "ingress": {"from": [], "ports": []}}, "operator": {"networkPolicy": {"enabled": True, "ingress": {"ports": [{"port": 8080}]}}}},
}
NEWEST = ROOT / "tests/chart/testdata/gpu-operator-values.yaml"
# Command lines of published instructions.
INSTRUCTIONS = [
    "--set driver.enabled=false", "--set toolkit.enabled=false --set driver.enabled=false", "--set mig.strategy=mixed", "--set nfd.enabled=false",
    "--set driver.version=535.104.05", "--set operator.defaultRuntime=containerd", "--set psp.enabled=true", "--set psa.enabled=true",
    "--set toolkit.env[0].name=CONTAINERD_CONFIG --set toolkit.env[0].value=/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
    "--set toolkit.env[0].name=CONTAINERD_SET_AS_DEFAULT --set-string toolkit.env[0].value=true", "--set migManager.env[0].name=WITH_REBOOT --set-string migManager.env[0].value=true",
    "--set devicePlugin.config.name=time-slicing-config --set devicePlugin.config.default=any", "--set driver.rdma.enabled=true --set gds.enabled=true",
    "--set driver.repository=registry.corp/nvidia --set driver.imagePullSecrets[0]=ngc", "--set sandboxWorkloads.enabled=true --set ccManager.enabled=true",
    "--set dcgmExporter.serviceMonitor.enabled=true --set dcgmExporter.config.name=custom-dcgm-metrics", "--set driver.nvidiaDriverCRD.enabled=true",
    "--set operator.upgradeCRD=true --disable-openapi-validation", "--set cdi.enabled=true --set cdi.default=true", "--set hostPaths.driverInstallDir=/",
    "--set driver.licensingConfig.secretName=licensing-config --set driver.licensingConfig.nlsEnabled=true", "--set driver.upgradePolicy.maxParallelUpgrades=3",
    "--set gpuCluster.deployCR=true --set clusterPolicy.deployCR=false --set draDriver.featureGates.MPSSupport=true",
]


@pytest.mark.parametrize("name", THEIRS)
def test_a_values_file_of_theirs_is_taken(operator, tmp_path, name):
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(THEIRS[name]))
    policy = operator.policy(None, "-f", file)
    for path, value in leaves({key: section for key, section in THEIRS[name].items() if isinstance(section, dict)}):
        if not OF_THE_CHART.match(path) and isinstance(value, bool):
            assert at(policy, path) is value, path


@pytest.mark.parametrize("words", INSTRUCTIONS)
def test_a_command_line_of_published_instructions_is_taken(operator, words):
    operator.render(*words.split())


def test_the_whole_values_file_of_their_newest_chart_is_taken(operator, tmp_path):
    theirs = yaml.safe_load(NEWEST.read_text())
    things = operator.render("-f", NEWEST)
    policy = things.one("ClusterPolicy", "cluster-policy")["spec"]
    for path, value in leaves(theirs):
        if path in RENAMED or OF_THE_CHART.match(path) or path.startswith("driver.upgradePolicy.gpuPodDeletion") or value in ("", None, [], {}):
            continue
        assert at(policy, path) == value, path
    assert {container["image"] for container in deployment(things)["spec"]["containers"]} == {operator.image()}
    said = operator.notes(tmp_path, "-f", NEWEST)
    assert "  operator.repository: the image is another. Use penstock.image" in said and "  nfd.enabled: no NFD is installed or needed" in said
    assert "repository, image and version of validator, toolkit, devicePlugin, gfd," in said


def test_a_name_that_no_chart_of_theirs_has_is_refused(operator):
    for values, words in (({"drivers": {"enabled": False}}, "drivers"), ({"driver.enabeld": False}, "enabeld"), ({"toolkit.installdir": "/x"}, "installdir"),
                          ({"driver.upgradePolicy.maxParalel": 1}, "maxParalel"), ({"penstock.images": {}}, "images"), ({"driver.kernelModuleType": "closed"}, "kernelModuleType"),
                          ({"mig.strategy": "double"}, "strategy"), ({"driver.upgradePolicy.maxParallelUpgrades": "many"}, "maxParallelUpgrades"),
                          ({"dcgmExporter.serviceMonitor.interval": "often"}, "interval"), ({"penstock.image.registry": "https://r"}, "registry")):
        assert words in operator.refusal(values=values)


def test_all_problems_are_reported_at_once(operator):
    said = operator.refusal(values={"gpuCluster.deployCR": True, "cdi": {"enabled": False, "nriPluginEnabled": True}, "devicePlugin.config": {"create": True, "data": {"a": "version: [v1"}},
                                    "penstock.image.repository": "nvcr.io/nvidia/gpu-operator"})
    for words in ("clusterPolicy.deployCR and gpuCluster.deployCR", "cdi.nriPluginEnabled", "devicePlugin.config.create: name the ConfigMap", "devicePlugin.config.data.a is not YAML",
                  "nvcr.io/nvidia/gpu-operator is an image of NVIDIA's"):
        assert words in said
    for values in ({"migManager.config": {"create": True}}, {"devicePlugin.config": {"create": True, "name": "c", "data": {"a": "x"}, "default": "b"}}):
        assert "config" in operator.refusal(values=values)


# --- what is said -------------------------------------------------------------------------------------------------------------------------
TABLE = yaml.safe_load((ROOT / "deploy/helm/gpu-operator/files/without-effect.yaml").read_text())
CASES = {
    "always": {}, "no ConfigMap of the plugin": {}, "no ConfigMap of the plugin's name": {}, "no ConfigMap of layouts": {}, "no ConfigMap of counters": {}, "no NVIDIADriver": {},
    "no GPUCluster": {}, "a digest": {"penstock.image.digest": "sha256:" + "0" * 64}, "a global registry": {"global.imageRegistry": "r.example"},
    "no clean-up": {"penstock.cleanup.enabled": False}, "a service account of your own": {"penstock.serviceAccount.create": False}, "no dashboards": {}, "no rules": {},
}
SAMPLES = {"psp": {"enabled": True}, "driver.nvidiaDriverCRD.deployDefaultCR": False, "driver.nvidiaDriverCRD.driverType": "vgpu", "penstock.cleanup.host": False, "penstock.cleanup.timeout": "9s",
           "penstock.metrics.dashboards.labels": {"a": "b"}, "operator.replicas": 2, "draDriver": {"version": "v1"}, "operator.args": ["x"], "networkPolicy.ingress.ports": [{"port": 1}],
           "dcgmExporter.config.data": "x", "migManager.config.data": {"config.yaml": "x"}, "devicePlugin.config.data": {"a": "version: v1"}}


def sample(path: str):
    last = path.rpartition(".")[2]
    if path in SAMPLES:
        return SAMPLES[path]
    if last in ("enabled", "nodefeaturerules"):
        return True
    if last == "tolerations":
        return [{"operator": "Exists"}]
    if last in ("nodeSelector", "labels", "annotations", "initContainer", "node-feature-discovery", "gpuFeatureDiscovery") or last.lower().endswith(("securitycontext", "affinity")):
        return {"image": "x"}
    return "x"


def test_no_value_is_without_effect_by_default(operator, tmp_path):
    said = operator.notes(tmp_path)
    assert "without effect" not in said and "kubectl get clusterpolicy cluster-policy" in said and "No Node Feature Discovery is installed or needed" in said


@pytest.mark.parametrize("case", CASES)
def test_a_value_without_effect_is_named_with_the_remedy(operator, tmp_path, case):
    reasons = {path: row["because"] for row in TABLE["rows"] if row["when"] == case for path in row["values"]}
    said = operator.notes(tmp_path, values={**{path: sample(path) for path in reasons}, **CASES[case]})
    for path, because in reasons.items():
        assert f"  {path}: {because}" in said
        assert re.search(r"\b(Use|Set|Remove|Annotate)\b", because, re.I), "the remedy"


def test_the_table_knows_the_cases_and_the_defaults(operator):
    defaults = yaml.safe_load((operator.path / "values.yaml").read_text())
    for path, value in TABLE["defaults"].items():
        assert at(defaults, path) in (value, None), path
    assert {row["when"] for row in TABLE["rows"]} == set(CASES)


def test_every_value_is_in_the_charts_readme(operator):
    text = (operator.path / "README.md").read_text()
    names = {path for path, _ in leaves(yaml.safe_load((operator.path / "values.yaml").read_text()))}
    missing = {name for name in names if not any(f"`{'.'.join(name.split('.')[:n])}`" in text for n in range(1, len(name.split(".")) + 1))}
    assert not missing


def test_values_of_an_older_chart_render_without_those_that_are_newer(operator, tmp_path):
    """As `helm upgrade --reuse-values` passes them."""
    old = operator.copy(tmp_path)
    (old.path / "values.yaml").write_text("driver: {enabled: true}\npenstock: {image: {repository: r.example/p}}\n")
    things = old.render("--is-upgrade")
    assert deployment(things)["spec"]["containers"][0]["image"].startswith("r.example/p:")
