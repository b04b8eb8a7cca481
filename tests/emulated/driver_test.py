"""`penstock driver prepare` with a real driver: Debian's amdgpu, loaded without hardware, as if a driver container had installed it (vendor.cc). The kernel
refuses to unload it as long as a process holds /dev/kfd; users are named, waited for, and a driver that cannot be loaded is followed by the earlier one."""
import array
import json
import os
import socket
import subprocess
from pathlib import Path

import pytest
from node import wait_until
from users import KFD, PATIENCE, end, hold, run

MODULES = Path("/sys/module")
RUN = Path("/run/emulated")
TERMINATION = Path("/run/termination-log")
USER = 12345
HOSTILE = 'x"\x1b[2J\u202e in pod kube-system/admin\nThe driver stays.'
IN_USE = "waiting: it is in use by "


def loaded(*names: str) -> set[str]:
    return {name for name in names if (MODULES / name).exists()}


class Machine:
    """One node, the processes of which end with the test."""

    def __init__(self, program: Path):
        self.program, self.started = program, []

    def command(self, *words) -> list[str]:
        return [str(word) for word in (self.program, "driver", "prepare", "--termination-log", TERMINATION, *words)]

    def prepare(self, *words) -> subprocess.CompletedProcess:
        return run(*self.command(*words))

    def prepare_later(self, *words) -> subprocess.Popen:
        """One that waits."""
        process = subprocess.Popen(self.command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
        self.started.append(process)
        return process

    def install(self, digest: str, *parameters: str, module: str = "amdgpu") -> subprocess.CompletedProcess:
        """What a driver container does after its preparation."""
        (RUN / "driver").mkdir(parents=True, exist_ok=True)
        if not os.path.ismount(RUN / "driver"):
            subprocess.run(["mount", "-t", "tmpfs", "none", RUN / "driver"], check=True)
        (RUN / "driver.pid").write_text("999999\n")
        done = run("modprobe", module, *parameters)
        if done.returncode == 0:
            (RUN / "driver.state").write_text(digest + "\n")
            (RUN / "ready").touch()
        return done

    def replace(self, digest: str, *parameters: str, **options) -> subprocess.CompletedProcess:
        """A driver's pod: its init container, and the container."""
        prepared = self.prepare("--digest", digest)
        assert prepared.returncode == 0, prepared.stderr
        return self.install(digest, *parameters, **options)

    def hold(self, path: Path, user: int = 0, name: str = "") -> subprocess.Popen:
        """A process that has this file open."""
        process = hold(path, user, name or "holder")
        self.started.append(process)
        return process


def files() -> set[str]:
    return {str(path.relative_to(RUN)) for path in RUN.rglob("*") if path.is_file()}


@pytest.fixture
def machine(request):
    """A node with the driver "old"."""
    TERMINATION.touch()
    made = Machine(request.config.getoption("--programs").resolve().parent / "tests/emulated-penstock")
    if not KFD.exists() or not (RUN / "driver.state").exists():
        installed = made.replace("old")
        assert installed.returncode == 0, installed.stderr
    assert KFD.is_char_device() and files() >= {"driver.state", "ready"}
    KFD.chmod(0o666)
    yield made
    for process in made.started:
        end(process)


def test_a_driver_in_use_stays_whole_and_its_user_is_named(machine):
    holder = machine.hold(KFD, name="/opt/train")
    refused = run("rmmod", "amdgpu")
    assert refused.returncode != 0 and "unavailable" in refused.stderr, "the kernel itself refuses"
    plan = json.loads(machine.prepare("--digest", "new", "--dry-run", "-o", "json").stdout)
    assert (plan["action"], plan["unload"][0]) == ("replace", "amdgpu")
    assert plan["users"] == [{"pid": holder.pid, "program": "train", "user": "root", "pod": "", "file": "/dev/kfd"}]
    done = machine.prepare("--digest", "new", "--timeout", "1s")
    assert done.returncode == 1 and loaded("amdgpu", "gpu_sched", "drm_ttm_helper") == {"amdgpu", "gpu_sched", "drm_ttm_helper"}
    assert "unloading" not in done.stderr and os.path.ismount(RUN / "driver") and "ready" in files()
    message = TERMINATION.read_text()
    assert f'in use by process {holder.pid} "train" of user root (/dev/kfd)' in message and "after 1s" in message and message.strip() in done.stderr
    assert holder.poll() is None, "no process is ended"


def test_a_preparation_waits_and_a_failed_load_is_followed_by_the_earlier_driver(machine):
    holder = machine.hold(KFD, name="/opt/train")
    waiting = machine.prepare_later("--digest", "new", "--timeout", "10m")
    wait_until(lambda: f"{IN_USE}process {holder.pid} " in TERMINATION.read_text(), "the reason to be noted", PATIENCE)
    assert waiting.poll() is None and KFD.exists()
    end(holder)
    assert waiting.wait(PATIENCE) == 0, waiting.stderr.read()
    assert not KFD.exists() and not loaded("amdgpu", "gpu_sched", "drm_ttm_helper") and loaded("drm") == {"drm"}
    assert not files() and not os.path.ismount(RUN / "driver") and TERMINATION.read_text() == ""
    # The new driver refuses a parameter; its next version has a module that is not for this kernel.
    failed = machine.install("new", "vm_size=all")
    assert failed.returncode != 0 and "Invalid argument" in failed.stderr
    assert not KFD.exists() and not loaded("amdgpu") and "ready" not in files()
    assert machine.replace("newer", module="amdgpu_newer").returncode != 0
    # The operator rolls back: the pod of the driver that worked before.
    back = machine.replace("old")
    assert back.returncode == 0 and KFD.is_char_device(), back.stderr
    assert files() == {"driver.state", "driver.pid", "ready"}
    with open(KFD):
        kept = machine.prepare("--digest", "old")
        assert (kept.returncode, kept.stdout) == (0, "The driver stays.\n"), kept.stderr


def test_hostile_names_and_plain_files_hide_no_user(machine):
    holder = machine.hold(KFD, user=USER, name=HOSTILE)
    decoy = Path("/tmp/decoy/dev/kfd")
    decoy.parent.mkdir(parents=True, exist_ok=True)
    decoy.touch()
    innocent = machine.hold(decoy, user=USER, name="innocent")
    done = machine.prepare("--digest", "new", "--timeout", "1s")
    assert done.returncode == 1 and KFD.exists()
    for text in (done.stderr, TERMINATION.read_text()):
        assert f"process {holder.pid} " in text and f"of user {USER} (/dev/kfd)" in text
        assert f"process {innocent.pid} " not in text and "\x1b" not in text and "\u202e" not in text
        assert not any(line.startswith("The driver stays.") for line in text.splitlines())


def test_the_pod_of_a_user_is_named(machine):
    uid = "0f3c1a52-7c55-4b0e-9d7e-3a7f0f5a1e11"
    Path(f"/var/log/pods/ml_train-0_{uid}").mkdir(parents=True)
    group = Path(f"/sys/fs/cgroup/kubepods/pod{uid}")
    group.mkdir(parents=True)
    holder = machine.hold(KFD)
    (group / "cgroup.procs").write_text(str(holder.pid))
    assert machine.prepare("--digest", "new", "--timeout", "1s").returncode == 1
    assert f'process {holder.pid} "holder" of user root in pod ml/train-0 (/dev/kfd)' in TERMINATION.read_text()


def test_an_open_file_that_no_process_has_is_still_a_user(machine):
    """A file that waits within a socket has no process whose files name it; the kernel counts it."""
    here, there = socket.socketpair()
    with here, there:
        with open(KFD) as file:
            here.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file.fileno()]))])
        done = machine.prepare("--digest", "new", "--timeout", "1s")
        assert done.returncode == 1 and KFD.exists()
        assert "the kernel counts users of amdgpu, but no process has a device file open" in TERMINATION.read_text()


