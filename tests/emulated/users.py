"""Processes for the tests in the emulated machine: programs that end, and users of device files."""
import subprocess
from pathlib import Path

from node import wait_until

PATIENCE = 300  # seconds
KFD = Path("/dev/kfd")


def run(*words, **options) -> subprocess.CompletedProcess:
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL, **options)


def hold(path: Path, user: int = 0, name: str = "holder") -> subprocess.Popen:
    """A process that has this file open; its arguments are this name and 100000."""
    drop = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
    process = subprocess.Popen([*drop, "bash", "-c", 'exec 9<"$1" && echo open && exec -a "$0" sleep 100000', name, str(path)],
                               stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "open\n"
        # The program it becomes has its name.
        wait_until(lambda: b"100000" in Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")[1:2], "the holder's name")
    except BaseException:
        end(process)
        raise
    return process


def end(process: subprocess.Popen):
    process.kill()
    process.wait()
