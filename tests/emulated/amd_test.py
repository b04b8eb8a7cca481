"""Debian's own amdgpu, which loads without hardware, with a real /dev/kfd, beside vgem, with real files in /dev/dri. What the agent does to load amdgpu again, for memory
modes, is refused by the kernel while a process has /dev/kfd open, and names that process. An agent keeps out of the driver, which comes and goes. Containers under
`penstock-runtime` open just what they were given."""
import json
import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from node import wait_until
from users import KFD, PATIENCE, end, hold, run

MODULE = Path("/sys/module/amdgpu")
PROCESSES = Path("/sys/class/kfd/kfd/proc")  # the kernel's own list of those that have /dev/kfd
FOLDER = Path("/run/amd")
PROGRAMS = ("penstock", "penstock-agent", "penstock-worker", "penstock-runtime")
GROUP = 106  # `render`
MODPROBE = Path("/usr/sbin/modprobe")  # where distributions have it
HOSTILE = 'x"\x1b[2J\nprocess=1 --password=secret'


def instance() -> int:
    """Of the loaded module: another one after each load."""
    return MODULE.stat().st_ino


def render_node() -> Path:
    """vgem's."""
    return wait_until(lambda: next(Path("/dev/dri").glob("renderD*"), None), "vgem's render node")


@pytest.fixture(scope="module")
def programs(request) -> Path:
    """A folder of the programs, which find each other there, on a machine with both drivers."""
    found = request.config.getoption("--programs").resolve()
    FOLDER.mkdir()
    for program in (found.parent / "tests/emulated-reload", *(found / name for name in PROGRAMS)):
        shutil.copy(program, FOLDER)
    MODPROBE.unlink(missing_ok=True)
    MODPROBE.symlink_to("/run/modules/busybox")
    for module in ("amdgpu", "vgem"):
        loaded = run(MODPROBE, module)
        assert loaded.returncode == 0, loaded.stderr
    assert KFD.is_char_device()
    return FOLDER


def reload(programs: Path) -> subprocess.CompletedProcess:
    return run(programs / "emulated-reload")


def test_a_driver_that_is_not_in_use_is_loaded_again(programs):
    before = instance()
    done = reload(programs)
    assert (done.returncode, done.stdout) == (0, "loaded again\n"), done.stderr
    assert instance() != before and KFD.is_char_device()


def test_an_unload_that_a_user_of_kfd_prevents_names_it_and_succeeds_once_it_has_ended(programs):
    before = instance()
    user, others = hold(KFD, name=HOSTILE), hold(render_node())
    try:
        assert [one.name for one in PROCESSES.iterdir()] == [str(user.pid)]
        done = reload(programs)
        said = done.stdout + done.stderr
        # Not the user of vgem's file.
        assert done.returncode == 1 and done.stdout.startswith(
            "amdgpu cannot be unloaded (end what uses /dev/kfd or /dev/dri, a display for example: 1 process, which the agent's log names): modprobe: "), said
        assert len(re.findall(r"amdgpu is in use", said)) == 1 and re.search(rf"process={user.pid} .*file=/dev/kfd\n", said), said
        assert not {"\x1b", "secret", "100000"} & {word for word in ("\x1b", "secret", "100000") if word in said}, said
        assert not re.search(r"^process=1 ", said, re.M) and str(user.pid) not in done.stdout, said
        assert instance() == before and KFD.is_char_device() and user.poll() is None
        end(user)
        done = reload(programs)
        assert (done.returncode, instance() != before) == (0, True), done.stdout + done.stderr
        assert others.poll() is None
    finally:
        end(user)
        end(others)


