"""nvidia-ml-py, NVIDIA's own binding, on the simulated library: it returns the facts of the machine file, and the faults."""
import json

NAMES = {"a100-sxm4-40gb": "NVIDIA A100-SXM4-40GB", "a100-pcie-40gb": "NVIDIA A100-PCIE-40GB", "t4": "Tesla T4", "rtx-3090": "NVIDIA GeForce RTX 3090"}
MEMORY = {"a100-sxm4-40gb": 40960, "a100-pcie-40gb": 40960, "t4": 15360, "rtx-3090": 24576}

FACTS = """
nvmlInit()
def ask(call, *arguments):
    try: return call(*arguments)
    except NVMLError as error: return str(type(error).__name__)
gpus = []
for i in range(nvmlDeviceGetCount()):
    h = nvmlDeviceGetHandleByIndex(i)
    pci = nvmlDeviceGetPciInfo(h)
    gpus.append(dict(name=nvmlDeviceGetName(h), uuid=nvmlDeviceGetUUID(h), pci=pci.busId, device=pci.pciDeviceId, index=nvmlDeviceGetIndex(h),
        minor=nvmlDeviceGetMinorNumber(h), memory=nvmlDeviceGetMemoryInfo(h).total, serial=ask(nvmlDeviceGetSerial, h),
        capability=nvmlDeviceGetCudaComputeCapability(h), architecture=nvmlDeviceGetArchitecture(h), ecc=ask(nvmlDeviceGetEccMode, h),
        mig=ask(nvmlDeviceGetMigMode, h), fan=ask(nvmlDeviceGetFanSpeed, h), limit=nvmlDeviceGetEnforcedPowerLimit(h),
        remapped=ask(nvmlDeviceGetRemappedRows, h), cpus=ask(lambda: list(nvmlDeviceGetCpuAffinity(h, 4))), numa=ask(nvmlDeviceGetNumaNodeId, h)))
say(dict(driver=nvmlSystemGetDriverVersion(), cuda=nvmlSystemGetCudaDriverVersion(), gpus=gpus))
"""


