"""dcgm-exporter's counter files, flags and environment, unchanged: checked, passed to an agent, and changed while it runs. On a simulated
machine; needs no root and no network but the loopback."""
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

import pytest

from config_test import Home, home, programs  # noqa: F401
from node import PATIENCE, Node, wait_until

SHIPPED = Path(__file__).parents[2] / "src/backend/nvidia/testdata/dcgm-exporter"


def families(page: str) -> set[str]:
    return {name for name in re.findall(r"^# TYPE (\S+) ", page, re.M) if name.lower().startswith("dcgm_")}


def await_families(home: Home, names: set[str]):  # noqa: F811
    wait_until(lambda: families(home.metrics()) == names, f"{names} on the page", seen=lambda: families(home.metrics()))


def check(programs, *words: str, text: str | None = None) -> subprocess.CompletedProcess:  # noqa: F811
    return subprocess.run([str(programs / "penstock"), "config", "check", *words], capture_output=True, text=True, input=text, timeout=PATIENCE)


@pytest.mark.parametrize("name, fields", [("default-counters.csv", 26), ("dcp-metrics-included.csv", 26), ("1.x-compatibility-metrics.csv", 20)])
def test_a_file_that_the_exporter_comes_with_is_well(programs, name, fields):  # noqa: F811
    done = check(programs, str(SHIPPED / name))
    assert done.returncode == 0 and "OK (dcgm-exporter counters)\n" in done.stdout, done.stdout + done.stderr
    assert f"\n  shows {fields} fields\n" in done.stdout


def test_all_that_is_wrong_with_a_file_is_told_with_its_lines(programs, tmp_path):  # noqa: F811
    file = tmp_path / "c.csv"
    file.write_text("# mine\nDCGM_FI_DEV_GPU_TMEP, gauge, hot\nDCGM_FI_DEV_FB_USED, gague, used, or not\nDCGM_FI_DRIVER_VERSION, gauge, x\n")
    done = check(programs, str(file))
    assert done.returncode == 1
    assert f'{file}:2: there is no field "DCGM_FI_DEV_GPU_TMEP"; did you mean "DCGM_FI_DEV_GPU_TEMP"?' in done.stderr
    assert f"{file}:3: has 4 fields; a row has three" in done.stderr
    assert f"{file}:4: DCGM_FI_DRIVER_VERSION is text" in done.stderr
    manifest = "kind: ConfigMap\nmetadata: {name: m}\ndata:\n  metrics: |\n    DCGM_FI_DEV_GPU_TEMP, gauge, hot\n    DCGM_X, gauge, x\n"
    done = check(programs, "-", text=manifest)
    assert done.returncode == 1 and 'standard input, key metrics:2: there is no field "DCGM_X"' in done.stderr
    kinds = json.loads(check(programs, "-", "-o", "json", text="version: 1\nmetrics: {file: /x.csv}\n").stdout)
    assert kinds[0]["kind"] == "dcgm-exporter" and kinds[0]["ok"]


