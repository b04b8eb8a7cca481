"""Containers of podman, with runc and with crun, on a simulated DGX A100: which devices and driver files a process inside sees with our
specifications. Needs root; runs in a mount namespace with its own /etc and /run."""
import hashlib
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import images  # noqa: E402
from amd import Amd  # noqa: E402
from node import PATIENCE, Node, wait_until  # noqa: E402
from podman import RUN, Host  # noqa: E402

KIND = "nvidia.com/gpu"
OURS = "penstock-nvidia.com-gpu.json"
RUNTIMES = ("runc", "crun")
# Opens every file of its words and prints the result. Without a driver, open() fails with ENXIO if it is allowed.
OPEN = """for file in %s; do answer=$(cat "$file" 2>&1 >/dev/null)
case "$answer" in *"No such device or address"*|"") echo "$file opened";; *"not permitted"*) echo "$file refused";; *) echo "$file $answer";; esac; done"""


@pytest.fixture(scope="module")
def host():
    if os.getuid() != 0:
        pytest.fail("containers with devices need root")
    host = Host(Path(tempfile.mkdtemp(prefix="penstock-podman-")))
    yield host
    host.end()


@pytest.fixture
def node(request, host):
    """A machine whose specifications are written where the host's engines look; no agent runs yet."""
    node = Node(Path(tempfile.mkdtemp(prefix="penstock-containers-")), request.config.getoption("--programs").resolve())
    node.cdi_dir = Path("/var/run/cdi")
    yield node
    node.end()
    host.clear()


@pytest.fixture
def served(node, host):
    """The same machine with an agent that has written its specifications."""
    start_agent(node, host)
    return node


def start_agent(node: Node, host: Host):
    node.start_agent(wrapper=host.entering)
    wait_until(lambda: KIND in node.report()["cdi"]["kinds"], "the specification to be written")


def specification(host: Host) -> dict:
    return json.loads((host.cdi / OURS).read_text())


def generated_at(node: Node, host: Host) -> str:
    """The driver version of the libraries that a specification mounts; empty if there is none."""
    try:
        text = (host.cdi / OURS).read_text()
    except FileNotFoundError:
        return ""
    found = re.search(r"libcuda\.so\.(\d+\.[\d.]+)", text)
    return found[1] if found else ""


def mounts(spec: dict) -> dict[str, str]:
    """Container path -> host path of every mounted file."""
    found = {mount["containerPath"]: mount["hostPath"] for mount in spec["containerEdits"]["mounts"]}
    return {inside: outside for inside, outside in found.items() if Path(outside).is_file()}


def uuids(node: Node) -> list[str]:
    """The GPUs by index, from the driver's own files in the order of PCI addresses."""
    files = sorted((node.root / "proc/driver/nvidia/gpus").glob("*/information"))
    return [re.search(r"GPU UUID:\s+(\S+)", file.read_text())[1] for file in files]


def generate(node: Node, file: Path):
    """A specification as an administrator writes it."""
    node.penstock("cdi", "generate", "--driver-root", node.root, "--dev-root", node.root, "--sysfs-root", node.root / "sys", "--output", file)


def listed(output: str) -> list[str]:
    """The UUIDs that nvidia-smi -L lists."""
    return re.findall(r"^GPU \d+: .* \(UUID: (GPU-\S+)\)$", output, re.M)


def gpu_files(output: str) -> set[str]:
    return set(re.findall(r"/dev/nvidia\d+\b", output))


# Devices and files of a container.


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_container_with_one_gpu_lists_that_one(served, host, runtime):
    for index in (0, 5):
        assert listed(host.run([f"{KIND}={index}"], "nvidia-smi -L", runtime=runtime)) == [uuids(served)[index]]


