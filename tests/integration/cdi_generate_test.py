"""`penstock cdi generate` on simulated machines, called as existing scripts call `nvidia-ctk cdi generate`; podman reads the output.
Needs root, for podman and for device numbers; uses no network."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from podman import Host  # noqa: E402

KIND = "nvidia.com/gpu"


class Machine:
    """A simulated machine below `home`, and calls of the program on it."""

    def __init__(self, home: Path, programs: Path, name: str):
        self.home, self.programs, self.root = home, programs, home / "machine"
        self.sim("start", name)

    def sim(self, *words: str):
        subprocess.run([self.programs / "penstock-sim", "--root", self.root, *words], check=True, stdout=subprocess.DEVNULL)

    def command(self, *words) -> list[str]:
        return [str(word) for word in (self.programs / "penstock", "cdi", "generate", "--driver-root", self.root, "--sysfs-root", self.root / "sys",
                                       "--proc-root", self.root / "proc", *words)]

    def generate(self, *words, **environment: str) -> subprocess.CompletedProcess:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("NVIDIA_")}
        return subprocess.run(self.command(*words), capture_output=True, text=True, timeout=60, env=clean | environment)

    def spec(self, *words, **environment: str) -> dict:
        done = self.generate("--format", "json", *words, **environment)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def machine(request):
    """Makes machines by name; they are removed when the test ends."""
    made = []
    with tempfile.TemporaryDirectory(prefix="penstock-generate-") as folder:
        def make(name: str) -> Machine:
            home = Path(folder) / str(len(made))
            home.mkdir()
            made.append(Machine(home, request.config.getoption("--programs").resolve(), name))
            return made[-1]
        yield make
        for one in made:
            one.sim("stop")


@pytest.fixture(scope="module")
def host():
    if os.getuid() != 0:
        pytest.fail("containers with devices need root")
    host = Host(Path(tempfile.mkdtemp(prefix="penstock-podman-")))
    yield host
    host.end()


def edits(spec: dict, name: str) -> dict:
    return next(device["containerEdits"] for device in spec["devices"] if device["name"] == name)


def nodes(edit: dict) -> list[str]:
    return [node["path"] for node in edit["deviceNodes"]]


def names(spec: dict) -> list[str]:
    return [device["name"] for device in spec["devices"]]


def hooks(spec: dict) -> set[str]:
    return {hook["args"][1] for one in (spec, *spec["devices"]) for hook in one["containerEdits"].get("hooks", [])}


def test_every_gpu_is_there_by_index_and_uuid_and_all_of_them_together(machine):
    spec = machine("dgx-a100").spec()
    assert spec["kind"] == KIND
    indices = [str(index) for index in range(8)]
    uuids = [name for name in names(spec) if re.fullmatch("GPU-[0-9a-f-]{36}", name)]
    assert sorted(names(spec)) == sorted([*indices, *uuids, "all"]) and len(uuids) == 8
    for index in indices:
        assert f"/dev/nvidia{index}" in nodes(edits(spec, index))
        assert edits(spec, index) in [edits(spec, uuid) for uuid in uuids]
    assert {f"/dev/nvidia{index}" for index in indices} <= set(nodes(edits(spec, "all")))
    assert {"/dev/nvidiactl", "/dev/nvidia-uvm"} <= set(nodes(spec["containerEdits"]))
    assert "NVIDIA_VISIBLE_DEVICES=void" in spec["containerEdits"]["env"]


def test_the_same_machine_gives_the_same_text_and_yaml_says_what_json_says(machine):
    t4 = machine("t4-x1")
    assert t4.generate().stdout == t4.generate().stdout
    text = t4.generate().stdout
    assert text.startswith("---\n")
    assert yaml.safe_load(text) == t4.spec()


def test_without_a_driver_nothing_is_printed_or_written_and_the_message_says_what_to_do(machine):
    empty = machine("empty")
    done = empty.generate()
    assert (done.returncode, done.stdout) == (1, "") and "libnvidia-ml.so.1" in done.stderr and "--driver-root" in done.stderr
    file = empty.home / "there.yaml"
    file.write_text("as it was")
    assert empty.generate("--output", file).returncode == 1
    assert file.read_text() == "as it was" and sorted(empty.home.iterdir()) == [empty.root, file]


def test_devices_can_be_chosen_and_named_otherwise(machine):
    dgx = machine("dgx-a100")
    uuid = next(name for name in names(dgx.spec()) if name.startswith("GPU-"))
    chosen = dgx.spec("--device-id", f"3,{uuid}", "--device-name-strategy", "index")
    assert len(chosen["devices"]) == 3 and "3" in names(chosen)
    assert len([path for path in nodes(edits(chosen, "all")) if re.fullmatch("/dev/nvidia[0-9]", path)]) == 2
    assert names(dgx.spec("--device", "0", "--device-name-strategy", "type-index", "--no-all-device")) == ["gpu0"]
    none = dgx.spec("--device-id", "none")
    assert names(none) == ["none"] and edits(none, "none") == {"env": ["NVCT_EMPTY_DEVICE="]} and none["containerEdits"]["mounts"]
    unknown = dgx.generate("--device-id", "9")
    assert unknown.returncode == 1 and 'no device "9"' in unknown.stderr and uuid in unknown.stderr and unknown.stdout == ""


def test_hooks_can_be_left_out_and_the_hook_be_another(machine):
    t4 = machine("t4-x1")
    every = hooks(t4.spec())
    assert {"create-symlinks", "update-ldcache", "enable-cuda-compat"} <= every and "chmod" not in every
    assert hooks(t4.spec("--disable-hook", "enable-cuda-compat")) == every - {"enable-cuda-compat"}
    assert hooks(t4.spec("--disable-hook", "all")) == set()
    assert hooks(t4.spec("--disable-hooks", "all", "--enable-hook", "update-ldcache")) == {"update-ldcache"}
    other = t4.spec("--nvidia-cdi-hook-path", "/opt/nvidia-cdi-hook", "--ldconfig-path", "/sbin/ldconfig")["containerEdits"]["hooks"]
    assert {(hook["path"], hook["args"][0]) for hook in other} == {("/opt/nvidia-cdi-hook", "nvidia-cdi-hook")}


def test_the_variables_of_nvidia_ctk_count_where_no_flag_was_given(machine):
    t4 = machine("t4-x1")
    file = t4.home / "deep" / "er" / "nvidia.json"
    variables = {"NVIDIA_CTK_CDI_OUTPUT_FILE_PATH": str(file), "NVIDIA_CTK_CDI_GENERATE_VENDOR": "example.com",
                 "NVIDIA_CTK_CDI_GENERATE_DEVICE_NAME_STRATEGIES": "uuid"}
    done = t4.generate(**variables)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    spec = json.loads(file.read_text())
    assert spec["kind"] == "example.com/gpu" and "0" not in names(spec)
    assert file.stat().st_mode & 0o777 == 0o644 and file.parent.stat().st_mode & 0o777 == 0o755
    assert t4.generate("--output", t4.home / "x.yaml", **variables).returncode == 0 and (t4.home / "x.yaml").exists()
    bare = [str(t4.programs / "penstock"), "cdi", "generate", "--sysfs-root", str(t4.root / "sys"), "--format", "json"]
    done = subprocess.run(bare, capture_output=True, text=True, timeout=60, env={"PATH": os.environ["PATH"], "NVIDIA_CTK_DRIVER_ROOT": str(t4.root)})
    assert done.returncode == 0 and names(json.loads(done.stdout))[0] == "0", done.stderr


def test_a_lost_gpu_and_one_that_hangs_do_not_hide_the_others(machine):
    dgx = machine("dgx-a100")
    dgx.sim("fault", "2", "lost")
    dgx.sim("fault", "5", "hang", "all", "forever")
    done = dgx.generate("--format", "json")
    assert done.returncode == 0, done.stderr
    spec = json.loads(done.stdout)
    assert [name for name in names(spec) if name.isdigit()] == ["0", "1", "3", "4", "6", "7"]
    assert "device 2 was skipped" in done.stderr and "device 5 was skipped" in done.stderr
    assert "/dev/nvidia5" not in nodes(edits(spec, "all"))


def test_wrong_words_are_refused_together_before_anything_is_asked(machine):
    t4 = machine("t4-x1")
    done = t4.generate("--vendor", "_x", "--nvidia-cdi-hook-path", "no-such-hook")
    assert (done.returncode, done.stdout) == (2, "") and "_x/gpu" in done.stderr and "no-such-hook" in done.stderr
    assert t4.generate("--mode", "nvm").returncode == 2
    assert "is not a mode" in t4.generate(NVIDIA_CTK_CDI_GENERATE_MODE="nvm").stderr


def test_management_and_what_comes_with_gpus_are_modes(machine):
    dgx = machine("dgx-a100")
    management = dgx.spec("--mode", "management")
    assert management["kind"] == "management.nvidia.com/gpu" and names(management) == ["all"]
    assert {"/dev/nvidia0", "/dev/nvidia7", "/dev/nvidiactl", "/dev/nvidia-caps/nvidia-cap1"} <= set(nodes(edits(management, "all")))
    assert not {"disable-device-node-modification", "enable-cuda-compat"} & hooks(management)
    channels = dgx.root / "dev/nvidia-caps-imex-channels"
    channels.mkdir()
    for number in (0, 2, 10):
        os.mknod(channels / f"channel{number}", 0o666 | 0o020000, os.makedev(510, number))
    assert names(dgx.spec("--mode", "imex")) == ["0", "2", "10"]
    assert names(dgx.spec("--mode", "imex", "--device-id", "channel10,0")) == ["10", "0"]
    assert "imex-channel=7" in dgx.generate("--mode", "imex", "--device-id", "7").stderr
    gone = dgx.generate("--mode", "gds")
    assert (gone.returncode, gone.stdout) == (1, "") and "/dev/nvidia-fs*" in gone.stderr


def test_a_system_with_lists_of_its_own_is_found_by_itself(machine):
    """A machine whose files look like Tegra."""
    empty = machine("empty")
    lists = empty.root / "etc/nvidia-container-runtime/host-files-for-container.d"
    lists.mkdir(parents=True)
    (empty.root / "etc/nv_tegra_release").write_text("# R36\n")
    (empty.root / "dev").mkdir(exist_ok=True)
    os.mknod(empty.root / "dev/nvmap", 0o666 | 0o020000, os.makedev(10, 60))
    (lists / "devices.csv").write_text("dev, /dev/nvmap\r\n")
    done = empty.generate("--format", "json")
    assert done.returncode == 0 and "mode csv" in done.stderr, done.stderr
    assert names(json.loads(done.stdout)) == ["0", "all"] and nodes(edits(json.loads(done.stdout), "0")) == ["/dev/nvmap"]
    (lists / "drivers.csv").write_text("lib, /etc/nv_tegra_release\nlibrary, /x\n")
    done = empty.generate()
    assert (done.returncode, done.stdout) == (1, "") and "drivers.csv:2: " in done.stderr


# The system calls that create a file: the name, and which of its occurrences is killed.
STEPS = [("mkdir", 1), ("fchmod", 1), ("fsync", 1), ("rename", 1), ("fsync", 2)]


@pytest.mark.parametrize("call,count", STEPS)
def test_whoever_is_killed_leaves_the_old_file_or_the_new_one(machine, call, count):
    t4 = machine("t4-x1")
    folder = t4.home / "cdi"
    file = folder / "nvidia.yaml"
    assert t4.generate("--output", file).returncode == 0
    whole = {file.read_text(), t4.generate("--device-name-strategy", "uuid").stdout}
    assert len(whole) == 2
    kill = ["strace", "-f", "-qqq", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={count}"]
    command = [*kill, *t4.command("--output", file, "--device-name-strategy", "uuid")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL), f"{call} was not reached: {done.stderr}"
    assert file.read_text() in whole
    left = [path.name for path in folder.iterdir() if path != file]
    assert not [name for name in left if name.endswith((".json", ".yaml"))], "an engine would read an incomplete file"
    assert t4.generate("--output", file, "--device-name-strategy", "uuid").returncode == 0
    assert file.read_text() in whole and "GPU-" in file.read_text()


def test_flags_that_scripts_for_nvidia_ctk_have_are_taken(machine):
    dgx = machine("dgx-a100")
    program, *words = dgx.command("--csv.compat-container-root", "/usr/local/cuda/compat")
    plain = dgx.generate()
    for command in ([program, "-d", *words], [program, *words, "--debug"]):
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and done.stdout == plain.stdout
        assert "--debug has no effect" in done.stderr and "--csv.compat-container-root /usr/local/cuda/compat has no effect" in done.stderr
    quiet = subprocess.run([program, "--quiet", *words], capture_output=True, text=True, timeout=60)
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, plain.stdout, "")
    wrong = subprocess.run([program, "--quiet", "status"], capture_output=True, text=True, timeout=60)
    assert wrong.returncode == 2


def test_podman_gives_what_was_generated(machine, host):
    dgx = machine("dgx-a100")
    host.cdi.mkdir(exist_ok=True)
    target = host.cdi / "nvidia.yaml"
    written = dgx.generate("--output", target)
    assert written.returncode == 0, written.stderr
    assert "CDI 0.5.0" in written.stderr  # the version that the agent writes and podman 4 can read
    listing = "ls /dev | grep '^nvidia[0-9]' | sort; ls -l /dev/nvidia3; readlink /usr/lib/x86_64-linux-gnu/libcuda.so.1"
    try:
        said = host.run([f"{KIND}=3", f"{KIND}=5"], listing).splitlines()
        assert said[:2] == ["nvidia3", "nvidia5"]
        assert re.search(r"195, *3 ", said[2]) and said[3].startswith("libcuda.so.")
        assert host.run([f"{KIND}=all"], "ls /dev | grep -c '^nvidia[0-9]$'").strip() == "8"
        refused = host.podman("run", "--rm", "--device", f"{KIND}=8", "registry.local/debian:1", "true", check=False)
        assert refused.returncode != 0 and f"{KIND}=8" in refused.stderr
    finally:
        host.clear()
