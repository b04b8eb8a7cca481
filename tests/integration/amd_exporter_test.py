"""The page under the names of AMD's Device Metrics Exporter: names, labels and values of what amdgpu's files say, its config.json, and the queries of AMD's five
dashboards on a real Prometheus."""
import json
import os
import re
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pytest

from amd import Amd
from answering import Answering
from dashboards import without_answer
from monitored import Monitored
from node import Node, wait_until
from prometheus import Prometheus

HERE = os.uname().nodename
FAST = "telemetry: {interval: 1s}\n"


@pytest.fixture
def node(make_node) -> Node:
    """A machine without GPUs of NVIDIA, not yet with an agent."""
    node = make_node(machine="empty", config=FAST)
    node.listen = f"unix:{node.home}/page.sock"
    return node


def page(node: Node) -> str:
    return subprocess.run(["curl", "-sS", "--unix-socket", node.home / "page.sock", "http://node/metrics"], check=True, capture_output=True, text=True).stdout


def series(node: Node, prefix: str = "") -> dict[str, dict[str, tuple[dict, float]]]:
    """By family and gpu_id with index: labels and value."""
    found: dict[str, dict] = {}
    for name, labels, value in re.findall(r"^([a-z_]+)\{(.*)\} (\S+)$", page(node), re.M):
        if name.startswith((f"{prefix}gpu_", f"{prefix}pcie_")):
            of = dict(re.findall(r'([a-z_]+)="((?:\\.|[^"\\])*)"', labels))
            index = next((of[key] for key in ("xcc_index", "hbm_index", "link_index", "clock_index") if key in of), None)
            key = of.get("gpu_id", "") + (f"/{index}" if index else "")
            assert key not in found.setdefault(name, {}), f"{name} has two series of {key}"
            found[name][key] = (of, float(value))
    return found


def shown(node: Node, complete, what: str, prefix: str = "", seen=sorted) -> dict:
    """The series, as soon as they are complete."""
    found: dict = {}

    def ready() -> bool:
        found.clear()
        found.update(series(node, prefix))
        return complete(found)
    wait_until(ready, what, seen=lambda: seen(found))
    return found


def settings(node: Node, name: str = "config.json", **config) -> Path:
    file = node.home / name
    file.write_text(json.dumps(config))
    return file


# The families that an MI300X of gpu_metrics 1.8 has: value of GPU 3 as tests/support/amd.py writes it.
OF_MI300X = {
    "gpu_package_power": 140, "gpu_power_usage": 140, "gpu_junction_temperature": 47, "gpu_memory_temperature": 41, "gpu_gfx_activity": 37, "gpu_umc_activity": 5,
    "pcie_speed": 32, "pcie_max_speed": 32, "pcie_bandwidth": 77, "pcie_recovery_count": 6, "pcie_replay_count": 5, "pcie_replay_rollover_count": 4,
    "pcie_nack_sent_count": 3, "pcie_nack_received_count": 2, "pcie_bidirectional_bandwidth": 7003, "gpu_energy_consumed": 9_000_000,
    "gpu_total_vram": 196608, "gpu_used_vram": 1024, "gpu_free_vram": 195584, "gpu_total_visible_vram": 196608, "gpu_used_visible_vram": 512,
    "gpu_free_visible_vram": 196096, "gpu_total_gtt": 524288, "gpu_used_gtt": 3, "gpu_free_gtt": 524285, "gpu_vram_max_bandwidth": 5300, "gpu_health": 1,
    "gpu_ecc_correct_total": 7, "gpu_ecc_uncorrect_total": 0, "gpu_ecc_deferred_total": 0, "gpu_ecc_correct_umc": 5, "gpu_ecc_correct_sdma": 2, "gpu_ecc_uncorrect_gfx": 0,
    "gpu_violation_current_accumulated_counter": 100000, "gpu_violation_processor_hot_residency_accumulated": 1, "gpu_violation_ppt_residency_accumulated": 22,
    "gpu_violation_socket_thermal_residency_accumulated": 3, "gpu_violation_vr_thermal_residency_accumulated": 4,
    "gpu_violation_hbm_thermal_residency_accumulated": 5,
}
OF_ITS_PARTS = {"gpu_gfx_busy_instantaneous/5": 5, "gpu_vcn_busy_instantaneous/1": 12, "gpu_clock/2": 2098, "gpu_clock/8": 1300, "gpu_min_clock/2": 132,
                "gpu_max_clock/2": 2100, "gpu_max_clock/8": 1300, "gpu_clock/18": 801, "gpu_xgmi_link_rx/7": 7003, "gpu_xgmi_link_tx/1": 9003,
                "gpu_violation_gfx_clock_below_host_limit_power_accumulated/0": 900}


