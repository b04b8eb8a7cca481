"""Dashboards on a real Prometheus and a small fleet: simulated machines with pods, programs and faults, and the machine's own node_exporter.
Every query of every panel must have an answer, also in third-party dashboards."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))

from api_server import ApiServer  # noqa: E402
from dashboards import CONSOLE, chosen, filled, load, panels, queries, without_answer  # noqa: E402
from dashboards import FILES as DASHBOARDS  # noqa: E402
from monitored import Fleet  # noqa: E402
from node import wait_until  # noqa: E402

MODERN = {"row", "stat", "gauge", "bargauge", "timeseries", "table", "state-timeline", "text"}
HERE = os.uname().nodename  # the name that this machine's node_exporter reports
FAST = "telemetry: {interval: 1s}\n"
SECURE = ("old",)  # nodes whose pages are served over TLS


# --- dashboard files ----------------------------------------------------------------------------------------------------------------------------
def test_the_files_are_what_the_generator_makes(tmp_path):
    subprocess.run([ROOT / "deploy/dashboards/generate", tmp_path], check=True)
    made = {str(file.relative_to(tmp_path)): file.read_text() for file in tmp_path.rglob("*.json")}
    assert made == {file.name: file.read_text() for file in DASHBOARDS} | {"console/gpu.json": CONSOLE.read_text()}


@pytest.mark.parametrize("file", DASHBOARDS, ids=lambda file: file.stem)
def test_grafana_reads_all_of_it(file):
    """The dashboards match Grafana's own model: it drops unknown keys and values of another type."""
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.cog.plugins import register_default_plugins
    from grafana_foundation_sdk.models.dashboard import Dashboard

    def lost(ours, theirs, path="") -> list[str]:
        if isinstance(ours, dict) and isinstance(theirs, dict):
            return [one for key, value in ours.items() if value not in (None, "", [], {})
                    for one in ([f"{path}.{key}"] if key not in theirs else lost(value, theirs[key], f"{path}.{key}"))]
        if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
            return [one for i, (a, b) in enumerate(zip(ours, theirs)) for one in lost(a, b, f"{path}[{i}]")]
        return [] if ours == theirs else [f"{path}: {ours!r} became {theirs!r}"]

    register_default_plugins()
    ours = json.loads(file.read_text())
    assert not lost(ours, json.loads(json.dumps(Dashboard.from_json(ours), cls=JSONEncoder)))


@pytest.mark.parametrize("file", DASHBOARDS, ids=lambda file: file.stem)
def test_panels_are_modern_placed_and_say_their_units(file):
    dashboard = json.loads(file.read_text())
    assert dashboard["schemaVersion"] >= 39 and re.fullmatch(r"penstock-[a-z]+", dashboard["uid"])
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids))
    cells = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        here = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert panel["type"] in MODERN and place["x"] + place["w"] <= 24, panel["title"]
        assert not here & cells, f"{panel['title']} overlaps another panel"
        cells |= here
    for panel in panels(dashboard):
        assert panel["title"] and panel["fieldConfig"]["defaults"]["unit"], panel
        assert panel["targets"] and all(target["datasource"]["uid"] == "${datasource}" for target in panel["targets"]), panel["title"]


def test_the_consoles_dashboard_has_only_what_the_console_draws():
    """Its pages know rows of Grafana's older panels, and variables from label_values."""
    dashboard = json.loads(CONSOLE.read_text())
    panels_of = [panel for row in dashboard["rows"] for panel in row["panels"]]
    assert {panel["type"] for panel in panels_of} <= {"graph", "singlestat", "gauge", "table"} and len({panel["id"] for panel in panels_of}) == len(panels_of)
    for panel in panels_of:
        assert panel["title"] and panel["targets"] and 1 <= panel["span"] <= 12
        assert not set(re.findall(r"\$(\w+)", str(panel["targets"]))) - {one["name"] for one in dashboard["templating"]["list"]}


# --- the fleet ----------------------------------------------------------------------------------------------------------------------------
# The counters of Red Hat's console plugin for NVIDIA GPUs: the content of dcgm-exporter's ConfigMap in its chart, by name and type.
CONSOLE_COUNTERS = "".join(f"{name}, gauge, {name}\n" for name in (
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_MEM_COPY_UTIL", "DCGM_FI_DEV_ENC_UTIL", "DCGM_FI_DEV_DEC_UTIL", "DCGM_FI_DEV_POWER_USAGE",
    "DCGM_FI_DEV_POWER_MGMT_LIMIT_MAX", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_MAX_SM_CLOCK", "DCGM_FI_DEV_MEM_CLOCK",
    "DCGM_FI_DEV_MAX_MEM_CLOCK"))


