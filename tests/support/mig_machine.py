"""MIG on simulated machines: what the driver lists, by nvidia-smi, and `penstock` under the name of NVIDIA's `nvidia-mig-parted`."""
import json
import os
import re
import subprocess

from node import Node

# README.md and examples/config.yaml of NVIDIA/mig-parted.
EXAMPLES = """version: v1
mig-configs:
  all-disabled:
    - devices: all
      mig-enabled: false

  all-enabled:
    - devices: all
      mig-enabled: true
      mig-devices: {}

  all-1g.5gb:
    - devices: all
      mig-enabled: true
      mig-devices:
        "1g.5gb": 7

  all-balanced:
    - devices: all
      mig-enabled: true
      mig-devices:
        "1g.5gb": 2
        "2g.10gb": 1
        "3g.20gb": 1

  custom-config:
    - devices: [0,1,2,3]
      mig-enabled: false
    - devices: [4]
      mig-enabled: true
      mig-devices:
        "1g.5gb": 7
    - devices: [5]
      mig-enabled: true
      mig-devices:
        "2g.10gb": 3
    - devices: [6]
      mig-enabled: true
      mig-devices:
        "3g.20gb": 2
    - devices: [7]
      mig-enabled: true
      mig-devices:
        "1g.5gb": 2
        "2g.10gb": 1
        "3g.20gb": 1
"""


def smi(node: Node, *words, check=True) -> str:
    done = subprocess.run([node.root / "usr/bin/nvidia-smi", *words], env={"LD_LIBRARY_PATH": str(node.root / "usr/lib/x86_64-linux-gnu")}, capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0 or not check, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


def parts(node: Node) -> dict[str, list[str]]:
    """Index of each GPU that is divided -> the profiles of its MIG devices, as the driver lists them."""
    found: dict[str, list[str]] = {}
    for line in smi(node, "-L").splitlines():
        if gpu := re.match(r"GPU (\d+):", line):
            at = gpu[1]
        elif part := re.match(r"\s+MIG (\S+)", line):
            found.setdefault(at, []).append(part[1])
    return {gpu: sorted(profiles) for gpu, profiles in found.items()}


def places(node: Node) -> list[tuple[str, ...]]:
    """GPU, profile, first slice and size of each GPU instance, as the driver lists them."""
    row = re.compile(r"\|\s+(\d+)\s+MIG (\S+)\s+\d+\s+\d+\s+(\d+):(\d+)\s+\|")
    return sorted(match.groups() for match in map(row.match, smi(node, "mig", "-lgi").splitlines()) if match)


def compute_places(node: Node, gpu: int = 0) -> list[str]:
    """The compute instances of a GPU with their slices: "2c.7g.40gb 4:2"."""
    row = re.compile(r"\|\s+\d+\s+\d+\s+MIG (\S+)\s+\d+\s+\d+\s+(\d+:\d+)\s+\|")
    return sorted(" ".join(match.groups()) for match in map(row.match, smi(node, "mig", "-lci", "-i", str(gpu), check=False).splitlines()) if match)


def uuids(node: Node) -> list[str]:
    return re.findall(r"^GPU \d+: .*UUID: (GPU-[^)]*)", smi(node, "-L"), re.M)


def modes(node: Node) -> list[str]:
    return smi(node, "--query-gpu=mig.mode.current", "--format=csv,noheader").split()


def checkpoint(node: Node, *gpus: tuple) -> str:
    """As mig-parted writes it: of each GPU None, MIG is disabled, or its instances as number of the profile, first slice, size and the numbers of the
    profiles of its compute instances; with first slice and size of those as Penstock adds them."""
    def compute(one):
        number, *at = one if isinstance(one, tuple) else (one,)
        return {"ProfileID": number, "EngProfileID": 0, **({"Placement": {"Start": at[0], "Size": at[1]}} if at else {})}

    devices = []
    for uuid, instances in zip(uuids(node), gpus):
        listed = [{"ProfileID": profile, "Placement": {"Start": start, "Size": size},
                   "ComputeInstances": [compute(one) for one in computes] or None}
                  for profile, start, size, computes in instances or []]
        devices.append({"UUID": uuid, "MigMode": 0 if instances is None else 1, "GpuInstances": listed or None})
    return json.dumps({"Version": "v1", "MigState": {"Devices": devices}}, separators=(",", ":"))


class MigParted:
    """NVIDIA's program, as scripts call it on a node."""

    def __init__(self, node: Node):
        self.node = node
        self.file = node.home / "config.yaml"
        self.file.write_text(EXAMPLES)

    def command(self, *words) -> list[str]:
        node = self.node
        places = ["--run-dir", node.run_dir, "--driver-root", node.root, "--dev-root", node.root, "--sysfs-root", node.root / "sys"]
        return [str(word) for word in (node.programs / "nvidia-mig-parted", *words, *places)]

    def __call__(self, *words, status=0, env=None, **options) -> subprocess.CompletedProcess:
        options = {"stdin": subprocess.DEVNULL} if "input" not in options else {} | options
        done = subprocess.run(self.command(*words), env={**os.environ, **(env or {})}, capture_output=True, text=True, timeout=120, check=False, **options)
        assert done.returncode == status, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def apply(self, name: str, *words, **options):
        return self("apply", "-f", self.file, "-c", name, *words, **options)
