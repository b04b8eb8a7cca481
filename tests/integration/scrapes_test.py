"""The metrics page under failures: hung and lost GPUs, driver unloads, invalid values, restarts, clock jumps, hostile names. Prometheus and two
other parsers read it; its values must be those of the simulated machine's own tools."""
import gzip
import http.client
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))

import images  # noqa: E402
from monitored import Fleet, Monitored  # noqa: E402
from node import PATIENCE, wait_until  # noqa: E402

# Two GPUs that together support everything: GPM and NVLink, and an older generation.
MACHINE = """name: pair
description: one H100 and one T4
driver: 550.54.15
gpus:
- {model: h100-sxm-80gb, pci: "0000:17:00.0"}
- {model: t4, pci: "0000:b3:00.0"}
"""
FAST = "telemetry: {interval: 1s, keepEnded: 2s}\n"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
WORKERS = "penstock_process_cpu_seconds_total"  # a per-process counter; a worker that hangs is replaced by another
LIBFAKETIME = Path(images.LIBRARIES, "faketime/libfaketime.so.1")


def measured() -> set[str]:
    """Families with values of the driver, whose counters restart with the driver. All others are counted since the agent's start."""
    return set(re.findall(r'\{"(\w+)", k\w+, G::kTelemetry', (ROOT / "src/api/metrics_families.cc").read_text()))


class Reader:
    """Scrapes a page like different scrapers. Fails on invalid pages and on counters that fall."""

    def __init__(self, page: str):
        self.host, self.scrapes, self.counters, self.may_fall, self.now = page, 0, {}, frozenset(), ""
        self.measured = measured()

    def fetch(self, openmetrics: bool, compressed: bool = False) -> str:
        connection = http.client.HTTPConnection(self.host, timeout=PATIENCE)
        connection.request("GET", "/metrics", headers={"Accept": OPENMETRICS if openmetrics else "text/plain",
                                                       "Accept-Encoding": "gzip" if compressed else "identity"})
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 200 and answer.headers["Content-Type"].startswith(
            "application/openmetrics-text" if openmetrics else "text/plain"), (answer.status, answer.headers)
        connection.close()
        return (gzip.decompress(body) if answer.headers.get("Content-Encoding") == "gzip" else body).decode()

    def scrape(self) -> dict[tuple, float]:
        """Series -> value. Every second scrape is in OpenMetrics, every third compressed."""
        self.scrapes += 1
        openmetrics = self.scrapes % 2 == 0
        text = self.fetch(openmetrics, self.scrapes % 3 == 0)
        try:
            families = list((read_openmetrics if openmetrics else read_text)(text))
        except ValueError as error:
            raise AssertionError(f"{error} in\n{text}") from None
        if self.scrapes % 100 == 1:
            promtool_reads(text)
        return self.checked(families, openmetrics)

    def checked(self, families, openmetrics: bool) -> dict[tuple, float]:
        assert not (twice := [name for name, count in Counter(family.name for family in families).items() if count > 1]), f"families twice: {twice}"
        series: dict[tuple, float] = {}
        for family in families:
            for sample in family.samples:
                # The reader of the text format names all counters *_total; dcgm-exporter's counters have no such suffix.
                name = sample.name.removesuffix("_total") if sample.name.startswith("DCGM_") else sample.name
                key = (name, *sorted(sample.labels.items()))
                assert key not in series, f"twice: {key}"
                assert sample.value == sample.value, f"not a number: {key}"
                series[key] = sample.value
                if family.type == "counter" and name != WORKERS:
                    self.grows(key, openmetrics, sample.value)
        return series

    def grows(self, key: tuple, openmetrics: bool, value: float):
        """Asserts that a counter does not fall. Formats are compared separately: their pages have different times."""
        before = self.counters.get((key, openmetrics), 0)
        assert value >= before or self.kind(key) in self.may_fall, f"{self.now}: {key} fell from {before} to {value}"
        self.counters[key, openmetrics] = value

    def kind(self, key) -> str:
        return "driver" if key[0] in self.measured or key[0].startswith("DCGM_") else "agent"

    def have_begun_anew(self, kinds):
        """Forgets the counters of these kinds, including series that are not on the page again yet."""
        self.counters = {(key, openmetrics): value for (key, openmetrics), value in self.counters.items() if self.kind(key) not in kinds}
        self.may_fall = frozenset()

    def times(self, count: int):
        for _ in range(count):
            self.scrape()