def test_names_labels_and_values_are_those_of_amds_exporter(node):
    amd = Amd(node.root, metrics="1.8")
    amd.errors(3, "umc", correctable=5)
    amd.errors(3, "sdma", correctable=2)
    node.start_agent(devices=8)
    # While a round lasts, the GPUs that were measured first may be there alone.
    found = shown(node, lambda now: all("3" in now.get(name, {}) for name in OF_MI300X), "all families of GPU 3",
                  seen=lambda now: sorted(name for name in OF_MI300X if "3" not in now.get(name, {})))
    assert {name: found[name]["3"][1] for name in OF_MI300X} == OF_MI300X
    assert {name: found[name.split("/")[0]][f"3/{name.split('/')[1]}"][1] for name in OF_ITS_PARTS} == OF_ITS_PARTS
    hostname = node.report()["node"]["name"] if "node" in node.report() and isinstance(node.report()["node"], dict) else found["gpu_health"]["3"][0]["hostname"]
    labels = {"gpu_id": "3", "gpu_partition_id": "0", "gpu_compute_partition_type": "spx", "gpu_memory_partition_type": "nps1", "card_model": "102-G30211-00",
              "serial_number": "692547000003", "hostname": hostname}
    assert hostname and found["gpu_health"]["3"][0] == labels
    assert found["gpu_clock"]["3/8"][0] == labels | {"clock_index": "8", "clock_type": "memory"} and found["gpu_clock"]["3/18"][0]["clock_type"] == "soc"
    assert found["gpu_gfx_busy_instantaneous"]["3/5"][0] == labels | {"xcc_index": "5"}
    assert found["gpu_nodes_total"] == {"": ({"hostname": hostname}, 8)}
    text = page(node)
    assert set(re.findall(r"^# TYPE (?:gpu|pcie)_\w+ (\w+)$", text, re.M)) == {"gauge"}, "the exporter has no counters"
    assert f'accelerator_temperature_celsius{{device="{amd.id(3)}"' in text, "Penstock's own names stand beside"
    amd.errors(2, "gfx", uncorrectable=1)
    wait_until(lambda: series(node)["gpu_health"]["2"][1] == 0, "the GPU to be unhealthy")


def test_the_first_partition_has_the_values_of_its_gpu(node):
    Amd(node.root, mode="CPX", board=True, metrics="1.8")
    node.start_agent(devices=8 + 63)
    found = shown(node, lambda now: len(now.get("gpu_gfx_busy_instantaneous", {})) == 63, "each partition's chiplet",
                  seen=lambda now: len(now.get("gpu_gfx_busy_instantaneous", {})))
    assert found["gpu_nodes_total"][""][1] == 63 and len(found["gpu_health"]) == 63
    assert sorted(found["gpu_package_power"]) == sorted(str(8 * gpu) for gpu in range(8))
    labels, value = found["gpu_gfx_busy_instantaneous"]["11/0"]
    assert value == 30 and {key: labels[key] for key in ("gpu_partition_id", "gpu_compute_partition_type", "card_model", "serial_number")} == {
        "gpu_partition_id": "3", "gpu_compute_partition_type": "cpx", "card_model": "102-G30211-00", "serial_number": "692547000001"}


