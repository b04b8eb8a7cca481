"""The stages of `check --all`, and of `check --busy`. Each keeps its result in the cache, keyed by
the checkout and the machine, so that an interrupted check resumes where it stopped; a failed stage
does not prevent the others from running."""
import contextlib
import os
import re
import shutil
import subprocess
import sys
import time

import inputs
import processes
import tidy
from check import Check
from stages import Failed, excerpt
from suites import Suite

REPETITIONS = 2  # of the end-to-end tests, which the last stage runs once more
BUSY = {"unit": 20, "integration": 5, "cluster": 3}  # label of tests -> runs beside busy loops
ALSO = {"integration": "root"}  # the label that most of them have
LOOPS = 4
SHORTEST = 30  # seconds before the limit when no further stage begins
LOOP = "import os, sys\nwhile os.getppid() == int(sys.argv[1]): pass"


@contextlib.contextmanager
def busy_loops(count: int = LOOPS):
    """Processes that only use processor time; they end also when this one is killed."""
    loops = [subprocess.Popen([sys.executable, "-c", LOOP, str(os.getpid())]) for _ in range(count)]
    try:
        yield loops
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


class Everything:
    """`again`: also run what passed before on the same checkout and machine."""

    def __init__(self, check: Check, again: bool):
        self.check, self.again, self.failed = check, again, []

    def run(self) -> list[str]:
        """Runs all stages, and returns the names of those that failed."""
        for name, body in self.stages().items():
            self._stage(name, body)
        return self.failed

    def stages(self) -> dict:
        """Name -> a function that returns its findings as text."""
        return {"address and undefined behaviour": lambda: self.sanitized("asan"),
                "threads": lambda: self.sanitized("tsan"), "clang-tidy": self.tidy,
                "arm64": self.arm64, "fuzzing": self.fuzzed,
                "end to end, repeated": self.repeated}

    def _stage(self, name: str, body):
        check = self.check
        key = inputs.digest(name, check.manifest, check.machine)
        entry = f"stages/{name.replace(' ', '-')}"
        kept = check.cache.read(entry) or {}
        if kept.get("key") == key and not self.again:
            check.stages.add(name, "kept", f"{kept.get('findings')} (on {kept.get('commit')} at "
                             f"{kept.get('time')}, {kept.get('seconds')} s)")
            return
        if check.stop_at and time.time() > check.stop_at - SHORTEST:
            check.stages.add(name, "stopped", "no time was left; the next check goes on")
            return
        began = time.monotonic()
        try:
            findings = check.stages.run(name, body)
        except (Failed, subprocess.CalledProcessError) as failure:
            check.say(f"check: {name}: {failure}")
            self.failed.append(name)
            return
        check.cache.write(entry, {
            "key": key, "findings": findings, "commit": check.commit,
            "seconds": round(time.monotonic() - began),
            "time": time.strftime("%Y-%m-%d %H:%M", time.localtime())})

    def sanitized(self, preset: str) -> str:
        self.check.build(preset)
        return self._tested(preset, lambda suite: suite.labels & {"unit", "integration"}
                            and self._uses_the_build(suite, preset), f"all-{preset}")

    def _tested(self, preset: str, wanted, series: str, options=()) -> str:
        result = self.check.tests(preset, wanted, options, series)
        self.check.say(result.summary)
        if not result.passed:
            raise Failed(f"failed: {', '.join(result.failed) or 'see above'}")
        before = f"; {result.before} passed before on the same inputs" if result.before else ""
        return result.summary.splitlines()[0] + before

    def _uses_the_build(self, suite: Suite, preset: str) -> bool:
        folder = str(self.check.source / "build" / preset)
        return any(word.startswith(folder) for word in suite.tests[0].command)

    def tidy(self) -> str:
        """Uses a separate build folder with clang, each file alone and without precompiled headers,
        because clang-tidy cannot read those of another compiler."""
        check, log = self.check, self.check.folder / "tidy"
        shutil.rmtree(log, ignore_errors=True)
        options = ["-D", "PENSTOCK_PRECOMPILED_HEADERS=OFF", "-D", "PENSTOCK_UNITY=OFF",
                   "-D", "CMAKE_C_COMPILER=clang-14", "-D", "CMAKE_CXX_COMPILER=clang++-14"]
        folder, _ = check.configure("dev", "tidy", options)
        listed = subprocess.run(["ninja", "-C", folder, "-t", "targets", "all"], check=True,
                                capture_output=True, text=True).stdout
        generated = re.findall(r"^(\S+\.pb\.h): CUSTOM_COMMAND", listed, re.M)
        check.build("dev", generated, "tidy", options)
        found = tidy.Tidy(check.source, folder, check.cache, tidy.tools(), check.say).findings(
            log, self.again)
        if found:
            shown = "\n".join(found[:50])
            raise Failed(f"{len(found)} findings; all output is in {log}\n{shown}")
        return "no findings"

    def arm64(self) -> str:
        """Compiles the product for arm64, and runs the unit tests that qemu's user emulation
        supports."""
        check, folder = self.check, self.check.source / "build/arm64"
        made = subprocess.run([check.source / "tests/cross/sysroot.py"], check=True,
                              stdout=subprocess.PIPE, text=True)
        root = made.stdout.strip()
        options = ["-D", f"PENSTOCK_SYSROOT={root}",
                   "-D", f"CMAKE_TOOLCHAIN_FILE={check.source / 'cmake/arm64.cmake'}"]
        emulated = emulated_tests((check.source / "tests/cross/emulated.txt").read_text())
        check.build("release", [], "arm64", options)
        check.build("dev", list(emulated), "arm64", [*options, "-D", "PENSTOCK_TESTS=ON"])
        failed, cases = [], 0
        for program, exceptions in emulated.items():
            log = check.folder / f"arm64-{program}.log"
            log.unlink(missing_ok=True)
            command = ["qemu-aarch64-static", "-L", root, folder / "tests" / program,
                       f"--gtest_filter=-{':'.join(exceptions)}"]
            if not processes.logged(command, log):
                failed.append(program)
                check.say(f"-- {program} failed:\n{excerpt(log.read_text(), log)}")
            ran = re.search(r"^\[==========\] (\d+) tests? .* ran", log.read_text(), re.M)
            cases += int(ran.group(1)) if ran else 0
        if failed:
            raise Failed(f"failed for arm64: {', '.join(failed)}")
        left_out = sum(map(len, emulated.values()))
        return f"compiled; {cases} cases passed under qemu, {left_out} are exceptions"

    def fuzzed(self) -> str:
        """Runs each fuzz target for a minute with coverage feedback, with the commit's seed. An
        interrupted run resumes after the finished targets."""
        log = self.check.folder / "fuzzing.log"
        log.unlink(missing_ok=True)
        if not processes.logged([self.check.source / "tests/fuzz/run", "--resume"], log):
            raise Failed(excerpt(log.read_text(errors="replace"), log))
        return log.read_text(errors="replace").splitlines()[-1]

    def repeated(self) -> str:
        return self._tested("dev", lambda suite: "cluster" in suite.labels, "all-repeated",
                            ["--repeat", f"until-fail:{REPETITIONS}"])


class Busy(Everything):
    """Repeats the tests beside busy loops: a verdict that depends on time shows then. A repetition
    that was interrupted goes on with the suites that did not run in it."""

    def __init__(self, check: Check, again: bool, loops: int = LOOPS):
        super().__init__(check, again)
        self.loops = loops

    def stages(self) -> dict:
        """Each kind of tests once before any is repeated, so that a part of a day covers all."""
        return {f"busy, {label} {run} of {runs}": lambda label=label, run=run: self.busy(label, run)
                for run in range(1, max(BUSY.values()) + 1)
                for label, runs in BUSY.items() if run <= runs}

    def busy(self, label: str, run: int) -> str:
        labels = {label, ALSO.get(label)}
        with busy_loops(self.loops):
            return self._tested("dev", lambda suite: labels & suite.labels, f"busy-{label}-{run}")


def emulated_tests(text: str) -> dict[str, list[str]]:
    """Program -> its cases that cannot be emulated, from tests/cross/emulated.txt."""
    programs: dict[str, list[str]] = {}
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if words and not line[0].isspace():
            programs[words[0]] = []
        elif words:
            programs[list(programs)[-1]].append(words[0])
    return programs
