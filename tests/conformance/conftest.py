"""Simulated machines for third-party clients. Each test has its own machine in a temporary folder."""
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2]
sys.path.append(str(SOURCE / "tests/support"))


def pytest_addoption(parser):
    parser.addoption("--programs", required=True, help="folder of penstock-sim")


@dataclass
class Machine:
    """A started machine and its machine file."""
    root: Path
    sim: Path
    name: str

    def do(self, *arguments) -> str:
        done = subprocess.run([self.sim, *arguments, "--root", self.root], capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, f"penstock-sim {arguments}: {done.stderr}"
        return done.stdout

    @property
    def gpus(self) -> list[dict]:
        """The model and PCI address of each GPU, from the machine file's text, independently of Penstock's parser."""
        text = (SOURCE / "sim/machines" / f"{self.name}.yaml").read_text()
        return [dict(model=model, pci=pci) for model, pci in re.findall(r'model: ([\w-]+), pci: "([0-9a-f:.]+)"', text)]

    @property
    def status(self) -> dict:
        return json.loads(self.do("status", "-o", "json"))

    @property
    def environment(self) -> dict:
        return {**os.environ, "LD_LIBRARY_PATH": str(self.root / "usr/lib/x86_64-linux-gnu"), "PYTHONDONTWRITEBYTECODE": "1"}

    def popen(self, code: str) -> subprocess.Popen:
        """Starts Python code in its own process, like a third-party program on this machine."""
        prelude = "import json, sys\nfrom pynvml import *\ndef say(value): print(json.dumps(value), flush=True)\n"
        return subprocess.Popen([sys.executable, "-c", prelude + code], env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, code: str):
        """Runs the code; returns the last value that it printed."""
        process = self.popen(code)
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        return json.loads(output.splitlines()[-1])

    def command(self, *arguments) -> subprocess.CompletedProcess:
        return subprocess.run(arguments, env=self.environment, capture_output=True, text=True, timeout=60)


@pytest.fixture
def start(request, tmp_path):
    sim = Path(request.config.getoption("--programs")).resolve() / "penstock-sim"
    started = []

    def start_machine(name: str, *options) -> Machine:
        machine = Machine(tmp_path / f"machine{len(started)}", sim, name)
        machine.do("start", name, *options)
        started.append(machine)
        return machine

    yield start_machine
    for machine in started:
        machine.do("stop")


@pytest.fixture
def dgx(start) -> Machine:
    return start("dgx-a100")


@pytest.fixture
def mixed(start) -> Machine:
    return start("mixed")
