#!/usr/bin/env python3
"""Refuses words that docs/glossary.md replaces in the comments of the sources, and one name for two public types.

usage: vocabulary_test.py [SOURCE_DIR]"""
import re
import sys
from collections import defaultdict
from pathlib import Path

root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2]).resolve()

# The words that the glossary replaces, as far as a pattern can distinguish them from an ordinary word. Quoted or with dots, a word is a key or a file's name.
BANNED = re.compile(r"\b(anew|(?:some|no|any)body(?:'s)?|wish(?:es|ed)?|(?:not )?to be had|(?<![.\"`])doors?(?![\"`]|\.\w)|for ever|kin|riddle)\b", re.I)

# A literal or a comment; text in a literal is not a comment.
TOKEN = re.compile(r'R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'|(?P<comment>//[^\n]*|/\*.*?\*/)', re.S)

# Names that several modules may define in their own namespaces: the types that every protocol has, and each module's published state.
SHARED = {"Client", "Request", "Server", "ServerLimits", "Snapshot"}
# Declares NVML's own types under NVML's names.
FOREIGN = "backend::nvidia::abi"
TYPE = re.compile(r"^(?:struct|class|enum class) ([A-Z]\w*)(?= (?:final )?[:{])|^using ([A-Z]\w*) =", re.M)


def comments(text: str) -> list[tuple[int, str]]:
    """Comments with the numbers of their first lines."""
    return [(text.count("\n", 0, match.start()) + 1, match["comment"]) for match in TOKEN.finditer(text) if match["comment"]]


def banned_words(sources: list[Path]) -> list[str]:
    found = []
    for path in sources:
        for line, comment in comments(path.read_text(errors="replace")):
            found += [f"{path.relative_to(root)}:{line + comment.count(chr(10), 0, match.start())}: \"{match.group()}\""
                      for match in BANNED.finditer(comment)]
    return found


def colliding_types(headers: list[Path]) -> list[str]:
    names = defaultdict(set)
    for path in headers:
        text = path.read_text()
        namespace = re.search(r"^namespace penstock::([a-z_:]+) \{", text, re.M)
        for match in TYPE.finditer(text):
            names[match[1] or match[2]].add(namespace[1] if namespace else "")
    return [f"{name}: in {' and in '.join(sorted(spaces - {FOREIGN}))}" for name, spaces in sorted(names.items())
            if len(spaces - {FOREIGN}) > 1 and name not in SHARED]


def self_test():
    """Verifies that the check itself can fail."""
    text = 'int a;  // nobody\nconst char* b = "nobody // anew";\n/* x\n   anew */\n'
    assert [(line, BANNED.findall(comment)) for line, comment in comments(text)] == [(1, ["nobody"]), (3, ["anew"])]
    assert TYPE.findall("struct A {\nclass B final : public C {\nstruct D;\nusing E = int;\n") == [("A", ""), ("B", ""), ("", "E")]


self_test()
sources = [path for top in ("src", "hook", "sim", "tests", "bench") for path in sorted((root / top).rglob("*")) if path.suffix in (".h", ".cc", ".c")]
headers = [path for path in sources if path.suffix == ".h" and path.relative_to(root).parts[0] in ("src", "hook") and not {"testing", "fake"} & set(path.parts)]
assert headers, f"no sources under {root}"
words, types = banned_words(sources), colliding_types(headers)
if words:
    print(*words, f"{len(words)} words that docs/glossary.md replaces", sep="\n")
if types:
    print(*types, f"{len(types)} names of several types; make each name specific", sep="\n")
sys.exit(1 if words or types else 0)
