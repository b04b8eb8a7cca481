"""Measures penstock-runtime in place of runc: from the spawn to the first instruction of the low-level runtime, compared with starting that runtime
directly, and with a program that only executes it. The bundle is like docker's, on a tmpfs, where engines keep theirs; the specification has eight GPUs
with a complete driver."""
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from figures import Bench, ratio
from run_command import spawn

GOALS = {"create": 1.0, "state": 0.3}  # ms of our own


def bundle(environment: list) -> str:
    """A config.json of some 13 KiB, most of it docker's system call filter."""
    filters = [{"names": [f"system_call_{i}" for i in range(360)], "action": "SCMP_ACT_ALLOW"}]
    filters += [{"names": [f"call_{i}"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": i, "op": "SCMP_CMP_EQ"}]} for i in range(40)]
    mounts = [{"destination": path, "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "noexec"]}
              for path in ("/proc", "/dev", "/dev/pts", "/sys", "/sys/fs/cgroup", "/dev/mqueue", "/dev/shm", "/etc/hosts")]
    return json.dumps({
        "ociVersion": "1.0.2", "root": {"path": "rootfs"}, "mounts": mounts,
        "process": {"cwd": "/", "args": ["sh"], "env": ["PATH=/usr/bin:/bin", *environment], "user": {"uid": 0, "gid": 0}},
        "linux": {"resources": {"devices": [{"allow": False, "access": "rwm"}]}, "seccomp": {"defaultAction": "SCMP_ACT_ERRNO", "syscalls": filters}}})


class Ground:
    """A machine with its specification, a bundle, and the configuration that refers to both."""

    def __init__(self, programs: Path):
        self.home = Path(tempfile.mkdtemp(prefix="penstock-bench-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
        self.programs, self.moment = programs, programs / "bench-moment"
        self.sim("start", "dgx-a100")
        self.file, cdi = self.home / "bundle/config.json", self.home / "cdi"
        cdi.mkdir()
        self.file.parent.mkdir()
        root = self.home / "machine"
        subprocess.run([programs / "penstock", "--driver-root", root, "--dev-root", root, "--sysfs-root", root / "sys", "cdi", "generate", "--output",
                        cdi / "nvidia.json"], check=True, capture_output=True, timeout=60)
        config = self.home / "config.toml"
        config.write_text(f'[nvidia-container-runtime]\nruntimes = ["{self.moment}"]\n[nvidia-container-runtime.modes.cdi]\nspec-dirs = ["{cdi}"]\n')
        os.environ["NVIDIA_CTK_CONFIG_FILE_PATH"] = str(config)

    def sim(self, *words: str):
        subprocess.run([self.programs / "penstock-sim", "--root", self.home / "machine", *words], check=True, stdout=subprocess.DEVNULL, timeout=60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        del os.environ["NVIDIA_CTK_CONFIG_FILE_PATH"]
        self.sim("stop")
        shutil.rmtree(self.home)


def measure(programs, smoke: bool) -> Bench:
    bench = Bench("runtime", "penstock-runtime, to the first instruction of the low-level runtime")
    with Ground(programs) as ground:
        wrapper, moment = programs / "penstock-runtime", ground.moment
        asking, silent = bundle(["NVIDIA_VISIBLE_DEVICES=0"]), bundle([])
        words = {"create": ("create", "--bundle", ground.file.parent, "id"), "state": ("state", "id")}
        times = {name: [] for name in ("create", "silent", "state", "direct", "exec")}
        for _ in range(3 if smoke else 300):  # in turns, so that other load on the machine affects all alike
            for name, text, command in (("create", asking, (wrapper, *words["create"])), ("silent", silent, (wrapper, *words["create"])),
                                        ("state", silent, (wrapper, *words["state"])), ("direct", silent, (moment, *words["state"])),
                                        ("exec", silent, (moment, "exec", moment, *words["state"]))):
                ground.file.write_text(text)
                times[name].append(spawn(command))
        size = wrapper.stat().st_size / 1e6
    floor = Bench("", "")
    floor.add("", "", times["exec"])
    bare = floor.figures[0].spread()["median"]
    for name, title in (("create", "create, a GPU requested"), ("silent", "create, nothing requested"), ("state", "state, kill, delete and all others")):
        bench.add(title, "ms", times[name])
        bench.add("its own part: in excess of a program that only executes the next", "ms", [time - bare for time in times[name]],
                  goal=GOALS["state" if name == "state" else "create"], judged="median", detail=True)
        bench.add("ratio to the runtime alone", "x", ratio(times[name], times["direct"]), detail=True)
    bench.add("baseline: the runtime alone", "ms", times["direct"])
    bench.add("baseline: a program that only executes it", "ms", times["exec"])
    bench.add("size of the program", "MB", size, goal=3)
    bench.note("The low-level runtime is bench-moment, which only prints its start time; runc's own start would add the same to all of them.")
    return bench