def test_a_file_of_counters_decides_the_page_and_is_followed(home, tmp_path):  # noqa: F811
    counters = tmp_path / "c.csv"
    counters.write_text("DCGM_FI_DEV_GPU_TEMP, gauge, How hot it is\nDCGM_FI_DRIVER_VERSION, label, Driver\n")
    home.up("apiVersion: penstock.io/v1alpha1\nkind: NodeConfig\n"
            f"telemetry: {{interval: 100ms, names: [dcgm], countersFile: {counters}}}\n", machine="dgx-h100")
    await_families(home, {"DCGM_FI_DEV_GPU_TEMP"})
    page = home.metrics()
    assert "# HELP DCGM_FI_DEV_GPU_TEMP How hot it is\n" in page
    assert re.search(r'^DCGM_FI_DEV_GPU_TEMP\{[^}]*DCGM_FI_DRIVER_VERSION="[0-9.]+"', page, re.M)

    beside = tmp_path / "new"
    beside.write_text("DCGM_FI_DEV_FB_USED, gauge, Used\nDCGM_FI_DEV_SM_CLOCK, gauge, Clock\n")
    beside.rename(counters)
    await_families(home, {"DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_SM_CLOCK"})

    beside.write_text("DCGM_FI_DEV_FB_USDE, gauge, Used\n")
    beside.rename(counters)
    wait_until(lambda: home.configuration()["problem"], "the bad file to be refused")
    assert f'{counters}:1: there is no field "DCGM_FI_DEV_FB_USDE"' in home.configuration()["problem"]
    page = home.metrics()
    assert families(page) == {"DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_SM_CLOCK"} and "penstock_config_last_reload_successful 0" in page

    beside.write_text("DCGM_FI_DEV_FB_USED, gauge, Used\n")
    beside.rename(counters)
    await_families(home, {"DCGM_FI_DEV_FB_USED"})
    assert home.configuration()["problem"] == "" and "penstock_config_last_reload_successful 1" in home.metrics()


def test_the_exporters_environment_makes_the_page_that_its_users_know(home, tmp_path, monkeypatch):  # noqa: F811
    (tmp_path / "c.csv").write_text("DCGM_FI_DEV_GPU_TEMP, gauge, hot\nDCGM_EXP_XID_ERRORS_COUNT, gauge, XIDs\n")
    for name, value in {"COLLECTORS": tmp_path / "c.csv", "INTERVAL": 100, "NO_HOSTNAME": "true", "REPLACE_BLANKS_IN_MODEL_NAME": "true",
                        "USE_OLD_NAMESPACE": "1", "XID_COUNT_WINDOW_SIZE": 60000, "REMOTE_HOSTENGINE": "ignored"}.items():
        monkeypatch.setenv(f"DCGM_EXPORTER_{name}", str(value))
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/0").write_text("17\n18\n")
    monkeypatch.setenv("DCGM_HPC_JOB_MAPPING_DIR", str(tmp_path / "jobs"))
    home.up("", machine="dgx-h100")
    await_families(home, {"DCGM_FI_DEV_GPU_TEMP", "DCGM_EXP_XID_ERRORS_COUNT"})
    wait_until(lambda: "hpc_job" in home.metrics(), "the jobs of GPU 0")
    # While the first round lasts, the GPUs that were measured first may be there alone.
    wait_until(lambda: re.search(r'^DCGM_FI_DEV_GPU_TEMP\{gpu="1",', home.metrics(), re.M), "the temperature of GPU 1", seen=home.metrics)
    page = home.metrics()
    labels = r'^DCGM_FI_DEV_GPU_TEMP\{gpu="%s",uuid="GPU-[^"]*",pci_bus_id="[^"]*",device="nvidia%s",modelName="[^" ]*"%s\} '
    for gpu, job in ((0, ',hpc_job="17"'), (0, ',hpc_job="18"'), (1, "")):
        assert re.search(labels % (gpu, gpu, job), page, re.M), job
    assert 'window_size_in_ms="60000"' in page
    assert home.configuration()["notYet"] == []


def agent(programs, *words: str, **environment: str) -> subprocess.CompletedProcess:  # noqa: F811
    """Starts an agent with settings that it must refuse."""
    return subprocess.run([str(programs / "penstock-agent"), *words], capture_output=True, text=True, timeout=PATIENCE, env={**os.environ, **environment})


def test_the_agents_help_has_the_exporters_flags_in_a_group(programs):  # noqa: F811
    text = agent(programs, "--help").stdout
    group = text[text.index("Options of NVIDIA's dcgm-exporter"):]
    for flag in ("-f, --collectors", "-a, --address", "-c, --collect-interval", "-k, --kubernetes", "-x, --xid-count-window-size", "-m, --configmap-data"):
        assert flag in group


