"""Fault injection into the agent's own file operations. Each call that the agent makes on one of
its files fails once, and once kills the agent: while the agent starts, grants a run, answers an
Allocate, applies another configuration, writes specifications and state, and exits. The tests
assert that no device is held twice, that every program and pod keeps its devices, that no file is
partly written, and that the agent either continues to serve or logs which file failed and why, and
can be restarted. Needs root.

By default a subset of the points is tried; `--every-fault` tries all of them. faults_points.json
records the number of points of each scenario, which must not decrease; `--count-faults` writes it.
"""
import contextlib
import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from broker import ask  # noqa: E402
from faults import KILL, Faults, Point, chosen, counted, points_of  # noqa: E402
from monitored import Kubelet  # noqa: E402
from node import PATIENCE, Node, alive, wait_until  # noqa: E402

CONFIG = """allocators: {assign: [{devices: [0, 1, 2, 3], allocator: local}]}
telemetry: {interval: 30s}
"""
# Devices: held by a run, assigned to no allocator, lost in the scenario `health`, unhealthy.
LOCAL, MOVED, LOST, UNWELL = 0, 3, 5, 7
# Random parts of paths.
NAMES = ((r"(/\.[^/]+)\.[A-Za-z0-9]{6}$", r"\1.*"), (r"/r-[0-9a-z]+-\d+", "/r-*"),
         (r"/\.probe-\d+", "/.probe-*"))
# These are read each time that a test asks for the holders, so their number varies.
POLLED = re.compile(r"groups/r-\*/(cgroup\.procs|cgroup\.events|cgroup\.stat|memory\..*|cpu\..*)$")
READING = {"read", "pread64", "getdents64"}


