"""CDI specifications of Penstock compared with those of NVIDIA's nvidia-ctk, for the same simulated
driver and devices; and nvidia-ctk as a reader of Penstock's."""
import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

import downloads
import nvidia_programs

MACHINES = ["dgx-a100", "dgx-h100", "dgx-b200", "dgx-2", "mixed", "t4-x1", "vgpu-t4"]
# Files that only Penstock mounts, on each machine whose driver has the file.
BESIDE = re.compile(r"/etc/OpenCL/vendors/nvidia\.icd"
                    r"|/usr/lib/x86_64-linux-gnu/libnvidia-api\.so\.1"
                    r"|/usr/share/nvidia/nvidia-application-profiles-.*(-rc|-key-documentation)")
# Mount options of sockets. Sockets must be writable; Penstock's mounts are private and include
# mounts below. NVIDIA's options include "ro" for sockets, too.
OURS_IN_PLACE_OF_BIND = {"rbind", "rprivate"}


@pytest.fixture
def specifications(request, start, tmp_path):
    """Generates both specifications for a machine. The machine's root is removed from their paths."""
    penstock = Path(request.config.getoption("--programs")).resolve() / "penstock"

    def generate(name: str, *options: str) -> tuple[dict, dict]:
        root = start(name).root
        roots = ["--driver-root", root, "--dev-root", root]
        files = [tmp_path / "theirs.json", tmp_path / "ours.json"]
        nvidia_programs.run(root, "nvidia-ctk", "cdi", "generate", "--mode=nvml", *roots,
                            "--format=json", "--output", files[0], *options)
        done = subprocess.run([penstock, "cdi", "generate", "--mode=nvml", *roots, "--sysfs-root",
                               root / "sys", "--format=json", "--output", files[1], *options],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return tuple(json.loads(file.read_text().replace(str(root), "")) for file in files)
    return generate


def files(edits: dict) -> set[tuple]:
    """Device nodes as engines create them: without permissions, all are granted."""
    return {(one["path"], one.get("hostPath", one["path"]), one.get("permissions", "rwm"))
            for one in edits.get("deviceNodes", [])}


def mounts(specification: dict) -> dict[str, dict]:
    return {one["containerPath"]: one for one in specification["containerEdits"]["mounts"]}


def hooks(edits: dict, name: str) -> list[list[str]]:
    """The arguments of each hook of this name."""
    return [one["args"][2:] for one in edits.get("hooks", []) if one["args"][1] == name]


def options(arguments: list[list[str]], option: str) -> set[str]:
    return {value for one in arguments for before, value in zip(one, one[1:]) if before == option}


@pytest.mark.parametrize("name", MACHINES)
def test_devices_have_the_names_and_files_that_nvidia_ctk_gives(specifications, name):
    theirs, ours = specifications(name)
    assert ours["kind"] == theirs["kind"] == "nvidia.com/gpu"
    edits = [{one["name"]: one["containerEdits"] for one in its["devices"]}
             for its in (theirs, ours)]
    assert edits[0].keys() == edits[1].keys() and len(edits[0]) >= 3
    for device in edits[0]:
        assert files(edits[1][device]) == files(edits[0][device]), device
    assert files(ours["containerEdits"]) == files(theirs["containerEdits"])
    assert "NVIDIA_VISIBLE_DEVICES=void" in ours["containerEdits"]["env"]
    assert {*theirs["containerEdits"]["env"]} <= {*ours["containerEdits"]["env"]}


@pytest.mark.parametrize("name", MACHINES)
def test_what_nvidia_ctk_mounts_is_mounted(specifications, name):
    theirs, ours = map(mounts, specifications(name))
    assert theirs.keys() <= ours.keys() and len(theirs) > 30
    assert all(BESIDE.fullmatch(path) for path in ours.keys() - theirs.keys())
    for path, their in theirs.items():
        # If /lib is a link, NVIDIA names a file by the link, Penstock by its real path.
        assert re.sub("^/usr/lib/", "/lib/", ours[path]["hostPath"]) == \
            re.sub("^/usr/lib/", "/lib/", their["hostPath"])
        wanted = {*their["options"]} - {"bind"} | OURS_IN_PLACE_OF_BIND
        assert {*ours[path]["options"]} == wanted - ({"ro"} if path.endswith("socket") else set())


@pytest.mark.parametrize("name", MACHINES)
def test_links_and_folders_of_libraries_are_those_of_nvidia_ctk(specifications, name):
    theirs, ours = (its["containerEdits"] for its in specifications(name))
    for hook, option in (("update-ldcache", "--folder"), ("create-symlinks", "--link")):
        their, our = (options(hooks(edits, hook), option) for edits in (theirs, ours))
        # Penstock also creates the links that ldconfig would, for images without ldconfig.
        assert their <= our and their, hook
        extra = our - their
        assert not extra or hook == "create-symlinks"
        for link in extra:
            target, at = link.split("::")
            assert Path(at).name.split(".so")[0] == Path(target).name.split(".so")[0]
    compatible = hooks(theirs, "enable-cuda-compat")
    assert compatible and {*compatible[0]} <= {*hooks(ours, "enable-cuda-compat")[0]}


@pytest.mark.parametrize("strategy", ["index", "uuid", "type-index"])
def test_names_follow_the_strategy_as_those_of_nvidia_ctk(specifications, strategy):
    theirs, ours = specifications("mixed", f"--device-name-strategy={strategy}")
    names = [{one["name"] for one in its["devices"]} for its in (theirs, ours)]
    assert names[0] == names[1] and len(names[0]) == 4


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_nvidia_ctk_lists_our_devices(tmp_path, specifications, form):
    _, ours = specifications("dgx-a100")
    folder = tmp_path / "cdi"
    folder.mkdir()
    text = json.dumps(ours) if form == "json" else yaml.safe_dump(ours, sort_keys=False)
    (folder / f"nvidia.{form}").write_text(text)
    done = subprocess.run([downloads.nvidia_programs() / "nvidia-ctk", "cdi", "list", "--spec-dir",
                           folder], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert {*done.stdout.split()} == {f"nvidia.com/gpu={one['name']}" for one in ours["devices"]}
