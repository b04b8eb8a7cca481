#!/usr/bin/env python3
"""Runs a real Kubernetes on one machine, in its own namespaces: nothing outside DIR changes, and several clusters can run at once.

  cluster.py up DIR [NODES]             start one (default: 1 node, n1); returns when every node is Ready and prints how long that took
  cluster.py in DIR [-n K] CMD...       run CMD where node K's daemons run (default n1); kubectl, ctr and kubelet-peer are on PATH
  cluster.py stop|start DIR [-n K] X    kill -9 or start daemon X: etcd apiserver controller-manager scheduler containerd kubelet, or
                                        one that a test has added
  cluster.py down DIR                   stop everything; DIR stays, with log/ and nK/log/; `up` on it again is a reboot

A node's kubelet directory is DIR/nK/kubelet, seen as /var/lib/kubelet inside. Writes to /etc, /var and /opt stay in DIR. Keep DIR short
(a unix socket's path may have 107 characters) and outside /etc, /var, /opt and /run. Needs root. The first run downloads and builds the
parts (parts.py). Environment: BENCH_RELEASE=older, APISERVER_FLAGS, KUBELET_CONFIG (extra lines), CONTAINERD_CDI=false,
BENCH_IMAGES="a.tar b.tar". A file DIR/nK/mounts with lines "SOURCE TARGET" mounts folders of the machine for all of node K; a file
DIR/nK/containerd-cdi with "true" or "false" overrides CONTAINERD_CDI for node K."""
import ctypes
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pki
import sysctls
from api import Api, RequestFailed
from inside import LEAST, SERVER, address, cgroup_hierarchies, wait_until
from node_view import NodeView
from parts import Parts

ENGINE_SOCKET = "/run/containerd/containerd.sock"
INSIDE = Path(__file__).with_name("inside.py")
NAMESPACES = {"mount": "mnt", "net": "net", "uts": "uts", "ipc": "ipc", "pid": "pid"}  # the names for nsenter and for /proc/PID/ns


