"""NVIDIA's own driver as Debian installs it, without a GPU: the simulated driver must resemble it,
and the search for drivers must find it."""
import json
import re
import subprocess
from pathlib import Path

import pytest

import downloads
import nvidia_programs
from node import Node, wait_until

LIBRARIES = "usr/lib/x86_64-linux-gnu"
CURRENT = f"{LIBRARIES}/nvidia/current"  # the target of the links of Debian's alternatives
# Arguments: the driver, a machine, a library of it and its path; a command that sees the driver's
# files on the machine. nvidia-ctk reads the fixed path /sys, so the machine's sys is mounted there.
SHOW = """set -e
driver=$0 machine=$1 library=$2 place=$3; shift 3
cp "$library" "$machine/library"
mount --bind "$machine/sys" /sys
for folder in usr etc; do mount --bind "$driver/$folder" "$machine/$folder"; done
mount --bind "$machine/library" "$machine/$place"
exec "$@\""""
# Names without a version are for linkers; running programs open the versioned names.
FOR_COMPILERS = re.compile(r".*\.so")


@pytest.fixture(params=downloads.DRIVERS)
def driver(request) -> Path:
    return downloads.nvidia_driver(request.param)


def version(driver: Path) -> str:
    return next(driver.glob(f"{CURRENT}/libnvidia-ml.so.*.*")).name.removeprefix("libnvidia-ml.so.")


def functions(library: Path) -> set[str]:
    listed = subprocess.run(["nm", "-D", "--defined-only", library], check=True,
                            capture_output=True, text=True).stdout
    return {name for line in listed.splitlines()
            if (name := line.split()[-1].split("@")[0]).startswith("nvml")}


def libraries(folder: Path) -> set[str]:
    return {file.name for file in folder.rglob("*.so*")}


def test_the_simulated_nvml_has_no_function_that_the_version_lacks(driver, start):
    theirs = functions(driver / CURRENT / "libnvidia-ml.so.1")
    simulated = start("dgx-a100", "--driver", version(driver)).root / LIBRARIES
    ours = functions(simulated / "libnvidia-ml.so.1")
    assert len(ours) > 100 and ours - theirs == set()


def test_the_simulated_driver_has_all_its_libraries(driver, start):
    simulated = libraries(start("dgx-a100", "--driver", version(driver)).root / LIBRARIES)
    missing = libraries(driver / LIBRARIES) - simulated
    assert len(simulated) > 50
    assert {name for name in missing if not FOR_COMPILERS.fullmatch(name)} == set()


def test_what_nvidia_ctk_mounts_of_it_is_mounted(request, driver, start, tmp_path):
    """The files are the driver's own, behind links; only the library that would search for a GPU is
    the simulated one."""
    penstock = Path(request.config.getoption("--programs")).resolve() / "penstock"
    machine = start("dgx-a100", "--driver", version(driver)).root
    library = f"libnvidia-ml.so.{version(driver)}"
    shown = ["unshare", "--mount", "sh", "-c", SHOW, driver, machine,
             machine / LIBRARIES / library, f"{CURRENT}/{library}"]
    environment = nvidia_programs.environment(machine) | {
        "LD_LIBRARY_PATH": str(machine / CURRENT),
        "PENSTOCK_SIM_STATE": str(machine / ".penstock-sim/state")}
    asked = ["cdi", "generate", "--mode=nvml", "--driver-root", machine, "--dev-root", machine,
             "--format=json", "--output"]
    ctk = downloads.nvidia_programs() / "nvidia-ctk"
    for command in ([ctk, *asked, tmp_path / "theirs.json"],
                    [penstock, *asked, tmp_path / "ours.json", "--sysfs-root", machine / "sys"]):
        done = subprocess.run([*shown, *command], env=environment, capture_output=True, text=True,
                              timeout=60)
        assert done.returncode == 0, done.stderr
    theirs, ours = (mounts(tmp_path / name, machine) for name in ("theirs.json", "ours.json"))
    assert len(theirs) > 20 and theirs.items() <= ours.items()
    # nvidia-ctk misses programs behind links, and libraries that only other driver libraries load.
    assert ours["/usr/bin/nvidia-smi"] == "/usr/lib/nvidia/current/nvidia-smi"
    loaded = {library for path in ours.values() if "/nvidia/current/" in path and ".so" in path
              for library in needed(driver / path.lstrip("/")) if version(driver) in library}
    assert loaded and loaded <= {Path(path).name for path in ours}


def mounts(specification: Path, root: Path) -> dict[str, str]:
    """Path in the container -> path below the root."""
    said = json.loads(specification.read_text().replace(str(root), ""))
    return {one["containerPath"]: one["hostPath"] for one in said["containerEdits"]["mounts"]}


def needed(library: Path) -> list[str]:
    listed = subprocess.run(["objdump", "-p", library], check=True, capture_output=True, text=True)
    return re.findall(r"NEEDED\s+(\S+)", listed.stdout)


def test_without_its_kernel_module_the_driver_is_named_as_not_loaded(request, driver, tmp_path):
    """The reported reason comes from NVIDIA's own nvmlInit."""
    node = Node(tmp_path, Path(request.config.getoption("--programs")).resolve(), "empty")
    node.root = driver
    node.start_agent(devices=0)
    try:
        def vendor() -> dict | None:
            vendors = (node.report() or {"vendors": []})["vendors"]
            return next((one for one in vendors if one["vendor"] == "nvidia"), None)
        found = wait_until(vendor, "the vendor's answer", seen=node.log)
        assert "the NVIDIA kernel driver is not loaded" in found["reason"], found
        assert node.report()["devices"] == []
    finally:
        node.end_agent()


@pytest.fixture
def vectoradd(request) -> Path:
    return Path(request.config.getoption("--programs")).resolve() / "penstock-vectoradd"


@pytest.mark.parametrize("architecture", ["sm_50", "sm_70", "sm_80", "sm_90"])
def test_nvidias_assembler_accepts_the_kernel_of_the_vector_addition(vectoradd, tmp_path, architecture):
    kernel = tmp_path / "kernel.ptx"
    kernel.write_bytes(subprocess.run([vectoradd, "--ptx"], check=True, capture_output=True).stdout)
    done = subprocess.run([downloads.ptxas(), "--gpu-name", architecture, "--output-file",
                           tmp_path / "kernel.cubin", kernel], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_the_vector_addition_fails_without_a_gpu_as_the_driver_says(vectoradd, driver):
    """The driver's own cuInit answers 100; the library has all functions that are called."""
    library = driver / CURRENT / "libcuda.so.1"
    done = subprocess.run([vectoradd, "--library", library], capture_output=True, text=True,
                          env={"LD_LIBRARY_PATH": str(driver / CURRENT)}, timeout=60)
    assert done.returncode == 1 and "Test PASSED" not in done.stdout
    assert "cuInit: CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected" in done.stderr
    assert "no GPU is visible: see that the container requests one" in done.stderr


def test_the_vector_addition_names_a_library_that_is_none(vectoradd, tmp_path):
    (tmp_path / "libcuda.so.1").write_text("text" * 4096)  # longer than a header
    done = subprocess.run([vectoradd, "--library", tmp_path / "libcuda.so.1"], capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 1 and "invalid ELF header" in done.stderr
