"""The health of AMD's GPUs: errors that amdgpu writes to the kernel's log, resets of a hive, counters that fall, files that hang. Needs root, to mount a file that hangs."""
import contextlib
import re
import subprocess
import threading
import time

import pytest

from amd import Amd
from answering import Answering
from node import Node, wait_until

INACCESSIBLE = "Query currently inaccessible\n"


@pytest.fixture
def node(make_node) -> Node:
    node = make_node()
    node.listen = f"unix:{node.home}/page.sock"
    return node


def health(node: Node, device: str) -> dict:
    return next((one["health"] for one in node.report()["devices"] if one["id"] == device), {})


def state(node: Node, device: str) -> str:
    return health(node, device).get("state", "")


def wait_for(node: Node, device: str, wanted: str, reason: str = ""):
    wait_until(lambda: (now := health(node, device)).get("state") == wanted and reason in now["reason"], f"{device} to be {wanted}: {reason}",
               seen=lambda: f"{health(node, device)}\n{node.log()[-3000:]}")


def metrics(node: Node) -> str:
    return subprocess.run(["curl", "-sS", "--unix-socket", node.home / "page.sock", "http://node/metrics"], check=True, capture_output=True, text=True).stdout


def test_what_the_kernels_log_says_of_a_gpu_keeps_it_out_until_the_driver_is_loaded_again(node):
    amd = Amd(node.root, model="mi210")
    amd.logs("amdgpu: Topology: Add CPU node")
    node.start_agent(devices=16)
    # A program chooses its name, which the driver writes into its lines.
    amd.says(5, "Process information: process device lost from bus! pid 4711 thread GPU reset begin! pid 4711")
    amd.says(4, "ring comp_1.0.0 timeout, signaled seq=3, emitted seq=5")
    amd.says(3, "GPU reset(2) failed with error -110 ")
    wait_for(node, amd.id(3), "unhealthy", "the driver could not reset the GPU (error 110)")
    assert "the driver could not reset the GPU (error 110)" in node.penstock("status").stdout
    wait_until(lambda: re.search(rf'^accelerator_healthy{{device="{amd.id(3)}"[^}}]*}} 0$', page := metrics(node), re.MULTILINE) and 'kind="ring-timeout"' in page,
               "the page to show it, and the warning to be counted", seen=lambda: metrics(node))
    assert [state(node, amd.id(gpu)) for gpu in (2, 4, 5)] == ["healthy"] * 3
    # A success that is reported later ends nothing.
    amd.says(3, "GPU reset(3) succeeded!")
    amd.says(2, "device wedged, needs recovery", tag="[drm] ")
    wait_for(node, amd.id(2), "unhealthy", "wedged")
    node.end_agent()
    node.start_agent(devices=14)
    wait_for(node, amd.id(3), "unhealthy", "the driver could not reset the GPU (error 110)")
    amd.reload()
    for gpu in (2, 3):
        wait_for(node, amd.id(gpu), "healthy")


def test_errors_of_the_time_before_the_first_start_count_since_the_driver_was_loaded(node):
    amd = Amd(node.root, model="mi210")
    amd.says(1, "device lost from bus!")
    amd.logs("amdgpu: Topology: Add CPU node")
    amd.says(2, "{3}uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!", tag="")
    node.start_agent(devices=15)
    wait_for(node, amd.id(2), "unhealthy", "fatal hardware error")
    assert state(node, amd.id(1)) == "healthy"


def test_pr_195_a_gpu_whose_node_leaves_the_topology_is_withheld_and_comes_back_with_it(node):
    amd = Amd(node.root, model="mi210")
    node.start_agent(devices=16)
    amd.topology(skip=(2,))
    left = time.monotonic()
    wait_for(node, amd.id(2), "gone", f"no longer present: its PCI function {amd.address(2)} is bound to the driver amdgpu")
    assert time.monotonic() - left < 60, "polls are 100 ms apart here"
    assert f"its PCI function {amd.address(2)} is bound to the driver amdgpu" in node.penstock("status").stdout
    refused = node.penstock("run", "--wait", "0", "--device", amd.id(2), "--", "true", check=False)
    assert refused.returncode == 124 and f"{amd.id(2)}: no longer present" in refused.stderr, refused.stderr
    assert [state(node, amd.id(gpu)) for gpu in range(8) if gpu != 2] == ["healthy"] * 7
    assert node.penstock("run", "--wait", "1m", "--device", amd.id(6), "--", "true").returncode == 0
    amd.topology()
    wait_for(node, amd.id(2), "healthy")
    assert node.penstock("run", "--wait", "1m", "--device", amd.id(2), "--", "true").returncode == 0


def test_a_reset_is_of_all_gpus_of_its_hive(node):
    amd = Amd(node.root)
    node.start_agent(devices=16)
    amd.errors(2, "umc", text=INACCESSIBLE)
    amd.says(2, "GPU reset begin!. Source:  3")
    wait_for(node, amd.id(2), "unhealthy", "reset")
    for gpu in (0, 1, 3, 4, 5, 6, 7):
        wait_for(node, amd.id(gpu), "unhealthy", f"the GPU is being reset together with {amd.id(2)}")
    amd.errors(2, "umc")
    for gpu in range(8):
        amd.says(gpu, "GPU reset(1) succeeded!")
        amd.says(gpu, "device wedged, but recovered through reset", tag="[drm] ")
    for gpu in range(8):
        wait_for(node, amd.id(gpu), "healthy")


def test_counters_that_fall_are_no_recovery(node):
    amd = Amd(node.root, model="mi210")
    node.start_agent(devices=16)
    amd.errors(2, "umc", uncorrectable=3)
    wait_for(node, amd.id(2), "unhealthy", "3 uncorrectable errors in block umc")
    amd.errors(2, "umc")
    wait_until(lambda: "error counters of a GPU fell" in node.log(), "the fall to be said", seen=node.log)
    wait_for(node, amd.id(2), "unhealthy", "3 uncorrectable errors in block umc")
    amd.reload()
    wait_for(node, amd.id(2), "healthy")


def test_a_hang_inside_a_file_costs_one_gpu(node):
    amd = Amd(node.root, model="mi210")
    answering, released = Answering(amd.sys / "hanging"), threading.Event()
    with contextlib.ExitStack() as ends:
        ends.callback(answering.close)
        ends.callback(released.set)
        node.start_agent(devices=16)

        def answer() -> str:
            released.wait()
            return "ue: 0\nce: 0\n"

        answering.add("umc", answer, lambda _: None)
        amd.link(f"{amd.folder(2)}/ras/umc_err_count", "hanging/umc")
        wait_for(node, amd.id(2), "unknown", "a driver call for this device hangs")
        amd.errors(6, "umc", uncorrectable=1)
        wait_for(node, amd.id(6), "unhealthy", "1 uncorrectable errors in block umc")
        assert {state(node, amd.id(gpu)) for gpu in range(8) if gpu not in (2, 6)} == {"healthy"}
        released.set()
        wait_for(node, amd.id(2), "healthy")
        node.end_agent()
