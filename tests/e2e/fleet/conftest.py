"""Fixtures of the scenarios on four nodes: one cluster for all of them, between scenarios whole again, and the table of what each took.
Says nothing about what Penstock should do; the scenarios do."""
import contextlib
import os
import sys
import time
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent)]

import benches  # noqa: E402
from cluster import Cluster  # noqa: E402
from fleet import Fleet  # noqa: E402
from witnesses import summed  # noqa: E402

SLACK = 5  # a goal is a quiet machine's: on two slow cores with four nodes and a compiler beside them, only far beyond it is a failure
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
    """`with measure("what converges") as it:`; sets it.done = the moment where another than the end of the block counts."""
    @contextlib.contextmanager
    def measured(what: str, goal: float | None = None, of: Fleet | None = None):
        fleet, it = of or request.getfixturevalue("fleet"), Measured()
        yield it
        seconds = it.seconds()
        note(what, seconds, goal, fleet.audit.between(it.begin, it.begin + seconds))
        if goal is not None:
            assert seconds < goal * SLACK, f"{what}: {seconds:.2f} s; it should take less than {goal} s"

    return measured


def note(what: str, seconds: float | None, goal: float | None = None, asked: list | None = None, remark: str = ""):
    ROWS.append((what, "" if seconds is None else f"{seconds:.2f}" + (f" (goal {goal:g}{', MISSED' if seconds >= goal else ''})" if goal else ""),
                 "" if asked is None else str(len(asked)), remark or summed(asked or [])))


@pytest.fixture
def converged():
    """`converged("what", goal)(detail, seconds)`: a line of the table for a time that was taken elsewhere."""
    def to_judge(what: str, goal: float):
        def judged(detail: str, seconds: float):
            note(f"{what}, {detail}", seconds, goal)
            assert seconds < goal * SLACK, f"{what}, {detail}: {seconds:.2f} s; it should take less than {goal} s"

        return judged

    return to_judge


@pytest.fixture
def away():
    """How long each node's kubelet was without all its devices: noted, and far beyond the goal of 2 s a failure."""
    def judged(gaps: dict[str, float]):
        longest, goal = max(gaps.values()), 2
        note(f"  longest time without all devices at the kubelet (goal {goal} s{', MISSED' if longest >= goal else ''})", None,
             remark=", ".join(f"{name} {gap:.2f} s" for name, gap in gaps.items()))
        assert longest < goal * SLACK, f"devices were away from kubelets for {gaps} s; it should be less than {goal} s"

    return judged


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
def fleet(request):
    if os.getuid() != 0:
        pytest.fail("the end-to-end tests start a Kubernetes and need root: tests/e2e/run")
    benches.sweep()
    bench, whole = Cluster(benches.make()), None
    try:
        whole = Fleet(bench, request.config.getoption("--programs"), tied=not request.config.getoption("--keep"))
        yield whole
    finally:
        if whole:
            whole.stop_watching()
        benches.end(bench, request.config)


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
    """A failure shows what the agents said last; all they said is kept beside the logs."""
    report = (yield).get_result()
    whole = next((fleet for fleet in item.funcargs.values() if isinstance(fleet, Fleet)), None)
    if report.failed and whole:
        report.sections.append(("agents", "\n".join(line[:400] for line in whole.logs().splitlines()[-40:])))
        report.sections.append(("pods", whole.kubectl("get", "pods", "-A", "-o", "wide", check=False).stdout))
        if logs := item.config.getoption("--logs"):
            logs.mkdir(parents=True, exist_ok=True)
            (logs / f"failed-{item.name.translate(SAFE)}-{report.when}.log").write_text(whole.everything())
