"""Injects faults into system calls of a program: intercepts its calls on files below given folders, and fails the one that a test names, or
kills the program there.

The kernel passes each of these calls to this module (seccomp_unotify(2)). Unlike strace's `inject=`, which counts calls for each thread and
matches only complete paths, this module distinguishes a write to a state file from a write that wakes a thread, and finds files with random
names."""
import array
import contextlib
import ctypes
import errno
import fcntl
import json
import os
import platform
import re
import select
import signal
import socket
import struct
import sys
import threading
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

# Name: numbers on x86-64 and on arm64 (None: unsupported there); the argument with the path, and the argument with the folder descriptor that
# the path is relative to, or with a descriptor instead of a path.
AT, FD, PATH = "at", "fd", "path"
CALLS = {
    "open": (2, None, PATH, 0), "openat": (257, 56, AT, 0), "openat2": (437, 437, AT, 0), "creat": (85, None, PATH, 0),
    "read": (0, 63, FD, 0), "pread64": (17, 67, FD, 0), "getdents64": (217, 61, FD, 0),
    "write": (1, 64, FD, 0), "pwrite64": (18, 68, FD, 0), "writev": (20, 66, FD, 0),
    "fsync": (74, 82, FD, 0), "fdatasync": (75, 83, FD, 0), "ftruncate": (77, 46, FD, 0), "flock": (73, 32, FD, 0),
    "rename": (82, None, PATH, 1), "renameat": (264, 38, AT, 2), "renameat2": (316, 276, AT, 2),
    "link": (86, None, PATH, 1), "linkat": (265, 37, AT, 2), "symlink": (88, None, PATH, 1), "symlinkat": (266, 36, AT, 1),
    "mkdir": (83, None, PATH, 0), "mkdirat": (258, 34, AT, 0), "rmdir": (84, None, PATH, 0),
    "unlink": (87, None, PATH, 0), "unlinkat": (263, 35, AT, 0),
    "chmod": (90, None, PATH, 0), "fchmod": (91, 52, FD, 0), "fchmodat": (268, 53, AT, 0),
    "chown": (92, None, PATH, 0), "fchown": (93, 55, FD, 0), "lchown": (94, None, PATH, 0), "fchownat": (260, 54, AT, 0),
    "setxattr": (188, 5, PATH, 0), "lsetxattr": (189, 6, PATH, 0), "fsetxattr": (190, 7, FD, 0),
    "getxattr": (191, 8, PATH, 0), "lgetxattr": (192, 9, PATH, 0), "fgetxattr": (193, 10, FD, 0),
    "inotify_add_watch": (254, 27, PATH, 1), "bind": (49, 200, "address", 1),
}
# Errors of each call on a machine whose disk is full, broken or read-only, or that is out of descriptors.
NEW = ("ENOSPC", "EROFS")
ERRORS = {
    "open": ("EMFILE", "EIO"), "openat": ("EMFILE", "EIO"), "openat2": ("EMFILE", "EIO"), "creat": NEW,
    "read": ("EIO",), "pread64": ("EIO",), "getdents64": ("EIO",),
    "write": ("ENOSPC", "EIO"), "pwrite64": ("ENOSPC", "EIO"), "writev": ("ENOSPC", "EIO"),
    "fsync": ("EIO",), "fdatasync": ("EIO",), "ftruncate": ("EIO",), "flock": ("ENOLCK",),
    "unlink": ("EROFS",), "unlinkat": ("EROFS",), "rmdir": ("EROFS",),
    "chmod": ("EROFS",), "fchmod": ("EROFS",), "fchmodat": ("EROFS",),
    "chown": ("EROFS",), "fchown": ("EROFS",), "lchown": ("EROFS",), "fchownat": ("EROFS",),
    "getxattr": ("EIO",), "lgetxattr": ("EIO",), "fgetxattr": ("EIO",),
    "inotify_add_watch": ("ENOSPC",), "bind": NEW,
}
KILL = "KILL"
HANG = "HANG"  # the call does not return as long as the program lives
WRITES = 0o3 | 0o100  # O_WRONLY, O_RDWR, O_CREAT

MACHINES = {"x86_64": (0xC000003E, 0, 317), "aarch64": (0xC00000B7, 1, 277)}
AUDIT_ARCH, COLUMN, SECCOMP = MACHINES[platform.machine()]
NUMBERS = {row[COLUMN]: name for name, row in CALLS.items() if row[COLUMN] is not None}

libc = ctypes.CDLL(None, use_errno=True)


# Runs in the process of the program, before it is executed.


