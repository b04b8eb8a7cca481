"""`penstock driver prepare` on a simulated node: folders that look like /sys/module, a preloaded library that unloads them (sim/README.md), a real agent with the
simulated driver, real mounts, and processes with device files open. Needs root: mounts, and another user as attacker."""
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

SUPPORT = Path(__file__).parents[1] / "support"
sys.path.insert(0, str(SUPPORT))

import broker  # noqa: E402
from node import PATIENCE, Node, alive, wait_until  # noqa: E402

USER = 12345
REPLACED = "the driver is being replaced"
# A worker that has a device file open, as with a real driver.
WORKER = """#!{python}
import os, sys
os.set_inheritable(os.open({file!r}, os.O_PATH), True)
os.execv({worker!r}, [{worker!r}, *sys.argv[1:]])
"""
HOSTILE = 'x"\x1b[2J\u202e in pod kube-system/admin\nThe driver stays.'


class Driver:
    """What a driver container left on the node of an agent."""

    def __init__(self, node: Node):
        self.node = node
        self.sys, self.modules = node.root / "sys", node.root / "sys/module"
        self.run, self.host = node.home / "host-run", node.home / "host"
        self.termination = node.home / "termination-log"
        (self.host / "var/log/pods").mkdir(parents=True)
        self.root = self.run / "nvidia/driver"
        self.root.mkdir(parents=True)
        (self.run / "nvidia/validations").mkdir()
        self.termination.touch()
        for name, users in {"nvidia": ["nvidia_uvm", "nvidia_modeset"], "nvidia_uvm": [], "nvidia_modeset": ["nvidia_drm"], "nvidia_drm": []}.items():
            self.load(name, users)

    def load(self, name: str, users=(), used: int = 0):
        (self.modules / name / "holders").mkdir(parents=True, exist_ok=True)
        for user in users:
            (self.modules / name / "holders" / user).mkdir(exist_ok=True)
        count = self.modules / name / "refcnt"
        count.unlink(missing_ok=True)  # equal files of a simulated machine are links to one file
        count.write_text(f"{used + len(users)}\n")

    def loaded(self) -> set[str]:
        return {folder.name for folder in self.modules.iterdir() if (folder / "refcnt").exists()}

    def simulate(self, name: str, what: str):
        (self.modules / name / "simulate").write_text(what)

    def container(self, digest: str):
        """The files of a driver container that has been killed."""
        for folder in ("", "proc", "sub"):
            (self.root / folder).mkdir(exist_ok=True)
            subprocess.run(["mount", "-t", "tmpfs", "none", self.root / folder], check=True)
            for below in ("proc", "sub"):
                (self.root / below).mkdir(exist_ok=True)
        for name, text in {"nvidia-driver.state": digest + "\n", "nvidia-driver.pid": "999999\n", "validations/.driver-ctr-ready": ""}.items():
            (self.run / "nvidia" / name).write_text(text)

    def mounts(self) -> list[str]:
        return [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines() if line.split()[1].startswith(str(self.root))]

    def files(self) -> set[str]:
        return {str(path.relative_to(self.run / "nvidia")) for path in (self.run / "nvidia").rglob("*") if path.is_file()}

    def command(self, *words) -> list:
        return [self.node.programs / "penstock", "driver", "prepare", "--sysfs-root", self.sys, "--host-root", self.host, "--run-root", self.run,
                "--run-dir", "/run", "--termination-log", self.termination, *words]

    def environment(self, **variables) -> dict:
        library = self.node.programs.parent / "lib/penstock-sim/libpenstock-sim-modules.so"
        return {"PATH": os.environ["PATH"], "LD_PRELOAD": str(library), "PENSTOCK_SIM_MODULES": str(self.modules), "DRIVER_CONFIG_DIGEST": "new", **variables}

    def prepare(self, *words, **variables) -> subprocess.CompletedProcess:
        return subprocess.run(self.command(*words), env=self.environment(**variables), capture_output=True, text=True, timeout=PATIENCE,
                              stdin=subprocess.DEVNULL)

    def start(self, *words, **variables) -> subprocess.Popen:
        process = subprocess.Popen(self.command(*words), env=self.environment(**variables), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   stdin=subprocess.DEVNULL)
        self.node.started.append(process)
        return process

    def hold(self, path: Path, *wrapper, name: str = "") -> subprocess.Popen:
        """A process that has this file open; no driver is behind simulated device files, so that they open as paths only."""
        code = f"import os, time; os.open({str(path)!r}, os.O_PATH); print('open', flush=True); time.sleep(1000)"
        process = subprocess.Popen([*wrapper, *(["bash", "-c", 'exec -a "$0" "$@"', name] if name else []), sys.executable, "-c", code],
                                   stdout=subprocess.PIPE, text=True)
        self.node.started.append(process)
        assert process.stdout.readline() == "open\n"
        return process

    def start_agent_that_holds(self, path: Path):
        worker = self.node.home / "holding-worker"
        worker.write_text(WORKER.format(python=sys.executable, file=str(path), worker=str(self.node.programs / "penstock-worker")))
        worker.chmod(0o755)
        self.node.options = ["--worker", worker]
        self.node.start_agent()