class Machine:
    """A simulated machine with devices for local users and for the kubelet. One device was assigned
    manually and one is unhealthy. A run and a pod hold devices while agents start and exit."""

    def __init__(self, home: Path, programs: Path):
        home.chmod(0o755)
        self.kubelet = Kubelet(home, programs)
        self.node = Node(home, programs, config=CONFIG, kubelet=self.kubelet.dir)
        self.faults: Faults | None = None
        self.runs: dict[subprocess.Popen, int] = {}
        self.pods: dict[str, list[str]] = {}
        self.knows_moved = self.knows_unwell = True
        self.text = self.node.config.read_text()
        self.texts = 0  # number of configurations written
        self.devices = 8
        self.start()
        self.ids = {device["index"]: device["id"] for device in self.report()["devices"]}
        self.run(LOCAL)
        self.pod("first")
        self.node.penstock("assign", str(MOVED), "none")
        self.node.sim("fault", str(UNWELL), "xid", "48")  # the device itself does not keep it
        wait_until(lambda: self.kept("health.json", 'unwell": true'), "health to be saved")
        wait_until(lambda: self.kept("ledger.json", self.pods["first"][0]), "leases to be saved")

    # The agent.

    def launch(self, point: Point | None = None):
        """Starts an agent that fails at the given point, without waiting for it."""
        node = self.node
        roots = {"state": node.state_dir, "run": node.run_dir, "cdi": node.cdi_dir,
                 "config": node.config, "groups": node.group_place()}
        self.faults = Faults(node.home, roots, NAMES)
        self.faults.look(point)
        log = node.home / "agent.log"
        self.log_begin = log.stat().st_size if log.exists() else 0
        with open(log, "ab") as output:
            command = [*self.faults.wrapper(), *map(str, node.agent_command())]
            node.agent = subprocess.Popen(command, stdout=output, stderr=output,
                                          stdin=subprocess.DEVNULL, start_new_session=True)

    def start(self):
        """Starts an agent without faults and waits until it serves."""
        self.launch()
        wait_until(lambda: self.ready() or self.ended(), "the agent to serve", seen=self.log)
        assert not self.ended(), self.log()
        self.faults.stop()

    def ended(self) -> bool:
        return self.node.agent.poll() is not None

    def kill(self):
        if not self.ended():
            self.node.agent.kill()
        self.node.agent.wait()
        self.faults.close()

    def report(self) -> dict | None:
        return ask(self.node.run_dir, {"op": "status"})

    def ready(self) -> bool:
        """Whether all devices were read, the kubelet has their list, and specifications are written."""
        report = self.report()
        if not report or len(report["devices"]) < self.devices:
            return False
        kubelet = next(allocator for allocator in report["allocators"] if allocator["name"] == "kubelet")
        return (all(device["health"]["state"] != "unknown" for device in report["devices"])
                and kubelet["state"] == "open"
                and (report["cdi"]["kinds"] != [] or report["cdi"]["problems"] != []))

    def log(self) -> str:
        with open(self.node.home / "agent.log", "rb") as log:
            log.seek(self.log_begin)
            return log.read().decode(errors="replace")

    def device(self, index: int) -> dict | None:
        """The agent's report of a device; None if the agent does not list the device or does not answer."""
        devices = (self.report() or {"devices": []})["devices"]
        return next((device for device in devices if device["id"] == self.ids[index]), None)

    # Runs and pods.

    def run(self, device: int) -> subprocess.Popen:
        process = self.node.start("--device", device, "--", "sleep", "100000")
        wait_until(lambda: self.holds(process) or process.poll() is not None, "the run to begin")
        if process.poll() is None:
            self.runs[process] = device
        return process

    def holds(self, process: subprocess.Popen) -> bool:
        return any(process.pid in holder["pids"] for holder in self.holders())

    def end_run(self, process: subprocess.Popen):
        process.kill()
        process.communicate()
        self.node.started.remove(process)
        self.runs.pop(process, None)

    def pod(self, name: str):
        self.pods[name] = self.kubelet.start("ml", name)

    def holders(self) -> list[dict]:
        answer = ask(self.node.run_dir, {"op": "ps"})
        return answer["holders"] if answer else []

    def held(self, index: int) -> bool:
        return index in {holder["index"] for holder in self.holders()}

    def write_config(self, more: str):
        """Writes a configuration that differs from the last one."""
        self.texts += 1
        new = self.node.config.with_suffix(".new")
        new.write_text(f"{self.text}# {self.texts}\n{more}")
        new.rename(self.node.config)

    # Invariants.

    def kept(self, file: str, text: str) -> bool:
        path = self.node.state_dir / file
        return path.exists() and text in path.read_text()

    def check_files(self):
        """Asserts that each file that other programs read is complete."""
        for path in [*self.node.state_dir.glob("*.json"), *self.node.cdi_dir.glob("*.json")]:
            json.loads(path.read_text())
        for path in self.node.state_dir.glob("usage/*.jsonl"):
            for line in path.read_text().splitlines(keepends=True):
                assert line.endswith("\n"), f"incomplete line in {path}"
                json.loads(line)
        assert not list(self.node.state_dir.glob("*.damaged"))

    def problem(self) -> str:
        """The first violated invariant; empty if all hold."""
        if self.ended():
            return "the agent has exited"
        holders, moved, unwell = self.holders(), self.device(MOVED), self.device(UNWELL)
        if moved is None or unwell is None:
            return "the agent does not answer"
        by_device: dict[int, list] = {}
        for holder in holders:
            by_device.setdefault(holder["index"], []).append(holder)
        twice = {index: holders for index, holders in by_device.items() if len(holders) > 1}
        assert not twice, f"held twice: {twice}"
        for process, index in self.runs.items():
            assert alive(process.pid), "a program that held a device was killed"
            if not any(process.pid in holder["pids"] for holder in by_device.get(index, [])):
                return f"the run on device {index} holds nothing: {by_device}"
        of_pods = {holder["device"] for holder in holders if not holder["lease"].startswith("r-")}
        for name, ids in self.pods.items():
            if not set(ids) <= of_pods:
                return f"pod {name} holds nothing: {by_device}"
        if self.knows_moved and moved["allocator"] != "":
            return f"device {MOVED} was assigned to no allocator, and is assigned to {moved['allocator']}"
        if self.knows_unwell and unwell["health"]["state"] == "healthy":
            return f"device {UNWELL} is unhealthy, and offered"
        return ""

    def check_holders(self):
        """Waits until every program and pod holds exactly the devices allocated to it."""
        wait_until(lambda: self.problem() == "", "every program and pod to hold its devices",
                   seen=lambda: f"{self.problem()}\n{self.log()}")

    def check(self, point: Point, scenario: "Scenario"):
        """Asserts that the agent continues to serve, or exited with the expected status, and that the
        next agent takes over everything, also after SIGKILL."""
        if self.ended():
            self.check_end(point, scenario.status)
        else:
            self.check_files()
            if not scenario.hides_leases(point):
                self.check_holders()
        self.kill()
        self.check_files()
        self.start()
        self.check_files()
        self.check_holders()

    def check_end(self, point: Point, status: int):
        ended_with = self.node.agent.returncode
        if point.action == KILL and self.faults.hit:
            assert ended_with == -signal.SIGKILL, self.log()
            return
        assert ended_with == status, f"ended with {ended_with}:\n{self.log()}"
        if ended_with != 0:
            what = os.strerror(getattr(errno, point.action))
            assert any(what in line and any(root in line for root, _ in self.faults.roots)
                       for line in self.log().splitlines()), f"no error in the log names the file:\n{self.log()}"

    def end(self):
        for process in list(self.runs):
            self.end_run(process)
        self.kill()
        self.kubelet.stop()
        self.node.end()


