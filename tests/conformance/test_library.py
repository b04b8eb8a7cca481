"""The simulated NVML library as a file: its exported and required symbols. It must load into any program on any glibc from 2.17 on."""
import re
import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def library(request) -> Path:
    return Path(request.config.getoption("--programs")).resolve().parent / "lib/penstock-sim/libnvidia-ml.so.1"


def objdump(*arguments) -> str:
    return subprocess.run(["objdump", *arguments], check=True, capture_output=True, text=True).stdout


def test_it_exports_the_functions_of_nvml_and_nothing_else(library):
    exported = [line.split()[-1] for line in objdump("-T", library).splitlines() if re.search(r"\bDF \.text\b", line)]
    assert len(exported) > 150 and all(name.startswith("nvml") for name in exported)


def test_it_needs_libc_only_and_an_old_one_will_do(library):
    private = objdump("-p", library)
    assert re.findall(r"NEEDED\s+(\S+)", private) == ["libc.so.6"] and re.findall(r"SONAME\s+(\S+)", private) == ["libnvidia-ml.so.1"]
    versions = {tuple(map(int, version.split("."))) for version in re.findall(r"GLIBC_([\d.]+)", objdump("-T", library))}
    assert versions and max(versions) <= (2, 17)


def test_no_sanitizer_is_in_it(library):
    assert not re.search(r"__[atu]san|__ubsan|__sanitizer|__gcov", objdump("-T", library))
