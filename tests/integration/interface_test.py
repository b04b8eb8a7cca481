"""What scripts and people meet at the command line of `penstock`, on a simulated DGX A100: formats, watching, waiting, exit statuses, terminals
of any width, and names of any script. Needs root: real control groups."""
import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from node import PATIENCE, Node, wait_until  # noqa: E402

DONE, FAILED, USAGE, NO = 0, 1, 2, 3


@pytest.fixture
def node(make_node) -> Node:
    node = make_node()
    node.start_agent()
    return node


def on_terminal(node: Node, *words: str, columns: int, **environment) -> str:
    """What the program prints on a terminal of this width."""
    process, terminal = pty.fork()
    if process == 0:
        # The size is set before the program reads it.
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        os.execve(node.programs / "penstock", ["penstock", "--run-dir", str(node.run_dir), *words],
                  {"PATH": "/usr/bin:/bin", "TERM": "xterm", "LANG": "C.UTF-8", "NO_COLOR": "1"} | environment)
    text, deadline = b"", time.monotonic() + PATIENCE
    try:
        while time.monotonic() < deadline:
            if select.select([terminal], [], [], 0.1)[0]:
                text += os.read(terminal, 65536)
    except OSError:  # the program has ended
        pass
    finally:
        os.close(terminal)
        os.waitpid(process, 0)
    return text.decode(errors="replace").replace("\r", "")


# --- formats --------------------------------------------------------------------------------------------------------------------------------


def test_all_formats_say_the_same(node):
    report = json.loads(node.penstock("status", "-o", "json").stdout)
    assert report["kind"] == "NodeState" and report["status"]["summary"]["devices"] == 8
    assert yaml.safe_load(node.penstock("status", "-o", "yaml").stdout)["status"]["devices"] == report["status"]["devices"]
    ids = [device["id"] for device in report["status"]["devices"]]
    assert node.penstock("status", "-o", "name").stdout.split() == [f"device/{one}" for one in ids]
    assert node.penstock("status", "-o", "jsonpath={.status.devices[*].id}").stdout.split() == ids
    assert [device["id"] for device in report["devices"]] == ids, "0.1.0's key"


def test_the_keys_of_010_stand_beside_the_object(node):
    document = json.loads(node.penstock("status", "-o", "json").stdout)
    assert {"devices", "allocators", "doors", "conditions", "configuration", "generation"} <= document.keys()
    assert document["conditions"][0]["status"] in (True, False) and document["status"]["conditions"][0]["status"] in ("True", "False")


def test_every_verb_with_json_prints_yaml_too(node):
    for words in (["ps"], ["queue"], ["usage"], ["assign"], ["plan"], ["top"], ["metrics", "list"], ["cdi", "list"], ["version"],
                  ["config", "show"], ["runtime", "doctor"], ["metrics", "describe", "accelerator_power_watts"]):
        shown = node.penstock(*words, "-o", "json", check=False)
        assert json.loads(shown.stdout), words
        if words != ["config", "show"]:
            assert yaml.safe_load(node.penstock(*words, "-o", "yaml", check=False).stdout) is not None, words
        indented = shown.stdout.splitlines()
        assert len(indented) > 1 and indented[1].startswith("  "), words


def test_single_devices_are_named_by_index_uuid_and_pci_address(node):
    devices = json.loads(node.penstock("status", "-o", "json").stdout)["devices"]
    for words in (["0", "3"], [f"0,{devices[3]['id']}"], [devices[0]["id"], devices[3]["pci"]]):
        shown = json.loads(node.penstock("status", *words, "-o", "json").stdout)
        assert [device["index"] for device in shown["status"]["devices"]] == [0, 3], words
    done = node.penstock("status", "0", "9", "GPU-nothing", check=False)
    assert done.returncode == FAILED and 'no device "9"' in done.stderr and 'no device "GPU-nothing"' in done.stderr, "all of them at once"


def test_tables_without_their_header(node):
    with_header, without = (node.penstock("status", *words).stdout.splitlines() for words in ([], ["--no-headers"]))
    assert with_header[0].startswith("INDEX") and without[0] == with_header[1]
    assert not any(line.startswith("ALLOCATOR ") for line in without)


