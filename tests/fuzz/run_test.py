"""tests/fuzz/run with shell scripts as targets: each uses some processor time, prints libFuzzer's
output, and fails on an input that contains "bad"."""
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

RUN = Path(__file__).parent / "run"
TARGET = r'''#!/bin/bash
echo "$@" >> "$0.calls"
end= control= files=()
for word in "$@"; do
    case $word in
    -artifact_prefix=*) prefix=${word#*=} ;;
    -max_total_time=*) end=1 ;;
    -merge_control_file=*) control=${word#*=} ;;
    -*) ;;
    *) [ -f "$word" ] && grep -q bad "$word" && { echo "an expectation does not hold"; exit 77; } ;;
    esac
done
[ -z "$end" ] || [ ! -e "$0.waits" ] || {
    folder=${0%/*}; echo $$ > "$0.running"
    until [ -e "$folder/end" ]; do
        [ $(cat "$folder"/*.running | wc -l) -lt 2 ] || touch "$folder/both"
        sleep 0.1
    done
    rm "$0.running"; }
[ -z "$end" ] || for ((i = 0; i < 200000; i++)); do :; done
[ ! -e "$0.finds" ] || [ -z "$end" ] || {
    echo bad > "$prefix"crash-1; echo "Test unit written to ${prefix}crash-1"; exit 77; }
[ -z "$control" ] || { # an input's words are the edges that it reaches
    for word in "$@"; do files+=($(find "$word" -type f 2>/dev/null)); done
    printf '%s\n' ${#files[@]} 0 "${files[@]}"
    for i in "${!files[@]}"; do echo "STARTED $i 9"; echo "FT $i $(cat "${files[i]}")"; echo "COV $i"; done
} > "$control"
echo "#5 DONE cov: 7 ft: 9"
echo "stat::number_of_executed_units: 5"
'''


class Checkout:
    def __init__(self, folder: Path):
        self.folder = folder
        self.targets = folder / "build/fuzz/tests"
        self.environment = dict(os.environ, PENSTOCK_CACHE=str(folder / "cache"))
        for name in ("kmsg", "elf"):
            self._add(name)
        shutil.copy(RUN, folder / "tests/fuzz/run")

    def _add(self, name: str):
        corpus = self.folder / "tests/fuzz/corpus" / name
        corpus.mkdir(parents=True)
        (corpus / "one").write_text("good")
        source = self.folder / f"tests/fuzz/system/{name}_fuzz.cc"
        source.parent.mkdir(exist_ok=True)
        source.touch()
        self.targets.mkdir(parents=True, exist_ok=True)
        program = self.targets / f"{name}_fuzz"
        program.write_text(TARGET)
        program.chmod(0o755)

    def run(self, *options: str) -> subprocess.CompletedProcess:
        command = [self.folder / "tests/fuzz/run", "--built", "--seconds", "0.2", *options]
        return subprocess.run(command, env=self.environment, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)

    def start(self, *options: str) -> subprocess.Popen:
        """With targets that wait until there is a file `end`; `both` shows that two have run at
        the same time."""
        for name in ("kmsg", "elf"):
            (self.targets / f"{name}_fuzz.waits").touch()
        command = [self.folder / "tests/fuzz/run", "--built", "--seconds", "0.2", *options]
        return subprocess.Popen(command, env=self.environment, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)

    def is_running(self, name: str) -> bool:
        return (self.targets / f"{name}_fuzz.running").exists()

    def calls(self, name: str) -> int:
        path = self.targets / f"{name}_fuzz.calls"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def totals(self, name: str) -> dict:
        return json.loads((self.folder / f"cache/fuzz-corpus/{name}.json").read_text())


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path)


def test_runs_each_target_and_keeps_what_was_counted(checkout):
    said = checkout.run()
    assert said.returncode == 0, said.stdout
    assert said.stdout.splitlines()[-1].startswith("2 targets, no findings; the seed is ")
    for name in ("kmsg", "elf"):
        totals = checkout.totals(name)
        assert totals["runs"] > 0 and totals["runs"] % 5 == 0 and totals["cpu_seconds"] >= 0.2
        assert (totals["edges_before"], totals["edges"], totals["findings"]) == (7, 7, 0)


def test_resumed_on_the_same_commit_runs_nothing_again(checkout):
    checkout.run("--resume", "elf")
    before = checkout.calls("elf")
    said = checkout.run("--resume")
    assert said.returncode == 0 and checkout.calls("elf") == before > 0
    assert checkout.calls("kmsg") > 0


