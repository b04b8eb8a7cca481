"""The container in which the agent opens its node's devices, with a real containerd and a pretended kubelet: what it shows, when it is started, and that nothing of it is
left. Needs root; runs in a mount namespace with its own /etc and /run."""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).parents[1] / "e2e/cluster"))

from doctor_test import Containerd  # noqa: E402
from monitored import Monitored  # noqa: E402
from node import wait_until  # noqa: E402
from podman import Host  # noqa: E402

SOCKET = "/run/containerd/containerd.sock"
APART = 30  # seconds between two containers of an agent: what changes meanwhile makes one at the end of them


@pytest.fixture(scope="module")
def host():
    if os.getuid() != 0:
        pytest.fail("containers with devices need root")
    host = Host(Path(tempfile.mkdtemp(prefix="penstock-checked-")))
    yield host
    host.end()


@pytest.fixture
def containerd(host):
    containerd = Containerd(host)
    containerd.start(cdi="true")
    yield containerd
    containerd.end()


@pytest.fixture
def make(request, host):
    """Makes a node whose agent asks that engine."""
    made = []

    def one(config: str = "") -> Monitored:
        home = Path(tempfile.mkdtemp(prefix="penstock-checked-"))
        home.chmod(0o755)
        node = Monitored(home, request.config.getoption("--programs").resolve(), "t4-x1", "gpu-7", f"containers: {{engineSocket: {SOCKET}}}\n{config}")
        node.cdi_dir = Path("/var/run/cdi")
        made.append(node)
        node.start_agent(host.entering)
        return node
    yield one
    for node in made:
        node.end()
    host.clear()


def toolkit(node: Monitored) -> dict:
    return next((step for step in (node.report() or {"status": {}})["status"].get("validation", []) if step["name"] == "toolkit"), {"state": "", "reason": ""})


def wait_toolkit(node: Monitored, state: str, reason: str):
    wait_until(lambda: (step := toolkit(node))["state"] == state and re.search(reason, step["reason"]), f"the step toolkit to be {state}: {reason}",
               seen=lambda: f"{toolkit(node)}\n{node.log()[-3000:]}")


def sandboxes(containerd: Containerd) -> str:
    return containerd.ctr("--namespace", "k8s.io", "containers", "list", "--quiet", 'labels."penstock.io/proof"==agent').stdout.decode()


def asked(host: Host) -> int:
    """How many containers of the validation the engine was asked for, since the first test."""
    return len(re.findall(r"CreateContainer within sandbox [^\n]* for container &ContainerMetadata\{Name:penstock-proof,", (host.home / "containerd.log").read_text()))


def asked_at_rest(host: Host) -> int:
    """The same, once no agent owes another one."""
    seen: list[tuple[float, int]] = []

    def rests() -> bool:
        now = time.monotonic(), asked(host)
        if not seen or seen[-1][1] != now[1]:
            seen.append(now)
        return now[0] - seen[-1][0] > APART + 10  # it is seen some seconds after it was due
    wait_until(rests, f"no container within {APART} s", seconds=240, every=0.5, seen=lambda: seen)
    return seen[-1][1]


def test_one_container_has_opened_the_devices_and_nothing_is_left(host, containerd, make):
    before = asked(host)
    node = make()
    wait_toolkit(node, "passed", r"; a container opened 0 device files, and may open [1-9]\d* that no driver serves$")
    wait_until(lambda: not sandboxes(containerd), "the sandbox to be removed", seen=lambda: sandboxes(containerd))
    ended = asked_at_rest(host)
    assert ended > before
    node.kubelet_program.start("default", "a-pod")
    wait_until(node.holders, "the pod to hold its device")
    node.kubelet_program.end("default", "a-pod")
    wait_until(lambda: not node.holders(), "the pod to be gone")
    assert asked(host) == ended, "what pods do starts no container"


def test_an_engine_without_an_image_of_its_own_is_no_failure(host, containerd, make):
    containerd.ctr("--namespace", "k8s.io", "images", "rm", "registry.local/pause:1")
    node = make()
    wait_toolkit(node, "passed", "; no container tried it: the engine reports no image")
    assert node.penstock("validate", check=False).returncode == 0


def test_a_killed_agents_container_is_removed_by_the_next_one(host, containerd, make):
    node = make()
    for _ in range(50):  # an agent may be done with it before it is killed
        node.kill_agent()
        before = asked(host)
        node.launch_agent(host.entering)
        wait_until(lambda: asked(host) > before, "a container to be on its way", seen=node.log)
        node.kill_agent()
        if left := sandboxes(containerd):
            break
    assert left
    node.start_agent(host.entering)
    wait_toolkit(node, "passed", "a container opened")
    wait_until(lambda: not sandboxes(containerd), "what was left to be removed", seen=lambda: sandboxes(containerd))


def test_the_waiting_program_ends_when_its_engine_asks_it_to_once_another_has_answered(request, host):
    """As the first process of a namespace, which no signal ends that it does not handle. A kubelet asks it to end while the other one opens the devices."""
    program = request.config.getoption("--programs").resolve() / "penstock-probe"
    waiting = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", program, "--wait", "3600"])
    children = Path(f"/proc/{waiting.pid}/task/{waiting.pid}/children")

    def first() -> str:
        return next((child for child in children.read_text().split() if os.path.basename(os.readlink(f"/proc/{child}/exe")) == "penstock-probe"), "")

    def handles(number: int) -> bool:
        caught = next(line for line in Path(f"/proc/{first()}/status").read_text().splitlines() if line.startswith("SigCgt:"))
        return bool(int(caught.split()[1], 16) >> (number - 1) & 1)

    def answered(*words) -> str:
        return subprocess.run(["nsenter", "--pid", "--target", first(), program, *words, "/dev/null", "/missing"], check=True, capture_output=True, text=True).stdout

    def ends() -> bool:
        if waiting.poll() is None and (child := first()):
            os.kill(int(child), signal.SIGTERM)
        return waiting.poll() is not None
    try:
        wait_until(lambda: first() and handles(signal.SIGTERM), "the program to wait")
        assert not ends()
        assert answered() == "0 /dev/null\n2 /missing\n" and not ends(), "it is not the last one"
        assert answered("--last") == "0 /dev/null\n2 /missing\n"
        wait_until(ends, "the program to end")
        assert waiting.returncode == 0
    finally:
        waiting.kill()
        waiting.wait()


def test_none_is_started_where_it_is_switched_off(host, containerd, make):
    before = asked(host)
    node = make("validation: {container: false}\n")
    wait_toolkit(node, "passed", "; no container tried it: validation.container is off$")
    assert asked(host) == before
