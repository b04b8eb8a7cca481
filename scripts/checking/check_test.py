"""A whole check of a small project, by scripts/check itself: which suites run, which are skipped,
and how it ends. The project has its own packages and downloads, which need no network."""
import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from check import Check

SCRIPTS = Path(__file__).resolve().parents[1]
CMAKE = """
cmake_minimum_required(VERSION 3.25)
project(small NONE)
enable_testing()
add_test(NAME words COMMAND sh ${CMAKE_SOURCE_DIR}/tests/words.sh ${CMAKE_BINARY_DIR}/bin)
add_test(NAME dear COMMAND sh ${CMAKE_SOURCE_DIR}/tests/dear.sh ${CMAKE_BINARY_DIR}/bin)
set_tests_properties(dear PROPERTIES LABELS older)
add_test(NAME always COMMAND true)
"""
ARCHITECTURE = """
<!-- include table -->
| `src/room` | |
<!-- end -->
<!-- area table -->
| `src/room` `docs` | `older` |
| `tests` | |
<!-- end -->
"""
FILES = {
    "CMakeLists.txt": CMAKE,
    "CMakePresets.json": json.dumps({
        "version": 6, "configurePresets": [{"name": "dev", "generator": "Ninja",
                                            "binaryDir": "${sourceDir}/build/dev"}],
        "testPresets": [{"name": "dev", "configurePreset": "dev"}]}),
    "docs/architecture.md": ARCHITECTURE, "src/room/a.txt": "a", ".gitignore": "build\n",
    "tests/words.sh": "echo the words; exit 0\n", "tests/dear.sh": "exit 0\n",
    "scripts/setup": "#!/bin/sh\n", "scripts/python": '#!/bin/sh\nexec python3 "$@"\n',
    "tests/support/downloads.py": "", "tests/e2e/cluster/parts.py": "#!/bin/sh\n",
    "tests/e2e/released.py": '#!/bin/sh\ncd "$(dirname "$0")/../../build"\n'
                             "mkdir -p released\necho $PWD/released\n",
    "deploy/image/build": "#!/bin/sh\necho libc6=1\n"}


class Project:
    def __init__(self, folder: Path, cache: Path):
        self.folder, self.cache = folder, cache
        for name, text in FILES.items():
            self.write(name, text)
        shutil.copy(SCRIPTS / "check", folder / "scripts/check")
        shutil.copytree(SCRIPTS / "checking", folder / "scripts/checking",
                        ignore=shutil.ignore_patterns("__pycache__", "*_test.py"))
        subprocess.run(["git", "init", "-q", folder], check=True)

    def write(self, name: str, text: str):
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)

    def start(self, *options) -> subprocess.Popen:
        environment = {**os.environ, "PENSTOCK_CACHE": str(self.cache), "CI": "true"}
        return subprocess.Popen([self.folder / "scripts/check", *options], env=environment,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)

    def check(self, *options) -> subprocess.CompletedProcess:
        return finished(self.start(*options))


def finished(process: subprocess.Popen) -> subprocess.CompletedProcess:
    said, _ = process.communicate()
    print(said)
    return subprocess.CompletedProcess(process.args, process.returncode, said)


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path / "project", tmp_path / "cache")


def wait_until(holds, seconds=60):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "the condition did not become true"
        time.sleep(0.05)


def summary(done) -> str:
    """The line that continuous integration looks for, near the end."""
    return next((line for line in done.stdout.splitlines()[-15:] if "tests passed" in line), "none")


def all_but_one_skipped(done) -> bool:
    """Whether all suites were unchanged. In that case the quickest one runs, whichever that was
    before."""
    skipped = re.search(r"^skipped: (\w+), (\w+): unchanged since it passed on no commit at ",
                        done.stdout, re.M)
    return bool(skipped) and set(skipped.groups()) < {"always", "dear", "words"}


def test_a_test_that_skips_itself_is_named(project):
    project.write("tests/words.sh", "echo not here; exit 77\n")
    project.write("CMakeLists.txt",
                  CMAKE + "set_tests_properties(words PROPERTIES SKIP_RETURN_CODE 77)\n")
    done = project.check()
    assert done.returncode == 0 and "-- tests that skipped themselves: words\n" in done.stdout
    assert "run: words" in project.check().stdout, "it was noted as passed"


