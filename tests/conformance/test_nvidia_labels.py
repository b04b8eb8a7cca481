"""Node labels compared with those of NVIDIA's GPU Feature Discovery, for one simulated machine and
one configuration file. They must be equal except for the listed differences."""
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import differences
import nvidia_programs
from node import Node, wait_until

# docs/reference/differences.md lists the differences.
OURS_ALONE = {label: re.compile(re.escape(label).replace("MODEL", "[A-Z].*")) for label in differences.table("Labels")}
OF_A_MODEL = set(differences.table("Labels of several models"))
SLICED = "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}"
SLICED_PARTS = "sharing: {timeSlicing: {resources: [{name: nvidia.com/mig-3g.20gb, replicas: 2}]}}"
RENAMED = ("sharing: {timeSlicing: {renameByDefault: true, "
           "resources: [{name: nvidia.com/gpu, replicas: 4}]}}")
MPS = "sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}"
ALL_MIG = tuple((str(index), "mig=enabled") for index in range(8))
ALIKE = (["-mig", "1"], ["mig", "-cgi", "9,9", "-C"])
DIFFERENT = (["-mig", "1", "-i", "0,1"], ["mig", "-cgi", "20,19,14", "-C", "-i", "0"], ["mig", "-cgi", "15,9", "-C", "-i", "1"])


@dataclass
class Case:
    machine: str
    gpus: int
    config: str = ""
    settings: tuple = ()  # of the machine, for penstock-sim set
    smi: tuple = ()  # arguments for its nvidia-smi
    strategy: str = ""
    differs: dict = field(default_factory=dict)


CASES = {
    "a DGX-2": Case("dgx-2", 16),
    "a DGX A100": Case("dgx-a100", 8),
    "a DGX H100": Case("dgx-h100", 8),
    "a DGX B200": Case("dgx-b200", 8),
    "one T4": Case("t4-x1", 1),
    "a vGPU": Case("vgpu-t4", 1),
    "three models": Case("mixed", 3),
    "three models, time-slicing": Case("mixed", 3, SLICED),
    "time-slicing": Case("dgx-a100", 8, SLICED),
    "time-slicing, renamed": Case("dgx-a100", 8, RENAMED),
    "MPS": Case("dgx-a100", 8, MPS),
    "MIG strategy single": Case("dgx-a100", 8, strategy="single"),
    "one GPU in MIG mode": Case("dgx-a100", 8, settings=ALL_MIG[:1]),
    "all GPUs in MIG mode": Case("dgx-a100", 8, settings=ALL_MIG),
    "all GPUs in MIG mode, strategy single": Case("dgx-a100", 8, settings=ALL_MIG, strategy="single"),
    "all GPUs in MIG mode, strategy mixed": Case("dgx-a100", 8, settings=ALL_MIG, strategy="mixed"),
    "GPUs divided alike, strategy single": Case("dgx-a100", 24, smi=ALIKE, strategy="single"),
    "GPUs divided alike, strategy mixed": Case("dgx-a100", 24, smi=ALIKE, strategy="mixed"),
    "GPUs divided alike, strategy none": Case("dgx-a100", 24, smi=ALIKE),
    "GPUs divided alike, time-slicing, strategy single": Case("dgx-a100", 24, SLICED, smi=ALIKE, strategy="single"),
    "GPUs divided alike, time-slicing, strategy mixed": Case("dgx-a100", 24, SLICED_PARTS, smi=ALIKE, strategy="mixed"),
    "some GPUs divided, strategy single": Case("dgx-a100", 13, smi=DIFFERENT, strategy="single"),
    "some GPUs divided, strategy mixed": Case("dgx-a100", 13, smi=DIFFERENT, strategy="mixed"),
    "a fabric of several machines": Case("dgx-h100", 8, settings=tuple(
        (str(index), "fabric=6b6f1d1e-4f0a-4b52-9d3c-2f0c4f7d8a10.7") for index in range(8))),
}