# --- exit statuses --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["assign", "0", "nowhere"], ["usage", "--by", "foo"], ["usage", "--since", "yesterday"], ["top", "--interval", "0"],
                                   ["status", "--wacth"], ["status", "-o", "xml"], ["run", "-o", "json", "--", "true"], ["wait", "--for", "nothing"],
                                   ["wait", "--timeout", "soon"], ["cleanup"], ["explain"], ["help", "nothing"], ["cdi", "lst"],
                                   ["status", "-o", "jsonpath={.a"], ["runtime", "configure", "--no-runtime"], ["queue", "cancel"]])
def test_a_wrong_command_line_is_2_and_names_program_and_verb(node, words):
    done = node.penstock(*words, check=False)
    assert done.returncode == USAGE and done.stdout == "", done
    assert done.stderr.startswith("penstock" if words[0] in ("cdi",) else f"penstock {words[0]}"), done.stderr


def test_a_question_that_is_answered_with_no_is_3(node):
    assert node.penstock("status", "--check").stdout == ""
    node.sim("fault", "3", "xid", "79")
    # Its first reason may be that the GPU is lost.
    done = wait_until(lambda: "XID 79" in (done := node.penstock("status", "--check", check=False)).stdout and done, "the device to be unhealthy by the XID",
                      seen=lambda: node.penstock("status", check=False).stdout)
    assert done.returncode == NO and "device 3 GPU-" in done.stdout
    assert node.penstock("status", "--check", "-o", "json", check=False).returncode == NO
    assert node.penstock("status", "0", "1", "--check").returncode == DONE, "only of the named devices"
    assert node.penstock("wait", "3", "--for", "healthy", "--timeout", "0", check=False).returncode == NO
    node.end_agent()
    assert node.penstock("status", "--check", check=False).returncode == FAILED


def test_old_spellings_keep_their_exit_statuses(node):
    bad = node.home / "bad.yaml"
    bad.write_text("apiVersion: penstock.io/v1alpha1\nkind: NodeConfig\npats: {}\n")
    assert node.penstock("config", "check", bad, check=False).returncode == FAILED
    assert node.penstock("cdi", "validate", bad, check=False).returncode == FAILED
    assert node.penstock("door", "list").returncode == DONE


# --- waiting and watching -------------------------------------------------------------------------------------------------------------------


def test_wait_ends_when_it_is_so(node):
    node.sim("fault", "3", "xid", "79")
    wait_until(lambda: len(node.usable()) == 7, "the device to be unhealthy")
    waiting = subprocess.Popen([node.programs / "penstock", "--run-dir", node.run_dir, "wait", "3", "--for", "healthy", "--timeout", "1m"],
                               stdout=subprocess.PIPE, text=True)
    assert node.penstock("wait", "--for", "jsonpath={.status.devices[3].health.state}=unhealthy").returncode == DONE
    assert waiting.poll() is None
    node.sim("heal", "3")
    assert waiting.wait(PATIENCE) == DONE and "healthy: yes" in waiting.stdout.read()


def test_wait_waits_for_an_agent_that_does_not_run_yet(make_node):
    node = make_node()
    waiting = subprocess.Popen([node.programs / "penstock", "--run-dir", node.run_dir, "wait", "--timeout", "1m"])
    node.start_agent()
    assert waiting.wait(PATIENCE) == DONE


def test_wait_for_free_devices(node):
    program = node.start("--device", "3", "--", "sleep", "1000")
    wait_until(lambda: node.held() == {3}, "the device to be held")
    assert node.penstock("wait", "3", "--for", "free", "--timeout", "0", check=False).returncode == NO
    program.kill()
    assert node.penstock("wait", "3", "--for", "free", "--timeout", "1m").returncode == DONE