class CommandFailed(RuntimeError):
    """A command inside the cluster exited with a status other than 0; carries the status and the output."""


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Cluster:
    """The cluster of one directory, seen from outside its namespaces. `release`: "current" or "older" Kubernetes."""

    def __init__(self, directory: str | Path, release: str | None = None):
        self.dir = Path(directory).resolve()
        said = self.dir / "release"
        self.release = release or os.environ.get("BENCH_RELEASE") or (said.read_text() if said.exists() else "current")
        self._parts: Parts | None = None
        self._api: Api | None = None

    @property
    def parts(self) -> Parts:
        """The parts, built where they are missing; taking a cluster down needs none."""
        self._parts = self._parts or Parts(self.release)
        return self._parts

    @property
    def api(self) -> Api:
        """Requests as the administrator; available once the cluster is up."""
        self._api = self._api or Api(SERVER, self.dir / "pki", self.process)
        return self._api

    def first_process(self) -> int:
        return int((self.dir / "init.pid").read_text())

    def up(self, nodes: int = 1, tied: bool = False, kubelet_settings: str = "", apiserver_flags: str = "") -> float:
        """Returns the seconds until every node was Ready. `tied`: the whole cluster is killed when the calling thread ends, however it ends."""
        self.as_started = {"nodes": nodes, "tied": tied, "kubelet_settings": kubelet_settings, "apiserver_flags": apiserver_flags}
        settings = {"KUBELET_CONFIG": kubelet_settings, "APISERVER_FLAGS": apiserver_flags, "BENCH_RELEASE": self.release}
        _ = self.parts  # built before the time limit starts
        environment = os.environ | {name: value for name, value in settings.items() if value}
        start = time.monotonic()
        (self.dir / "log").mkdir(parents=True, exist_ok=True)
        (self.dir / "ready").unlink(missing_ok=True)
        (self.dir / "release").write_text(self.release)
        pki.make(self.dir / "pki", {f"n{k}": address(k) for k in range(1, nodes + 1)})
        sysctls.take(self.dir)
        log = open(self.dir / "log/host.log", "w")
        host = subprocess.Popen(
            ["unshare", "-m", "-n", "-u", "-i", "-p", "-f", "--kill-child", "--propagation", "private", "--mount-proc",
             sys.executable, INSIDE, "host", self.dir, str(nodes)], env=environment,
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, preexec_fn=die_with_parent if tied else None)
        children = Path(f"/proc/{host.pid}/task/{host.pid}/children")
        init = wait_until(lambda: host.poll() is not None or children.read_text().strip(), 60, "the first process of the namespaces")
        if init is not True:
            (self.dir / "init.pid").write_text(init)
        wait_until(lambda: (self.dir / "ready").exists() or host.poll() is not None, 480, "the nodes to be Ready")
        if not (self.dir / "ready").exists():
            raise RuntimeError("the cluster did not start:\n" + (self.dir / "log/host.log").read_text()[-4000:])
        return time.monotonic() - start

    def process(self, node: int = 1) -> Path:
        """The /proc folder of a node's first process, by which its files and namespaces can be reached."""
        first = f"/proc/{self.first_process()}"
        if node != 1:  # the recorded pid is one of n1's namespace, and n1's /proc shows it
            first += f"/root/proc/{(self.dir / f'n{node}/init.pid').read_text().strip()}"
        return Path(first)

    def view(self, node: int = 1) -> NodeView:
        return NodeView(lambda: self.process(node))

    def entering(self, node: int = 1) -> list[str]:
        """The command prefix that runs a command where the node's daemons run."""
        first = self.process(node)
        enter = [f"--{kind}={first}/ns/{file}" for kind, file in NAMESPACES.items()]
        return ["nsenter", *enter, "env", f"KUBECONFIG={self.dir}/pki/admin.kubeconfig", f"PATH={self.parts.path}:{os.environ['PATH']}"]

    def run(self, *command, node: int = 1, check: bool = True, **options) -> subprocess.CompletedProcess:
        options = {"capture_output": True, "text": True, "stdin": None if "input" in options else subprocess.DEVNULL} | options
        done = subprocess.run([*self.entering(node), *(str(word) for word in command)], **options)
        if check and done.returncode:
            raise CommandFailed(f"{shlex.join(map(str, command))} ended with {done.returncode}:\n{done.stdout or ''}{done.stderr or ''}")
        return done

    def home(self, daemon: str, node: int = 1) -> Path:
        own = self.dir / f"n{node}"
        return own if (own / "run" / daemon).exists() else self.dir

    def start(self, daemon: str, node: int = 1):
        self.run(sys.executable, INSIDE, "start", self.home(daemon, node), daemon, node=node)

    def kill(self, daemon: str, node: int = 1, number: int = signal.SIGKILL):
        """Sends the signal and, for SIGKILL, waits until the process is gone."""
        self.run(sys.executable, INSIDE, "kill", self.home(daemon, node), daemon, int(number), node=node)

    def restart_engine(self, node: int = 1):
        """As systemd restarts containerd: its containers go on. Returns when it answers."""
        self.kill("containerd", node)
        self.start("containerd", node)
        wait_until(lambda: self.view(node).speaks_grpc(ENGINE_SOCKET), LEAST, f"containerd of n{node} to answer")

    def down(self):
        """Kills everything and removes what the cluster left in the kernel; safe on a cluster that is partly up, partly down or long gone."""
        if (self.dir / "init.pid").exists():
            init = self.first_process()
            if self._is_ours(init):
                os.kill(init, signal.SIGKILL)
                wait_until(lambda: not Path(f"/proc/{init}").exists(), 60, "the namespaces' processes to end")
        wait_until(self._cgroups_removed, 60, "the cluster's cgroups to empty")
        sysctls.give_back(self.dir)
        for file in ("ready", "init.pid"):
            (self.dir / file).unlink(missing_ok=True)

    def reboot(self):
        """Kills everything at once and starts again on the same disks, with a new boot id."""
        self.down()
        self.up(**self.as_started)

    def reboot_node(self, k: int):
        """Kills everything on a node other than n1 at once and starts it again on the same disk; returns when its kubelet has reported the new boot to the
        API server."""
        assert k != 1, "n1 has the control plane: use reboot(), which restarts the whole cluster"
        boot = self._boot_id(k)
        init = (self.dir / f"n{k}/init.pid").read_text().strip()
        self.run("kill", "-9", init)
        wait_until(lambda: not self.view().alive(int(init)), 60, f"the processes of n{k} to end")
        wait_until(lambda: self._cgroups_removed(f"n{k}"), 60, f"the cgroups of n{k} to empty")
        settings = {"BENCH_RELEASE": self.release, "KUBELET_CONFIG": self.as_started["kubelet_settings"]}
        self.run(sys.executable, INSIDE, "join", self.dir, k, env=os.environ | settings)
        wait_until(lambda: self._boot_id(k) not in ("", boot), 120, f"the kubelet of n{k} to report the new boot")

    def _boot_id(self, k: int) -> str:
        try:
            return self.api.get("node", f"n{k}")["status"]["nodeInfo"]["bootID"]
        except RequestFailed:
            return ""

    def import_image(self, archive: Path, nodes: int):
        """Imports an image into the nodes' containerd, with the same result as a pull."""
        command = ["ctr", "-n", "k8s.io", "images", "import", str(archive)]
        imports = [subprocess.Popen([*self.entering(k), *command], stdout=subprocess.DEVNULL) for k in range(1, nodes + 1)]
        for k, done in enumerate(imports, 1):
            if done.wait():
                raise CommandFailed(f"ctr images import {archive} on n{k} ended with {done.returncode}")

    def _is_ours(self, pid: int) -> bool:
        """Whether the pid still belongs to the first process of these namespaces: pids are reused."""
        try:
            if os.readlink(f"/proc/{pid}/ns/pid") == os.readlink("/proc/self/ns/pid"):
                return False
            return f"{self.dir}/".encode() in Path(f"/proc/{pid}/mountinfo").read_bytes()
        except OSError:
            return False

    def _cgroups_removed(self, node: str = "n*") -> bool:
        groups = [group for root in cgroup_hierarchies() for group in root.glob(f"bench-{self.dir.name}-{node}")]
        for group in groups:
            for folder, _, _ in os.walk(group, topdown=False):
                try:
                    os.rmdir(folder)
                except OSError:
                    pass
        return not any(group.exists() for group in groups)


def main(arguments: list[str]) -> int:
    match arguments:
        case ["up", directory, *nodes] if len(nodes) <= 1:
            cluster = Cluster(directory)
            seconds = cluster.up(int(nodes[0]) if nodes else 1)
            print(f"{(cluster.dir / 'log/host.log').read_text()}up in {seconds:.1f} s")
        case ["in", directory, "-n", k, *command] if command:
            os.execvp("nsenter", [*Cluster(directory).entering(int(k)), *command])
        case ["in", directory, *command] if command:
            os.execvp("nsenter", [*Cluster(directory).entering(), *command])
        case ["start", directory, "-n", k, name]:
            Cluster(directory).start(name, int(k))
        case ["start", directory, name]:
            Cluster(directory).start(name)
        case ["stop", directory, "-n", k, name]:
            Cluster(directory).kill(name, int(k))
        case ["stop", directory, name]:
            Cluster(directory).kill(name)
        case ["down", directory]:
            Cluster(directory).down()
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