@pytest.fixture
def driver(make_node):
    node = make_node(machine="dgx-a100")
    made = Driver(node)
    # The agent's folder, as the node's root shows it.
    (made.host / "run").symlink_to(node.run_dir)
    yield made
    for mount in reversed(made.mounts()):
        subprocess.run(["umount", "-l", mount], check=False)


def test_an_earlier_driver_is_taken_away(driver):
    driver.container("old")
    driver.load("nouveau")
    done = driver.prepare("-o", "json", ENABLE_AUTO_DRAIN="true")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"action": "replace", "reason": "another driver, or one with other settings, is loaded", "unmount": True,
                                       "unloaded": ["nvidia_drm", "nvidia_modeset", "nvidia_uvm", "nvidia", "nouveau"], "unmounted": 3}
    assert driver.loaded() & {"nvidia", "nvidia_uvm", "nvidia_drm", "nvidia_modeset", "nouveau"} == set()
    assert not driver.mounts() and driver.files() == set()
    assert "without effect: ENABLE_AUTO_DRAIN" in done.stderr and "no agent runs" in done.stderr
    assert driver.termination.read_text() == ""
    again = driver.prepare()
    assert (again.returncode, again.stdout) == (0, "The node is ready for another driver.\n") and "clean: no driver is loaded" in again.stderr


def test_the_wanted_driver_stays_unless_it_is_to_be_installed_again(driver):
    driver.container("new")
    holder = driver.hold(driver.node.root / "dev/nvidia0")
    before = driver.loaded()
    done = driver.prepare()
    assert (done.returncode, done.stdout) == (0, "The driver stays.\n"), done.stderr
    # What the killed container had mounted is gone, so that the next one's files do not lie within it.
    assert driver.loaded() == before and not driver.mounts()
    assert driver.files() == {"nvidia-driver.state", "validations/.driver-ctr-ready"}
    assert driver.prepare().returncode == 0
    holder.kill()
    assert driver.prepare(FORCE_REINSTALL="true").returncode == 0
    assert "nvidia" not in driver.loaded()


def test_mounts_in_use_end_with_their_last_user(driver):
    driver.container("old")
    user = driver.node.home / "user"
    (driver.root / "sub/file").write_text("x")
    with open(driver.root / "sub/file"):
        done = driver.prepare()
        assert done.returncode == 0 and not driver.mounts(), done.stderr
        assert "are in use and end with their last user" in done.stderr
    assert not user.exists()


