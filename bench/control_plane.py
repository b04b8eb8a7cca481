#!/usr/bin/env python3
"""Runs etcd and an API server of the end-to-end tests' Kubernetes, without a node and without controllers, in separate namespaces. As a
program: their first process. `control_plane.py DIR`"""
import os
import subprocess
import sys
from pathlib import Path

from figures import ROOT

sys.path.append(str(ROOT / "tests/e2e/cluster"))
import inside  # noqa: E402
import pki  # noqa: E402
from cluster import Cluster, die_with_parent  # noqa: E402
from parts import Parts  # noqa: E402


class ControlPlane(Cluster):
    """Runs commands in it, and kills and starts its daemons, like a cluster's. Everything ends with the calling thread."""

    def up(self, apiserver_flags: str = ""):
        (self.dir / "log").mkdir(parents=True, exist_ok=True)
        pki.make(self.dir / "pki", {"n1": inside.SERVER})
        log = open(self.dir / "log/host.log", "w")
        host = subprocess.Popen(["unshare", "-m", "-n", "-u", "-i", "-p", "-f", "--kill-child", "--propagation", "private", "--mount-proc",
                                 sys.executable, "-B", __file__, self.dir], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                env=os.environ | {"APISERVER_FLAGS": apiserver_flags}, start_new_session=True, preexec_fn=die_with_parent)
        children = Path(f"/proc/{host.pid}/task/{host.pid}/children")
        (self.dir / "init.pid").write_text(inside.wait_until(lambda: children.read_text().strip(), 10, "the first process"))
        inside.wait_until(lambda: (self.dir / "ready").exists() or host.poll() is not None, 180, "the API server")
        if host.poll() is not None:
            raise RuntimeError("the control plane did not start:\n" + (self.dir / "log/host.log").read_text()[-4000:])
        for daemon in ("controller-manager", "scheduler"):
            self.kill(daemon)


def become_host(directory: Path):
    parts = Parts()
    inside.enter_environment(directory, parts)
    inside.shell("ip", "link", "set", "lo", "up")
    inside.shell("ip", "addr", "add", f"{inside.SERVER}/32", "dev", "lo")
    inside.control_plane(directory)
    (directory / "ready").touch()
    os.execv(parts.pause, [str(parts.pause)])


if __name__ == "__main__":
    become_host(Path(sys.argv[1]))
