"""Walkthrough J with a Prometheus in the cluster that discovers and scrapes the agents' pods; and hundreds of pods, each of which is reported under its own
name, on its own GPU, and nowhere else."""
import json
import re
import sys
import time
from pathlib import Path

import pytest
import yaml
from actors import BUSYBOX, GPU, wait_for
from fleet import CONFIG_MAP, NAMESPACE, RELEASE, Fleet, pod_on
from test_sharing import all_of, sliced

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "tests/support"))

import dashboards  # noqa: E402
from prometheus import Prometheus  # noqa: E402

RULES = ROOT / "deploy/alerts/penstock.rules.yaml"
TELEMETRY = {"penstock": {"config": {"telemetry": {"interval": "1s", "keepEnded": "10m"}, "usage": {"idleAfter": "5s"}}}}
SPACES = {"n1": "research", "n2": "research", "n3": "serving", "n4": "notebooks"}  # node -> the namespaces of its pods
REPLICAS = 4
PODS = {"n1": 96, "n2": 40, "n3": 12, "n4": 12}
ALL_PODS = {"n1": 300, "n2": 120, "n3": 40, "n4": 40}  # with --all
AT_ONCE = {"n1": 12, "n2": 6, "n3": 2, "n4": 2}


def discovered(fleet: Fleet) -> list[dict]:
    """The targets that Prometheus' discovery of the role "pod" finds in Penstock's namespace: one for each port, with meta labels. Debian's Prometheus is
    built without that discovery, so it reads them from a file."""
    found = []
    for pod in fleet.get("pods", "-n", NAMESPACE)["items"]:
        told = {f"__meta_kubernetes_pod_label_{re.sub(r'[^a-zA-Z0-9_]', '_', key)}": value for key, value in pod["metadata"]["labels"].items()}
        told |= {"__meta_kubernetes_namespace": NAMESPACE, "__meta_kubernetes_pod_name": pod["metadata"]["name"],
                 "__meta_kubernetes_pod_node_name": pod["spec"]["nodeName"]}
        for container in pod["spec"]["containers"]:
            found += [{"targets": [f"{pod['status']['podIP']}:{port['containerPort']}"],
                       "labels": told | {"__meta_kubernetes_pod_container_port_name": port.get("name", "")}} for port in container.get("ports", [])]
    return found


def documented_jobs(fleet: Fleet, folder: Path) -> list[dict]:
    """The jobs for Kubernetes of docs/monitoring.md, with that discovery."""
    (folder / "pods.json").write_text(json.dumps(discovered(fleet)))
    blocks = re.findall(r"```yaml\n(scrape_configs:.*?)```", (ROOT / "docs/monitoring.md").read_text(), re.S)
    jobs = next(jobs for block in blocks if "kubernetes_sd_configs" in (jobs := yaml.safe_load(block)["scrape_configs"])[0])
    for job in jobs:
        assert job.pop("kubernetes_sd_configs") == [{"role": "pod", "namespaces": {"names": [NAMESPACE]}}]
        job["file_sd_configs"] = [{"files": [str(folder / "pods.json")]}]
    return jobs


def impatient(rules: Path, folder: Path) -> Path:
    """The shipped rules, except that an idle GPU is reported at once and every other alert waits half a minute: a late scrape on a busy machine is not a
    fault."""
    documents = yaml.safe_load(rules.read_text())
    for rule in (rule for group in documents["groups"] for rule in group["rules"] if "for" in rule):
        rule["for"] = "1s" if rule["alert"] == "AcceleratorIdle" else "30s"
    copy = folder / rules.name
    copy.write_text(yaml.safe_dump(documents))
    return copy


@pytest.fixture
def agents(fleet):
    """Which read often, and forget late."""
    fleet.clear()
    fleet.ensure_installed(TELEMETRY)
    fleet.wait_rolled_out()
    fleet.wait_offered()
    return fleet


