"""MIG through nvidia-ml-py: what a real H200 with driver 580.159.04 answered, and every call of the binding."""
import json
from pathlib import Path

RECORDING = json.loads((Path(__file__).parents[2] / "sim/testdata/h200-580.159.04-nvml-mig.json").read_text())

ASK = """
from ctypes import *
nvmlInit()
h = nvmlDeviceGetHandleByIndex(0)
lib = CDLL("libnvidia-ml.so.1")
FIELDS = "sliceCount instanceCount multiprocessorCount copyEngineCount decoderCount encoderCount jpegCount ofaCount".split()
def struct(before, after):
    fields = [(name, c_uint) for name in before + FIELDS] + [("memorySizeMB", c_ulonglong)] + after
    return type("Info", (Structure,), {"_fields_": fields})
NAME = [("name", c_char * 96)]
V1 = struct(["id", "isP2pSupported"], [])
V2 = struct(["version", "id", "isP2pSupported"], NAME)
V3 = struct(["version", "id"], NAME + [("capabilities", c_uint)])
def plain(info):
    values = ((name, getattr(info, name)) for name, _ in info._fields_)
    return {name: value.decode() if isinstance(value, bytes) else value for name, value in values}
def ask(call, kind, version, number):
    info = kind()
    if version: info.version = sizeof(kind) | version << 24
    result = call(h, number, byref(info))
    return plain(info) if result == 0 else result
seen = {}
for number in range(40):
    one = dict(v1=ask(lib.nvmlDeviceGetGpuInstanceProfileInfo, V1, 0, number), v2=ask(lib.nvmlDeviceGetGpuInstanceProfileInfoV, V2, 2, number),
               v3=ask(lib.nvmlDeviceGetGpuInstanceProfileInfoV, V3, 3, number))
    if isinstance(one["v1"], dict):
        id, count, room = one["v1"]["id"], c_uint(), (c_uint * 64)()
        counted = lib.nvmlDeviceGetGpuInstancePossiblePlacements_v2(h, id, None, byref(count))
        listed = lib.nvmlDeviceGetGpuInstancePossiblePlacements_v2(h, id, room, byref(count))
        one["placements"] = [counted, listed, [[room[2 * i], room[2 * i + 1]] for i in range(count.value)]]
        one["remaining"] = [lib.nvmlDeviceGetGpuInstanceRemainingCapacity(h, id, byref(count)), count.value]
        one["instances"] = [lib.nvmlDeviceGetGpuInstances(h, id, (c_void_p * 16)(), byref(count)), count.value]
    seen[str(number)] = one
for id in IDS:
    seen[f"id{id}"] = ask(lib.nvmlDeviceGetGpuInstanceProfileInfoByIdV, V2, 2, id)
handle, number = c_void_p(), c_uint(7)
seen["getMigDeviceHandleByIndex0"] = lib.nvmlDeviceGetMigDeviceHandleByIndex(h, 0, byref(handle))
seen["getGpuInstanceById1"] = lib.nvmlDeviceGetGpuInstanceById(h, 1, byref(handle))
seen["isMigDeviceHandle"] = [lib.nvmlDeviceIsMigDeviceHandle(h, byref(number)), number.value]
seen["getGpuInstanceId"] = lib.nvmlDeviceGetGpuInstanceId(h, byref(number))
seen["getComputeInstanceId"] = lib.nvmlDeviceGetComputeInstanceId(h, byref(number))
seen["attributes"] = lib.nvmlDeviceGetAttributes_v2(h, (c_uint * 16)())
seen["most"] = nvmlDeviceGetMaxMigDeviceCount(h)
say(seen)
"""


def test_profiles_of_an_h200_are_the_recorded_ones(start):
    ids = [int(name[2:]) for name in RECORDING if name.startswith("id")]
    seen = start("dgx-h200").run(f"IDS = {ids}\n" + ASK)
    assert seen.pop("most") == 0, "MIG is off"
    assert seen.keys() == RECORDING.keys() and len(ids) > 10
    for name, expected in RECORDING.items():
        assert seen[name] == expected, name