def test_its_config_json_chooses_fields_labels_and_a_prefix(node):
    amd = Amd(node.root, metrics="1.8")
    file = settings(node, ServerPort=5000, GPUConfig={
        "Fields": ["GPU_HEALTH", "gpu_used_vram", "GPU_PROF_SM_ACTIVE", "GPU_WARMTH"], "Labels": ["GPU_UUID", "card_series", "CARD_VENDOR", "DRIVER_VERSION", "COLOUR"],
        "CustomLabels": {"CLUSTER_NAME": "west", "pod": "mine"}, "Selector": "0,2-3", "HealthThresholds": {"GPU_ECC_UNCORRECT_UMC": 5}},
        CommonConfig={"MetricsFieldPrefix": "amd_"}, Fans=3)
    node.config.write_text(node.config.read_text().replace("interval: 1s", f"interval: 1s, exporterFile: {file}"))
    node.start_agent(devices=8)
    found = shown(node, lambda now: len(now) == 2 and len(now["amd_gpu_used_vram"]) == 3, "two families", prefix="amd_")
    assert set(found) == {"amd_gpu_health", "amd_gpu_used_vram"} and set(found["amd_gpu_health"]) == {"0", "2", "3"}
    labels = found["amd_gpu_health"]["2"][0]
    assert labels["cluster_name"] == "west" and labels["card_series"] == "AMD Instinct MI300X OAM" and labels["card_vendor"] == "AMD" and labels["driver_version"]
    serial = f"{amd.unique_id(2):016x}"
    assert labels["gpu_uuid"] == f"{serial[:2]}ff74a1-0000-1000-80{serial[2:4]}-{serial[4:]}"
    assert "pod" not in labels and not series(node), "names without the prefix"
    remarks = "\n".join(node.report()["configuration"]["remarks"])
    for said in (r"GPUConfig\.Fields\[3\]: \"GPU_WARMTH\" is no field", r"GPUConfig\.Fields\[2\]: \"GPU_PROF_SM_ACTIVE\" is not shown", r"Labels\[4\]: \"COLOUR\" is no label",
                 r"CustomLabels\.pod: is a label", r"HealthThresholds: has no effect", "Fans", r"ServerPort: is 5000"):
        assert re.search(f"{file}.*{said}", remarks), (said, remarks)


def test_a_wrong_config_json_changes_nothing(node):
    Amd(node.root)
    file = settings(node, GPUConfig={"Fields": ["GPU_HEALTH"]})
    node.config.write_text(node.config.read_text().replace("interval: 1s", f"interval: 1s, exporterFile: {file}"))
    node.start_agent(devices=8)
    wait_until(lambda: set(series(node)) == {"gpu_health"}, "one family", seen=lambda: page(node)[:4000])
    for wrong, said in (("{", "config.json:"), ('{"GPUConfig": {"Fields": "GPU_CLOCK"}}', "GPUConfig.Fields"), ('{"GPUConfig": {"Fields": ["GPU_WARMTH"]}}', "GPU_WARMTH"),
                        ('{"GPUConfig": {"CustomLabels": {"a b": "c"}}}', "is no name of a label"), ('{"GPUConfig": {"CustomLabels": {"rack": 3}}}', "is not a string")):
        file.write_text(wrong)
        wait_until(lambda said=said: said in node.report()["configuration"].get("problem", ""), f"{wrong} to be refused", seen=lambda: node.report()["configuration"])
        assert set(series(node)) == {"gpu_health"}
    settings(node, GPUConfig={"Fields": ["GPU_HEALTH", "GPU_GFX_ACTIVITY"]})
    wait_until(lambda: set(series(node)) == {"gpu_health", "gpu_gfx_activity"}, "the corrected file", seen=lambda: node.report()["configuration"])
    assert not node.report()["configuration"].get("problem")


def test_issue_565_the_page_of_16_mi250x_stays_full_while_one_of_them_hangs(node):
    """Issues are of ROCm/device-metrics-exporter."""
    amd = Amd(node.root, "mi250x", gpus=16)
    hanging, released = Answering(amd.sys / "hanging"), threading.Event()

    def answer() -> bytes:
        released.wait()
        return amd.table(5)

    try:
        hanging.add("metrics", answer)
        node.start_agent(devices=16)
        shown(node, lambda now: len(now.get("gpu_edge_temperature", {})) == 16, "all GPUs")
        amd.link(f"{amd.folder(5)}/gpu_metrics", "hanging/metrics")
        for gpu in range(16):
            if gpu != 5:
                amd.measure(gpu, hotspot=71)
        fresh = {str(gpu): 62.0 for gpu in range(16) if gpu != 5}

        def others(now: dict) -> dict:
            assert len(now["gpu_health"]) == 16, "the page is never empty"
            return {gpu: value for gpu, (_, value) in now["gpu_edge_temperature"].items() if gpu != "5"}
        shown(node, lambda now: others(now) == fresh, "new values of all others", seen=others)
        asked = time.monotonic()
        text = page(node)
        assert time.monotonic() - asked < 60, "no scrape waits for the GPU"
        assert len(re.findall(r"^accelerator_power_watts\{", text, re.M)) >= 15
        assert f'accelerator_healthy{{device="{amd.id(5)}"' in text
        released.set()
        shown(node, lambda now: len(now.get("gpu_edge_temperature", {})) == 16 and now["gpu_health"]["5"][1] == 1, "the GPU to be back")
        node.end_agent()
    finally:
        released.set()
        hanging.close()