@pytest.mark.parametrize("words, environment, said", [
    (["--colectors", "/x.csv"], {}, 'penstock-agent: unknown option "--colectors"; did you mean "--collectors"?'),
    (["-c", "30s"], {}, '--collect-interval: "30s" is not a number of milliseconds'),
    (["-d=f+g"], {}, '--devices: "f+g" is not a choice of devices'),
    (["-kubernetes=yes"], {}, '--kubernetes: "yes" is none of true, false'),
    ([], {"DCGM_EXPORTER_LISTEN": "9400"}, 'http.listen (--listen): "9400" is not an address'),
    (["-m", "no-namespace"], {}, "telemetry.countersConfigMap"),
    ([], {"DCGM_EXPORTER_KUBERNETES_POD_LABEL_ALLOWLIST_REGEX": "["}, "environment DCGM_EXPORTER_KUBERNETES_POD_LABEL_ALLOWLIST_REGEX"),
], ids=lambda value: " ".join(value) if isinstance(value, (list, dict)) else "")
def test_an_agent_says_which_of_the_exporters_settings_is_wrong(programs, words, environment, said):  # noqa: F811
    done = agent(programs, *words, **environment)
    assert done.returncode in (1, 2) and said in done.stderr


PROFILING = {"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_DRAM_ACTIVE"}


def test_a_check_against_a_machine_names_the_fields_that_its_gpus_do_not_have(programs, tmp_path):  # noqa: F811
    file = SHIPPED / "default-counters.csv"
    done = check(programs, str(file), "--against", "dgx-a100", "-o", "json")
    assert done.returncode == 0, done.stderr
    unavailable = {one["name"]: one for one in json.loads(done.stdout)[0]["unavailableMetrics"]}
    assert PROFILING <= set(unavailable)
    assert unavailable["DCGM_FI_PROF_DRAM_ACTIVE"] == {"name": "DCGM_FI_PROF_DRAM_ACTIVE", "models": ["NVIDIA A100-SXM4-40GB"],
                                                       "reason": "the driver does not report it; documented for: Hopper and newer"}
    text = check(programs, str(file), "--against", "dgx-a100").stdout
    line = next(line for line in text.splitlines() if "DCGM_FI_PROF_DRAM_ACTIVE" in line)
    assert line.startswith("  no value for ") and all(name in line for name in PROFILING)
    assert line.endswith(" on NVIDIA A100-SXM4-40GB: the driver does not report it; documented for: Hopper and newer")
    hopper = json.loads(check(programs, str(file), "--against", "dgx-h100", "-o", "json").stdout)[0]
    assert not PROFILING & {one["name"] for one in hopper.get("unavailableMetrics", [])}
    ours = tmp_path / "node.yaml"
    ours.write_text("apiVersion: penstock.io/v1alpha1\nkind: NodeConfig\ntelemetry: {counters: [{field: DCGM_FI_PROF_DRAM_ACTIVE, type: gauge}]}\n")
    [node] = json.loads(check(programs, str(ours), "--against", "mixed", "-o", "json").stdout)
    assert [one["name"] for one in node["unavailableMetrics"]] == ["DCGM_FI_PROF_DRAM_ACTIVE"] and len(node["unavailableMetrics"][0]["models"]) == 3
    ours.write_text("version: v1\n")
    [plugin] = json.loads(check(programs, str(ours), "--against", "dgx-a100", "-o", "json").stdout)
    assert "unavailableMetrics" not in plugin


