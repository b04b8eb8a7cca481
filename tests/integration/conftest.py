"""Options and node fixtures of the Python integration tests."""
import os
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from amd_switching import Switching  # noqa: E402
from node import Node  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--programs", type=Path, default=Path(__file__).parents[2] / "build/dev/bin", help="folder of penstock and the other programs")
    parser.addoption("--every-fault", action="store_true", default=os.environ.get("PENSTOCK_CHECK_ALL") == "1",
                     help="fault tests: try all points instead of a subset, as scripts/check --all does")
    parser.addoption("--count-faults", action="store_true", help="fault tests: write the number of points")


@pytest.fixture
def make_node(request):
    """Makes nodes in folders that every user may enter; they are removed when the test ends."""
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


@pytest.fixture
def switching(make_node, request):
    """Makes nodes whose GPUs of AMD change their mode."""
    made = []

    def make(**machine) -> Switching:
        made.append(Switching(make_node(), request.config.getoption("--programs").resolve(), **machine))
        return made[-1]

    yield make
    for one in made:
        one.end()
