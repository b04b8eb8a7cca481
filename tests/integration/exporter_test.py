"""Series under dcgm-exporter's names: their host labels, and the pods of a shared GPU. On simulated machines with a kubelet."""
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from monitored import Fleet, Monitored  # noqa: E402
from node import wait_until  # noqa: E402

TELEMETRY = "telemetry: {interval: 1s, names: [dcgm]%s}\n"
SHARED = "sharing: {rules: [{strategy: time-slicing, replicas: 4}]}\n"
POWER, MEMORY, USE = "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_GPU_UTIL"
THEIR_OWN = {MEMORY, USE}  # values that the driver reports for each process


@pytest.fixture
def start(request):
    fleet = Fleet(request.config.getoption("--programs").resolve())
    yield lambda config, machine="a100-40gb-x1": fleet.add("n1", machine, config)
    fleet.end()


def series(node: Monitored, family: str) -> list[dict[str, str]]:
    """The labels of each series."""
    return [dict(re.findall(r'([A-Za-z_]+)="([^"]*)"', labels)) for labels in re.findall(rf"^{family}\{{(.*)\}} \S+$", node.metrics(), re.M)]


def pods(node: Monitored, family: str) -> list[str | None]:
    return sorted((labels.get("pod") for labels in series(node, family)), key=str)


def await_pods(node: Monitored, family: str, wanted: list[str | None]):
    wait_until(lambda: pods(node, family) == wanted, f"{family} to be {wanted}'s", seen=lambda: pods(node, family))


def families(node: Monitored) -> set[str]:
    return set(re.findall(r"^(DCGM_FI_DEV\w+)\{", node.metrics(), re.M))


def test_of_a_shared_gpu_pods_have_the_values_that_are_their_own_and_all_others_are_there_once(start):
    node = start(TELEMETRY % "" + SHARED)
    node.kubelet_program.healthy(4)
    await_pods(node, MEMORY, [None])
    for pod in ("a", "b"):
        node.kubelet_program.start("ml", pod)
    await_pods(node, MEMORY, ["a", "b"])
    await_pods(node, USE, ["a", "b"])
    assert pods(node, POWER) == [None]
    for family in families(node) - THEIR_OWN:
        assert not [one for one in pods(node, family) if one], family
    assert {labels["vgpu"] for labels in series(node, MEMORY)} <= {"0", "1", "2", "3"} and len(series(node, MEMORY)) == 2

    node.kubelet_program.end("ml", "a")
    await_pods(node, MEMORY, ["b"])
    node.kubelet_program.end("ml", "b")
    await_pods(node, MEMORY, [None])
    await_pods(node, USE, [None])


@pytest.mark.parametrize("said, of_power, of_memory", [("true", ["a", "b"], ["a", "b"]), ("false", [None], [None])])
def test_all_series_or_none_are_the_pods_where_one_says_so(start, said, of_power, of_memory):
    node = start(TELEMETRY % f", virtualGpus: {said}" + SHARED)
    node.kubelet_program.healthy(4)
    for pod in ("a", "b"):
        node.kubelet_program.start("ml", pod)
    wait_until(lambda: sorted(holder["pod"] for holder in node.holders() if holder.get("pod")) == ["a", "b"], "the agent to know both pods",
               seen=node.holders)
    await_pods(node, POWER, of_power)
    await_pods(node, MEMORY, of_memory)


def test_a_whole_gpu_is_its_pods_whatever_is_said_of_shared_ones(start):
    node = start(TELEMETRY % "")
    node.kubelet_program.healthy(1)
    node.kubelet_program.start("ml", "train")
    for family in (POWER, MEMORY, USE):
        await_pods(node, family, ["train"])
        assert "vgpu" not in series(node, family)[0]


def test_series_can_have_the_hosts_label_in_both_spellings(start):
    node = start(TELEMETRY % ", hostLabel: both", machine="dgx-h100")

    def shown() -> list[str]:
        return [line for line in node.metrics().splitlines() if line.startswith("DCGM_")]
    for line in wait_until(lambda: len(lines := shown()) > 100 and lines, "more than 100 series", seen=lambda: len(shown())):
        labels = re.findall(r'([A-Za-z_]+)="([^"]*)"', line)
        names = [name for name, _ in labels]
        assert len(set(names)) == len(names), line
        assert [label for label in labels if label[0].lower() == "hostname"] == [("Hostname", "n1"), ("hostname", "n1")], line
