"""Faults that withhold a GPU, conditions for its recovery, and observations that must have no effect: agents on simulated machines whose
drivers return odd answers, hang, are reset and are reloaded. Needs root: ptrace keeps workers from exiting."""
import ctypes
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

from node import Node, alive, wait_until  # noqa: E402


@pytest.fixture
def make(request):
    """Makes a node from a machine and an additional configuration."""
    made = []

    def one(machine="dgx-a100", **more):
        home = Path(tempfile.mkdtemp(prefix="penstock-unwell-"))
        home.chmod(0o755)
        made.append(Node(home, request.config.getoption("--programs").resolve(), machine=machine, **more))
        return made[-1]
    yield one
    for node in made:
        node.end()


def device(node: Node, index: int) -> dict:
    return next(device for device in node.report()["devices"] if device["index"] == index)


def health(node: Node, index: int) -> str:
    return device(node, index)["health"]["state"]


def reason(node: Node, index: int) -> str:
    return device(node, index)["health"]["reason"]


def wait_for(node: Node, index: int, state: str):
    wait_until(lambda: health(node, index) == state, f"device {index} to be {state}", seen=lambda: node.penstock("status").stdout)


def wait_for_reason(node: Node, index: int, text: str):
    wait_until(lambda: text in reason(node, index), f"device {index} to be unhealthy by {text}", seen=lambda: node.penstock("status", check=False).stdout)


def look(node: Node, times: int = 3):
    """Waits until GPU 7 has failed and recovered several times; all devices are read in between."""
    for _ in range(times):
        node.sim("fault", "7", "xid", "79")
        wait_for(node, 7, "unhealthy")
        node.sim("heal", "7")
        wait_for(node, 7, "healthy")


def work(node: Node, *indices: int):
    """Gives the GPUs non-zero energy counters, which a reset sets back."""
    for index in indices:
        node.sim("set", str(index), "energy=1000000000000")


def reset(node: Node, index: int):
    environment = dict(os.environ, PENSTOCK_SIM_STATE=str(node.root / ".penstock-sim/state"))
    subprocess.run([node.root / "usr/bin/nvidia-smi", "-r", "-i", str(index)], check=True, env=environment, stdout=subprocess.DEVNULL)


def reload_driver(node: Node):
    """Loads the driver, with the line that the kernel logs."""
    node.sim("fault", "driver", "unload")
    node.sim("heal", "driver")
    log = node.root / "dev/kmsg"
    _, sequence, microseconds, _ = log.read_text().splitlines()[-1].split(",", 3)
    with open(log, "a") as kernel:
        kernel.write(f"5,{int(sequence) + 1},{microseconds},-;NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 2024\n")


@pytest.mark.parametrize("odd", [("error", "nvmlDeviceGetHandleByIndex", "999", "--count", "2"),
                                 ("error", "nvmlDeviceGetMemoryInfo", "15", "--count", "1")])
def test_an_odd_answer_does_not_make_a_gpu_well_that_must_be_reset(make, odd):
    node = make()  # driver 550.54.15, which does not report when a fault is over
    node.start_agent()
    node.sim("fault", "3", "xid", "95", "--alone")
    wait_for(node, 3, "unhealthy")
    node.sim("fault", "3", *odd)
    look(node)
    assert health(node, 3) == "unhealthy"
    assert "XID 95" in reason(node, 3)


def test_a_hang_and_a_worker_that_is_killed_do_not_either(make):
    node = make()
    node.start_agent()
    node.sim("fault", "3", "xid", "95", "--alone")
    wait_for(node, 3, "unhealthy")
    unknown = f"device={device(node, 3)['id']} from=unhealthy to=unknown"
    node.sim("fault", "3", "hang", "nvmlDeviceGetMemoryInfo", "7000", "--count", "1")
    wait_until(lambda: unknown in node.log(), "device 3 to be unknown for a while", seen=lambda: node.log()[-3000:])
    wait_for(node, 3, "unhealthy")
    assert "XID 95" in reason(node, 3)
    worker = subprocess.run(["pgrep", "-P", str(node.agent.pid), "-f", "penstock-worker"], capture_output=True, text=True, check=True)
    os.kill(int(worker.stdout.split()[0]), signal.SIGKILL)
    look(node)
    assert health(node, 3) == "unhealthy"