def mask(cpus: str) -> list[int]:
    words = [0] * 4
    for part in cpus.split(","):
        first, last = map(int, part.split("-"))
        for cpu in range(first, last + 1):
            words[cpu // 64] |= 1 << cpu % 64
    return words


def test_a_dgx_is_what_its_file_says(dgx):
    seen = dgx.run(FACTS)
    assert (seen["driver"], seen["cuda"]) == ("550.54.15", 12040)
    assert [gpu["pci"] for gpu in seen["gpus"]] == ["0000" + gpu["pci"].upper() for gpu in dgx.gpus]
    assert len({gpu["uuid"] for gpu in seen["gpus"]}) == len({gpu["serial"] for gpu in seen["gpus"]}) == 8
    for index, gpu in enumerate(seen["gpus"]):
        assert (gpu["name"], gpu["index"], gpu["minor"]) == ("NVIDIA A100-SXM4-40GB", index, index)
        assert gpu["memory"] == 40960 << 20 and gpu["limit"] == 400000 and gpu["device"] == 0x20B010DE
        assert gpu["capability"] == [8, 0] and gpu["architecture"] == 7
        assert gpu["ecc"] == [1, 1] and gpu["mig"] == [0, 0] and gpu["remapped"] == [0, 0, 0, 0]
        assert gpu["fan"] == "NVMLError_NotSupported"
    assert seen["gpus"][0]["cpus"] == mask("48-63,176-191") and seen["gpus"][2]["cpus"] == mask("16-31,144-159")


def test_a_dgx_is_linked_through_its_switches(dgx):
    seen = dgx.run("""
nvmlInit()
handles = [nvmlDeviceGetHandleByIndex(i) for i in range(8)]
links = [(nvmlDeviceGetNvLinkState(handles[0], l), nvmlDeviceGetNvLinkRemoteDeviceType(handles[0], l), nvmlDeviceGetNvLinkRemotePciInfo(handles[0], l).busId) for l in range(12)]
levels = [nvmlDeviceGetTopologyCommonAncestor(handles[0], other) for other in handles[1:]]
p2p = [nvmlDeviceGetP2PStatus(handles[0], other, NVML_P2P_CAPS_INDEX_NVLINK) for other in handles[1:]]
near = len(nvmlDeviceGetTopologyNearestGpus(handles[0], NVML_TOPOLOGY_MULTIPLE))
say(dict(links=links, levels=levels, p2p=p2p, near=near))
""")
    switches = [f"00000000:C{n}:00.0" for n in (4, 5, 6, 7, 8, 9)]
    assert [link[:2] for link in seen["links"]] == [[1, 2]] * 12
    assert sorted(link[2] for link in seen["links"]) == sorted(switches * 2)
    assert seen["levels"] == [20] + [50] * 6 and seen["p2p"] == [0] * 7 and seen["near"] == 1


def test_a_mixed_box_has_each_model_with_its_own_abilities(mixed):
    seen = mixed.run(FACTS)["gpus"]
    assert [gpu["name"] for gpu in seen] == [NAMES[gpu["model"]] for gpu in mixed.gpus]
    assert [gpu["memory"] >> 20 for gpu in seen] == [MEMORY[gpu["model"]] for gpu in mixed.gpus]
    a100, geforce, t4 = seen
    assert geforce["serial"] == geforce["ecc"] == geforce["mig"] == geforce["remapped"] == "NVMLError_NotSupported" and geforce["fan"] == 30
    assert a100["mig"] == [0, 0] and t4["mig"] == "NVMLError_NotSupported" and t4["ecc"] == [1, 1]
    assert (geforce["capability"], t4["capability"]) == ([8, 6], [7, 5])


def test_old_drivers_have_old_names_and_fewer_functions(start):
    machine = start("a100-40gb-x1", "--driver", "460.32.03")
    seen = machine.run("""
nvmlInit()
h = nvmlDeviceGetHandleByIndex(0)
try: newer = nvmlDeviceGetMemoryInfo(h, version=nvmlMemory_v2).total
except NVMLError_FunctionNotFound: newer = "absent"
say([nvmlDeviceGetName(h), nvmlDeviceGetMemoryInfo(h).total >> 20, newer, nvmlSystemGetCudaDriverVersion()])
""")
    assert seen == ["A100-SXM4-40GB", 40536, "absent", 11020]


def test_a_lost_gpu_leaves_the_others_alone(dgx):
    look = """
nvmlInit()
seen = []
for i in range(nvmlDeviceGetCount()):
    try: seen.append(nvmlDeviceGetUUID(nvmlDeviceGetHandleByIndex(i)))
    except NVMLError_GpuIsLost: seen.append("lost")
say(seen)
"""
    before = dgx.run(look)
    dgx.do("fault", "3", "lost")
    assert dgx.run(look) == [*before[:3], "lost", *before[4:]]
    dgx.do("heal", "3")
    assert dgx.run(look) == before


def test_a_removed_gpu_is_not_counted_and_comes_back(dgx):
    look = "nvmlInit(); say([nvmlDeviceGetUUID(nvmlDeviceGetHandleByIndex(i)) for i in range(nvmlDeviceGetCount())])"
    before = dgx.run(look)
    dgx.do("fault", "0000:47:00.0", "remove")
    assert dgx.run(look) == before[:2] + before[3:]
    assert not (dgx.root / "sys/bus/pci/devices/0000:47:00.0").exists() and not (dgx.root / "dev/nvidia2").exists()
    dgx.do("heal", before[2])
    assert dgx.run(look) == before and (dgx.root / "sys/bus/pci/devices/0000:47:00.0/vendor").exists() and (dgx.root / "dev/nvidia2").exists()


WAIT = """
nvmlInit()
events = nvmlEventSetCreate()
for i in range(8): nvmlDeviceRegisterEvents(nvmlDeviceGetHandleByIndex(i), nvmlEventTypeXidCriticalError, events)
say("waiting")
while True:
    try: event = nvmlEventSetWait(events, 60000)
    except NVMLError_Timeout: sys.exit(1)
    say([nvmlDeviceGetUUID(event.device), event.eventType, event.eventData])
    if event.eventData == 43: break
"""


def test_every_waiting_process_hears_of_an_xid_once(dgx):
    waiters = [dgx.popen(WAIT) for _ in range(3)]
    for waiter in waiters:
        assert json.loads(waiter.stdout.readline()) == "waiting"
    uuids = [gpu["uuid"] for gpu in dgx.status["gpus"]]
    dgx.do("fault", "5", "xid", "31")
    for waiter in waiters:
        assert json.loads(waiter.stdout.readline()) == [uuids[5], 8, 31]
    dgx.do("fault", "1", "xid", "43")
    for waiter in waiters:
        assert json.loads(waiter.stdout.readline()) == [uuids[1], 8, 43]
        assert waiter.wait(timeout=60) == 0


def test_a_wait_reports_a_lost_gpu_and_goes_on_for_the_others(dgx):
    waiter = dgx.popen("""
nvmlInit()
events = nvmlEventSetCreate()
for i in range(8): nvmlDeviceRegisterEvents(nvmlDeviceGetHandleByIndex(i), nvmlEventTypeXidCriticalError, events)
say("waiting")
while True:
    try: say(nvmlEventSetWait(events, 20000).eventData); break
    except NVMLError_GpuIsLost: say("lost")
""")
    assert json.loads(waiter.stdout.readline()) == "waiting"
    dgx.do("fault", "2", "xid", "79")  # driver 550 raises no event for it
    assert json.loads(waiter.stdout.readline()) == "lost"
    dgx.do("fault", "4", "xid", "48")
    assert json.loads(waiter.stdout.readline()) == 48
    assert waiter.wait(timeout=60) == 0
    log = (dgx.root / "dev/kmsg").read_text()
    assert "NVRM: Xid (PCI:0000:47:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus." in log


def test_the_driver_can_go_and_another_come(dgx):
    start_up = """
try: nvmlInit(); say(nvmlSystemGetDriverVersion())
except NVMLError as error: say(type(error).__name__)
"""
    dgx.do("fault", "driver", "unload")
    assert dgx.run(start_up) == "NVMLError_DriverNotLoaded"
    dgx.do("heal", "driver", "--driver", "570.133.20")
    assert dgx.run(start_up) == "570.133.20"
    dgx.do("fault", "driver", "mismatch")
    assert dgx.run(start_up) == "NVMLError_LibRmVersionMismatch"
    dgx.do("heal", "driver")
    assert dgx.run(start_up) == "570.133.20"


def test_a_process_that_kept_the_old_library_must_load_the_new_one(dgx):
    old = dgx.popen("""
nvmlInit()
say("ready")
sys.stdin.readline()
try: nvmlDeviceGetCount(); say("still served")
except NVMLError as error: say(type(error).__name__)
nvmlShutdown()
try: nvmlInit(); say("served again")
except NVMLError as error: say(type(error).__name__)
""")
    assert json.loads(old.stdout.readline()) == "ready"
    dgx.do("fault", "driver", "unload")
    dgx.do("heal", "driver", "--driver", "565.57.01")
    output, _ = old.communicate("go\n", timeout=30)
    assert [json.loads(line) for line in output.splitlines()] == ["NVMLError_Unknown", "NVMLError_LibRmVersionMismatch"]


def test_a_hanging_call_hangs_alone_and_until_healed(dgx):
    dgx.do("fault", "6", "hang", "nvmlDeviceGetMemoryInfo", "forever")
    dgx.do("fault", "1", "error", "nvmlDeviceGetPowerUsage", "999", "--count", "2")
    stuck = dgx.popen("""
nvmlInit()
memory = lambda i: nvmlDeviceGetMemoryInfo(nvmlDeviceGetHandleByIndex(i)).total
say(memory(5))
say(memory(6))
""")
    assert json.loads(stuck.stdout.readline()) == 40960 << 20
    seen = dgx.run("""
nvmlInit()
def power():
    try: return nvmlDeviceGetPowerUsage(nvmlDeviceGetHandleByIndex(1))
    except NVMLError_Unknown: return "unknown"
say([power(), power(), power()])
""")
    assert seen == ["unknown", "unknown", 54000]
    assert stuck.poll() is None
    dgx.do("heal", "6")
    assert json.loads(stuck.stdout.readline()) == 40960 << 20
    assert stuck.wait(timeout=60) == 0


def test_the_recovery_action_is_a_field_from_565_on(start):
    look = """
nvmlInit()
field = nvmlDeviceGetFieldValues(nvmlDeviceGetHandleByIndex(0), [NVML_FI_DEV_GET_GPU_RECOVERY_ACTION])[0]
say([field.nvmlReturn, field.value.uiVal])
"""
    old, new = start("a100-40gb-x1"), start("a100-40gb-x1", "--driver", "570.133.20")
    for machine in (old, new):
        machine.do("fault", "0", "xid", "95")
    assert old.run(look)[0] == 2  # this driver does not support the id
    assert new.run(look) == [0, 1]
    assert "154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)" in (new.root / "dev/kmsg").read_text()
    assert new.command(new.root / "usr/bin/nvidia-smi", "-r", "-i", "0").returncode == 0
    assert new.run(look) == [0, 0]


def test_processes_and_their_memory(dgx):
    dgx.do("set", "2", "utilisation=90", "process=4711:1024:train.py", "process=4712:10Gi:infer.py")
    seen = dgx.run("""
nvmlInit()
h = nvmlDeviceGetHandleByIndex(2)
memory = nvmlDeviceGetMemoryInfo(h, version=nvmlMemory_v2)
say(dict(processes=[(p.pid, p.usedGpuMemory >> 20) for p in nvmlDeviceGetComputeRunningProcesses(h)], name=nvmlSystemGetProcessName(4711),
         used=memory.used >> 20, reserved=memory.reserved >> 20, v1=nvmlDeviceGetMemoryInfo(h).used >> 20, use=nvmlDeviceGetUtilizationRates(h).gpu))
""")
    assert seen == dict(processes=[[4711, 1024], [4712, 10240]], name="train.py", used=11264, reserved=620, v1=11884, use=90)
