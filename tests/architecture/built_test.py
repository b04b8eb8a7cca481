#!/usr/bin/env python3
"""Fails for a source file that no target compiles: its tests would never run.

usage: built_test.py BUILD_DIR SOURCE_DIR"""
import sys
from pathlib import Path

build, root = Path(sys.argv[1]), Path(sys.argv[2])
compiled = (build / "build.ninja").read_text()
compiled += "".join(path.read_text() for path in build.rglob("Unity/*.c*") if path.is_file() and path.suffix in (".cxx", ".c"))
unbuilt = [str(path.relative_to(root)) for top in ("src", "sim", "hook") for path in sorted((root / top).rglob("*.c*"))
           if path.suffix in (".c", ".cc") and str(path.relative_to(root)) not in compiled]
if unbuilt:
    sys.exit("\n".join(f"{path}: no target compiles it; name its folder in the CMakeLists.txt above it" for path in unbuilt))
