"""The stages of --all: a stage that passed on the same checkout and machine is kept, a failed one
runs again, and a failure does not prevent the others from running."""
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from cache import Cache
from everything import Everything, busy_loops, emulated_tests
from stages import Failed, Stages


class Two(Everything):
    """Two stages that record when they run; the first fails while it has a reason."""
    ran: list[str] = []
    reason = ""

    def stages(self):
        return {"the first": self.first, "second": self.second}

    def first(self):
        self.ran.append("first")
        if self.reason:
            raise Failed(self.reason)
        return "found 1"

    def second(self):
        self.ran.append("second")
        return "found 2"


@pytest.fixture
def run(tmp_path):
    def run(reason="", manifest="files", machine="machine", again=False,
            stop_at=None):
        check = SimpleNamespace(cache=Cache(tmp_path / "cache"), commit="abc", manifest=manifest,
                                machine=machine, say=print, stop_at=stop_at,
                                stages=Stages(tmp_path / "stages.json", print))
        two = Two(check, again)
        two.reason, two.ran = reason, []
        failed = two.run()
        return failed, two.ran, [(one.name, one.result) for one in check.stages.outcomes], check
    return run


def test_a_stage_that_passed_is_kept_with_its_findings(run):
    assert run()[:2] == ([], ["first", "second"])
    failed, ran, outcomes, check = run()
    assert (failed, ran) == ([], [])
    assert outcomes == [("the first", "kept"), ("second", "kept")]
    assert "found 1 (on abc at" in check.stages.table()


def test_a_stage_that_failed_runs_again_and_keeps_no_other_from_running(run):
    failed, ran, outcomes, _ = run("a finding")
    assert failed == ["the first"] and ran == ["first", "second"]
    assert outcomes == [("the first", "failed"), ("second", "passed")]
    assert run()[:2] == ([], ["first"])


def test_no_stage_begins_when_no_time_is_left(run):
    failed, ran, outcomes, _ = run(stop_at=time.time() + 5)
    assert (failed, ran, outcomes) == ([], [], [("the first", "stopped"), ("second", "stopped")])


@pytest.mark.parametrize("change", [{"manifest": "other"}, {"machine": "other"}, {"again": True}])
def test_another_checkout_another_machine_or_again_runs_all(run, change):
    run()
    assert run(**change)[1] == ["first", "second"]


def state_of(process: int) -> str:
    """Its letter in proc(5); empty: there is none."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def test_busy_loops_end_with_what_started_them():
    with busy_loops(2) as loops:
        assert [loop.poll() for loop in loops] == [None, None]
    assert all(loop.returncode is not None for loop in loops)
    program = ("import sys; sys.path[:0] = [sys.argv[1]]; from everything import busy_loops\n"
               "with busy_loops(1) as loops: print(loops[0].pid, flush=True); input()")
    with subprocess.Popen([sys.executable, "-c", program, Path(__file__).parent], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        loop = int(started.stdout.readline())
        started.kill()
    deadline = time.monotonic() + 60
    while state_of(loop) not in ("", "Z"):
        assert time.monotonic() < deadline, "the loop goes on without its parent"
        time.sleep(0.05)


def test_exceptions_stand_below_their_program():
    text = "# comment\none_test\n  A.B  # no ptrace\n  C.*\n\nother_test\n"
    assert emulated_tests(text) == {"one_test": ["A.B", "C.*"], "other_test": []}


@pytest.fixture
def fuzz(tmp_path):
    """Runs the stage with another program in place of tests/fuzz/run."""
    def fuzz(program):
        path = tmp_path / "tests/fuzz/run"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{program}\n")
        path.chmod(0o755)
        check = SimpleNamespace(source=tmp_path, folder=tmp_path / "build/check")
        return Everything(check, False).fuzzed()
    return fuzz


def test_fuzzing_resumes_and_its_findings_are_the_last_line(fuzz):
    assert fuzz("echo kmsg: 7 runs; echo \"3 targets, no findings $*\"") == (
        "3 targets, no findings --resume")


def test_a_finding_fails_the_stage_and_is_shown(fuzz):
    with pytest.raises(Failed, match="FINDING in kmsg"):
        fuzz("echo FINDING in kmsg; exit 1")
