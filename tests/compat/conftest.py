"""Options of the compatibility tests."""
from pathlib import Path


def pytest_addoption(parser):
    parser.addoption("--programs", type=Path, default=Path(__file__).parents[2] / "build/dev/bin",
                     help="folder of penstock, penstock-agent and the other programs")
