"""`penstock runtime configure` with real engines: containerd 1.7 and 1.6, each with its own folders and a small replacement of systemctl, and
podman. Needs root; changes only a temporary folder and a mount namespace."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).parents[1] / "e2e/cluster"))

import parts  # noqa: E402
from node import wait_until  # noqa: E402

RUNTIME = "/opt/penstock/penstock-runtime"
CDI = ("--cdi.enabled", "--no-runtime")
# A configuration by a distribution, edited by an administrator.
CONFIG = """# of the distribution
version = 2
root = "{home}/root"
state = "{home}/state"

[grpc]
  address = "{home}/c.sock"

[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    sandbox_image = "registry.local/pause:1"   # ours
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false

  [plugins."io.containerd.internal.v1.opt"]
    path = "{home}/opt"
"""
# Restarts the daemon like a unit of type notify: returns when the daemon listens. If the file "refuse" beside it contains a word, the daemon
# does not start while its configuration contains that word.
SYSTEMCTL = """#!{python}
import os, pathlib, socket, subprocess, sys, time
home = pathlib.Path("{home}")
with open(home / "calls", "a") as calls:
    calls.write(" ".join(sys.argv[1:]) + "\\n")
if sys.argv[1] != "restart":
    sys.exit(0)
pid = int((home / "pid").read_text())
while True:
    try:
        os.kill(pid, 9)
        if pathlib.Path(f"/proc/{{pid}}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            break
    except (FileNotFoundError, ProcessLookupError):
        break
refuse = (home / "refuse").read_text() if (home / "refuse").exists() else None
if refuse and refuse in (home / "config.toml").read_text():
    sys.exit("Job for containerd.service failed.")
subprocess.run([sys.executable, home / "start"], check=True)
"""
START = """import pathlib, socket, subprocess, time
home = pathlib.Path("{home}")
daemon = subprocess.Popen(["{program}", "--config", home / "config.toml"], stdin=subprocess.DEVNULL, stdout=open(home / "log", "a"),
                          stderr=subprocess.STDOUT, start_new_session=True)
(home / "pid").write_text(str(daemon.pid))
while True:
    try:
        socket.socket(socket.AF_UNIX).connect("{home}/c.sock")
        break
    except OSError:
        if daemon.poll() is not None:
            raise SystemExit(f"containerd ended with {{daemon.returncode}}")
        time.sleep(0.05)
"""


class Containerd:
    """A real containerd below `home`, and calls of `penstock` on it."""

    def __init__(self, home: Path, folder: Path, programs: Path):
        self.home, self.program, self.penstock_program = home, folder / "containerd", programs / "penstock"
        self.config, self.socket = home / "config.toml", home / "c.sock"
        self.first = CONFIG.format(home=home)
        self.config.write_text(self.first)
        self.config.chmod(0o640)
        systemctl = home / "bin/systemctl"
        systemctl.parent.mkdir()
        systemctl.write_text(SYSTEMCTL.format(python=sys.executable, home=home))
        systemctl.chmod(0o755)
        (home / "start").write_text(START.format(home=home, program=self.program))
        subprocess.run([sys.executable, home / "start"], check=True, timeout=60)

    def end(self):
        pid = int((self.home / "pid").read_text())
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        subprocess.run(["umount", "-q", "-R", *self.home.glob("state/*/*/rootfs")], stderr=subprocess.DEVNULL)
        shutil.rmtree(self.home, ignore_errors=True)

    def command(self, verb: str, *words) -> list[str]:
        return [str(word) for word in (self.penstock_program, "runtime", verb, "--socket", self.socket, "--state-dir", self.home / "memory",
                                       "--restart-mode", "systemd", *words)]

    def environment(self) -> dict[str, str]:
        return os.environ | {"PATH": f"{self.home}/bin:{os.environ['PATH']}"}

    def run(self, verb: str, *words) -> subprocess.CompletedProcess:
        return subprocess.run(self.command(verb, *words), capture_output=True, text=True, timeout=120, env=self.environment())

    def succeeds(self, verb: str, *words) -> str:
        done = self.run(verb, *words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def restarts(self) -> int:
        calls = self.home / "calls"
        return calls.read_text().count("restart ") if calls.exists() else 0

    def effect(self) -> str:
        return subprocess.run([self.program, "--config", self.config, "config", "dump"], check=True, capture_output=True, text=True).stdout

    def answers(self) -> bool:
        return subprocess.run([self.program.with_name("ctr"), "--address", self.socket, "version"], capture_output=True).returncode == 0

    def memory(self) -> list[Path]:
        return list((self.home / "memory/engines").glob("*.json"))


def make(request, folder: Path) -> Containerd:
    if os.getuid() != 0:
        pytest.fail("containerd needs root")
    return Containerd(Path(tempfile.mkdtemp(prefix="penstock-engine-")), folder, request.config.getoption("--programs").resolve())


@pytest.fixture
def containerd(request):
    containerd = make(request, parts.packages() / "usr/bin")
    yield containerd
    containerd.end()


@pytest.fixture
def older(request):
    containerd = make(request, parts.containerd_older())
    yield containerd
    containerd.end()


def test_cdi_is_one_line_one_restart_and_undone_to_the_byte(containerd):
    assert "enable_cdi = false" in containerd.effect()
    shown = containerd.succeeds("configure", *CDI, "--dry-run")
    assert [line for line in shown.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")] == ["+    enable_cdi = true"]
    assert containerd.config.read_text() == containerd.first and not containerd.memory()

    containerd.succeeds("configure", *CDI)
    assert "enable_cdi = true" in containerd.effect() and containerd.answers()
    assert containerd.config.stat().st_mode & 0o777 == 0o640
    assert containerd.restarts() == 1

    assert "nothing changed" in containerd.succeeds("configure", *CDI)
    assert containerd.restarts() == 1, "a second time changes nothing"

    containerd.succeeds("unconfigure")
    assert containerd.config.read_text() == containerd.first
    assert containerd.restarts() == 2 and containerd.answers() and not containerd.memory()
    assert "nothing changed" in containerd.succeeds("unconfigure")
    assert containerd.restarts() == 2


@pytest.mark.parametrize("version", ["containerd", "older"])
def test_a_runtime_stands_beside_the_others_and_takes_over_their_settings(request, version):
    containerd = request.getfixturevalue(version)
    containerd.succeeds("configure", "--runtime-path", RUNTIME, "--set-as-default")
    effect = containerd.effect()
    assert 'default_runtime_name = "nvidia"' in effect and f'BinaryName = "{RUNTIME}"' in effect
    assert effect.count("SystemdCgroup = false") + effect.count("containerd.runtimes.runc.options]") == 2
    plugins = subprocess.run([containerd.program.with_name("ctr"), "--address", containerd.socket, "plugins", "ls"], capture_output=True,
                             text=True)
    assert re.search(r"grpc\.v1 +cri +\S+ +ok", plugins.stdout)
    containerd.succeeds("unconfigure")
    assert containerd.config.read_text() == containerd.first


@pytest.mark.parametrize("version", ["containerd", "older"])
def test_the_runtime_has_the_name_of_each_vendors_users(request, version):
    """`amd` is what amd-ctk gives docker's users; here for containerd, beside the name that NVIDIA's users know."""
    containerd = request.getfixturevalue(version)
    containerd.succeeds("configure", "--runtime-path", RUNTIME)
    first = containerd.config.read_text()
    containerd.succeeds("configure", "--runtime-path", RUNTIME, "--vendor", "amd")
    effect = containerd.effect()
    assert effect.count(f'BinaryName = "{RUNTIME}"') == 2 and 'default_runtime_name = "runc"' in effect
    for handler in ("nvidia", "amd"):
        assert re.search(rf"\.containerd\.runtimes\.{handler}\.options\]", effect), effect
    assert containerd.restarts() == 2 and containerd.answers()
    assert "nothing changed" in containerd.succeeds("configure", "--runtime-path", RUNTIME, "--vendor", "amd")
    assert "nothing changed" in containerd.succeeds("configure", "--runtime-path", RUNTIME, "--vendor", "nvidia") and first != containerd.config.read_text()
    containerd.succeeds("unconfigure")
    assert containerd.config.read_text() == containerd.first


def test_containerd_1_6_has_no_cdi_and_nothing_is_written(older):
    done = older.run("configure", *CDI)
    assert done.returncode == 1 and "containerd 1.6 does not support CDI" in done.stderr
    assert older.config.read_text() == older.first and older.restarts() == 0


def test_an_import_that_has_the_table_is_what_is_edited(containerd):
    other = containerd.home / "cri.toml"
    text = '[plugins."io.containerd.grpc.v1.cri"]\nmax_concurrent_downloads = 5\n'
    other.write_text(text)
    containerd.config.write_text(f'imports = ["{containerd.home}/c*.toml"]\n' + containerd.first)
    assert "max_concurrent_downloads = 5" in containerd.effect()
    containerd.succeeds("configure", *CDI)
    assert other.read_text() == text + "enable_cdi = true\n"
    assert "enable_cdi = true" in containerd.effect()
    refused = containerd.run("configure", *CDI, "--drop-in-config", containerd.home / "drop-in.toml")
    assert refused.returncode == 1 and "would replace the whole table" in refused.stderr
    containerd.succeeds("unconfigure")
    assert other.read_text() == text


def test_a_link_stays_a_link(containerd):
    real = containerd.home / "real.toml"
    containerd.config.rename(real)
    containerd.config.symlink_to("real.toml")
    containerd.succeeds("configure", *CDI)
    assert containerd.config.is_symlink() and "enable_cdi" in real.read_text()


def test_an_engine_that_does_not_come_back_gets_its_old_files(containerd):
    (containerd.home / "refuse").write_text("enable_cdi")
    done = containerd.run("configure", *CDI)
    assert done.returncode == 1
    assert "did not start: Job for containerd.service failed." in done.stderr and "the old configuration is in force again" in done.stderr
    assert containerd.config.read_text() == containerd.first
    assert containerd.answers() and not containerd.memory()
    assert (containerd.home / "calls").read_text().split("\n")[-3:-1] == ["reset-failed containerd.service", "restart containerd.service"]


def test_an_engine_whose_cri_plugin_does_not_start_is_not_healthy(containerd):
    # An earlier edit that containerd has not read yet: containerd starts, but its CRI plugin does not.
    text = containerd.first.replace("containerd.runtimes.runc]\n", 'containerd]\n default_runtime_name = "kata"\n', 1)
    text = text.replace(text[text.index("      runtime_type"):text.index("  [plugins.\"io.containerd.internal")], "")
    containerd.config.write_text(text)
    done = containerd.run("configure", *CDI)
    assert done.returncode == 1, done.stdout
    assert "containerd listens, but its plugin io.containerd.grpc.v1.cri did not start" in done.stderr
    assert "the old files were restored, but with them" in done.stderr
    assert containerd.config.read_text() == text


def test_a_configuration_that_the_engine_refuses_is_left_alone(containerd):
    containerd.config.write_text(containerd.first + "[[\n")
    done = containerd.run("configure", *CDI)
    assert done.returncode == 1 and "rejects its configuration" in done.stderr
    assert containerd.config.read_text() == containerd.first + "[[\n" and containerd.restarts() == 0


# Each program that `penstock` calls, in order: version, effective configuration before and after, restart, health.
STEPS = range(1, 6)
HANG = """#!/bin/sh
echo x >> {home}/asked
if [ $(wc -l < {home}/asked) -ge {step} ]; then echo here > {home}/reached; exec sleep 1000; fi
exec {real} "$@"
"""


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_step_the_next_run_repairs_it(containerd, step):
    """Every called program hangs at the given step, where `penstock` is killed."""
    hang = containerd.home / "hang"
    hang.mkdir()
    reals = {"containerd": containerd.program, "ctr": containerd.program.with_name("ctr"), "systemctl": containerd.home / "bin/systemctl"}
    for name, real in reals.items():
        (hang / name).write_text(HANG.format(home=containerd.home, step=step, real=real))
        (hang / name).chmod(0o755)
    penstock = subprocess.Popen(containerd.command("configure", *CDI, "--executable-path", hang / "containerd"), start_new_session=True,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                env=os.environ | {"PATH": f"{hang}:{os.environ['PATH']}"})
    wait_until((containerd.home / "reached").exists, "the step to be reached")
    os.killpg(penstock.pid, signal.SIGKILL)
    penstock.wait()
    before = containerd.restarts()
    done = containerd.run("configure", *CDI)
    assert done.returncode == 0, done.stderr
    assert ("after an interrupted change" in done.stderr) == (step > 2)
    assert "enable_cdi = true" in containerd.effect() and containerd.answers()
    assert containerd.restarts() == (1 if step < 5 else before), "containerd restarts once in total"
    containerd.succeeds("unconfigure")
    assert containerd.config.read_text() == containerd.first and not containerd.memory()


def test_two_at_once_do_not_mix(containerd):
    lock = containerd.home / "memory/engines/lock"
    lock.parent.mkdir(parents=True)
    holder = subprocess.Popen(["flock", "-F", lock, "sleep", "1000"])
    try:
        wait_until(lambda: subprocess.run(["flock", "-n", lock, "true"]).returncode != 0, "the lock to be held")
        done = containerd.run("configure", *CDI)
        assert done.returncode == 1 and "is held by" in done.stderr
        assert containerd.config.read_text() == containerd.first
        waiting = subprocess.Popen(containerd.command("configure", *CDI), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                   env=containerd.environment())
        assert "waiting for another penstock process" in waiting.stderr.readline()
    finally:
        holder.kill()
        holder.wait()
    assert waiting.wait(60) == 0, waiting.stderr.read()
    assert "enable_cdi = true" in containerd.effect()


def test_all_that_was_configured_is_undone_without_being_named(containerd):
    containerd.succeeds("configure", *CDI)
    command = [containerd.penstock_program, "runtime", "unconfigure", "--all", "-o", "json", "--state-dir", containerd.home / "memory",
               "--restart-mode", "systemd"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=120, env=containerd.environment())
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["files"] == [str(containerd.config)] and json.loads(answer.stdout)["restarted"]
    assert containerd.config.read_text() == containerd.first


def test_podman_knows_the_runtime_and_needs_nothing_for_cdi(request, tmp_path):
    programs = request.config.getoption("--programs").resolve()
    penstock = f"{programs}/penstock runtime"
    memory = f"--runtime podman --state-dir {tmp_path}/memory"
    script = f"""set -e
        mount -t tmpfs none /mnt
        mkdir -p /etc/containers /var/lib/containers && mount -t tmpfs none /etc/containers && mount -t tmpfs none /var/lib/containers
        {penstock} configure {memory}
        test ! -e /etc/containers/containers.conf.d
        {penstock} configure {memory} --runtime-path {shutil.which("runc")} --nvidia-runtime-name nvidia
        {penstock} configure {memory} --runtime-path {shutil.which("runc")} --vendor amd
        podman --root /mnt/storage --runroot /mnt/run --runtime nvidia info --format '{{{{.Host.OCIRuntime.Path}}}}'
        podman --root /mnt/storage --runroot /mnt/run --runtime amd info --format '{{{{.Host.OCIRuntime.Path}}}}'
        podman --root /mnt/storage --runroot /mnt/run --runtime crun info --format '{{{{.Host.OCIRuntime.Path}}}}'
        {penstock} unconfigure {memory}
        ls /etc/containers/containers.conf.d"""
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "podman reads CDI specifications without configuration" in done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith("/")] == [shutil.which("runc"), shutil.which("runc"), shutil.which("crun")]
    assert done.stdout.splitlines()[-1] == "removed /etc/containers/containers.conf.d/99-penstock.conf"


def test_what_docker_refuses_is_put_back(request, tmp_path):
    programs = request.config.getoption("--programs").resolve()
    dockerd, config = tmp_path / "dockerd", tmp_path / "daemon.json"
    dockerd.write_text('#!/bin/sh\ncase $1 in --version) echo "Docker version 27.5.1, build x";;\n'
                       f"*) grep -q cdi {config} && echo 'unknown feature' && exit 1; exit 0;; esac\n")
    dockerd.chmod(0o755)
    config.write_text('{"features": {"buildkit": true}}\n')

    def configure(*words):
        command = [programs / "penstock", "runtime", "configure", "--runtime", "docker", "--config", config, "--executable-path", dockerd,
                   "--state-dir", tmp_path / "memory", "--runtime-path", RUNTIME, *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    done = configure("--cdi.enabled=true")
    assert done.returncode == 1 and "docker rejects it: unknown feature; nothing was changed" in done.stderr
    assert config.read_text() == '{"features": {"buildkit": true}}\n'
    assert configure().returncode == 0
    assert json.loads(config.read_text()) == {"features": {"buildkit": True}, "runtimes": {"nvidia": {"path": RUNTIME, "args": []}}}


@pytest.mark.parametrize("words,told", [
    (("--no-runtime",), "--no-runtime configures CDI only"),
    (("--runtime", "lxc"), '"lxc" is not a known engine: containerd, k3s, rke2, k0s, microk8s, crio, microshift, docker, podman'),
    (("--runtime", "docker", "--runtime-path", "x"), "must be absolute"),
    (("--runtime", "docker", "--config", "daemon.json"), "must be an absolute path"),
    (("--runtime", "crio", "--config-mode", "oci-hook"), "Omit the option: `penstock runtime configure --runtime crio` writes a runtime"),
    (("--socket", "/nowhere.sock",), "no process listens at /nowhere.sock"),
])
def test_wrong_words_are_refused_with_what_to_say(request, tmp_path, words, told):
    programs = request.config.getoption("--programs").resolve()
    command = [programs / "penstock", "runtime", "configure", "--state-dir", tmp_path, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == (2 if words == ("--no-runtime",) else 1) and told in done.stderr
