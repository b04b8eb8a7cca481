"""Fixtures of the end-to-end tests: one cluster and one simulated DGX A100 for all scenarios, an agent that a scenario may break, a repaired node between
scenarios, and for all suites the output after a failure. The expected behaviour is asserted in the scenarios."""
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

FAILURES: list[str] = []  # each a scenario and its result
UNPREPARED: list[str] = []  # the last scenarios, as long as none of them could begin

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent / "cluster")]

import benches  # noqa: E402
import reports  # noqa: E402
from actors import Agent, Kubernetes, Machine  # noqa: E402

ROOT = Path(__file__).parents[2]


def pytest_addoption(parser):
    parser.addoption("--programs", type=lambda folder: Path(folder).resolve(), default=ROOT / "build/dev/bin",
                     help="folder of penstock, penstock-agent and the other programs")
    parser.addoption("--logs", type=Path, default=None, help="folder to keep the logs of the daemons and agents in")
    parser.addoption("--keep", action="store_true", help="leave the cluster running, for inspection")
    parser.addoption("--all", action="store_true", default=os.environ.get("PENSTOCK_CHECK_ALL") == "1",
                     help="scenarios at full size and length, as in scripts/check --all, which sets PENSTOCK_CHECK_ALL=1")


def pytest_configure(config):
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that SIGTERM runs the cleanup
    if os.getuid() != 0:
        pytest.exit("the end-to-end tests start a Kubernetes and need root: tests/e2e/run", 1)
    if logs := config.getoption("--logs"):
        shutil.rmtree(logs, ignore_errors=True)


# --- one node -------------------------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="session")
def cluster(request):
    bench = benches.make()
    try:
        # The kubelet writes the node's status every 10 s by default; here every second, so that scenarios wait for Penstock and not for the kubelet.
        bench.up(tied=not request.config.getoption("--keep"), kubelet_settings="nodeStatusUpdateFrequency: 1s\n")
        yield bench
    finally:
        benches.end(bench, request.config)


@pytest.fixture(scope="session")
def kubernetes(cluster):
    return Kubernetes(cluster)


@pytest.fixture(scope="session")
def machine(cluster, request):
    """A simulated DGX A100 that the node's agent discovers."""
    return Machine(cluster.dir / "machine", request.config.getoption("--programs"))


@pytest.fixture(scope="session")
def the_agent(cluster, machine, request):
    agent = Agent(cluster, machine, request.config.getoption("--programs"))
    yield agent
    if agent.running() and not request.config.getoption("--keep"):
        agent.stop()  # it removes what it created outside the cluster's own folders


@pytest.fixture
def agent(the_agent, kubernetes, machine):
    """The node's running agent, with eight healthy GPUs without holders; everything that the last scenario broke is repaired."""
    kubernetes.mend()
    kubernetes.delete_all_pods()
    machine.heal()
    the_agent.configure("")
    the_agent.ensure_running()
    kubernetes.wait_for_gpus(8)
    return the_agent


# --- output after a failure ---------------------------------------------------------------------------------------------------------------
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """The report of the agent, the pods and the events at that moment."""
    report = (yield).get_result()
    if report.failed and (agent := item.funcargs.get("the_agent") or item.funcargs.get("agent")):
        report.sections += [("agent log, the last lines", reports.tail(agent.log())), ("penstock status", agent.describe()),
                            *reports.of_cluster(agent.cluster.api)]
    if call.when == "setup":
        UNPREPARED.append(item.name) if report.failed else UNPREPARED.clear()
        if len(UNPREPARED) == 3:
            item.session.shouldfail = "three scenarios in a row could not begin: the suite ends, so that its output is printed before its time is over"


def pytest_runtest_logreport(report):
    if report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        said = (crash.message if crash else str(report.longrepr)).splitlines()
        where = f", at {Path(crash.path).name}:{crash.lineno}" if crash else ""
        shown = said if len(said) <= 12 else [*said[:3], f"... {len(said) - 11} lines are left out here ...", *said[-8:]]  # the end of a log says why
        FAILURES.append("\n".join([f"FAILED {report.nodeid}, in {report.when}{where}", *(f"    {line[:300]}" for line in shown)]))
        print(f"\n{FAILURES[-1]}", file=sys.__stdout__, flush=True)  # at once, in case the suite is ended from outside


@pytest.hookimpl(trylast=True)
def pytest_unconfigure():
    """Repeats the failures at the end of the log, after all tables, because only the end of a log may be kept."""
    if FAILURES:
        print("\n" + "\n".join(FAILURES), flush=True)