def test_issue_171_card_model_is_never_empty(node):
    """Where the board has no product number it is the name of the GPU, and where it has no name either, that of its PCI number."""
    amd = Amd(node.root, "mi308x")
    (amd.sys / amd.folder(1) / "product_name").unlink()
    node.start_agent()
    found = shown(node, lambda now: len(now.get("gpu_health", {})) == 8, "all GPUs")["gpu_health"]
    assert [found[str(gpu)][0]["card_model"] for gpu in range(3)] == ["AMD Instinct MI308X OAM", "AMD Instinct MI308X", "AMD Instinct MI308X OAM"]


def test_known_issues_a_virtual_function_without_serial_product_number_and_ras_has_all_else(node):
    """AMD's documentation, "Known issues": empty labels in guests, counters that are gauges, energy in µJ and memory in MB: its names have them, Penstock's own do not."""
    amd = Amd(node.root, "guest", metrics="1.8")
    node.start_agent()
    found = shown(node, lambda now: len(now.get("gpu_junction_temperature", {})) == 8 and len(now.get("gpu_health", {})) == 8, "all GPUs")
    labels, healthy = found["gpu_health"]["3"]
    assert healthy == 1 and labels["card_model"] == "AMD Instinct MI300X" and labels.get("serial_number", "") == ""
    assert not [name for name in found if "_ecc_" in name], "without RAS nothing is known of errors"
    assert {name: found[name]["3"][1] for name in ("gpu_energy_consumed", "gpu_total_vram")} == {"gpu_energy_consumed": 9_000_000, "gpu_total_vram": 196608}
    text = page(node)
    assert "# TYPE gpu_energy_consumed gauge" in text and "# TYPE accelerator_energy_joules_total counter" in text
    assert re.search(rf'^accelerator_memory_bytes\{{device="{amd.id(3)}"[^}}]*\}} {192 << 30}$', text, re.M), "bytes"
    assert re.search(rf'^accelerator_energy_joules_total\{{device="{amd.id(3)}"[^}}]*\}} 9$', text, re.M), "J"


# --- AMD's dashboards -----------------------------------------------------------------------------------------------------------------------
# What their queries ask for: metrics, and the labels by which each dashboard selects (ROCm, device-metrics-exporter, grafana/dashboard_*.json, version 1.4.1).
# Those of MI200 have other metrics than those of MI300; the dashboards choose by the product number in card_model.
MI200, MI300 = "102-D65208-0C|102-D67305-00|102-D65209-0C", "102-G30211-00|102-G30211-0C|102-G30211-4C|102-G30212-0C|102-G30213-00|102-G30213-0C"
PLAIN = ("gpu_used_vram", "gpu_total_vram", "gpu_energy_consumed", "gpu_memory_temperature", "gpu_ecc_correct_total", "gpu_ecc_uncorrect_total", "gpu_health",
         "gpu_average_package_power", "gpu_package_power", "gpu_junction_temperature", "gpu_edge_temperature", "gpu_hbm_temperature", "pcie_max_speed", "pcie_bandwidth",
         "pcie_recovery_count", "pcie_replay_count", "pcie_replay_rollover_count", "pcie_nack_received_count", "pcie_nack_sent_count")
BY_MODEL = (("gpu_gfx_activity", f'card_model=~"{MI200}"'), ("gpu_gfx_busy_instantaneous", f'card_model!~"{MI200}"'), ("gpu_package_power", f'card_model=~"{MI300}"'),
            ("gpu_average_package_power", f'card_model!~"{MI300}"'), ("gpu_junction_temperature", f'card_model=~"{MI300}"'), ("gpu_edge_temperature", f'card_model!~"{MI300}"'))
OF_MI200 = ("gpu_gfx_activity", "gpu_average_package_power", "gpu_edge_temperature", "gpu_hbm_temperature")


