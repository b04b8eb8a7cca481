#!/usr/bin/env python3
"""Checks that only one place decides the identity of a process: no other source of the product reads a process' name, command line or executable.

usage: identity_test.py [SOURCE_DIR]"""
import re
import sys
from pathlib import Path

root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2]).resolve()
# Files of /proc/PID that a process controls itself; a program may read its own.
NAMES = re.compile(r'"(?!/proc/self/)[^"\n]*/?\b(comm|cmdline|exe)"')
ALLOWED = {
    "src/protocol/engine/machine_process.cc": "the rule itself (docs/adr/0024)",
    "src/os/process/process.cc": "display of a process to users, and our own path",
    "src/os/lock_file.cc": "display of the program that holds a lock only root can open; the descriptors prove the holder",
    "src/backend/amd/modes.cc": "display of the processes that keep a GPU from being divided; KFD's list names them",
    "src/backend/nvidia/mps/processes.cc": "programs that the agent started, identified by their control group first (docs/adr/0025)",
    "src/protocol/kubelet/other_plugin.cc": "display of the listener at a device plugin's socket to users",
}


def sources() -> list[Path]:
    paths = [path for top in ("src", "hook") for path in sorted((root / top).rglob("*.cc"))]
    return [path for path in paths if not path.name.endswith("_test.cc") and not {"testing", "fake"} & set(path.parts)]


def main() -> int:
    found = {}
    for path in sources():
        lines = [f"{number}: {line.strip()}" for number, line in enumerate(path.read_text().splitlines(), 1) if NAMES.search(line)]
        if lines:
            found[str(path.relative_to(root))] = lines
    wrong = {file: lines for file, lines in found.items() if file not in ALLOWED}
    for file, lines in wrong.items():
        print(*(f"{file}:{line}" for line in lines), sep="\n")
    unused = ALLOWED.keys() - found.keys()
    for file in unused:
        print(f"{file} no longer reads such a file; remove it from identity_test.py")
    if wrong:
        print("The name of a process proves nothing. protocol/engine/machine_process.h decides which process is a kubelet or an engine.")
    return 1 if wrong or unused else 0


if __name__ == "__main__":
    sys.exit(main())