def test_on_another_commit_runs_all_again(checkout):
    checkout.run("--resume", "elf")
    before = checkout.calls("elf")
    path = checkout.folder / "cache/fuzz-corpus/elf.json"
    path.write_text(json.dumps({**checkout.totals("elf"), "commit": "another"}))
    checkout.run("--resume", "elf")
    assert checkout.calls("elf") > before


def test_a_finding_is_red_until_its_input_passes(checkout):
    (checkout.targets / "elf_fuzz.finds").touch()
    said = checkout.run("--resume")
    assert said.returncode == 1 and "FINDING in elf" in said.stdout
    assert "findings in elf" in said.stdout and checkout.calls("kmsg") > 0, "the others ran"
    assert checkout.totals("elf")["findings"] == 1

    (checkout.targets / "elf_fuzz.finds").unlink()
    said = checkout.run("--resume")
    assert said.returncode == 1 and "kept before" in said.stdout

    program = checkout.targets / "elf_fuzz"
    program.write_text(TARGET.replace("grep -q bad", "grep -q other"))  # the product was fixed
    said = checkout.run("--resume")
    assert said.returncode == 0, said.stdout
    assert not list((checkout.folder / "build/fuzz/findings").iterdir())


def test_an_input_of_the_repositorys_own_corpus_that_fails_is_a_finding(checkout):
    (checkout.folder / "tests/fuzz/corpus/elf/two").write_text("bad")
    program = checkout.targets / "elf_fuzz"
    program.write_text(TARGET.replace('[ -f "$word" ]', '[ -d "$word" ]').replace(
        'grep -q bad "$word"', 'grep -rq bad "$word"'))
    said = checkout.run()
    assert said.returncode == 1 and "FINDING in elf: it fails on its own corpus" in said.stdout


@pytest.mark.parametrize("most, kept", [("1", "b"), ("8", "be")])
def test_merging_keeps_the_few_inputs_that_reach_most(checkout, most, kept):
    corpus = checkout.folder / "tests/fuzz/corpus/elf"
    (corpus / "one").write_text("1 2")
    (corpus / ("d" * 40)).write_text("2")
    found = checkout.folder / "cache/fuzz-corpus/elf"
    found.mkdir(parents=True)
    for name, edges in {"a": "1 2 3", "b": "3 4 5", "c": "5", "e": "6"}.items():
        (found / (name * 40)).write_text(edges)
    said = checkout.run("--merge", "--files", most, "elf")
    assert said.returncode == 0, said.stdout
    assert {path.name for path in corpus.iterdir()} == {"one", *(name * 40 for name in kept)}


def becomes_true(predicate):
    deadline = time.monotonic() + 60
    while not predicate():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_as_many_targets_run_at_the_same_time_as_are_requested(checkout):
    with checkout.start("--jobs", "2") as process:
        becomes_true((checkout.targets / "both").exists)
        (checkout.targets / "end").touch()
        assert "2 targets, no findings" in process.communicate()[0]


def test_with_one_job_targets_run_one_after_another(checkout):
    with checkout.start("--jobs", "1", "elf", "kmsg") as process:
        becomes_true(lambda: checkout.is_running("elf"))
        (checkout.targets / "end").touch()
        assert "2 targets, no findings" in process.communicate()[0]
    assert not (checkout.targets / "both").exists()


def test_an_interrupt_ends_all_targets_and_is_no_finding(checkout):
    with checkout.start("--jobs", "2") as process:
        becomes_true((checkout.targets / "both").exists)
        running = [int(path.read_text()) for path in checkout.targets.glob("*.running")]
        process.send_signal(signal.SIGTERM)
        said = process.communicate()[0]
    assert process.returncode == 1 and "interrupted" in said and "FINDING" not in said
    for pid in running:
        becomes_true(lambda: not Path(f"/proc/{pid}").exists())
    assert not list((checkout.folder / "cache/fuzz-corpus").glob("*.json"))


def test_after_the_time_of_until_nothing_starts_and_nothing_is_said_to_have_passed(checkout):
    said = checkout.run("--until", "00:00")
    assert said.returncode == 0 and said.stdout.startswith("0 targets"), said.stdout
    assert checkout.calls("elf") == checkout.calls("kmsg") == 0


def test_an_unknown_target_is_refused_by_name(checkout):
    said = checkout.run("kernel")
    assert said.returncode == 2 and "no target kernel; there are elf, kmsg" in said.stdout
