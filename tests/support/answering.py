"""Files that answer, as those of a driver in sysfs do: a FUSE file system in which each file is a pair of functions. A write that a function refuses with an OSError
fails with its errno in the program that wrote."""
import contextlib
import ctypes
import errno
import os
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

LOOKUP, FORGET, GETATTR, SETATTR, OPEN, READ, WRITE, STATFS, RELEASE, FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR, INTERRUPT, DESTROY, BATCH_FORGET = (
    1, 2, 3, 4, 14, 15, 16, 17, 18, 25, 26, 27, 28, 29, 36, 38, 42)  # include/uapi/linux/fuse.h
UNANSWERED = (FORGET, BATCH_FORGET, INTERRUPT, DESTROY)
ROOT, PAGE, DIRECT = 1, 4096, 1
MNT_DETACH = 2
OPEN_TREE, MOVE_MOUNT, OPEN_TREE_CLONE, AT_FDCWD, MOVE_MOUNT_F_EMPTY_PATH = 428, 429, 1, -100, 4  # include/uapi/linux/mount.h; the calls have one number everywhere
libc = ctypes.CDLL(None, use_errno=True)


def in_memory(folder: Path, inside: tuple = ()):
    """A folder whose files are quickly made. `inside`: the command that enters another mount namespace, which gets it, too."""
    folder.mkdir(parents=True, exist_ok=True)
    if libc.mount(b"files", os.fsencode(folder), b"tmpfs", 0, b"mode=755") != 0:
        raise OSError(ctypes.get_errno(), f"cannot mount {folder}: {os.strerror(ctypes.get_errno())}")
    if not inside:
        return
    tree = libc.syscall(OPEN_TREE, AT_FDCWD, os.fsencode(folder), OPEN_TREE_CLONE)
    if tree < 0:
        raise OSError(ctypes.get_errno(), f"cannot open the tree {folder}: {os.strerror(ctypes.get_errno())}")
    script = f"import ctypes, sys; sys.exit(ctypes.CDLL(None).syscall({MOVE_MOUNT}, {tree}, b'', {AT_FDCWD}, {os.fsencode(folder)!r}, {MOVE_MOUNT_F_EMPTY_PATH}) != 0)"
    subprocess.run([*inside, sys.executable, "-c", script], check=True, pass_fds=[tree])
    os.close(tree)


def unmount(folder: Path, inside: tuple = ()):
    """`inside`: the command that enters the mount namespace where it is mounted."""
    if inside:
        subprocess.run([*inside, "umount", "-l", folder], check=True)
    libc.umount2(os.fsencode(folder), MNT_DETACH)  # fails where it is mounted only there


class Later(Exception):
    """Raised by a function whose answer takes time: it is called once more when the event is set. Other files answer meanwhile."""

    def __init__(self, until: threading.Event):
        super().__init__()
        self.until = until


class Answering:
    """Mounted on `folder` until it is closed. The functions are called on threads of its own, one at a time. `inside`: the command that enters the mount namespace to
    mount it in, if that is not this process's."""

    def __init__(self, folder: Path, inside: tuple = ()):
        self.folder, self.inside = folder, inside
        folder.mkdir(parents=True, exist_ok=True)
        self.files: list[tuple[str, Callable[[], str | bytes], Callable[[str], None] | None]] = []
        self.device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self.device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()},allow_other"
        if inside:
            subprocess.run([*inside, "mount", "-i", "-t", "fuse", "-o", options, "answering", folder], check=True, pass_fds=[self.device])
        elif libc.mount(b"answering", os.fsencode(folder), b"fuse", 0, options.encode()) != 0:
            raise OSError(ctypes.get_errno(), f"cannot mount {folder}: {os.strerror(ctypes.get_errno())}")
        self.one_at_a_time = threading.Lock()
        self.later: list[tuple[threading.Event, threading.Thread]] = []
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def add(self, name: str, read: Callable[[], str | bytes], write: Callable[[str], None] | None = None):
        self.files.append((name, read, write))

    def close(self):
        for until, _ in self.later:
            until.set()
        unmount(self.folder, self.inside)
        for thread in (self.thread, *(thread for _, thread in self.later)):
            thread.join(60)
        os.close(self.device)

    def serve(self):
        while True:
            try:
                request = os.read(self.device, 1 << 17)
            except OSError as error:
                if error.errno in (errno.EINTR, errno.EAGAIN, errno.ENOENT):
                    continue
                return  # unmounted
            _, code, unique, node = struct.unpack_from("<IIQQ", request)
            if code in UNANSWERED:
                continue
            try:
                self.reply(code, unique, node, request[40:])
            except Later as later:
                thread = threading.Thread(target=self.reply_after, args=(later.until, code, unique, node, request[40:]), daemon=True)
                self.later.append((later.until, thread))
                thread.start()

    def reply(self, code: int, unique: int, node: int, body: bytes):
        try:
            with self.one_at_a_time:
                failed, answer = 0, self.answer(code, node, body)
        except OSError as error:
            failed, answer = -error.errno, b""
        with contextlib.suppress(OSError):  # the program was killed meanwhile
            os.write(self.device, struct.pack("<IiQ", 16 + len(answer), failed, unique) + answer)

    def reply_after(self, until: threading.Event, *request):
        until.wait()
        self.reply(*request)

    def answer(self, code: int, node: int, body: bytes) -> bytes:
        if code == INIT:
            return struct.pack("<IIIIHHIIHH", 7, 31, 0, 0, 12, 9, PAGE, 1, 1, 0).ljust(64, b"\0")
        if code == LOOKUP:
            name = body.rstrip(b"\0").decode()
            number = next((number for number, file in enumerate(self.files, ROOT + 1) if file[0] == name), None)
            if number is None:
                raise OSError(errno.ENOENT, name)
            return struct.pack("<QQQQII", number, 0, 0, 0, 0, 0) + self.attributes(number)
        if code in (GETATTR, SETATTR):
            return struct.pack("<QII", 0, 0, 0) + self.attributes(node)
        if code in (OPEN, OPENDIR):
            return struct.pack("<QII", 0, 0 if code == OPENDIR else DIRECT, 0)
        if code == READ:
            _, offset, size = struct.unpack_from("<QQI", body)
            content = self.files[node - ROOT - 1][1]()
            return (content if isinstance(content, bytes) else content.encode())[offset:offset + size]
        if code == WRITE:
            _, _, size = struct.unpack_from("<QQI", body)
            if (write := self.files[node - ROOT - 1][2]) is None:
                raise OSError(errno.EACCES, "read only")
            write(body[40:40 + size].decode(errors="replace"))
            return struct.pack("<II", size, 0)
        if code == READDIR:
            _, offset, _ = struct.unpack_from("<QQI", body)
            return b"" if offset else b"".join(self.entry(number, file[0]) for number, file in enumerate(self.files, ROOT + 1))
        if code in (FLUSH, RELEASE, RELEASEDIR):
            return b""
        if code == STATFS:
            return bytes(80)
        raise OSError(errno.ENOSYS, str(code))

    @staticmethod
    def entry(number: int, name: str) -> bytes:
        raw = name.encode()
        return (struct.pack("<QQII", number, number, len(raw), 0) + raw).ljust(24 + (len(raw) + 7) // 8 * 8, b"\0")

    @staticmethod
    def attributes(node: int) -> bytes:
        mode, size = (0o40755, 0) if node == ROOT else (0o100644, PAGE)
        return struct.pack("<6Q10I", node, size, 0, 0, 0, 0, 0, 0, 0, mode, 1, os.getuid(), os.getgid(), 0, PAGE, 0)
