"""A real API server with etcd on loopback, without nodes and controllers, for tests of requests to
a cluster. Uses the parts of tests/e2e/cluster; downloads nothing."""
import contextlib
import os
import random
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "e2e/cluster")]

import parts  # noqa: E402
import pki  # noqa: E402

STARTED_WITHIN = 120  # seconds; a loaded machine of two cores needs twenty
TRIES = 3  # another program may take a port after it was chosen and before it is used
NODE = "n1"  # the node for whose kubelet pki makes a certificate


def free_port() -> int:
    """Below the ports that the kernel gives to connections, which would take it at any time."""
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        with socket.socket() as one, contextlib.suppress(OSError):
            one.bind(("127.0.0.1", random.randrange(max(1024, first - 20000), first)))
            return one.getsockname()[1]


class ControlPlane:
    """Started by its constructor. `admin` is a kubeconfig with a client certificate that may do
    everything, in the context "bench". `tokens` maps tokens to users without any permissions."""

    def __init__(self, folder: Path, release: str = "current", flags: tuple[str, ...] = ()):
        self.folder, self.flags = folder, flags
        self.programs = parts.kubernetes(release)
        self.keys = folder / "pki"
        pki.make(self.keys, {NODE: "127.0.0.1"})
        self.tokens = {"token-of-a-stranger": "penstock"}
        lines = [f"{token},{user},{user}" for token, user in self.tokens.items()]
        (folder / "tokens").write_text("\n".join(lines) + "\n")
        self.etcd = self.server = None
        for turn in range(TRIES):
            try:
                return self._start()
            except RuntimeError:
                self.stop()
                if turn == TRIES - 1:
                    raise

    def _start(self):
        client, peer, self.port = free_port(), free_port(), free_port()
        self.etcd_url = f"http://127.0.0.1:{client}"
        self.url = f"https://127.0.0.1:{self.port}"
        self.admin = self.folder / "admin.kubeconfig"
        self.admin.write_text((self.keys / "admin.kubeconfig").read_text().replace(
            "https://127.0.0.1:6443", self.url))
        self.etcd = self._run(
            "etcd", parts.packages() / "sbin/etcd", "--data-dir", self.folder / "etcd",
            "--listen-client-urls", self.etcd_url, "--advertise-client-urls", self.etcd_url,
            "--listen-peer-urls", f"http://127.0.0.1:{peer}", "--unsafe-no-fsync")
        self.start_server()

    def start_server(self):
        """Starts only the API server; etcd is running already."""
        keys = self.keys
        self.server = self._run(
            "kube-apiserver", self.programs / "kube-apiserver", f"--etcd-servers={self.etcd_url}",
            "--bind-address=127.0.0.1", "--advertise-address=192.0.2.1",
            "--endpoint-reconciler-type=none", f"--secure-port={self.port}",
            "--service-cluster-ip-range=10.96.0.0/16", "--authorization-mode=Node,RBAC",
            f"--client-ca-file={keys}/ca.crt", f"--tls-cert-file={keys}/apiserver.crt",
            f"--tls-private-key-file={keys}/apiserver.key",
            f"--service-account-key-file={keys}/sa.pub",
            f"--service-account-signing-key-file={keys}/sa.key",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--token-auth-file={self.folder}/tokens", "--disable-admission-plugins=ServiceAccount",
            *self.flags)
        self._wait()

    def stop_server(self):
        self._end(self.server)

    def stop(self):
        for process in (self.server, self.etcd):
            self._end(process)

    @staticmethod
    def _end(process: subprocess.Popen | None):
        if process is not None and process.poll() is None:
            process.kill()
            process.wait()

    def log(self, lines: int = 40) -> str:
        texts = []
        for name in ("etcd", "kube-apiserver"):
            with contextlib.suppress(OSError):
                text = (self.folder / f"{name}.log").read_text(errors="replace").splitlines()
                texts += [f"--- {name}", *text[-lines:]]
        return "\n".join(texts)

    def _run(self, name: str, *command) -> subprocess.Popen:
        with open(self.folder / f"{name}.log", "ab") as log:
            return subprocess.Popen([str(word) for word in command], stdout=log, stderr=log,
                                    cwd=self.folder, env={"PATH": os.defpath, "HOME": str(self.folder)})

    def _wait(self):
        context = ssl.create_default_context(cafile=self.keys / "ca.crt")
        context.load_cert_chain(self.keys / "admin.crt", self.keys / "admin.key")
        end = time.monotonic() + STARTED_WITHIN
        why = ""
        while time.monotonic() < end:
            for process in (self.etcd, self.server):
                if process.poll() is not None:
                    raise RuntimeError(f"{process.args[0]} ended\n{self.log()}")
            try:
                with urllib.request.urlopen(self.url + "/readyz", context=context, timeout=10):
                    return
            except (OSError, urllib.error.URLError) as error:
                why = str(error)
            time.sleep(0.2)
        raise RuntimeError(f"the API server is not ready: {why}\n{self.log()}")
