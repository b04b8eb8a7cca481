"""Sockets that a test opens and a program is given, as systemd gives them: their ports are known
before the program starts and stay the test's own."""
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
    """Listens on a free port of 127.0.0.1; hundreds may connect before the program accepts."""
    return socket.create_server(("127.0.0.1", 0), backlog=1024)


def address(one: socket.socket) -> str:
    host, port = one.getsockname()
    return f"{host}:{port}"


def giving(sockets: dict[str, socket.socket]) -> list[str]:
    """What goes before a command line so that the program has these, by name. Whoever starts it
    passes their descriptors on (pass_fds)."""
    given = ",".join(f"{name}:{one.fileno()}" for name, one in sockets.items())
    return [sys.executable, "-c", LAUNCHER, given]
