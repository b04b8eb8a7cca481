"""Telemetry of a simulated machine in third-party clients: field values, GPM, process utilization, and their handling of bad answers."""
import json
import os
import sys

import pytest

GPM = """
nvmlInit()
def gpm(handle, ids, between):
    samples = [nvmlGpmSampleAlloc(), nvmlGpmSampleAlloc()]
    nvmlGpmSampleGet(handle, samples[0])
    between()
    nvmlGpmSampleGet(handle, samples[1])
    request = c_nvmlGpmMetricsGet_t()
    request.version, request.numMetrics, request.sample1, request.sample2 = NVML_GPM_METRICS_GET_VERSION, len(ids), *samples
    for i, id in enumerate(ids): request.metrics[i].metricId = id
    nvmlGpmMetricsGet(request)
    for sample in samples: nvmlGpmSampleFree(sample)
    return [(metric.nvmlReturn, metric.value) for metric in request.metrics[:len(ids)]]
def wait():
    say("sampled")
    sys.stdin.readline()
"""


@pytest.fixture
def h100(start):
    machine = start("dgx-h100", "--driver", "580.126.09")
    machine.do("clock", "stop")
    return machine


def fields(machine, gpu: int, *ids) -> dict:
    """The status and the typed value of each field, by id, or by id and scope."""
    answers = machine.run(f"""
nvmlInit()
fields = nvmlDeviceGetFieldValues(nvmlDeviceGetHandleByIndex({gpu}), {list(ids)!r})
names = {{NVML_VALUE_TYPE_DOUBLE: "dVal", NVML_VALUE_TYPE_UNSIGNED_INT: "uiVal", NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "ullVal"}}
say([(field.nvmlReturn, getattr(field.value, names[field.valueType])) for field in fields])
""")
    return dict(zip(ids, map(tuple, answers)))


def test_fields_say_what_the_machine_was_told(h100):
    h100.do("set", "2", "power=300", "energy=1000", "memory-temperature=61", "nvlink-tx=18Gi", "nvlink-replay=3:7", "pcie-rx=1Gi", "pcie-replays=4",
            "clock-events=power-cap", "remapped-correctable=2")
    h100.do("fault", "2", "ecc", "--count", "5", "--corrected")
    h100.do("clock", "advance", "10s")
    everything = 2**32 - 1
    assert fields(h100, 2, 3, 52, 74, 82, 83, 94, (138, everything), (138, 5), 142, 186, 198, 202) == {
        3: (0, 5), 52: (0, 7), 74: (0, 10**10), 82: (0, 61), 83: (0, 3001000), 94: (0, 4), (138, everything): (0, 180 << 20), (138, 5): (0, 10 << 20),
        142: (0, 2), 186: (0, 300000), 198: (0, 10 << 30), 202: (3, 0)}


def test_gpm_is_what_happened_between_two_samples(h100):
    h100.do("set", "0", "utilisation=80", "gpm-tensor=37.5", "nvlink-rx=9Gi")
    client = h100.popen(GPM + """
handle = nvmlDeviceGetHandleByIndex(0)
say(gpm(handle, [NVML_GPM_METRIC_GRAPHICS_UTIL, NVML_GPM_METRIC_ANY_TENSOR_UTIL, NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC, NVML_GPM_METRIC_NVDEC_7_UTIL], wait))
""")
    assert json.loads(client.stdout.readline()) == "sampled"
    h100.do("clock", "advance", "4s")
    output, _ = client.communicate("go\n", timeout=30)
    assert json.loads(output) == [[0, 80.0], [0, 37.5], [0, 9216.0], [3, 0.0]]


def test_gpm_is_not_on_an_a100(dgx):
    assert dgx.run(GPM + """
handle = nvmlDeviceGetHandleByIndex(0)
try: gpm(handle, [1], lambda: None); refused = None
except NVMLError as error: refused = type(error).__name__
say([nvmlGpmQueryDeviceSupport(handle).isSupportedDevice, refused])
""") == [0, "NVMLError_NotSupported"]


USE = """
nvmlInit()
handle = nvmlDeviceGetHandleByIndex(0)
try: say(sorted((s.pid, s.smUtil, s.memUtil, s.encUtil, s.decUtil) for s in nvmlDeviceGetProcessUtilization(handle, 0)))
except NVMLError as error: say(type(error).__name__)
"""


def test_process_utilization_is_each_processes_own(h100):
    assert h100.run(USE) == "NVMLError_NotFound"
    h100.do("set", "0", "process=4711:1024:train:60/30", "process=4712:512:encode:10/5/40/3")
    assert h100.run(USE) == [[4711, 60, 30, 0, 0], [4712, 10, 5, 40, 3]]
    assert h100.run("""
nvmlInit()
say(sorted((u.pid, u.smUtil, u.encUtil) for u in nvmlDeviceGetProcessesUtilizationInfo(nvmlDeviceGetHandleByIndex(0), 0)))
""") == [[4711, 60, 0], [4712, 10, 40]]
    h100.do("set", "0", "no-processes", "mig=enabled", "process=4711:1024:train:60/30")
    assert h100.run(USE) == "NVMLError_NotSupported"