def test_a_reset_and_a_reload_do_also_while_no_agent_runs(make):
    node = make()
    work(node, 2, 3)
    node.start_agent()
    for index in (2, 3):
        node.sim("fault", str(index), "xid", "95")
        wait_for(node, index, "unhealthy")
    marks = node.state_dir / "health-marks.json"
    wait_until(lambda: marks.exists() and marks.read_text().count("energy") == 2, "the counters to be saved")
    reset(node, 3)
    wait_for(node, 3, "healthy")
    node.end_agent()
    node.start_agent(devices=7)
    assert health(node, 2) == "unhealthy"
    node.end_agent()
    reset(node, 2)
    node.start_agent(devices=8)
    node.sim("fault", "2", "xid", "95")
    wait_for(node, 2, "unhealthy")
    wait_until(lambda: 'unwell": true' in (node.state_dir / "health.json").read_text(), "the health to be saved")
    node.end_agent()
    reload_driver(node)
    node.start_agent(devices=8)


def test_xids_are_judged_that_came_while_no_agent_listened(make):
    node = make()
    work(node, 1)
    node.sim("fault", "1", "xid", "95")  # before the first start
    node.start_agent(devices=7)
    wait_for_reason(node, 1, "XID 95")
    reset(node, 1)
    wait_for(node, 1, "healthy")
    node.end_agent()
    node.sim("fault", "3", "xid", "95")
    node.sim("fault", "4", "xid", "48", "--alone")
    node.start_agent(devices=6)
    wait_for_reason(node, 3, "XID 95")
    wait_for_reason(node, 4, "XID 48")
    assert health(node, 1) == "healthy", "events that the previous agent judged are not judged again"
    node.kill_agent()
    node.start_agent(devices=6)


def test_the_kernels_line_counts_although_the_drivers_event_came_first(make):
    node = make("dgx-b200")
    node.start_agent()
    for code, text in (("144", "SAW_MVB Fatal XC0 i0 Link -1 (0x0)"), ("145", "RLW_REMAP Fatal XC0 i0 Link 3 (0x0)")):
        node.sim("fault", "0", "xid", code, "--alone", "--text", text)
        wait_until(lambda: any(f"XID {code}:" in line and "severity=reset" in line for line in node.log().splitlines()),
                   f"XID {code} to be judged by its text", seen=node.log)


def test_an_agent_that_was_stopped_blames_no_gpu(make):
    """Its request is older than the deadline when it goes on, and the answer came in time."""
    node = make(config="telemetry: {interval: 1s}\n")
    node.start_agent()
    worker = Path("/proc", subprocess.run(["pgrep", "-P", str(node.agent.pid), "-f", "penstock-worker"], capture_output=True, text=True, check=True).stdout.split()[0])

    def in_a_call() -> bool:
        return any("nanosleep" in (thread / "wchan").read_text() for thread in (worker / "task").iterdir())
    node.sim("fault", "all", "hang", "nvmlDeviceGetUtilizationRates", "500")

    def is_stopped_within_a_call() -> bool:
        os.kill(node.agent.pid, signal.SIGSTOP)
        if in_a_call():
            return True
        os.kill(node.agent.pid, signal.SIGCONT)
        return False
    wait_until(is_stopped_within_a_call, "a slow request to be in progress")
    before = len(node.log())
    node.sim("heal", "all")
    wait_until(lambda: not in_a_call(), "the answer")
    time.sleep(6.5)  # longer than the deadline, 5 s
    os.kill(node.agent.pid, signal.SIGCONT)
    look(node, 1)
    said = node.log()[before:]
    assert "abandoned" not in said and "hangs" not in said, said


class Held:
    """Workers that SIGKILL does not end, like processes in a driver call that hangs: ptrace(2) holds them before their exit."""
    SEIZE, INTERRUPT, DETACH, TRACE_EXIT = 0x4206, 0x4207, 17, 0x40
    libc = ctypes.CDLL(None, use_errno=True)

    def __init__(self):
        self.threads: list[int] = []
        self.pids: set[int] = set()

    def ptrace(self, what: int, thread: int, data: int = 0):
        self.libc.ptrace.argtypes = [ctypes.c_long] * 4
        return self.libc.ptrace(what, thread, 0, data)

    def hold(self, pid: int):
        self.pids.add(pid)
        for thread in map(int, os.listdir(f"/proc/{pid}/task")):
            if self.ptrace(self.SEIZE, thread, self.TRACE_EXIT) == 0:
                self.threads.append(thread)

    def let_go(self):
        for thread in self.threads:
            for _ in range(1000):
                if self.ptrace(self.DETACH, thread) == 0 or not os.path.exists(f"/proc/{thread}"):
                    break
                time.sleep(0.01)
        self.threads.clear()


