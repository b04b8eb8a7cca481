"""Usage of runs, in records and in `penstock usage`, on a simulated machine with real control groups. Needs root. The simulated machine's
clock stands still, so that its energy is known exactly."""
import csv
import io
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from node import PATIENCE, Node, wait_until  # noqa: E402

CONFIG = "telemetry: {interval: 1s, holderLabels: ['experiment']}\nusage: {idleAfter: 2s}\n"
PYTHON = "/usr/bin/python3"
# Uses the given processor seconds and MiB of memory, and keeps the memory until its standard input ends.
LOAD = """
import sys, time
memory = bytearray(b"x") * (int(sys.argv[2]) << 20)
begin = time.process_time()
while time.process_time() < begin + float(sys.argv[1]):
    pass
sys.stdin.read()
"""


@pytest.fixture
def make_node(make_node):
    def make(config: str = CONFIG) -> Node:
        node = make_node(config=config)
        node.sim("clock", "stop")
        node.start_agent()
        return node
    return make


@pytest.fixture
def node(make_node) -> Node:
    return make_node()


def load(node: Node, device: int, cpu_seconds: float, mebibytes: int, *options) -> subprocess.Popen:
    run = node.start("--device", device, *options, "--", PYTHON, "-c", LOAD, cpu_seconds, mebibytes, stdin=subprocess.PIPE)
    wait_until(lambda: device in node.held(), "the run to hold its device")
    return run


def finish(run: subprocess.Popen):
    run.communicate(timeout=60)  # closes its standard input
    assert run.returncode == 0


