"""A bare Debian 12 in a folder, with its own /run and the machine's control groups, in which
packages are installed as on a machine. Contains no assertions about packages."""
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))

import downloads  # noqa: E402

QUIET = {"DEBIAN_FRONTEND": "noninteractive", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C",
         "HOME": "/root"}


def mount(*words):
    subprocess.run(["mount", *map(str, words)], check=True)


def unpack(into: Path) -> Path:
    with tarfile.open(downloads.debian_tree()) as tree:
        tree.extractall(into)  # as root: with owners, modes and device files
    return into


class Debian:
    """A layer over an unpacked tree: what a test changes is gone with it."""

    def __init__(self, tree: Path, home: Path):
        self.home, self.root = home, home / "root"
        self.root.mkdir(parents=True)
        mount("-t", "tmpfs", "tmpfs", home)
        for folder in ("root", "upper", "work"):
            (home / folder).mkdir()
        mount("-t", "overlay", "overlay", "-o",
              f"lowerdir={tree},upperdir={home / 'upper'},workdir={home / 'work'}", self.root)
        mount("-t", "proc", "proc", self.root / "proc")
        mount("--rbind", "/dev", self.root / "dev")
        mount("--rbind", "/sys", self.root / "sys")
        mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", self.root / "run")
        self.started: list[subprocess.Popen] = []

    def path(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def run(self, *words, check=True, quiet=False) -> subprocess.CompletedProcess:
        done = subprocess.run(["chroot", self.root, *map(str, words)], env=QUIET, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=120)
        if not quiet:
            print(f"$ {' '.join(map(str, words))}\n{done.stdout}", end="")
        assert not check or done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}"
        return done

    def start(self, *words) -> subprocess.Popen:
        with open(self.home / "started.log", "ab") as log:
            process = subprocess.Popen(["chroot", self.root, *map(str, words)], env=QUIET,
                                       stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.started.append(process)
        return process

    def log(self) -> str:
        return (self.home / "started.log").read_text(errors="replace")

    def put(self, *files: Path) -> list[str]:
        """Copies files into /root, and returns their paths there."""
        for file in files:
            shutil.copy(file, self.path("root"))
        return [f"/root/{file.name}" for file in files]

    def install(self, *packages: Path, check=True) -> subprocess.CompletedProcess:
        """By apt, which has no list of packages and so can download nothing."""
        return self.run("apt-get", "-y", "--no-install-recommends", "install", *self.put(*packages),
                        check=check)

    def files(self) -> dict[str, tuple]:
        """Every path on the disk, with its type and mode, except what apt and dpkg note."""
        noted = ("root", "var/lib/dpkg", "var/lib/apt", "var/log", "var/cache", "tmp", "run")
        found = {}
        for folder, names, files in os.walk(self.root):
            here = Path(folder).relative_to(self.root)
            if str(here) == ".":
                names[:] = [name for name in names if name not in ("proc", "sys", "dev")]
            for name in [*names, *files]:
                path = here / name
                if not any(path == Path(top) or path.is_relative_to(top) for top in noted):
                    status = (self.root / path).lstat()
                    found[str(path)] = (status.st_mode, status.st_uid, status.st_gid)
        return found

    def end(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait()
        subprocess.run(["umount", "-R", "-l", self.home], check=True)
