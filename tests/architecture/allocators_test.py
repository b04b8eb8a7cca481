#!/usr/bin/env python3
"""Refuses the names of allocators outside the table of allocators (src/api/allocators.cc) and the code that is one: other code asks a column of its row.

usage: allocators_test.py [SOURCE_DIR]"""
import re
import sys
from pathlib import Path

root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2]).resolve()
NAMES = re.compile(r'k(Kubelet|Local)Allocator\b|"(kubelet|local)"')

# Files and folders that may say a name, and why. A row that matches nothing any more must be removed.
EXCEPTIONS = {
    "src/api/allocators": "the table",
    "src/adapter/kubelet/": "is the kubelet's allocator",
    "src/adapter/local/": "is the allocator of local users",
    "src/node/lease/": "the leases of local users",
    "src/node/attribute/attribute.cc": "ApplyPods records what the kubelet says that it has allocated",
    "src/app/agent/adapters.cc": "constructs the allocators",
    "src/app/agent/agent.cc": "starts the kubelet's",
    "src/app/agent/views.cc": "what the kubelet's waits for; previews without it",
    "src/api/node_state.cc": "a key of NodeState",
    "src/protocol/engine/cri/find.cc": "the kubelet's program",
    "src/os/cgroup/cgroup_usage.cc": "a control group",
}


def problems() -> list[str]:
    found, used = [], set()
    for path in sorted(p for top in ("src", "hook") for p in (root / top).rglob("*") if p.suffix in (".h", ".cc")):
        file = str(path.relative_to(root))
        if file.endswith("_test.cc") or "/testing/" in file:
            continue
        excepted = next((row for row in EXCEPTIONS if file.startswith(row)), None)
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if match := NAMES.search(line.split("//")[0]):
                used.add(excepted)
                if excepted is None:
                    found.append(f"{file}:{number}: {match.group()}: ask a column of the allocator's row (src/api/allocators.h)")
    return found + [f"{Path(__file__).name}: nothing matches {row} any more: remove it" for row in EXCEPTIONS.keys() - used]


if found := problems():
    sys.exit("\n".join(found))
