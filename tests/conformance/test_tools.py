"""The widely used monitors gpustat and nvitop on simulated machines; and the output and exit codes of the simulated nvidia-smi."""
import json
import os
import sys


def gpustat(machine) -> dict:
    done = machine.command(sys.executable, "-m", "gpustat", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_gpustat_shows_the_dgx(dgx):
    dgx.do("set", "3", "utilisation=55", "temperature=61", f"process={os.getpid()}:2048:pytest")
    seen = gpustat(dgx)
    assert seen["driver_version"] == "550.54.15"
    assert [(gpu["index"], gpu["name"], gpu["memory.total"]) for gpu in seen["gpus"]] == [(i, "NVIDIA A100-SXM4-40GB", 40960) for i in range(8)]
    busy = seen["gpus"][3]
    assert (busy["utilization.gpu"], busy["temperature.gpu"], busy["enforced.power.limit"]) == (55, 61, 400)
    assert [(process["pid"], process["gpu_memory_usage"]) for process in busy["processes"]] == [(os.getpid(), 2048)]


def test_gpustat_shows_the_mixed_box(mixed):
    seen = gpustat(mixed)["gpus"]
    assert [(gpu["name"], gpu["memory.total"]) for gpu in seen] == [("NVIDIA A100-PCIE-40GB", 40960), ("NVIDIA GeForce RTX 3090", 24576), ("Tesla T4", 15360)]
    assert seen[1]["fan.speed"] == 30 and seen[0]["fan.speed"] is None


def test_gpustat_shows_the_others_when_one_is_lost(dgx):
    dgx.do("fault", "6", "lost")
    seen = gpustat(dgx)["gpus"]
    assert len(seen) == 8 and sum(gpu.get("memory.total") == 40960 for gpu in seen) == 7


def test_nvitop_shows_the_dgx(dgx):
    dgx.do("set", "0", "utilisation=35", f"process={os.getpid()}:4096:pytest")
    seen = dgx.run("""
from nvitop import Device
say([dict(name=d.name(), uuid=d.uuid(), total=d.memory_total(), used=d.memory_used(), use=d.gpu_utilization(), bus=d.bus_id(), power=d.power_limit(),
          processes=sorted(d.processes())) for d in Device.all()])
""")
    assert [gpu["name"] for gpu in seen] == ["NVIDIA A100-SXM4-40GB"] * 8
    assert [gpu["bus"] for gpu in seen] == ["0000" + gpu["pci"].upper() for gpu in dgx.gpus]
    assert [gpu["uuid"] for gpu in seen] == [gpu["uuid"] for gpu in dgx.status["gpus"]]
    assert seen[0]["use"] == 35 and seen[0]["processes"] == [os.getpid()] and seen[0]["used"] == 4096 << 20


def test_nvitop_draws_its_table_of_the_mixed_box(mixed):
    done = mixed.command(sys.executable, "-m", "nvitop", "--once", "--no-unicode")
    assert done.returncode == 0, done.stderr
    for part in ("A100-PCIE-40GB", "RTX 3090", "Tesla T4", "Driver Version: 550.54.15"):
        assert part in done.stdout


def smi(machine, *arguments):
    done = machine.command(machine.root / "usr/bin/nvidia-smi", *arguments)
    return done.returncode, done.stdout, done.stderr


def test_nvidia_smi_lists_and_queries(dgx):
    uuids = [gpu["uuid"] for gpu in dgx.status["gpus"]]
    assert smi(dgx, "-L") == (0, "".join(f"GPU {i}: NVIDIA A100-SXM4-40GB (UUID: {uuid})\n" for i, uuid in enumerate(uuids)), "")
    assert smi(dgx, "--query-gpu=index,clocks.mem,fan.speed,memory.total", "--format=csv", "-i", "1") == (
        0, "index, clocks.current.memory [MHz], fan.speed [%], memory.total [MiB]\n1, 1215 MHz, [N/A], 40960 MiB\n", "")
    assert smi(dgx, "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-i", uuids[7]) == (0, "0\n", "")
    assert smi(dgx, "--query-compute-apps=pid,process_name,used_gpu_memory", "--format=csv") == (0, "pid, process_name, used_gpu_memory [MiB]\n", "")


def test_nvidia_smi_says_what_is_wrong_in_the_words_and_codes_of_the_real_one(dgx, start):
    assert smi(dgx, "--query-gpu=colour", "--format=csv")[:2] == (2, 'Field "colour" is not a valid field to query.\n\n')
    assert smi(dgx, "--colour")[0] == 2
    dgx.do("fault", "3", "lost")
    code, listed, errors = smi(dgx, "-L")
    assert code == 0 and [line[:6] for line in listed.splitlines()] == [f"GPU {i}:" for i in (0, 1, 2, 4, 5, 6, 7)] and "GPU3" in errors
    dgx.do("fault", "driver", "mismatch")
    code, text, _ = smi(dgx)
    assert code == 18 and text.startswith("Failed to initialize NVML: Driver/library version mismatch\n")
    dgx.do("fault", "driver", "unload")
    code, text, _ = smi(dgx)
    assert code == 9 and text.startswith("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.")
    assert not (start("empty").root / "usr/bin/nvidia-smi").exists()


def test_nvidia_smi_resets_only_what_nobody_uses(dgx):
    dgx.do("fault", "2", "remap-pending")
    dgx.do("set", "2", "process=77:10:job")
    code, text, _ = smi(dgx, "-r", "-i", "2")
    assert code == 255 and "in use by one or more processes" in text
    dgx.do("set", "2", "no-processes")
    assert smi(dgx, "-r", "-i", "2")[0] == 0
    assert smi(dgx, "--query-gpu=remapped_rows.pending,remapped_rows.uncorrectable", "--format=csv,noheader", "-i", "2")[1] == "No, 1\n"


def test_the_table_is_as_wide_as_the_driver_makes_it(start):
    for driver, width in (("470.82.01", 79), ("535.183.01", 89), ("550.54.15", 91), ("580.95.05", 91)):
        machine = start("dgx-a100", "--driver", driver)
        machine.do("set", "0", "process=123456:30000:python")
        code, text, _ = smi(machine)
        lines = text.splitlines()[1:]
        assert code == 0 and {len(line) for line in lines if line.strip()} == {width}, text
        assert any("123456" in line and "30000MiB" in line for line in lines)