def test_what_did_not_change_is_skipped_by_name_and_what_changed_runs(project):
    first = project.check()
    assert first.returncode == 0
    assert summary(first) == "100% tests passed, 0 tests failed out of 3"
    assert "Total Test time" in first.stdout.splitlines()[-1]

    second = project.check()
    assert second.returncode == 0
    assert summary(second) == "100% tests passed, 0 tests failed out of 1"
    assert all_but_one_skipped(second)

    project.write("tests/words.sh", "echo other words")
    third = project.check()
    assert "no path of its area changed since it passed" in third.stdout
    assert "run: always, words: changed since it passed: files" in third.stdout
    assert summary(third) == "100% tests passed, 0 tests failed out of 2"

    again = project.check("--again")
    assert summary(again) == "100% tests passed, 0 tests failed out of 3"


def test_suites_whose_inputs_change_while_they_run_are_named_and_run_again(project):
    built = 'mkdir -p "$1" && date +%N > "$1/'
    project.write("tests/words.sh", built + 'program"\n')
    done = project.check()
    assert "inputs changed while they ran: " in done.stdout
    assert "words (programs of the build)" in done.stdout
    assert "dear (programs of the build)" in done.stdout
    # Programs that only benchmarks use are built by a test.
    project.write("tests/words.sh", built + 'bench-program"\n')
    assert "while they ran" not in project.check().stdout
    assert all_but_one_skipped(project.check())


def test_a_failed_test_is_shown_in_part_and_runs_again(project):
    project.write("tests/words.sh", "seq 100000 100500; exit 1")
    done = project.check()
    assert done.returncode == 1
    assert summary(done) == "67% tests passed, 1 tests failed out of 3"
    assert "words (Failed)" in "".join(done.stdout.splitlines()[-5:])
    assert "100000" in done.stdout and "100500" in done.stdout and "100250" not in done.stdout
    log = project.folder / "build/check/failed-dev/words.log"
    assert "100250" in log.read_text() and str(log) in done.stdout
    again = project.check()
    assert again.returncode == 1
    assert summary(again) == "0% tests passed, 1 tests failed out of 1"
    project.write("tests/words.sh", "exit 0")
    assert project.check().returncode == 0


def test_a_build_that_fails_is_said_and_runs_no_test(project):
    project.write("CMakeLists.txt", CMAKE + "add_custom_target(broken ALL COMMAND false)")
    done = project.check()
    assert done.returncode == 1
    assert "the build failed" in done.stdout and "tests passed" not in done.stdout


def test_without_network_and_cache_one_error_says_what_is_missing(project):
    project.write("tests/e2e/cluster/parts.py", "#!/bin/sh\necho 'no route' >&2; exit 1\n")
    text = (project.folder / "scripts/checking/downloads.py").read_text()
    text = text.replace("PAUSES = (10,)", "PAUSES = (0,)")
    project.write("scripts/checking/downloads.py", text)
    project.write("slow.sh", "while sleep 0.2; do echo compiling; done")  # ends the build, too
    project.write("CMakeLists.txt", CMAKE + "add_custom_target(slow ALL COMMAND sh "
                  "${CMAKE_SOURCE_DIR}/slow.sh USES_TERMINAL)")
    done = project.check()
    assert done.returncode == 1
    assert "could not be fetched (is there a network?)" in done.stdout
    assert "parts of a Kubernetes: no route" in done.stdout and "tests passed" not in done.stdout


@pytest.mark.parametrize("damage", [
    lambda cache: [file.write_text("{") for file in cache.rglob("*") if file.is_file()],
    lambda cache: shutil.rmtree(cache),
    lambda cache: (shutil.rmtree(cache / "check"), (cache / "check").write_text("a file"))],
    ids=["half written", "removed", "not writable"])
def test_a_damaged_cache_means_that_everything_runs(project, damage):
    assert project.check().returncode == 0
    damage(project.cache)
    done = project.check()
    assert done.returncode == 0
    assert summary(done) == "100% tests passed, 0 tests failed out of 3"


def test_two_checkouts_share_what_passed(project, tmp_path):
    assert project.check().returncode == 0
    other = Project(tmp_path / "elsewhere/other", project.cache)
    assert all_but_one_skipped(other.check())


def test_two_checks_at_once_in_two_checkouts_do_not_disturb_each_other(project, tmp_path):
    other = Project(tmp_path / "other", project.cache)
    began, go_on = tmp_path / "began", tmp_path / "go on"
    # The first check stays in its tests until the second one waits for them.
    project.write("tests/words.sh", f"touch '{began}'; until [ -e '{go_on}' ]; do sleep 0.1; done")
    other.write("tests/words.sh", f"test -e '{go_on}'")
    first = project.start()
    wait_until(began.exists)
    second = other.start()
    for line in second.stdout:
        if line.startswith("waiting for what tests of this machine share"):
            break
    go_on.touch()
    for process in (first, second):
        done = finished(process)
        assert done.returncode == 0
        assert summary(done) == "100% tests passed, 0 tests failed out of 3"
    history = json.loads((project.cache / "check/durations.json").read_text())
    assert len(history["value"]["tests"]["words"]) == 2


