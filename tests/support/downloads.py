#!/usr/bin/env python3
"""Downloads the external files that the tests outside of tests/e2e need into the cache; returns at
once if all are there.

usage: downloads.py [--programs DIR]
       downloads.py --driver BRANCH   prints the folder of this branch of NVIDIA's driver; downloads nothing

  nvml-headers/  NVIDIA's nvml.h of two major versions, from its packages on PyPI
  axe/           axe-core, which finds barriers for people who cannot see a page or use a mouse,
                 from a package on PyPI that contains it
  bench/cdi-*/   the container engines' CDI library as a program, and a validator for the
                 published schema (Go modules)
  bench/olm-*/    operator-framework's validators of bundles (a Go module)
  bench/nvidia-*/  NVIDIA's device plugin, GPU Feature Discovery and nvidia-ctk, and a program
                 through which tests call them (Go modules)
  bench/nvidia-driver-*/  two branches of NVIDIA's own driver without its kernel module, as Debian
                 installs it (a download of some 250 MB)
  bench/docker-*/  dockerd and docker of Debian 12, unpacked and not installed
  bench/rocm-smi-*/  AMD's rocm-smi of Debian 13 with the C libraries that it needs
  bench/debian-tree-*/  a bare Debian 12 with apt, as a tar archive, in which packages are installed
  bench/emulated-*/  Debian's kernel with a few of its modules, for tests/support/emulated.py
  image/         the Debian packages of the image for the programs of DIR; omitted without
                 --programs

Tries three times. Prints the folders of the parts. The tests only read the cache; if something is
missing they fail and name this program."""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/e2e/cluster")]

import emulated  # noqa: E402
import parts  # noqa: E402

NVML = ["nvidia-nvml-dev-cu12==12.9.79", "nvidia-nvml-dev==13.5.37"]
AXE = "axe-playwright-python==0.1.8"
CDI = {name: ROOT / "tests/conformance" / name for name in ("cdi", "cdi/schema")}
OLM = ROOT / "tests/conformance/olm"
NVIDIA = ROOT / "tests/conformance/nvidia"
NVIDIA_PROGRAMS = ["./peer", "github.com/NVIDIA/k8s-device-plugin/cmd/gpu-feature-discovery",
                   "github.com/NVIDIA/k8s-device-plugin/cmd/nvidia-device-plugin",
                   "github.com/NVIDIA/nvidia-container-toolkit/cmd/nvidia-ctk"]
# Without the kernel module and packages that depend on it. Updates of Debian replace the version.
DRIVER = """libcuda1 libcudadebugger1 libegl-nvidia0 libgl1-nvidia-glvnd-glx libgles-nvidia1
libgles-nvidia2 libglx-nvidia0 libnvcuvid1 libnvidia-allocator1 libnvidia-api1 libnvidia-cfg1
libnvidia-eglcore libnvidia-encode1 libnvidia-fbc1 libnvidia-glcore libnvidia-glvkspirv libnvidia-ml1
libnvidia-ngx1 libnvidia-nvvm4 libnvidia-opticalflow1 libnvidia-pkcs11-openssl3
libnvidia-ptxjitcompiler1 libnvidia-rtcore libnvoptix1 nvidia-alternative nvidia-cuda-mps nvidia-driver-bin
nvidia-egl-common nvidia-egl-icd nvidia-kernel-support nvidia-opencl-common nvidia-opencl-icd
nvidia-smi nvidia-vdpau-driver nvidia-vulkan-common nvidia-vulkan-icd""".split()
DRIVERS = {"535": {"bookworm": DRIVER}, "550": {"trixie": [*DRIVER, "libnvidia-gpucomp"]}}
# Contains ptxas, NVIDIA's assembler of PTX.
ASSEMBLER = {"bookworm": ["nvidia-cuda-toolkit"]}
DOCKER = {"bookworm": ["docker.io"]}
# Debian 12 has 5.2, which knows no partitions.
ROCM_SMI = {"trixie": ["rocm-smi", "librocm-smi64-1", "libc6", "libgcc-s1", "libstdc++6"]}
# A tree with dpkg and apt alone, what the packages of Penstock depend on, and nothing to read.
TREE = {"bookworm": ["libc-ares2", "libssl3", "libyaml-cpp0.7"]}
EMPTIED = ["var/lib/apt/lists", "var/cache/apt", "usr/share/doc", "usr/share/man", "usr/share/locale"]
TRIES, PAUSE = 3, 5