def test_a_driver_may_fill_the_samples_with_junk(h100):
    h100.do("set", "0", "process=4711:1024:train:60/30")
    h100.do("fault", "0", "junk-samples")
    samples = h100.run(USE)
    assert len(samples) == 100 and [4711, 60, 30, 0, 0] in samples and sum(sm > 100 for _, sm, *_ in samples) == 99
    h100.do("heal", "0")
    assert h100.run(USE) == [[4711, 60, 30, 0, 0]]


def test_nvitop_shows_each_processes_use(start):
    machine = start("dgx-h100")
    machine.do("set", "0", f"process={os.getpid()}:4096:pytest:55/25", "pcie-tx=100Mi", "nvlink-tx=18Gi", "nvlink-rx=36Gi")
    seen = machine.run("""
from nvitop import Device, take_snapshots
device = Device(0)
process = next(iter(device.processes().values()))
links = device.nvlink_throughput(interval=0.5)
say(dict(use=device.gpu_utilization(), sm=process.gpu_sm_utilization(), memory=process.gpu_memory_utilization(), pcie=device.pcie_tx_throughput(),
         links=len(links), tx=sum(link.tx for link in links), rx=sum(link.rx for link in links)))
""")
    assert (seen["use"], seen["sm"], seen["memory"], seen["pcie"], seen["links"]) == (55, 55, 25, 100 << 10, 18)
    # The clock runs, so the rates are approximate.
    assert seen["tx"] == pytest.approx(18 << 20, rel=0.01) and seen["rx"] == pytest.approx(36 << 20, rel=0.01)


def test_gpustat_shows_engines_and_power(h100):
    h100.do("set", "1", f"process={os.getpid()}:2048:pytest:40/20/15/7", "power=333")
    done = h100.command(sys.executable, "-m", "gpustat", "--json")
    seen = json.loads(done.stdout)["gpus"][1]
    assert (seen["utilization.gpu"], seen["utilization.enc"], seen["utilization.dec"], seen["power.draw"]) == (40, 15, 7, 333)


def test_nonsense_reaches_the_client_as_a_success(h100):
    h100.do("fault", "0", "nonsense", "temperature=255", "power=4294967295", "utilisation=4294967295", "memory-used=99999999999999")
    h100.do("fault", "0", "field", "83", "status=0", "type=double", "value=4611686018427387904")
    seen = h100.run("""
nvmlInit()
handle = nvmlDeviceGetHandleByIndex(0)
memory = nvmlDeviceGetMemoryInfo(handle)
say([nvmlDeviceGetTemperature(handle, 0), nvmlDeviceGetPowerUsage(handle), nvmlDeviceGetUtilizationRates(handle).gpu, memory.used > memory.total])
""")
    assert seen == [255, 2**32 - 1, 2**32 - 1, True]
    assert fields(h100, 0, 83) == {83: (0, 2.0)}
    h100.do("heal", "all")
    assert fields(h100, 0, 186) == {186: (0, 71000)}


def test_a_reset_takes_the_counters_back(h100):
    h100.do("set", "0", "power=300", "energy=0", "nvlink-tx=1Gi", "nvlink-replay=0:3", "pcie-replays=9")
    h100.do("clock", "advance", "10s")
    assert fields(h100, 0, 83, 52, 94) == {83: (0, 3 * 10**6), 52: (0, 3), 94: (0, 9)}
    assert h100.command(h100.root / "usr/bin/nvidia-smi", "-r", "-i", "0").returncode == 0
    assert fields(h100, 0, 83, 52, 94, (138, 0)) == {83: (0, 0), 52: (0, 0), 94: (0, 0), (138, 0): (0, 0)}
    h100.do("clock", "advance", "1s")
    assert fields(h100, 0, 83) == {83: (0, 71000)}, "idle"


def test_nvidia_smi_tells_the_same(h100):
    h100.do("set", "3", "utilisation=42", "power=123", "decoder=9", "pcie-tx=2Mi", "clock-events=sw-thermal", "memory-temperature=55")
    smi = h100.root / "usr/bin/nvidia-smi"
    queried = h100.command(smi, "-i", "3", "--format=csv,noheader,nounits",
                           "--query-gpu=utilization.gpu,power.draw.instant,power.draw.average,utilization.decoder,temperature.memory,clocks_event_reasons.sw_thermal_slowdown")
    assert queried.stdout == "42, 123.00, 123.00, 9, 55, Active\n"
    details = h100.command(smi, "-q", "-i", "3").stdout
    told = {label.strip(): value.strip() for label, _, value in (line.partition(" : ") for line in details.splitlines())}
    assert [told[label] for label in ("Tx Throughput", "SW Thermal Slowdown", "SW Power Cap", "Decoder", "Memory Current Temp", "Instantaneous Power Draw")] == [
        "2048 KB/s", "Active", "Not Active", "9 %", "55 C", "123.00 W"]
