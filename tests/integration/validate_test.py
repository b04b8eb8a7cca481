"""The validation of a node by its agent, on simulated machines: what fails, what it says, and the files by which other programs wait. Needs root, to own the
folders of those files."""
import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from node import PATIENCE, Node, wait_until  # noqa: E402

ATTACKER = 12345
HOST_DRIVER = ["IS_HOST_DRIVER", "NVIDIA_DRIVER_ROOT", "DRIVER_ROOT_CTR_PATH", "NVIDIA_DEV_ROOT", "DEV_ROOT_CTR_PATH"]


@pytest.fixture
def make(request):
    """Makes a node with a running agent that keeps the files of the validator."""
    if os.getuid() != 0:
        pytest.fail("needs root")
    made = []

    def one(machine: str = "t4-x1", devices: int = 1, config: str = "", options: str = "compute: true") -> Node:
        home = Path(tempfile.mkdtemp(prefix="penstock-validated-"))
        home.chmod(0o755)
        files = f"validation: {{directory: {home}/validations, exporterNames: true, {options}}}\n"
        node = Node(home, request.config.getoption("--programs").resolve(), machine, config=files + config, listen=f"unix:{home}/pages", name="gpu-7")
        made.append(node)
        node.start_agent(devices=devices)
        return node
    yield one
    for node in made:
        node.end()


def validation(node: Node) -> dict[str, dict]:
    done = node.penstock("validate", "-o", "json", check=False)
    return {step["name"]: step for step in json.loads(done.stdout)["validation"]} if done.stdout else {}


def states(node: Node) -> dict[str, str]:
    return {name: step["state"] for name, step in validation(node).items()}


def ready(node: Node) -> bool:
    return node.penstock("validate", check=False).returncode == 0


def wait_ready(node: Node, expected: bool = True):
    wait_until(lambda: ready(node) == expected, f"the validation to {'pass' if expected else 'fail'}", seen=lambda: states(node))


def files(node: Node) -> list[str]:
    folder = node.home / "validations"
    return sorted(os.listdir(folder)) if folder.is_dir() else []


def wait_files(node: Node, *names: str):
    wait_until(lambda: files(node) == sorted(names), f"the files to be {names}", seen=lambda: files(node))


def page(node: Node) -> str:
    return subprocess.run(["curl", "-sS", "--unix-socket", node.home / "pages", "http://localhost/metrics"], check=True, capture_output=True, text=True,
                          timeout=PATIENCE).stdout


def test_a_node_on_which_everything_works_passes(make):
    node = make()
    wait_ready(node)
    assert states(node) == {"driver": "passed", "device-nodes": "passed", "fabric": "skipped", "compute": "skipped", "toolkit": "passed", "plugin": "skipped", "devices": "passed"}
    assert validation(node)["driver"]["reason"].startswith("nvidia ")
    assert node.penstock("validate", "-o", "name").stdout.splitlines()[0] == "step/driver"
    explained = node.penstock("validate", "--explain").stdout
    assert "driver: passed" in explained and "checks:" in explained and "found:" in explained
    conditions = {one["type"]: one for one in node.report()["status"]["conditions"]}
    assert (conditions["AcceleratorsReady"]["status"], conditions["AcceleratorsReady"]["reason"]) == ("True", "AllStepsPassed")


def test_a_step_that_is_switched_off_from_the_start_is_skipped(make):
    node = make(options="compute: false, container: false")
    wait_ready(node)
    assert validation(node)["compute"]["reason"] == "validation.compute is off"


def test_the_files_of_the_validator_are_those_of_the_steps_that_passed(make):
    node = make()
    wait_files(node, "driver-ready", "toolkit-ready")
    lines = (node.home / "validations/driver-ready").read_text().splitlines()
    assert [line.partition("=")[0] for line in lines] == HOST_DRIVER and lines[1] == f"NVIDIA_DRIVER_ROOT={node.root}"
    assert (node.home / "validations/toolkit-ready").read_text() == ""


