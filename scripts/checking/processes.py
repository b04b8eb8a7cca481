"""Programs that a check starts. Each has its own process group, which ends when the check is
interrupted or killed, so that no program writes into a later check."""
import contextlib
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

_running: set[subprocess.Popen] = set()
_ended = False  # set once no more programs may start
_lock = threading.Lock()


@contextlib.contextmanager
def started(command: list, **options):
    """A subprocess.Popen of this command, without standard input."""
    words = ["setpriv", "--pdeathsig", "TERM", *(str(word) for word in command)]
    with _lock:
        if _ended:
            raise RuntimeError("the check is ending")
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, process_group=0, **options)
        _running.add(process)
    try:
        with process:
            yield process
    except BaseException:
        _end([process])
        raise
    finally:
        with _lock:
            _running.discard(process)


def lines(command: list, **options):
    """Yields the lines of stdout and stderr as they arrive; returns the exit status."""
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                 errors="replace", **options) as process:
        for line in process.stdout:
            yield line.rstrip("\n")
    return process.returncode


def logged(command: list, log: Path, seen=lambda line: None, **options) -> bool:
    """Appends the output to a file and passes each line to `seen`; returns whether the command
    succeeded."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "a") as file:
        output = lines(command, **options)
        while True:
            try:
                line = next(output)
            except StopIteration as end:
                return end.value == 0
            file.write(line + "\n")
            file.flush()
            seen(line)


def shown(command: list, say, **options) -> bool:
    """Prints each line of the output; returns whether the command succeeded."""
    output = lines(command, **options)
    while True:
        try:
            say(next(output))
        except StopIteration as end:
            return end.value == 0


def end_all():
    """Ends the running programs, and lets no more start: SIGTERM first, SIGKILL after a while."""
    global _ended
    with _lock:
        _ended = True
        processes = list(_running)
    _end(processes)


def _end(processes: list[subprocess.Popen], patience: float = 20):
    deadline = time.monotonic() + patience
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGTERM)
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.1, deadline - time.monotonic()))
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def interrupt_on(*signals: int):
    """Makes these signals raise KeyboardInterrupt, like an interrupt from a terminal."""
    for one in signals:
        signal.signal(one, signal.default_int_handler)
