"""Fixtures of the scenarios on four nodes: one cluster for all of them, which is repaired between scenarios, and the table of the measured times. The
expected behaviour is asserted in the scenarios."""
import contextlib
import sys
import time
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent)]

import benches  # noqa: E402
import reports  # noqa: E402
from driver_rollouts import running_rollout  # noqa: E402
from fleet import NAMESPACE, Fleet  # noqa: E402
from operators import delete_policies, running_operator  # noqa: E402
from witnesses import summed  # noqa: E402

SAFE = str.maketrans({one: "-" for one in "/[] "})  # names of files
ROWS: list[tuple[str, str, str, str]] = []  # of the table at the end


class Measured:
    """One line of the table: the time from entering until `done`, or until leaving."""

    def __init__(self):
        self.begin, self.done = time.time(), None

    def seconds(self) -> float:
        return (self.done or time.time()) - self.begin


@pytest.fixture
def whole_suite(request):
    """For a test of all other scenarios of a suite."""
    if request.config.getoption("keyword"):
        pytest.skip("only after all scenarios of the suite")


@pytest.fixture
def measure(request):
    """`with measure("what converges") as it:`; set it.done to the moment that counts if it is not the end of the block. A goal applies to a quiet machine:
    the table reports a missed goal, and no scenario fails for it."""
    @contextlib.contextmanager
    def measured(what: str, goal: float | None = None, of: Fleet | None = None):
        fleet, it = of or request.getfixturevalue("fleet"), Measured()
        yield it
        seconds = it.seconds()
        note(what, seconds, goal, fleet.audit.between(it.begin, it.begin + seconds))

    return measured


def note(what: str, seconds: float | None, goal: float | None = None, asked: list | None = None, remark: str = ""):
    ROWS.append((what, "" if seconds is None else f"{seconds:.2f}" + (f" (goal {goal:g}{', MISSED' if seconds >= goal else ''})" if goal else ""),
                 "" if asked is None else str(len(asked)), remark or summed(asked or [])))


@pytest.fixture
def converged():
    """`converged("what", goal)(detail, seconds)`: a line of the table for a time that was measured elsewhere."""
    return lambda what, goal: lambda detail, seconds: note(f"{what}, {detail}", seconds, goal)


@pytest.fixture
def away():
    """A line of the table: how long each node's kubelet lacked some of its devices."""
    def noted(gaps: dict[str, float]):
        longest, goal = max(gaps.values()), 2
        note(f"  longest time without all devices at the kubelet (goal {goal} s{', MISSED' if longest >= goal else ''})", None,
             remark=", ".join(f"{name} {gap:.2f} s" for name, gap in gaps.items()))

    return noted


@pytest.fixture
def remark():
    """Adds a line to the table that is not a time."""
    return lambda what, text, asked=None: note(what, None, asked=asked, remark=text)


def table() -> str:
    head = ("scenario", "seconds", "requests", "")
    widths = [max(len(row[i]) for row in [head, *ROWS]) for i in range(3)]
    return "\n".join("  ".join([*(cell.ljust(width) for cell, width in zip(row, widths)), row[3]]).rstrip() for row in [head, *ROWS])


def pytest_terminal_summary(terminalreporter, config):
    if ROWS:
        terminalreporter.section("scenario, seconds to converge, API requests of our agents meanwhile")
        terminalreporter.write_line(table())
        if config.getoption("--logs"):
            config.getoption("--logs").mkdir(parents=True, exist_ok=True)
            (config.getoption("--logs") / "scenarios.txt").write_text(table() + "\n")


@pytest.fixture(scope="session")
def start_fleet(request):
    """`start_fleet(...)`: a Fleet(...) on a separate cluster, which is removed at the end."""
    ends = contextlib.ExitStack()

    def start(release: str = "current", **options) -> Fleet:
        bench = benches.make(release)
        ends.callback(benches.end, bench, request.config)
        whole = Fleet(bench, request.config.getoption("--programs"), tied=not request.config.getoption("--keep"), **options)
        ends.callback(whole.stop_watching)
        return whole
    with ends:
        yield start


@pytest.fixture(scope="session")
def fleet(start_fleet):
    return start_fleet()


@pytest.fixture
def installed(fleet):
    """The chart with its usual values on four nodes without faults that advertise all their devices; the agents' pods are the only pods."""
    fleet.clear()
    fleet.ensure_installed()
    fleet.wait_rolled_out()
    fleet.wait_offered()
    return fleet


@pytest.fixture(scope="session")
def one_operator(fleet):
    """The operator, which the last files of a suite share; nothing else has the fleet in between."""
    with running_operator(fleet) as operator:
        yield operator


@pytest.fixture(scope="module")
def operator(one_operator, fleet):
    """The operator without any policy; a file leaves none."""
    yield one_operator
    delete_policies(fleet, NAMESPACE)
    fleet.clear()


@pytest.fixture(scope="session")
def rollout(fleet):
    """Nodes without a driver, and the operator: the last files of their suite share them, and nothing else has the fleet in between."""
    with running_rollout(fleet) as rollout:
        yield rollout


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """After a failure, prints the agents' last log lines, pods and events; the full output is kept beside the logs."""
    report = (yield).get_result()
    whole = next((fleet for fleet in item.funcargs.values() if isinstance(fleet, Fleet)), None)
    if report.failed and whole and whole.cluster.dir.exists():  # else the suite's end failed, by what is removed last
        concerned = [name for name in whole.nodes if name in str(report.longrepr)] or list(whole.nodes)
        report.sections += [("agents", whole.last_words(concerned)), *reports.of_cluster(whole.cluster.api)]
        if logs := item.config.getoption("--logs"):
            logs.mkdir(parents=True, exist_ok=True)
            (logs / f"failed-{item.name.translate(SAFE)}-{report.when}.log").write_text(whole.everything())