class Agent:
    def __init__(self, programs: Path):
        self.programs, self.log = programs, FOLDER / "agent.log"
        config = FOLDER / "node.yaml"
        config.write_text("apiVersion: penstock.io/v1alpha1\nkind: NodeConfig\nhealth: {poll: 200ms}\nallocators: {kubelet: {enabled: off}}\nhttp: {listen: off}\n")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([programs / "penstock-agent", "--config", config, "--run-dir", FOLDER / "run", "--state-dir", FOLDER / "state-of-agent"],
                                            stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def said(self) -> str:
        return self.log.read_text(errors="replace")[-3000:]

    def reason(self) -> str:
        """Why AMD's driver is not used, in the report; empty without a report."""
        done = run(self.programs / "penstock", "--run-dir", FOLDER / "run", "status", "-o", "json")
        vendors = json.loads(done.stdout)["vendors"] if done.returncode == 0 else []
        return next((vendor["reason"] for vendor in vendors if vendor["vendor"] == "amd"), "")


def files_of(pid: int) -> set[str]:
    return {os.readlink(file) for file in Path(f"/proc/{pid}/fd").iterdir()}


def test_the_driver_comes_and_goes_beside_an_agent_that_keeps_out_of_it(programs):
    """Without a GPU there is nothing to offer: the agent says so as long as the driver is there, and prevents no unload."""
    agent, loaded = Agent(programs), "amdgpu has no Instinct accelerator"
    try:
        for _ in range(2):
            wait_until(lambda: loaded in agent.reason(), "the driver without a GPU to be reported", seen=agent.said)
            assert KFD.as_posix() not in files_of(agent.process.pid) and list(PROCESSES.iterdir()) == []
            gone = run(MODPROBE, "-r", "amdgpu")  # fails, since vgem uses drm
            assert not MODULE.exists() and not KFD.exists(), gone.stderr
            wait_until(lambda: loaded not in agent.reason(), "the driver to be reported as gone", seen=agent.said)
            assert agent.process.poll() is None
            assert run(MODPROBE, "amdgpu").returncode == 0
    finally:
        agent.process.terminate()
        agent.process.wait(PATIENCE)


# Tries to open these files, and others that the container makes, which only device rules protect.
OPEN = """for file in "$@"; do
    set -- $(echo "$file" | tr : ' ')
    [ -e "$1" ] || mknod "$1" c "$2" "$3"
    (exec 9<>"$1") 2>/tmp/why && echo "$1 opened" || { grep -q "not permitted" /tmp/why && echo "$1 refused" || echo "$1 $(cat /tmp/why)"; }
done"""
APPLETS = ("sh", "tr", "mknod", "grep", "cat")


def numbers(path: Path) -> tuple[int, int]:
    device = path.stat()
    assert stat.S_ISCHR(device.st_mode)
    return os.major(device.st_rdev), os.minor(device.st_rdev)


def node(path: Path) -> dict:
    """With its mode and its group."""
    major, minor = numbers(path)
    its = path.stat()
    return {"path": str(path), "type": "c", "major": major, "minor": minor, "permissions": "rw", "fileMode": its.st_mode & 0o777, "gid": its.st_gid}


def specify(render: Path):
    """A specification of one device that has this render node, and the runtime's configuration."""
    (FOLDER / "cdi").mkdir(exist_ok=True)
    (FOLDER / "cdi/amd.json").write_text(json.dumps({
        "cdiVersion": "0.5.0", "kind": "amd.com/gpu", "devices": [{"name": "0", "containerEdits": {"deviceNodes": [node(render)]}}],
        "containerEdits": {"deviceNodes": [node(KFD)]}}))
    (FOLDER / "config.toml").write_text(f'[nvidia-container-runtime]\nruntimes = ["runc"]\n[nvidia-container-runtime.modes.cdi]\nspec-dirs = ["{FOLDER}/cdi"]\n')


def container(programs: Path, files: list[str], *environment: str, user: int = 0) -> dict[str, str]:
    """What becomes of an open of each file, PATH:MAJOR:MINOR, in a container with this environment."""
    bundle = FOLDER / "bundle"
    rootfs = bundle / "rootfs"
    shutil.rmtree(bundle, ignore_errors=True)
    for name in ("bin", "dev", "proc", "tmp"):
        (rootfs / name).mkdir(parents=True)
    (rootfs / "tmp").chmod(0o1777)
    shutil.copy("/run/modules/busybox", rootfs / "bin")
    for applet in APPLETS:
        (rootfs / "bin" / applet).symlink_to("busybox")
    mounts = [{"destination": "/proc", "type": "proc", "source": "proc"}, {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"}]
    (bundle / "config.json").write_text(json.dumps({
        "ociVersion": "1.0.2", "root": {"path": "rootfs"}, "mounts": mounts,
        "process": {"cwd": "/", "args": ["/bin/sh", "-c", OPEN, "sh", *files], "env": ["PATH=/bin", *environment], "user": {"uid": user, "gid": user},
                    "capabilities": {kind: ["CAP_MKNOD"] for kind in ("bounding", "effective", "permitted")}},
        "linux": {"namespaces": [{"type": kind} for kind in ("pid", "mount", "ipc", "uts")], "cgroupsPath": "/penstock-amd-test",
                  "resources": {"devices": [{"allow": False, "access": "rwm"}, {"allow": True, "type": "c", "access": "m"}]}}}))
    done = run(programs / "penstock-runtime", "--root", FOLDER / "state", "run", "--bundle", bundle, "c1",
               env=os.environ | {"NVIDIA_CTK_CONFIG_FILE_PATH": str(FOLDER / "config.toml")})
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(re.findall(r"^(\S+) (.*)$", done.stdout, re.M))


def test_device_rules_hold_for_real_files(programs):
    """amdgpu makes /dev/kfd without a GPU; vgem makes a card with a render node, which stands for a GPU's."""
    render = render_node()
    card = next(Path("/dev/dri").glob("card*"))
    specify(render)
    files = [":".join(map(str, (path, *numbers(path)))) for path in (KFD, render)]
    made = [":".join(map(str, (f"/tmp/made-{path.name}", *numbers(path)))) for path in (KFD, render, card)]
    given = container(programs, files + made, "AMD_VISIBLE_DEVICES=0")
    # Both drivers are there, so that an open succeeds. Of major 226 just the one minor.
    assert given == {str(KFD): "opened", str(render): "opened", "/tmp/made-kfd": "opened", f"/tmp/made-{render.name}": "opened", f"/tmp/made-{card.name}": "refused"}
    without = container(programs, made)
    assert len(without) == len(made) and set(without.values()) == {"refused"}, "nothing without the variable"
    with open(render), open(card):
        pass  # here, where there are no rules


def test_a_program_that_is_not_root_opens_real_files(programs):
    """With the mode and the group that udev gives them on a node. Under CDI a device file without an owner belongs to the container's user."""
    render = render_node()
    for file in (KFD, render):
        os.chown(file, 0, GROUP)
        file.chmod(0o660)
    files = [":".join(map(str, (path, *numbers(path)))) for path in (KFD, render)]
    specify(render)
    assert container(programs, files, "AMD_VISIBLE_DEVICES=0", user=1000) == {str(KFD): "opened", str(render): "opened"}
    without = container(programs, files, user=1000)
    assert set(without) == {str(KFD), str(render)} and "opened" not in without.values(), "nothing without the variable"