def test_an_agent_names_the_metrics_that_its_gpus_do_not_have(home, tmp_path):  # noqa: F811
    def unavailable() -> set[str]:
        return {one["name"] for one in json.loads(home.penstock("status", "-o", "json").stdout).get("unavailableMetrics", [])}

    ours = "apiVersion: penstock.io/v1alpha1\nkind: NodeConfig\n"
    home.up(ours + "telemetry: {interval: 100ms}\n", machine="dgx-a100")
    wait_until(lambda: PROFILING <= unavailable(), "the default's metrics that an A100 lacks to be listed", seen=unavailable)
    assert re.search(r"^metrics:\n  no value for .*DCGM_FI_PROF_DRAM_ACTIVE.* on NVIDIA A100-SXM4-40GB: the driver does not report it; documented for: Hopper and newer$",
                     home.penstock("status").stdout, re.M)
    assert ('penstock_metric_unavailable{metric="DCGM_FI_PROF_DRAM_ACTIVE",model="NVIDIA A100-SXM4-40GB"} 1\n') in home.metrics()
    assert home.configuration().get("remarks", []) == [], "an unsupported default is no remark on the configuration"
    counters = tmp_path / "c.csv"
    counters.write_text("DCGM_FI_DEV_GPU_TEMP, gauge, hot\nDCGM_FI_PROF_SM_ACTIVE, gauge, active\nDCGM_FI_DEV_CPU_UTIL_TOTAL, gauge, CPU\n")
    home.write(ours + f"telemetry: {{interval: 100ms, countersFile: {counters}}}\n")
    wait_until(lambda: unavailable() == {"DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_DEV_CPU_UTIL_TOTAL"}, "the unsupported fields of the file", seen=unavailable)
    assert 'penstock_metric_unavailable{metric="DCGM_FI_DEV_CPU_UTIL_TOTAL"} 1\n' in home.metrics()
    counters.write_text("DCGM_FI_DEV_GPU_TEMP, gauge, hot\n")
    wait_until(lambda: unavailable() == set(), "no unsupported field to be listed", seen=unavailable)
    assert "penstock_metric_unavailable" not in home.metrics() and "no value for" not in home.penstock("status").stdout


def test_a_list_of_counters_or_a_flag_of_the_exporter_means_its_names_alone(home, tmp_path, monkeypatch):  # noqa: F811
    def ours() -> bool:
        return "\naccelerator_" in home.metrics()

    header = "apiVersion: penstock.io/v1alpha1\nkind: NodeConfig\n"
    counters = tmp_path / "c.csv"
    counters.write_text("DCGM_FI_DEV_GPU_TEMP, gauge, hot\n")
    home.up(header + "telemetry: {interval: 100ms}\n", machine="dgx-h100")
    wait_until(ours, "our names, because the configuration does not choose")
    home.write(header + f"telemetry: {{interval: 100ms, countersFile: {counters}}}\n")
    # The names change at once, the list when its file was read.
    wait_until(lambda: not ours() and families(home.metrics()) == {"DCGM_FI_DEV_GPU_TEMP"}, "only the listed name, as the exporter has it")
    assert "\npenstock_config_remarks 0\n" in home.metrics()
    home.write(header + f"telemetry: {{interval: 100ms, countersFile: {counters}, names: [dcgm, accelerator]}}\n")
    wait_until(ours, "our names again, because the configuration lists them")
    home.penstock("down")
    monkeypatch.setenv("DCGM_EXPORTER_INTERVAL", "100")
    home.up("", machine="dgx-h100")
    wait_until(lambda: "DCGM_FI_DEV_GPU_TEMP" in families(home.metrics()), "the exporter's page")
    assert not ours()


def test_a_host_engine_elsewhere_and_devices_by_number_are_named_in_status(home, monkeypatch):  # noqa: F811
    monkeypatch.setenv("DCGM_REMOTE_HOSTENGINE_INFO", "gpu-9.example.com:5555")
    monkeypatch.setenv("DCGM_EXPORTER_DEVICES_STR", "g:0,1")
    home.up("", machine="dgx-a100")
    text = home.penstock("status").stdout
    assert 'not supported yet: environment DCGM_REMOTE_HOSTENGINE_INFO: "gpu-9.example.com:5555": DCGM is not used; the page shows the GPUs of this machine' in text
    assert 'not supported yet: environment DCGM_EXPORTER_DEVICES_STR: "g:0,1": selection by number is not supported; all devices are shown' in text
    home.penstock("down")
    monkeypatch.setenv("DCGM_REMOTE_HOSTENGINE_INFO", "localhost:5555")
    home.up("", machine="dgx-a100")
    assert not any("HOSTENGINE" in one for one in home.configuration()["notYet"])


