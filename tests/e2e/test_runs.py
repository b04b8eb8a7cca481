"""Runs of these tests in parallel each have their own cluster, and the remains of a killed run are
removed."""
import os
import subprocess
import sys
from pathlib import Path

import sysctls
from actors import wait_for
from inside import cgroup_hierarchies

RUN = """
import sys, time
sys.path.insert(0, sys.argv[1])
import benches
bench = benches.make()
print(bench.dir, flush=True)
bench.up(tied=True)
print("up", flush=True)
time.sleep(100000)
"""


def left_of(directory: Path) -> list[str]:
    """The remains of the cluster in that folder: control groups, processes, the folder itself, and
    its part of the machine's settings."""
    groups = [group for root in cgroup_hierarchies()
              for group in root.glob(f"bench-{directory.name}-*")]
    processes = [file.parent for file in Path("/proc").glob("[0-9]*/cmdline")
                 if os.fsencode(directory) in content(file)]
    files = [file for file in (directory, sysctls.link_of(directory)) if os.path.lexists(file)]
    return [str(path) for path in (*groups, *processes, *files)]


def content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def test_a_run_that_is_killed_leaves_nothing_and_the_one_beside_it_goes_on(cluster):
    other = subprocess.Popen([sys.executable, "-B", "-c", RUN, Path(__file__).parent],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    directory = Path(other.stdout.readline().strip())
    assert other.stdout.readline() == "up\n"
    assert len(left_of(directory)) > 8, left_of(directory)
    other.kill()
    other.wait()
    wait_for(lambda: not left_of(directory), 120, "nothing to be left of the run that was killed",
             lambda: left_of(directory))
    instances = sysctls.value("fs/inotify/max_user_instances").read_text()
    assert int(instances) == sysctls.INSTANCES, "the other cluster needs them"
    assert cluster.api.get("node", "n1")["metadata"]["name"] == "n1"
