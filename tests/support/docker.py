"""dockerd of Debian 12 with its usual paths on an isolated machine: /run/docker.sock, /etc/docker, and its own PATH.
Contains no assertions about containers."""
import io
import os
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "e2e/cluster"))

import downloads  # noqa: E402
import parts  # noqa: E402
from node import wait_until  # noqa: E402

IMAGE = "shell"
BUSYBOX = Path("/bin/busybox")
SOCKET = "/run/docker.sock"
# Restarts the daemon like its unit. If the file "refuse" contains a word, the daemon does not start while its configuration contains that word.
SYSTEMCTL = """#!/bin/sh
echo "$@" >>{home}/calls
[ "$1" = restart ] || exit 0
kill -9 $(cat {home}/pid) && while kill -0 $(cat {home}/pid) 2>/dev/null; do sleep 0.05; done
rm -f {home}/dockerd.pid
if [ -e {home}/refuse ] && grep -q "$(cat {home}/refuse)" /etc/docker/daemon.json; then echo "Job for docker.service failed." >&2; exit 1; fi
exec {home}/start
"""
# No bridge, no external network, and no userland proxy processes.
START = """#!/bin/sh
PATH={path} setsid dockerd --data-root {home}/data --exec-root {home}/exec --pidfile {home}/dockerd.pid --bridge none --iptables=false \\
  --ip-forward=false --userland-proxy=false --storage-driver vfs >>{home}/log 2>&1 </dev/null &
echo $! >{home}/pid
"""


class Docker:
    """A daemon with its files below `home`; `bin` is the first folder of its PATH, initially empty."""

    def __init__(self, home: Path):
        self.home, self.bin, self.root = home, home / "bin", downloads.docker()
        self.bin.mkdir()
        self.path = f"{self.bin}:{parts.containerd_older()}:{self.root}/usr/sbin:{self.root}/usr/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        for name, text in (("systemctl", SYSTEMCTL), ("start", START)):
            (home / name).write_text(text.format(home=home, path=self.path))
            (home / name).chmod(0o755)
        self.start()
        self.load(IMAGE)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of programs that use this daemon's files and the replacement of systemctl."""
        return os.environ | {"PATH": f"{self.home}:{self.path}"}

    def start(self):
        subprocess.run([self.home / "start"], check=True)
        wait_until(lambda: self.call("version", check=False).returncode == 0, "dockerd to answer")

    def kill(self):
        pid = int((self.home / "pid").read_text())
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: ended(pid), "dockerd to end")
        (self.home / "dockerd.pid").unlink(missing_ok=True)

    def restart(self):
        self.kill()
        self.start()

    def call(self, *words, check: bool = True, **options) -> subprocess.CompletedProcess:
        done = subprocess.run([str(word) for word in (self.root / "usr/bin/docker", "--host", f"unix://{SOCKET}", *words)],
                              capture_output=True, text=True, timeout=120, env=self.environment, **({"stdin": subprocess.DEVNULL} | options))
        assert not check or done.returncode == 0, f"docker {' '.join(map(str, words))}: {done.stdout}\n{done.stderr}\n{self.log()[-3000:]}"
        return done

    def load(self, name: str, *environment: str):
        """Loads an image of a shell with these environment variables."""
        archive = self.home / "image.tar"
        applets = subprocess.run([BUSYBOX, "--list"], check=True, capture_output=True, text=True).stdout.split()
        with tarfile.open(archive, "w") as tar:
            tar.add(BUSYBOX, "bin/busybox")
            for applet in {Path(applet).name for applet in applets} - {"busybox"}:
                link = tarfile.TarInfo(f"bin/{applet}")
                link.type, link.linkname = tarfile.SYMTYPE, "busybox"
                tar.addfile(link)
            passwd = tarfile.TarInfo("etc/passwd")
            text = b"root:x:0:0:root:/root:/bin/sh\n"
            passwd.size = len(text)
            tar.addfile(passwd, io.BytesIO(text))
        self.call("import", *[word for one in environment for word in ("--change", f"ENV {one}")], archive, name)

    def run(self, script: str, *options, image: str = IMAGE, **more) -> subprocess.CompletedProcess:
        """Runs a shell script in a container."""
        return self.call("run", "--rm", "--network", "none", *options, image, "sh", "-c", script, **more)

    def log(self) -> str:
        return (self.home / "log").read_text()

    def end(self):
        ids = self.call("ps", "-aq", check=False).stdout.split()
        if ids:
            self.call("rm", "-f", *ids, check=False)
        self.kill()


def ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True
