"""Control groups that a test made, in whatever hierarchies this machine has. Says nothing about
what should be true; the tests do."""
import contextlib
import os
from pathlib import Path


def mounts() -> list[Path]:
    """Where hierarchies of version 1 and of version 2 are mounted."""
    lines = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    return [Path(at) for _, at, kind, *_ in lines if kind in ("cgroup", "cgroup2")]


def below(top: Path) -> list[Path]:
    """That group, after all below it. Groups may go away meanwhile, which ends pathlib's rglob with
    an error."""
    return [Path(folder) for folder, _, _ in os.walk(top, topdown=False)]


def remove(name: str):
    """The group NAME and all below it, in each hierarchy; they have no processes any more."""
    for top in (at / name for at in mounts()):
        for group in below(top):
            with contextlib.suppress(FileNotFoundError):
                group.rmdir()
