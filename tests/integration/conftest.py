"""Options of the integration tests that are written in Python, and nodes for them."""
import os
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from node import Node  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--programs", type=Path, default=Path(__file__).parents[2] / "build/dev/bin", help="folder of penstock, penstock-agent and their kin")
    parser.addoption("--every-fault", action="store_true", default=os.environ.get("PENSTOCK_CHECK_ALL") == "1",
                     help="faults_test.py: all points, not a part of them, as in scripts/check --all")
    parser.addoption("--count-faults", action="store_true", help="faults_test.py: writes how many points there are")


@pytest.fixture
def make_node(request):
    """Makes nodes, in folders that every user may enter; they end with the test."""
    if os.getuid() != 0:
        pytest.fail("control groups and other users need root")
    nodes = []

    def make(**options) -> Node:
        home = Path(tempfile.mkdtemp(prefix="penstock-node-"))
        home.chmod(0o755)
        nodes.append(Node(home, request.config.getoption("--programs"), **options))
        return nodes[-1]

    yield make
    for node in nodes:
        node.end()
