"""Machine-wide settings that a kubelet changes, and one that it needs once several nodes share the
machine ("inotify_init: too many open files"). The values from before the first running cluster are
restored after the last one."""
import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

SETTINGS = ("vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops",
            "fs/inotify/max_user_instances")
INSTANCES = 4096
STATE = Path("/tmp/penstock-e2e-sysctls")  # the values before, and a link for each cluster that is up


def value(name: str) -> Path:
    return Path("/proc/sys", name)


@contextlib.contextmanager
def _alone() -> Iterator[list[Path]]:
    """Yields the links of running clusters, without those whose folder is gone."""
    STATE.mkdir(mode=0o700, exist_ok=True)
    if STATE.stat().st_uid != os.getuid():
        raise PermissionError(f"{STATE} belongs to another user")
    with open(STATE / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for link in STATE.glob("user-*"):
            if not link.exists():
                link.unlink()
        yield list(STATE.glob("user-*"))


def link_of(directory: Path) -> Path:
    return STATE / f"user-{str(directory).replace('/', '-')}"


def take(directory: Path):
    """Registers the cluster of that folder, and raises the limit that its nodes need."""
    with _alone() as users:
        if not users:
            before = [value(name).read_text().strip() for name in SETTINGS]
            (STATE / "before").write_text("\n".join(before))
        if (link := link_of(directory)) not in users:
            link.symlink_to(directory)
        value("fs/inotify/max_user_instances").write_text(str(INSTANCES))


def give_back(directory: Path):
    """Unregisters the cluster, and restores the settings after the last one."""
    with _alone() as users:
        if (link := link_of(directory)) in users:
            link.unlink()
            if users == [link]:
                for name, before in zip(SETTINGS, (STATE / "before").read_text().split()):
                    value(name).write_text(before)
