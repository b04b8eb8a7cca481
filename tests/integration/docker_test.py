"""`docker run --gpus` with dockerd 20.10: what `penstock runtime configure` changes, and which devices containers can then open. Needs root.
Device files of major 195 have no driver here: open() fails with "No such device or address" if the container may open the file, and with
"Operation not permitted" if its device rules forbid it."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from docker import Docker  # noqa: E402

NAMES = ("nvidia-cdi-hook", "nvidia-container-runtime-hook")
UUID = "GPU-11111111-2222-3333-4444-555555555555"
CONFIG = Path("/etc/docker/daemon.json")
# Prints the devices that a container can open: "0 2 " for the first and the third. Device files of the image count like files it creates.
OPEN = """mknod /m0 c 195 0 2>/dev/null; mknod /m1 c 195 1 2>/dev/null; mknod /m2 c 195 2 2>/dev/null
for i in 0 1 2; do for file in /dev/nvidia$i /m$i; do (: <$file) 2>&1 | grep -q "No such device or address" && echo -n "$i "; done; done; echo"""


def both(*minors: int) -> str:
    """The output of OPEN if these devices may be opened: by the container's file, and by one that it created."""
    return "".join(f"{minor} {minor} " for minor in minors)


def specification() -> str:
    """A specification of three devices by index, and of the second also by UUID."""
    def device(name: str, minors: list) -> dict:
        return {"name": name, "containerEdits": {"deviceNodes": [node(f"/dev/nvidia{minor}", minor) for minor in minors]}}

    def node(path: str, minor: int) -> dict:
        return {"path": path, "type": "c", "major": 195, "minor": minor, "permissions": "rw"}

    devices = [device("0", [0]), device("1", [1]), device("2", [2]), device(UUID, [1]), device("all", [0, 1, 2])]
    return json.dumps({"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": devices,
                       "containerEdits": {"env": ["NVIDIA_VISIBLE_DEVICES=void"], "deviceNodes": [node("/dev/nvidiactl", 255)]}})


class Machine(Docker):
    """A machine with our programs, and their verbs as a user calls them in a shell."""

    def __init__(self, home: Path, programs: Path):
        self.programs = programs
        super().__init__(home)

    def penstock(self, *words, check: bool = True) -> subprocess.CompletedProcess:
        done = subprocess.run([str(word) for word in (self.programs / "penstock", *words, "--state-dir", self.home / "state")],
                              capture_output=True, text=True, timeout=120, env=self.environment, stdin=subprocess.DEVNULL)
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def configure(self, *words, verb: str = "configure", **options) -> subprocess.CompletedProcess:
        more = ("--gpus-links", self.bin) if verb == "configure" else ()
        return self.penstock("runtime", verb, "--runtime", "docker", *more, *words, **options)

    def links(self) -> dict[str, str]:
        return {path.name: os.readlink(path) for path in self.bin.iterdir()}

    def remembers(self) -> list[str]:
        return sorted(path.name for path in (self.home / "state/engines").iterdir() if path.name != "lock")


@pytest.fixture
def machine(request):
    if os.getuid() != 0:
        pytest.fail("dockerd needs root")
    home = Path(tempfile.mkdtemp(prefix="penstock-docker-"))
    Path("/run/cdi").mkdir(exist_ok=True)
    Path("/run/cdi/nvidia.json").write_text(specification())
    CONFIG.parent.mkdir(exist_ok=True)
    CONFIG.unlink(missing_ok=True)
    machine = Machine(home, request.config.getoption("--programs").resolve())
    yield machine
    machine.end()
    shutil.rmtree(home, ignore_errors=True)


ANSWERS = [(("--gpus", "all"), both(0, 1, 2)), (("--gpus", "2"), both(0, 1)), (("--gpus", "device=2"), both(2)),
           (("--gpus", f'"device={UUID},0"'), both(0, 1)),
           # compose's deploy.resources.reservations.devices, as sent to the daemon
           (("--gpus", '"driver=nvidia","count=1","capabilities=gpu"'), both(0)),
           (("--gpus", '"driver=nvidia","device=0,2","capabilities=gpu,utility"'), both(0, 2))]