def tried(*command, **options):
    """Runs a command that uses the network."""
    for turn in range(1, TRIES + 1):
        done = subprocess.run([str(word) for word in command], **options)
        if done.returncode == 0:
            return
        said = f"downloads.py: try {turn} of {TRIES} failed: {' '.join(map(str, command))}"
        print(said, file=sys.stderr, flush=True)
        if turn < TRIES:
            time.sleep(PAUSE)
    sys.exit(1)


def nvml_headers() -> list[Path]:
    """The folders that contain an nvml.h each."""
    folders = [parts.cache() / "nvml-headers" / package for package in NVML]
    for package, folder in zip(NVML, folders):
        with parts.building(folder) as scratch:
            if scratch:
                with tempfile.TemporaryDirectory(dir=scratch.parent) as fetched:
                    tried(ROOT / "scripts/python", "-m", "pip", "download", "--quiet", "--no-deps",
                          "--disable-pip-version-check", "--dest", fetched, package)
                    with zipfile.ZipFile(next(Path(fetched).glob("*.whl"))) as wheel:
                        name = next(name for name in wheel.namelist() if name.endswith("/nvml.h"))
                        (scratch / "nvml.h").write_bytes(wheel.read(name))
    return folders


def axe() -> Path:
    """axe.min.js, version 4.12.1."""
    folder = parts.cache() / "axe" / AXE
    with parts.building(folder) as scratch:
        if scratch:
            with tempfile.TemporaryDirectory(dir=scratch.parent) as fetched:
                tried(ROOT / "scripts/python", "-m", "pip", "download", "--quiet", "--no-deps",
                      "--disable-pip-version-check", "--dest", fetched, AXE)
                with zipfile.ZipFile(next(Path(fetched).glob("*.whl"))) as wheel:
                    name = next(name for name in wheel.namelist() if name.endswith("/axe.min.js"))
                    (scratch / "axe.min.js").write_bytes(wheel.read(name))
    return folder / "axe.min.js"


def go_program(module: Path, name: str) -> Path:
    """Builds the program of a Go module."""
    made_of = parts.key(*(module / file for file in ("go.mod", "go.sum", "main.go")))
    target = parts.cache() / "bench" / f"{name}-{made_of}"
    with parts.building(target) as scratch:
        if scratch:
            tried("go", "mod", "download", cwd=module, env=parts.go_environment())
            parts.go_build(".", scratch / "program", "-s -w", module)
    return target / "program"


def cdi_program(name: str) -> Path:
    """The program of one of the Go modules in CDI."""
    return go_program(CDI[name], f"cdi-{CDI[name].name}")


def olm_peer() -> Path:
    return go_program(OLM, "olm")


def nvidia_programs() -> Path:
    """The folder of the NVIDIA_PROGRAMS, built if missing. Their NVML binding needs a C compiler."""
    files = [NVIDIA / file for file in ("go.mod", "go.sum", "peer/main.go")]
    target = parts.cache() / "bench" / f"nvidia-{parts.key(*files, NVIDIA_PROGRAMS)}"
    with parts.building(target) as scratch:
        if scratch:
            tried("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o",
                  f"{scratch}/", *NVIDIA_PROGRAMS, cwd=NVIDIA,
                  env=parts.go_environment() | {"CGO_ENABLED": "1"})
    return target


def nvidia_driver(branch: str) -> Path:
    """The root of a machine on which only this branch of NVIDIA's driver is installed."""
    target = parts.cache() / "bench" / f"nvidia-driver-{branch}-{parts.key(DRIVERS[branch])}"
    with parts.building(target) as scratch:
        if scratch:
            parts.unpack_packages(DRIVERS[branch], scratch, "main contrib non-free")
            make_links(scratch, scratch / "DEBIAN/nvidia-alternative/postinst")
            shutil.rmtree(scratch / "DEBIAN")
            parts.run("ldconfig", "-r", scratch)
    return target