def install_filter() -> int:
    """Returns a descriptor to which the kernel passes the calls above from now on, also those of executed programs and children."""
    numbers = sorted(NUMBERS)
    allow, ask = 0x7FFF0000, 0x7FC00000
    load_arch, load_number = (0x20, 0, 0, 4), (0x20, 0, 0, 0)
    program = [load_arch, (0x15, 0, len(numbers) + 1, AUDIT_ARCH), load_number]
    program += [(0x15, len(numbers) - at, 0, number) for at, number in enumerate(numbers)]
    program += [(0x06, 0, 0, allow), (0x06, 0, 0, ask)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in program))
    filter_of = struct.pack("H6xQ", len(program), ctypes.addressof(code))
    set_mode_filter, new_listener = 1, 8
    listener = libc.syscall(SECCOMP, set_mode_filter, new_listener, filter_of)
    if listener < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    return listener


def launch(address: str, command: list[str]):
    """Executes the command. The listener at the address intercepts its calls; when the listener dies, the kernel kills the command."""
    set_death_signal = 1
    libc.prctl(set_death_signal, signal.SIGKILL)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(address)
    listener = install_filter()
    connection.sendmsg([b"f"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener]))])
    os.close(listener)
    connection.recv(1)
    connection.close()
    os.execv(command[0], command)


# Runs in the test.


@dataclass(frozen=True, order=True)
class Point:
    """A call: its name, its path, its occurrence since look(), and the action: an error, KILL or HANG."""
    call: str
    path: str
    occurrence: int
    action: str = ""

    def __str__(self):
        return f"{self.call} {self.path} {self.occurrence} {self.action}"


class Notification(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint64), ("pid", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("number", ctypes.c_int),
                ("arch", ctypes.c_uint32), ("instruction", ctypes.c_uint64), ("arguments", ctypes.c_uint64 * 6)]


class Response(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint64), ("value", ctypes.c_int64), ("error", ctypes.c_int32), ("flags", ctypes.c_uint32)]


RECEIVE, SEND = 0xC0502100, 0xC0182101
CONTINUE = 1


def text_at(pid: int, address: int, size: int = 4096) -> bytes:
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(address)
        page = 4096 - address % 4096  # the next page may be unmapped
        text = memory.read(page)
        if b"\0" not in text:
            with contextlib.suppress(OSError):
                text += memory.read(size)
        return text


