"""Computes one key of all inputs of a suite: the suite's programs, the files it can read, the
programs of the build that it can start, and the machine. The key errs on the side of too many
inputs: a suite is skipped only if none of them changed since it passed."""
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import tree
from suites import Suite

SCHEME = 2  # increase it when this file changes the meaning of a key
# Tools that tests run. Their packages are part of the key already; this adds tools that no package
# installed.
TOOLS = ["ar", "bash", "cc", "clang-format-14", "cmake", "conmon", "crun", "ctest",
         "curl", "faketime", "fish", "g++", "gcc", "go", "ip", "iptables", "ldconfig", "nft",
         "openssl", "podman", "prometheus", "promtool", "python3", "runc", "setpriv", "sh", "strace",
         "systemd-analyze", "unshare", "zsh"]
# A suite depends on these files only through the program that is built from them; no test reads
# them.
UNIT_TESTS = re.compile(r"_test\.cc$|/testing/.*\.(cc|h)$")
# No other test reads what is in such a file.
TESTS = re.compile(r"^tests/.*/(test_[^/]*|[^/]*_test)\.py$")
# Reads all sources, and is never skipped for a change of one.
READS_SOURCES = "tests/architecture/"
NAMES_A_PAGE = re.compile(rb"[\w.*-]+\.md\b")
# base/testing/build_tree.h contains this text; a program with it finds the build folder and the
# sources.
FINDS_THE_TREE = b"CMakeCache.txt"


def digest(*parts: object) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(json.dumps(part, sort_keys=True, default=str).encode() + b"\0")
    return found.hexdigest()[:32]


def _output(*command) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout
    except OSError:
        return ""


def machine(downloads: str) -> dict[str, str]:
    """The inputs of all suites. `downloads`: the result of downloads.fetch(); it includes the
    tests' own Python, whose folder is named by the hash of its packages."""
    tools = []
    for name in TOOLS:
        if path := shutil.which(name):
            file = Path(path).resolve()
            tools.append((name, str(file), file.stat().st_size, file.stat().st_mtime_ns))
    groups = re.findall(r"^\S+ (/sys/fs/cgroup\S*) (\S+)", _mounts(), re.M)
    return {"packages": digest(_output("dpkg-query", "-W")), "tools": digest(tools),
            "kernel": digest(platform.release(), platform.machine(), groups),
            "user": digest(os.getuid()), "downloads": digest(downloads)}


def _pages_in(text: bytes) -> set[str]:
    return {name.decode() for name in NAMES_A_PAGE.findall(text)}


def _mounts() -> str:
    try:
        return Path("/proc/self/mounts").read_text()
    except OSError:
        return ""