def promtool_reads(text: str):
    """Asserts that promtool accepts the page. Its advice (status 3) on dcgm-exporter's names is ignored."""
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=PATIENCE)
    ours = [line for line in (done.stdout + done.stderr).splitlines() if not line.startswith("DCGM_")]
    assert done.returncode in (0, 3) and not ours, "\n".join(ours) + text


def having(series: dict[tuple, float], name: str, **labels: str) -> dict[tuple, float]:
    return {key: value for key, value in series.items() if key[0] == name and labels.items() <= dict(key[1:]).items()}


@pytest.fixture
def fleet(request):
    if os.getuid() != 0:
        pytest.fail("control groups need root")
    fleet = Fleet(request.config.getoption("--programs").resolve())
    yield fleet
    fleet.end()


@pytest.fixture
def pair(fleet) -> Monitored:
    machine = fleet.home / "pair.yaml"
    machine.write_text(MACHINE)
    return fleet.add("pair", str(machine), FAST + "allocators: {kubelet: {enabled: off}}\n")


# --- two thousand scrapes -----------------------------------------------------------------------------------------------------------------
def nothing(node: Monitored):
    """A healthy and busy machine."""
    node.sim("set", "all", "utilisation=70", "pcie-tx=1Gi")


def restart(node: Monitored):
    node.kill_agent()
    node.start_agent()


def runs_come_and_go(node: Monitored):
    for _ in range(3):
        program = node.hold(1)
        program.kill()
        program.wait()


# The fault, its reversal, and which counters restart with it. Loading the driver clears its errors.
FAULTS = {
    "well": (nothing, [], set()),
    "a call that hangs a while": ([("fault", "0", "hang", "nvmlDeviceGetTemperature", "300")], [("heal", "0")], set()),
    "a GPU that hangs": ([("fault", "0", "hang", "all", "forever")], [("heal", "0")], set()),
    "a GPU that is lost": ([("fault", "1", "lost")], [("heal", "1")], set()),
    "lost in its getters only": ([("fault", "0", "lost", "--where", "getter")], [("heal", "0")], set()),
    "calls that fail": ([("fault", "all", "error", "nvmlDeviceGetPowerUsage", "999", "--count", "20")], [], set()),
    "fields that fail": ([("fault", "all", "error", "nvmlDeviceGetFieldValues", "999", "--count", "20")], [], set()),
    "nonsense": ([("fault", "0", "nonsense", "temperature=255", "power=4294967295", "memory-used=99999999999999", "utilisation=4000000000"),
                  ("fault", "0", "nonsense", "gpm=100000"), ("fault", "1", "nonsense", "sm-clock=4294967295", "process-memory=18446744073709551615")],
                 [("heal", "0"), ("heal", "1")], set()),
    "energy that goes back twice": ([("fault", "0", "field", "83", "value=1", "--count", "2")], [("heal", "0")], set()),
    "processes that are none": ([("fault", "0", "junk-samples"), ("fault", "1", "junk-samples")], [("heal", "0"), ("heal", "1")], set()),
    "XIDs": ([("fault", "0", "xid", "43"), ("fault", "0", "xid", "48"), ("fault", "1", "xid", "63")],
             [("heal", "0"), ("heal", "1"), ("fault", "driver", "unload"), ("heal", "driver")], {"driver"}),
    "runs that come and go": (runs_come_and_go, [], set()),
    "a GPU that is pulled": ([("fault", "1", "remove")], [("heal", "1")], {"driver"}),
    "counters that begin anew": ([("set", "0", "counters=0")], [], {"driver"}),
    "a driver that goes and comes": ([("fault", "driver", "unload")], [("heal", "driver")], {"driver"}),
    "another driver": ([("heal", "driver", "--driver", "535.183.01")], [("heal", "driver", "--driver", "550.54.15")], {"driver"}),
    "an agent that is killed": (restart, [], {"agent", "driver"}),
}
SCRAPES = 2000


