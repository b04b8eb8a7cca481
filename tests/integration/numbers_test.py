"""GPU indices while another GPU is missing and the driver's numbers shift: on a simulated DGX A100 with eight GPUs."""
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from node import Node, wait_until  # noqa: E402


@pytest.fixture
def make_node(request):
    nodes = []

    def make(config: str = "") -> Node:
        home = Path(tempfile.mkdtemp(prefix="penstock-numbers-"))
        nodes.append(Node(home, request.config.getoption("--programs"), config=config))
        nodes[-1].start_agent()
        return nodes[-1]

    yield make
    for node in nodes:
        node.end()


def state_of(node) -> dict[str, tuple]:
    return {device["id"]: (device["index"], device["health"]["state"]) for device in node.report()["devices"]}


def pull(node, index: int) -> tuple[str, list[str]]:
    """Removes a GPU. Returns its id, and the ids of the others in the order of their former indices."""
    ids = [device["id"] for device in node.report()["devices"]]
    node.sim("fault", ids[index], "remove")
    wait_until(lambda: state_of(node)[ids[index]][1] == "gone" and sorted(
        state[0] for state in state_of(node).values() if state[1] == "healthy") == list(range(7)), "the driver to renumber the GPUs",
        seen=lambda: state_of(node))
    return ids[index], ids[:index] + ids[index + 1:]


def test_a_gpu_that_is_away_has_no_index(make_node):
    node = make_node()
    gone, others = pull(node, 6)
    assert [device["id"] for device in node.report()["devices"]] == [*others, gone]
    assert state_of(node)[gone] == (None, "gone")
    given = node.penstock("run", "--device", "6", "--wait", "0", "--", "printenv", "CUDA_VISIBLE_DEVICES").stdout.strip()
    assert given == others[6]
    moved = node.penstock("assign", "6", "none", "--dry-run", "-o", "json").stdout
    assert others[6] in moved and gone not in moved
    named = node.penstock("run", "--device", gone, "--wait", "0", "--", "true", check=False)
    assert named.returncode == 124 and f"{gone}: " in named.stderr, named.stderr
    node.sim("heal", gone)
    wait_until(lambda: state_of(node).get(gone) == (6, "healthy"), "the GPU to be back", seen=lambda: state_of(node))


def test_rules_by_index_keep_to_the_place(make_node):
    node = make_node("""allocators: {assign: [{devices: [3], allocator: local}, {allocator: none}]}
sharing: {rules: [{devices: [3], strategy: time-slicing, replicas: 4}]}
""")

    def offered() -> dict[str, int]:
        return {device["id"]: device["shares"] for device in node.report()["devices"] if device["allocator"] == "local"}
    before = offered()
    assert list(before.values()) == [4]
    gone, _ = pull(node, 1)
    assert offered() == before
    assert "matches no device" not in node.log()
    node.sim("heal", gone)
    wait_until(lambda: state_of(node)[gone] == (1, "healthy"), "the GPU to be back", seen=lambda: state_of(node))
    assert offered() == before