class Inputs:
    """The keys for one state of sources and build; `machine` as above."""

    def __init__(self, source: Path, build: Path, machine: dict[str, str]):
        self.source, self.build, self.machine = source.resolve(), build.resolve(), machine
        self.files = tree.manifest(self.source)
        self._hashes: dict[Path, str] = {}
        self._named: dict[Path, set[str]] = {}
        self._programs: str | None = None

    def of(self, suite: Suite) -> dict[str, str] | None:
        """Named ingredients of the key; None if the suite cannot have one because a part is
        missing."""
        command = [Path(word) for word in suite.tests[0].command]
        if not command or not command[0].is_file():
            return None
        built = [path for path in command if self._below(path, self.build)]
        programs = [path for path in built if path.is_file() and os.access(path, os.X_OK)]
        named = [path for path in command if self._below(path, self.source) and path not in built]
        commands = self._commands(suite)
        found = dict(self.machine, scheme=digest(SCHEME), tests=digest(commands))
        if programs and programs == built:
            found["program"] = digest([self._hash(path) for path in programs])
            if any(self._finds_the_tree(path) for path in programs):
                found["programs of the build"] = self.programs_of_the_build()
                found["files"] = self._data([self.source / name for name in self.files
                                             if UNIT_TESTS.search(name)])
            elif named:
                found["files"] = self._data_below(named)
        elif built:  # receives the folder of the build's programs as an argument
            found["programs of the build"] = self.programs_of_the_build()
            found["files"] = self._data(self._texts(suite), self._siblings(suite),
                                        pages=_pages_in(commands.encode()) | self._linked(named))
        else:  # reads sources
            found["files"] = digest(self.files)
        return found

    def programs_of_the_build(self) -> str:
        """Everything that a test can start or load: all programs and libraries except the test
        programs. The changelog of the packages is a page. The programs of benchmarks are built
        while tests run; their sources are among the files."""
        if self._programs is None:
            listed = [path for below in ("bin", "lib", "share", "deploy")
                      for path in sorted((self.build / below).rglob("*"))
                      if path.suffix != ".cmake" and "CMakeFiles" not in path.parts
                      and path.name != "changelog.gz" and not path.name.startswith("bench-")]
            listed += [path for path in sorted((self.build / "tests").glob("*"))
                       if not path.name.endswith("_test") and os.access(path, os.X_OK)]
            self._programs = digest([(str(path.relative_to(self.build)), self._hash(path))
                                     for path in listed if path.is_file()])
        return self._programs

    def _commands(self, suite: Suite) -> str:
        """Names, commands and properties, without the location of this checkout."""
        text = json.dumps([(test.name, test.command, test.properties) for test in suite.tests])
        return text.replace(str(self.build), "BUILD").replace(str(self.source), "SOURCE")

    def _data(self, readers: list[Path], ignored: set[str] = frozenset(),
              pages: set[str] = frozenset()) -> str:
        """All files except unit tests and `ignored`. Of pages of documentation only `pages` and
        those that one of the readers names: most changes of them have no effect on any test."""
        pages = pages.union(*(self._pages_named_by(path) for path in readers))
        return digest({name: its for name, its in self.files.items()
                       if not UNIT_TESTS.search(name) and name not in ignored
                       and (not name.endswith(".md") or Path(name).name in pages
                            or "*.md" in pages)})

    def _texts(self, suite: Suite) -> list[Path]:
        """The files below tests/ by which a suite can read a page: those of its own folder, and of
        the others what is not itself a test."""
        words = [Path(word) for test in suite.tests for word in test.command]
        own = {path.resolve().relative_to(self.source).parts[:2]
               for path in words if self._below(path, self.source)
               and not self._below(path, self.build)}
        return [self.source / name for name in self.files
                if name.startswith("tests/") and not name.endswith(".md")
                and (Path(name).parts[:2] in own
                     or not (TESTS.search(name) or name.startswith(READS_SOURCES)))]

    def _pages_named_by(self, path: Path) -> set[str]:
        if path not in self._named:
            self._named[path] = _pages_in(path.read_bytes() if path.is_file() else b"")
        return self._named[path]

    def _linked(self, tests: list[Path]) -> set[str]:
        """The pages that are named by pages that a test itself names: it may follow their links."""
        named = set().union(*(self._pages_named_by(path) for path in tests))
        return set().union(*(self._pages_named_by(self.source / name) for name in self.files
                             if name.endswith(".md") and Path(name).name in named))

    def _data_below(self, paths: list[Path]) -> str:
        tops = [str(path.resolve().relative_to(self.source)) for path in paths]
        return digest({name: its for name, its in self.files.items()
                       if any(name == top or name.startswith(top + "/") for top in tops)})

    def _siblings(self, suite: Suite) -> set[str]:
        own = [Path(word) for word in suite.tests[0].command if word.endswith("_test.py")]
        if len(own) != 1 or not own[0].is_file():
            return set()
        others = {path for path in own[0].parent.glob("*_test.py")} - {own[0]}
        reached = [own[0]]
        while reached:
            text = reached.pop().read_text(errors="replace")
            for path in [one for one in others if re.search(rf"\b{re.escape(one.stem)}\b", text)]:
                others.remove(path)
                reached.append(path)
        return {str(path.resolve().relative_to(self.source)) for path in others}

    def _finds_the_tree(self, program: Path) -> bool:
        return FINDS_THE_TREE in program.read_bytes()

    def _hash(self, path: Path) -> str:
        if path not in self._hashes:
            self._hashes[path] = tree.content_hash(path)
        return self._hashes[path]

    @staticmethod
    def _below(path: Path, folder: Path) -> bool:
        return path.is_absolute() and path.resolve().is_relative_to(folder)
