"""Stages of a check: each has a name and a duration, and succeeds or fails. A file records the
results, which are printed as a table."""
import contextlib
import json
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path


class Failed(Exception):
    """A stage failed; the message names the failure and the remedy."""


class Stopped(Exception):
    """A stage was stopped without a verdict; the message says why."""


@dataclass
class Outcome:
    name: str
    result: str  # "passed", "failed", "stopped", "kept" (from an earlier check), "skipped"
    seconds: float
    findings: str = ""


class Stages:
    def __init__(self, record: Path, say=print):
        self.record, self.say, self.outcomes = record, say, []

    def run(self, name: str, body) -> object:
        """Runs body(); text that it returns is the stage's findings."""
        self.say(f"== {name}")
        start = time.monotonic()
        try:
            value = body()
        except Stopped as why:
            return self.add(name, "stopped", str(why), time.monotonic() - start)
        except BaseException as error:
            seconds = time.monotonic() - start
            self._note(Outcome(name, "failed", seconds, str(error)))
            self.say(f"== {name} failed after {seconds:.0f} s")
            raise
        seconds = time.monotonic() - start
        self._note(Outcome(name, "passed", seconds, value if isinstance(value, str) else ""))
        self.say(f"== {name} took {seconds:.0f} s")
        return value

    def add(self, name: str, result: str, findings: str, seconds: float = 0):
        """Records a stage that did not run here."""
        self.say(f"== {name}: {result}: {findings}")
        self._note(Outcome(name, result, seconds, findings))

    @property
    def stopped(self) -> bool:
        return any(one.result == "stopped" for one in self.outcomes)

    def table(self) -> str:
        width = max((len(one.name) for one in self.outcomes), default=0)
        rows = [f"{one.name:<{width}}  {one.result:<7} {one.seconds:6.0f} s  "
                f"{one.findings.splitlines()[0] if one.findings else ''}".rstrip()
                for one in self.outcomes]
        return "\n".join(rows)

    def _note(self, outcome: Outcome):
        self.outcomes.append(outcome)
        with contextlib.suppress(OSError):
            self.record.parent.mkdir(parents=True, exist_ok=True)
            self.record.write_text(json.dumps([asdict(one) for one in self.outcomes], indent=1))


class Background:
    """A function that runs in parallel with the stages; result() waits for it and raises its
    exception."""

    def __init__(self, function):
        self._error = None
        self._value = None

        def body():
            try:
                self._value = function()
            except BaseException as error:  # raised again by result()
                self._error = error
        self._thread = threading.Thread(target=body, daemon=True)
        self._thread.start()

    def raise_error(self):
        """Raises the function's exception, if it has failed."""
        if not self._thread.is_alive():
            self.result()

    def result(self):
        self._thread.join()
        if self._error:
            raise self._error
        return self._value


def excerpt(text: str, whole: Path, first: int = 40, last: int = 150) -> str:
    """The first and last lines of a long output, and the path of the complete one."""
    lines = text.splitlines()
    if len(lines) <= first + last:
        return "\n".join([*lines, f"(also in {whole})"])
    left_out = f"... {len(lines) - first - last} lines are left out here; all are in {whole} ..."
    return "\n".join([*lines[:first], left_out, *lines[-last:]])
