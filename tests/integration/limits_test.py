"""`penstock run` by callers in control groups of their own, with limits and device rules. Needs root, and cgroup v2 as the unified hierarchy
of this machine."""
import contextlib
import ctypes
import os
import platform
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import cgroups  # noqa: E402
import faults  # noqa: E402
from node import PATIENCE, Node, wait_until  # noqa: E402

NOBODY, USERS = 65534, 100
BPF = {"x86_64": 321, "aarch64": 280}[platform.machine()]
ALONE, OVERRIDE, BESIDE = 0, 1, 2  # BPF_F_ALLOW_OVERRIDE, BPF_F_ALLOW_MULTI


def mount() -> Path:
    lines = (line.split() for line in Path("/proc/self/mounts").read_text().splitlines())
    return Path(next(at for _, at, kind, *_ in lines if kind == "cgroup2"))


def cgroup_of(pid: int) -> Path:
    path = next(line[3:] for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines() if line.startswith("0::"))
    return mount() / path.lstrip("/")


def refuse_devices(group: Path, how: int):
    """Attaches a device program, as batch systems and container engines do. It refuses character devices of major 195 and minor 1."""
    def instruction(code, target=0, source=0, offset=0, value=0):
        return struct.pack("<BBhi", code, target | source << 4, offset, value)
    code = b"".join([instruction(0xB7, 0, value=1),  # r0 = 1
                     instruction(0x61, 2, 1, 4), instruction(0x55, 2, offset=3, value=195),  # major
                     instruction(0x61, 2, 1, 8), instruction(0x55, 2, offset=1, value=1),  # minor
                     instruction(0xB7, 0, value=0), instruction(0x95)])
    libc = ctypes.CDLL(None, use_errno=True)

    def bpf(command: int, attributes: bytes) -> int:
        buffer = ctypes.create_string_buffer(attributes, 128)
        answer = libc.syscall(BPF, command, buffer, 128)
        assert answer >= 0, os.strerror(ctypes.get_errno())
        return answer
    instructions, text = ctypes.create_string_buffer(code), ctypes.create_string_buffer(b"GPL")
    device_program, load, attach, device = 15, 5, 8, 6
    program = bpf(load, struct.pack("=IIQQ", device_program, len(code) // 8, ctypes.addressof(instructions), ctypes.addressof(text)))
    folder = os.open(group, os.O_RDONLY)
    bpf(attach, struct.pack("=IIII", folder, program, device, how))
    os.close(folder)
    os.close(program)


class Groups:
    """Control groups as a service manager or a batch system creates them."""

    def __init__(self):
        self.top = Path(tempfile.mkdtemp(prefix="limits-", dir=mount()))
        self.top.chmod(0o755)

    def make(self, path: str, owner: int = 0) -> Path:
        group = self.top / path
        group.mkdir(parents=True)
        for file in ("", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"):
            os.chown(group / file, owner, owner)
        return group

    def remove(self):
        def gone() -> bool:
            for group in cgroups.below(self.top):
                with contextlib.suppress(OSError):  # a threaded group has no such file
                    (group / "cgroup.kill").write_text("1")
                with contextlib.suppress(OSError):
                    group.rmdir()
            return not self.top.exists()
        wait_until(gone, "the test's groups to be gone")


@pytest.fixture
def groups():
    if os.getuid() != 0:
        pytest.fail("control groups need root")
    groups = Groups()
    yield groups
    groups.remove()


@pytest.fixture
def node(request, groups):
    home = Path(tempfile.mkdtemp(prefix="penstock-limits-"))
    home.chmod(0o755)
    node = Node(home, request.config.getoption("--programs"), config="allocators: {local: {group: users}}\n")
    node.programs = Path(shutil.copytree(node.programs, home / "bin"))  # so that unprivileged users can execute them
    node.start_agent()
    yield node
    node.end()


def entering(group: Path) -> dict:
    """Options that start a caller in the group as an unprivileged user."""
    def enter():
        (group / "cgroup.procs").write_text(str(os.getpid()))
        os.setgroups([USERS])
        os.setregid(NOBODY, NOBODY)
        os.setreuid(NOBODY, NOBODY)
    return {"preexec_fn": enter}


def hold(node: Node, group: Path, *words) -> subprocess.Popen:
    program = node.start(*words, "--", "sleep", "1000", **entering(group))
    wait_until(lambda: program.poll() is not None or any(program.pid in holder["pids"] for holder in node.holders()), "a GPU to be held")
    assert program.poll() is None, program.communicate()
    return program


def test_a_run_stays_below_the_limits_of_its_caller(node, groups):
    session = groups.make("user.slice/session-3.scope")
    program = hold(node, session)
    group = cgroup_of(program.pid)
    assert group.parent == session and node.group_name() in group.name
    assert "populated 1" in (groups.top / "cgroup.events").read_text()
    # Killing or freezing the caller's group also affects the program.
    (groups.top / "user.slice/cgroup.kill").write_text("1")
    assert program.wait(PATIENCE) == -signal.SIGKILL
    wait_until(lambda: not node.holders(), "the GPU to be released")
    wait_until(lambda: not group.exists(), "the group to be removed")
    session.rmdir()


def test_the_group_may_go_with_its_callers(node, groups):
    """Stops a unit as systemd does: kills the remaining processes and removes the groups."""
    session = groups.make("session-3.scope")
    program = hold(node, session)
    group = cgroup_of(program.pid)
    node.agent.send_signal(signal.SIGSTOP)
    program.kill()
    program.wait()

    def removed() -> bool:
        for one in (group, session):
            with contextlib.suppress(OSError):
                one.rmdir()
        return not session.exists()
    wait_until(removed, "the unit to be gone")
    node.agent.send_signal(signal.SIGCONT)
    wait_until(lambda: not node.holders(), "the GPU to be released")
    assert "cannot remove the control group" not in node.log()


def test_device_rules_of_the_caller_and_of_the_lease_hold_both(node, groups):
    fenced = groups.make("engine/container-1")
    refuse_devices(fenced, BESIDE)
    program = "import errno, os, sys\n" \
              "for i in range(3):\n" \
              "    try: os.open(f'{sys.argv[1]}/dev/nvidia{i}', os.O_RDWR)\n" \
              "    except OSError as error: print(errno.errorcode[error.errno])\n"
    words = ("run", "--device", "0,1", "--", "/usr/bin/python3", "-c", program, str(node.root))
    done = node.penstock(*words, **entering(fenced))
    assert done.stdout.split() == ["ENXIO", "EPERM", "EPERM"], "the lease's device, refused by the caller's rules, refused by the lease's rules"


@pytest.mark.parametrize("how", [ALONE, OVERRIDE], ids=["exclusive", "replaced by those below"])
def test_a_fence_that_a_run_would_leave_is_a_refusal(node, groups, how):
    job = groups.make("job_7/task_0")
    refuse_devices(job.parent, how)
    refused = node.penstock("run", "--", "true", check=False, **entering(job))
    assert refused.returncode == 125 and f"the device program of the control group {job.parent}" in refused.stderr, refused.stderr
    assert not node.holders() and not [one for one in job.iterdir() if one.is_dir()]


def test_a_job_of_slurm_is_refused_before_it_waits(node, groups):
    """Slurm finds and ends processes only in its own groups, not in groups below them (src/plugins/cgroup/v2)."""
    task = groups.make("system.slice/n1_slurmstepd.scope/job_7/step_0/user/task_0")
    node.hold(8)
    refused = node.penstock("run", "--", "true", check=False, **entering(task))
    assert refused.returncode == 125 and "a Slurm job" in refused.stderr, refused.stderr


def test_a_threaded_group_is_refused(node, groups):
    threads = groups.make("service/threads")
    (threads / "cgroup.type").write_text("threaded")
    refused = node.penstock("run", "--", "true", check=False, **entering(threads.parent))
    assert refused.returncode == 125 and 'is "domain threaded"' in refused.stderr, refused.stderr


def test_a_group_that_may_have_none_below_is_refused(node, groups):
    full = groups.make("full")
    (full / "cgroup.max.descendants").write_text("0")
    refused = node.penstock("run", "--", "true", check=False, **entering(full))
    assert refused.returncode == 125 and "cgroup.max.descendants" in refused.stderr, refused.stderr
    assert not node.holders()


def test_a_run_within_a_run_gets_devices_of_its_own(node, groups):
    session = groups.make("session-3.scope")
    inner = f"{node.programs}/penstock --run-dir {node.run_dir} run --device 5 -- sleep 1000"
    program = node.start("--device", "2", "--", "sh", "-c", f"{inner} & wait", **entering(session))
    wait_until(lambda: node.held() == {2, 5}, "both to be held")
    groups_of = {holder["index"]: cgroup_of(holder["pids"][0]) for holder in node.holders()}
    assert {group.parent for group in groups_of.values()} == {session}
    assert groups_of[2] != groups_of[5]
    (session / "cgroup.kill").write_text("1")
    program.wait()
    wait_until(lambda: not node.holders(), "the GPUs to be released")


def test_leases_of_callers_in_groups_are_found_again(node, groups):
    """Also without the checkpoint, and for groups in the folder that 0.1.0 used for all leases."""
    deep = groups.make("user.slice/user-1000.slice/user@1000.service/app.slice/train.service", owner=NOBODY)
    below, top = hold(node, deep, "--device", "3"), node.hold(1)
    before = node.holders()
    node.kill_agent()
    (node.state_dir / "ledger.json").unlink()
    # A user to whom a group is delegated cannot create one that the agent takes for a lease's group.
    pretended = deep / f"{node.group_name()}.r-pretended-1"
    made = subprocess.run(["mkdir", pretended], user=NOBODY, group=NOBODY)
    assert made.returncode == 0
    node.start_agent()
    assert node.holders() == before
    assert pretended.exists() and "pretended" not in node.log()
    pretended.rmdir()
    below.kill()
    wait_until(lambda: len(node.holders()) == 1, "the lease to end")
    top.kill()
    wait_until(lambda: not node.holders(), "the lease to end")


def test_what_ended_while_no_agent_ran_leaves_no_group(node, groups):
    session = groups.make("session-3.scope")
    program = hold(node, session)
    group = cgroup_of(program.pid)
    node.kill_agent()
    program.kill()
    program.wait()
    assert group.exists()
    node.start_agent()
    assert not node.holders()
    wait_until(lambda: not group.exists(), "the group to be removed")


def test_a_caller_in_a_container_keeps_what_holds_for_the_container(node, groups):
    """A container with the socket mounted, its own namespaces, and the group and device rules that the engine made."""
    container = groups.make("engine/container-1")
    refuse_devices(container, BESIDE)
    command = ["unshare", "--pid", "--fork", "--mount", "--cgroup", node.programs / "penstock", "--run-dir", node.run_dir, "run", "--device", "4",
               "--", "sleep", "1000"]
    with subprocess.Popen(command, preexec_fn=lambda: (container / "cgroup.procs").write_text(str(os.getpid()))) as program:
        [holder] = wait_until(node.holders, "the GPU to be held")
        group = cgroup_of(holder["pids"][0])
        assert group.parent == container, "the lease's group is below the container's group"
        (container / "cgroup.kill").write_text("1")
        program.wait(PATIENCE)
    wait_until(lambda: not node.holders(), "the GPU to be released")


def test_what_a_run_uses_is_counted_where_its_group_lies(node, groups):
    session = groups.make("session-3.scope")
    busy = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass\n"
    node.penstock("run", "--", "/usr/bin/python3", "-c", busy, **entering(session))

    def counted() -> bool:
        records = [line for file in node.state_dir.glob("usage/*.jsonl") for line in file.read_text().splitlines()]
        return any('"cpuSeconds":' in line for line in records)
    wait_until(counted, "the record of its processor time", seen=node.log)


class Meanwhile(faults.Faults):
    """Runs `do` once, while the agent waits for the given call on a lease's group."""

    def __init__(self, home: Path, call: str, path_ends: str, do):
        super().__init__(home, {})
        self.call, self.path_ends, self.do = call, path_ends, do

    def _decide(self, notification, response) -> bool:
        if faults.NUMBERS[notification.number] == self.call and self.do is not None:
            path = self._path(notification, self.call)
            if "/limits-" in path and path.endswith(self.path_ends):
                self.do, do = None, self.do
                do()
        return False


@pytest.mark.parametrize("call, file", [("fsetxattr", ""), ("write", "/cgroup.procs")], ids=["while the group is made", "in the last moment"])
def test_who_gets_the_number_of_one_who_asked_stays_where_it_was(node, groups, call, file):
    session = groups.make("session-3.scope")
    asker, bystanders = [], []

    def hand_the_number_on():
        asker[0].kill()
        asker[0].wait()
        for _ in range(1000):
            Path("/proc/sys/kernel/ns_last_pid").write_text(str(asker[0].pid - 1))
            bystanders.append(subprocess.Popen(["sleep", "1000"]))
            if bystanders[-1].pid == asker[0].pid:
                return
    meanwhile = Meanwhile(node.home, call, file, hand_the_number_on)
    node.hold(8)
    node.kill_agent()
    node.start_agent(wrapper=meanwhile.wrapper())
    asker.append(node.start("--", "sleep", "1000", **entering(session)))
    wait_until(node.queue, "the run to be queued")
    node.started[0].kill()  # it holds all GPUs
    try:
        wait_until(lambda: bystanders and not node.holders() and not node.queue(), "the lease to be dropped", seen=node.log)
        assert bystanders[-1].pid == asker[0].pid, "the test needs a process that reuses the pid"
        wait_until(lambda: not [one for one in session.iterdir() if one.is_dir()], "the group to be removed")
        assert cgroup_of(bystanders[-1].pid) == cgroup_of(os.getpid())
    finally:
        meanwhile.close()
        for one in bystanders:
            one.kill()
            one.wait()
