"""Runs those tests of a build whose inputs changed with ctest, long ones first; records their
durations and output. Returns ctest's own closing lines, which the caller prints last."""
import contextlib
import os
import re
import shutil
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import downloads
import history
import processes
import stages
from cache import Cache
from greens import Greens, Decision
from inputs import Inputs
from suites import Suite, Test

SUMMARY = re.compile(r"^\d+% tests passed, \d+ tests failed out of \d+")
# Nothing is downloaded while tests run: a download that is needed fails with an error that names the
# remedy.
NO_NETWORK = {"GOPROXY": "off", "GOTOOLCHAIN": "local", "PIP_NO_INDEX": "1",
              "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PENSTOCK_OFFLINE": "1"}
MEMORY = Path("/dev/shm")
LONG_SUITE = 3 << 30  # bytes: the largest is a Kubernetes with four nodes


def at_once() -> int:
    """So many tests: the long suites mostly wait for a cluster or for containers, and fewer if the
    memory does not suffice for as many of them."""
    most = 1 + 2 * (os.cpu_count() or 1)
    return max(1, min(most, downloads.memory_available() // LONG_SUITE))


@contextlib.contextmanager
def folder_in_memory(place: Path = MEMORY):
    """The environment that has GoogleTest programs make their files in memory, if there is a place
    for that in which programs and device files work, and that is large enough; else nothing. On
    disk, those that make many files take several times as long (tests/support/isolated.py)."""
    try:
        about = os.statvfs(place)
        usable = not about.f_flag & (os.ST_NOEXEC | os.ST_NODEV) and about.f_bavail * about.f_frsize > 1 << 30
        folder = tempfile.mkdtemp(prefix="p", dir=place) if usable else None
    except OSError:
        folder = None
    if folder is None:
        yield {}
        return
    try:
        os.chmod(folder, 0o755)
        yield {"TEST_TMPDIR": folder}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass
class Result:
    passed: bool
    summary: str  # ctest's closing lines
    failed: list[str] = field(default_factory=list)
    ran: list[history.Ran] = field(default_factory=list)
    before: int = 0  # tests of skipped suites


class Tests:
    """The tests of one build folder. Without a cache, nothing is recorded."""
    __test__ = False  # for pytest, which would collect it as a test

    def __init__(self, build: Path, logs: Path, commit: str, cache: Cache | None,
                 say=print):
        self.build, self.logs, self.commit, self.cache, self.say = build, logs, commit, cache, say

    def run(self, chosen: list[Test], options: list[str], environment: dict[str, str],
            stop_at: float | None = None, prefix: list[str] = ()) -> Result:
        """Runs these tests. `stop_at`: the time when ctest ends the tests that still run.
        `prefix`: the beginning of the command, for sudo."""
        began = time.time()
        if self.cache:
            history.write_costs(self.cache.read(history.ENTRY), self.build)
        junit = self.build / "ctest.xml"
        junit.unlink(missing_ok=True)
        command = [*prefix, "ctest", "--test-dir", self.build, "--no-tests=error",
                   "--parallel", at_once(), "--output-junit", junit,
                   "--test-output-size-failed", 50_000_000, *options]
        selection = self.build / "selected-tests"
        # ctest ignores the last number of a file that does not end with a newline.
        selection.write_text("0,0,0," + ",".join(str(test.number) for test in chosen) + "\n")
        command += ["-I", selection]
        if stop_at:
            if stop_at < time.time() + 5:
                raise stages.Failed("the time is over before the tests began; see --limit")
            command += ["--stop-time", time.strftime("%H:%M:%S", time.localtime(stop_at))]
        ended_well, summary = self._stream([str(word) for word in command], environment)
        ran = history.read_junit(junit)
        cases = history.cases_of_suites(self.build / "junit", began)
        if self.cache:
            self.cache.update(history.ENTRY,
                              lambda entry: history.added(entry, ran + cases, self.commit))
        failed = [one for one in ran if one.result == "failed"]
        self._show(failed)
        if ran:
            self.say(f"-- the slowest\n{history.slowest(ran + cases)}")
        if themselves := sorted({one.name for one in ran + cases if one.result == "skipped"}):
            self.say(f"-- tests that skipped themselves: {', '.join(themselves)}")
        if left_out := {test.name for test in chosen} - {one.name for one in ran}:
            self.say(f"-- these tests should have run and did not: {', '.join(sorted(left_out)[:20])}")
        passed = ended_well and not left_out and bool(SUMMARY.search(summary))
        closing = summary if passed or failed else "not all tests ran"
        return Result(passed, closing, [one.name for one in failed], ran)

    def _stream(self, command: list[str], environment: dict[str, str]) -> tuple[bool, str]:
        """Yields the lines as they arrive, up to the closing ones."""
        closing: list[str] = []

        def take(line: str):
            if closing or SUMMARY.match(line):
                closing.append(line)
            else:
                self.say(line)
        passed = processes.shown(command, take, env=environment)
        return passed, "\n".join(closing).strip("\n")

    def _show(self, failed: list[history.Ran]):
        """Prints the output of the failed tests, shortened, and the path of the complete log."""
        for one in failed[:20]:
            log = self.logs / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', one.name)}.log"
            log.parent.mkdir(parents=True, exist_ok=True)
            log.write_text(one.output)
            self.say(f"-- {one.name} failed; it printed:\n{stages.excerpt(one.output, log)}")
        if len(failed) > 20:
            log = self.build / "Testing/Temporary/LastTest.log"
            self.say(f"-- {len(failed) - 20} more failed; see {log}")


def decide(suites: list[Suite], inputs: Inputs, greens: Greens, skip: bool,
           past: dict | None) -> list[Decision]:
    """The suites to run: all, except those that passed on the same inputs if these are to be
    skipped. `past`: the durations of tests."""
    decisions = []
    for suite in suites:
        one = greens.decide(suite, inputs.of(suite))
        if not skip and not one.run:
            one.run, one.why = True, "asked for"
        decisions.append(one)
    if decisions and not any(one.run for one in decisions):
        # ctest needs a test for its summary: the quickest.
        tests = history.added(past, [], "")["tests"]
        least = min(decisions, key=lambda one: sum(
            history.average(tests.get(test.name, [])) for test in one.suite.tests))
        least.run, least.why = True, "all are unchanged; the quickest runs all the same"
    return decisions


def describe(decisions: list[Decision]) -> str:
    """Prints which suites are skipped and which run, by name, grouped by reason."""
    lines = []
    for word, run in (("skipped", False), ("run", True)):
        reasons: dict[str, list[str]] = {}
        for one in decisions:
            if one.run == run:
                reasons.setdefault(one.why, []).append(one.suite.name)
        lines += [f"{word}: {', '.join(sorted(names))}: {why}"
                  for why, names in sorted(reasons.items())]
    return "\n".join(lines)


def note_passed(decisions: list[Decision], result: Result, inputs: Inputs,
                greens: Greens) -> list[str]:
    """Records the suites whose cases all passed. Returns those that are not recorded because their
    inputs changed while they ran, each with what changed."""
    results = {one.name: one.result for one in result.ran}
    fresh = Inputs(inputs.source, inputs.build, inputs.machine)
    changed = []
    for one in decisions:
        all_passed = all(results.get(test.name) == "passed" for test in one.suite.tests)
        if not (one.run and one.ingredients and all_passed):
            continue
        now = fresh.of(one.suite) or {}
        if now == one.ingredients:
            greens.note(one.suite, one.ingredients)
        else:
            others = sorted(name for name, value in one.ingredients.items() if now.get(name) != value)
            changed.append(f"{one.suite.name} ({', '.join(others)})")
    greens.prune()
    return changed