@pytest.mark.parametrize("file, remedy", [("nvidia-uvm", "nvidia-modprobe -c 0 -u"), ("nvidia0", "")])
def test_a_device_file_that_is_missing_fails_and_passes_again_when_it_is_back(make, file, remedy):
    node = make()
    wait_files(node, "driver-ready", "toolkit-ready")
    os.rename(node.root / "dev" / file, node.home / file)
    # The specifications for containers may be written again before the files are looked at.
    wait_until(lambda: states(node)["device-nodes"] == "failed", "the file to be missed", seen=lambda: validation(node))
    step = validation(node)["device-nodes"]
    assert step["state"] == "failed" and f"/dev/{file}" in step["reason"] and "does not exist" in step["reason"] and remedy in step["remedy"]
    done = node.penstock("validate", "--explain", check=False)
    assert done.returncode == 1 and f"/dev/{file}" in done.stdout
    assert states(node)["toolkit"] == "waiting", "one cause has one failure"
    wait_files(node)
    os.rename(node.home / file, node.root / "dev" / file)
    wait_ready(node)
    wait_files(node, "driver-ready", "toolkit-ready")


def test_a_device_file_with_other_numbers_fails(make):
    node = make()
    wait_ready(node)
    file = node.root / "dev/nvidia-uvm"
    if not file.is_char_device():
        pytest.fail("this machine permits no device files")
    os.rename(file, node.home / "uvm")
    os.mknod(file, 0o20666, os.makedev(1, 3))
    # The agent may look between these calls, and say first that the file does not exist.
    wait_until(lambda: "has the numbers 1:3 and the driver has" in validation(node)["device-nodes"]["reason"], "the other numbers to be seen",
               seen=lambda: validation(node))
    assert states(node)["device-nodes"] == "failed"
    file.unlink()
    file.write_text("")
    wait_until(lambda: "is not a character device" in validation(node)["device-nodes"]["reason"], "the plain file to be seen", seen=lambda: validation(node))
    os.rename(node.home / "uvm", file)
    wait_ready(node)


def test_a_driver_that_is_unloaded_fails_once_and_takes_the_files_along(make):
    node = make()
    wait_files(node, "driver-ready", "toolkit-ready")
    node.sim("fault", "driver", "unload")
    wait_ready(node, False)
    wait_until(lambda: states(node)["driver"] == "failed", "the driver to fail", seen=lambda: states(node))
    assert states(node) == {"driver": "failed"} | dict.fromkeys(["device-nodes", "fabric", "compute", "toolkit", "plugin", "devices"], "waiting")
    assert validation(node)["driver"]["reason"].startswith("nvidia: ")
    wait_files(node)
    node.sim("heal", "driver")
    wait_ready(node)
    wait_files(node, "driver-ready", "toolkit-ready")


def test_gpus_that_have_not_joined_their_fabric_are_not_ready(make):
    node = make("dgx-h100", 8)
    wait_ready(node)
    assert validation(node)["fabric"]["reason"] == "8 devices have joined their fabric"
    node.sim("set", "3", "fabric-state=2")
    wait_ready(node, False)
    step = validation(node)["fabric"]
    assert step["state"] == "waiting" and step["reason"].startswith("device 3: ") and "nvidia-fabricmanager" in step["remedy"]
    node.sim("set", "3", "fabric-state=3", "fabric-status=999")
    wait_until(lambda: states(node)["fabric"] == "failed", "the fabric to fail", seen=lambda: states(node))
    node.sim("set", "3", "fabric-status=0")
    wait_ready(node)


def test_a_gpu_that_failed_leaves_the_others_usable(make):
    node = make("dgx-a100", 8)
    wait_ready(node)
    node.sim("fault", "3", "xid", "79")
    wait_until(lambda: validation(node)["devices"]["reason"].startswith("7 of 8"), "one GPU to fail", seen=lambda: validation(node)["devices"])
    assert ready(node)


def test_the_metrics_have_the_names_of_the_node_status_exporter(make):
    node = make()
    wait_ready(node)
    text = wait_until(lambda: (now := page(node)) and 'penstock_validation_state{step="toolkit",state="passed"} 1' in now and now, "the steps on the page")
    values = {line.split("{")[0]: line.split("} ")[1] for line in text.splitlines() if line.startswith("gpu_operator_")}
    assert set(values) == {
        *(f"gpu_operator_node_{name}" for name in (
            "metrics_ready_ts_seconds", "driver_ready", "toolkit_ready", "plugin_ready", "cuda_ready", "driver_validation", "driver_validation_last_success_ts_seconds",
            "device_plugin_devices_total", "device_plugin_validation_last_success_ts_seconds")), "gpu_operator_nvidia_pci_devices_total"}
    assert 'gpu_operator_node_driver_ready{node="gpu-7"} 1' in text
    assert values["gpu_operator_node_cuda_ready"] == "0" and values["gpu_operator_node_device_plugin_devices_total"] == "-1"
    assert values["gpu_operator_nvidia_pci_devices_total"] == "1"
    node.sim("fault", "driver", "unload")
    wait_until(lambda: 'gpu_operator_node_driver_ready{node="gpu-7"} 0' in page(node), "the driver to be missing on the page")


