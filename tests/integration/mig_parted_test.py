"""`penstock` under the name of NVIDIA's `nvidia-mig-parted`, on simulated machines with an agent: its verbs, flags, variables, texts and exit statuses;
checkpoints; hooks, and who may write them."""
import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from mig_machine import EXAMPLES, MigParted, checkpoint, compute_places, modes, parts, places, smi, uuids
from node import Node, alive, wait_until


@pytest.fixture
def mig(make_node) -> MigParted:
    node = make_node(machine="dgx-a100")
    node.start_agent()
    return MigParted(node)


@pytest.fixture
def hopper(make_node) -> MigParted:
    """The mode of its GPUs changes without a reset."""
    node = make_node(machine="dgx-h200")
    node.start_agent()
    return MigParted(node)


# --- the walk-through of NVIDIA's README

def test_the_commands_of_the_readme(mig):
    node = mig.node
    done = mig.apply("all-1g.5gb")
    assert (done.stdout, done.stderr) == ("MIG configuration applied successfully\n", "")
    assert parts(node) == {str(gpu): ["1g.5gb"] * 7 for gpu in range(8)}
    mig.apply("custom-config")
    assert parts(node) == {"4": ["1g.5gb"] * 7, "5": ["2g.10gb"] * 3, "6": ["3g.20gb"] * 2, "7": ["1g.5gb", "1g.5gb", "2g.10gb", "3g.20gb"]}
    mig("-d", "apply", "-f", mig.file, "-c", "all-balanced")
    assert mig("export").stdout.replace('"', "") == ("version: v1\nmig-configs:\n  current:\n  - devices: all\n    mig-enabled: true\n    mig-devices:\n"
                                    "      1g.5gb: 2\n      2g.10gb: 1\n      3g.20gb: 1\n")
    assert mig("assert", "-f", mig.file, "-c", "all-balanced").stdout == "Selected MIG configuration currently applied\n"
    refused = mig("assert", "-f", mig.file, "-c", "all-1g.5gb", status=1)
    assert refused.stdout == "" and "\nnvidia-mig-parted: GPU 1 (" in refused.stderr and "penstock mig" not in refused.stderr
    assert mig("assert", "--mode-only", "-f", mig.file, "-c", "all-1g.5gb").stdout == "Selected MIG mode settings from configuration currently applied\n"
    assert mig("assert", "-a", "-f", mig.file, "-c", "all-disabled").stdout == "Selected MIG configuration is valid\n"
    one = "version: v1\nmig-configs:\n  whatever:\n  - devices: all\n    mig-enabled: false\n"
    mig("apply", "--mode-only", "-f", "-", input=one)
    assert modes(node) == ["Disabled"] * 8
    mig("assert", "-f", "-", input=one)


def test_flags_variables_and_statuses(hopper):
    mig = hopper
    variables = {"MIG_PARTED_CONFIG_FILE": str(mig.file), "MIG_PARTED_SELECTED_CONFIG": "all-disabled", "MIG_PARTED_OUTPUT_FORMAT": "json"}
    mig("apply", env=variables)
    assert mig("assert", env=variables).returncode == 0
    assert json.loads(mig("export", "-l", "now", env=variables).stdout)["mig-configs"]["now"] == [{"devices": "all", "mig-enabled": False}]
    assert json.loads(mig("export", "--output-format", "json").stdout)["version"] == "v1"
    assert json.loads(mig("export", "-o=json").stdout)["version"] == "v1"
    layouts = mig.node.home / "layouts.yaml"
    assert mig("generate-config", "--output-file", layouts).stdout == ""
    mig("apply", "-f", layouts, "-c", "all-balanced")
    assert len(parts(mig.node)["0"]) == 4
    assert "all-balanced:" in mig("generate-config").stdout
    # Go reads long options after one dash, too, and joined short ones.
    mig("assert", "-config-file", layouts, "-selected-config=all-balanced", "-mode-only")
    mig("assert", "-maf", layouts, "-c", "all-balanced")
    for wrong in (["apply"], ["assert", "-f", "/nonexistent"], ["apply", "-f", mig.file], ["apply", "-f", mig.file, "-c", "none"], ["aply"], ["export", "-x"],
                  ["checkpoint"], ["restore"], ["export", "-o", "xml"]):
        assert mig(*wrong, status=1).stderr, wrong
    for words in (["--version"], ["-version"], ["-v"]):
        assert re.fullmatch(r"nvidia-mig-parted version \d+\.\d+\.\d+\n", mig(*words).stdout)
    assert mig("-help").stdout == mig("--help").stdout
    assert "restore" in mig("--help").stdout and "--hooks-file" in mig("apply", "--help").stdout and "--hooks-file" in mig("help", "restore").stdout
    assert subprocess.run([mig.command()[0]], capture_output=True, text=True, check=False).returncode == 0