@pytest.mark.timeout(1200)  # most of its time is that of the readers, on a processor that other suites use too
def test_two_thousand_scrapes_while_everything_goes_wrong(fleet, pair):
    prometheus = fleet.prometheus([{"job_name": "penstock", "static_configs": [{"targets": [pair.page]}], "scrape_interval": "100ms",
                                    "scrape_timeout": "100ms"}])
    reader, each = Reader(pair.page), SCRAPES // (2 * len(FAULTS)) + 1
    for name, (do, undo, begin_anew) in FAULTS.items():
        reader.may_fall, reader.now = frozenset(begin_anew), name
        for command in do(pair) or [] if callable(do) else do:
            pair.sim(*command)
        reader.times(each)
        for command in undo:
            pair.sim(*command)
        if begin_anew:  # counters may restart once; then they must not fall again
            wait_until(lambda: len(pair.usable()) == 2, f"all GPUs to be healthy after {name}")
            wait_fresh(reader, 5)  # a counter that falls is accepted if it stays low
            reader.have_begun_anew(begin_anew)
        reader.times(each)
    assert reader.scrapes >= SCRAPES
    wait_until(lambda: len(pair.usable()) == 2, "all GPUs to be healthy")
    seen_by(prometheus)


def wait_fresh(reader: Reader, times: int = 1):
    """Waits until both GPUs were sampled again this many times, on pages of both formats."""
    for _ in range(times):
        begin = time.time()

        def fresh() -> bool:
            ages = [at > begin for _ in range(2) for at in having(reader.scrape(), "accelerator_sample_timestamp_seconds").values()]
            return len(ages) == 4 and all(ages)
        wait_until(fresh, "both GPUs to be sampled", every=0.1)


def seen_by(prometheus):
    """Asserts that Prometheus read every page, found no duplicate series, and stored every scrape."""
    assert prometheus.value("count_over_time(up[10m])") > 100
    text = prometheus.fetch(f"http://{prometheus.address}/metrics")
    for name in ("duplicate_timestamp", "out_of_order", "out_of_bounds"):
        assert re.search(rf"^prometheus_target_scrapes_sample_{name}_total 0$", text, re.M), name
    log = prometheus.log.read_text(errors="replace")
    assert not re.search(r"parse|invalid|Append failed", log), log[-3000:]


def test_the_reader_refuses_what_is_no_page():
    """Tests Reader itself: it refuses a counter that falls, and duplicate series and families."""
    reader, page = Reader("nowhere"), '# TYPE a_total counter\na_total{x="1"} 5\n'
    reader.checked(list(read_text(page)), False)
    with pytest.raises(AssertionError, match="fell from 5"):
        reader.checked(list(read_text(page.replace("5", "4"))), False)
    with pytest.raises(AssertionError, match="twice"):
        reader.checked(list(read_text('# TYPE a gauge\na{x="1",y="2"} 5\na{y="2",x="1"} 5\n')), False)
    with pytest.raises(AssertionError):
        promtool_reads("accelerator_without_help 1\n")


# --- values -------------------------------------------------------------------------------------------------------------------------------
def smi(node: Monitored, *names: str) -> list[list[str]]:
    """The output of the simulated machine's own nvidia-smi, one row for each GPU."""
    library = node.root / "usr/lib/x86_64-linux-gnu"
    done = subprocess.run([node.root / "usr/bin/nvidia-smi", f"--query-gpu={','.join(names)}", "--format=csv,noheader,nounits"],
                          env={"LD_LIBRARY_PATH": str(library)}, capture_output=True, text=True, check=True)
    return [[cell.strip() for cell in line.split(",")] for line in done.stdout.splitlines()]


# nvidia-smi's column, our family and its labels, and the factor from nvidia-smi's unit to ours.
COLUMNS = [("temperature.gpu", "accelerator_temperature_celsius", {}, 1), ("power.draw", "accelerator_power_watts", {}, 1),
           ("utilization.gpu", "accelerator_utilization_ratio", {}, 0.01), ("memory.used", "accelerator_memory_used_bytes", {}, 2**20),
           ("clocks.sm", "accelerator_clock_hertz", {"clock": "sm"}, 1e6), ("clocks.mem", "accelerator_clock_hertz", {"clock": "memory"}, 1e6)]
LEGACY = {"temperature.gpu": "DCGM_FI_DEV_GPU_TEMP", "power.draw": "DCGM_FI_DEV_POWER_USAGE", "utilization.gpu": "DCGM_FI_DEV_GPU_UTIL",
          "memory.used": "DCGM_FI_DEV_FB_USED", "clocks.sm": "DCGM_FI_DEV_SM_CLOCK", "clocks.mem": "DCGM_FI_DEV_MEM_CLOCK"}


