"""Measures `penstock run` with a free device: from just before the spawn to the first line of the command's main, compared with spawning the
same command directly. The command prints the monotonic clock."""
import json
import os
import signal
import subprocess
import time
from pathlib import Path

from bed import Bed, now
from figures import Bench, ratio


def spawn(command: list) -> float:
    """Milliseconds from before the spawn to the command's own first reading of the clock."""
    read, write = os.pipe()
    arguments = [str(word) for word in command]
    begin = now()
    pid = os.posix_spawn(arguments[0], arguments, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, write, 1)])
    os.close(write)
    with os.fdopen(read) as answer:
        text = answer.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status != 0:
        raise RuntimeError(f"{' '.join(arguments)} ended with status {status}")
    return (int(text) - begin) / 1e6


def kernels_move() -> float | None:
    """Milliseconds that the kernel needs to move a process into another control group, which is part of each run; empty without permission."""
    tree = next((root for root in map(Path, ("/sys/fs/cgroup/unified", "/sys/fs/cgroup")) if (root / "cgroup.procs").exists()), None)
    if tree is None or not os.access(tree / "cgroup.procs", os.W_OK):
        return None
    group = tree / f"penstock-bench-{os.getpid()}"
    process = subprocess.Popen(["sleep", "60"])
    try:
        group.mkdir()
        begin = now()
        (group / "cgroup.procs").write_text(str(process.pid))
        return (now() - begin) / 1e6
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        while "populated 1" in (group / "cgroup.events").read_text():
            pass  # the kernel counts it a moment longer
        group.rmdir()


def on_demand(programs, moment: Path, count: int) -> tuple[list, list]:
    """Runs that have a MIG device created, and runs that get an existing one, in turn; the device of one is removed before the next begins."""
    with Bed(programs, kubelet=False, config='parts: {onDemand: ["0"]}\n') as bed:
        for words in (("-mig", "1", "-i", "0,1"), ("mig", "-i", "1", "-cgi", "2g.10gb", "-C")):
            subprocess.run([bed.root / "usr/bin/nvidia-smi", *words], check=True, stdout=subprocess.DEVNULL,
                           env={"LD_LIBRARY_PATH": str(bed.root / "usr/lib/x86_64-linux-gnu")})
        bed.logged("ready", bed.start_agent())
        created, existing = [], []
        run = [programs / "penstock", "--run-dir", bed.run_dir, "run", "--mig"]
        for _ in range(count):
            created.append(spawn([*run, "1g.5gb", "--", moment]))
            existing.append(spawn([*run, "2g.10gb", "--", moment]))
            while json.loads((bed.home / "state/parts.json").read_text()).get("parts"):
                time.sleep(0.01)
    return created, existing


def measure(programs, smoke: bool) -> Bench:
    bench = Bench("run", "penstock run, a device free, to the command's first instruction")
    moment = programs / "bench-moment"
    with Bed(programs, kubelet=False) as bed:
        bed.logged("ready", bed.start_agent())
        direct, through, help_only, moves = [], [], [], []
        run = [programs / "penstock", "--run-dir", bed.run_dir, "run", "--gpus", "1", "--", moment]
        for _ in range(3 if smoke else 200):
            direct.append(spawn([moment]))
            through.append(spawn(run))
        for _ in range(3 if smoke else 100):
            moves.append(kernels_move())
            time.sleep(0.02)  # with pauses, like the runs: the kernel is faster without pauses
        for _ in range(3 if smoke else 30):
            begin = now()
            os.waitpid(os.posix_spawn(str(programs / "penstock"), ["penstock", "--version"], os.environ,
                                      file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]), 0)
            help_only.append((now() - begin) / 1e6)
    bench.add("penstock run --gpus 1", "ms", through, goal=20, judged="max" if smoke else "p99")
    bench.add("baseline: the command itself", "ms", direct)
    bench.add("baseline: penstock --version, a start of the program", "ms", help_only)
    bench.add("ratio to the command itself", "x", ratio(through, direct))
    if None not in moves:
        bench.add("baseline: the kernel moves a process into a control group", "ms", moves)
    bench.note("Visibility only: control groups cannot be created here." if None in moves else
               "Each run creates a control group with device rules; the move into it waits for the kernel's RCU, longer where many "
               "processes run.")
    created, existing = on_demand(programs, moment, 3 if smoke else 100)
    bench.add("penstock run --mig 1g.5gb, on a GPU that is set aside: the MIG device is created", "ms", created)
    bench.add("penstock run --mig 2g.10gb, where one is free", "ms", existing)
    bench.add("the difference of the two", "ms", [a - b for a, b in zip(created, existing)], goal=100, judged="max" if smoke else "p99")
    return bench
