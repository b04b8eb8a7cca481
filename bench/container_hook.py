"""Measures penstock-hook: the hooks of one container, called one after the other as by a runtime, from each spawn to its exit; and runc containers
with and without them. The hooks are those of a generated specification of eight GPUs with a complete driver; the image is a root with this
machine's own list of libraries and the driver's files mounted or, without runc, copied into it."""
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from bed import now
from figures import Bench, ratio

GOAL = 3.0  # ms, of each hook
OWN_LIST = Path("/etc/ld.so.cache")


class Ground:
    """A container's root, with the mounts and hooks of a specification."""

    def __init__(self, programs: Path):
        self.home = Path(tempfile.mkdtemp(prefix="penstock-bench-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
        self.programs, self.hook, self.root = programs, programs / "penstock-hook", self.home / "bundle/rootfs"
        self.sim("start", "dgx-a100")
        machine = self.home / "machine"
        text = subprocess.run([programs / "penstock", "--driver-root", machine, "--dev-root", machine, "--sysfs-root", machine / "sys", "cdi",
                               "generate", "--format", "json"], check=True, capture_output=True, timeout=60).stdout
        self.edits = json.loads(text)["containerEdits"]
        for folder in ("proc", "dev", "etc/ld.so.conf.d", "bin"):
            (self.root / folder).mkdir(parents=True)
        (self.root / "etc/ld.so.conf").write_text("include /etc/ld.so.conf.d/*.conf\n")
        self.mounts = [mount for mount in self.edits["mounts"] if Path(mount["hostPath"]).is_file()]
        for mount in self.mounts:
            target = self.root / mount["containerPath"][1:]
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(mount["hostPath"], target)
        shutil.copy(programs / "bench-moment", self.root / "bin/moment")
        self.state = self.home / "state.json"
        self.state.write_text(json.dumps({"ociVersion": "1.0.2", "id": "bench", "status": "creating", "pid": 1, "bundle": str(self.root.parent)}))
        self.bundle([])
        self.kept = set(self.root.rglob("*"))

    def sim(self, *words: str):
        subprocess.run([self.programs / "penstock-sim", "--root", self.home / "machine", *words], check=True, stdout=subprocess.DEVNULL, timeout=60)

    @property
    def hooks(self) -> list:
        return [hook for hook in self.edits["hooks"] if hook["hookName"] == "createContainer"]

    def renew(self):
        """Restores the image to its state before the first start."""
        for path in sorted(set(self.root.rglob("*")) - self.kept, reverse=True):
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        shutil.copy(OWN_LIST, self.root / "etc/ld.so.cache")

    def run_hooks(self) -> list:
        """Milliseconds of each hook."""
        times = []
        for hook in self.hooks:
            begin = now()
            actions = [(os.POSIX_SPAWN_OPEN, 0, str(self.state), os.O_RDONLY, 0), (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)]
            _, status = os.waitpid(os.posix_spawn(self.hook, hook["args"], dict(entry.split("=", 1) for entry in hook.get("env", [])),
                                                  file_actions=actions), 0)
            times.append((now() - begin) / 1e6)
            if status != 0:
                raise RuntimeError(f"{hook['args'][1]} ended with status {status}")
        return times

    def bundle(self, hooks: list):
        entries = [{"path": str(self.hook), "args": hook["args"], "env": hook.get("env", [])} for hook in hooks]
        (self.root.parent / "config.json").write_text(json.dumps({
            "ociVersion": "1.0.2", "root": {"path": "rootfs"}, "hooks": {"createContainer": entries},
            "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}, {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"}],
            "process": {"cwd": "/", "args": ["/bin/moment"], "env": ["PATH=/bin"], "user": {"uid": 0, "gid": 0}},
            "linux": {"namespaces": [{"type": kind} for kind in ("pid", "mount", "ipc", "uts")]}}))

    def run_container(self, hooks: list) -> float:
        """Milliseconds of `runc run`."""
        self.renew()
        self.bundle(hooks)
        begin = now()
        # Control groups reject processes with real-time priority.
        command = ["chrt", "--other", "0", "runc", "--root", self.home / "runc", "run", "--bundle", self.root.parent, f"bench-{os.getpid()}"]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=60)
        return (now() - begin) / 1e6

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sim("stop")
        shutil.rmtree(self.home)


def measure(programs, smoke: bool) -> Bench:
    bench = Bench("hook", "penstock-hook, all hooks of a container")
    with Ground(programs) as ground:
        first, again, bare = [], [], []
        for _ in range(3 if smoke else 300):
            ground.renew()
            first.append(ground.run_hooks())
            again.append(ground.run_hooks())
            begin = now()
            quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
            os.waitpid(os.posix_spawn(programs / "bench-moment", ["moment"], {}, file_actions=quiet), 0)
            bare.append((now() - begin) / 1e6)
        for title, runs in (("all of them, first start of an image", first), ("all of them, further starts", again)):
            bench.add(title, "ms", [sum(times) for times in runs])
            for i, hook in enumerate(ground.hooks):
                bench.add(hook["args"][1], "ms", [times[i] for times in runs], goal=GOAL, judged="median", detail=True)
        bench.add("baseline: a static program that does nothing", "ms", bare)
        bench.add("ratio of a hook to it, on average", "x", ratio([sum(times) / len(times) for times in first], bare))
        bench.add("size of the program", "MB", ground.hook.stat().st_size / 1e6, goal=3)
        if shutil.which("runc") is None or os.getuid() != 0:
            bench.note("No containers: they need runc and root.")
            return bench
        without, through = [], []
        for _ in range(2 if smoke else 100):
            without.append(ground.run_container([]))
            through.append(ground.run_container(ground.hooks))
        bench.add("runc run without hooks", "ms", without)
        bench.add("runc run with them", "ms", through)
        bench.add("ratio", "x", ratio(through, without), detail=True)
    bench.note(f"{len(ground.hooks)} hooks, {len(ground.mounts)} files of the driver. "
               "runc itself waits for the kernel, for control groups and mounts, in steps that are longer than all hooks.")
    return bench
