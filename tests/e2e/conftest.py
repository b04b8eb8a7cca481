"""Fixtures of the end-to-end tests: one cluster and one simulated DGX A100 for all scenarios, an agent that a scenario may break, and
between scenarios a node that is whole again. Says nothing about what Penstock should do; the scenarios do."""
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent / "cluster")]

from actors import Agent, Kubernetes, Machine  # noqa: E402
from cluster import Cluster  # noqa: E402

PREFIX = "penstock-e2e-"
ROOT = Path(__file__).parents[2]


def pytest_addoption(parser):
    parser.addoption("--programs", type=Path, default=ROOT / "build/dev/bin", help="folder of penstock, penstock-agent and their kin")
    parser.addoption("--logs", type=Path, default=None, help="folder to keep the logs of the daemons and agents in")
    parser.addoption("--keep", action="store_true", help="leave the cluster running, to look around in it")


def pytest_configure(config):
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # being told to end is a reason to clean up


def remove(directory: Path):
    Cluster(directory).down()
    shutil.rmtree(directory, ignore_errors=True)


def sweep():
    """Removes what a run left that was killed before it could; a folder's name says whose it was."""
    for leftover in Path("/tmp").glob(f"{PREFIX}*"):
        owner = leftover.name.removeprefix(PREFIX).split("-")[0]
        if owner.isdigit() and not Path(f"/proc/{owner}/exe").exists():  # a zombie has none
            remove(leftover)


@pytest.fixture(scope="session")
def cluster(request):
    if os.getuid() != 0:
        pytest.fail("the end-to-end tests start a Kubernetes and need root: tests/e2e/run")
    sweep()
    # Not in $TMPDIR: the paths of unix sockets must be short, and /var is private inside the cluster.
    directory = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir="/tmp"))
    directory.chmod(0o755)
    bench = Cluster(directory)
    try:
        # The kubelet writes the node's status every 10 s; here every second, so that scenarios wait for Penstock and not for that.
        bench.up(tied=not request.config.getoption("--keep"), kubelet_settings="nodeStatusUpdateFrequency: 1s\n")
        yield bench
    finally:
        keep_logs(bench, request.config.getoption("--logs"))
        if request.config.getoption("--keep"):
            print(f"\nthe cluster still runs; look around with: tests/e2e/cluster/cluster.py in {directory} bash\n"
                  f"end it with: tests/e2e/cluster/cluster.py down {directory}")
        else:
            remove(directory)


def keep_logs(bench: Cluster, folder: Path | None):
    if folder is None:
        return
    shutil.rmtree(folder, ignore_errors=True)
    for log in bench.dir.glob("**/log/*.log"):
        if "containers" not in log.parts:
            target = folder / log.relative_to(bench.dir)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(log, target)


@pytest.fixture(scope="session")
def kubernetes(cluster):
    return Kubernetes(cluster)


@pytest.fixture(scope="session")
def machine(cluster, request):
    """A simulated DGX A100 that the node's agent finds."""
    return Machine(cluster.dir / "machine", request.config.getoption("--programs"))


@pytest.fixture(scope="session")
def the_agent(cluster, machine, request):
    agent = Agent(cluster, machine, request.config.getoption("--programs"))
    yield agent
    if agent.running() and not request.config.getoption("--keep"):
        agent.stop()  # it removes what it made outside the cluster's own folders


@pytest.fixture
def agent(the_agent, kubernetes, machine):
    """The node's agent, running, with eight healthy GPUs that nobody holds; whatever the last scenario broke is whole again."""
    kubernetes.mend()
    kubernetes.delete_all_pods()
    machine.heal()
    the_agent.ensure_running()
    kubernetes.wait_for_gpus(8)
    return the_agent


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A failure shows the end of the agent's log beside it."""
    report = (yield).get_result()
    if report.failed and (agent := item.funcargs.get("the_agent") or item.funcargs.get("agent")):
        report.sections.append(("agent log", agent.log()[-6000:]))
        report.sections.append(("penstock status", agent.describe()))