def records(node: Node, folder: Path | None = None) -> list[dict]:
    files = sorted((folder or node.state_dir / "usage").glob("usage-*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def ends(node: Node, count: int, folder: Path | None = None, seconds: float = PATIENCE) -> list[dict]:
    """Waits for the end records of this many holders; returns them in the order of their ends."""
    def enough():
        found = [record for record in records(node, folder) if record["kind"] == "end"]
        return found if len(found) >= count else None
    found = wait_until(enough, f"{count} records", seconds)
    assert len(found) == count, found
    return found


def usage(node: Node, *words) -> dict:
    return json.loads(node.penstock("usage", "-o", "json", *words).stdout)["usage"]


def await_samples(node: Node, seconds: float = 1.5, device: int = 0):
    """Waits until samples cover this much more of the holder's time, so that one follows every earlier change."""
    uuid = node.report()["devices"][device]["id"]

    def measured() -> float:
        return sum(row["measuredSeconds"] for row in usage(node, "--by", "device")["rows"] if row["by"]["device"] == uuid)
    before = measured()
    wait_until(lambda: measured() > before + seconds, "samples")


def test_a_record_tells_what_the_machine_and_the_load_say(node):
    node.sim("set", "3", "utilisation=50", "power=100", "memory-used=2000")
    run = load(node, 3, 1.0, 150, "--label", "experiment=lr=0.1", "--label", "secret=x")
    await_samples(node, device=3)
    node.sim("clock", "advance", "20s")
    await_samples(node, 6, device=3)
    finish(run)
    [record] = ends(node, 1)
    assert record["energyJoules"] == pytest.approx(2000, abs=1)
    assert record["busySeconds"] == pytest.approx(record["measuredSeconds"] / 2, rel=0.01)
    assert 7 < record["measuredSeconds"] <= record["seconds"]
    assert record["memoryPeakBytes"] >= 2000 << 20
    assert 1.0 <= record["cpuSeconds"] < 10
    assert 150 << 20 <= record["hostMemoryPeakBytes"] < 300 << 20
    assert record["labels"] == {"experiment": "lr=0.1"}
    assert (record["door"], record["user"], record["slot"], record["shares"]) == ("local", "root", record["device"], 1)
    assert record["command"].startswith(PYTHON)
    assert record["version"] == 1 and record["lease"].startswith("r-")
    mode = next((node.state_dir / "usage").iterdir()).stat().st_mode
    assert mode & 0o777 == 0o640


def test_a_run_that_lives_through_a_killed_agent_is_one_record(node):
    node.sim("set", "0", "utilisation=100", "power=100")
    run = load(node, 0, 0.5, 10, "--label", "experiment=a")
    await_samples(node, 4)
    node.sim("clock", "advance", "10s")
    await_samples(node)
    node.kill_agent()
    node.sim("clock", "advance", "10s")
    node.start_agent()
    await_samples(node)
    assert usage(node, "--by", "label:experiment")["rows"][0]["by"]["label:experiment"] == "a"
    node.sim("clock", "advance", "10s")
    await_samples(node)
    finish(run)
    [record] = ends(node, 1)
    assert record["energyJoules"] == pytest.approx(3000, abs=1)
    assert record["cpuSeconds"] >= 0.5
    assert record["labels"] == {"experiment": "a"}
    assert record["measuredSeconds"] < record["seconds"]


def test_an_agent_that_ends_in_order_loses_nothing(node):
    run = load(node, 0, 0, 1)
    finish(run)
    wait_until(lambda: not node.holders(), "the device to be released")
    node.end_agent()
    node.start_agent()
    assert ends(node, 1)[0]["device"] == node.report()["devices"][0]["id"]
    node.end_agent()
    node.start_agent()
    assert len(ends(node, 1)) == 1


def test_holders_of_shares_have_their_parts(node):
    node.sim("set", "1", "power=100")
    runs = [load(node, 1, 0, 1, "--share", 4)]
    runs.append(node.start("--device", 1, "--share", 4, "--", PYTHON, "-c", LOAD, 0, 1, stdin=subprocess.PIPE))
    wait_until(lambda: len(node.holders()) == 2, "both to hold a share")
    node.sim("set", "1", f"process={runs[0].pid}:1000:first:60", f"process={runs[1].pid}:500:second:20")
    node.sim("set", "1", "power=100")
    node.sim("clock", "run")  # a driver reports process utilization only while time passes

    def energy() -> dict:
        return {row["by"]["lease"]: row["energyJoules"] for row in usage(node, "--by", "lease")["rows"]}
    await_samples(node, 5, device=1)
    before = energy()
    await_samples(node, 5, device=1)
    after = energy()
    less, more = sorted(after[lease] - before[lease] for lease in after)
    assert more / less == pytest.approx(3, rel=0.01)
    node.sim("clock", "stop")
    node.sim("set", "1", "no-processes")
    for run in runs:
        finish(run)
    peaks = {record["memoryPeakBytes"] >> 20 for record in ends(node, 2)}
    assert peaks == {1000, 500}


def test_what_is_held_and_unused_is_listed(node):
    node.sim("set", "0", "utilisation=90")
    load(node, 0, 0, 1)
    load(node, 5, 0, 1)
    idle = wait_until(lambda: json.loads(node.penstock("usage", "--idle", "-o", "json").stdout)["idle"], "an idle device")
    assert [one["index"] for one in idle] == [5]
    assert idle[0]["idleSeconds"] >= 2 and idle[0]["user"] == "root"
    assert re.search(r"^5 .* root: ", node.penstock("usage", "--idle").stdout, re.M)
    node.sim("set", "5", "utilisation=50")
    wait_until(lambda: "no held devices are idle" in node.penstock("usage", "--idle").stdout, "the device to be used")


def test_sums_are_shown_in_each_form(node):
    for label in ("a", "b"):
        finish(load(node, 0, 0.2, 1, "--label", f"experiment={label}"))
    ends(node, 2)
    rows = list(csv.DictReader(io.StringIO(node.penstock("usage", "--by", "label:experiment", "-o", "csv").stdout)))
    assert [row["label:experiment"] for row in rows] == ["a", "b"]
    assert all(float(row["cpu_hours"]) >= 0.2 / 3600 for row in rows)
    table = node.penstock("usage", "--by", "label:experiment").stdout
    assert re.match(r"EXPERIMENT +HOLDERS +GPU-HOURS +UTIL +ENERGY-KWH +CPU-HOURS\na +1 ", table)
    today = time.strftime("%Y-%m-%d", time.gmtime())
    assert {row["by"]["day"] for row in usage(node, "--by", "day", "--since", "1h")["rows"]} <= {today, time.strftime("%Y-%m-%d", time.gmtime(time.time() - 3600))}
    assert usage(node, "--since", "2026-01-01", "--until", "2026-01-02")["rows"] == []
    wrong = node.penstock("usage", "--by", "nmespace", check=False)
    assert wrong.returncode == 2 and 'did you mean "namespace"' in wrong.stderr


def test_a_full_disk_loses_nothing_and_says_so(make_node):
    disk = Path(tempfile.mkdtemp(prefix="penstock-disk-"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], check=True)
    try:
        node = make_node(CONFIG.replace("usage: {", f"usage: {{dir: {disk}/records, "))
        finish(load(node, 0, 0, 1))
        ends(node, 1, disk / "records")
        with open(disk / "filler", "wb", buffering=0) as filler:
            with pytest.raises(OSError):
                while True:
                    filler.write(bytes(512))
        for _ in range(20):  # more than fits into what is left of the file's last page
            finish(load(node, 0, 0, 1))
        problem = wait_until(lambda: usage(node).get("problem"), "the problem to be reported")
        assert "No space left" in problem
        assert usage(node)["total"]["holders"] == 21, "records that are not written yet are included"
        written = next((disk / "records").iterdir()).read_text()
        assert written.endswith("\n"), "no incomplete line"
        (disk / "filler").unlink()
        assert len({record["lease"] for record in ends(node, 21, disk / "records", 120)}) == 21
        wait_until(lambda: "problem" not in usage(node), "no problem to be reported")
        assert node.log().count("cannot write usage records") == 1
        node.end_agent()
    finally:
        subprocess.run(["umount", disk], check=True)
        disk.rmdir()


def test_a_line_that_was_torn_by_a_crash_is_passed_over(node):
    finish(load(node, 0, 0, 1))
    ends(node, 1)
    node.kill_agent()
    with open(next((node.state_dir / "usage").iterdir()), "a") as file:
        file.write('{"kind": "end", "lea')
    node.start_agent()
    assert usage(node)["total"]["holders"] == 1
    finish(load(node, 0, 0, 1))
    wait_until(lambda: usage(node)["total"]["holders"] == 2, "the next record")
    wait_until(lambda: usage(node).get("damagedLines") == 1, "the torn line to be counted")


@pytest.mark.parametrize("label", ["noequals", "=x", "-a=x", "a b=x", "a=\x1b[2J", "k" * 129 + "=x"])
def test_labels_that_nobody_could_read_are_refused(node, label):
    done = node.penstock("run", "--label", label, "--", "true", check=False)
    assert done.returncode == 125 and "--label" in done.stderr
    assert "\x1b" not in done.stderr
