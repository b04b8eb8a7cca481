"""A machine for a test: simulated GPUs, the agent on it, and programs under `penstock run`. Contains no assertions about the programs under
test."""
import contextlib
import json
import shutil
import subprocess
import time
from pathlib import Path

import cgroups
from sockets import giving


PATIENCE = 120  # seconds; only failing tests wait this long, so that slow machines pass


def wait_until(predicate, what: str, seconds: float = PATIENCE, every: float = 0.02, seen=None):
    """Evaluates the predicate until it is true and returns its value. On timeout, the error names `what` and the last value of the predicate or
    of `seen`."""
    deadline, pause = time.monotonic() + seconds, every
    while True:
        asked = time.monotonic()
        if answer := predicate():
            return answer
        if (now := time.monotonic()) > deadline:
            raise AssertionError(f"gave up after {seconds} s waiting for {what}; last seen: {seen() if seen else answer!r}")
        time.sleep(max(pause, now - asked))  # polling slows down what is waited for
        pause = min(1.2 * pause, 5 * every)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def use_large_pids():
    """Gives the next processes pids of five digits. In a suite's own namespace pids are small, so that their digits also occur in identifiers and
    values. Needs root."""
    Path("/proc/sys/kernel/ns_last_pid").write_text("30000")


class Node:
    """A simulated machine below `home`, and its agent."""

    def __init__(self, home: Path, programs: Path, machine: str = "dgx-a100", config: str = "", listen: str = "off", name: str = "",
                 kubelet: Path = Path("/nonexistent"), probation: str = "0s", sockets: dict | None = None):
        self.home, self.programs, self.listen, self.name, self.kubelet = home, programs, listen, name, kubelet
        self.sockets = sockets or {}  # sockets passed to the agent, by name
        self.options: list = []  # additional options of the agent
        self.root, self.run_dir, self.state_dir, self.cdi_dir = home / "machine", home / "run", home / "state", home / "cdi"
        self.config = home / "node.yaml"
        self.config.write_text(f"apiVersion: penstock.io/v1alpha1\nkind: NodeConfig\nhealth: {{poll: 100ms, probation: {probation}}}\n{config}")
        self.agent: subprocess.Popen | None = None
        self.started: list[subprocess.Popen] = []
        self.sim("start", machine)

    def sim(self, *words: str):
        subprocess.run([self.programs / "penstock-sim", "--root", self.root, *words], check=True, stdout=subprocess.DEVNULL)

    # The agent.

    def agent_command(self) -> list:
        return [self.programs / "penstock-agent", "--config", self.config, "--driver-root", self.root, "--dev-root", self.root,
                "--sysfs-root", self.root / "sys", "--kubelet-dir", self.kubelet, "--cdi-root", self.cdi_dir, "--state-dir", self.state_dir,
                "--run-dir", self.run_dir, "--listen", self.listen, *(["--node-name", self.name] if self.name else []),
                *self.options]

    def launch_agent(self, wrapper: tuple = ()):
        """Starts the agent without waiting for it."""
        given = giving(self.sockets) if self.sockets else []
        command = [*given, *wrapper, *self.agent_command()]
        with open(self.home / "agent.log", "ab") as log:
            self.agent = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True,
                                          pass_fds=[one.fileno() for one in self.sockets.values()])

    def start_agent(self, wrapper: tuple = (), devices: int = 8):
        self.launch_agent(wrapper)

        def ready() -> bool:
            assert self.agent.poll() is None, f"the agent ended with {self.agent.returncode}:\n{self.log()[-3000:]}"
            return len(self.usable()) == devices
        wait_until(ready, f"{devices} usable devices", seen=lambda: f"{len(self.usable())} of them; the log ends with\n{self.log()[-3000:]}")

    def kill_agent(self):
        """Kills only the agent with SIGKILL: its workers exit by themselves."""
        self.agent.kill()
        self.agent.wait()

    def end_agent(self):
        if self.agent.poll() is None:
            self.agent.terminate()
            assert self.agent.wait(PATIENCE) == 0, self.log()

    def log(self) -> str:
        return (self.home / "agent.log").read_text(errors="replace")

    # Output of penstock.

    def penstock(self, *words, check=True, **options) -> subprocess.CompletedProcess:
        options = {"capture_output": True, "text": True, "timeout": PATIENCE, "stdin": subprocess.DEVNULL} | options
        done = subprocess.run([self.programs / "penstock", "--run-dir", self.run_dir, *words], **options)
        assert not check or done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def report(self) -> dict | None:
        done = self.penstock("status", "-o", "json", check=False)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def usable(self) -> list[dict]:
        report = self.report()
        return [device for device in report["devices"] if device["health"]["state"] == "healthy"] if report else []

    def holders(self) -> list[dict]:
        return json.loads(self.penstock("ps", "-o", "json").stdout)["holders"]

    def held(self) -> set[int]:
        return {holder["index"] for holder in self.holders()}

    def queue(self) -> list[dict]:
        return json.loads(self.penstock("queue", "-o", "json").stdout)["queue"]

    def allocator(self, name: str) -> dict:
        """Its state is empty while the agent starts."""
        found = (self.report() or {"allocators": []})["allocators"]
        return next((allocator for allocator in found if allocator["name"] == name), {"state": "", "reason": ""})

    # Programs on GPUs.

    def start(self, *words, **options) -> subprocess.Popen:
        """Starts `penstock run WORDS` without waiting for it."""
        return self.start_penstock("run", *words, **options)

    def start_penstock(self, *words, **options) -> subprocess.Popen:
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "stdin": subprocess.DEVNULL} | options
        process = subprocess.Popen([self.programs / "penstock", "--run-dir", self.run_dir, *map(str, words)], **options)
        self.started.append(process)
        return process

    def hold(self, gpus: int, *words) -> subprocess.Popen:
        """Starts a program that holds GPUs until it is killed; returns when it holds them."""
        program = self.start("--gpus", gpus, "--", *(words or ("sleep", "1000")))
        wait_until(lambda: any(program.pid in holder["pids"] for holder in self.holders()), f"{gpus} GPUs to be held")
        return program

    def group_tree(self) -> Path | None:
        """The folder of the agent's control groups; None if it does not exist."""
        trees = [Path(root, self.group_name()) for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")]
        return next((tree for tree in trees if tree.exists()), None)

    def group_place(self) -> Path:
        """The path at which the agent creates that folder."""
        mounts = (line.split() for line in Path("/proc/self/mounts").read_text().splitlines())
        return Path(next(at for _, at, kind, *_ in mounts if kind == "cgroup2"), self.group_name())

    def groups(self) -> list[Path]:
        """The control groups of leases: in that folder, and below the groups of callers."""
        place = self.group_place()
        return [group for group in cgroups.below(place.parent) if group.parent == place or group.name.startswith(f"{place.name}.")]

    def group_name(self) -> str:
        """The name of the agent's control group: the FNV-1a hash of its run directory."""
        value = 0xCBF29CE484222325
        for byte in str(self.run_dir).encode():
            value = (value ^ byte) * 0x100000001B3 % 2**64
        return f"penstock-{value:x}"

    def end(self):
        """Stops everything that a test left: programs in its groups, programs it started, the agent, the machine. Prints the end of the agent's
        log, which pytest shows if the test failed."""
        if (self.home / "agent.log").exists():
            print(self.log()[-6000:])
        for group in self.groups():
            with contextlib.suppress(OSError):  # The agent may remove the group concurrently.
                (group / "cgroup.kill").write_text("1")
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        if self.agent is not None:
            if self.agent.poll() is None:
                wait_until(lambda: not self.groups(), "the groups to be removed")
                self.end_agent()
            else:
                for group in self.groups():
                    wait_until(lambda: "populated 0" in (group / "cgroup.events").read_text(), "a group to be empty")
                    group.rmdir()
                if tree := self.group_tree():
                    tree.rmdir()
        for line in reversed(Path("/proc/self/mounts").read_text().splitlines()):  # those within others first
            if line.split()[1].startswith(f"{self.home}/"):
                subprocess.run(["umount", "-l", line.split()[1]], check=True)
        self.sim("stop")
        shutil.rmtree(self.home, ignore_errors=True)
