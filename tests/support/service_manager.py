"""A replacement of systemd's systemctl whose services are processes in control groups of their own, as systemd makes them. Contains no assertions about the programs under
test."""
import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cgroups
from node import alive, wait_until


def hierarchy() -> Path:
    lines = (line.split() for line in Path("/proc/self/mounts").read_text().splitlines())
    return Path(next(at for _, at, kind, *_ in lines if kind == "cgroup2"))


class ServiceManager:
    """Its folder has for each unit NAME a file NAME.json, and NAME.pid while it runs; `asked` has a line for each stop and start, `hold` keeps them from going on while it
    exists, and NAME.broken makes them fail."""

    def __init__(self, home: Path, groups: Path | None = None):
        self.home = home
        self.home.mkdir(exist_ok=True)
        self.groups = groups or Path(tempfile.mkdtemp(prefix="services-", dir=hierarchy()))
        if groups is None:  # a file that is written again is empty for a moment, and another process reads it
            (home / "groups").write_text(str(self.groups))
        assert self.groups.is_absolute(), self.groups  # all empty folders below it are removed at the end
        program = home / "bin/systemctl"
        program.parent.mkdir(exist_ok=True)
        if not program.exists():
            support = ":".join(str(path) for path in (Path(__file__).parent, *sys.path) if path)
            program.write_text(f"#!/bin/sh\nPYTHONPATH={support} exec {sys.executable} -B {__file__} {home} \"$@\"\n")
            program.chmod(0o755)

    def add(self, name: str, opens: list[Path] = (), required_by: tuple = ()):
        """A service that has files open while it runs; it is started."""
        for file in opens:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        (self.home / f"{name}.json").write_text(json.dumps({"opens": [str(file) for file in opens], "RequiredBy": list(required_by)}))
        self.start(name)

    def unit(self, name: str) -> dict:
        return json.loads((self.home / f"{name}.json").read_text())

    def pid(self, name: str) -> int:
        with contextlib.suppress(FileNotFoundError):
            if alive(pid := int((self.home / f"{name}.pid").read_text() or 0)):
                return pid
        return 0

    def runs(self, name: str) -> bool:
        return self.pid(name) != 0

    @contextlib.contextmanager
    def one_job(self):
        """systemd runs one job of a unit at a time; of two callers that start it, one finds that it runs."""
        with open(self.home / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def start(self, name: str):
        group = self.groups / "system.slice" / name
        opens = "".join(f"exec {number}< '{file}'; " for number, file in enumerate(self.unit(name)["opens"], 3))
        command = ["bash", "-c", f"echo $$ > {group}/cgroup.procs; {opens}echo $$ > {self.home}/{name}.new; mv {self.home}/{name}.new {self.home}/{name}.pid; exec sleep 1000000"]
        with self.one_job():
            if self.runs(name):
                return
            group.mkdir(parents=True, exist_ok=True)
            subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
            wait_until(lambda: self.runs(name), f"{name} to run")

    def stop(self, name: str):
        with self.one_job():
            for one in (*self.unit(name)["RequiredBy"], name):
                if pid := self.pid(one):
                    os.kill(pid, signal.SIGKILL)
                    wait_until(lambda: not alive(pid), f"{one} to end")

    def show(self, name: str) -> str:
        lines = [f"Id={name}", f"Names={name}"]
        if not (self.home / f"{name}.json").exists():
            return "\n".join([*lines, "LoadState=not-found", "ActiveState=inactive", "", ""])
        lines += ["LoadState=loaded", f"ActiveState={'active' if self.runs(name) else 'inactive'}", "RequiredBy=" + " ".join(self.unit(name)["RequiredBy"])]
        if pid := self.pid(name):
            group = next(line[3:] for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines() if line.startswith("0::"))
            while group.startswith("/.."):  # this program is in a container's namespace of control groups, systemd is not
                group = group[3:]
            lines.append(f"ControlGroup={group}")
        return "\n".join([*lines, "", ""])

    def asked(self) -> list[str]:
        with contextlib.suppress(FileNotFoundError):
            return (self.home / "asked").read_text().splitlines()
        return []

    def hold(self):
        (self.home / "hold").touch()

    def go_on(self):
        (self.home / "hold").unlink()

    def end(self):
        with contextlib.suppress(FileNotFoundError):
            self.go_on()

        def gone() -> bool:
            for file in self.home.glob("*.json"):  # a systemctl whose caller was killed may start one yet
                self.stop(file.stem)
            for group in cgroups.below(self.groups):
                with contextlib.suppress(OSError):
                    group.rmdir()
            return not self.groups.exists()
        wait_until(gone, "the groups of the services to be gone")


def main(home: Path, *words: str) -> int:
    manager = ServiceManager(home, Path((home / "groups").read_text()))
    verb, units = words[1], words[words.index("--") + 1:]
    if verb == "show":
        print("".join(manager.show(unit) for unit in units), end="")
        return 0
    for unit in units:
        with open(home / "asked", "a") as asked:
            asked.write(f"{verb} {unit}\n")
        while (home / "hold").exists():
            time.sleep(0.01)
        if (home / f"{unit}.broken").exists():
            print(f"Job for {unit} failed.", file=sys.stderr)
            return 1
        getattr(manager, verb)(unit)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