def test_users_are_named_and_nothing_is_unloaded_before_they_end(driver):
    driver.container("old")
    driver.load("nvidia_uvm", used=1)
    holder = driver.hold(driver.node.root / "dev/nvidia-uvm", name="/opt/train")
    before = driver.loaded()
    plan = json.loads(driver.prepare("--dry-run", "-o", "json").stdout)
    assert plan["action"] == "replace" and {"pid": holder.pid, "program": "train", "user": "root", "pod": "", "file": f"{driver.node.root}/dev/nvidia-uvm"} in plan["users"]
    done = driver.prepare("--timeout", "1s")
    assert done.returncode == 1 and driver.loaded() == before and driver.mounts()
    message = driver.termination.read_text()
    assert f'process {holder.pid} "train" of user root' in message and "after 1s" in message and message.strip() in done.stderr
    waiting = driver.start("--timeout", "1m")
    wait_until(lambda: f"waiting: it is in use by process {holder.pid}" in driver.termination.read_text(), "the reason to be noted")
    holder.kill()
    holder.wait()
    driver.load("nvidia_uvm")
    assert waiting.wait(PATIENCE) == 0 and "nvidia" not in driver.loaded()


def test_a_module_that_the_kernel_does_not_give_up(driver):
    driver.simulate("nvidia", "wedged")
    done = driver.prepare("--timeout", "1s")
    assert done.returncode == 1 and driver.loaded() >= {"nvidia"} and "nvidia_uvm" not in driver.loaded()
    driver.simulate("nvidia", "hang")
    done = driver.prepare("--timeout", "1s")
    assert done.returncode == 1 and "reboot the node" in driver.termination.read_text()
    # What the modules leave of the driver is taken away by a later run.
    driver.simulate("nvidia", "slow 1")
    assert driver.prepare("--timeout", "30s").returncode == 0 and "nvidia" not in driver.loaded()


def test_a_node_with_a_driver_of_its_own_is_refused(driver):
    library = driver.host / "usr/lib64/libnvidia-ml.so.1"
    library.parent.mkdir(parents=True)
    library.touch()
    before = driver.loaded()
    done = driver.prepare()
    assert done.returncode == 1 and driver.loaded() == before
    assert "/usr/lib64/libnvidia-ml.so.1" in driver.termination.read_text() and "pre-installed" in done.stderr


def workers(node: Node) -> list[int]:
    found = []
    for pid in Path(f"/proc/{node.agent.pid}/task/{node.agent.pid}/children").read_text().split():
        with contextlib.suppress(OSError):  # It may have ended meanwhile.
            if "penstock-worker" in Path(f"/proc/{pid}/cmdline").read_text() and alive(int(pid)):
                found.append(int(pid))
    return found


def reasons(node: Node) -> set[str]:
    return {device["health"]["reason"] for device in node.report()["devices"]}


def wait_a_second_of(node: Node):
    """Until the agent has refused a request that waits for a second, and has had that time for what came before."""
    refused = node.penstock("run", "--wait", "1s", "--", "true", check=False)
    assert refused.returncode != 0 and REPLACED in refused.stderr, refused.stderr


def test_the_agent_lets_go_of_the_driver_until_the_preparation_ends(driver):
    node = driver.node
    node.start_agent()
    assert workers(node)
    driver.load("nvidia", ["nvidia_uvm", "nvidia_modeset"], used=1)
    preparing = driver.start("--timeout", "1m")
    wait_until(lambda: reasons(node) == {REPLACED}, "the devices to be withdrawn", seen=lambda: reasons(node))
    wait_until(lambda: not workers(node), "the worker to end", seen=lambda: workers(node))
    assert not node.usable()
    refused = node.penstock("run", "--wait", "0s", "--", "true", check=False)
    assert refused.returncode != 0 and REPLACED in refused.stderr
    # What changes on disk meanwhile does not make the agent open the driver.
    (driver.modules / "nvidia/another").touch()
    wait_a_second_of(node)
    assert not workers(node)
    # An agent that starts anew is asked, too.
    node.kill_agent()
    node.launch_agent()
    wait_until(lambda: (report := node.report()) and {one["reason"] for one in report["vendors"]} & {REPLACED}, "the next agent to let go")
    driver.load("nvidia", ["nvidia_uvm", "nvidia_modeset"])
    assert preparing.wait(PATIENCE) == 0, preparing.stderr.read()
    # The simulated driver's library is still there: the agent looks at once.
    wait_until(lambda: len(node.usable()) == 8, "the devices to come back")
    assert workers(node)