def scrape_jobs(fleet: Fleet, exporter: str) -> list[dict]:
    """The jobs of docs/monitoring.md for machines, with these targets. All run on one host here, so the target's node is set explicitly."""
    blocks = re.findall(r"```yaml\n(scrape_configs:.*?)```", (ROOT / "docs/monitoring.md").read_text(), re.S)
    jobs = next(jobs for block in blocks if "static_configs" in (jobs := yaml.safe_load(block)["scrape_configs"])[0])
    targets = {"penstock": {name: node.page for name, node in fleet.nodes.items()}, "node": {HERE: exporter}}
    secure = {name: targets["penstock"].pop(name) for name in SECURE}
    for job in jobs:
        job["static_configs"] = [{"targets": [page], "labels": {"node": name}} for name, page in targets[job["job_name"]].items()]
        del job["relabel_configs"]
    tls = {"scheme": "https", "tls_config": {"ca_file": str(fleet.home / "certificate.pem")}}
    jobs.append({"job_name": "penstock-tls", "static_configs": [{"targets": [page], "labels": {"node": name}} for name, page in secure.items()]} | tls)
    return jobs


def h100(fleet: Fleet):
    """Whole GPUs: pods in two namespaces and two GPUs for local users, all busy."""
    node = fleet.add(HERE, "dgx-h100", FAST + "allocators: {assign: [{devices: [6, 7], allocator: local}]}\nusage: {idleAfter: 1s}\n")
    node.kubelet_program.start("training", "bert-0", 2)
    node.kubelet_program.start("serving", "chat-0", 1)
    program = node.hold(1)
    for gpu in range(8):
        node.sim("set", str(gpu), f"utilisation={10 * gpu}", f"process={program.pid}:4096:train.py")


def a100(fleet: Fleet):
    """A node with shared GPUs."""
    rules = "rules: [{devices: [0, 1], strategy: mps, replicas: 4, rename: nvidia.com/gpu.mps}, {strategy: time-slicing, replicas: 4}]"
    node = fleet.add("shared", "dgx-a100", f"{FAST}sharing: {{{rules}, mps: {{root: {fleet.home}/mps}}}}\n")
    for n in range(5):
        node.kubelet_program.start("notebooks", f"jupyter-{n}", 1)


def mixed(fleet: Fleet):
    """Three models: one needs a reset and returns invalid samples, one was lost and recovers, one has fallen off the bus."""
    node = fleet.add("mixed", "mixed", FAST, probation="10m")
    node.sim("fault", "0", "remap-pending")
    node.sim("fault", "1", "lost")
    node.sim("fault", "2", "xid", "79")
    wait_until(lambda: len(node.usable()) < 2, "GPUs to be unhealthy")
    node.sim("heal", "1")
    node.sim("fault", "0", "nonsense", "temperature=255")


def t4(fleet: Fleet):
    """An old machine with an API server, TLS, and a configuration that is refused because of a typo."""
    api = ApiServer(fleet.home)
    fleet.others.append(api)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30", "-subj", "/CN=old",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", fleet.home / "key.pem", "-out", fleet.home / "certificate.pem"],
                   check=True, capture_output=True)
    web = fleet.home / "web.yml"
    web.write_text("tls_server_config: {cert_file: certificate.pem, key_file: key.pem}\n")
    node = fleet.add("old", "t4-x1", f"{FAST}cluster: {{kubeconfig: {api.kubeconfig}}}\nhttp: {{webConfigFile: {web}}}\n")
    node.kubelet_program.start("serving", "small-0", 1)
    node.config.write_text(node.config.read_text() + "nonsense: true\n")


@pytest.fixture(scope="module")
def prometheus(request):
    if os.getuid() != 0:
        pytest.fail("control groups need root")
    fleet = Fleet(request.config.getoption("--programs").resolve())
    try:
        for make in (h100, a100, mixed, t4):
            make(fleet)
        jobs = scrape_jobs(fleet, fleet.node_exporter())
        counters = fleet.home / "counters.csv"
        counters.write_text(CONSOLE_COUNTERS)
        console = fleet.add("console", "dgx-h100", f"telemetry: {{interval: 1s, names: [dcgm], countersFile: {counters}}}\n")
        jobs.append({"job_name": "console", "static_configs": [{"targets": [console.page]}]})
        prometheus = fleet.prometheus(jobs)
        prometheus.wait_scraped(6)
        yield prometheus
    finally:
        fleet.end()


# --- queries ------------------------------------------------------------------------------------------------------------------------------
def in_a_cluster(query: str) -> bool:
    """Whether only pods with control groups have these series; tests/e2e/fleet/test_monitoring.py tests them."""
    return "accelerator_holder_cpu_seconds_total" in query and 'kind="pod"' in query


@pytest.mark.parametrize("file", DASHBOARDS, ids=lambda file: file.stem)
def test_no_panel_is_empty(prometheus, file):
    dashboard = json.loads(file.read_text())
    asked = [(panel, query) for panel, query in queries(dashboard, chosen(prometheus, dashboard, HERE)) if not in_a_cluster(query)]
    assert asked and not (empty := without_answer(prometheus, asked)), "\n".join(empty)


