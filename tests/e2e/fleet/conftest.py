"""Fixtures of the scenarios on four nodes: one cluster for all of them, between scenarios whole again, and the table of what each took.
Says nothing about what Penstock should do; the scenarios do."""
import contextlib
import sys
import time
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent)]

import benches  # noqa: E402
import reports  # noqa: E402
from fleet import Fleet  # noqa: E402
from witnesses import summed  # noqa: E402

SAFE = str.maketrans({one: "-" for one in "/[] "})  # names of files
ROWS: list[tuple[str, str, str, str]] = []  # of the table at the end


class Measured:
    """One line of the table: from entering until `done`, or leaving."""

    def __init__(self):
        self.begin, self.done = time.time(), None

    def seconds(self) -> float:
        return (self.done or time.time()) - self.begin


@pytest.fixture
def measure(request):
    """`with measure("what converges") as it:`; sets it.done = the moment where another than the end of the block counts. A goal is a quiet
    machine's: the table says where it is missed, and no scenario fails for it."""
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
    """`converged("what", goal)(detail, seconds)`: a line of the table for a time that was taken elsewhere."""
    return lambda what, goal: lambda detail, seconds: note(f"{what}, {detail}", seconds, goal)


@pytest.fixture
def away():
    """A line of the table: how long each node's kubelet was without all its devices."""
    def noted(gaps: dict[str, float]):
        longest, goal = max(gaps.values()), 2
        note(f"  longest time without all devices at the kubelet (goal {goal} s{', MISSED' if longest >= goal else ''})", None,
             remark=", ".join(f"{name} {gap:.2f} s" for name, gap in gaps.items()))

    return noted


@pytest.fixture
def remark():
    """Adds a line to the table that is no time."""
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
    """`start_fleet(...)`: Fleet(...) on a cluster of its own, which is gone at the end."""
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
    """The chart with its usual values on four whole nodes that advertise what they have; no pods but the agents'."""
    fleet.clear()
    fleet.ensure_installed()
    fleet.wait_advertised(120)
    fleet.wait_rolled_out()
    return fleet


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A failure shows what the agents said last, pods and events; all that can be said is kept beside the logs."""
    report = (yield).get_result()
    whole = next((fleet for fleet in item.funcargs.values() if isinstance(fleet, Fleet)), None)
    if report.failed and whole:
        concerned = [name for name in whole.nodes if name in str(report.longrepr)] or list(whole.nodes)
        report.sections += [("agents", whole.last_words(concerned)), *reports.of_cluster(whole.cluster.api)]
        if logs := item.config.getoption("--logs"):
            logs.mkdir(parents=True, exist_ok=True)
            (logs / f"failed-{item.name.translate(SAFE)}-{report.when}.log").write_text(whole.everything())
