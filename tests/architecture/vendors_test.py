#!/usr/bin/env python3
"""Refuses the names of vendors outside the code that is theirs: src/backend/<vendor>, folders named after a vendor, and what users of a vendor's programs write
(src/api, the command line). A vendor has one row in src/backend/vendors.inc, and its removal leaves nothing.

usage: vendors_test.py [SOURCE_DIR]"""
import re
import sys
from pathlib import Path

root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2]).resolve()

# Modules that know no vendor.
NEUTRAL = ("src/base", "src/os", "src/device", "src/node", "src/view", "src/protocol", "src/adapter", "src/analysis", "src/app/agent", "src/app/devices",
           "src/app/worker", "hook/runtime")
# Folders and words of vendors: their own names, their libraries, programs and error codes.
VENDORS = ("nvidia", "amd", "intel", "gaudi")
WORDS = re.compile(r"nvidia|nvml|cuda|dcgm|rocm|habana|gaudi|acme|\bmps\b|kMps|\bx?xids?\b|\bamd\b|\bGPUs?\b|\bMIG\b", re.I)

# File -> what it may say, and why. A row that matches nothing any more must be removed.
EXCEPTIONS = {
    "src/os/cpu_features.cc": (r"NVIDIA|(?i:amd)", "processors"),
    "src/device/model.cc": (r"GPU", "a kind of device"),
    "src/device/codec.cc": (r"gpu", "a kind of device"),
    "src/device/sharing.cc": (r"mps", "the word of labels, metrics and records for a server of the driver"),
    "src/node/ledger/slot_fields.h": (r"mps", "checkpoints have the same word"),
    "src/node/lease/queue_checkpoint.cc": (r"gpus", "a key of files on disk"),
    "src/protocol/broker/protocol.cc": (r"gpus", "a key of requests of earlier versions"),
    "src/protocol/engine/links.cc": (r"gpus|nvidia-runtime-hook-path|amd|AMD's", "docker --gpus looks for programs of these names"),
    "src/protocol/engine/links.h": (r"nvidia-container-runtime-hook|nvidia-cdi-hook", "docker --gpus looks for programs of these names"),
    "src/protocol/engine/apply/engine_configurator.cc": (r"gpus", "docker's option"),
    "src/analysis/doctor/doctor.h": (r"nvidia_config", "one of the files that are examined"),
    "src/app/worker/main.cc": (r"nvml-library", "an option of earlier versions"),
    "hook/runtime/create.cc": (r"nvidia\.yaml|nvidia\.com/compat32|cuda_compat|enable-cuda-compat", "what only this vendor's containers have"),
    "hook/runtime/low_level.cc": (r"nvidia-container-runtime", "keys of its configuration file"),
    "hook/runtime/main.cc": (r"nvidia-container-runtime\.\w+", "the names under which engines call it"),
}

TOKEN = re.compile(r'(?P<raw>R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)")|(?P<text>"(?:\\.|[^"\\\n])*")|(?<!\w)\'(?:\\.|[^\'\\\n])+\'|(?P<comment>//[^\n]*|/\*.*?\*/)', re.S)


def code(text: str) -> str:
    """The text with its comments blanked, line by line."""
    return TOKEN.sub(lambda match: re.sub(r"[^\n]", " ", match.group()) if match["comment"] else match.group(), text)


def is_neutral(path: Path) -> bool:
    below = path.relative_to(root)
    return (str(below).startswith(tuple(f"{folder}/" for folder in NEUTRAL)) and not set(VENDORS) & set(below.parts[:-1])
            and not {"testing", "fake"} & set(below.parts) and not path.name.endswith("_test.cc"))


def findings(path: Path, text: str, used: set[str]) -> list[str]:
    name = str(path.relative_to(root))
    allowed, _ = EXCEPTIONS.get(name, (None, ""))
    found = []
    for number, line in enumerate(code(text).split("\n"), 1):
        if line.lstrip().startswith("#include"):
            continue
        kept = line
        if allowed and re.search(allowed, line):
            used.add(name)
            kept = re.sub(allowed, "", line)
        found += [f"{name}:{number}: \"{match.group()}\"" for match in WORDS.finditer(kept)]
    return found


def self_test():
    """Verifies that the check itself can fail."""
    assert code('int a;  // nvidia\nf("x // nvidia");') == 'int a;           \nf("x // nvidia");'
    assert findings(root / "src/node/x.cc", 'f("nvidia");\n// nvidia\nkMps;', set()) == ['src/node/x.cc:1: "nvidia"', 'src/node/x.cc:3: "kMps"']
    assert is_neutral(root / "src/node/x.cc") and not is_neutral(root / "src/analysis/migrate/nvidia/x.cc") and not is_neutral(root / "src/backend/all.h")


self_test()
sources = [path for top in ("src", "hook") for path in sorted((root / top).rglob("*")) if path.suffix in (".h", ".cc") and is_neutral(path)]
assert sources, f"no sources under {root}"
used: set[str] = set()
problems = [finding for path in sources for finding in findings(path, path.read_text(), used)]
problems += [f"{name}: the exception for it is not needed" for name in sorted(set(EXCEPTIONS) - used)]
for problem in problems:
    print(problem)
if problems:
    print(f"\n{len(problems)} names of vendors in modules that know none: move the code into a folder of the vendor, or ask its dialect")
sys.exit(bool(problems))
