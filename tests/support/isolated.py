#!/usr/bin/env python3
"""Runs a test suite isolated from the machine.

usage: isolated.py [--keep DIR] COMMAND...

The command has its own process ids, mounts, shared memory, network (only loopback) and, as root,
control groups. /tmp, /run and /dev/shm are empty and in memory, and the folders in /etc and /var/lib that agents,
kubelets and container engines use are absent. So the machine's processes and configuration do not
change a result, and concurrent suites do not interfere. An ordinary user gets the same from a user
namespace, without control groups, without overlays of /etc and /var/lib, and without the private
/dev, in which root has the machine's device files and creates its own.
DIR, the checkout, the cache and the home folder keep their paths even if they are below /tmp.

All processes that the command started end with it, and with this program, even if it is killed
with SIGKILL. A guard process outside of the namespaces then removes the control groups and the
folder behind /tmp."""
import contextlib
import ctypes
import fcntl
import os
import select
import shutil
import signal
import socket
import stat
import struct
import sys
import tempfile
import time
from pathlib import Path

CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWIPC = 0x00020000, 0x02000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_BIND, MS_MOVE, MS_REC, MS_PRIVATE = 0x1000, 0x2000, 0x4000, 0x40000
PR_SET_PDEATHSIG = 1
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
SOURCE = Path(__file__).resolve().parents[2]
# Paths that programs of a node read; they are absent for the command.
HIDDEN = {"/etc": ("cdi", "containerd", "crio", "docker", "nvidia-container-runtime", "penstock",
                   "rancher"),
          "/var/lib": ("containerd", "containers", "kubelet", "penstock", "rancher")}
SECONDS = 60  # timeout for killed processes to exit

libc = ctypes.CDLL(None, use_errno=True)


def call(name: str, *arguments):
    if getattr(libc, name)(*arguments) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}{arguments}: {os.strerror(code)}")


def mount(source: str | Path, target: str | Path, kind="", flags=0, options=""):
    call("mount", os.fsencode(source), os.fsencode(target), kind.encode(), flags, options.encode())


class Groups:
    """A control group in each hierarchy, below the group of this process."""

    def __init__(self, name: str):
        self.places: dict[Path, Path] = {}  # mount point of a hierarchy -> the group
        paths = dict(self._own())
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            before, _, after = line.partition(" - ")
            root, at, kind, options = *before.split()[3:5], after.split()[0], after.split()[2]
            if kind not in ("cgroup", "cgroup2"):
                continue
            own = paths.get("") if kind == "cgroup2" else self._with(paths, options.split(","))
            if own and own.startswith(root.rstrip("/")):
                below = own.removeprefix(root.rstrip("/")).lstrip("/")
                self.places[Path(at)] = Path(at, below, name)

    @staticmethod
    def _with(paths: dict[str, str], options: list[str]) -> str | None:
        """The path in the hierarchy of version 1 that is mounted with these options."""
        return next((path for controllers, path in paths.items()
                     if controllers and set(controllers.split(",")) <= set(options)), None)

    @staticmethod
    def _own():
        """Controllers (empty for version 2) and path of each group of this process."""
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            yield controllers, path

    def enter(self):
        for group in self.places.values():
            group.mkdir()
            # A new cpuset group of version 1 has no processors and no memory nodes, and admits no process.
            for file in ("cpuset.cpus", "cpuset.mems"):
                if (group / file).exists() and not (group / file).read_text().strip():
                    (group / file).write_text((group.parent / file).read_text())
            (group / "cgroup.procs").write_text(str(os.getpid()))

    def show_alone(self):
        """In the mount and control group namespaces of this process, makes the groups the roots of their
        hierarchies. If version 2 has controllers, the root stays empty: a group with processes cannot
        delegate controllers."""
        for at, group in self.places.items():
            mount(group, at, flags=MS_BIND)
            controllers = at / "cgroup.controllers"
            if controllers.exists() and controllers.read_text().strip():
                (at / "tests").mkdir()
                (at / "tests/cgroup.procs").write_text(str(os.getpid()))

    def remove(self):
        deadline = time.monotonic() + SECONDS
        for top in self.places.values():
            while top.exists() and time.monotonic() < deadline:
                # Unlike pathlib's rglob, os.walk does not fail if a group is removed concurrently. This
                # file must be self-contained; cgroups.py has the same code for tests.
                for group in (Path(folder) for folder, _, _ in os.walk(top, topdown=False)):
                    with contextlib.suppress(OSError):
                        for process in (group / "cgroup.procs").read_text().split():
                            os.kill(int(process), signal.SIGKILL)
                    with contextlib.suppress(OSError):
                        group.rmdir()
                time.sleep(0.02)


def clear_up_at_end(alive: int, scratch: Path, groups: Groups | None):
    """Runs in the guard: waits until the other end of the pipe is closed, and removes what outlives
    processes. Closes its output, so that readers of the command's output do not wait for it."""
    os.setsid()
    for descriptor in range(3):
        os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)
    os.read(alive, 1)
    if groups:
        groups.remove()
    deadline = time.monotonic() + SECONDS
    while scratch.exists() and time.monotonic() < deadline:
        shutil.rmtree(scratch, ignore_errors=True)
        time.sleep(0.02)


def enter_namespaces(root: bool):
    user, group = os.getuid(), os.getgid()
    kinds = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC
    call("unshare", kinds | (CLONE_NEWCGROUP if root else CLONE_NEWUSER))
    if not root:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    mount("none", "/", flags=MS_REC | MS_PRIVATE)
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))


