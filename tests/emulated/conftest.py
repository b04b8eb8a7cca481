"""Options of the tests that run inside the emulated machine; they refuse any other machine, whose modules they would load and unload."""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import emulated  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--programs", type=Path, default=Path(__file__).parents[2] / "build/dev/bin", help="folder of penstock; emulated-penstock is in ../tests")


def pytest_collection_modifyitems(items):
    if items and not emulated.inside():
        pytest.exit("these tests run inside the machine: tests/support/emulated.py scripts/python -m pytest ...", returncode=2)