def test_devices_are_had_by_uuid_several_and_all(served, host):
    there = uuids(served)
    assert listed(host.run([f"{KIND}={there[3]}"], "nvidia-smi -L")) == [there[3]]
    assert listed(host.run([f"{KIND}=6", f"{KIND}=1"], "nvidia-smi -L")) == [there[1], there[6]]
    assert listed(host.run([f"{KIND}=all"], "nvidia-smi -L")) == there


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_each_device_can_be_opened_and_no_other_gpu(served, host, runtime):
    spec = specification(host)
    device = next(device for device in spec["devices"] if device["name"] == "2")
    given = [node["path"] for node in device["containerEdits"]["deviceNodes"] + spec["containerEdits"]["deviceNodes"]]
    assert {"/dev/nvidia2", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/dri/renderD130"} <= set(given)
    others = " ".join(f"/tmp/other{minor}" for minor in range(8) if minor != 2)
    make = "".join(f"mknod /tmp/other{minor} c 195 {minor}; " for minor in range(8) if minor != 2)
    said = host.run([f"{KIND}=2"], f"ls /dev/nvidia*; {OPEN % ' '.join(given)}; {make}{OPEN % others}", "--cap-add", "MKNOD",
                    runtime=runtime).splitlines()
    assert gpu_files("\n".join(said)) == {"/dev/nvidia2"}
    assert [line for line in said if line.endswith(" opened")] == [f"{file} opened" for file in given]
    assert [line for line in said if line.endswith(" refused")] == [f"{file} refused" for file in others.split()]


def test_without_a_device_there_is_nothing_of_the_driver(served, host):
    said = host.run([], "ls /dev/nvidia* /usr/bin/nvidia-smi /usr/lib/x86_64-linux-gnu/libcuda.so.1 2>&1 || true")
    assert said.count("No such file or directory") == 3


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_the_loader_knows_the_drivers_libraries(served, host, runtime):
    """The container's loader finds every library in the driver root's cache, and still the C library."""
    said = host.run([f"{KIND}=0"], "/usr/sbin/ldconfig -p; readlink -f /usr/lib/x86_64-linux-gnu/libcuda.so", runtime=runtime)
    known = set(re.findall(r"^\s(\S+) \(", said, re.M))
    own = (served.root / "etc/ld.so.cache").read_bytes().split(b"\0")
    expected = {name.decode() for name in own if re.fullmatch(rb"lib[^/]*\.so(\.[\d.]+)?", name)}
    assert len(expected) > 30 and expected <= known, expected - known
    assert "libc.so.6" in known
    assert said.splitlines()[-1] == "/usr/lib/x86_64-linux-gnu/libcuda.so.550.54.15"


def test_each_file_can_be_read_and_is_the_hosts(served, host):
    wanted = {inside: hashlib.sha256(Path(outside).read_bytes()).hexdigest() for inside, outside in mounts(specification(host)).items()}
    kinds = ("libcuda.so.550.54.15", "nvidia-smi", "nvidia-persistenced", "gsp_ga10x.bin", "nvidia.icd", "10_nvidia.json", "nvidia_icd.json",
             "libglxserver_nvidia.so.550.54.15", "libvdpau_nvidia.so.550.54.15", "nvoptix.bin", "nvidia-drm-outputclass.conf")
    assert set(kinds) <= {Path(path).name for path in wanted}
    said = host.run([f"{KIND}=0"], "sha256sum " + " ".join(wanted))
    assert {path: digest for digest, path in (line.split() for line in said.splitlines())} == wanted


def test_files_of_the_driver_cannot_be_written(served, host):
    said = host.run([f"{KIND}=0"], "for file in /usr/bin/nvidia-smi /usr/lib/x86_64-linux-gnu/libcuda.so.1; do echo x 2>&1 >> $file; done || true")
    assert "x" not in said.split()
    assert all(Path(outside).stat().st_size > 1 for outside in mounts(specification(host)).values())


def test_containers_are_told_that_their_devices_are_there(served, host):
    """NVIDIA_VISIBLE_DEVICES is void, so that an NVIDIA default runtime does not inject the devices again."""
    assert "NVIDIA_VISIBLE_DEVICES=void" in host.run([f"{KIND}=0"], "env").splitlines()
    # The specification's value replaces the container's: docs/migrate.md, "What containers see".
    said = host.run([f"{KIND}=0"], "env", "-e", "NVIDIA_VISIBLE_DEVICES=GPU-1").splitlines()
    assert [line for line in said if line.startswith("NVIDIA_VISIBLE_DEVICES=")] == ["NVIDIA_VISIBLE_DEVICES=void"]


def test_a_container_that_may_write_nothing_starts(served, host):
    assert listed(host.run([f"{KIND}=4"], "nvidia-smi -L", "--read-only")) == [uuids(served)[4]]


def test_a_user_who_is_not_root_can_use_the_device(served, host):
    assert listed(host.run([f"{KIND}=1"], "nvidia-smi -L", "--user", "1000:1000")) == [uuids(served)[1]]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_twenty_containers_can_start_at_once(served, host, runtime, tmp_path):
    """The containers write to files: podman loses the output of a container that exits before podman attaches."""
    script = "(nvidia-smi -L && ldconfig -p | grep -c libcuda.so.1) > /said/{n}"
    running = [host.start([f"{KIND}={n % 8}"], script.format(n=n), "-v", f"{tmp_path}:/said") for n in range(20)]
    for n, container in enumerate(running):
        _, errors = container.communicate(timeout=2 * PATIENCE)
        assert container.returncode == 0, errors
        said = (tmp_path / str(n)).read_text()
        assert listed(said) == [uuids(served)[n % 8]] and said.splitlines()[-1] == "1"


# Specifications without an agent.


@pytest.mark.parametrize("file", ["nvidia.yaml", "nvidia.json"])
def test_a_specification_made_by_hand_is_podmans_too(node, host, file):
    made = node.home / file
    generate(node, made)
    (host.etc_cdi / file).write_text(made.read_text())
    assert listed(host.run([f"{KIND}=7"], "nvidia-smi -L")) == [uuids(node)[7]]
    assert f"{KIND}=7" in node.penstock("cdi", "list", "--spec-dir", host.etc_cdi).stdout.split()


# Changes of the machine.


def test_the_specification_outlives_its_agent_and_the_next_one_leaves_it(served, host):
    before = (host.cdi / OURS).stat()
    served.kill_agent()
    assert listed(host.run([f"{KIND}=0"], "nvidia-smi -L")) == [uuids(served)[0]]
    start_agent(served, host)
    after = (host.cdi / OURS).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_another_driver_is_in_the_specification(served, host, record_property):
    served.sim("fault", "driver", "unload")
    wait_until(lambda: not generated_at(served, host), "the specification to be removed with its driver")
    begin = time.monotonic()
    served.sim("heal", "driver", "--driver", "570.124.06")
    wait_until(lambda: generated_at(served, host) == "570.124.06", "the specification of the new driver")
    record_property("seconds until another driver is in the specification", time.monotonic() - begin)
    assert listed(host.run([f"{KIND}=0"], "nvidia-smi -L")) == [uuids(served)[0]]


def test_without_a_driver_there_is_no_specification(served, host):
    served.sim("fault", "driver", "unload")
    wait_until(lambda: not [file for file in host.cdi.iterdir() if file.suffix == ".json"], "all specifications to be removed")
    assert "unresolvable CDI devices" in host.podman("run", *RUN, "--device", f"{KIND}=0", images.NAME, "true", check=False).stderr


def test_a_gpu_that_was_pulled_leaves_the_specification_and_comes_back_to_it(served, host):
    gone = uuids(served)[3]
    served.sim("fault", gone, "remove")
    wait_until(lambda: gone not in (host.cdi / OURS).read_text(), "the GPU to leave the specification")
    assert listed(host.run([f"{KIND}=all"], "nvidia-smi -L")) == uuids(served)
    served.sim("heal", gone)
    wait_until(lambda: gone in (host.cdi / OURS).read_text(), "the GPU to be in the specification again")
    assert listed(host.run([f"{KIND}={gone}"], "nvidia-smi -L")) == [gone]


# Specifications of other programs.


def test_a_second_specification_of_the_same_devices_is_named_and_ours_stays_away(node, host):
    made = node.home / "theirs.json"
    generate(node, made)
    (host.cdi / "nvidia.json").write_text(made.read_text())
    node.start_agent(wrapper=host.entering)
    told = wait_until(lambda: [problem for problem in node.report()["cdi"]["problems"] if "nvidia.json" in problem], "a problem that names the file")
    assert KIND in told[0]
    assert not (host.cdi / OURS).exists()
    assert listed(host.run([f"{KIND}=0"], "nvidia-smi -L")) == [uuids(node)[0]]
    (host.cdi / "nvidia.json").unlink()
    wait_until(lambda: (host.cdi / OURS).exists(), "our specification to be written after theirs is removed")
    wait_until(lambda: not node.report()["cdi"]["problems"], "no problem to be reported", seen=lambda: node.report()["cdi"])


def test_a_broken_specification_of_others_harms_no_container_of_ours(served, host):
    (host.cdi / "broken.json").write_text("{")
    (host.cdi / "future.json").write_text('{"cdiVersion": "9.0.0", "kind": "other.com/x", "devices": [{"name": "0", "containerEdits": {"env": ["A=b"]}}]}')
    assert listed(host.run([f"{KIND}=2"], "nvidia-smi -L")) == [uuids(served)[2]]
    assert (host.cdi / "broken.json").read_text() == "{"


# Another vendor's devices.


def test_amds_partitions_by_name_and_by_the_variable_of_its_runtime(node, host):
    amd = Amd(node.root, mode="CPX", inside=tuple(host.entering))
    node.start_agent(wrapper=host.entering, devices=8 + 8 + 64)
    wait_until(lambda: "amd.com/gpu" in node.report()["cdi"]["kinds"], "AMD's specification")
    files = "ls /dev/kfd /dev/dri/*"

    def of(gpu: int, *parts: int) -> list[str]:
        minors = [amd.minors[gpu][part] for part in parts]
        return sorted([*(f"/dev/dri/card{minor - 128}" for minor in minors), *(f"/dev/dri/renderD{minor}" for minor in minors), "/dev/kfd"])

    assert sorted(host.run([f"amd.com/gpu={amd.id(1)}-3"], files).split()) == of(1, 3)
    runtime = node.programs / "penstock-runtime"
    for value, expected in ((f"0x{amd.unique_id(1):X}", of(1, *range(8))), ("0-1", of(0, 0, 1)), ("2", of(0, 2))):
        given = host.run([], files, "-e", f"AMD_VISIBLE_DEVICES={value}", runtime=runtime).split()
        assert sorted(given) == expected, value
    refused = host.podman("run", *RUN, "-e", "AMD_VISIBLE_DEVICES=64", images.NAME, "true", runtime=runtime, check=False)
    assert refused.returncode != 0 and "amd.com/gpu=64" in refused.stderr
