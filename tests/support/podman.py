"""Containers of podman on an isolated machine: with its own /run and /etc, so that no engine of the real machine sees the specifications of a
test. Contains no assertions about containers."""
import os
import shutil
import signal
import subprocess
from pathlib import Path

import images
from node import wait_until

# crun refuses a hybrid hierarchy, so the version 2 mount is removed.
SET_UP = """
while umount /sys/fs/cgroup/unified 2>/dev/null; do :; done
mount -t tmpfs tmpfs /run && mkdir -p /run/lock /run/cdi &&
cp -a /etc/. $1/etc && rm -rf $1/etc/cdi && mkdir $1/etc/cdi && mount --bind $1/etc /etc && echo ready && exec sleep infinity
"""
# If the hard limit of processes or files is lower than podman's default, no container starts.
LIMITS = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024")
RUN = ("--rm", "--network", "none", "--log-driver", "none", *LIMITS)


class Host:
    """A mount namespace with its own folders for specifications below `home`, and podman in it."""

    def __init__(self, home: Path):
        self.home = home
        (home / "etc").mkdir()
        command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", SET_UP, "sh", home]
        self.holder = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.holder.stdout.readline() == "ready\n", self.holder.stderr.read()
        images.write(home / "image.tar")
        self.podman("load", "-i", home / "image.tar")

    @property
    def entering(self) -> tuple:
        """The prefix of a command line that executes it in the namespace."""
        return ("nsenter", "-t", str(self.holder.pid), "-m", "--")

    @property
    def cdi(self) -> Path:
        """The path of the namespace's /var/run/cdi for this process."""
        return Path(f"/proc/{self.holder.pid}/root/run/cdi")

    @property
    def etc_cdi(self) -> Path:
        return Path(f"/proc/{self.holder.pid}/root/etc/cdi")

    def command(self, *words, runtime: str = "runc") -> list[str]:
        storage = ("--root", self.home / "storage", "--runroot", self.home / "podman", "--storage-driver", "vfs")
        settings = ("--cgroup-manager", "cgroupfs", "--events-backend", "none", "--runtime", runtime)
        return [str(word) for word in (*self.entering, "podman", *storage, *settings, *words)]

    def podman(self, *words, check: bool = True, **options) -> subprocess.CompletedProcess:
        done = subprocess.run(self.command(*words, **options), capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
        assert not check or done.returncode == 0, f"podman {' '.join(map(str, words))}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def run(self, devices: list[str], script: str, *options, **more) -> str:
        """The output of a shell script in a container with these devices."""
        given = [word for device in devices for word in ("--device", device)]
        return self.podman("run", *RUN, *given, *options, images.NAME, "sh", "-c", script, **more).stdout

    def start(self, devices: list[str], script: str, *options) -> subprocess.Popen:
        """Starts the same without waiting for it."""
        given = [word for device in devices for word in ("--device", device)]
        return subprocess.Popen(self.command("run", *RUN, *given, *options, images.NAME, "sh", "-c", script), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def clear(self):
        """Removes all specifications."""
        for folder in (self.cdi, self.etc_cdi):
            for file in folder.iterdir():
                file.unlink()

    def end(self):
        self.podman("rm", "--all", "--force", "--time", "0", check=False)
        namespace = os.stat(f"/proc/{self.holder.pid}/ns/mnt").st_ino
        # The cleanup process that conmon starts after a container may still use the storage.
        wait_until(lambda: not end_all_in(namespace), "the machine's processes to end")
        self.holder.communicate()
        shutil.rmtree(self.home)


def end_all_in(namespace: int) -> bool:
    """Kills each process of a mount namespace; returns whether there was one."""
    found = False
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.stat(process / "ns/mnt").st_ino == namespace:
                os.kill(int(process.name), signal.SIGKILL)
                found = True
        except OSError:  # the process has exited
            pass
    return found