def ptxas() -> Path:
    target = parts.cache() / "bench" / f"ptxas-{parts.key(ASSEMBLER)}"
    with parts.building(target) as scratch:
        if scratch:
            with tempfile.TemporaryDirectory(dir=scratch.parent) as unpacked:
                parts.unpack_packages(ASSEMBLER, Path(unpacked), "main contrib non-free")
                shutil.copy2(Path(unpacked, "usr/bin/ptxas"), scratch / "ptxas")
    return target / "ptxas"


def docker() -> Path:
    """The folder of usr/sbin/dockerd and usr/bin/docker; parts.py provides containerd."""
    target = parts.cache() / "bench" / f"docker-{parts.key(DOCKER)}"
    with parts.building(target) as scratch:
        if scratch:
            parts.unpack_packages(DOCKER, scratch)
    return target


def rocm_smi() -> list:
    """The command that starts version 6.1."""
    target = parts.cache() / "bench" / f"rocm-smi-{parts.key(ROCM_SMI)}"
    with parts.building(target) as scratch:
        if scratch:
            parts.unpack_packages(ROCM_SMI, scratch)
    libraries = target / "usr/lib/x86_64-linux-gnu"
    return [libraries / "ld-linux-x86-64.so.2", "--library-path", libraries, Path("/usr/bin/python3"), "-B",
            target / "usr/libexec/rocm_smi/rocm_smi.py"]


def debian_tree() -> Path:
    """The tar archive of a bare Debian 12."""
    target = parts.cache() / "bench" / f"debian-tree-{parts.key(TREE, EMPTIED)}"
    with parts.building(target) as scratch:
        if scratch:
            emptied = [f'--customize-hook=find "$1/{folder}" -mindepth 1 -delete' for folder in EMPTIED]
            for suite, packages in TREE.items():
                tried("mmdebstrap", "--quiet", "--variant=apt", f"--include={','.join(packages)}",
                      '--aptopt=Acquire::Retries "3"', *emptied, suite, scratch / "tree.tar", parts.mirror())
    return target / "tree.tar"


def make_links(root: Path, script: Path):
    """Creates the links to the driver's files like its package: runs the part of the package's script
    that calls update-alternatives, on the files of `root` instead of the machine's."""
    text = script.read_text()
    for machine, below in (('-f "${source_path}"', '-f "$ROOT${source_path}"'),
                           ('"${target_link}")"', '"$ROOT${target_link}")"'),
                           ("\tupdate-alternatives", '\tupdate-alternatives --quiet --root "$ROOT"'),
                           ("dpkg-trigger", ":"), ("dpkg-maintscript-helper", ":")):
        assert machine in text, f"{script} has changed: it does not contain {machine}"
        text = text.replace(machine, below)
    for folder in ("var/lib/dpkg/alternatives", "etc/alternatives", "var/log"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    parts.run("sh", "-c", text, script.parent.name, "triggered",
              env={**os.environ, "ROOT": str(root)})


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--programs", type=Path)
    parser.add_argument("--driver", choices=DRIVERS)
    arguments = parser.parse_args()
    if arguments.driver:
        os.environ["PENSTOCK_OFFLINE"] = "1"
        print(nvidia_driver(arguments.driver))
        return
    os.environ.pop("PENSTOCK_OFFLINE", None)
    for part in [*nvml_headers(), axe(), *(cdi_program(name) for name in CDI), olm_peer(), nvidia_programs(),
                 *map(nvidia_driver, DRIVERS), ptxas(), docker(), rocm_smi()[-1],
                 debian_tree(), emulated.kernel()]:
        print(part)
    if arguments.programs:
        tried(ROOT / "deploy/image/build", "--fetch", "--programs", arguments.programs)


if __name__ == "__main__":
    main()
