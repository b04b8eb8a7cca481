#!/usr/bin/env python3
"""Compiles Penstock's declarations of NVML's ABI against NVIDIA's headers (12.9 and 13.x): fails on a wrong size, offset, value or signature.

usage: abi_test.py COMPILER

Each abi_*.cc compares one set of declarations: abi_sim.cc and abi_mig.cc those of the simulated library, abi_vendor.cc those through which the agent calls NVML."""
import re
import subprocess
import sys
from pathlib import Path

here = Path(__file__).resolve().parent
root = here.parent.parent
sys.path.append(str(root / "tests/support"))

import downloads  # noqa: E402


def compile_against(compiler: str, source: Path, headers: Path, extra: list[str] = []) -> subprocess.CompletedProcess:
    command = [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wno-invalid-offsetof", "-isystem", str(headers), "-I", str(root), "-I", str(root / "src"), "-I", str(here)]
    return subprocess.run([*command, *extra, str(source)], capture_output=True, text=True)


# A row of the table of quantities contains NVIDIA's name and NVIDIA's number.
ROW = re.compile(r'"(NVML_(?:FI|GPM_METRIC)_\w+)"[^{}]*\}?, \{NvmlCall::k(?:Field|FieldOfEachLink|Gpm), (\d+)\}')


def numbered_rows() -> list[tuple[str, str]]:
    return [pair for file in sorted((root / "src/backend/nvidia/dialect").glob("quantity_rows_*.h")) for pair in ROW.findall(file.read_text())]


def table_against(compiler: str, headers: Path) -> subprocess.CompletedProcess:
    """Asserts that each number in the table equals the constant of its name, if this header defines it."""
    known = (headers / "nvml.h").read_text()
    rows = [(name, number) for name, number in numbered_rows() if re.search(rf"\b{name}\b", known)]
    # NVML 12.9 has other numbers for these than later versions; sampling.cc uses the old numbers on drivers of that version.
    if re.search(r"#define NVML_API_VERSION +12\b", known):
        rows = [(name, number) for name, number in rows if not 251 <= int(number) <= 273]
    assert len(rows) > 100, "no rows found in the table of quantities: has its format changed?"
    asserts = "".join(f'static_assert({name} == {number}, "{name}");\n' for name, number in rows)
    command = [compiler, "-std=c++20", "-fsyntax-only", "-isystem", str(headers), "-x", "c++", "-"]
    return subprocess.run(command, input="#include <nvml.h>\n" + asserts, capture_output=True, text=True)


def must_fail(compiler: str, headers: Path) -> bool:
    """Asserts that the comparison can fail: it must reject a struct that lacks a member."""
    broken = 'extern "C" {\ntypedef struct { unsigned long long total, free; } Broken;\n}\n#include <nvml.h>\n#include "abi.h"\nSAME_SIZE(Broken, nvmlMemory_t);\n'
    command = [compiler, "-std=c++20", "-fsyntax-only", "-isystem", str(headers), "-I", str(here), "-x", "c++", "-"]
    return subprocess.run(command, input=broken, capture_output=True, text=True).returncode != 0


def main() -> int:
    compiler = sys.argv[1] if len(sys.argv) > 1 else "c++"
    folders = downloads.nvml_headers()
    sources = sorted(here.glob("abi_*.cc"))
    failures = 0
    for folder in folders:
        if not must_fail(compiler, folder):
            print(f"{folder.name}: the comparison accepts a struct that lacks a member")
            failures += 1
        done = table_against(compiler, folder)
        print(f"the table of quantities against {folder.name}: {'the same' if done.returncode == 0 else 'DIFFERENT'}")
        if done.returncode:
            print(done.stderr)
            failures += 1
        for source in sources:
            done = compile_against(compiler, source, folder)
            print(f"{source.name} against {folder.name}: {'the same' if done.returncode == 0 else 'DIFFERENT'}")
            if done.returncode:
                print(done.stderr)
                failures += 1
    return 1 if failures or not sources or not folders else 0


if __name__ == "__main__":
    sys.exit(main())