def test_devices_stay_usable_until_only_the_agent_uses_the_driver(driver):
    node = driver.node
    driver.start_agent_that_holds(node.root / "dev/nvidiactl")
    driver.load("nvidia", ["nvidia_uvm", "nvidia_modeset"], used=2)
    holder = driver.hold(node.root / "dev/nvidia0", name="/opt/train")
    done = driver.prepare("--timeout", "1s")
    assert done.returncode == 1 and f"process {holder.pid}" in done.stderr and "(end what uses it, or reboot)" in driver.termination.read_text()
    driver.termination.write_text("")
    preparing = driver.start("--timeout", "1m")
    wait_until(lambda: f"process {holder.pid}" in driver.termination.read_text(), "the program to be named")
    assert len(node.usable()) == 8 and workers(node) and "driver release requested" not in node.log()
    holder.kill()
    holder.wait()
    wait_until(lambda: reasons(node) == {REPLACED} and not workers(node), "the devices to be withdrawn", seen=lambda: reasons(node))
    driver.load("nvidia", ["nvidia_uvm", "nvidia_modeset"])
    assert preparing.wait(PATIENCE) == 0, preparing.stderr.read()
    wait_until(lambda: len(node.usable()) == 8, "the devices to come back")


def test_a_preparation_that_is_killed_gives_the_driver_back(driver):
    node = driver.node
    node.start_agent()
    driver.load("nvidia", ["nvidia_uvm", "nvidia_modeset"], used=1)
    preparing = [driver.start("--timeout", "1m") for _ in range(2)]
    wait_until(lambda: reasons(node) == {REPLACED}, "the devices to be withdrawn")
    preparing[0].kill()
    preparing[0].wait()
    wait_a_second_of(node)
    assert reasons(node) == {REPLACED}, "the other one still runs"
    preparing[1].kill()
    wait_until(lambda: len(node.usable()) == 8, "the devices to come back")


def test_an_agent_that_hangs_is_waited_for_a_while_and_named(driver):
    node = driver.node
    driver.start_agent_that_holds(node.root / "dev/nvidiactl")
    node.agent.send_signal(signal.SIGSTOP)
    try:
        driver.load("nvidia_uvm", used=1)
        [worker] = workers(node)
        begun = time.monotonic()
        done = driver.prepare("--timeout", "3s")
        assert done.returncode == 1 and time.monotonic() - begun < 30
        assert "the agent did not release the driver" in done.stderr and f'process {worker} "penstock-worker"' in driver.termination.read_text()
        os.kill(worker, signal.SIGKILL)
        wait_until(lambda: not alive(worker), "the worker to end")
        driver.load("nvidia_uvm")
        assert driver.prepare("--timeout", "3s").returncode == 0
    finally:
        node.agent.send_signal(signal.SIGCONT)


def test_connections_that_an_agent_does_not_accept_delay_nothing_for_long(driver):
    """As many as the socket takes, which members of its group can make while the agent hangs."""
    node = driver.node
    node.start_agent()
    node.agent.send_signal(signal.SIGSTOP)
    waiting = []
    try:
        with contextlib.suppress(BlockingIOError):
            while True:
                waiting.append(socket.socket(socket.AF_UNIX))
                waiting[-1].setblocking(False)
                waiting[-1].connect(str(node.run_dir / "penstock.sock"))
        begun = time.monotonic()
        done = driver.prepare("--timeout", "2s")
        assert done.returncode == 0 and "accepts no connection" in done.stderr and time.monotonic() - begun < 30
    finally:
        for one in waiting:
            one.close()
        node.agent.send_signal(signal.SIGCONT)