class Scenario:
    """A scenario. `act` returns when the action has completed or failed; calls of the following `late`
    seconds also belong to it; `status` is the exit status of an agent that exits by itself."""
    late = 1.0
    status = 1

    def hides_leases(self, point: Point) -> bool:
        """Whether an agent that fails at this point may miss leases, which the next agent finds."""
        return False

    def before(self, machine: Machine):
        """Prepares the machine. No faults are injected here."""

    def begin(self, machine: Machine, point: Point | None):
        machine.faults.look(point)

    def act(self, machine: Machine):
        raise NotImplementedError

    def after(self, machine: Machine):
        """Restores the previous state. No faults are injected here."""


class Start(Scenario):
    late = 2.0

    def before(self, machine):
        machine.kill()
        for path in machine.node.cdi_dir.glob("*.json"):
            path.unlink()

    def begin(self, machine, point):
        machine.launch(point)

    def act(self, machine):
        wait_until(lambda: machine.ready() or machine.ended(), "the agent to serve or to exit",
                   seen=machine.log)


class FirstStart(Start):
    """Start without a state folder: leases are read from control groups and the kubelet."""

    def hides_leases(self, point):
        return point.path.startswith("groups")

    def before(self, machine):
        machine.kill()
        machine.knows_moved = machine.knows_unwell = False
        shutil.rmtree(machine.node.state_dir)
        shutil.rmtree(machine.node.cdi_dir)


class Run(Scenario):
    late = 4.0  # usage is written two seconds later

    def act(self, machine):
        self.process = machine.node.start("--device", 1, "--", "sleep", "100000")
        wait_until(lambda: self.runs() or self.process.poll() is not None,
                   "the run to begin or to fail")
        if self.process.poll() is None:
            machine.runs[self.process] = 1

    def runs(self) -> bool:
        try:
            return Path(f"/proc/{self.process.pid}/comm").read_text() == "sleep\n"
        except OSError:
            return False

    def after(self, machine):
        machine.end_run(self.process)
        wait_until(lambda: not machine.held(1), "the device to be released", seen=machine.log)


class EndOfRun(Scenario):
    late = 4.0

    def before(self, machine):
        self.process = machine.run(2)
        assert self.process.poll() is None, self.process.communicate()

    def act(self, machine):
        machine.end_run(self.process)
        wait_until(lambda: machine.ended() or not machine.held(2), "the device to be released",
                   seen=machine.log)


class Allocate(Scenario):
    def act(self, machine):
        with contextlib.suppress(AssertionError):  # the call is refused; a kubelet retries
            machine.pod("second")

    def after(self, machine):
        machine.kubelet.end("ml", "second")
        if ids := machine.pods.pop("second", None):
            wait_until(lambda: not set(ids) & {holder["device"] for holder in machine.holders()},
                       "the pod's device to be released", seen=machine.log)


class Reload(Scenario):
    more = ("labels: {timestamp: false}\n", "labels: {timestamp: true}\n")

    def act(self, machine):
        machine.write_config(self.more[machine.texts % 2])
        wait_until(lambda: machine.ended() or machine.faults.hit or self.taken(machine),
                   "the configuration to be applied or refused", seen=machine.log)

    @staticmethod
    def taken(machine) -> bool:
        """Whether the configuration was applied or refused."""
        report, plan = machine.report(), ask(machine.node.run_dir, {"op": "plan"})
        return bool(report and plan) and (report["configuration"]["problem"] != ""
                                          or plan.get("changes") == [])

    def after(self, machine):
        machine.node.agent.send_signal(signal.SIGHUP)
        wait_until(lambda: ask(machine.node.run_dir, {"op": "plan"})["changes"] == [],
                   "the configuration to be in force", seen=machine.log)


