"""Measures a build from scratch, and after a change of one file, on a copy of the tree without the compiler cache. Uses every core, so the
machine should be otherwise idle."""
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from bed import now
from figures import ROOT, Bench

UNIT = "src/node/health/monitor.cc"
HEADER = "src/base/core/result.h"  # almost every file includes it


def seconds(*command, **options) -> float:
    begin = now()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | {"CCACHE_DISABLE": "1"}, **options)
    return (now() - begin) / 1e9


def copy_tree(folder: Path):
    names = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True, check=True)
    for name in filter(None, names.stdout.decode().split("\0")):
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)


def touched(folder: Path, name: str) -> float:
    (folder / name).touch()
    return seconds("cmake", "--build", "--preset", "dev", cwd=folder)


def measure(_programs, _smoke: bool) -> Bench:
    bench = Bench("build", f"Builds of the whole tree (dev preset, {os.cpu_count()} cores, no compiler cache)")
    folder = Path(tempfile.mkdtemp(prefix="penstock-build-", dir="/var/tmp"))
    try:
        copy_tree(folder)
        bench.add("configure", "s", seconds("cmake", "--preset", "dev", cwd=folder))
        bench.add("clean build", "s", seconds("cmake", "--build", "--preset", "dev", cwd=folder), goal=360)
        bench.add("nothing changed", "s", seconds("cmake", "--build", "--preset", "dev", cwd=folder))
        bench.add(f"{UNIT} touched", "s", touched(folder, UNIT), goal=60)
        bench.add(f"{HEADER} touched", "s", touched(folder, HEADER))
        bench.add("src/node/ledger/ledger.h touched", "s", touched(folder, "src/node/ledger/ledger.h"), goal=60)
    finally:
        shutil.rmtree(folder)
    return bench