def test_an_ordinary_user_cannot_have_the_driver_released(driver):
    node = driver.node
    node.start_agent()
    (node.run_dir / "penstock.sock").chmod(0o666)  # as if the user were in its group
    request = json.dumps({"op": "release", "vendor": "nvidia"})
    command = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", sys.executable, SUPPORT / "broker.py", node.run_dir, request]
    asking = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    node.started.append(asking)
    error = json.loads(asking.stdout.readline())["error"]
    assert error["code"] == "PERMISSION_DENIED" and "only root" in error["message"]
    assert len(node.usable()) == 8 and workers(node)


def test_hostile_names_are_shown_as_text_and_hide_no_user(driver):
    driver.load("nvidia_uvm", used=1)
    fakes = Path(tempfile.mkdtemp(prefix="fakes-"))
    fakes.chmod(0o777)
    (fakes / "dev").mkdir(mode=0o777)
    fake = fakes / "dev/nvidia0"
    fake.touch(mode=0o666)
    attacker = subprocess.Popen(["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "bash", "-c", 'exec 9<"$1"; echo; exec -a "$0" sleep 1000',
                                 HOSTILE, fake], stdout=subprocess.PIPE)
    driver.node.started.append(attacker)
    attacker.stdout.readline()
    wait_until(lambda: Path(f"/proc/{attacker.pid}/cmdline").read_bytes().startswith(HOSTILE.encode() + b"\0"), "the name")
    done = driver.prepare("--timeout", "1s")
    assert f"process {attacker.pid} " in done.stderr and "in pod" not in done.stderr and "\x1b" not in done.stderr
    message = driver.termination.read_text()
    assert "\n" not in message and "\u202e" not in message and f"of user {USER}" in message
    device = driver.node.root / "dev/nvidia0"
    if device.is_char_device():
        holder = driver.hold(device)
        done = driver.prepare("--timeout", "1s")
        assert f"process {holder.pid} " in done.stderr and f"process {attacker.pid} " not in done.stderr


def mps_processes(node: Node) -> list[int]:
    """The MPS daemon and servers that the agent started."""
    marker = f"PENSTOCK_MPS_FOLDER={node.home}/mps/".encode()

    def is_one(process: Path) -> bool:
        try:
            return marker in (process / "environ").read_bytes() and alive(int(process.name))
        except OSError:
            return False
    return [int(process.name) for process in Path("/proc").iterdir() if process.name.isdigit() and is_one(process)]


def test_sharing_servers_end_with_their_last_client_while_the_driver_is_released(driver):
    node = driver.node
    node.config.write_text(node.config.read_text() + f"sharing: {{rules: [{{devices: [0, 1], strategy: mps, replicas: 3}}], mps: {{root: {node.home}/mps}}}}\n")
    node.start_agent()
    client = node.start("--device", "0", "--share", "3", "--wait", "1m", "--", node.root / "usr/bin/mps-client", "--hold")
    assert client.stdout.readline().startswith("mps server ")
    wait_until(lambda: any(server["clients"] == 1 for server in node.report()["servers"]), "the client to be counted")
    with broker.connected(node.run_dir) as connection, connection.makefile("rw") as lines:
        lines.write(json.dumps({"op": "release", "vendor": "nvidia"}) + "\n")
        lines.flush()
        released = json.loads(lines.readline())["released"]
        assert released["vendor"] == "nvidia" and "(1 now)" in released["remaining"][0]
        assert mps_processes(node) and client.poll() is None, "a program is not ended"
        client.terminate()
        wait_until(lambda: not mps_processes(node), "the servers to end", seen=lambda: node.log()[-3000:])
        assert not node.usable()
    wait_until(lambda: len(node.usable()) == 8 and mps_processes(node), "devices and servers to come back")
    node.penstock("down")
