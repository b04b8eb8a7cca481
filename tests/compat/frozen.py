"""Shared by make.py, which makes frozen state, and compat_test.py, which tests that the agent takes it over."""
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "support"), str(HERE)]

MACHINE = HERE / "machine.yaml"
CONFIG = """doors: {assign: [{devices: [0, 1, 2], door: local}]}
telemetry: {interval: 1s, holderLabels: ['experiment']}
usage: {idleAfter: 1h}
"""
NOTE = "trusted.penstock"  # the extended attribute of a lease's control group
# A configuration of docker. Its journal is named after its path, so the path must be the same on
# every machine: below /mnt in a mount namespace.
ENGINE = "engine/daemon.json"
RUNTIME = "/opt/penstock/penstock-runtime"


def id_of(index: int) -> str:
    return f"GPU-00000000-0000-4000-8000-00000000000{index}"


def start_of(pid: int) -> int:
    """The start time of a process, in clock ticks since boot."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def runtime(programs: Path, home: Path, verb: str, *words) -> subprocess.CompletedProcess:
    """`penstock runtime` for the engine whose configuration is below `home`, mounted at /mnt."""
    command = [programs.resolve() / "penstock", "runtime", verb, "--runtime", "docker",
               "--config", f"/mnt/{ENGINE}", "--config-source", "file", "--restart-mode", "none",
               "--state-dir", "/mnt/state", *words]
    mounted = ["unshare", "-m", "sh", "-c", f'mount --bind "{home}" /mnt && exec "$@"', "sh"]
    return subprocess.run([*mounted, *map(str, command)], capture_output=True, text=True,
                          timeout=60)


def texts_of(home: Path, programs: Path, pids: dict[str, int]) -> dict[str, str]:
    """The texts that differ between machines, by placeholder."""
    texts = {"@HOME@": str(home), "@PROGRAMS@": str(programs.resolve()), "@BOOT_ID@": boot_id()}
    for name, pid in pids.items():
        texts[f'"pid": @PID_{name}@'] = f'"pid": {pid}'
        texts[f'"start": @START_{name}@'] = f'"start": {start_of(pid)}'
    return texts


def freeze(text: str, texts: dict[str, str]) -> str:
    for placeholder, value in sorted(texts.items(), key=lambda one: -len(one[1])):
        text = text.replace(value, placeholder)
    return text


def thaw(text: str, texts: dict[str, str]) -> str:
    for placeholder, value in texts.items():
        text = text.replace(placeholder, value)
    return text


def dump(document) -> str:
    return json.dumps(document, indent=1) + "\n"


def must_be_root():
    if os.getuid() != 0:
        raise SystemExit("control groups and mount namespaces need root")
