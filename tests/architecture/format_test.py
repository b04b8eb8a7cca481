#!/usr/bin/env python3
"""Fails where clang-format would change a source file, and prints the command that fixes it.

usage: format_test.py CLANG_FORMAT SOURCE_DIR"""
import subprocess
import sys
from pathlib import Path

formatter, root = sys.argv[1], Path(sys.argv[2])
sources = [str(path) for top in ("src", "sim", "hook", "guard", "bench", "tests")
           for path in sorted((root / top).rglob("*")) if path.suffix in (".h", ".cc", ".c")]
answer = subprocess.run([formatter, "--dry-run", "--Werror", *sources], capture_output=True, text=True)
if answer.returncode:
    wrong = sorted({line.split(":")[0] for line in answer.stderr.splitlines() if "-Wclang-format-violations" in line})
    sys.exit(f"{answer.stderr[:2000]}\n{len(wrong)} files are not formatted; fix with: clang-format-14 -i {' '.join(wrong)}")
