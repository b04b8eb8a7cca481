#!/usr/bin/env python3
"""Refuses words that docs/glossary.md replaces in comments, in texts that users read and in the documentation, and one name for two public types.

usage: vocabulary_test.py [SOURCE_DIR]"""
import re
import sys
from collections import defaultdict
from pathlib import Path

root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2]).resolve()

# The words that the glossary replaces, as far as a pattern can distinguish them from an ordinary word. Quoted or with dots, a word is a key or a file's name.
BANNED = re.compile(r"\b(anew|(?:some|no|any)body(?:'s)?|wish(?:es|ed)?|(?:not )?to be had|(?<![.\"`])doors?(?![\"`]|\.\w)|for ever|kin|riddle)\b", re.I)

# Words that are unclear where a user reads them without their context. A door is deprecated in keys, verbs and labels, and gone from sentences.
DOOR = r"(?<![.\"`])doors?(?![\"`]|\.\w)"
SENTENCE = r"(?:the|an?|which|no|each|its|same|other|new|local|kubelet(?:'s)?|between|this|that|is|to|from|at) doors?"
BANNED_IN_TEXTS = re.compile(BANNED.pattern[:-3].replace(DOOR, SENTENCE) + r"|told|tells|unwell|is ill|let go of|taken up|stands? in line|believed?|the last word|by itself)\b", re.I)

# A literal or a comment; what is in a literal is no comment.
TOKEN = re.compile(r'(?P<raw>R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)")|(?P<text>"(?:\\.|[^"\\\n])*")|(?<!\w)\'(?:\\.|[^\'\\\n])+\'|(?P<comment>//[^\n]*|/\*.*?\*/)', re.S)

# Names that several modules may define in their own namespaces: the types that every protocol has, and each module's published state.
SHARED = {"Client", "Request", "Server", "ServerLimits", "Snapshot"}
# Declares NVML's own types under NVML's names.
FOREIGN = "backend::nvidia::abi"
TYPE = re.compile(r"^(?:struct|class|enum class) ([A-Z]\w*)(?= (?:final )?[:{])|^using ([A-Z]\w*) =", re.M)


def comments(text: str) -> list[tuple[int, str]]:
    """Comments with the numbers of their first lines."""
    return [(text.count("\n", 0, match.start()) + 1, match["comment"]) for match in TOKEN.finditer(text) if match["comment"]]


def texts(text: str) -> list[tuple[int, str]]:
    """Literals of several words with the numbers of the lines they begin on: those of one word are names and keys."""
    return [(text.count("\n", 0, match.start()) + 1, literal) for match in TOKEN.finditer(text)
            if (literal := match["raw"] or match["text"]) and re.search(r"\w.* .*\w", literal, re.S)]


def prose(text: str) -> list[tuple[int, str]]:
    """The lines of a Markdown page without what it quotes: code, and names in backquotes."""
    text = re.sub(r"^```.*?^```|`[^`\n]*`", lambda match: re.sub(r"[^\n]", " ", match.group()), text, flags=re.M | re.S)
    return list(enumerate(text.split("\n"), 1))


def banned_words(paths: list[Path], pieces, banned: re.Pattern) -> list[str]:
    return [f"{path.relative_to(root)}:{line + piece.count(chr(10), 0, match.start())}: \"{match.group()}\""
            for path in paths for line, piece in pieces(path.read_text(errors="replace")) for match in banned.finditer(piece)]


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
    assert [(line, BANNED_IN_TEXTS.findall(literal)) for line, literal in texts(text + 'f("door", "is told so");')] == [(2, ["nobody", "anew"]), (5, ["told"])]
    assert [(line, BANNED.findall(piece)) for line, piece in prose("`a door`\n```\nanew\n```\nthe door\n") if BANNED.search(piece)] == [(5, ["door"])]
    assert TYPE.findall("struct A {\nclass B final : public C {\nstruct D;\nusing E = int;\n") == [("A", ""), ("B", ""), ("", "E")]


self_test()
sources = [path for top in ("src", "hook", "sim", "tests", "bench") for path in sorted((root / top).rglob("*")) if path.suffix in (".h", ".cc", ".c")]
headers = [path for path in sources if path.suffix == ".h" and path.relative_to(root).parts[0] in ("src", "hook") and not {"testing", "fake"} & set(path.parts)]
assert headers, f"no sources under {root}"
programs = [path for path in sources if path.relative_to(root).parts[0] in ("src", "hook") and not path.name.endswith("_test.cc") and "testing" not in path.parts]
# Decision records and dated reports keep the words of their time; the glossary lists what it replaces.
pages = [path for top in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs", "deploy", "sim", "tests", "bench") for path in ([root / top] if top.endswith(".md") else sorted((root / top).rglob("*.md")))
         if "adr" not in path.parts and path.name not in ("glossary.md", "coverage.md", "RESULTS.md")]
assert programs and pages
words = banned_words(sources, comments, BANNED) + banned_words(programs, texts, BANNED_IN_TEXTS) + banned_words(pages, prose, BANNED_IN_TEXTS)
types = colliding_types(headers)
if words:
    print(*words, f"{len(words)} words that docs/glossary.md replaces", sep="\n")
if types:
    print(*types, f"{len(types)} names of several types; make each name specific", sep="\n")
sys.exit(1 if words or types else 0)
