"""Sockets that a test opens and passes to a program, like systemd: their ports are known before the
program starts and remain reserved for the test."""
import socket
import sys

LAUNCHER = """
import os, sys
given, command = sys.argv[1].split(","), sys.argv[2:]
names, kept = zip(*(one.rsplit(":", 1) for one in given))
kept = [os.dup(int(one)) for one in kept]  # none of these is in the way of those to come
kept = [os.dup2(one, 100 + place) for place, one in enumerate(kept)]
for place, one in enumerate(kept):
    os.dup2(one, 3 + place)
os.closerange(3 + len(kept), 100 + len(kept))
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(kept)),
                  LISTEN_FDNAMES=":".join(names))
os.execvp(command[0], command)
"""


def open_socket() -> socket.socket:
    """Listens on a free port of 127.0.0.1; hundreds of clients may connect before the program accepts."""
    return socket.create_server(("127.0.0.1", 0), backlog=1024)


def address(one: socket.socket) -> str:
    host, port = one.getsockname()
    return f"{host}:{port}"


def giving(sockets: dict[str, socket.socket]) -> list[str]:
    """The prefix of a command line that passes these sockets to the program, by name. The caller must
    pass on their descriptors (pass_fds)."""
    given = ",".join(f"{name}:{one.fileno()}" for name, one in sockets.items())
    return [sys.executable, "-c", LAUNCHER, given]