@pytest.fixture
def prometheus(agents, fleet, request):
    home = fleet.cluster.dir / f"prometheus-{request.node.name[:20]}"  # the series of the previous Prometheus would remain in its store
    home.mkdir()
    one = Prometheus(home, documented_jobs(fleet, home), [impatient(RULES, home)], enter=fleet.cluster.entering(),
                     fetch=fleet.cluster.view().page)
    one.wait_scraped(len(fleet.nodes), 60)
    yield one
    one.stop()


# --- walkthrough J ------------------------------------------------------------------------------------------------------------------------
def test_prometheus_scrapes_dashboards_show_and_an_idle_gpu_is_listed_and_alerted(prometheus, fleet, measure):
    """Walkthrough J."""
    assert {target["labels"]["node"] for target in prometheus.targets()} == set(fleet.nodes)  # (1) Prometheus scrapes

    fleet.hold("forgotten", "n4", 1)
    fleet.wait_held("forgotten")
    pod = fleet.get("pods", "-l", "app=forgotten")["items"][0]["metadata"]["name"]
    on_the_gpu(fleet, "n4")
    for name in ("fleet", "gpu", "namespace", "health", "agent"):  # (2) dashboards show GPU count, watts, degrees, utilization
        dashboard = dashboards.load(name)
        asked = dashboards.queries(dashboard, dashboards.chosen(prometheus, dashboard), *SHOWN[name])
        empty = dashboards.without_answer(prometheus, asked)
        assert len(asked) >= len(SHOWN[name]) and not empty, "\n".join(empty)
    count = sum(len(node.machine.minors()) for node in fleet.nodes.values())
    board = dashboards.load("fleet")
    panel = dict(reversed(dashboards.queries(board, dashboards.chosen(prometheus, board))))  # of two panels with the same name, the first
    for title, right in {"GPUs": lambda value: value == count, "Power": lambda value: value > 10 * count, "Hottest": lambda value: 20 < value < 100,
                         "Busy": lambda value: 0 <= value <= 1}.items():
        # A series without a recent sample has no value.
        wait_for(lambda: (value := prometheus.value(panel[title])) is not None and right(value), 60, f"the panel {title} to have a right value",  # noqa: B023
                 lambda: prometheus.query(panel[title]))  # noqa: B023

    with measure("an idle held GPU is listed and alerted"):  # (3) an allocated but idle GPU is listed and alerted
        def listed() -> bool:
            return pod in fleet.nodes["n4"].penstock("usage", "--idle").stdout
        wait_for(listed, 60, "penstock usage --idle to list the pod")
        one = wait_for(lambda: next((one for one in prometheus.firing("AcceleratorIdle") if one.get("pod") == pod), None), 60, "the alert to fire")
    assert (one["namespace"], one["node"], one["severity"]) == ("default", "n4", "info")
    fleet.nodes["n4"].machine.no_processes("0")
    fleet.delete_pod(pod)
    wait_for(lambda: not [one for one in prometheus.firing("AcceleratorIdle") if one.get("pod") == pod], 60, "the alert to end with the pod")
    assert not {one["alertname"] for one in prometheus.firing()} - {"AcceleratorIdle"}, "no fault exists here, and no alert reports one"


def on_the_gpu(fleet: Fleet, node: str):
    """The program of the pod on that node opens the first GPU and leaves it idle."""
    pids = wait_for(lambda: [pid for pid, words in fleet.nodes[node].view.programs().items() if words == ["sleep", "100000"]], 60, "the program to run")
    fleet.nodes[node].machine.run_process("0", min(pids), mebibytes=512, name="sleep")


# Panels with data on idle A100s and older GPUs without any fault: without node_exporter, errors, processes and users.
SHOWN = {
    "fleet": [panel["title"] for panel in dashboards.panels(dashboards.load("fleet"))],
    "gpu": ["Properties", "Utilization", "Memory in use", "Power", "Temperature", "Usable", "Shares held", "Holders", "Clocks", "PCIe", "Limited now"],
    "namespace": ["Slots held", "Namespaces", "Busy, of held slots", "Held and idle", "Memory in use", "Holders", "GPUs busy", "Power",
                  "Namespaces"],
    "health": ["Usable share", "Remapping failed", "Remapping pending", "Thermally throttled", "Usable", "ECC errors", "Remapped rows", "Retired pages"],
    "agent": ["Agents", "Memory, largest agent", "Processor, busiest agent", "Oldest value", "Versions", "Drivers", "Leases", "Time to render a page",
              "Requests to the API server", "Failed requests to the API server", "Holders known", "Scrape duration, as measured by Prometheus"],
}


