#!/usr/bin/env python3
"""Folders of test clusters: creates them, takes the clusters down however the run ends, and keeps
their logs. Several runs may be active at once: each has its own folders, and only folders of runs
that have ended are removed.

  benches.py watch DIR     waits until standard input ends, then takes the cluster of that
                           folder down unless "keep" was written"""
import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent / "cluster")]

from cluster import Cluster  # noqa: E402

# Not $TMPDIR: the paths of unix sockets must be short, and /var is private inside the cluster.
PLACE, PREFIX = Path("/tmp"), "penstock-e2e-"
OWNED: dict[Path, tuple] = {}  # folder -> its lock, and the process that outlives this one


@contextlib.contextmanager
def one_at_a_time() -> Iterator[None]:
    with open(PLACE / f"{PREFIX}lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def is_owned(directory: Path) -> bool:
    """Whether a process holds the folder's lock, as the run that created it does."""
    with open(directory / "owner", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def make(release: str = "current") -> Cluster:
    """Returns a cluster that is not up, in a new folder. Removes what ended runs left behind."""
    with one_at_a_time():
        for folder in list(PLACE.glob(f"{PREFIX}?*")):
            if (folder / "owner").exists() and not is_owned(folder):
                remove(folder)
        directory = Path(tempfile.mkdtemp(prefix=PREFIX, dir=PLACE))
        lock = open(directory / "owner", "w")
        fcntl.flock(lock, fcntl.LOCK_EX)
    directory.chmod(0o755)
    # The watcher must not be a descendant, because the kill of a hanging run may kill all its
    # descendants: the first process starts another one and exits.
    reader, writer = os.pipe()
    subprocess.run([sys.executable, "-B", __file__, "watch", directory], stdin=reader,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                   check=True)
    os.close(reader)
    OWNED[directory] = (lock, writer)
    return Cluster(directory, release)


def remove(directory: Path):
    Cluster(directory).down()
    shutil.rmtree(directory, ignore_errors=True)


def watch(directory: Path):
    """Exits at once; the child continues in the background."""
    if os.fork():
        os._exit(0)
    if sys.stdin.buffer.read() != b"keep":
        with one_at_a_time():
            if directory.exists():
                remove(directory)


def keep_logs(bench: Cluster, folder: Path):
    for log in (*bench.dir.glob("log/*.log"), *bench.dir.glob("n*/log/*.log")):
        target = folder / log.relative_to(bench.dir)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(log, target)


def end(bench: Cluster, options):
    """Keeps the logs, and removes the cluster unless it is kept for inspection."""
    if logs := options.getoption("--logs"):
        keep_logs(bench, logs)
    lock, writer = OWNED.pop(bench.dir)
    if options.getoption("--keep"):
        (bench.dir / "owner").unlink()  # so that no later run removes it
        os.write(writer, b"keep")
        print(f"\nthe cluster still runs; look around with: tests/e2e/cluster/cluster.py in "
              f"{bench.dir} bash\nend it with: tests/e2e/cluster/cluster.py down {bench.dir}")
    else:
        remove(bench.dir)
    os.close(writer)
    lock.close()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["watch", directory]:
            watch(Path(directory))
        case _:
            sys.exit(__doc__)
