"""cmake/Penstock.cmake: what one checkout compiled is in the compiler cache for every other one, wherever it lies. The checkouts here have this one's settings of
the build, and a library of two files with their precompiled headers."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(penstock VERSION 1.0 LANGUAGES C CXX)
list(APPEND CMAKE_MODULE_PATH ${CMAKE_CURRENT_SOURCE_DIR}/cmake)
include(Penstock)
add_subdirectory(src/base)
"""
# The name of a file is part of what these compile to; so would be its folder.
SOURCES = {"CMakeLists.txt": "penstock_room(base)\n",
           "a.cc": '#include "base/core/result.h"\nnamespace penstock { const char* A() { return __FILE__; } }\n',
           "b.cc": '#include "base/core/result.h"\nnamespace penstock { base::Status B() { return base::Error(base::Code::kNotFound, __FILE__); } }\n'}
HEADER = "src/base/core/result.h"  # is precompiled
# Debug information, which the presets with sanitizers have, names the working folder.
CONFIGURE = ["cmake", "--preset", "dev", "-D", "PENSTOCK_TESTS=OFF", "-D", "CMAKE_CXX_FLAGS=-g1"]
BUILD = ["cmake", "--build", "--preset", "dev", "--target", "penstock_base"]


def checkout(folder: Path) -> Path:
    for part in ("cmake", "src/base/core"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("*.cc"))
    shutil.copy(ROOT / "CMakePresets.json", folder)
    (folder / "CMakeLists.txt").write_text(PROJECT)
    for name, text in SOURCES.items():
        (folder / "src/base" / name).write_text(text)
    return folder


@pytest.fixture
def build(tmp_path):
    """Builds the library of a checkout; returns the hits and the misses of a compiler cache of its own."""
    environment = {**os.environ, "CCACHE_DIR": str(tmp_path / "cache")}
    assert shutil.which("ccache"), "this machine has no ccache; scripts/setup installs it"

    def built(folder: Path) -> tuple[int, int]:
        subprocess.run(["ccache", "--zero-stats"], check=True, stdout=subprocess.DEVNULL, env=environment)
        for command in (CONFIGURE, BUILD):
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr
        said = subprocess.run(["ccache", "--print-stats"], check=True, capture_output=True, text=True, env=environment).stdout
        counted = dict(line.split("\t") for line in said.splitlines())
        return int(counted["direct_cache_hit"]) + int(counted["preprocessed_cache_hit"]), int(counted["cache_miss"])
    return built


def test_what_one_checkout_compiled_is_a_hit_in_every_other_one(tmp_path, build):
    first, other = checkout(tmp_path / "one"), checkout(tmp_path / "elsewhere/two")
    library = Path("build/dev/src/base/libpenstock_base.a")
    text = (first / HEADER).read_text()
    (first / HEADER).write_text(text + "namespace penstock::base { inline constexpr int kAnother = 1; }\n")
    hits, misses = build(first)
    assert hits == 0 and misses >= 3, "the precompiled headers, their own file, and the unit of both files"
    (first / HEADER).write_text(text)
    assert build(first) == (0, misses), "all of them depend on the header"
    assert build(other) == (misses, 0)
    assert (first / library).read_bytes() == (other / library).read_bytes()
    assert str(tmp_path).encode() not in (first / library).read_bytes()
