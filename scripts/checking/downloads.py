"""Downloads everything that a check needs before the tests, which run without a network. Skips
what is in the cache."""
import os
import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import processes
from stages import Failed

PAUSES = (10,)  # seconds between tries
MEMORY = 6 << 30  # bytes of memory that building parts in parallel with the programs needs


@dataclass
class Download:
    what: str
    command: list  # prints the folders and versions that it provides
    remedy: list | None = None  # run before another try


def before_the_build(source: Path) -> list[Download]:
    return [
        Download("Python packages of the tests", [source / "scripts/python", "-c",
                                                  "import sys; print(sys.prefix)"]),
        Download("headers, Go modules and a driver for the conformance tests",
                 [source / "scripts/python", source / "tests/support/downloads.py"]),
        Download("parts of a Kubernetes", [source / "tests/e2e/cluster/parts.py"]),
    ]


def after_the_build(source: Path, programs: Path) -> list[Download]:
    """The image's packages are those whose libraries the programs use."""
    update = [source / "scripts/setup", "--update"]
    return [Download("Debian packages of the image",
                     [source / "deploy/image/build", "--fetch", "--programs", programs], update)]


def for_everything(source: Path) -> list[Download]:
    """The additional downloads of --all."""
    return [Download("released versions of Penstock", [source / "tests/e2e/released.py"])]


def memory_available() -> int:
    try:
        text = Path("/proc/meminfo").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in text.splitlines()
                 if line.startswith("MemAvailable:")), 0)


def fetch(downloads: list[Download], log: Path, nice: bool = False, say=print,
          pauses=PAUSES) -> str:
    """Runs all downloads, and returns what they provide; raises one Failed that names each missing
    one."""
    environment = {name: value for name, value in os.environ.items() if name != "PENSTOCK_OFFLINE"}
    provided, missing = [], []
    for one in downloads:
        output = _tried(one, log, ["nice", "-n", "10"] if nice else [], environment, say, pauses)
        if isinstance(output, str):
            provided.append(output)
        else:
            missing.append(f"  {one.what}: {output[0]}")
    if missing:
        raise Failed("these are not in the cache and could not be fetched (is there a network?):\n"
                     + "\n".join(missing) + f"\nwhat the programs said is in {log}")
    return "\n".join(line for output in provided for line in _facts(output))


def _facts(output: str) -> list[str]:
    """Provided folders, with their modification times, since one of the same name may have been
    rebuilt; and versions, NAME=VERSION."""
    found = []
    for line in output.splitlines():
        if line.startswith("/") and Path(line).exists():
            found.append(f"{line} {Path(line).stat().st_mtime_ns}")
        elif re.fullmatch(r"[\w.+:-]+=\S+", line):
            found.append(line)
    return found


def _tried(one: Download, log: Path, prefix: list, environment: dict, say, pauses):
    """The output of a download, or a list with its last line after its last failure."""
    said = ""
    for pause in (*pauses, None):
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "ab") as errors:
            at = errors.tell()
            with processes.started([*prefix, *one.command], stdout=subprocess.PIPE, stderr=errors,
                                   text=True, env=environment) as process:
                output = process.stdout.read()
        if process.returncode == 0:
            return output
        with open(log, errors="replace") as file:
            file.seek(at)
            said = next((line for line in reversed(file.read().splitlines()) if line.strip()), "")
        if pause is not None:
            say(f"{one.what}: failed ({said}); another try in {pause} s")
            time.sleep(pause)
            if one.remedy:
                processes.logged(one.remedy, log)
    return [said or f"exit status {process.returncode}"]