def test_telemetry_that_hangs_takes_no_gpu_away(make):
    node = make(config="telemetry: {interval: 1s}\n")
    node.start_agent()
    held = Held()

    def workers() -> set[int]:
        found = subprocess.run(["pgrep", "-P", str(node.agent.pid), "-f", "penstock-worker"], capture_output=True, text=True)
        return {int(pid) for pid in found.stdout.split()}

    def abandoned() -> int:
        """Those that have not ended: one that did before it was held makes room for another."""
        return sum(alive(int(pid)) for pid in re.findall(r"worker process abandoned.* worker=(\d+)", node.log()))

    def hold_new() -> int:
        for pid in workers() - held.pids:
            held.hold(pid)
        return abandoned()
    try:
        for index in range(8):
            node.sim("fault", str(index), "hang", "nvmlDeviceGetUtilizationRates", "forever")
        wait_until(lambda: hold_new() >= 6, "six workers to hang", seen=node.log, seconds=180)
        # Hanging workers occupy all slots for samples: health is still read.
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            hold_new()
            time.sleep(0.2)
        assert abandoned() == 6
        wait_until(lambda: len(node.usable()) == 8, "all devices to be usable", seen=lambda: node.penstock("status").stdout)
    finally:
        for index in range(8):
            node.sim("heal", str(index))
        held.let_go()


def test_a_driver_updated_under_its_module_is_told(make):
    node = make()
    node.start_agent()
    node.sim("fault", "driver", "mismatch", "550.90.07")

    def conditions():
        return {one["type"]: one for one in node.report()["conditions"]}
    wait_until(lambda: not (now := conditions()["DriverReady"])["status"] and now["reason"] == "DriverUnusable", "the driver to be unusable",
               seen=lambda: (conditions(), node.penstock("status").stdout))
    assert "550.90.07" in node.penstock("status").stdout
    node.sim("heal", "driver")
    wait_until(lambda: conditions()["DriverReady"]["status"], "the driver to be ready", seen=lambda: node.penstock("status").stdout)


def problem(node: Node, index: int) -> str:
    return device(node, index)["telemetryProblem"]


def test_a_gpu_whose_measurements_hang_or_are_slow_is_shown(make):
    node = make(config="telemetry: {interval: 1s}\n")
    node.start_agent()
    assert problem(node, 2) == problem(node, 3) == ""
    node.sim("fault", "3", "hang", "nvmlDeviceGetUtilizationRates", "1500")
    wait_until(lambda: "answers slowly" in problem(node, 3), "GPU 3 to be reported as slow")
    node.sim("heal", "3")
    wait_until(lambda: problem(node, 3) == "", "GPU 3 to be reported as fast again")
    node.sim("fault", "2", "hang", "nvmlDeviceGetUtilizationRates", "forever")
    wait_until(lambda: "did not answer within 5s" in problem(node, 2), "GPU 2 to be reported as hanging")
    assert health(node, 2) == "healthy", "the calls that decide health answer"
    wait_until(lambda: "2: its measurements are missing" in node.penstock("status").stdout, "penstock status to report it")
    assert problem(node, 3) == ""
    node.sim("heal", "2")
    wait_until(lambda: problem(node, 2) == "", "GPU 2 to be measured again", seconds=120)


def test_a_gpu_that_left_the_driver_says_where_it_went(make):
    node = make()
    node.start_agent()
    gone = device(node, 3)
    at = gone["pci"]
    node.sim("fault", "3", "remove")
    left = f"no longer present: there is no PCI function {at} (unplugged)"
    wait_until(lambda: left in node.penstock("status", check=False).stdout, "the reason", seen=lambda: node.penstock("status", check=False).stdout)
    # The function is there again, for another driver.
    function = node.root / "sys/bus/pci/devices" / at
    function.mkdir(parents=True)
    (function / "driver").symlink_to("../../drivers/vfio-pci")
    bound = f"no longer present: its PCI function {at} is bound to the driver vfio-pci"
    wait_until(lambda: bound in node.penstock("status", check=False).stdout, "the driver", seen=lambda: node.penstock("status", check=False).stdout)
