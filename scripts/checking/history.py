"""Duration and result of each test, for a limited number of checks; and what is derived from them:
the slowest tests, and the order in which ctest starts them."""
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

ENTRY = "durations.json"
RUNS = 10  # runs kept of each test
TESTS = 10_000  # tests kept in all, the most recently run


@dataclass
class Ran:
    name: str
    seconds: float
    result: str  # "passed", "failed", "skipped"
    output: str = ""


def read_junit(file: Path) -> list[Ran]:
    """The tests in a file that ctest or pytest wrote; empty if the file cannot be read."""
    try:
        root = ElementTree.parse(file).getroot()
    except (OSError, ElementTree.ParseError):
        return []
    found = []
    for case in root.iter("testcase"):
        parts = {part.tag for part in case}
        result = "passed"
        if parts & {"failure", "error"} or case.get("status") == "fail":
            result = "failed"
        elif "skipped" in parts or case.get("status") in ("notrun", "disabled"):
            result = "skipped"
        output = case.findtext("system-out") or ""
        found.append(Ran(case.get("name", "?"), float(case.get("time") or 0), result, output))
    return found


def cases_of_suites(folder: Path, since: float) -> list[Ran]:
    """Cases of the pytest suites whose file SUITE.xml was written since a given time, named
    SUITE::CASE."""
    files = [file for file in sorted(folder.glob("*.xml")) if file.stat().st_mtime >= since]
    return [Ran(f"{file.stem}::{one.name}", one.seconds, one.result)
            for file in files for one in read_junit(file)]


def added(entry: dict | None, ran: list[Ran], commit: str) -> dict:
    """The history with these runs added; entries of any other form are dropped."""
    tests = {}
    for name, runs in ((entry or {}).get("tests") or {}).items():
        if isinstance(runs, list) and all(isinstance(run, dict) for run in runs):
            tests[name] = runs
    now = int(time.time())
    for one in ran:
        run = {"seconds": round(one.seconds, 3), "result": one.result, "commit": commit,
               "time": now}
        tests[one.name] = [*tests.pop(one.name, []), run][-RUNS:]  # the last in the order
    return {"tests": dict(list(tests.items())[-TESTS:])}


def average(runs: list[dict]) -> float:
    seconds = [run["seconds"] for run in runs if run.get("result") == "passed"
               and isinstance(run.get("seconds"), (int, float))]
    return sum(seconds) / len(seconds) if seconds else 0


def write_costs(entry: dict | None, build: Path):
    """Makes ctest start the tests that took longest first, in a build folder without earlier test
    runs."""
    tests = added(entry, [], "")["tests"]
    file = build / "Testing/Temporary/CTestCostData.txt"
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"{name} {len(runs)} {average(runs):.6g}\n" for name, runs in tests.items()
             if "::" not in name and not name.count(" ")]
    file.write_text("".join(lines) + "---\n")


def slowest(ran: list[Ran], count: int = 25) -> str:
    longest = sorted(ran, key=lambda one: -one.seconds)[:count]
    return "\n".join(f"{one.seconds:8.1f} s  {one.name}" for one in longest)