def test_totals_and_health_by_watch_are_as_the_exporter_has_them(programs):  # noqa: F811
    with tempfile.TemporaryDirectory(prefix="penstock-exp-") as folder:
        place = Path(folder)
        (place / "c.csv").write_text("DCGM_EXP_XID_ERRORS_TOTAL, counter, XIDs.\nDCGM_EXP_CLOCK_EVENTS_TOTAL, counter, Clock events.\n"
                                     "DCGM_EXP_GPU_HEALTH_STATUS, gauge, Health.\nDCGM_FI_DEV_CLOCKS_EVENT_REASONS, gauge, Reasons.\n")
        node = Node(place, programs, machine="dgx-h100", listen=f"unix:{place}/pages",
                    config=f"telemetry: {{interval: 100ms, hostLabel: none, countersFile: {place}/c.csv}}\n")

        def series(family: str, gpu: int) -> dict[str, str]:
            page = subprocess.run(["curl", "-s", "--unix-socket", f"{place}/pages", "http://x/metrics"], capture_output=True, text=True,
                                  timeout=PATIENCE).stdout
            found = re.findall(rf'^{family}\{{gpu="{gpu}",[^}}]*modelName="[^"]*",?([^}}]*)\}} (\S+)$', page, re.M)
            return dict(found)

        def watches(gpu: int) -> dict[str, tuple[str, str]]:
            return {re.search('health_watch="([^"]*)"', labels)[1]: (re.search('health_error_code="([^"]*)"', labels)[1], value)
                    for labels, value in series("DCGM_EXP_GPU_HEALTH_STATUS", gpu).items()}

        try:
            node.start_agent()
            well = {watch: ("DCGM_FR_OK", "0") for watch in ("ALL", "PCIE", "NVLINK", "MEM")}
            wait_until(lambda: watches(0) == well, "the health of a healthy GPU", seen=lambda: watches(0))
            assert series("DCGM_EXP_XID_ERRORS_TOTAL", 0) == {} and series("DCGM_EXP_CLOCK_EVENTS_TOTAL", 0) == {}, "no series before the first fault"
            node.sim("fault", "0", "xid", "74")
            node.sim("fault", "1", "xid", "43")
            wait_until(lambda: series("DCGM_EXP_XID_ERRORS_TOTAL", 0) == {'xid="74"': "1"}, "the XID to be counted",
                       seen=lambda: series("DCGM_EXP_XID_ERRORS_TOTAL", 0))
            wait_until(lambda: series("DCGM_EXP_XID_ERRORS_TOTAL", 1) == {'xid="43"': "1"}, "an application's XID to be counted as well")
            link = ("DCGM_FR_NVLINK_ERROR_CRITICAL", "20")
            wait_until(lambda: watches(0) == well | {"ALL": link, "NVLINK": link}, "the link to be reported as unhealthy", seen=lambda: watches(0))
            assert watches(1) == well
            for events, bits in (("none", "0"), ("power-cap", "4"), ("none", "0"), ("power-cap,hw-thermal", "68")):
                node.sim("set", "2", f"clock-events={events}")
                wait_until(lambda: set(series("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", 2).values()) == {bits}, f"{events} to be seen")  # noqa: B023
            assert series("DCGM_EXP_CLOCK_EVENTS_TOTAL", 2)['clock_event="power_cap"'] == "2"
            assert series("DCGM_EXP_CLOCK_EVENTS_TOTAL", 2)['clock_event="hw_thermal"'] == "1"
        finally:
            node.end()
