"""Durations written by ctest and pytest are read, limited in number, and determine the order of
the next run."""
import subprocess
import time

import history
from history import Ran


def test_files_of_ctest_and_pytest_are_read(tmp_path):
    ctest = tmp_path / "ctest.xml"
    ctest.write_text('<testsuite><testcase name="a" time="1.5" status="run">'
                     '<system-out>hello</system-out></testcase>'
                     '<testcase name="b" time="0.1" status="fail"><failure/></testcase>'
                     '<testcase name="c" status="notrun"><skipped/></testcase></testsuite>')
    pytest = tmp_path / "suite.xml"
    pytest.write_text('<testsuites><testsuite><testcase name="x" time="2"><error>e</error>'
                      '</testcase></testsuite></testsuites>')
    assert history.read_junit(ctest) == [Ran("a", 1.5, "passed", "hello"), Ran("b", 0.1, "failed"),
                                         Ran("c", 0, "skipped")]
    assert history.cases_of_suites(tmp_path, 0)[-1] == Ran("suite::x", 2, "failed")
    assert history.cases_of_suites(tmp_path, time.time() + 60) == []


def test_a_file_that_is_no_junit_says_nothing(tmp_path):
    (tmp_path / "half.xml").write_text("<testsuite><testcase name=")
    assert history.read_junit(tmp_path / "half.xml") == []
    assert history.read_junit(tmp_path / "none.xml") == []


def test_the_last_runs_of_each_test_are_kept():
    entry = None
    for number in range(history.RUNS + 5):
        entry = history.added(entry, [Ran("a", number, "passed")], f"commit{number}")
    runs = entry["tests"]["a"]
    assert [run["seconds"] for run in runs] == list(range(5, history.RUNS + 5))
    assert runs[-1]["commit"] == f"commit{history.RUNS + 4}" and runs[-1]["result"] == "passed"


def test_tests_that_ran_long_ago_make_room_for_others(monkeypatch):
    monkeypatch.setattr(history, "TESTS", 2)
    entry = history.added(None, [Ran("a", 1, "passed"), Ran("b", 1, "passed")], "c")
    entry = history.added(entry, [Ran("a", 1, "passed"), Ran("new", 1, "passed")], "c")
    assert list(entry["tests"]) == ["a", "new"]


def test_a_history_of_another_form_is_begun_again():
    for entry in ({"tests": {"a": 3}}, {"tests": None}, {}, {"tests": {"a": ["x"]}}):
        assert list(history.added(entry, [Ran("b", 1, "passed")], "c")["tests"]) == ["b"]


def test_the_slowest_come_first():
    said = history.slowest([Ran("quick", 0.1, "passed"), Ran("slow", 7, "failed")], 1)
    assert said.split() == ["7.0", "s", "slow"]


def test_ctest_starts_the_longest_first_in_a_folder_that_ran_nothing_yet(tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(x NONE)\nenable_testing()\n"
        "foreach(name a b c)\nadd_test(NAME ${name} COMMAND true)\nendforeach()\n")
    build = tmp_path / "build"
    subprocess.run(["cmake", "-S", tmp_path, "-B", build], check=True, capture_output=True)
    past = [Ran("a", 1, "passed"), Ran("b", 3, "passed"), Ran("c", 2, "passed"),
            Ran("b", 90, "failed")]
    history.write_costs(history.added(None, past, "c"), build)
    # Two at a time: ctest uses costs only when it runs tests in parallel.
    said = subprocess.run(["ctest", "-j2"], cwd=build, check=True, capture_output=True, text=True)
    started = [line.split()[-1] for line in said.stdout.splitlines() if "Start" in line]
    assert started == ["b", "c", "a"]
