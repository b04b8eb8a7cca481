"""The cache of results that are expensive but can be rebuilt. Nothing depends on it: an entry that
is unreadable, incomplete or from another version counts as absent, and one that cannot be written
is dropped. Several checks may use it at the same time."""
import contextlib
import fcntl
import json
import os
import pwd
import tempfile
from pathlib import Path

VERSION = 1  # of the entries' format; increase it when the format changes


def folder() -> Path:
    """The same folder as in scripts/python and tests/e2e/cluster/parts.py."""
    home = os.environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path(home) / ".cache") / "penstock"
    return Path(os.environ.get("PENSTOCK_CACHE") or default)


class Cache:
    """Entries are dictionaries, by name; a name may contain slashes."""

    def __init__(self, below: Path):
        self.folder = below
        self.problem = ""  # why the last entry could not be written

    def read(self, name: str) -> dict | None:
        try:
            entry = json.loads((self.folder / name).read_text())
        except (OSError, ValueError):
            return None
        if not isinstance(entry, dict) or entry.get("version") != VERSION:
            return None
        return entry["value"] if isinstance(entry.get("value"), dict) else None

    def write(self, name: str, value: dict) -> bool:
        target = self.folder / name
        scratch = None
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            descriptor, scratch = tempfile.mkstemp(prefix=".new-", dir=target.parent)
            with open(descriptor, "w") as file:
                json.dump({"version": VERSION, "value": value}, file)
            os.replace(scratch, target)
            return True
        except OSError as error:
            self.problem = str(error)
            if scratch:
                with contextlib.suppress(OSError):
                    os.unlink(scratch)
            return False

    def update(self, name: str, change) -> bool:
        """Replaces an entry by change(entry or None), atomically with respect to other updates of
        it."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = open(self.folder / ".lock", "w")
        except OSError as error:
            self.problem = str(error)
            return False
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return self.write(name, change(self.read(name)))

    def prune(self, below: str, keep: int):
        """Removes the oldest entries of a folder, and the files of interrupted writers."""
        with contextlib.suppress(OSError):
            files = [(path.stat().st_mtime, path) for path in (self.folder / below).iterdir()]
            for _, path in sorted(files)[: max(0, len(files) - keep)]:
                path.unlink(missing_ok=True)
