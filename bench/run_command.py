"""Measures `penstock run` with a free device: from just before the spawn to the first line of the command's main, compared with spawning the
same command directly. The command prints the monotonic clock."""
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
    return bench