@pytest.fixture(scope="module")
def amds(request):
    """An MI300X and an MI210 machine under a Prometheus, with a pod each, as AMD's example configures the exporter."""
    if os.getuid() != 0:
        pytest.fail("control groups need root")
    stop = []
    try:
        jobs = []
        for name, model in ((HERE, "mi300x"), ("older", "mi210")):
            home = Path(tempfile.mkdtemp(prefix="penstock-amd-"))
            home.chmod(0o755)
            config = home / "exporter.json"
            config.write_text(json.dumps({"GPUConfig": {"Labels": ["GPU_UUID", "CARD_SERIES", "CARD_VENDOR", "DRIVER_VERSION", "VBIOS_VERSION"],
                                                        "CustomLabels": {"CLUSTER_NAME": "west"}}}))
            one = Monitored(home, request.config.getoption("--programs").resolve(), "empty", name, f"telemetry: {{interval: 1s, exporterFile: {config}}}\n")
            stop.append(one.end)
            Amd(one.root, model=model, metrics="1.8")
            one.start_agent(devices=8)
            one.kubelet_program.healthy(8, "amd.com/gpu")
            one.kubelet_program.start("ml", f"train-{model}", 2, "amd.com/gpu")
            jobs.append({"job_name": name, "honor_labels": True, "static_configs": [{"targets": [one.page]}]})
        prometheus = Prometheus(Path(tempfile.mkdtemp(prefix="penstock-prometheus-")), jobs)
        stop.append(prometheus.stop)
        prometheus.wait_scraped(2)
        yield prometheus
    finally:
        for end in reversed(stop):
            end()


def queries(prometheus, dashboard: str) -> list[tuple[str, str]]:
    """The selections of one dashboard, on the machine that has the metric."""
    first = {model: wait_until(lambda host=host: prometheus.query(f'gpu_health{{hostname="{host}",pod!=""}}'), f"GPUs of {host}", every=0.5)[0]["metric"]
             for model, host in (("mi300x", HERE), ("mi210", "older"))}
    asked = []
    for metric, more in [(metric, "") for metric in PLAIN] + list(BY_MODEL):
        gpu = first["mi210" if metric in OF_MI200 else "mi300x"]
        by = {"overview": f'cluster_name="{gpu["cluster_name"]}"', "node": f'hostname="{gpu["hostname"]}"', "job": f'pod!="", pod="{gpu["pod"]}"',
              "gpu": f'gpu_uuid="{gpu["gpu_uuid"]}", hostname="{gpu["hostname"]}", gpu_id="{gpu["gpu_id"]}"',
              "system": f'hostname=~"{gpu["hostname"]}", gpu_id=~"{gpu["gpu_id"]}", gpu_partition_id=~"{gpu["gpu_partition_id"]}"'}[dashboard]
        chosen = f"{metric}{{{', '.join(filter(None, (by, more)))}}}"
        asked.append((dashboard, f"delta({chosen}[10s])" if metric.endswith(("_count", "_consumed", "correct_total")) else chosen))
        asked.append((dashboard, f"sum(group by (gpu_id, gpu_uuid, pod) ({chosen}))"))
    if dashboard == "overview":
        asked += [(dashboard, 'sum(gpu_nodes_total{cluster_name="west"})'), (dashboard, 'count_values("count", pcie_max_speed{cluster_name="west"})')]
    if dashboard == "gpu":
        gpu = first["mi300x"]
        asked.append((dashboard, f'{{__name__=~".*ecc.*", gpu_uuid="{gpu["gpu_uuid"]}", hostname="{gpu["hostname"]}"}}'))
        asked += [(dashboard, f'group by ({label}) ({{gpu_uuid="{gpu["gpu_uuid"]}", {label}!=""}})')
                  for label in ("vbios_version", "driver_version", "card_vendor", "card_series", "card_model", "serial_number")]
    return asked


@pytest.mark.parametrize("dashboard", ["overview", "node", "gpu", "job", "system"])
def test_no_query_of_amds_dashboards_is_empty(amds, dashboard):
    asked = queries(amds, dashboard)
    assert len(asked) >= 50 and not (empty := without_answer(amds, asked)), "\n".join(empty)


def test_a_query_for_what_only_amds_library_has_is_empty(amds):
    assert without_answer(amds, [("none", "gpu_afid_errors")], seconds=1) == ["none: gpu_afid_errors"]