def test_gpus_open_what_was_asked_for_where_our_runtime_is_the_default(machine):
    refused = machine.run(OPEN, "--gpus", "all", check=False)
    assert "could not select device driver" in refused.stderr
    done = machine.configure("--set-as-default", "--restart-mode", "systemd")
    assert "docker is running again" in done.stdout and (machine.home / "calls").read_text() == "restart docker.service\n"
    assert machine.links() == dict.fromkeys(NAMES, str(machine.programs / "penstock-hook"))
    for words, opened in ANSWERS:
        assert machine.run(OPEN, *words).stdout == opened + "\n", words
    assert machine.run(OPEN).stdout == "\n"
    missing = machine.run(OPEN, "--gpus", "device=7", check=False)
    assert missing.returncode != 0 and 'there is no CDI device "nvidia.com/gpu=7"' in missing.stderr
    assert machine.run("env", "--gpus", "1").stdout.count("NVIDIA_VISIBLE_DEVICES=void") == 1
    doctor = machine.penstock("runtime", "doctor", "-o", "json", check=False).stdout
    [row] = [finding for finding in json.loads(doctor)["findings"] if finding["what"].endswith("--gpus")]
    assert (row["what"], row["state"]) == ("docker 20.10.24 --gpus", "ok")


def test_under_plain_runc_gpus_fail_with_the_remedy_and_the_named_runtime_opens_them(machine):
    machine.configure("--restart-mode", "systemd")
    for words, opened in ANSWERS:
        refused = machine.run(OPEN, *words, check=False)
        assert refused.returncode != 0 and refused.stdout == ""
        assert "--runtime=nvidia" in refused.stderr and "--set-as-default" in refused.stderr
        assert machine.run(OPEN, "--runtime=nvidia", *words).stdout == opened + "\n", words
    assert machine.run(OPEN).stdout == "\n"  # a container that requests no GPU starts


def test_configure_makes_the_links_once_and_unconfigure_takes_back_just_these(machine):
    before = machine.links()
    planned = machine.configure("--dry-run").stdout
    assert f"+++ {machine.bin}/nvidia-container-runtime-hook" in planned and "+link to " in planned
    assert machine.links() == before == {} and not CONFIG.exists()
    said = json.loads(machine.configure("-o", "json").stdout)
    assert sorted(link["path"] for link in said["links"]["made"]) == [f"{machine.bin}/{name}" for name in NAMES]
    assert sorted(machine.links()) == sorted(NAMES) and machine.remembers() == ["docker.json", "docker.links"]
    assert "nothing changed" in machine.configure().stdout
    done = machine.configure(verb="unconfigure").stdout
    assert f"removed {machine.bin}/nvidia-cdi-hook" in done
    assert machine.links() == {} and not CONFIG.exists() and machine.remembers() == []


def test_what_is_cleaned_up_on_a_host_has_no_links_either(machine):
    machine.configure()
    done = machine.penstock("cleanup", "--host", "--run-dir", machine.home / "run")
    assert f"Penstock's link {machine.bin}/nvidia-container-runtime-hook (docker)" in done.stdout
    assert machine.links() == {} and not CONFIG.exists()


def test_what_others_have_under_these_names_stays(machine):
    theirs = machine.bin / "nvidia-container-runtime-hook"
    theirs.write_text("#!/bin/sh\nexit 0\n")
    done = machine.configure()
    assert f"{theirs} already exists and is kept" in done.stderr
    assert (machine.bin / "nvidia-cdi-hook").is_symlink() and theirs.read_text() == "#!/bin/sh\nexit 0\n"
    machine.configure(verb="unconfigure")
    assert [path.name for path in machine.bin.iterdir()] == [theirs.name] and theirs.read_text() == "#!/bin/sh\nexit 0\n"


def test_a_daemon_that_does_not_come_back_has_neither_file_nor_links(machine):
    (machine.home / "refuse").write_text("penstock-runtime")
    failed = machine.configure("--restart-mode", "systemd", "--timeout", "20s", check=False)
    assert failed.returncode == 1 and "the old configuration is in force again" in failed.stderr
    assert machine.links() == {} and not CONFIG.exists() and machine.remembers() == []
    assert machine.run("echo here").stdout == "here\n"


# AMD's name of the runtime.

# Prints the render nodes that a container can open; of the image's own making, too.
OPEN_AMD = OPEN.replace("195", "226").replace("/dev/nvidia$i", "/dev/dri/renderD$i").replace("for i in 0 1 2", "for i in 128 129") \
    .replace("mknod /m0 c 226 0", "mknod /m128 c 226 128").replace("mknod /m1 c 226 1 ", "mknod /m129 c 226 129 ").replace("mknod /m2 c 226 2 2>/dev/null", "true")