def test_a_check_that_was_killed_leaves_the_next_one_undisturbed(project, tmp_path):
    began = tmp_path / "began"
    project.write("tests/words.sh", f"touch '{began}'; exec sleep 60")
    check = project.start()
    wait_until(began.exists)
    check.kill()
    project.write("tests/words.sh", "exit 0")
    done = project.check()
    assert done.returncode == 0
    assert summary(done) == "100% tests passed, 0 tests failed out of 3"


def test_tests_run_without_what_would_download(project):
    project.write("tests/words.sh", 'test "$GOPROXY" = off && test "$PIP_NO_INDEX" = 1 && '
                                    'test "$PENSTOCK_OFFLINE" = 1')
    assert project.check().returncode == 0


def test_a_check_that_takes_too_long_ends_its_tests_and_keeps_their_logs(project):
    project.write("tests/words.sh", "echo begun; exec sleep 1000")
    done = project.check("--limit", "1")
    assert done.returncode == 1
    assert "begun" in (project.folder / "build/check/failed-dev/words.log").read_text()


def test_a_check_whose_time_is_over_before_the_tests_says_so(project):
    done = project.check("--limit", "0.01")
    assert done.returncode == 1
    assert "the time is over before the tests began" in done.stdout


SANITIZED = """
cmake_minimum_required(VERSION 3.25)
project(small CXX)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
enable_testing()
foreach(room room other)
  add_executable(${room}_test src/${room}/a_test.cc)
  add_test(NAME ${room}_test COMMAND ${room}_test)
endforeach()
set_target_properties(room_test PROPERTIES UNITY_BUILD ON)
"""


def test_what_changed_since_a_green_check_runs_with_sanitizers(project):
    presets = json.loads(FILES["CMakePresets.json"])
    presets["configurePresets"].append(
        {"name": "asan", "generator": "Ninja", "binaryDir": "${sourceDir}/build/asan",
         "cacheVariables": {"CMAKE_CXX_FLAGS": "-fsanitize=address"}})
    presets["testPresets"].append({"name": "asan", "configurePreset": "asan"})
    project.write("CMakePresets.json", json.dumps(presets))
    project.write("CMakeLists.txt", SANITIZED)
    project.write("docs/architecture.md", ARCHITECTURE.replace("| `src/room` | |",
                                                               "| `src/room` `src/other` | |"))
    for room in ("room", "other"):
        project.write(f"src/{room}/a_test.cc", "int main() {}\n")
    first = project.check()
    assert first.returncode == 0
    assert "sanitizers: skipped: no green check is noted" in first.stdout
    # An error that only a sanitizer detects.
    project.write("src/room/a_test.cc", "int main() { volatile int* a = new int[1]; a[0] = 0;\n"
                                        "auto b = a[0]; delete[] a; a[0] = b; }\n")
    second = project.check()
    assert second.returncode == 1
    assert "modules that changed since no commit: src/room" in second.stdout
    assert "heap-use-after-free" in second.stdout and "other_test" not in second.stdout.split(
        "== sanitizers took")[0].split("== sanitizers")[1]
    assert summary(second) == "100% tests passed, 0 tests failed out of 1"
    assert "failed with sanitizers: room_test" in second.stdout
    # They come last, and their build stops in time without a verdict; then they are still to do.
    project.write("src/room/b.h", "")
    third = project.check("--limit", "9")
    assert third.returncode == 0 and "sanitizers: stopped: no time is left" in third.stdout
    assert "modules that changed since no commit: src/room" in project.check().stdout


def test_the_settings_of_a_presets_tests_include_the_files_that_they_name(project, monkeypatch):
    monkeypatch.setenv("PENSTOCK_CACHE", str(project.cache))

    def settings(environment, known="race:a"):
        presets = json.loads(FILES["CMakePresets.json"])
        presets["testPresets"][0]["environment"] = environment
        project.write("CMakePresets.json", json.dumps(presets))
        project.write("tests/known.supp", known)
        return Check(project.folder).settings("dev")
    named = {"TSAN_OPTIONS": "suppressions=${sourceDir}/tests/known.supp halt_on_error=1"}
    assert settings({}) == ""
    assert settings(named) == settings(named)
    assert len({settings(named), settings(named, "race:b"), settings({"TSAN_OPTIONS": "a=1"})}) == 3


