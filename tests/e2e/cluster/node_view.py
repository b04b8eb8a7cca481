"""A node seen from outside its namespaces: its files, processes, mounts, HTTP pages and sockets. Asking starts no process, so that a test may ask again and again: a program in the
node's namespaces costs some ten milliseconds of processor time for each look."""
import contextlib
import http.client
import json
import os
import socket
import sys
import urllib.parse
from collections.abc import Callable
from pathlib import Path

from api import RequestFailed, network_of

sys.path.append(str(Path(__file__).parents[2] / "support"))

import broker  # noqa: E402

SECONDS = 60  # the time limit of a request
# What a client sends first (RFC 9113, section 3.4): the preface and an empty SETTINGS frame.
HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])


class Connection(http.client.HTTPConnection):
    """To a server in the network namespace of a process."""

    def __init__(self, process: Path, address: str, port: int):
        super().__init__(address, port, timeout=SECONDS)
        self.process = process

    def connect(self):
        with network_of(self.process):
            self.sock = socket.socket()
        self.sock.settimeout(self.timeout)
        self.sock.connect((self.host, self.port))


class NodeView:
    """`process`: the /proc folder of the current first process of the node, which a reboot replaces. Any thread may ask; what does not answer raises RequestFailed."""

    def __init__(self, process: Callable[[], Path]):
        self.process = process

    def path(self, path: str | Path) -> Path:
        """The file at that path of the node. No part of it may be a symbolic link to an absolute path: outside, it leads to the machine's own files."""
        return Path(f"{self.process()}/root{path}")

    def text(self, *patterns: str) -> str:
        """The content of the node's files of those names, in which * is any text, one after the other; files that do not exist have none."""
        root, found = self.path("/"), []
        for pattern in patterns:
            for file in sorted(root.glob(pattern.removeprefix("/"))):
                with contextlib.suppress(OSError):
                    found.append(file.read_text())
        return "".join(found)

    def below(self, *folders: str) -> list[str]:
        """The paths on the node of everything in those folders, at any depth; a folder that does not exist has nothing."""
        root = f"{self.process()}/root"
        return [f"{where}/{name}".removeprefix(root) for folder in folders for where, inner, files in os.walk(root + folder) for name in [*inner, *files]]

    def alive(self, pid: int) -> bool:
        """Whether the node has a process of that pid, which is one of its own namespace."""
        return self.path(f"/proc/{pid}").exists()

    def programs(self) -> dict[int, list[str]]:
        """Pid in the node's namespace -> command line. n1 also sees the processes of the other nodes."""
        found = {}
        for process in self.path("/proc").iterdir():
            if process.name.isdigit():
                with contextlib.suppress(OSError):  # it has exited
                    found[int(process.name)] = (process / "cmdline").read_text(errors="replace").removesuffix("\0").split("\0")
        return found

    def executables(self) -> set[str]:
        """The paths of the programs that those processes execute, in their own mount namespaces."""
        found = set()
        for process in self.path("/proc").iterdir():
            if process.name.isdigit():
                with contextlib.suppress(OSError):  # it has exited, or is a thread of the kernel
                    found.add(os.readlink(process / "exe"))
        return found

    def mounted(self, path: str) -> bool:
        return any(line.split()[4] == path for line in (self.process() / "mountinfo").read_text().splitlines())

    def page(self, url: str) -> str:
        """What a server in the node's network answers to a GET."""
        place = urllib.parse.urlsplit(url)
        one = Connection(self.process(), place.hostname, place.port or 80)
        try:
            one.request("GET", f"{place.path}?{place.query}" if place.query else place.path)
            answer = one.getresponse()
            text = answer.read().decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            raise RequestFailed(0, f"GET {url}: {error!r}") from None
        finally:
            one.close()
        if answer.status != 200:
            raise RequestFailed(answer.status, f"GET {url}: {answer.status} {text}")
        return text

    def agent(self, run_dir: str | Path, op: str) -> dict:
        """The answer of the node's agent to a request without further keys (docs/reference/broker-protocol.md): what `penstock` prints with -o json, for `status` in the form of 0.1.0."""
        try:
            answer = broker.exchange(self.path(run_dir), {"op": op})[-1]
        except (OSError, json.JSONDecodeError) as error:
            raise RequestFailed(0, f"{op} at {run_dir}: {error!r}") from None
        if "error" in answer:
            raise RequestFailed(0, f"{op} at {run_dir}: {answer['error']}")
        return answer

    def speaks_grpc(self, path: str) -> bool:
        """Whether a server at that socket of the node begins a conversation of HTTP/2, on which gRPC is: the socket of a killed server is there, too."""
        try:
            with broker.address_of(self.path(path)) as address, socket.socket(socket.AF_UNIX) as one:
                one.settimeout(SECONDS)
                one.connect(address)
                one.sendall(HTTP2)
                return bool(one.recv(1))
        except OSError:
            return False
