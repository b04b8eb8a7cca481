"""A client of the broker's socket that uses no program of Penstock
(docs/reference/broker-protocol.md)."""
import contextlib
import json
import os
import signal
import socket
import sys
from pathlib import Path

PATIENCE = 60


@contextlib.contextmanager
def address_of(file: Path):
    """A socket's address of a length that is possible, for connecting to it meanwhile."""
    folder = os.open(file.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{file.name}"
    finally:
        os.close(folder)


@contextlib.contextmanager
def connected(run_dir: Path):
    """A connection to the broker, also if the path is too long for a socket address."""
    with address_of(run_dir / "penstock.sock") as address, \
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(PATIENCE)
        connection.connect(address)
        yield connection


def exchange(run_dir: Path, request: dict) -> list[dict]:
    """All response lines of one request; the last one is the final answer."""
    with connected(run_dir) as connection, connection.makefile("rw") as lines:
        lines.write(json.dumps(request) + "\n")
        lines.flush()
        answers = []
        for line in lines:
            answers.append(json.loads(line))
            if not answers[-1].keys() & {"waiting", "moving", "dividing"}:
                return answers
    raise ConnectionError(f"{request}: the connection ended after {answers}")


def ask(run_dir: Path, request: dict) -> dict | None:
    """The final answer; None if no agent answers."""
    try:
        return exchange(run_dir, request)[-1]
    except (ConnectionError, FileNotFoundError):
        return None


def main():
    """broker.py RUN_DIR REQUEST: sends a request from its own process, prints each response line, and
    keeps the connection until it is killed."""
    with connected(Path(sys.argv[1])) as connection, connection.makefile("rw") as lines:
        connection.settimeout(None)
        lines.write(sys.argv[2] + "\n")
        lines.flush()
        for line in lines:
            print(line, end="", flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
