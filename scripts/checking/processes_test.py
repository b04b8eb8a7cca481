"""Programs of a check end with it, including their children; and locks exclude other processes."""
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import locks
import processes

HERE = Path(__file__).parent


def wait_until(holds, seconds=30):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "the condition did not become true"
        time.sleep(0.02)


def gone(pid: int) -> bool:
    """Dead, even if its parent has not collected its exit status yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_lines_come_as_they_are_printed_and_the_status_tells_whether_it_succeeded(tmp_path):
    said = []
    assert processes.shown(["sh", "-c", "echo a; echo b >&2"], said.append)
    assert said == ["a", "b"]
    assert not processes.logged(["sh", "-c", "echo c; exit 3"], tmp_path / "log", said.append)
    assert said[-1] == "c" and (tmp_path / "log").read_text() == "c\n"


def test_what_a_program_started_ends_with_it_when_the_check_is_interrupted(tmp_path):
    file = tmp_path / "pid"
    with pytest.raises(KeyboardInterrupt):
        script = f"sleep 1000 & echo $! >{file}.new; mv {file}.new {file}; wait"
        with processes.started(["sh", "-c", script]):
            wait_until(file.exists)
            raise KeyboardInterrupt
    wait_until(lambda: gone(int(file.read_text())))


def test_a_terminated_check_ends_its_programs(tmp_path):
    code = ("import signal, sys; sys.path.insert(0, sys.argv[1]); import processes\n"
            "processes.interrupt_on(signal.SIGTERM)\n"
            "say = lambda text: print(text, flush=True)\n"
            "try: processes.shown(['sh', '-c', 'echo $$; sleep 1000'], say)\n"
            "finally: processes.end_all()\n")
    check = subprocess.Popen([sys.executable, "-B", "-c", code, HERE], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True)
    pid = int(check.stdout.readline())
    check.terminate()
    assert check.wait(timeout=60) != 0
    wait_until(lambda: gone(pid))


def test_a_program_of_a_killed_check_ends(tmp_path):
    code = ("import sys; sys.path.insert(0, sys.argv[1]); import processes\n"
            "say = lambda text: print(text, flush=True)\n"
            "processes.shown(['sh', '-c', 'echo $$; exec sleep 1000'], say)\n")
    check = subprocess.Popen([sys.executable, "-B", "-c", code, HERE], stdout=subprocess.PIPE,
                             text=True)
    pid = int(check.stdout.readline())
    check.kill()
    check.wait()
    wait_until(lambda: gone(pid))


def test_a_second_check_waits_and_says_for_whom(tmp_path):
    file, said = tmp_path / "lock", []
    code = ("import sys; sys.path.insert(0, sys.argv[1]); import locks; from pathlib import Path\n"
            "with locks.alone(Path(sys.argv[2]), 'it'): print('mine', flush=True); input()\n")
    other = subprocess.Popen([sys.executable, "-B", "-c", code, HERE, file], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
    assert other.stdout.readline() == "mine\n"

    def say(text):
        said.append(text)
        other.communicate("\n", timeout=60)  # releases the lock only now
    with locks.alone(file, "this folder", say):
        assert other.returncode == 0
        assert said == [f"waiting for this folder, which the check of process {other.pid} in "
                        f"{os.getcwd()} uses"]


def test_a_lock_is_free_again_when_its_holder_was_killed(tmp_path):
    file = tmp_path / "lock"
    code = ("import sys; sys.path.insert(0, sys.argv[1]); import locks; from pathlib import Path\n"
            "with locks.alone(Path(sys.argv[2]), 'it'): print('mine', flush=True); input()\n")
    other = subprocess.Popen([sys.executable, "-B", "-c", code, HERE, file], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
    assert other.stdout.readline() == "mine\n"
    other.kill()
    other.wait()
    with locks.alone(file, "it"):
        pass