def read(file: Path) -> dict[str, str]:
    """The labels of NVIDIA's domain, without the domain."""
    pairs = (line.split("=", 1) for line in file.read_text().splitlines() if "=" in line)
    return {key.removeprefix("nvidia.com/"): value for key, value in pairs
            if key.startswith("nvidia.com/")}


def between(theirs: dict, ours: dict) -> dict:
    return {key: (theirs.get(key), ours.get(key)) for key in {*theirs, *ours}
            if theirs.get(key) != ours.get(key) and not any(label.fullmatch(key) for label in OURS_ALONE.values())}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_labels_are_those_of_gpu_feature_discovery(request, tmp_path, case):
    node = Node(tmp_path, Path(request.config.getoption("--programs")).resolve(), case.machine)
    try:
        for setting in case.settings:
            node.sim("set", *setting)
        for arguments in case.smi:
            subprocess.run([node.root / "usr/bin/nvidia-smi", *arguments], check=True, stdout=subprocess.DEVNULL,
                           env={"LD_LIBRARY_PATH": node.root / "usr/lib/x86_64-linux-gnu"})
        config = tmp_path / "config.yaml"
        config.write_text(f"version: v1\nflags: {{migStrategy: {case.strategy or 'none'}}}\n"
                          f"{case.config}\n")
        nvidia_programs.run(node.root, "gpu-feature-discovery", "--oneshot", "--no-timestamp",
                            "--config-file", config, "--output-file", tmp_path / "theirs")
        node.config = config
        node.options = ["--output-file", tmp_path / "ours", "--no-timestamp",
                        "--mps-root", tmp_path / "mps"]
        node.start_agent(devices=case.gpus)
        theirs = read(tmp_path / "theirs")
        assert len(theirs) >= 25
        assert ("gpu.clique" in theirs) == any("fabric=" in what for _, what in case.settings)
        expected = dict(case.differs)

        def found() -> dict:
            if not (tmp_path / "ours").exists():
                return {"no file of ours": ()}
            return between(theirs, read(tmp_path / "ours"))
        if case.machine == "mixed":
            wait_until(lambda: found().keys() <= OF_A_MODEL, "our labels", seen=found)
            check_the_model(theirs, read(tmp_path / "ours"))
        else:
            wait_until(lambda: found() == expected, f"no difference but {expected}", seen=found)
            ours = read(tmp_path / "ours")
            unseen = [label for label, pattern in OURS_ALONE.items() if not any(pattern.fullmatch(key) and key not in theirs for key in ours)]
            assert not unseen or case.settings == ALL_MIG or case.smi == ALIKE, f"listed as only Penstock's, but missing: {unseen}"
    finally:
        node.end()


def check_the_model(theirs: dict, ours: dict):
    product = theirs["gpu.product"].removesuffix("-SHARED").removeprefix("NVIDIA-")
    for name in ("count", "memory", "replicas", "sharing-strategy"):
        assert ours[f"gpu.{name}.{product}"] == theirs[f"gpu.{name}"]
    assert ours["gpu.product"].removesuffix("-SHARED") == "NVIDIA-A100-PCIE-40GB"
    assert ours["gpu.product"].endswith("-SHARED") == theirs["gpu.product"].endswith("-SHARED")


def test_neither_labels_a_machine_without_a_driver(request, tmp_path):
    node = Node(tmp_path, Path(request.config.getoption("--programs")).resolve(), "empty")
    try:
        done = nvidia_programs.run(node.root, "gpu-feature-discovery", "--oneshot",
                                   "--output-file", tmp_path / "theirs", check=False)
        assert done.returncode == 1 and not (tmp_path / "theirs").exists()
        node.options = ["--output-file", tmp_path / "ours"]
        node.start_agent(devices=0)
        wait_until((tmp_path / "ours").exists, "a file of labels")
        assert read(tmp_path / "ours") == {}
    finally:
        node.end()