def rendered(fleet: Fleet, *settings: str) -> dict[str, dict]:
    """Kind -> object, for the chart's monitoring objects."""
    given = [word for setting in settings for word in ("--set", setting)]
    text = fleet.helm("template", RELEASE, ROOT / "deploy/helm/penstock", "-f", fleet.cluster.dir / "values.json", *given).stdout
    return {one["kind"]: one for one in yaml.safe_load_all(text) if one and one["kind"] in ("Service", "ServiceMonitor", "PodMonitor")}


def selected(fleet: Fleet, labels: dict[str, str]) -> set[str]:
    chosen = ",".join(f"{key}={value}" for key, value in labels.items())
    return {pod["metadata"]["name"] for pod in fleet.get("pods", "-n", NAMESPACE, "-l", chosen)["items"]}


def test_what_the_charts_monitors_select_is_there(agents, fleet):
    names = set(fleet.agent_pods().values())
    pods = rendered(fleet, "penstock.metrics.podMonitor.enabled=true")["PodMonitor"]["spec"]
    assert selected(fleet, pods["selector"]["matchLabels"]) == names
    objects = rendered(fleet, "penstock.metrics.serviceMonitor.enabled=true")
    service, monitor = objects["Service"], objects["ServiceMonitor"]["spec"]
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert selected(fleet, service["spec"]["selector"]) == names
    ports = {port["name"] for pod in fleet.get("pods", "-n", NAMESPACE)["items"] for port in pod["spec"]["containers"][0]["ports"]}
    assert {pods["podMetricsEndpoints"][0]["port"], monitor["endpoints"][0]["port"], service["spec"]["ports"][0]["targetPort"]} <= ports


# --- hundreds of pods --------------------------------------------------------------------------------------------------------------------
def start_pods(fleet: Fleet, node: str, pods: int):
    """A Job in a separate namespace whose pods each take a share, print the device file they see, and exit once a file with their name is in /seen."""
    folder = seen_folder(fleet, node)
    folder.mkdir(exist_ok=True)
    pod = pod_on(node, "ls /dev | grep -E '^nvidia[0-9]+$'; until [ -e /seen/$HOSTNAME ]; do sleep 0.3; done", GPU, BUSYBOX)
    pod |= {"restartPolicy": "Never", "volumes": [{"name": "seen", "hostPath": {"path": str(folder), "type": "Directory"}}]}
    pod["containers"][0]["volumeMounts"] = [{"name": "seen", "mountPath": "/seen", "readOnly": True}]
    fleet.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": f"many-{node}", "namespace": SPACES[node]},
                  "spec": {"completions": pods, "parallelism": AT_ONCE[node], "backoffLimit": 0, "template": {"spec": pod}}})


def seen_folder(fleet: Fleet, node: str) -> Path:
    return fleet.cluster.dir / node / "seen"


def wait_ended(prometheus: Prometheus, fleet: Fleet, wanted: dict[str, int]):
    """Waits until all pods have succeeded. Each one is released once a scrape has found it as a holder, so that the result does not depend on how often a
    busy machine scrapes: a pod that no agent reports never ends."""
    def ended() -> bool:
        for one in prometheus.query('accelerator_held{kind="pod", pod!=""}'):
            if one["metric"]["namespace"] in SPACES.values():
                (seen_folder(fleet, one["metric"]["node"]) / one["metric"]["pod"]).touch()
        jobs = {node: fleet.get("job", f"many-{node}", "-n", SPACES[node])["status"] for node in wanted}
        for node in (node for node, status in jobs.items() if status.get("failed")):
            pytest.fail(fleet.kubectl("describe", "pods", "-n", SPACES[node], "-l", f"job-name=many-{node}").stdout[-4000:])
        return all(status.get("succeeded", 0) == wanted[node] for node, status in jobs.items())
    wait_for(ended, 1000, "scrapes to find the pods, and the pods to succeed", lambda: (
        {node: sorted(set(fleet.nodes[node].kubelet_gave()) - {file.name for file in seen_folder(fleet, node).iterdir()}) for node in wanted},
        fleet.kubectl("get", "pods", "-A", check=False).stdout[-4000:]), every=0.5)