class Specifications(Reload):
    late = 2.0
    more = ("cdi: {disableHooks: [update-ldcache]}\n", "cdi: {disableHooks: [chmod]}\n")


class Move(Scenario):
    def before(self, machine):
        self.to = "none" if machine.device(2)["allocator"] == "local" else "local"

    def act(self, machine):
        ask(machine.node.run_dir, {"op": "door", "devices": ["2"], "door": self.to})


class Health(Scenario):
    late = 3.0

    def before(self, machine):
        machine.devices = 7  # one stops answering, so an agent that starts does not list it

    def act(self, machine):
        machine.node.sim("fault", str(LOST), "xid", "79")
        wait_until(lambda: machine.ended() or not self.healthy(machine),
                   "the device to be unhealthy", seen=machine.log)

    @staticmethod
    def healthy(machine) -> bool:
        device = machine.device(LOST)
        return device is not None and device["health"]["state"] == "healthy"

    def after(self, machine):
        machine.node.sim("heal", str(LOST))
        machine.devices = 8
        wait_until(lambda: self.healthy(machine), "the device to be healthy", seen=machine.log)


class Stop(Scenario):
    late = 0.0
    status = 0

    def act(self, machine):
        machine.node.agent.terminate()
        machine.node.agent.wait(PATIENCE)


SCENARIOS = {"start": Start, "first start": FirstStart, "run": Run, "end of a run": EndOfRun,
             "Allocate": Allocate, "reload": Reload, "specifications": Specifications,
             "move": Move, "health": Health, "stop": Stop}


def attempt(machine: Machine, scenario: Scenario, point: Point | None,
            complete=lambda: True) -> list[Point]:
    """Plays a scenario once, with the given fault or none; returns the calls. On a slow machine,
    calls may come later than expected: waits for them until `complete`."""
    scenario.before(machine)
    scenario.begin(machine, point)
    scenario.act(machine)
    begun = time.monotonic()
    while not machine.ended() and not machine.faults.hit:
        passed = time.monotonic() - begun
        if passed >= scenario.late and (passed >= PATIENCE or complete()):
            break
        time.sleep(0.01)
    if point and point.action == KILL and machine.faults.hit:
        machine.node.agent.wait(PATIENCE)
    return machine.faults.stop()


@pytest.fixture
def machine(request):
    if os.getuid() != 0:
        pytest.fail("control groups need root")
    home = Path(tempfile.mkdtemp(prefix="penstock-faults-"))
    machine = Machine(home, request.config.getoption("--programs"))
    yield machine
    machine.end()


def relevant(calls: list[Point]) -> list[Point]:
    return [one for one in calls if not (POLLED.match(one.path) and one.call in READING)]


def observe(machine: Machine, scenario: Scenario, least: int) -> list[Point]:
    """The calls of a scenario that is played without a fault. Waits for `least` points."""
    calls = attempt(machine, scenario, None,
                    lambda: len(points_of(relevant(machine.faults.so_far()))) >= least)
    if machine.ended():
        machine.start()
    scenario.after(machine)
    return relevant(calls)


@pytest.mark.parametrize("name", SCENARIOS)
def test_whatever_fails_all_hold_what_they_were_given(machine, request, name, capsys):
    scenario, begun = SCENARIOS[name](), time.monotonic()
    points = counted(request, name, lambda least: observe(machine, scenario, least))
    tried, missed = chosen(points, request), []
    for point in tried:
        attempt(machine, scenario, point)
        hit = machine.faults.hit
        if hit is None:  # the call depends on a timer
            missed.append(point)
        try:
            machine.check(point, scenario)
            scenario.after(machine)
        except Exception as error:
            raise AssertionError(f"{point} ({hit}): {error}") from error
    with capsys.disabled():
        print(f"\n{name}: {len(points)} points, {len(tried)} tried, {len(missed)} of them not "
              f"reached, {time.monotonic() - begun:.0f} s", *missed, sep="\n  ")
    assert len(missed) < len(tried)
