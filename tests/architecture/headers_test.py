#!/usr/bin/env python3
"""Checks that every file of src/, sim/, hook/ and guard/ includes the precompiled headers of the standard library whose names it uses, itself or through one of
our headers. Where headers are precompiled, the compiler does not notice a missing one; the builds with clang (clang-tidy, tests/fuzz/run) have no precompiled
headers and fail.

usage: headers_test.py [SOURCE_DIR]"""
import re
import sys
from pathlib import Path

root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2]).resolve()
FUNCTIONS = "all_of any_of clamp copy copy_if count count_if equal_range fill find find_if for_each lower_bound max max_element min min_element none_of " \
            "remove_if replace reverse set_difference sort stable_sort transform unique upper_bound"
# Header -> what is used of it. Functions that several headers provide are left out.
USES = {
    "algorithm": rf"std::(ranges::)?({'|'.join(FUNCTIONS.split())})\(", "array": r"std::(array<|to_array)", "atomic": r"std::atomic",
    "chrono": r"std::chrono::", "cstdint": r"\bu?int(8|16|32|64)_t\b", "cstring": r"std::(mem(chr|cmp|cpy|move|set)|str(chr|cmp|error|len|ncmp))\(",
    "deque": r"std::deque<", "filesystem": r"std::filesystem::", "fstream": r"std::[io]?fstream\b", "functional": r"std::function<",
    "map": r"std::(multi)?map<", "memory": r"std::(unique_ptr|shared_ptr|weak_ptr|make_unique|make_shared)\b",
    "mutex": r"std::(mutex|recursive_mutex|lock_guard|unique_lock|scoped_lock|once_flag|call_once)\b", "optional": r"std::(optional<|nullopt)",
    "set": r"std::(multi)?set<", "span": r"std::span<", "string": r"std::(string|to_string|getline)\b", "string_view": r"std::string_view\b",
    "thread": r"std::(thread|jthread|this_thread::)", "unordered_map": r"std::unordered_map<", "utility": r"std::(move|pair|exchange|swap|forward)\b",
    "variant": r"std::(variant<|visit\(|get_if<|holds_alternative<|monostate)", "vector": r"std::vector<",
}
OF_C = {"stdint.h": "cstdint", "string.h": "cstring"}
read_before: dict[Path, tuple[set[str], list[Path], str]] = {}


def read(path: Path) -> tuple[set[str], list[Path], str]:
    """The headers of libraries that a file includes, our own headers that it includes, its text without comments."""
    if path not in read_before:
        text = re.sub(r"(?m)(^|\s)//.*$", "", path.read_text(errors="replace"))
        places = [(root / "src" / name, root / name, path.parent / name) for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', text, re.M)]
        ours = [next(place for place in some if place.exists()) for some in places if any(place.exists() for place in some)]
        read_before[path] = set(re.findall(r"^\s*#\s*include\s+<([^>]+)>", text, re.M)), ours, text
    return read_before[path]


def included(path: Path) -> set[str]:
    """The headers of libraries that a file includes, also through ours."""
    found, seen, left = set(), set(), [path]
    while left:
        if (one := left.pop()) not in seen:
            seen.add(one)
            headers, ours, _ = read(one)
            found |= headers
            left += ours
    return found | {OF_C[header] for header in found & set(OF_C)}


def missing(path: Path) -> list[str]:
    headers, text = included(path), read(path)[2]
    return [f"<{header}> for {use.group()}" for header, uses in USES.items() if header not in headers and (use := re.search(uses, text))]


def problems() -> list[str]:
    lists = re.findall(r"set\(standard ([^)]*)\)|penstock_test_pch .* HEADERS \$\{standard\} ([^)]*)\)", (root / "cmake/Penstock.cmake").read_text())
    precompiled = {header for some in lists for text in some for header in re.findall(r"<(\w+)>", text)}
    if not precompiled:
        return ["cmake/Penstock.cmake: no list of precompiled headers was found"]
    found = [f"<{header}> is precompiled (cmake/Penstock.cmake), and this check does not know what is used of it" for header in sorted(precompiled - set(USES))]
    for top in ("src", "sim", "hook", "guard"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in (".h", ".cc"):
                found += [f"{path.relative_to(root)}: include {what}" for what in missing(path)]
    return found


def self_test():
    """Verifies that the check itself can fail."""
    here, header = Path("a.cc"), Path("a.h")
    for headers, ours, answer in [(set(), [], ["<vector> for std::vector<"]), ({"vector"}, [], []), (set(), [header], [])]:
        read_before.update({here: (headers, ours, "std::vector<int> a;"), header: ({"vector"}, [], "")})
        if missing(here) != answer:
            sys.exit(f"the check is broken: with {headers or ours or 'nothing'} included, {missing(here)} should be {answer}")


self_test()
if found := problems():
    sys.exit("\n".join(found) + f"\n{len(found)} headers are missing")
