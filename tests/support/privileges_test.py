"""tests/support/unprivileged and tests/support/cgroup_v2 provide the environments that the tests
in them rely on."""
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


def run(*command) -> subprocess.CompletedProcess:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True)


def test_an_unprivileged_program_is_no_root_and_has_no_capability():
    said = run(HERE / "unprivileged", "sh", "-c", "id -u; id -G; grep ^Cap /proc/self/status").stdout
    words = said.split()
    assert words[:2] == ["65534", "65534"]
    assert {word for word in words[2:] if not word.startswith("Cap")} == {"0" * 16}


def test_it_has_an_empty_folder_that_goes_with_it():
    done = run(HERE / "unprivileged", "sh", "-c", "pwd; ls -A; touch file; echo $HOME $TMPDIR")
    folder, *rest = done.stdout.split()
    assert rest == [folder, folder] and not Path(folder).exists()


def test_its_exit_status_is_the_programs():
    assert run(HERE / "unprivileged", "sh", "-c", "exit 3").returncode == 3
    assert run(HERE / "unprivileged", "sh", "-c", "kill -9 $$").returncode != 0


@pytest.fixture
def closed():
    """A folder that other users cannot enter, with a checkout in it."""
    folder = Path(tempfile.mkdtemp(prefix="closed.", dir="/var/tmp"))
    support = folder / "below/checkout/tests/support"
    support.mkdir(parents=True)
    shutil.copy(HERE / "unprivileged", support)
    (folder / "below/checkout/file").write_text("it is seen")
    (folder / "secret").write_text("")
    os.chmod(folder, 0o700)
    yield folder
    shutil.rmtree(folder)


def test_a_checkout_below_a_closed_folder_is_seen_and_nothing_else_of_it(closed):
    checkout = closed / "below/checkout"
    done = run(checkout / "tests/support/unprivileged", "sh", "-c",
               f"cat {checkout}/file; echo; ls {closed}")
    assert done.stdout.splitlines() == ["it is seen", "below"], done.stderr
    assert sorted(os.listdir(closed)) == ["below", "secret"]


def test_with_cgroup_v2_there_is_one_hierarchy_and_the_machine_keeps_its_own():
    before = Path("/proc/self/mounts").read_text()
    done = run(HERE / "cgroup_v2", "cat", "/proc/self/mounts")
    mounts = [line.split() for line in done.stdout.splitlines() if "cgroup" in line]
    assert [(one[1], one[2]) for one in mounts] == [("/sys/fs/cgroup", "cgroup2")], done.stderr
    assert Path("/proc/self/mounts").read_text() == before


def test_a_program_can_make_groups_there_and_be_placed_in_them():
    done = run(HERE / "cgroup_v2", "sh", "-euc",
               "g=/sys/fs/cgroup/penstock-test-$$; mkdir $g; trap 'rmdir $g' EXIT\n"
               "sh -c \"echo \\$\\$ >$g/cgroup.procs; grep ^0: /proc/self/cgroup\"; "
               "test -w $g/cgroup.procs")
    assert done.returncode == 0 and "penstock-test-" in done.stdout, done.stderr