def test_values_are_the_machines(pair):
    pair.sim("clock", "stop")
    pair.sim("set", "0", "utilisation=83", "memory-used=12345", "temperature=71", "power=512")
    pair.sim("set", "1", "utilisation=7", "memory-used=1001", "temperature=44", "power=33")
    reader = Reader(pair.page)
    wait_until(lambda: 71 in having(reader.scrape(), "accelerator_temperature_celsius").values(), "the set values on the page", every=0.1)
    wait_fresh(reader)
    series = reader.scrape()
    rows = smi(pair, "uuid", *(column[0] for column in COLUMNS))
    assert [row[1] for row in rows] == ["71", "44"]
    for uuid, *cells in rows:
        for cell, (column, name, labels, factor) in zip(cells, COLUMNS):
            found = list(having(series, name, device=uuid, **labels).values())
            assert found == [pytest.approx(float(cell) * factor)], f"{column} of {uuid}"
            found = list(having(series, LEGACY[column], UUID=uuid).values())
            assert found == [pytest.approx(float(cell))], f"{LEGACY[column]} of {uuid}"


def test_energy_is_exact(pair):
    """300 W for 100 s are 30 kJ in every energy counter."""
    reader = Reader(pair.page)

    def energy() -> tuple[float, float]:
        wait_fresh(reader)
        series = reader.scrape()
        ours = [value for key, value in having(series, "accelerator_energy_joules_total", index="0").items()]
        theirs = [value for key, value in having(series, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", gpu="0").items()]
        assert len(ours) == len(theirs) == 1
        return ours[0], theirs[0]

    pair.sim("clock", "stop")
    pair.sim("set", "0", "power=300")
    before = energy()
    pair.sim("clock", "advance", "100s")
    after = energy()
    assert after[0] - before[0] == pytest.approx(30000) and after[1] - before[1] == pytest.approx(30000 * 1000)


# --- holders ---------------------------------------------------------------------------------------------------------------------------
def test_a_holder_is_on_the_page_and_leaves_it_without_a_sample(fleet, record_property):
    """Samples are an hour apart: holders appear on the page without waiting for a sample."""
    node = fleet.add("pair", "mixed", "allocators: {assign: [{devices: [0], allocator: local}]}\ntelemetry: {interval: 1h, keepEnded: 1h}\n")
    reader = Reader(node.page)

    def held(**labels) -> dict:
        return having(reader.scrape(), "accelerator_held", **labels)

    begin = time.monotonic()
    node.kubelet_program.start("ml", "train-0")
    wait_until(lambda: held(kind="pod", namespace="ml", pod="train-0", container="main"), "the pod on the page")
    record_property("seconds until a pod is on the page", time.monotonic() - begin)
    begin = time.monotonic()
    program = node.hold(1)
    wait_until(lambda: held(kind="run", user="root"), "the program on the page")
    record_property("seconds until a program is on the page", time.monotonic() - begin)
    program.kill()
    program.wait()
    begin = time.monotonic()
    wait_until(lambda: not held(kind="run"), "the program to leave the page")
    record_property("seconds until a program has left the page", time.monotonic() - begin)
    ended = having(reader.scrape(), "accelerator_holder_end_timestamp_seconds", kind="run")
    assert len(ended) == 1, "its last values stay for a while"
    node.config.write_text(node.config.read_text().replace("keepEnded: 1h", "keepEnded: 1s"))
    wait_until(lambda: not having(reader.scrape(), "accelerator_holder_end_timestamp_seconds", kind="run"), "its last values to be removed")
    node.kubelet_program.end("ml", "train-0")
    wait_until(lambda: not held(), "the pod to leave the page", every=0.1)  # no event reports a pod's end; the agent asks the kubelet every 10 s
    assert not having(reader.scrape(), "accelerator_holder_utilization_ratio")


HOSTILE = ['"} 1\nup{job="', "back\\slash\\n", "tab\tand\rreturn", "unicode-\u2713-\U0001f980", "# HELP evil evil", "a" * 300, "{}", "'\"`$(id)"]


HOSTILE_LABEL = '"} up{x="\\'


def test_hostile_names_stay_within_their_labels(fleet):
    node = fleet.add("shared", "t4-x1", FAST + "sharing: {rules: [{strategy: time-slicing, replicas: 10}]}\n")
    before = {key[0] for key in Reader(node.page).scrape()}
    for n, name in enumerate(HOSTILE):
        node.kubelet_program.start(f"ns{name}", f"pod{n}{name}", container=name)
    reader, shown = Reader(node.page), [re.sub(r"[\t\r]", "?", name) for name in HOSTILE]  # control characters for a terminal

    def missing(series: dict) -> list[str]:
        return [name for n, name in enumerate(shown)
                if not having(series, "accelerator_held", namespace=f"ns{name}", pod=f"pod{n}{name}", container=name)]

    wait_until(lambda: not missing(reader.scrape()), "all pods on the page")
    for series in (reader.scrape(), reader.scrape()):  # in both formats
        assert not missing(series)
        strange = {key[0] for key in series} - before
        assert all(name.startswith(("accelerator_", "penstock_", "DCGM_")) for name in strange), strange


def test_hostile_programs_and_labels(fleet):
    node = fleet.add("pair", "mixed", FAST.replace("}", ", holderLabels: ['*']}") + "allocators: {kubelet: {enabled: off}}\n")
    evil = fleet.home / "x\n# TYPE up counter\nup 1\n\"}"
    shutil.copy("/usr/bin/sleep", evil)
    program = node.hold(1, evil, "1000")
    labelled = node.start("--gpus", 1, "--label", f"experiment={HOSTILE_LABEL}", "--", "sleep", "1000")
    node.sim("set", "0", f"process={program.pid}:100:" + "q\"uote")
    latin = subprocess.Popen([b"sleep-\xff\xfe", "1000"], executable="/usr/bin/sleep")  # invalid UTF-8, and an outside process on its GPU
    try:
        node.sim("set", "2", f"process={latin.pid}:100:x")
        reader = Reader(node.page)
        wait_until(lambda: having(reader.scrape(), "accelerator_process_memory_used_bytes", index="2", lease=""), "its memory on the page", every=0.1)
        wait_until(lambda: having(reader.scrape(), "accelerator_holder_labels"), "the label on the page", every=0.1)
        for series in (reader.scrape(), reader.scrape()):
            assert not having(series, "up")
            values = [value for key in having(series, "accelerator_holder_labels") for label, value in key[1:] if label == "label_experiment"]
            assert values == [HOSTILE_LABEL]
    finally:
        latin.kill()
        latin.wait()
        labelled.kill()


# --- clock changes and many scrapers --------------------------------------------------------------------------------------------------------------------
def test_a_clock_that_is_set_harms_nothing(fleet):
    """The clock is set two hours forward and five back while the agent runs."""
    (fleet.home / "pair").mkdir()
    clock = fleet.home / "clock"
    clock.write_text("+0")
    node = fleet.nodes["pair"] = Monitored(fleet.home / "pair", fleet.programs, "mixed", "pair", FAST + "allocators: {kubelet: {enabled: off}}\n")
    node.start_agent(("env", f"LD_PRELOAD={LIBFAKETIME}", f"FAKETIME_TIMESTAMP_FILE={clock}", "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1"))
    node.hold(1)
    reader = Reader(node.page)

    def offsets() -> list[float]:
        """The difference of the agent's clock from this one, by the last sample of each GPU."""
        return [at - time.time() for at in having(reader.scrape(), "accelerator_sample_timestamp_seconds").values()]

    for hours in (2, -3, 0):
        clock.write_text(f"{hours * 3600:+d}")
        wait_until(lambda hours=hours: [abs(offset - hours * 3600) < 60 for offset in offsets()] == [True] * 3,
                   f"samples by a clock that differs by {hours} h", every=0.1, seen=offsets)
        reader.times(10)
        series = reader.scrape()
        for name in ("accelerator_holder_busy_seconds_total", "accelerator_holder_measured_seconds_total"):
            assert all(0 <= value < 600 for value in having(series, name).values()), name
        assert len(having(series, "accelerator_sample_failed")) == 3 and not any(having(series, "accelerator_sample_failed").values())
        assert len(having(series, "accelerator_held")) == 1


def test_two_hundred_scrapers_at_once(pair):
    """Every scraper gets a complete page or a response that asks it to retry; none hangs, and the next one is served."""
    outcomes: Counter = Counter()

    def scrape():
        try:
            with urllib.request.urlopen(f"http://{pair.page}/metrics", timeout=PATIENCE) as answer:
                outcomes["whole" if b"penstock_build_info{" in answer.read() else "cut"] += 1
        except OSError as error:
            outcomes[type(error).__name__] += 1

    threads = [threading.Thread(target=scrape) for _ in range(200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * PATIENCE)
    assert not any(thread.is_alive() for thread in threads) and sum(outcomes.values()) == 200
    assert outcomes["whole"] >= 64 and not outcomes["cut"], outcomes
    print(outcomes)
    Reader(pair.page).scrape()
