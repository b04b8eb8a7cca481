#!/usr/bin/env python3
"""Checks every `#include "..."` of src/, sim/, hook/ and guard/ against the table in docs/architecture.md.

usage: includes_test.py [SOURCE_DIR]"""
import re
import sys
from pathlib import Path

root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2]).resolve()
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
GENERATED = re.compile(r"\.pb\.h$")  # made by protoc in the build folder


def read_table(text: str) -> tuple[dict[str, list[str]], list[set[str]]]:
    """The modules with what each may include, in the table's order; and the steps of node/, each a set of siblings."""
    table = text.split("<!-- include table -->")[1].split("<!-- end -->")[0]
    rows = [[re.findall(r"`([^`]+)`", cell) for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("| `")]
    order = next(line for line in table.splitlines() if line.startswith("Order in `node/`"))
    steps = [set(re.findall(r"`([a-z]+)`", step)) for step in order.split(":", 1)[1].split("<")]
    return {module: row[1] for row in rows for module in row[0]}, steps


def find_module(file: str, table: dict[str, list[str]]) -> str | None:
    """The first row whose pattern the path begins with; `*` stands for one folder and is kept, so that siblings differ."""
    for module in table:
        if match := re.match(re.escape(module).replace(r"\*", "[^/]+") + "(?=/|$)", file):
            return match.group()
    return None


def allowed(file: str, included: str, table: dict[str, list[str]], steps: list[set[str]]) -> bool:
    module, other = find_module(file, table), find_module(included, table)
    if module == other:
        return True
    row = next(row for row in table if re.fullmatch(re.escape(row).replace(r"\*", "[^/]+"), module))
    if row == "src/node/*" and included.startswith("src/node/"):
        place = {name: i for i, step in enumerate(steps) for name in step}
        return place.get(included.split("/")[2], len(steps)) < place.get(file.split("/")[2], -1)
    # A star in both cells is the same folder: a vendor's backend may include its own dialect.
    star = re.fullmatch(re.escape(row).replace(r"\*", "([^/]+)"), module).groups()
    folder = re.escape(star[0]) if star else "[^/]+"
    return any(re.match(re.escape(pattern).replace(r"\*", folder) + "(/|$)", included) for pattern in table[row])


def problems() -> list[str]:
    table, steps = read_table((root / "docs/architecture.md").read_text())
    found = []
    sources = [path for top in ("src", "sim", "hook", "guard") for path in sorted((root / top).rglob("*")) if path.suffix in (".h", ".cc", ".c")]
    for path in sources:
        file = str(path.relative_to(root))
        if find_module(file, table) is None:
            found.append(f"{file}: its module is not in the table of docs/architecture.md")
            continue
        text = path.read_text(errors="replace")
        for match in INCLUDE.finditer(text):
            line = text[: match.start()].count("\n") + 1
            named = match.group(1)
            candidates = [root / "src" / named, root / named, path.parent / named]
            included = str(next((c.resolve() for c in candidates if c.exists()), candidates[0]).relative_to(root))
            if file.startswith("src/") and included != f"src/{named}":
                found.append(f"{file}:{line}: include by path from src/: {named}")
            if GENERATED.search(included):
                continue
            if not (root / included).exists():
                found.append(f"{file}:{line}: no such file: {named}")
            elif not allowed(file, included, table, steps):
                found.append(f"{file}:{line}: {find_module(file, table)} may not include {named}")
    if not sources:
        found.append(f"no sources under {root}")
    return found


def self_test():
    """The check itself must be able to fail."""
    table, steps = read_table((root / "docs/architecture.md").read_text())
    for file, included, answer in [
            ("src/base/log.cc", "src/os/fd.h", False), ("src/os/fd.cc", "src/base/result.h", True),
            ("src/backend/nvidia/nvml.cc", "src/api/config/node_config.h", False), ("src/backend/nvidia/nvml.cc", "src/device/model.h", True),
            ("src/backend/nvidia/dialect/xid.cc", "src/os/fd.h", False), ("src/backend/amd/a.cc", "src/backend/nvidia/nvml.h", False),
            ("src/backend/nvidia/a.cc", "src/backend/nvidia/dialect/xid.h", True), ("src/backend/amd/a.cc", "src/backend/nvidia/dialect/xid.h", False),
            ("src/node/ledger/ledger.cc", "src/node/allocate/allocate.h", False),
            ("src/node/allocate/allocate.cc", "src/node/ledger/ledger.h", True),
            ("src/node/labels.cc", "src/protocol/kubelet/client.h", False), ("src/protocol/http/http.cc", "src/protocol/kubelet/client.h", False),
            ("src/adapter/local/local_adapter.cc", "src/backend/nvidia/nvml.h", False), ("src/adapter/local/local_adapter.cc", "src/protocol/broker/server.h", True),
            ("src/adapter/local/local_adapter.cc", "src/app/agent/main.h", False), ("src/app/agent/main.cc", "src/adapter/local/local_adapter.h", True),
            ("sim/nvml/library.cc", "src/backend/nvidia/nvml_abi.h", False), ("sim/nvml/library.cc", "src/base/result.h", False),
            ("sim/main.cc", "src/base/result.h", True), ("src/device/model.cc", "src/os/fd.h", False),
            ("src/device/remote.cc", "src/os/fd.h", True),
            ("src/adapter/cluster/a.cc", "src/adapter/kubelet/a.h", True), ("src/adapter/kubelet/a.cc", "src/adapter/cluster/a.h", False),
            ("src/view/a.cc", "src/node/ledger/ledger.h", True), ("src/view/a.cc", "src/protocol/kube/a.h", False),
            ("src/analysis/a.cc", "src/backend/all.h", True), ("src/analysis/a.cc", "src/backend/nvidia/nvml.h", False),
            ("src/analysis/a.cc", "src/app/penstock/a.h", False)]:
        if allowed(file, included, table, steps) != answer:
            sys.exit(f"the check is broken: {file} including {included} should be {'allowed' if answer else 'refused'}")


self_test()
if found := problems():
    sys.exit("\n".join(found) + f"\n{len(found)} includes that the table of docs/architecture.md does not allow")