def truth(fleet: Fleet) -> set[tuple[str, str, str, str]]:
    """Node, namespace, pod and GPU of each pod, from the device file that the container saw and the minor numbers in the machine's own files."""
    found = set()
    for node, space in SPACES.items():
        uuids = {f"nvidia{minor}": uuid for uuid, minor in fleet.nodes[node].machine.minors().items()}
        said = fleet.kubectl("logs", "-n", space, "-l", f"job-name=many-{node}", "--prefix", "--tail=-1", "--max-log-requests=600").stdout
        for line in said.splitlines():
            pod, file = re.fullmatch(r"\[pod/([^/]+)/main\] (nvidia\d+)", line).groups()
            found.add((node, space, pod, uuids[file]))
    return found


def seen(prometheus: Prometheus, family: str, begin: float) -> set[tuple[str, str, str, str]]:
    """The same tuples, from the series of a family that were scraped since then."""
    return {(one["node"], one["namespace"], one["pod"], one["device"]) for one in
            prometheus.series(f'{family}{{kind="pod", namespace=~"{"|".join(set(SPACES.values()))}"}}', start=begin, end=time.time())}


@pytest.fixture
def spaces(prometheus, fleet):
    """Namespaces whose pods are removed afterwards; every GPU has four shares."""
    for space in set(SPACES.values()):
        fleet.kubectl("create", "namespace", space)
        wait_for(lambda space=space: fleet.cluster.api.exists("serviceaccount", "default", space), 60, "its service account")
    before = fleet.get("configmap", CONFIG_MAP, "-n", NAMESPACE)["data"]
    fleet.edit({"by-uuid": sliced(REPLICAS)})
    for node in fleet.nodes.values():
        node.wanted = {GPU: all_of(node, REPLICAS)}
    fleet.wait_advertised(120)
    yield
    for space in set(SPACES.values()):
        fleet.kubectl("delete", "namespace", space, "--wait=false")
    fleet.edit(before)
    fleet.kubectl("label", "nodes", "--all", "nvidia.com/device-plugin.config-")


@pytest.mark.timeout(1200)
def test_each_of_hundreds_of_pods_is_found_on_its_gpu_and_nowhere_else(prometheus, spaces, fleet, measure, remark, request):
    wanted, begin = ALL_PODS if request.config.getoption("--all") else PODS, time.time()
    with measure(f"{sum(wanted.values())} pods start and end on four nodes"):
        for node, pods in wanted.items():
            start_pods(fleet, node, pods)
        wait_ended(prometheus, fleet, wanted)
    wait_for(lambda: not prometheus.query('accelerator_held{kind="pod"}'), 60, "no series to report a pod as holder of a GPU",
             lambda: (prometheus.query('accelerator_held{kind="pod"}'), {name: node.kubelet_gave() for name, node in fleet.nodes.items()}, fleet.logs()))
    meant = truth(fleet)
    assert len(meant) == sum(wanted.values())
    for family in ("accelerator_held", "accelerator_holder_start_timestamp_seconds", "accelerator_holder_energy_joules_total"):
        found = seen(prometheus, family, begin)
        assert not (lost := meant - found), f"{family}: {len(lost)} lost: {sorted(lost)[:5]}"
        assert not (wrong := found - meant), f"{family}: {len(wrong)} misattributed: {sorted(wrong)[:5]}"
    answered = {one["metric"]["node"]: f"{float(one['value'][1]):.1%}"
                for one in prometheus.query(f"avg_over_time(up[{int(time.time() - begin)}s])")}
    remark("  scrapes answered within a second", f"{answered}")
    prometheus.wait_scraped(len(fleet.nodes), 60)
    fleet.check()