def test_the_steps_of_nvidias_systemd_service(mig):
    """deployments/systemd/service.sh: a mode whose reset is left to a second call, then the rest."""
    variables = {"MIG_PARTED_CONFIG_FILE": str(mig.file), "MIG_PARTED_SELECTED_CONFIG": "all-balanced"}
    mig("assert", "--mode-only", env=variables, status=1)
    mig.node.sim("set", "0", "process=1:100:Xorg:G")  # with a client, the mode of an A100 waits for a reset
    for _ in range(2):
        mig("apply", "--mode-only", "--skip-reset", env=variables)
        assert modes(mig.node) == ["Disabled"] + ["Enabled"] * 7
    mig("assert", "--mode-only", env=variables, status=1)
    mig.node.sim("set", "0", "no-processes")
    mig("apply", "--mode-only", env=variables)
    assert modes(mig.node) == ["Enabled"] * 8 and parts(mig.node) == {}
    mig("apply", env=variables)
    mig("assert", env=variables)


# --- checkpoints

ONE, TWO, THREE, SEVEN = 0, 1, 2, 4  # NVML_GPU_INSTANCE_PROFILE_1_SLICE and so on; those of compute instances have the same numbers

EXACT = ([(ONE, 0, 1, [ONE]), (ONE, 6, 1, [ONE]), (TWO, 2, 2, [TWO])], [(ONE, 3, 1, []), (THREE, 4, 4, [(ONE, 2, 1), (TWO, 0, 2)])], [], None, None, None, None, None)


def test_exactly_the_instances_of_a_checkpoint_are_made(hopper):
    mig, node = hopper, hopper.node
    file = node.home / "checkpoint.json"
    file.write_text(checkpoint(node, *EXACT))
    assert mig("restore", "-f", file).stdout == "MIG configuration restored successfully\n"
    exact = [("0", "1g.18gb", "0", "1"), ("0", "1g.18gb", "6", "1"), ("0", "2g.35gb", "2", "2"), ("1", "1g.18gb", "3", "1"), ("1", "3g.71gb", "4", "4")]
    assert places(node) == exact
    assert parts(node) == {"0": ["1g.18gb", "1g.18gb", "2g.35gb"], "1": ["1c.3g.71gb", "2c.3g.71gb"]}
    assert modes(node) == ["Enabled"] * 3 + ["Disabled"] * 5
    again = node.home / "again.json"
    assert mig("checkpoint", env={"MIG_PARTED_CHECKPOINT_FILE": str(again)}).stdout == "MIG configuration checkpointed successfully\n"
    assert again.read_text() == file.read_text(), "the file of mig-parted, byte for byte, except for the placements of compute instances"
    # From something else, and then from a division that has some of them.
    mig("apply", "-f", "-", input="version: v1\nmig-configs: {a: [{devices: all, mig-enabled: true, mig-devices: {7g.141gb: 1}}]}")
    mig("restore", "--checkpoint-file", again)
    assert places(node) == exact
    before = smi(node, "-L")
    smi(node, "mig", "-dci", "-i", "1")
    smi(node, "mig", "-dgi", "-i", "1")
    mig("restore", "-f", file)
    assert places(node) == exact
    stays = [line for line in before.splitlines() if "MIG 1g" in line or "MIG 2g" in line]
    assert [line for line in smi(node, "-L").splitlines() if line in stays] == stays, "what is in its place stays"
    assert before.count("MIG") == smi(node, "-L").count("MIG")