def give_own_devices(scratch: Path):
    """Mounts a private /dev, because NVIDIA's libraries create missing device files if root uses them."""
    own = scratch / "dev"
    own.mkdir()
    mount("tmpfs", own, "tmpfs", options="mode=755")
    for entry in os.scandir("/dev"):
        target, status = own / entry.name, entry.stat(follow_symlinks=False)
        if entry.is_symlink():
            target.symlink_to(os.readlink(entry.path))
        elif stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode):
            os.mknod(target, status.st_mode, status.st_rdev)
            os.chown(target, status.st_uid, status.st_gid)
            target.chmod(stat.S_IMODE(status.st_mode))
        elif entry.is_dir():
            target.mkdir()
            mount(entry.path, target, flags=MS_BIND | MS_REC)
        else:
            target.touch()
            mount(entry.path, target, flags=MS_BIND)
    mount(own, "/dev", flags=MS_MOVE)


def hide_the_machines_own(root: bool, scratch: Path):
    """Hides HIDDEN. Root uses overlays with upper layers in memory; whiteouts (devices 0:0) in them
    delete names of the lower layer."""
    memory = scratch / "overlays"
    memory.mkdir()
    mount("tmpfs", memory, "tmpfs")
    for folder, names in HIDDEN.items():
        if not root:
            for name in names:
                if Path(folder, name).is_dir():
                    mount("tmpfs", Path(folder, name), "tmpfs")
            continue
        place = memory / folder.strip("/").replace("/", "-")
        upper, work = place / "upper", place / "work"
        upper.mkdir(parents=True)
        work.mkdir()
        upper.chmod(0o755)
        for name in names:
            if Path(folder, name).exists():
                os.mknod(upper / name, stat.S_IFCHR, os.makedev(0, 0))
        layers = f"lowerdir={folder},upperdir={upper},workdir={work}"
        mount("overlay", folder, "overlay", options=layers)
    mount("tmpfs", "/dev/shm", "tmpfs", options="mode=1777")
    mount("tmpfs", "/run", "tmpfs", options="mode=755")
    Path("/run/lock").mkdir()


def give_own_tmp(scratch: Path, kept: Path):
    """In memory: on disk, suites that make and remove many files spend most of their time in the
    file system. An ext4 without a journal looks at every recently freed inode for each new file."""
    own = scratch / "tmp"
    own.mkdir()
    mount("tmpfs", own, "tmpfs", options="mode=1777")
    cache = Path(os.environ.get("PENSTOCK_CACHE", "/"))
    wanted = {SOURCE, kept, cache, Path.home(), Path(sys.prefix)}
    for path in sorted(path for path in wanted if path.resolve().is_relative_to("/tmp")):
        target = own / path.resolve().relative_to("/tmp")
        target.mkdir(parents=True, exist_ok=True)
        mount(path, target, flags=MS_BIND | MS_REC)
    mount(own, "/tmp", flags=MS_BIND | MS_REC)
    for name in ("TMPDIR", "TEST_TMPDIR"):
        os.environ.pop(name, None)


def die_with_parent(alive: int):
    """Has this process killed with its parent. `alive` is the reading end of a pipe whose other end only
    the outermost process has: if it is closed, that process died before this call."""
    call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL)
    if select.select([alive], [], [], 0)[0]:
        os._exit(1)


def run_as_init(command: list[str], alive: int) -> int:
    """Runs as the first process of the namespace; when it exits, the kernel kills all others."""
    die_with_parent(alive)
    mount("proc", "/proc", "proc")
    if (main := os.fork()) == 0:
        os.close(alive)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        try:
            os.execvp(command[0], command)
        except OSError as error:
            print(f"isolated.py: {command[0]}: {error.strerror}", file=sys.stderr)
            os._exit(127)
    while True:
        pid, status = os.wait()
        if pid == main:
            return exit_status(status)


def run_isolated(command: list[str], kept: Path, scratch: Path, groups: Groups | None,
                 alive: int) -> int:
    die_with_parent(alive)
    root = groups is not None
    try:
        if root:
            groups.enter()
        enter_namespaces(root)
        if root:
            give_own_devices(scratch)
        hide_the_machines_own(root, scratch)
        give_own_tmp(scratch, kept)
        if root:
            groups.show_alone()
    except OSError as error:
        print(f"isolated.py: {error}", file=sys.stderr)
        if not root:
            print("isolated.py: an ordinary user needs user namespaces "
                  "(kernel.unprivileged_userns_clone, user.max_user_namespaces)", file=sys.stderr)
        return 125
    if (init := os.fork()) == 0:
        os._exit(run_as_init(command, alive))
    return exit_status(os.waitpid(init, 0)[1])


def exit_status(status: int) -> int:
    """The exit status of a waited process, as in a shell."""
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


def main() -> int:
    command, kept = sys.argv[1:], SOURCE
    if command[:1] == ["--keep"]:
        command, kept = command[2:], Path(command[1]).resolve()
    if not command or command[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if command else 2
    # The command gets the terminal's interrupt, too, and reports its progress.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    scratch = Path(tempfile.mkdtemp(prefix="penstock-suite-"))
    scratch.chmod(0o755)
    groups = Groups(scratch.name) if os.geteuid() == 0 else None
    alive, held = os.pipe()
    if (guard := os.fork()) == 0:
        os.close(held)
        clear_up_at_end(alive, scratch, groups)
        os._exit(0)
    if (inner := os.fork()) == 0:
        os.close(held)
        os._exit(run_isolated(command, kept, scratch, groups, alive))
    status = exit_status(os.waitpid(inner, 0)[1])
    os.close(held)
    os.waitpid(guard, 0)
    return status


if __name__ == "__main__":
    sys.exit(main())