def amd_specification() -> str:
    """Two GPUs as the agent writes them; the second has a unique id."""
    def node(path: str, major: int, minor: int) -> dict:
        return {"path": path, "type": "c", "major": major, "minor": minor, "permissions": "rw"}

    devices = [{"name": name, "containerEdits": {"deviceNodes": [node(f"/dev/dri/renderD{minor}", 226, minor) for minor in minors]}}
               for name, minors in (("0", [128]), ("1", [129]), ("GPU-e3aa1c5bd7b5f051", [129]), ("all", [128, 129]))]
    return json.dumps({"cdiVersion": "0.5.0", "kind": "amd.com/gpu", "devices": devices, "containerEdits": {"deviceNodes": [node("/dev/kfd", 511, 0)]}})


def test_under_amds_name_containers_open_what_amds_variable_names(machine):
    spec = Path("/run/cdi/amd.json")
    spec.write_text(amd_specification())
    try:
        machine.configure("--restart-mode", "systemd")
        links = machine.links()
        # As amd-ctk: the runtime, and CDI. The links for `--gpus` are NVIDIA's, and are neither made for AMD nor taken back.
        machine.penstock("runtime", "configure", "--runtime", "docker", "--vendor", "amd", "--restart-mode", "systemd")
        assert set(json.loads(CONFIG.read_text())["runtimes"]) == {"nvidia", "amd"} and machine.links() == links
        for value, opened in (("0", "128 128 "), ("1", "129 129 "), ("0-1", "128 128 129 129 "), ("0xe3aa1c5bd7b5f051", "129 129 "), ("all", "128 128 129 129 "),
                              ("void", "")):
            for runtime in ("amd", "nvidia"):  # each name serves the variables of all vendors
                assert machine.run(OPEN_AMD, f"--runtime={runtime}", "-e", f"AMD_VISIBLE_DEVICES={value}").stdout == opened + "\n", (value, runtime)
        assert machine.run(OPEN_AMD, "-e", "AMD_VISIBLE_DEVICES=all").stdout == "\n", "another runtime gives nothing"
        missing = machine.run(OPEN_AMD, "--runtime=amd", "-e", "AMD_VISIBLE_DEVICES=7", check=False)
        assert missing.returncode != 0 and 'there is no CDI device "amd.com/gpu=7"' in missing.stderr
        machine.configure("--restart-mode", "systemd", verb="unconfigure")
        assert not CONFIG.exists() and machine.remembers() == []
    finally:
        spec.unlink()


def test_links_for_gpus_are_not_made_for_amd_alone(machine):
    machine.penstock("runtime", "configure", "--runtime", "docker", "--vendor", "amd")
    assert set(json.loads(CONFIG.read_text())["runtimes"]) == {"amd"} and machine.remembers() == ["docker.json"]
    both = machine.configure("--vendor", "amd", "--nvidia-runtime-name", "x", check=False)
    assert both.returncode == 2 and "pass one of them" in both.stderr


# Malicious images.

def test_an_image_that_asks_for_all_gets_what_its_user_said(machine):
    machine.configure("--set-as-default", "--restart-mode", "systemd")
    machine.load("greedy", "NVIDIA_VISIBLE_DEVICES=all", "DOCKER_RESOURCE_GPU=all")
    assert machine.run(OPEN, "--gpus", "1", image="greedy").stdout == both(0) + "\n"
    config = Path("/etc/nvidia-container-runtime/config.toml")
    config.parent.mkdir(exist_ok=True)
    try:
        config.write_text('swarm-resource = "DOCKER_RESOURCE_GPU"\n')
        assert machine.run(OPEN, "--gpus", "device=2", image="greedy").stdout == both(2) + "\n"
        config.write_text("accept-nvidia-visible-devices-envvar-when-unprivileged = false\n")
        assert machine.run(OPEN, image="greedy").stdout == "\n"
        refused = machine.run(OPEN, "--gpus", "1", image="greedy", check=False)
        assert refused.returncode != 0 and "docker's --gpus" in refused.stderr and str(config) in refused.stderr
    finally:
        config.unlink()


def test_an_image_cannot_speak_through_the_hooks_error(machine):
    """With `--gpus 0` this docker calls the hook and sets no variable, so the hook reads the image's variable."""
    machine.configure("--restart-mode", "systemd")
    machine.load("loud", "NVIDIA_VISIBLE_DEVICES=\x1b[2J\u202e" + "x" * 20000, "LD_PRELOAD=/proc/self/cwd/poc.so")
    refused = machine.run("true", "--gpus", "0", image="loud", check=False)
    assert refused.returncode != 0 and "requests GPUs" in refused.stderr and len(refused.stderr) < 3000
    assert "\x1b" not in refused.stderr and "\u202e" not in refused.stderr
