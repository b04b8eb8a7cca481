"""penstock-worker, called as the agent calls it (src/device/codec.h), without an agent."""
import fcntl
import json
import os
import socket
import struct
import subprocess
from pathlib import Path

PATIENCE = 120.0
CODES = {1: "cancelled", 5: "not-found", 9: "failed-precondition", 12: "unimplemented", 14: "unavailable", 15: "data-loss"}  # those that the interface names


class Refused(RuntimeError):
    """A call that the worker answered with an error; `code` as in CODES."""

    def __init__(self, code: int, message: str):
        super().__init__(message)
        self.code, self.message = CODES.get(code, str(code)), message


class Worker:
    """The worker of a vendor for the machine below `root`."""

    def __init__(self, programs: Path, root: Path, vendor: str):
        ours, theirs = zip(*(socket.socketpair() for _ in range(3)))
        high = [fcntl.fcntl(one.fileno(), fcntl.F_DUPFD, 10) for one in theirs]
        command = [programs / "penstock-worker", vendor, "--driver-root", root, "--sysfs-root", root / "sys", "--dev-root", root]
        self.process = subprocess.Popen(command, pass_fds=(3, 4, 5), preexec_fn=lambda: [os.dup2(one, lane) for lane, one in enumerate(high, 3)])
        for one in high:
            os.close(one)
        self.lanes = ours
        for lane in ours:
            lane.settimeout(PATIENCE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for lane in self.lanes:
            lane.close()
        self.process.wait(PATIENCE)

    def answer(self, operation: str, argument: str = "") -> str:
        """The body of the answer, undecoded; raises Refused."""
        text = json.dumps({"id": 1, "operation": operation, "argument": argument}).encode()
        self.lanes[0].sendall(struct.pack(">I", len(text)) + text)
        answer = json.loads(self._take(struct.unpack(">I", self._take(4))[0]))
        if "code" in answer:
            raise Refused(answer["code"], answer.get("message", ""))
        return answer["body"]

    def call(self, operation: str, argument: str = "") -> dict:
        return json.loads(self.answer(operation, argument))

    def _take(self, size: int) -> bytes:
        got = b""
        while len(got) < size:
            if not (more := self.lanes[0].recv(size - len(got))):
                raise RuntimeError(f"the worker has ended, with status {self.process.wait(PATIENCE)}")
            got += more
        return got
