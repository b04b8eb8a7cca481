"""Runs NVIDIA's own programs on a simulated machine as on a real one."""
import os
import subprocess
from pathlib import Path

import downloads

# NVIDIA's programs read the fixed path /sys, so the simulated machine's sys is mounted there.
IN_ITS_SYS = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0/sys" /sys && exec "$@"']


def command(root: Path, program: str, *arguments) -> list[str]:
    return [*IN_ITS_SYS, str(root), str(downloads.nvidia_programs() / program),
            *map(str, arguments)]


def environment(root: Path) -> dict[str, str]:
    return {**os.environ, "LD_LIBRARY_PATH": str(root / "usr/lib/x86_64-linux-gnu")}


def run(root: Path, program: str, *arguments, check=True) -> subprocess.CompletedProcess:
    done = subprocess.run(command(root, program, *arguments), env=environment(root), timeout=120,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 0 or not check, f"{program}: {done.returncode}\n{done.stderr}"
    return done