LIFE = """
from ctypes import byref  # the binding passes a placement on as it is
nvmlInit()
h = nvmlDeviceGetHandleByIndex(0)
def code(call, *arguments):
    try: return call(*arguments)
    except NVMLError as error: return type(error).__name__
steps = {}
steps["set"] = [nvmlDeviceSetMigMode(h, NVML_DEVICE_MIG_ENABLE), nvmlDeviceGetMigMode(h), nvmlDeviceGetMaxMigDeviceCount(h)]
steps["event types"] = bool(nvmlDeviceGetSupportedEventTypes(h) & nvmlEventMigConfigChange)
profile = nvmlDeviceGetGpuInstanceProfileInfo(h, NVML_GPU_INSTANCE_PROFILE_3_SLICE)
one = nvmlDeviceGetGpuInstanceProfileInfo(h, NVML_GPU_INSTANCE_PROFILE_1_SLICE, version=1)
steps["profiles"] = [profile.id, str(profile.name), one.id, one.memorySizeMB]
steps["before"] = nvmlDeviceGetGpuInstanceRemainingCapacity(h, one.id)
gi = nvmlDeviceCreateGpuInstance(h, profile.id)
info = nvmlGpuInstanceGetInfo(gi)
steps["gi"] = [info.id, info.profileId, info.placement.start, info.placement.size]
steps["after"] = nvmlDeviceGetGpuInstanceRemainingCapacity(h, one.id)
placement = c_nvmlGpuInstancePlacement_t()
placement.start, placement.size = info.placement.start, 4
steps["occupied"] = code(nvmlDeviceCreateGpuInstanceWithPlacement, h, profile.id, byref(placement))
ci_profile = nvmlGpuInstanceGetComputeInstanceProfileInfo(gi, NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE, NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED)
steps["ci profile"] = [ci_profile.id, ci_profile.instanceCount, ci_profile.multiprocessorCount]
ci = nvmlGpuInstanceCreateComputeInstance(gi, ci_profile.id)
steps["ci left"] = nvmlGpuInstanceGetComputeInstanceRemainingCapacity(gi, ci_profile.id)
ci_info = nvmlComputeInstanceGetInfo(ci)
steps["ci"] = [ci_info.id, ci_info.profileId, ci_info.placement.start, ci_info.placement.size]
by_id = nvmlDeviceGetGpuInstanceById(h, info.id)
steps["found"] = [nvmlGpuInstanceGetInfo(by_id).id, nvmlComputeInstanceGetInfo(nvmlGpuInstanceGetComputeInstanceById(by_id, 0)).id]
mig = nvmlDeviceGetMigDeviceHandleByIndex(h, 0)
steps["mig"] = [nvmlDeviceIsMigDeviceHandle(mig).value, nvmlDeviceGetGpuInstanceId(mig), nvmlDeviceGetComputeInstanceId(mig), nvmlDeviceGetIndex(mig),
                nvmlDeviceGetIndex(nvmlDeviceGetDeviceHandleFromMigDeviceHandle(mig)), nvmlDeviceGetName(mig)]
attributes = nvmlDeviceGetAttributes_v2(mig)
steps["attributes"] = [attributes.multiprocessorCount, attributes.gpuInstanceSliceCount, attributes.computeInstanceSliceCount, attributes.memorySizeMB]
steps["memory"] = nvmlDeviceGetMemoryInfo(mig).total >> 20
steps["by uuid"] = nvmlDeviceGetIndex(nvmlDeviceGetHandleByUUID(nvmlDeviceGetUUID(mig)))
steps["unsupported"] = code(nvmlDeviceGetTemperature, mig, NVML_TEMPERATURE_GPU)
steps["in use"] = code(nvmlGpuInstanceDestroy, gi)
nvmlComputeInstanceDestroy(ci)
nvmlGpuInstanceDestroy(gi)
steps["gone"] = code(nvmlGpuInstanceGetInfo, gi)
steps["off"] = [nvmlDeviceSetMigMode(h, NVML_DEVICE_MIG_DISABLE), nvmlDeviceGetMigMode(h), code(nvmlDeviceCreateGpuInstance, h, profile.id)]
say(steps)
"""


def test_an_instance_lives_through_the_binding(start):
    assert start("dgx-a100").run(LIFE) == {
        "set": [0, [1, 1], 7], "event types": True, "profiles": [9, "MIG 3g.20gb", 19, 4864], "before": 7, "gi": [2, 9, 4, 4], "after": 4,
        "occupied": "NVMLError_InsufficientResources", "ci profile": [0, 3, 14], "ci left": 2, "ci": [0, 0, 0, 1], "found": [2, 0],
        "mig": [1, 2, 0, 0, 0, "NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb"], "attributes": [14, 3, 1, 19968], "memory": 19968, "by uuid": 0,
        "unsupported": "NVMLError_NotSupported", "in use": "NVMLError_InUse", "gone": "NVMLError_InvalidArgument",
        "off": [0, [0, 0], "NVMLError_NotSupported"]}