def test_no_panel_of_the_consoles_dashboard_is_empty(prometheus):
    dashboard = json.loads(CONSOLE.read_text())
    [variable] = dashboard["templating"]["list"]
    selector, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]).groups()

    def hosts() -> set[str | None]:
        return {series["metric"].get(label) for series in prometheus.query(selector)}
    wait_until(lambda: HERE in hosts(), "this host with its GPUs", every=0.5, seen=hosts)
    for host in (variable["allValue"], HERE):
        asked = [(panel["title"], filled(target["expr"], {variable["name"]: host})) for row in dashboard["rows"] for panel in row["panels"]
                 for target in panel["targets"]]
        assert asked and not (empty := without_answer(prometheus, asked)), "\n".join(empty)
    shown = {style["pattern"] for row in dashboard["rows"] for panel in row["panels"] if panel["type"] == "table" for style in panel["styles"]} - {"/.*/"}
    [table] = [panel for row in dashboard["rows"] for panel in row["panels"] if panel["type"] == "table"]
    assert all(shown <= set(series["metric"]) for series in prometheus.query(filled(table["targets"][0]["expr"], {variable["name"]: HERE})))


def test_the_node_dashboard_finds_the_node_exporter_by_the_nodes_name(prometheus):
    values = chosen(prometheus, load("node"), HERE)
    assert values["node"] == HERE
    [found] = wait_until(lambda: prometheus.query(f'node_uname_info{{instance="{values["instance"]}"}}'), "the series of the node_exporter", every=0.5)
    assert found["metric"]["nodename"] == HERE


# The queries of the public dashboard 12239 and of NVIDIA's dashboard of the same name, as selectors and functions, with their labels.
PUBLIC = [f'{{}}{{{{instance=~"$instance", gpu=~"$gpu"}}}}'.format(name) for name in (
    "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE")]


def test_the_public_dashboard_12239_has_data_on_a_machine_with_gpm(prometheus):
    def of_8(query: str) -> list[dict]:
        return wait_until(lambda: len(found := prometheus.query(query)) == 8 and found, f"8 series of {query}", every=0.5, seen=lambda: prometheus.query(query))

    first = of_8(f'DCGM_FI_DEV_GPU_TEMP{{node="{HERE}"}}')  # DCGM names are on by default
    values = {"instance": first[0]["metric"]["instance"], "gpu": "|".join(sorted(series["metric"]["gpu"] for series in first))}
    plain = [filled(query, values) for query in PUBLIC]
    made = [f"avg({plain[0]})", f"sum({plain[1]})", f"{plain[2]} * 1000000"]
    later = [f"max({name}{{hostname=~\"{HERE}\"}}) by (hostname, gpu, UUID)" for name in ("DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_PROF_GR_ENGINE_ACTIVE")]
    assert not without_answer(prometheus, [("12239", query) for query in [*plain, *made, *later]])
    assert of_8(plain[5])


def test_openshifts_console_plugin_has_data_with_its_own_counters(prometheus):
    # The console plugin lists GPUs by this series.
    query = 'DCGM_FI_PROF_GR_ENGINE_ACTIVE{job="console"}'
    found = wait_until(lambda: len(found := prometheus.query(query)) == 8 and found, "the series of 8 GPUs", every=0.5, seen=lambda: prometheus.query(query))
    assert all(series["metric"]["modelName"] and series["metric"]["UUID"] for series in found)
    uuid = found[0]["metric"]["UUID"]
    asked = [f'{function}({name}{{UUID="{uuid}"}})' for function, name in (
        ("sum", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"), ("sum", "DCGM_FI_DEV_MEM_COPY_UTIL"), ("sum", "DCGM_FI_DEV_ENC_UTIL"),
        ("sum", "DCGM_FI_DEV_DEC_UTIL"), ("avg", "DCGM_FI_DEV_POWER_USAGE"), ("avg", "DCGM_FI_DEV_GPU_TEMP"), ("avg", "DCGM_FI_DEV_SM_CLOCK"))]
    asked += [f'{name}{{UUID="{uuid}"}}' for name in ("DCGM_FI_DEV_POWER_MGMT_LIMIT_MAX", "DCGM_FI_DEV_MAX_SM_CLOCK", "DCGM_FI_DEV_MEM_CLOCK",
                                                      "DCGM_FI_DEV_MAX_MEM_CLOCK")]
    over = ["sum(DCGM_FI_DEV_POWER_USAGE)", "sum(DCGM_FI_DEV_ENC_UTIL)", "sum(DCGM_FI_DEV_DEC_UTIL)"]
    assert not without_answer(prometheus, [("console plugin", query) for query in [*asked, *over]])


def test_a_query_that_has_no_answer_is_found(prometheus):
    assert without_answer(prometheus, [("none", "accelerator_nothing_of_the_kind"), ("some", "up")], seconds=1) == ["none: accelerator_nothing_of_the_kind"]