def test_compute_instances_become_as_a_checkpoint_says(mig):
    """At slices at which Penstock itself would not place them in a GPU instance that is new."""
    node = mig.node
    recorded, older = node.home / "recorded.json", node.home / "older.json"
    smi(node, "-i", "0", "-mig", "1")
    smi(node, "mig", "-i", "0", "-cgi", "7g.40gb")
    smi(node, "mig", "-i", "0", "-cci", "3c.7g.40gb,2c.7g.40gb,2c.7g.40gb")
    there = ["2c.7g.40gb 3:2", "2c.7g.40gb 5:2", "3c.7g.40gb 0:3"]
    assert compute_places(node) == there
    mig("checkpoint", "-f", recorded)
    elsewhere = "version: v1\nmig-configs: {a: [{devices: [0], mig-enabled: true, mig-devices: {1g.5gb: 7}}]}"
    mig("apply", "-f", "-", input=elsewhere)
    mig("restore", "-f", recorded)
    assert compute_places(node) == there
    # A file without placements permits any.
    older.write_text(re.sub(r',"Placement":\{[^}]*\}\}', "}", recorded.read_text()))
    assert older.read_text().count("Placement") == 1
    before = smi(node, "-L")
    mig("restore", "-f", older)
    assert smi(node, "-L") == before, "all stay"
    mig("apply", "-f", "-", input=elsewhere)
    mig("restore", "-f", older)
    assert compute_places(node) == ["2c.7g.40gb 0:2", "2c.7g.40gb 2:2", "3c.7g.40gb 4:3"]
    # Also after a reboot.
    mig("restore", "-f", recorded)
    assert compute_places(node) == there
    node.end_agent()
    kept = node.state_dir / "layout.json"
    kept.write_text(re.sub(r'"boot": "[^"]*"', '"boot": "the boot before"', kept.read_text()))
    smi(node, "mig", "-dci", "-i", "0")
    smi(node, "mig", "-dgi", "-i", "0")
    node.launch_agent()
    wait_until(lambda: (node.report() or {}).get("layout", {}).get("state") == "success", "the layout", seen=lambda: node.penstock("status", check=False).stdout)
    assert compute_places(node) == there
    # A place that there is not: nothing changes, or, where only the driver knows, the GPU becomes as before.
    for start, why in ((9, "7g.40gb has 7 slices of compute"), (1, "overlap")):
        older.write_text(recorded.read_text().replace('"Start":3', f'"Start":{start}'))
        assert why in mig("restore", "-f", older, status=1).stderr
        assert compute_places(node) == there


@pytest.mark.parametrize("machine, size", [("dgx-a100", 3), ("dgx-h200", 4)])
def test_compute_instances_stay_that_another_driver_recorded_with_another_size(make_node, machine, size):
    """Drivers agree in where compute instances of three slices begin, but not in how many slices those take."""
    node = make_node(machine=machine)
    node.start_agent()
    mig, file = MigParted(node), node.home / "checkpoint.json"
    recorded = {other: checkpoint(node, [(SEVEN, 0, 8, [(THREE, 0, other), (THREE, 4, other)])]) for other in (size, 7 - size)}
    file.write_text(recorded[7 - size])
    mig("restore", "-f", file)
    there = compute_places(node)
    assert [place.split()[1] for place in there] == [f"0:{size}", f"4:{size}"]
    before = smi(node, "-L")
    mig("restore", "-f", file)
    assert smi(node, "-L") == before, "nothing is destroyed and created again"
    mig("checkpoint", "-f", file)
    assert json.loads(file.read_text())["MigState"]["Devices"][0] == json.loads(recorded[size])["MigState"]["Devices"][0]
    # A start that the driver does not list is refused before anything changes.
    file.write_text(recorded[size].replace('"Start":4', '"Start":6'))
    assert "in 7g." in (refused := mig("restore", "-f", file, status=1).stderr) and "it can begin at slices 0" in refused
    assert smi(node, "-L") == before


def test_a_checkpoint_is_made_again_after_a_reboot(hopper):
    node = hopper.node
    file = node.home / "checkpoint.json"
    file.write_text(checkpoint(node, *EXACT))
    hopper("restore", "-f", file)
    exact = places(node)
    node.end_agent()
    kept = node.state_dir / "layout.json"
    kept.write_text(re.sub(r'"boot": "[^"]*"', '"boot": "the boot before"', kept.read_text()))
    for gpu in ("0", "1"):
        smi(node, "mig", "-dci", "-i", gpu)
        smi(node, "mig", "-dgi", "-i", gpu)
    smi(node, "-i", "0,1,2", "-mig", "0")
    node.launch_agent()
    wait_until(lambda: (node.report() or {}).get("layout", {}).get("state") == "success", "the layout", seen=lambda: node.penstock("status", check=False).stdout)
    assert places(node) == exact
    assert modes(node) == ["Enabled"] * 3 + ["Disabled"] * 5


