"""The systemd unit, judged by systemd itself: every line is understood, and how much it confines
the agent is printed. Starts nothing."""
import re
import subprocess
from pathlib import Path

import pytest


@pytest.fixture
def unit(request, tmp_path) -> Path:
    """The unit that this build installs. The agent it starts is the build's, since nothing is
    installed here."""
    programs = Path(request.config.getoption("--programs")).resolve()
    text = (programs.parent / "deploy/systemd/penstock-agent.service").read_text()
    text, count = re.subn(r"^(ExecStart=)\S*/(penstock-agent)$", rf"\1{programs}/\2", text, flags=re.M)
    assert count == 1
    file = tmp_path / "penstock-agent.service"
    file.write_text(text)
    return file


def complaints(unit: Path) -> str:
    # --recursive-errors=no: other units of this machine are not judged.
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", unit], capture_output=True, text=True)
    return done.stdout + done.stderr + (f"exit status {done.returncode}" if done.returncode else "")


def test_systemd_understands_every_line(unit):
    assert complaints(unit) == ""


@pytest.mark.parametrize("line, replacement, complaint", [
    ("Type=notify", "Type=notifying", "notifying"), ("RestartSec=1", "RestartSeconds=1", "RestartSeconds"),
    ("ProtectSystem=full", "ProtectSystem=fully", "fully"),
    (r"ExecStart=\S+", "ExecStart=/no/such/program", "/no/such/program")])
def test_a_line_that_systemd_does_not_understand_would_be_found(unit, line, replacement, complaint):
    text, count = re.subn(f"^{line}$", replacement, unit.read_text(), flags=re.M)
    assert count == 1
    unit.write_text(text)
    assert complaint in complaints(unit)


def test_it_confines_the_agent_as_far_as_its_work_allows(unit):
    done = subprocess.run(["systemd-analyze", "security", "--offline=yes", "--no-pager", unit], capture_output=True, text=True)
    print(done.stdout)
    assert float(re.search(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout).group(1)) < 5.5


def test_what_it_does_not_set_has_a_reason_in_it(unit):
    """Each line of systemd's judgement is a setting of the unit, or stands in its list of what is not set."""
    done = subprocess.run(["systemd-analyze", "security", "--offline=yes", "--no-pager", unit], capture_output=True, text=True)
    text = unit.read_text()
    open_settings = {name for line in done.stdout.splitlines() if line.startswith("✗") for name in re.findall(r"(\w+)=", line.split("  ")[0])}
    assert {"User", "PrivateDevices", "PrivateNetwork"} <= open_settings
    assert sorted(name for name in open_settings if f"{name}=" not in text) == []
