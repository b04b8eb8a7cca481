"""Locks for what only one check at a time may use: a build folder, and the machine-wide resources
(control groups, /dev/shm, engines). The lock ends with the process that holds it."""
import contextlib
import fcntl
import os
from pathlib import Path

# One for each user, because a user may not open another user's file in a shared folder.
MACHINE = Path("/run/lock" if os.access("/run/lock", os.W_OK) else "/tmp",
               f"penstock-check-{os.getuid()}.lock")


@contextlib.contextmanager
def alone(file: Path, what: str, say=print):
    """Waits for the lock, and prints its holder."""
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(descriptor, "r+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = lock.read().strip() or "another check"
            say(f"waiting for {what}, which {holder} uses")
            fcntl.flock(lock, fcntl.LOCK_EX)
        lock.seek(0)
        lock.truncate()
        lock.write(f"the check of process {os.getpid()} in {os.getcwd()}\n")
        lock.flush()
        yield