def test_what_is_held_is_not_destroyed_by_a_restore(hopper):
    node = hopper.node
    file = node.home / "checkpoint.json"
    file.write_text(checkpoint(node, [(ONE, 6, 1, [ONE])], [(ONE, 6, 1, [ONE])]))
    hopper("apply", "-f", "-", input="version: v1\nmig-configs: {a: [{devices: [0, 1], mig-enabled: true, mig-devices: {7g.141gb: 1}}]}")
    holder = node.start("--device", "0:0", "--", "sleep", "1000")
    wait_until(lambda: node.holders(), "the part to be held")
    refused = hopper("restore", "-f", file, status=1)
    assert "held by" in refused.stderr
    assert parts(node) == {"0": ["7g.141gb"], "1": ["7g.141gb"]}, "nothing was changed, also of the other GPU"
    waiting = subprocess.Popen(hopper.command("restore", "-f", file, "--wait", "10m"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wait_until(lambda: parts(node).get("1") == ["1g.18gb"], "the other GPU")
    assert holder.poll() is None and waiting.poll() is None
    holder.kill()
    holder.communicate()
    out, _ = waiting.communicate(timeout=60)
    assert waiting.returncode == 0, out
    assert places(node) == [("0", "1g.18gb", "6", "1"), ("1", "1g.18gb", "6", "1")]


def test_only_the_mode_of_a_checkpoint(mig):
    node = mig.node
    file = node.home / "checkpoint.json"
    file.write_text(checkpoint(node, [(ONE, 6, 1, [ONE])], None, []))
    mig("restore", "-m", "-f", file)
    assert modes(node)[:4] == ["Enabled", "Disabled", "Enabled", "Disabled"] and parts(node) == {}
    mig("restore", "-f", file)
    assert places(node) == [("0", "1g.5gb", "6", "1")]


def test_checkpoints_that_cannot_be_restored_change_nothing(hopper):
    node = hopper.node
    file = node.home / "checkpoint.json"
    good = checkpoint(node, [(ONE, 6, 1, [ONE])])
    for text, why in ((good.replace(uuids(node)[0], "GPU-other"), "GPU-other is not on this machine"), (good.replace('"ProfileID":0,"Pl', '"ProfileID":40,"Pl'), "number 40"),
                      (good.replace('"Start":6', '"Start":7'), "it can begin at slices"), (good[:-2], "syntax error"), (good.replace("v1", "v2"), 'reads "v1"'),
                      ('{"Version":"v1","MigState":{"Devices":null}}', "has no GPUs"), (EXAMPLES, "syntax error"),
                      (checkpoint(node, [(ONE, 6, 1, [ONE]), (ONE, 6, 1, [ONE])]), "overlap"), (checkpoint(node, [(ONE, 6, 1, []), (ONE, 6, 1, [])]), "desired twice")):
        file.write_text(text)
        assert why in hopper("restore", "-f", file, status=1).stderr, text
    assert modes(node) == ["Disabled"] * 8 and "layout" not in node.report()


def test_a_checkpoint_replaces_a_file_and_follows_no_link(hopper):
    node = hopper.node
    victim, link = node.home / "victim", node.home / "link"
    victim.write_text("keep")
    link.symlink_to(victim)
    for words in (["checkpoint", "-f", link], ["generate-config", "-f", link], ["checkpoint", "-f", "/dev/null"], ["checkpoint", "-f", node.home]):
        assert "is no file" in hopper(*words, status=1).stderr
    assert victim.read_text() == "keep" and not Path("/dev/null").is_file()
    for path in ("-", "/dev/stdout"):
        assert json.JSONDecoder().raw_decode(hopper("checkpoint", "-f", path).stdout)[0]["Version"] == "v1"
    hopper("checkpoint", "-f", victim)
    assert len(json.loads(victim.read_text())["MigState"]["Devices"]) == 8


# --- hooks

def hooks(node: Node, **scripts: str) -> Path:
    """A hooks file with a script at each of its names ("pre_apply_mode")."""
    file = node.home / "hooks.yaml"
    listed = {name.replace("_", "-"): [{"command": "/bin/sh", "args": ["-c", script], "workdir": str(node.home), "envs": {"OWN": "1", "MIG_PARTED_SKIP_RESET": "x"}}]
              for name, script in scripts.items()}
    file.write_text(json.dumps({"version": "v1", "hooks": listed}))
    return file


ALL = ("apply_start", "pre_apply_mode", "pre_apply_config", "apply_exit")


def ran(node: Node) -> list[str]:
    log = node.home / "ran"
    lines = log.read_text().splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    return lines


def test_hooks_run_before_and_after_what_they_are_for(hopper):
    node = hopper.node
    file = hooks(node, **{name: f"echo {name} $(/bin/ls {node.root}/usr/bin/nvidia-smi | /usr/bin/wc -l) >> ran; echo noise" for name in ALL})
    done = hopper("apply", "-f", "-", "-k", file, input="version: v1\nmig-configs: {a: [{devices: [0], mig-enabled: true, mig-devices: {1g.18gb: 1}}]}")
    assert "noise" not in done.stdout + done.stderr
    assert [line.split()[0] for line in ran(node)] == list(ALL)
    two = "version: v1\nmig-configs: {a: [{devices: [0], mig-enabled: true, mig-devices: {1g.18gb: 2}}]}"
    done = hopper("-d", "apply", "-f", "-", input=two, env={"MIG_PARTED_HOOKS_FILE": str(file)})
    assert "noise" in done.stderr and done.stdout == "MIG configuration applied successfully\n"
    assert [line.split()[0] for line in ran(node)] == ["apply_start", "pre_apply_config", "apply_exit"]
    hopper("apply", "-f", "-", "-k", file, input=two)
    assert [line.split()[0] for line in ran(node)] == ["apply_start", "apply_exit"], "nothing is to be done"
    hopper("apply", "-m", "-f", "-", "-k", file, input=two.replace("1g.18gb: 2", "1g.18gb: 3"))
    assert [line.split()[0] for line in ran(node)] == ["apply_start", "apply_exit"]
    saved = node.home / "checkpoint.json"
    saved.write_text(checkpoint(node, None))
    hopper("restore", "-f", saved, "-k", file)
    assert [line.split()[0] for line in ran(node)][:2] == ["apply_start", "pre_apply_mode"]
    assert parts(node) == {}


def test_hooks_get_the_variables_of_mig_parted_and_no_others(hopper):
    node = hopper.node
    file = hooks(node, apply_start="/usr/bin/env > ran")
    hopper.file.write_text("version: v1\nmig-configs: {only: [{devices: all, mig-enabled: false}]}")
    hopper("apply", "-f", hopper.file, "-k", file, "-m", env={"SECRET": "s"})
    seen = dict(line.split("=", 1) for line in ran(node))
    expected = {"MIG_PARTED_CONFIG_FILE": str(hopper.file), "MIG_PARTED_SELECTED_CONFIG": "only", "MIG_PARTED_HOOKS_FILE": str(file), "MIG_PARTED_SKIP_RESET": "false",
                "MIG_PARTED_MODE_CHANGE_ONLY": "true", "OWN": "1"}
    assert {key: value for key, value in seen.items() if key not in ("PWD", "SHLVL", "_", "OLDPWD")} == expected


def test_a_hook_that_fails_prevents_the_change(hopper):
    node = hopper.node
    rest = {name: f"echo {name} >> ran" for name in ALL}
    wanted = "version: v1\nmig-configs: {a: [{devices: [0], mig-enabled: true, mig-devices: {1g.18gb: 1}}]}"
    for name, others in (("apply_start", []), ("pre_apply_mode", ["apply_start", "apply_exit"]), ("pre_apply_config", ["apply_start", "pre_apply_mode", "apply_exit"])):
        file = hooks(node, **{**rest, name: "exit 3"})
        failed = hopper("apply", "-f", "-", "-k", file, input=wanted, status=1)
        assert f"hook {name.replace('_', '-')}: /bin/sh ended with status 3" in failed.stderr
        assert ran(node) == others
        assert modes(node) == ["Disabled"] * 8 and "layout" not in node.report()
    # The last one runs after the change, whose end it cannot prevent; and after one that failed.
    file = hooks(node, **{**rest, "apply_exit": "exit 4"})
    assert "hook apply-exit" in hopper("apply", "-f", "-", "-k", file, input=wanted, status=1).stderr
    assert parts(node) == {"0": ["1g.18gb"]}
    node.sim("fault", "0", "error", "nvmlGpuInstanceDestroy", "999")
    failed = hopper("apply", "-f", "-", "-k", file, input=wanted.replace("1g", "7g").replace("18gb", "141gb"), status=1)
    node.sim("heal", "0")
    assert "hook apply-exit" in failed.stderr and "unknown error" in failed.stderr.lower()


@pytest.mark.parametrize("attack", ["owner", "writable", "folder", "link", "parent"])
def test_hooks_of_other_users_do_not_run(hopper, attack):
    """What a user can write, or redirect, must not run as root."""
    node = hopper.node
    file = hooks(node, **{name: f"echo {name} >> {node.home}/ran" for name in ALL})
    theirs = node.home / "theirs"
    theirs.mkdir()
    path = file
    if attack == "owner":
        os.chown(file, 65534, 65534)
    elif attack == "writable":
        file.chmod(0o666)
    elif attack == "folder":
        path = theirs / "hooks.yaml"
        file.rename(path)
        os.chown(theirs, 65534, 65534)
    elif attack == "link":
        theirs.chmod(0o777)
        path = theirs / "hooks.yaml"
        path.symlink_to(file)
    else:
        (theirs / "below").mkdir()
        path = theirs / "below" / "hooks.yaml"
        file.rename(path)
        theirs.chmod(0o775)
    for words in (["apply", "-f", hopper.file, "-c", "all-enabled", "-k", path], ["apply", "-f", hopper.file, "-c", "all-enabled"]):
        refused = hopper(*words, env={"MIG_PARTED_HOOKS_FILE": str(path)}, status=1)
        assert "writable by" in refused.stderr or "belongs to user 65534" in refused.stderr
    assert ran(node) == []
    assert modes(node) == ["Disabled"] * 8, "without its hooks, nothing is changed"


# --- signals

SOME = "version: v1\nmig-configs: {a: [{devices: [0], mig-enabled: true, mig-devices: {1g.18gb: 1}}]}"


def running(mig: MigParted, hooks_file: Path, *words, layout: str = SOME) -> subprocess.Popen:
    mig.file.write_text(layout)
    return subprocess.Popen(mig.command("apply", "-f", mig.file, "-k", hooks_file, *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            stdin=subprocess.DEVNULL)


def written(node: Node, name: str) -> str:
    return wait_until(lambda: (node.home / name).exists() and (node.home / name).read_text().strip(), f"a hook to write {name}")


@pytest.mark.parametrize("name", ["apply_start", "pre_apply_mode", "pre_apply_config"])
def test_a_signal_ends_the_hook_and_runs_the_last_ones(hopper, name):
    node = hopper.node
    slow = "/bin/sleep 1000 & echo $! > sleeps; wait; echo went-on >> ran"
    program = running(hopper, hooks(node, **{other: f"echo {other} >> ran" for other in ALL} | {name: slow}))
    sleeps = int(written(node, "sleeps"))
    program.send_signal(signal.SIGTERM)
    out, err = program.communicate(timeout=60)
    assert program.returncode == -signal.SIGTERM and out == "", err
    assert f"hook {name.replace('_', '-')}: /bin/sh was ended, because a signal ends this program" in err
    wait_until(lambda: not alive(sleeps), "what the hook started to end")
    assert ran(node) == [*ALL[:ALL.index(name)], "apply_exit"]
    assert modes(node) == ["Disabled"] * 8 and "layout" not in node.report()


def test_a_second_signal_ends_it_at_once(hopper):
    node = hopper.node
    program = running(hopper, hooks(node, apply_start="echo $$ > first; exec /bin/sleep 1000", apply_exit="trap '' TERM; echo $$ > last; exec /bin/sleep 1000"))
    first = int(written(node, "first"))
    program.send_signal(signal.SIGINT)
    last = int(written(node, "last"))
    assert not alive(first)
    # Within a second of the first one it would be a part of that.
    wait_until(lambda: program.send_signal(signal.SIGTERM) or program.poll() is not None, "the program to end")
    program.communicate(timeout=60)
    assert program.returncode == -signal.SIGTERM
    wait_until(lambda: not alive(last), "the hook to end")


def test_a_signal_does_not_end_what_the_agent_does(hopper):
    node = hopper.node
    hopper("apply", "-f", "-", input=SOME.replace("1g.18gb", "7g.141gb"))
    holder = node.start("--device", "0:0", "--", "sleep", "1000")
    wait_until(lambda: node.holders(), "the part to be held")
    program = running(hopper, hooks(node, apply_exit="echo last >> ran"), "--wait", "10m")
    wait_until(lambda: (node.report() or {}).get("layout", {}).get("state") in ("pending", "failed"), "the request to wait for the holder")
    program.send_signal(signal.SIGINT)
    err = program.communicate(timeout=60)[1]
    assert program.returncode == -signal.SIGINT and "the agent goes on dividing the GPUs" in err
    assert ran(node) == ["last"]
    holder.kill()
    holder.communicate()
    wait_until(lambda: parts(node) == {"0": ["1g.18gb"]}, "the agent to divide the GPU")
