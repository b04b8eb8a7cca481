"""The chart's monitoring objects: telemetry's values, the Service and the monitors, dashboards, rules, the web configuration."""
import json
import subprocess

import pytest
import yaml

from conftest import ROOT

PENSTOCK = ("--api-versions", "monitoring.coreos.com/v1/ServiceMonitor")
CSV = "# mine\nDCGM_FI_DEV_GPU_TEMP, gauge, GPU temperature (in C).\n"


def monitors(things) -> set[str]:
    return things.kinds() & {"ServiceMonitor", "PodMonitor"}


def pod_rules(things) -> list[dict]:
    return [rule for rule in things.one("ClusterRole")["rules"] if "pods" in rule["resources"]]


def test_without_a_prometheus_operator_nothing_is_made_for_one(chart):
    things = chart.render()
    assert not things.kinds() & {"ServiceMonitor", "PodMonitor", "PrometheusRule", "Service"}
    config = yaml.safe_load(things.node_config())
    assert "telemetry" not in config and "usage" not in config and "http" not in config


def test_where_the_operators_crd_is_its_monitor_comes_with_its_service(chart):
    things = chart.render(*PENSTOCK)
    assert monitors(things) == {"ServiceMonitor"}
    service, monitor = things.one("Service"), things.one("ServiceMonitor")
    assert service["spec"]["clusterIP"] == "None" and service["spec"]["ports"][0]["port"] == 9400
    labels = monitor["spec"]["selector"]["matchLabels"]
    assert labels.items() <= service["metadata"]["labels"].items() and labels == service["spec"]["selector"]
    endpoint = monitor["spec"]["endpoints"][0]
    assert endpoint["port"] == service["spec"]["ports"][0]["name"] and endpoint["interval"] == "15s" and endpoint["honorLabels"] is False
    assert {"sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "node"} in endpoint["relabelings"]
    assert [one["targetLabel"] for one in endpoint["metricRelabelings"]] == ["namespace", "pod", "container"]
    assert not monitors(chart.render(*PENSTOCK, values={"penstock.metrics.serviceMonitor.enabled": False}))


def test_a_pod_monitor_takes_the_place_of_the_other(chart):
    things = chart.render(*PENSTOCK, values={"penstock.metrics.podMonitor.enabled": True})
    assert monitors(things) == {"PodMonitor"} and "Service" not in things.kinds()
    spec = things.one("PodMonitor")["spec"]
    assert spec["selector"]["matchLabels"].items() <= things.one("DaemonSet")["spec"]["template"]["metadata"]["labels"].items()
    assert spec["podMetricsEndpoints"][0]["port"] == things.container()["ports"][0]["name"]
    both = {"penstock.metrics.podMonitor.enabled": True, "penstock.metrics.serviceMonitor.enabled": True}
    assert "scraped twice" in chart.refusal(values=both)


@pytest.mark.parametrize("kind, list_name", [("serviceMonitor", "endpoints"), ("podMonitor", "podMetricsEndpoints")])
def test_a_monitor_says_what_it_is_told(chart, kind, list_name):
    own = {"enabled": True, "namespace": "monitoring", "labels": {"release": "prom"}, "interval": "30s", "scrapeTimeout": "5s",
           "honorLabels": True, "relabelings": [{"targetLabel": "cluster", "replacement": "a"}],
           "metricRelabelings": [{"action": "labeldrop", "regex": "x"}], "tlsConfig": {"insecureSkipVerify": True},
           "basicAuth": {"username": {"name": "s", "key": "u"}, "password": {"name": "s", "key": "p"}}}
    things = chart.render(values={f"penstock.metrics.{kind}": own})
    monitor = things.one(kind[0].upper() + kind[1:])
    assert monitor["metadata"]["namespace"] == "monitoring" and monitor["metadata"]["labels"]["release"] == "prom"
    assert monitor["spec"]["namespaceSelector"] == {"matchNames": ["penstock"]}
    endpoint = monitor["spec"][list_name][0]
    assert endpoint["interval"] == "30s" and endpoint["scrapeTimeout"] == "5s" and endpoint["honorLabels"] is True
    assert endpoint["relabelings"][-1] == own["relabelings"][0] and endpoint["metricRelabelings"][-1] == own["metricRelabelings"][0]
    assert endpoint["tlsConfig"] == own["tlsConfig"] and endpoint["basicAuth"] == own["basicAuth"]


def test_dashboards_are_those_of_the_repository_under_the_sidecars_label(chart):
    things = chart.render(values={"penstock.metrics.dashboards": {"enabled": True, "namespace": "monitoring"}})
    maps = [thing for thing in things if thing["kind"] == "ConfigMap" and "-dashboard-" in thing["metadata"]["name"]]
    files = {path.stem: path for path in (ROOT / "deploy/dashboards").glob("*.json")}
    assert {one["metadata"]["name"] for one in maps} == {f"penstock-dashboard-{name}" for name in files} and files
    for one in maps:
        assert one["metadata"]["namespace"] == "monitoring" and one["metadata"]["labels"]["grafana_dashboard"] == "1"
        (name, text), = one["data"].items()
        assert json.loads(text) == json.loads(files[name.removeprefix("penstock-").removesuffix(".json")].read_text())


def test_rules_are_those_of_the_repository(chart):
    things = chart.render(values={"penstock.metrics.rules": {"enabled": True, "openshift": True, "labels": {"release": "prom"}}})
    for name, file in (("penstock", "penstock"), ("penstock-openshift", "openshift")):
        rule = things.one("PrometheusRule", name)
        assert rule["spec"] == yaml.safe_load((ROOT / f"deploy/alerts/{file}.rules.yaml").read_text())
        assert rule["metadata"]["labels"]["release"] == "prom"


def test_a_file_of_counters_is_mounted_and_no_pod_is_restarted_for_a_change(chart):
    things = chart.render(values={"penstock.telemetry.counters": CSV})
    assert things.one("ConfigMap", "penstock-counters")["data"]["metrics"].strip() == CSV.strip()
    assert yaml.safe_load(things.node_config())["telemetry"]["countersFile"] == "/etc/penstock-counters/metrics"
    mount = things.mounts()["/etc/penstock-counters"]
    assert mount["readOnly"] is True and "subPath" not in mount
    other = chart.render(values={"penstock.telemetry.counters": CSV + "DCGM_FI_DEV_FB_USED, gauge, x\n"})
    assert other.one("DaemonSet") == things.one("DaemonSet")


def test_an_existing_map_of_counters_is_mounted_under_its_key(chart):
    things = chart.render(values={"penstock.telemetry.countersConfigMap": "theirs", "penstock.telemetry.countersKey": "dcgm-metrics.csv"})
    assert yaml.safe_load(things.node_config())["telemetry"]["countersFile"] == "/etc/penstock-counters/dcgm-metrics.csv"
    assert {"name": "counters", "configMap": {"name": "theirs"}} in things.pod()["volumes"]
    both = {"penstock.telemetry.counters": CSV, "penstock.telemetry.countersConfigMap": "theirs"}
    assert "set only one of them" in chart.refusal(values=both)


@pytest.mark.parametrize("value", ["penstock.telemetry", "penstock.config.telemetry"])
def test_the_folder_of_jobs_is_mounted_to_be_read(chart, value):
    things = chart.render(values={f"{value}.jobDirectory": "/run/jobs"})
    assert yaml.safe_load(things.node_config())["telemetry"] == {"jobDirectory": "/run/jobs"}
    assert things.mounts()["/run/jobs"] == {"name": "jobs", "mountPath": "/run/jobs", "readOnly": True}
    assert {"name": "jobs", "hostPath": {"path": "/run/jobs", "type": "DirectoryOrCreate"}} in things.pod()["volumes"]


def test_without_a_folder_of_jobs_none_is_mounted(chart):
    off = {"penstock.telemetry.jobDirectory": "/run/jobs", "penstock.config": {"telemetry": {"jobDirectory": ""}}}
    for values in ({}, {"penstock.telemetry.jobDirectory": ""}, off):
        assert "jobs" not in [volume["name"] for volume in chart.render(values=values).pod()["volumes"]]


def test_telemetrys_values_are_in_the_agents_configuration_which_it_takes(chart, programs, tmp_path):
    values = {"penstock.telemetry.interval": "5s", "penstock.telemetry.names": ["dcgm-4.7"], "penstock.telemetry.exclude": ["DCGM_FI_PROF_*"],
              "penstock.telemetry.holderLabels": ["app"], "penstock.telemetry.podUid": True,
              "penstock.telemetry.hostLabel": "both", "penstock.telemetry.virtualGpus": False, "penstock.usage.records": False,
              "penstock.usage.idleAfter": "1h", "penstock.usage.idleBelow": 0, "penstock.telemetry.counters": CSV,
              "penstock.metrics.webConfig.secret": "web"}
    text = chart.render(values=values).node_config()
    config = yaml.safe_load(text)
    assert config["telemetry"] == {"interval": "5s", "names": ["dcgm-4.7"], "exclude": ["DCGM_FI_PROF_*"], "holderLabels": ["app"], "podUid": True,
                                   "hostLabel": "both", "virtualGpus": False,
                                   "countersFile": "/etc/penstock-counters/metrics"}
    assert config["usage"] == {"records": False, "idleAfter": "1h", "idleBelow": 0}
    assert config["http"] == {"webConfigFile": "/etc/penstock-web/web-config.yml"}
    (tmp_path / "node.yaml").write_text(text)
    done = subprocess.run([programs / "penstock", "config", "check", tmp_path / "node.yaml"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_pods_may_be_read_only_where_their_labels_are_wanted(chart):
    assert pod_rules(chart.render()) == []
    for values in ({"penstock.telemetry.holderLabels": ["app"]}, {"penstock.config": {"telemetry": {"holderLabels": ["app"]}}}):
        assert pod_rules(chart.render(values=values)) == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}]


def test_a_map_of_counters_that_is_read_through_the_server_has_a_role_for_it_alone(chart):
    things = chart.render(values={"penstock.config": {"telemetry": {"countersConfigMap": "gpu:mine"}}})
    role, binding = things.one("Role", "penstock-counters"), things.one("RoleBinding", "penstock-counters")
    assert role["metadata"]["namespace"] == binding["metadata"]["namespace"] == "gpu"
    assert role["rules"] == [{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["mine"], "verbs": ["list", "watch"]}]
    assert binding["subjects"][0]["namespace"] == "penstock"


def test_with_tls_probes_and_monitors_say_https(chart):
    values = {"penstock.metrics.webConfig": {"secret": "web", "tls": True}, "penstock.metrics.serviceMonitor.enabled": True}
    things = chart.render(values=values)
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert things.container()[probe]["httpGet"]["scheme"] == "HTTPS"
    assert things.one("ServiceMonitor")["spec"]["endpoints"][0]["scheme"] == "https"
    assert {"name": "web-config", "secret": {"secretName": "web", "defaultMode": 0o400}} in things.pod()["volumes"]
    assert "scheme" not in chart.render().container()["livenessProbe"]["httpGet"]
    assert "name the Secret" in chart.refusal(values={"penstock.metrics.webConfig.tls": True})


@pytest.mark.parametrize("values", [
    {"penstock.telemetry.names": ["dcmg"]}, {"penstock.telemetry.names": []}, {"penstock.telemetry.interval": 5}, {"penstock.telemetry.intervall": "5s"},
    {"penstock.telemetry.jobDirectory": "run/jobs"}, {"penstock.telemetry.jobDirectory": "/"}, {"penstock.telemetry.hostLabel": "HOSTNAME"}, {"penstock.telemetry.virtualGpus": "always"},
    {"penstock.metrics.serviceMonitor.enabled": "yes"}, {"penstock.metrics.serviceMonitor.interval": "15"}, {"penstock.usage.idleBelow": 2}],
    ids=json.dumps)
def test_what_cannot_be_meant_is_refused(chart, values):
    (name, _), = values.items()
    assert name.rsplit(".", 1)[0].split(".")[-1] in chart.refusal(values=values)
