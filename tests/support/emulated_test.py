"""Tests the emulated machine itself: what comes out of it, and what does not."""
import os
import subprocess
from pathlib import Path

PROGRAM = Path(__file__).with_name("emulated.py")


def run(command: str, *options) -> subprocess.CompletedProcess:
    return subprocess.run([PROGRAM, *map(str, options), "sh", "-c", command], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          env={**os.environ, "SAYING": "it's \"1\""})


def test_output_status_and_writable_folders_come_out(tmp_path):
    kept, lost = tmp_path / "kept files", tmp_path / "lost"
    lost.mkdir()
    done = run(f'echo "$SAYING"; uname -v >&2; pwd; id -u; unshare -r true || echo no namespaces; echo x >"{kept}/file"; echo x >"{lost}/file"; '
               "modprobe vgem && ls /dev/dri; test -t 1 && echo terminal; sleep 1000 & exit 7", "--writable", kept, "--keep", lost)
    assert done.returncode == 7, done.stdout + done.stderr
    said = done.stdout.splitlines()
    assert said[0] == "it's \"1\"" and "Debian" in said[1] and said[2:4] == [str(Path.cwd()), "0"] and "renderD128" in said[4:] and not {"no namespaces", "terminal"} & set(said)
    assert (kept / "file").read_text() == "x\n" and not (lost / "file").exists()


def test_a_machine_that_crashes_is_no_result():
    done = run("echo begun; echo c >/proc/sysrq-trigger; echo survived")
    assert done.returncode == 125 and "survived" not in done.stdout
    assert "ended without a result" in done.stderr and "sysrq triggered crash" in done.stderr.lower()
