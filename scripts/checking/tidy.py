"""Runs clang-tidy on the product's sources. A source without findings is recorded in the cache
with the hash of its compilation inputs, so that an interrupted run resumes where it stopped, and a
later run, also in another checkout, checks only what changed."""
import json
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import processes
import tree
from cache import Cache
from inputs import digest

FINDING = re.compile(r"^(/\S+:\d+:\d+: (?:warning|error): .*)$", re.M)
INCLUDE = re.compile(r'^\s*#\s*include "([^"]+)"', re.M)
GENERATED = re.compile(r"(\w+?)(?:\.grpc)?\.pb\.h")  # from the .proto file of the same name
# What Debian calls packages that have headers, and those of clang-tidy and its libraries.
TOOLS = re.compile(r"-dev(:|\s)|clang|llvm|^protobuf-compiler")
FOLDERS = ("src", "hook", "sim")  # of the product; also the search path of quoted includes
KEPT = 5_000


@dataclass
class Source:
    file: Path
    command: str  # of the compiler


def sources(root: Path, build: Path) -> list[Source]:
    """The sources that the build compiles, except tests."""
    commands = json.loads((build / "compile_commands.json").read_text())
    found = {}
    for entry in commands:
        file = Path(entry["directory"], entry["file"])
        below = file.parts[len(root.parts)] if file.is_relative_to(root) else ""
        if below in FOLDERS and file.suffix == ".cc" and not file.name.endswith("_test.cc"):
            found[file] = entry["command"].replace(str(build), "BUILD").replace(str(root), "SOURCE")
    return [Source(file, command) for file, command in sorted(found.items())]


def tools() -> str:
    """The installed packages, with their versions, that a result depends on."""
    listed = subprocess.run(["dpkg-query", "-W"], check=True, capture_output=True, text=True).stdout
    return "\n".join(line for line in listed.splitlines() if TOOLS.search(line))


class Tidy:
    """`tools`: see above; a change invalidates the recorded results."""

    def __init__(self, root: Path, build: Path, cache: Cache, tools: str, say=print):
        self.root, self.build, self.cache, self.say = root, build, cache, say
        self._settings = [tree.content_hash(root / ".clang-tidy"), tools]
        self._texts: dict[Path, str] = {}
        self._protos = {file.stem: file for folder in FOLDERS
                        for file in sorted((root / folder).rglob("*.proto"))}

    def findings(self, log: Path, again: bool = False) -> list[str]:
        """Checks each source without a valid recorded result. `log`: the folder for the tool's
        output per source."""
        keys = {one.file: self.key(one) for one in sources(self.root, self.build)}
        left = [file for file, key in keys.items()
                if again or not self.cache.read(f"tidy/{key}")]
        self.say(f"{len(left)} of {len(keys)} sources; the others had no findings before")
        found: set[str] = set()

        def look(file: Path):
            lines: list[str] = []
            passed = self.look(file, log, lines.append)
            its = FINDING.findall("\n".join(lines))
            if passed and not its:
                self.cache.write(f"tidy/{keys[file]}", {"source": str(file.relative_to(self.root))})
            elif not its:
                its = [f"{file}: clang-tidy failed: {lines[-1] if lines else 'no output'}"]
            found.update(its)
        pool = ThreadPoolExecutor(os.cpu_count() or 1)
        try:
            list(pool.map(look, left))
        finally:
            pool.shutdown(cancel_futures=True)
        self.cache.prune("tidy", KEPT)
        return sorted(found)

    def look(self, file: Path, log: Path, seen) -> bool:
        command = ["clang-tidy-14", "-quiet", "-p", self.build, file]
        name = str(file.relative_to(self.root)).replace("/", "-")
        return processes.logged(command, log / f"{name}.log", seen)

    def key(self, source: Source) -> str:
        reached = {source.file}
        left = [source.file]
        while left:
            file = left.pop()
            for name in INCLUDE.findall(self._text(file)):
                near = [file.parent, self.root, *(self.root / one for one in FOLDERS)]
                header = next((one / name for one in near if (one / name).is_file()), None)
                if generated := GENERATED.fullmatch(name):
                    header = self._protos.get(generated.group(1))
                if header and header not in reached:
                    reached.add(header)
                    left.append(header)
        texts = [(str(file.relative_to(self.root)), self._text(file)) for file in sorted(reached)]
        return digest(self._settings, source.command, texts)

    def _text(self, file: Path) -> str:
        if file not in self._texts:
            self._texts[file] = file.read_text(errors="replace")
        return self._texts[file]