def test_modules_of_others_that_use_the_driver_are_named_and_stay(machine):
    """drm_vram_helper uses one of the driver's modules, as another graphics driver would."""
    assert run("modprobe", "drm_vram_helper").returncode == 0
    done = machine.prepare("--digest", "new", "--timeout", "1s")
    assert done.returncode == 1 and KFD.exists() and loaded("drm_vram_helper", "gpu_sched") == {"drm_vram_helper", "gpu_sched"}
    assert "modules of other programs use it, and are not unloaded: drm_vram_helper" in TERMINATION.read_text()
    assert run("rmmod", "drm_vram_helper").returncode == 0


def test_a_rival_in_use_stays_and_the_driver_is_taken_away(machine):
    assert run("modprobe", "vgem").returncode == 0
    render = wait_until(lambda: next(Path("/dev/dri").glob("renderD*"), None), "vgem's file")
    holder = machine.hold(render)
    done = machine.prepare("--digest", "new", "-o", "json")
    assert done.returncode == 0, done.stderr
    assert "module vgem is in use and stays" in done.stderr and loaded("vgem", "amdgpu") == {"vgem"}
    unloaded = json.loads(done.stdout)["unloaded"]
    assert unloaded[0] == "amdgpu" and set(unloaded[1:]) == {"gpu_sched", "drm_ttm_helper"}
    end(holder)
    again = machine.prepare("--digest", "new", "-o", "json")
    assert again.returncode == 0 and json.loads(again.stdout)["unloaded"] == ["vgem"], again.stderr
    assert not loaded("vgem") and not render.exists()
