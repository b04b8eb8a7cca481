"""Options of the integration tests that are written in Python."""
import os
from pathlib import Path


def pytest_addoption(parser):
    parser.addoption("--programs", type=Path, default=Path(__file__).parents[2] / "build/dev/bin", help="folder of penstock, penstock-agent and their kin")
    parser.addoption("--every-fault", action="store_true", default=os.environ.get("PENSTOCK_CHECK_ALL") == "1",
                     help="faults_test.py: all points, not a part of them, as in scripts/check --all")
    parser.addoption("--count-faults", action="store_true", help="faults_test.py: writes how many points there are")
