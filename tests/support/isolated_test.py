"""isolated.py: a suite sees nothing of the machine that it runs on, and leaves nothing behind
however it ends. These tests run on an isolated machine already, so they may change it. As root,
each test runs for root and for an ordinary user."""
import contextlib
import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import cgroups
import pytest
from node import wait_until

ORDINARY = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
USERS = [(), ORDINARY] if os.getuid() == 0 else [()]
# Files that an agent, a container engine or an administrator may have on a machine.
FOREIGN = [Path(name) for name in (
    "/etc/cdi/nvidia.json", "/etc/containerd/config.toml", "/etc/penstock/node.yaml",
    "/etc/nvidia-container-runtime/config.toml", "/run/cdi/nvidia.json", "/run/penstock/agent.lock",
    "/run/penstock/penstock.sock", "/run/containers/storage/x", "/dev/shm/libpod_lock",
    "/dev/shm/cuda.shm", "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint",
    "/var/lib/penstock/ledger.json",
    "/var/lib/containers/storage/storage.lock", "/tmp/penstock-0/x")]


@pytest.fixture(params=USERS, ids=["root", "user"] if len(USERS) == 2 else ["user"])
def isolated(request, tmp_path_factory):
    """The prefix of a command line; its checkout is below /tmp."""
    checkout = tmp_path_factory.mktemp("checkout")
    for folder in (checkout, *checkout.parents):
        if folder.is_relative_to("/tmp") and folder != Path("/tmp"):
            folder.chmod(0o755)
    program = checkout / "tests/support/isolated.py"
    program.parent.mkdir(parents=True)
    shutil.copy(Path(__file__).with_name("isolated.py"), program)
    return [*request.param, "/usr/bin/python3", str(program)]


def run(isolated, *command: str) -> subprocess.CompletedProcess:
    return subprocess.run([*isolated, *command], capture_output=True, text=True, timeout=60,
                          cwd="/")


def left() -> list:
    """The groups and folders that ended suites left behind."""
    groups = cgroups.below(Path("/sys/fs/cgroup"))
    return [*Path("/tmp").glob("penstock-suite-*"),
            *(group for group in groups if group.name.startswith("penstock-suite-"))]


def running(mark: str) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (process / "cmdline").read_text():
                found.append(process.name)
    return found


def test_nothing_that_the_machine_has_is_seen(isolated):
    made = []
    for file in FOREIGN:
        with contextlib.suppress(PermissionError):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("foreign")
            made.append(file)
    try:
        assert len(made) == len(FOREIGN) if os.getuid() == 0 else made
        look = 'for file in "$@"; do [ ! -e "$file" ] || echo "$file"; done'
        done = run(isolated, "sh", "-c", look, "sh", *map(str, FOREIGN))
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        assert all(file.read_text() == "foreign" for file in made)
    finally:
        for file in made:
            file.unlink()


def test_what_it_writes_stays_its_own(isolated):
    as_root = isolated[0] != ORDINARY[0] and os.getuid() == 0
    places = [str(file) for file in FOREIGN
              if as_root or str(file).startswith(("/run", "/dev/shm", "/tmp"))]
    write = 'for file in "$@"; do mkdir -p "${file%/*}" && echo own >"$file" || exit 1; done'
    done = run(isolated, "sh", "-c", write, "sh", *places)
    assert done.returncode == 0, done.stderr
    assert not [place for place in places if os.path.exists(place)]


def test_a_device_file_that_root_makes_is_not_the_machines():
    if os.getuid() != 0:
        pytest.skip("an ordinary user makes no device files")
    program = str(Path(__file__).with_name("isolated.py"))
    make = ('mknod /dev/nvidia-made c 195 255 && head -c 4 /dev/urandom >/dev/null && '
            'test -c /dev/nvidia-made && test "$(stat -c %a,%t,%T /dev/null)" = "$1"')
    null = os.stat("/dev/null")
    of_null = f"{null.st_mode & 0o7777:o},{os.major(null.st_rdev):x},{os.minor(null.st_rdev):x}"
    done = run(["/usr/bin/python3", program], "sh", "-c", make, "sh", of_null)
    assert done.returncode == 0, done.stderr
    assert not os.path.exists("/dev/nvidia-made")


@pytest.mark.parametrize("port", [9090, 9100, 9400])
def test_a_port_that_another_program_listens_on_is_free(isolated, port):
    with socket.create_server(("127.0.0.1", port)):
        program = (f"import socket; socket.create_server(('127.0.0.1', {port})); "
                   "socket.create_server(('::1', 0), family=socket.AF_INET6)")
        done = run(isolated, "/usr/bin/python3", "-c", program)
        assert done.returncode == 0, done.stderr


def test_there_is_no_network_but_the_loopback(isolated):
    assert run(isolated, "cat", "/proc/net/dev").stdout.count(":") == 1
    assert run(isolated, "cat", "/proc/net/route").stdout.count("\n") <= 1


def test_the_checkout_and_what_is_kept_stay_though_they_lie_below_tmp(isolated, tmp_path_factory):
    assert run(isolated, "cat", isolated[-1]).stdout == Path(isolated[-1]).read_text()
    build = tmp_path_factory.mktemp("build")
    build.chmod(0o777)
    write = f"cd {build} && echo own >file"
    done = run(isolated, "--keep", str(build), "sh", "-c", write)
    assert (done.returncode, (build / "file").read_text()) == (0, "own\n"), done.stderr


def test_the_exit_status_is_the_commands(isolated):
    assert run(isolated, "sh", "-c", "exit 7").returncode == 7
    assert run(isolated, "sh", "-c", "kill -SEGV $$").returncode == 128 + signal.SIGSEGV
    missing = run(isolated, "no-such-command")
    assert missing.returncode == 127 and "no-such-command" in missing.stderr


# A daemon that forks twice, a mount, and a control group with a process and a subgroup.
BUSY = """
setsid sh -c 'trap "" TERM HUP INT; setsid sleep {mark} & sleep {mark}; wait' &
mkdir /tmp/mounted
if [ "$(id -u)" = 0 ]; then
    mount -t tmpfs tmpfs /tmp/mounted
    for at in $(awk '$3 ~ /^cgroup2?$/ {{print $2}}' /proc/self/mounts); do
        mkdir -p "$at/suite/below"
    done
    unified=$(awk '$3 == "cgroup2" {{print $2; exit}}' /proc/self/mounts)
    sh -c 'echo $$ >$1/suite/below/cgroup.procs; exec sleep {mark}' sh "$unified" &
fi
echo started
{then}
"""


def test_nothing_is_left_when_it_ends(isolated):
    mark = f"1000.{os.getpid()}1"
    done = run(isolated, "sh", "-c", BUSY.format(mark=mark, then="exit 3"))
    assert (done.returncode, done.stdout) == (3, "started\n"), done.stderr
    assert not running(mark) and not left()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, "its whole process group"])
def test_nothing_is_left_when_it_is_killed(isolated, how):
    """As ctest does when a suite takes too long."""
    mark = f"1000.{os.getpid()}2"
    command = [*isolated, "sh", "-c", BUSY.format(mark=mark, then="wait")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                          start_new_session=True) as suite:
        assert suite.stdout.readline() == "started\n"
        wait_until(lambda: running(mark), "the processes to run", 60)
        assert left()
        if isinstance(how, signal.Signals):
            suite.send_signal(how)
        else:
            os.killpg(suite.pid, signal.SIGKILL)
        suite.wait(60)
    wait_until(lambda: not running(mark), "the processes to be gone", 60)
    wait_until(lambda: not left(), "groups and folders to be gone", 60)