def test_a_restart_of_the_agent_leaves_the_files_as_they_are(make):
    node = make()
    wait_files(node, "driver-ready", "toolkit-ready")
    before = {name: os.stat(node.home / "validations" / name).st_ino for name in files(node)}
    node.agent.send_signal(signal.SIGKILL)
    node.agent.wait()
    node.start_agent(devices=1)
    wait_ready(node)
    assert {name: os.stat(node.home / "validations" / name).st_ino for name in files(node)} == before


def test_files_that_someone_removes_or_leaves_are_put_right(make):
    node = make()
    wait_files(node, "driver-ready", "toolkit-ready")
    for name in ("cuda-ready", "plugin-ready"):
        (node.home / "validations" / name).touch()
    wait_files(node, "driver-ready", "toolkit-ready")
    (node.home / "validations/driver-ready").unlink()
    wait_files(node, "driver-ready", "toolkit-ready")
    (node.home / "validations/other").touch()
    (node.home / "validations/driver-ready").unlink()
    wait_files(node, "driver-ready", "other", "toolkit-ready")


def exchange(one: Path, other: Path):
    """In one step: an agent that finds no folder makes one."""
    at, exchanged = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(at, os.fsencode(one), at, os.fsencode(other), exchanged) != 0:
        raise OSError(ctypes.get_errno(), f"exchange {one} and {other}")


def test_nothing_is_written_through_a_link_in_place_of_the_folder(make):
    node = make()
    wait_files(node, "driver-ready", "toolkit-ready")
    folder, elsewhere, link = (node.home / name for name in ("validations", "elsewhere", "link"))
    elsewhere.mkdir()
    (elsewhere / "cuda-ready").touch()
    os.chown(elsewhere, ATTACKER, ATTACKER)
    link.symlink_to(elsewhere)
    os.lchown(link, ATTACKER, ATTACKER)
    exchange(folder, link)
    wait_until(lambda: "is a symbolic link" in node.log(), "the agent to refuse the link", seen=node.log)
    node.sim("fault", "driver", "unload")
    wait_ready(node, False)
    node.sim("heal", "driver")
    wait_ready(node)
    assert os.listdir(elsewhere) == ["cuda-ready"], "neither written nor removed"
    folder.unlink()
    wait_files(node, "driver-ready", "toolkit-ready")


def test_nothing_is_written_into_a_folder_of_another_user(make):
    node = make()
    wait_files(node, "driver-ready", "toolkit-ready")
    os.chown(node.home / "validations", ATTACKER, ATTACKER)
    (node.home / "validations/toolkit-ready").unlink()
    wait_until(lambda: f"belongs to user {ATTACKER}" in node.log(), "the agent to refuse the folder", seen=node.log)
    assert files(node) == ["driver-ready"]


def test_another_folder_takes_the_files_over(make):
    node = make()
    wait_files(node, "driver-ready", "toolkit-ready")
    text = node.config.read_text()
    beside = node.config.with_suffix(".new")
    beside.write_text(text.replace(f"{node.home}/validations", f"{node.home}/others"))
    os.rename(beside, node.config)
    wait_until(lambda: (node.home / "others").is_dir() and sorted(os.listdir(node.home / "others")) == ["driver-ready", "toolkit-ready"], "the other folder to be filled")
    wait_files(node)


def test_a_folder_that_is_switched_off_while_no_agent_runs_loses_the_files(make):
    node = make()
    wait_files(node, "driver-ready", "toolkit-ready")
    node.end_agent()
    node.config.write_text(node.config.read_text().replace(f"directory: {node.home}/validations, ", ""))
    node.start_agent(devices=1)
    wait_files(node)


def test_cleanup_removes_the_files(make):
    node = make()
    wait_files(node, "driver-ready", "toolkit-ready")
    node.end_agent()
    assert files(node) == ["driver-ready", "toolkit-ready"], "an update of the agent interrupts no one"
    node.penstock("cleanup", "--host", "--config", node.config, "--state-dir", node.state_dir, "--cdi-root", node.cdi_dir)
    assert not (node.home / "validations").exists()
