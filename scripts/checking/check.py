"""The stages of a check: packages, downloads, build, tests, sanitizers for the modules that changed.
everything.py adds those of --all."""
import json
import os
import re
import subprocess
import time
from pathlib import Path

import cache
import downloads
import greens
import history
import inputs
import locks
import processes
import suites
import testing
import tree
from areas import Areas
from stages import Background, Failed, Stages, Stopped, excerpt

PROGRESS = re.compile(r"^\[\d+/\d+\]")  # of ninja
PROGRESS_EVERY = 15  # seconds
SOURCES = (".cc", ".c", ".h")
SANITIZED_RUN = 10 * 60  # seconds that tests with sanitizers may need


class Check:
    """`limit`: seconds after which tests are ended, so that their logs are kept. `skip`: whether
    suites that passed on the same inputs are skipped. `everything`: whether tests run at full
    size, including those that no other check runs; then only the stages of --all skip suites."""

    def __init__(self, source: Path, everything: bool = False, skip: bool = True,
                 limit: float | None = None, say=print):
        self.source, self.everything, self.skip, self.say = source, everything, skip, say
        self.folder = source / "build/check"
        self.stop_at = time.time() + limit if limit else None
        os.environ["PENSTOCK_CACHE"] = str(cache.folder())
        self.cache = cache.Cache(cache.folder() / "check")
        self.stages = Stages(self.folder / "stages.json", say)
        self.commit = tree.commit(source)
        self.areas = Areas.of(source)
        self.manifest: dict[str, str] = {}
        self.machine: dict[str, str] = {}

    def prepare(self):
        """Packages, downloads and the build of the preset `dev`: in parallel if there is enough
        memory for both. A failed download ends the build."""
        self.stages.run("packages", lambda: self._packages(["--all"] if self.everything else []))
        log = self.folder / "downloads.log"
        log.unlink(missing_ok=True)
        wanted = downloads.before_the_build(self.source)

        def fetch():
            return downloads.fetch(wanted, log, nice=True, say=self.say)
        first = Background(fetch)
        if downloads.memory_available() < downloads.MEMORY:
            first.result()
        self.stages.run("build", lambda: self.build("dev", meanwhile=first.raise_error))

        def finish():
            after = downloads.after_the_build(self.source, self.source / "build/dev/bin")
            provided = first.result() + "\n" + downloads.fetch(after, log, say=self.say)
            # Not part of the key: an ordinary check skips suites that passed with --all, and the
            # reverse.
            if self.everything:
                downloads.fetch(downloads.for_everything(self.source), log, say=self.say)
            self.machine = inputs.machine(provided)
        self.stages.run("downloads", finish)
        self.manifest = tree.manifest(self.source)

    def sanitizers(self) -> list[str]:
        """Address and undefined-behaviour sanitizer on the unit tests of the modules that changed
        since the last green check. Returns the stage's name if it failed. If the check's time does
        not suffice to build them, the stage is stopped, and the next check, whose compiler cache
        has what was built, has the same modules to do."""
        name = "sanitizers"
        since = greens.changed_since_green(self.cache, self.manifest)
        if since is None:
            self.stages.add(name, "skipped", "no green check is noted in the cache; see --all")
            return []
        commit, changed = since
        sources = [path for path in changed if path.endswith(SOURCES)]
        rooms = {room for path in sources if (room := self.areas.room(path))}
        programs = self._unit_tests_of(rooms) if rooms else []
        if not programs:
            self.stages.add(name, "skipped", f"no source with a test changed since {commit}")
            return []

        def body():
            self.say(f"modules that changed since {commit}: {', '.join(sorted(rooms))}")
            self.build("asan", programs, meanwhile=self._stop_in_time)
            result = self.tests("asan", lambda suite: suite.name in programs)
            self.say(result.summary)
            if not result.passed:
                raise Failed(f"failed with sanitizers: {', '.join(result.failed)}")
        try:
            self.stages.run(name, body)
        except Failed as failure:
            self.say(f"check: {failure}")
            return [name]
        return []

    def all_tests(self) -> testing.Result:
        """Every test of the preset `dev`; the caller prints the result's summary last."""
        result = None

        def body():
            nonlocal result
            result = self.tests("dev")
            if not result.passed:
                raise Failed(f"failed: {', '.join(result.failed) or 'see above'}")
        try:
            self.stages.run("tests", body)
        except Failed:
            if result is None:
                raise
        return result

    def noted_green(self):
        """Call this when everything passed."""
        if self.stages.stopped:
            return
        self.cache.write("last-green", {"commit": self.commit, "manifest": self.manifest})

    # --- parts of stages
    def build(self, preset: str, targets: list[str] = (), name: str = "", options: list = (),
              meanwhile=lambda: None):
        """Builds targets, or all, in build/NAME, of a preset with further options of cmake. Calls
        `meanwhile` regularly; an exception from it ends the build."""
        folder, log = self.configure(preset, name, options)
        command = ["cmake", "--build", folder, *(["--target", *targets] if targets else [])]
        progress = _Progress(self.say, meanwhile)
        if not processes.logged(command, log, progress, cwd=self.source):
            raise Failed(f"the build failed; all of its output is in {log}")

    def configure(self, preset: str, name: str = "", options: list = ()) -> tuple[Path, Path]:
        """Returns the build folder, and the log of its commands."""
        name = name or preset
        folder, log = self.source / "build" / name, self.folder / f"build-{name}.log"
        log.unlink(missing_ok=True)
        command = ["cmake", "--preset", preset, "-B", folder, *options]
        if not processes.logged(command, log, cwd=self.source):
            raise Failed(f"cmake of build/{name}:\n{excerpt(log.read_text(), log)}")
        return folder, log

    def tests(self, preset: str, wanted=lambda suite: True, options: list[str] = (),
              series: str = ""):
        """Runs those of the requested suites of a build whose inputs changed. `series`: the name
        of a stage of --all whose suites are skipped only if they passed in the same stage."""
        build = self.source / "build" / preset
        runner = testing.Tests(build, self.folder / f"failed-{preset}", self.commit,
                               self.cache if preset == "dev" else None, self.say)
        environment = {**os.environ, **testing.NO_NETWORK, **self._preset_environment(preset)}
        kind = ["-C", "all"] if self.everything else []  # add_test(... CONFIGURATIONS all)
        if self.everything:
            environment["PENSTOCK_CHECK_ALL"] = "1"
        settings = self.settings(preset)
        machine = dict(self.machine, settings=settings) if settings else self.machine
        current = inputs.Inputs(self.source, build, machine)
        passed = greens.Greens(self.cache, None if series else self.areas, current.files,
                               self.commit, series or preset)
        listed = [suite for suite in suites.read(build, environment, kind) if wanted(suite)]
        skip = self.skip and (bool(series) or not self.everything)
        decisions = testing.decide(listed, current, passed, skip, self.cache.read(history.ENTRY))
        self.say(testing.describe(decisions))
        chosen = [test for one in decisions if one.run for test in one.suite.tests]
        with (locks.alone(locks.MACHINE, "what tests of this machine share", self.say),
              testing.folder_in_memory() as in_memory):
            environment |= in_memory
            result = runner.run(chosen, [*kind, *options], environment, self.stop_at,
                                self._as_root(environment))
        result.before = sum(len(one.suite.tests) for one in decisions if not one.run)
        if changed := testing.note_passed(decisions, result, current, passed):
            self.say("these suites run again, since their inputs changed while they ran: "
                     + ", ".join(changed))
        if self.cache.problem:
            self.say(f"the cache keeps nothing new: {self.cache.problem}")
        return result

    def _stop_in_time(self):
        if self.stop_at and time.time() > self.stop_at - SANITIZED_RUN:
            raise Stopped("no time is left to build more; the next check goes on")

    def _packages(self, options: list[str]):
        if not processes.shown([self.source / "scripts/setup", *options], self.say):
            raise Failed("scripts/setup failed")

    def _unit_tests_of(self, rooms: set[str]) -> list[str]:
        """Test programs that are built from sources of these modules."""
        commands = json.loads((self.source / "build/dev/compile_commands.json").read_text())
        found = set()
        for entry in commands:
            file = Path(entry["directory"], entry["file"])
            target = re.search(r" -o \S*CMakeFiles/([^/\s]+_test)\.dir/", entry["command"])
            for one in _sources(file) if target else []:
                if one.is_relative_to(self.source):
                    if self.areas.room(str(one.relative_to(self.source))) in rooms:
                        found.add(target.group(1))
        return sorted(found)

    def _preset_environment(self, preset: str) -> dict[str, str]:
        """The environment and settings of a preset's tests in CMakePresets.json."""
        presets = json.loads((self.source / "CMakePresets.json").read_text())["testPresets"]
        values = next((one.get("environment", {}) for one in presets if one["name"] == preset), {})
        source = str(self.source)
        return {name: value.replace("${sourceDir}", source) for name, value in values.items()}

    def settings(self, preset: str) -> str:
        """A hash of the preset's environment, with the files that it names; empty without any."""
        environment = self._preset_environment(preset)
        named = re.findall(re.escape(f"{self.source}/") + r"(\S+)", " ".join(environment.values()))
        values = {name: value.replace(str(self.source), "") for name, value in environment.items()}
        contents = [tree.content_hash(self.source / name) for name in named]
        return inputs.digest(values, contents) if environment else ""

    def _as_root(self, environment: dict[str, str]) -> list[str]:
        if os.getuid() == 0:
            return []
        kept = {*testing.NO_NETWORK, "PATH", "HOME", "PENSTOCK_CACHE", "PENSTOCK_CHECK_ALL",
                "TEST_TMPDIR", "TSAN_OPTIONS"}
        words = [f"{name}={environment[name]}" for name in sorted(kept) if name in environment]
        return ["sudo", "env", *words]

    def give_back(self):
        """Gives the files that tests wrote as root to the calling user."""
        if os.getuid() != 0:
            owner = f"{os.getuid()}:{os.getgid()}"
            subprocess.run(["sudo", "chown", "-R", owner, self.source / "build"])


def _sources(file: Path) -> list[Path]:
    """What one call of the compiler compiles: the files that CMake has put in a unit, or one."""
    if file.parent.name != "Unity":
        return [file]
    return [Path(name) for name in re.findall(r'^#include "(.+)"$', file.read_text(), re.M)]


class _Progress:
    """Prints a build's lines; of progress lines only one now and then."""

    def __init__(self, say, meanwhile):
        self._say, self._meanwhile, self._last = say, meanwhile, time.monotonic()

    def __call__(self, line: str):
        self._meanwhile()
        now = time.monotonic()
        if not PROGRESS.match(line):
            self._say(line)
        elif now - self._last > PROGRESS_EVERY:
            self._last = now
            self._say(line)