class Faults:
    """Intercepts one program's calls on files below `roots`, which map a name to a folder or file. Paths are reported as NAME/REST. `names` are
    pairs of a pattern and its replacement, for random parts of paths."""

    def __init__(self, home: Path, roots: dict[str, Path], names: tuple = ()):
        self.address = home / "faults.sock"
        self.roots = sorted(((str(path), name) for name, path in roots.items()), reverse=True)
        self.names = [(re.compile(pattern), to) for pattern, to in names]
        self.lock = threading.Lock()
        self.seen: list[Point] = []
        self.counts: Counter = Counter()
        self.wanted: Point | None = None
        self.hit: str | None = None  # the failed call
        self.recording = False
        self.listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.address.unlink(missing_ok=True)
        self.listening.bind(str(self.address))
        self.listening.listen(1)
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def wrapper(self) -> tuple:
        """The prefix of the program's command line. Use each object for one program only."""
        return (sys.executable, "-IS", __file__, str(self.address))

    def look(self, fail: Point | None = None):
        """Resets the record of calls; the given call fails."""
        with self.lock:
            self.seen, self.counts, self.wanted, self.hit, self.recording = [], Counter(), fail, None, True

    def stop(self) -> list[Point]:
        """The calls since look(), in order."""
        with self.lock:
            self.recording, self.wanted = False, None
            return self.seen

    def so_far(self) -> list[Point]:
        with self.lock:
            return list(self.seen)

    def close(self):
        self.listening.close()

    def _serve(self):
        with contextlib.suppress(OSError):
            connection, _ = self.listening.accept()
            _, ancillary, _, _ = connection.recvmsg(1, socket.CMSG_SPACE(4))
            listener = array.array("i", ancillary[0][2])[0]
            connection.send(b"g")
            connection.close()
            try:
                self._answer(listener)
            finally:
                os.close(listener)

    def _answer(self, listener: int):
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        while True:
            [(_, events)] = poll.poll()
            if not events & select.POLLIN:
                return  # the program has exited
            notification = Notification()
            try:
                fcntl.ioctl(listener, RECEIVE, notification)
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.EINTR):
                    continue  # the thread that called was killed
                raise
            response = Response(id=notification.id, flags=CONTINUE)
            hangs = False
            with contextlib.suppress(OSError, ValueError):
                hangs = self._decide(notification, response)
            if not hangs:
                with contextlib.suppress(OSError):
                    fcntl.ioctl(listener, SEND, response)

    def _decide(self, notification: Notification, response: Response) -> bool:
        """Fills in the response; returns true if the call gets none, so that it hangs."""
        if not self.recording:
            return False
        call = NUMBERS[notification.number]
        path = self._path(notification, call)
        named = self._named(path)
        if named is None:
            return False
        with self.lock:
            if not self.recording:
                return False
            self.counts[call, named] += 1
            occurrence = self.counts[call, named]
            self.seen.append(Point(call, named, occurrence))
            wanted = self.wanted
            if wanted is None or (wanted.call, wanted.path, wanted.occurrence) != (call, named, occurrence):
                return False
            self.hit, self.wanted = f"{call} {path}", None
        if wanted.action == KILL:
            status = Path(f"/proc/{notification.pid}/status").read_text()
            os.kill(int(re.search(r"^Tgid:\s*(\d+)", status, re.M)[1]), signal.SIGKILL)
        elif wanted.action != HANG:
            response.flags, response.error = 0, -getattr(errno, wanted.action)
        return wanted.action == HANG

    @staticmethod
    def _path(notification: Notification, call: str) -> str:
        *_, where, argument = CALLS[call]
        pid, arguments = notification.pid, notification.arguments
        if where == FD:
            return os.readlink(f"/proc/{pid}/fd/{ctypes.c_int(arguments[argument]).value}")
        if where == "address":
            family_and_path = text_at(pid, arguments[argument])
            return os.fsdecode(family_and_path[2:].partition(b"\0")[0])
        folder = "cwd"
        if where == AT:
            descriptor = ctypes.c_int(arguments[argument]).value
            folder = "cwd" if descriptor == -100 else f"fd/{descriptor}"
            argument += 1
        path = os.fsdecode(text_at(pid, arguments[argument]).partition(b"\0")[0])
        return path if path.startswith("/") else f"{os.readlink(f'/proc/{pid}/{folder}')}/{path}"

    def _named(self, path: str) -> str | None:
        path = path.removesuffix(" (deleted)")
        for root, name in self.roots:
            if path == root or path.startswith(root + "/"):
                named = name + path[len(root):]
                for pattern, to in self.names:
                    named = pattern.sub(to, named)
                return named
        return None


# Selection of points.

MOST_OF_ONE_CALL = 2  # further calls on the same file are iterations of the same loop
SHARE = 24  # without --every-fault, one of this many points is tried
POINTS = Path(__file__).parents[1] / "integration/faults_points.json"


def points_of(seen: list[Point]) -> list[Point]:
    calls = {point for point in seen if point.occurrence <= MOST_OF_ONE_CALL}
    return [Point(call.call, call.path, call.occurrence, action) for call in sorted(calls)
            for action in (*ERRORS.get(call.call, NEW), KILL)]


def chosen(points: list[Point], request) -> list[Point]:
    """All points with --every-fault; otherwise a subset that is the same in each run and contains at
    least one point of each call."""
    if request.config.getoption("--every-fault"):
        return points

    def rank(point: Point) -> int:
        return zlib.crc32(str(point).encode())
    first = {point.call: point for point in sorted(points, key=rank, reverse=True)}
    return sorted({*first.values(), *(point for point in points if rank(point) % SHARE == 0)})


def counted(request, name: str, observe) -> list[Point]:
    """The points of a scenario, from the calls that `observe` returns without a fault. Some calls
    depend on timers: they are tried if they occur. The recorded minimum counts only the points that
    always occur; `observe` receives it, and waits for so many."""
    recorded = json.loads(POINTS.read_text())
    if request.config.getoption("--count-faults"):
        seen = [set(points_of(observe(0))) for _ in range(5)]
        always, points = set.intersection(*seen), set.union(*seen)
        recorded[name] = len(always)
        POINTS.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n")
        print(*(f"{point}{'' if point in always else ' (sometimes)'}" for point in sorted(points)),
              sep="\n")
        return sorted(points)
    points: set[Point] = set()
    for _ in range(3):
        points.update(points_of(observe(recorded[name])))
        if len(points) >= recorded[name]:
            return sorted(points)
    raise AssertionError(f"there were {recorded[name]} points in {name}, now there are "
                         f"{len(points)}: {[str(point) for point in sorted(points)]}")


if __name__ == "__main__":
    launch(sys.argv[1], sys.argv[2:])
