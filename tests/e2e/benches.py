"""Folders of test clusters: made, swept after a run that was killed, their logs kept."""
import os
import shutil
import tempfile
from pathlib import Path

from cluster import Cluster

PREFIX = "penstock-e2e-"


def make() -> Path:
    """A new folder; its name says whose it is. Not in $TMPDIR: the paths of unix sockets must be short, and /var is private inside."""
    directory = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir="/tmp"))
    directory.chmod(0o755)
    return directory


def remove(directory: Path):
    Cluster(directory).down()
    shutil.rmtree(directory, ignore_errors=True)


def sweep():
    """Removes what a run left that was killed before it could."""
    for leftover in Path("/tmp").glob(f"{PREFIX}*"):
        owner = leftover.name.removeprefix(PREFIX).split("-")[0]
        if owner.isdigit() and not Path(f"/proc/{owner}/exe").exists():  # a zombie has none
            remove(leftover)


def keep_logs(bench: Cluster, folder: Path):
    for log in bench.dir.glob("**/log/*.log"):
        if "containers" not in log.parts:
            target = folder / log.relative_to(bench.dir)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(log, target)


def end(bench: Cluster, options, name: str = ""):
    """Keeps the logs, and removes the cluster unless it is to be looked at."""
    if logs := options.getoption("--logs"):
        keep_logs(bench, logs / name)
    if options.getoption("--keep"):
        print(f"\nthe cluster still runs; look around with: tests/e2e/cluster/cluster.py in {bench.dir} bash\n"
              f"end it with: tests/e2e/cluster/cluster.py down {bench.dir}")
    else:
        remove(bench.dir)
