"""The tests of a build, as ctest lists them, grouped into suites: a suite is a GoogleTest program
with all its cases, or any other single test. A check runs or skips whole suites."""
import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Test:
    __test__ = False  # for pytest, which would collect it as a test
    number: int  # the number for `ctest -I`
    name: str
    command: list[str]
    properties: dict = field(default_factory=dict)

    @property
    def labels(self) -> list[str]:
        return self.properties.get("LABELS", [])


@dataclass
class Suite:
    name: str
    tests: list[Test]

    @property
    def labels(self) -> set[str]:
        return {label for test in self.tests for label in test.labels}


def grouped(listing: dict) -> list[Suite]:
    """`listing`: the output of `ctest --show-only=json-v1`."""
    suites: dict[str, Suite] = {}
    for number, entry in enumerate(listing["tests"], 1):
        command = entry.get("command", [])
        properties = {one["name"]: one["value"] for one in entry.get("properties", [])}
        test = Test(number, entry["name"], command, properties)
        # The words before the program of a case are a wrapper, for one that runs in an isolated
        # machine.
        program = next((before for before, word in zip(command, command[1:])
                        if word.startswith("--gtest_filter=")), None)
        name = Path(program).name if program else test.name
        suites.setdefault(name, Suite(name, [])).tests.append(test)
    return list(suites.values())


def read(build: Path, environment: dict, options: list[str]) -> list[Suite]:
    done = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1", *options],
                          check=True, capture_output=True, text=True, env=environment)
    return grouped(json.loads(done.stdout))
