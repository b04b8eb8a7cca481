"""NVIDIA's own nvidia-smi, of two drivers, on simulated machines: with MIG, it prints what the simulated nvidia-smi prints, character by character."""
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import downloads

HERE = Path(__file__).parent


@pytest.fixture(params=["535", "550"])
def driver(request) -> Path:
    return downloads.nvidia_driver(request.param)


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    library = tmp_path_factory.mktemp("table") / "export_table.so"
    subprocess.run([shutil.which("cc") or "gcc", "-shared", "-fPIC", "-O1", HERE / "export_table.c", "-o", library, "-ldl"], check=True)
    return library


class Twins:
    """Two equal machines: one for NVIDIA's program, one for the simulated program."""

    def __init__(self, start, driver: Path, table: Path, name: str):
        version = next((driver / "usr/lib/x86_64-linux-gnu/nvidia/current").glob("libnvidia-ml.so.*.*")).name.removeprefix("libnvidia-ml.so.")
        self.theirs, self.ours = start(name, "--driver", version), start(name, "--driver", version)
        self.program, self.table = driver / "usr/lib/nvidia/current/nvidia-smi", table

    def set(self, *arguments):
        for machine in (self.theirs, self.ours):
            machine.do("set", *arguments)

    def both(self, *arguments) -> tuple[str, int]:
        theirs = subprocess.run([self.program, *arguments], env={**self.theirs.environment, "LD_PRELOAD": str(self.table)}, capture_output=True, text=True, timeout=60)
        ours = self.ours.command(self.ours.root / "usr/bin/nvidia-smi", *arguments)
        without_time = [re.sub(r"^\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}", "", done.stdout) for done in (ours, theirs)]
        assert without_time[0] == without_time[1], f"nvidia-smi {' '.join(arguments)}"
        assert ours.returncode == theirs.returncode, f"nvidia-smi {' '.join(arguments)}"
        return ours.stdout, ours.returncode


@pytest.fixture
def twins(start, driver, table):
    return lambda name: Twins(start, driver, table, name)


LISTS = [["-L"], ["-i", "0,1"], *(["mig", option] for option in ("-lgip", "-lgipp", "-lgi", "-lci", "-lcip", "-lcipp"))]


def test_lists_of_every_state_are_the_same(twins):
    machine = twins("dgx-a100")

    def lists():
        for arguments in LISTS:
            machine.both(*arguments)

    lists()
    machine.both("-mig", "1", "-i", "0,1")
    lists()
    assert machine.both("mig", "-cgi", "9,3g.20gb", "-C", "-i", "0") != ("", 0)
    machine.both("mig", "-cgi", "19,MIG 2g.10gb,1g.5gb+me:3", "-i", "1")
    lists()
    machine.both("mig", "-cci", "1c.2g.10gb,0", "-gi", "5", "-i", "1")
    machine.both("mig", "-cci", "-gi", "13")
    lists()
    for restricted in (["-lgi", "-i", "1"], ["-lci", "-i", "1", "-gi", "5"], ["-lcip", "-gi", "1,5"], ["-lcipp", "-gi", "13"]):
        machine.both("mig", *restricted)
    machine.both("mig", "-dci")
    machine.both("mig", "-dgi")
    lists()


@pytest.mark.parametrize("name", ["dgx-h100", "a30-x4"])
def test_other_models_are_listed_alike(twins, name):
    machine = twins(name)
    machine.both("-mig", "1", "-i", "0")
    assert machine.both("mig", "-cgi", "14,14", "-C", "-i", "0")[1] == 0
    for arguments in LISTS:
        machine.both(*arguments)


def test_errors_are_the_same(twins):
    machine = twins("dgx-a100")
    for arguments in (["-mig", "2", "-i", "0"], ["mig", "-cgi", "9"], ["mig", "-dgi"], ["mig"], ["mig", "-h"], ["mig", "-foo"], ["mig", "-cgi"], ["mig", "-lgi", "-i", "77"]):
        machine.both(*arguments)
    machine.both("-mig", "ENABLED", "-i", "0")
    machine.both("mig", "-C")
    assert machine.both("mig", "-cgi", "9,9,9", "-C")[1] == 23
    for arguments in (["-cgi", "77"], ["-cgi", "foo"], ["-cgi", "19:9"], ["-cci", "2", "-gi", "1"], ["-cci", "7", "-gi", "1"], ["-cci", "0", "-gi", "99"],
                      ["-dci", "-ci", "7"], ["-dgi", "-gi", "99"], ["-dgi"], ["-lgi", "-lci"]):
        machine.both("mig", *arguments)
    machine.set("0", "process=4711:100:train:gi1/ci0")
    assert machine.both("mig", "-dci")[1] == 19
    assert "pending disable state" in machine.both("-mig", "0", "-i", "0")[0]


def test_a_gpu_without_mig_is_named_alike(twins):
    machine = twins("t4-x1")
    for arguments in (["-mig", "1"], ["mig", "-lgip"], ["mig", "-lgi"], ["mig", "-cgi", "9"]):
        machine.both(*arguments)