def with_one_stage(project, body="'found'"):
    """The stages of --all need the compilers and tests of the real project."""
    text = (project.folder / "scripts/checking/everything.py").read_text()
    text = text.replace("self.stages().items()", f"{{'one': lambda: {body}}}.items()")
    project.write("scripts/checking/everything.py", text)


def test_with_all_nothing_is_skipped_and_tests_run_that_no_other_check_runs(project):
    project.write("CMakeLists.txt", CMAKE + "add_test(NAME full CONFIGURATIONS all COMMAND sh -c "
                  "[=[test \"$PENSTOCK_CHECK_ALL\" = 1]=])\n")
    with_one_stage(project)
    assert summary(project.check()) == "100% tests passed, 0 tests failed out of 3"
    done = project.check("--all")
    assert summary(done) == "100% tests passed, 0 tests failed out of 4"
    again = project.check("--all")
    assert summary(again) == "100% tests passed, 0 tests failed out of 4"
    assert "== one: kept: found (on" in again.stdout


def test_a_stage_of_all_repeats_only_suites_that_did_not_pass_in_it(project, tmp_path):
    with_one_stage(project, "self._tested('dev', lambda suite: suite.name != 'always', 'all-one')")
    fixed = tmp_path / "fixed"
    project.write("tests/words.sh", f"test -e '{fixed}'")
    project.check()  # what passes in it does not count
    done = project.check("--all")
    assert "run: dear, words: not known to have passed here" in done.stdout
    assert done.returncode == 1 and "these stages failed: one" in done.stdout
    fixed.touch()
    done = project.check("--all")
    assert re.search("skipped: dear: unchanged .*\nrun: words: not known to", done.stdout)
    assert "1; 1 passed before on the same inputs" in done.stdout
    assert "\n100% tests passed, 0 tests failed out of 3\n" in done.stdout  # the last stage

    project.write("tests/words.sh", f"test -e '{fixed}' # not in the area of the expensive suite")
    done = project.check("--all")
    assert "run: dear, words: changed since it passed: files" in done.stdout
    assert "== one: kept" in project.check("--all").stdout
    assert "run: dear, words: asked for" in project.check("--all", "--again").stdout


def test_busy_repeats_tests_beside_busy_loops_and_keeps_each_run_that_passed(project, tmp_path):
    text = (project.folder / "scripts/checking/everything.py").read_text()
    assert "BUSY = {" in text
    project.write("scripts/checking/everything.py",
                  re.sub("BUSY = {.*?}", "BUSY = {'older': 3}", text))
    ran, fixed = tmp_path / "ran", tmp_path / "fixed"
    # In its second run it fails until it is fixed.
    project.write("tests/dear.sh", f"pgrep -cf 'os[.]getppid' >> '{ran}'; "
                  f"test $(wc -l < '{ran}') != 2 -o -e '{fixed}'")
    done = project.check("--busy")
    assert done.returncode == 1 and len(ran.read_text().split()) == 3
    assert all(int(count) >= 4 for count in ran.read_text().split())
    assert re.search("older 2 of 3 +failed .*\n.*older 3 of 3 +passed", done.stdout)
    fixed.touch()
    done = project.check("--busy")
    assert done.returncode == 0 and len(ran.read_text().split()) == 4
    assert done.stdout.count(": kept: 100% tests passed") == 2
    project.check("--busy", "--again", "--loops", "6")
    assert len(ran.read_text().split()) == 7
    assert all(int(count) >= 6 for count in ran.read_text().split()[4:])


def test_stages_that_do_not_begin_before_the_limit_did_not_fail(project):
    done = project.check("--busy", "--limit", "0.4")
    assert done.returncode == 1 and "failed" not in done.stdout
    assert "busy, unit 1 of 20: stopped: no time was left; the next check goes on" in done.stdout


def test_only_all_needs_released_versions_and_what_passed_then_is_skipped_later(project):
    with_one_stage(project)
    released = project.folder / "build/released"
    assert project.check("--all").returncode == 0 and released.exists()
    released.rmdir()
    assert all_but_one_skipped(project.check()) and not released.exists()
    project.write("tests/e2e/released.py", "#!/bin/sh\necho 'it has no history' >&2; exit 1\n")
    text = (project.folder / "scripts/checking/downloads.py").read_text()
    project.write("scripts/checking/downloads.py", text.replace("PAUSES = (10,)", "PAUSES = (0,)"))
    done = project.check("--all")
    assert done.returncode == 1 and "tests passed" not in done.stdout
    assert "released versions of Penstock: it has no history" in done.stdout
    assert project.check().returncode == 0


def test_help_has_examples():
    said = subprocess.run([SCRIPTS / "check", "--help"], check=True, capture_output=True, text=True)
    assert "examples:" in said.stdout and "--again" in said.stdout
