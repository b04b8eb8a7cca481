"""Finds and removes control groups of a test in all hierarchies of this machine. Contains no
assertions about the programs under test."""
import contextlib
import os
from pathlib import Path


def mounts() -> list[Path]:
    """The mount points of the hierarchies of version 1 and of version 2."""
    lines = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    return [Path(at) for _, at, kind, *_ in lines if kind in ("cgroup", "cgroup2")]


def below(top: Path) -> list[Path]:
    """The groups below this group, deepest first, and the group itself. Unlike pathlib's rglob, does
    not fail if a group is removed concurrently."""
    return [Path(folder) for folder, _, _ in os.walk(top, topdown=False)]


def remove(name: str):
    """Removes the group NAME and all groups below it, in each hierarchy. They must be empty."""
    for top in (at / name for at in mounts()):
        for group in below(top):
            with contextlib.suppress(FileNotFoundError):
                group.rmdir()