def test_watching_prints_what_changes_and_survives_an_agent_that_restarts(node):
    watching = subprocess.Popen([node.programs / "penstock", "--run-dir", node.run_dir, "status", "-w", "-o",
                                 "jsonpath={.status.devices[3].health.state}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert watching.stdout.readline() == "healthy\n"
    node.sim("fault", "3", "xid", "79")
    assert watching.stdout.readline() == "unhealthy\n", "the same is not printed twice"
    node.end_agent()
    assert "penstock status: " in watching.stderr.readline()
    node.sim("heal", "3")
    node.start_agent()
    while (line := watching.stdout.readline()) != "healthy\n":  # until the device has been read it may be unknown
        assert line
    watching.terminate()
    watching.wait(PATIENCE)


def test_a_reader_that_leaves_ends_the_program(node):
    watching = subprocess.Popen([node.programs / "penstock", "--run-dir", node.run_dir, "status", "-w", "-o", "json"], stdout=subprocess.PIPE)
    assert watching.stdout.readline().startswith(b'{')
    watching.stdout.close()
    node.sim("fault", "3", "xid", "79")
    assert watching.wait(PATIENCE) != 0
    closed = subprocess.run(f"'{node.programs}/penstock' --run-dir '{node.run_dir}' status -o json | true; exit ${{PIPESTATUS[0]}}", shell=True,
                            executable="/bin/bash", capture_output=True)
    assert closed.stderr == b"", "no message about a pipe that nobody reads"


# --- terminals ------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["status"], ["status", "-o", "wide"], ["ps"], ["queue"], ["assign"]])
def test_lists_fit_a_terminal_of_40_columns(node, words):
    program = node.start("--gpus", "1", "--", "sleep", "1000")
    wait_until(lambda: len(node.held()) == 1, "a holder")
    table = on_terminal(node, *words, columns=40).split("\nmetrics:")[0].split("\nnvidia driver")[0]
    too_long = [line for line in table.splitlines() if len(line) > 40]
    assert table.strip() and not too_long
    program.kill()


def test_help_fits_the_terminal(node):
    text = on_terminal(node, "status", "--help", columns=40)
    prose = text[:text.index("Examples:")]
    assert all(len(line) <= 40 for line in prose.splitlines() if "jsonpath=TEMPLATE" not in line), prose


def test_a_locale_without_utf8_gets_ascii(node):
    program = node.start("--gpus", "1", "--", "sh", "-c", "sleep 1000; " + "x" * 300)
    wait_until(lambda: len(node.held()) == 1, "a holder")
    for environment in ({"LANG": "C"}, {"LC_ALL": "POSIX"}):
        text = on_terminal(node, "ps", columns=100, **environment)
        assert text.isascii() and "~" in text
    assert "…" in on_terminal(node, "ps", columns=100)
    program.kill()


def test_names_of_any_script_stay_in_their_columns_and_control_characters_do_nothing(node):
    folder = node.home / "名前-اسم-имя"
    folder.mkdir()
    script = folder / "\x1b[31mred\u202e"
    script.write_text("#!/bin/sh\nsleep 1000\n")
    script.chmod(0o755)
    program = node.start("--device", "0", "--", script)
    wait_until(lambda: node.held() == {0}, "a holder")
    for text in (on_terminal(node, "ps", columns=200), node.penstock("ps").stdout):
        assert "\x1b[31m" not in text and "\u202e" not in text and "名前" in text
    assert "\x1b" not in node.penstock("ps", "-o", "json").stdout
    assert "\x1b" not in node.penstock("ps", "-o", "yaml").stdout
    program.kill()


# --- large lists ----------------------------------------------------------------------------------------------------------------------------


def test_five_thousand_shares_are_shown_in_each_form(make_node):
    node = make_node(config="sharing: {rules: [{strategy: time-slicing, replicas: 625}]}\n")
    node.start_agent()
    wait_until(lambda: sum(device["shares"] for device in node.report()["devices"]) == 5000, "5,000 shares")
    assert len(node.penstock("status", "-o", "name").stdout.split()) == 8
    assert node.penstock("status", "-o", "jsonpath={.status.summary.slots}").stdout == "5000\n"
    for words in (["plan", "--explain"], ["assign"], ["top", "--once"], ["ps"], ["queue"]):
        assert node.penstock(*words).returncode == DONE
