"""`penstock run` on simulated machines whose GPUs are divided into MIG devices: requests by profile and by memory, what they wait for, and hostile
requests. Needs root: real control groups."""
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from broker import connected  # noqa: E402
from mig_machine import smi  # noqa: E402
from node import PATIENCE, Node, wait_until  # noqa: E402

SHOW = ("sh", "-c", "echo $CUDA_VISIBLE_DEVICES")


def divided(make_node, machine: str, gpus: dict[int, str], **options) -> Node:
    """A node whose GPUs are divided into MIG devices of these profiles; its agent has found them."""
    node = make_node(machine=machine, **options)
    for gpu, profiles in gpus.items():
        smi(node, "-mig", "1", "-i", str(gpu))
        smi(node, "mig", "-i", str(gpu), "-cgi", profiles, "-C")
    node.launch_agent()
    count = sum(len(profiles.split(",")) for profiles in gpus.values())
    wait_until(lambda: len(parts(node)) == count and len(node.usable()) == len(node.report()["devices"]), f"{count} MIG devices", seen=node.log)
    return node


def parts(node: Node) -> dict[str, dict]:
    """The MIG devices that are offered, by number."""
    return {device["number"]: device for device in node.usable() if device.get("profile") and device["allocator"] == "local"}


def hold(node: Node, *words, **options) -> subprocess.Popen:
    program = node.start(*words, "--", "sleep", "1000", **options)
    wait_until(lambda: any(program.pid in holder["pids"] for holder in node.holders()), f"{words} to be served")
    return program


def held(node: Node, program: subprocess.Popen) -> list[str]:
    """The numbers of the devices that a program holds."""
    return sorted(holder.get("number") or str(holder["index"]) for holder in node.holders() if program.pid in holder["pids"])


def ask(node: Node, *requests: dict) -> list[dict]:
    """The final answers to requests of another process: one that is served enters a control group."""
    program = "import json, sys; from pathlib import Path; from broker import ask; " \
              "[print(json.dumps(ask(Path(sys.argv[1]), request)), flush=True) for request in json.load(sys.stdin)]"
    done = subprocess.run([sys.executable, "-c", program, node.run_dir], input=json.dumps(requests), capture_output=True, text=True, check=True,
                          timeout=PATIENCE, env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1] / "support")})
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def node(make_node) -> Node:
    return divided(make_node, "dgx-a100", {0: "1g.5gb,1g.5gb,3g.20gb"})


# By profile.


def test_a_run_gets_a_mig_device_of_the_profile_that_it_asks_for(node):
    done = node.penstock("run", "--mig", "3g.20gb", "--", *SHOW)
    (number, device), = [(number, device) for number, device in parts(node).items() if device["profile"] == "3g.20gb"]
    assert done.stdout.split() == [device["id"]]
    assert f"penstock: MIG device {number} (NVIDIA A100-SXM4-40GB, 3g.20gb)" in done.stderr
    program = hold(node, "--mig", "1g.5gb")
    assert parts(node)[held(node, program)[0]]["profile"] == "1g.5gb"
    assert held(node, program)[0] in node.penstock("ps").stdout


# Opens character devices by number, with files of its own, and prints which of them are permitted.
OPEN_NUMBERS = """
import errno, os, sys, tempfile
folder = tempfile.mkdtemp()
for number in sys.argv[1:]:
    os.mknod(f"{folder}/{number}", 0o20600, os.makedev(*map(int, number.split(":"))))
    try:
        os.open(f"{folder}/{number}", os.O_RDWR)
        print(number)
    except OSError as error:
        if error.errno != errno.EPERM:
            print(number)
    os.unlink(f"{folder}/{number}")
os.rmdir(folder)
"""


def test_a_run_can_open_the_capability_files_of_its_mig_device_and_no_others(node):
    caps = re.search(r"^ *(\d+) nvidia-caps$", (node.root / "proc/devices").read_text(), re.M).group(1)
    asked = [f"{caps}:{minor}" for minor in range(256)]
    opened = [node.penstock("run", "--mig", profile, "--", "/usr/bin/python3", "-c", OPEN_NUMBERS, *asked).stdout.split() for profile in ("1g.5gb", "3g.20gb")]
    assert [len(numbers) for numbers in opened] == [2, 2] and not {*opened[0]} & {*opened[1]}
    assert f"{caps}:1" not in opened[0] + opened[1], "it creates MIG devices"


def test_two_runs_have_two_mig_devices_and_the_third_waits_for_them(node):
    first, second = hold(node, "--mig", "1g.5gb"), hold(node, "--mig", "1g.5gb")
    assert held(node, first) != held(node, second)
    third = node.start("--mig", "1g.5gb", "--", *SHOW)
    queued, = wait_until(lambda: [run for run in node.queue() if run["reason"]], "the third to be queued and tried", seen=node.queue)
    assert queued["profile"] == "1g.5gb" and queued["gpus"] == 1
    assert "1 requested, 0 of 2 free" in queued["reason"] and queued["reason"].count("held by r-") == 2
    assert "1 x 1g.5gb" in node.penstock("queue").stdout
    whole = node.penstock("run", "--wait", "0", "--", *SHOW).stdout
    assert whole.startswith("GPU-"), "a request that cannot use MIG devices goes ahead, and gets none"
    second.kill()
    assert third.communicate(timeout=PATIENCE)[0].startswith("MIG-")


def test_several_with_a_remark_that_cuda_uses_one(node):
    done = node.penstock("run", "--mig", "1g.5gb", "--gpus", "2", "--", *SHOW)
    assert len(done.stdout.strip().split(",")) == 2
    assert "a CUDA program uses only one of these MIG devices" in done.stderr
    assert "CUDA program" not in node.penstock("run", "--mig", "1g.5gb", "--", *SHOW).stderr


def test_a_share_of_a_mig_device(node):
    first = hold(node, "--mig", "3g.20gb", "--share", "2")
    second = hold(node, "--mig", "3g.20gb", "--share", "2")
    assert held(node, first) == held(node, second)


@pytest.mark.parametrize("words, says", [
    (("--mig", "1g.6gb"), "no GPU of this node is divided into 1g.6gb (did you mean 1g.5gb?); there are 2 of 1g.5gb and 1 of 3g.20gb"),
    (("--mig", "2g.10gb"), "no GPU of this node is divided into 2g.10gb; GPU 0 ("),
    (("--mig", "small"), '"small" is no MIG profile'),
    (("--mig", ""), "must be a profile"),
    (("--mig", "1g.5gb", "--gpus", "3"), "requested 3 parts 1g.5gb, but this node has 2 parts 1g.5gb assigned to local users"),
    (("--mig", "1g.5gb", "--model", "*H100*"), "of that model"),
    (("--mig", "1g.5gb", "--device", "0:1"), "--device already selects"),
    (("--min-memory", "500Gi"), "the most is 40 GiB, of GPU 1 ("),
    (("--min-memory", "0"), "must be more than nothing"),
    (("--min-memory", "much"), "--min-memory"),
    (("--min-memory", "1Gi", "--share", "2"), "a share has no memory of its own"),
])
def test_requests_that_cannot_be_served_say_why(node, words, says):
    done = node.penstock("run", *words, "--", "true", check=False)
    assert done.returncode == 125 and says in done.stderr, done.stderr


def test_a_name_of_another_driver_version_means_the_same_profile(make_node):
    node = divided(make_node, "dgx-h200", {2: "7g.141gb"})
    id, = (device["id"] for device in parts(node).values())
    assert node.penstock("run", "--mig", "7g.140gb", "--", *SHOW).stdout.split() == [id]
    done = node.penstock("run", "--mig", "7g.80gb", "--", *SHOW, check=False)
    assert done.returncode == 125 and "divided into 7g.80gb" in done.stderr


def test_a_machine_without_mig_says_so(make_node):
    node = make_node(machine="t4-x1")
    node.start_agent(devices=1)
    done = node.penstock("run", "--mig", "1g.5gb", "--", "true", check=False)
    assert "no GPU of this node is divided into parts, and 1g.5gb was requested" in done.stderr


def test_single_offers_mig_devices_as_gpus(make_node):
    node = divided(make_node, "a30-x4", {gpu: "1g.6gb,1g.6gb" for gpu in range(4)}, config="parts: {strategy: single}\n")
    assert node.penstock("run", "--", *SHOW).stdout.startswith("MIG-")


# By memory, and packed.


def test_memory_is_served_by_the_smallest_that_has_it(node):
    assert parts(node)[held(node, hold(node, "--min-memory", "4Gi"))[0]]["profile"] == "1g.5gb"
    assert parts(node)[held(node, hold(node, "--min-memory", "20G"))[0]]["profile"] == "3g.20gb"
    whole = hold(node, "--min-memory", "20G")
    assert held(node, whole) == ["1"]


def test_gpus_in_use_are_filled_before_others_are_begun(make_node):
    node = divided(make_node, "a30-x4", {0: "1g.6gb,1g.6gb", 1: "1g.6gb,1g.6gb,1g.6gb", 2: "1g.6gb,2g.12gb"})
    hold(node, "--mig", "2g.12gb")
    assert [held(node, hold(node, "--mig", "1g.6gb"))[0].split(":")[0] for _ in range(5)] == ["2", "0", "0", "1", "1"]


# Limits of users.


def test_a_mig_device_counts_as_a_fraction_towards_the_limit_of_its_user(make_node):
    """Root has no limits, so the requests are those of two other users. Each may have one GPU, and ann holds half of one."""
    ann, bob = 64001, 64002
    node = divided(make_node, "dgx-a100", {gpu: "3g.20gb,3g.20gb" for gpu in range(8)},
                   config="allocators: {local: {group: users}}\nqueue: {perUser: {gpus: 1}}\n")
    node.programs = Path(shutil.copytree(node.programs, node.home / "bin"))  # every user can execute them
    everything = hold(node, "--mig", "3g.20gb", "--gpus", "15")

    def by(user: int) -> dict:
        return {"user": user, "group": user, "extra_groups": [100], "env": {"PATH": os.environ["PATH"]}}

    def queued(user: int, *words) -> subprocess.Popen:
        before = len(node.queue())
        program = node.start(*words, "--", "sleep", "1000", **by(user))
        wait_until(lambda: len(node.queue()) == before + 1, "one more run to be queued")
        return program

    hold(node, "--mig", "3g.20gb", **by(ann))
    within, beyond, other = queued(ann, "--mig", "3g.20gb"), queued(ann, "--mig", "3g.20gb"), queued(bob, "--mig", "3g.20gb", "--gpus", "2")
    users = [(run["user"], run["gpus"]) for run in node.queue()]
    assert users == [(str(ann), 1), (str(bob), 2), (str(ann), 1)], "the second of ann would be her third half"
    everything.kill()
    wait_until(lambda: not node.queue(), "all to be served")
    assert all(held(node, program) for program in (within, beyond, other))


# Answers name parts by their number.


def test_assign_names_parts_by_their_number(node):
    number = next(iter(parts(node)))
    done = node.penstock("assign", number, "none")
    assert done.stdout == f"device {number}: local -> none: acknowledged\n"
    moved, = json.loads(node.penstock("assign", number, "default", "-o", "json").stdout)["moved"]
    assert moved["number"] == number
    listed = json.loads(node.penstock("assign", "-o", "json").stdout)["devices"]
    assert {device.get("number") for device in listed} >= {number}


def test_plan_explains_which_parts_a_request_would_get(node):
    program = hold(node, "--mig", "3g.20gb")
    text = node.penstock("plan", "--explain").stdout
    assert "A request for nvidia.com/mig-1g.5gb now" in text and "parts, packed" in text
    plan = json.loads(node.penstock("plan", "--explain", "-o", "json").stdout)
    taken = [device for device in plan["devices"] if device["resource"] == "nvidia.com/mig-3g.20gb"]
    assert [device["number"] for device in taken] == held(node, program) and taken[0]["free"] == 0


# Places in the queue.


def test_a_place_in_the_queue_is_kept_for_the_profile_that_it_was_for(node):
    holders = [hold(node, "--mig", "1g.5gb"), hold(node, "--mig", "1g.5gb")]
    waiting = node.start("--mig", "1g.5gb", "--", *SHOW)
    ticket = wait_until(node.queue, "a run to be queued")[0]["ticket"]
    node.end_agent()
    node.launch_agent()
    wait_until(lambda: node.report() and any(one["ticket"] == ticket and one["command"] for one in node.queue()), "the run to be back in its place")
    holders[0].kill()
    assert waiting.communicate(timeout=PATIENCE)[0].startswith("MIG-")


# Hostile requests.


HOSTILE = [
    {"profile": "1g.5gb\u001b[2J"}, {"profile": "\u202e1g.5gb"}, {"profile": "1" * 257}, {"profile": "1g.5gb\n"}, {"profile": 7},
    {"profile": ["1g.5gb"]}, {"profile": ""}, {"minMemory": -1}, {"minMemory": 1e30}, {"minMemory": "20Gi"}, {"minMemory": 2**64},
    {"profile": "1g.5gb", "devices": ["0:0"]}, {"minMemory": 1, "share": 2}, {"mig": "1g.5gb"},
    # Names of the right form that mean nothing, or numbers that would overflow.
    {"profile": "999999g.999999gb"}, {"profile": "9999999999g.5gb"}, {"profile": "1c.1g.5gb+" + "a," * 120 + "b"}, {"profile": "1g.5gb++"}, {"profile": "..."},
    {"minMemory": 2**63 - 1}, {"profile": "1g.5gb", "gpus": 1024},
]


def test_hostile_profiles_are_refused_and_leave_nothing(node):
    for keys, answer in zip(HOSTILE, ask(node, *({"op": "run", "wait": "0s", **keys} for keys in HOSTILE)), strict=True):
        assert answer and answer.keys() == {"error"}, (keys, answer)
        assert answer["error"]["code"] in {"INVALID_ARGUMENT", "FAILED_PRECONDITION"}, (keys, answer)
        message = answer["error"]["message"]
        assert message.isprintable() or all(line.isprintable() for line in message.split("\n")), (keys, message)
        assert len(message) < 2000
    assert node.queue() == [] and node.holders() == []
    assert node.penstock("run", "--mig", "1g.5gb", "--", *SHOW).stdout.startswith("MIG-")


def test_a_flood_of_requests_for_profiles_delays_no_other_request(node):
    holders = [hold(node, "--mig", "1g.5gb"), hold(node, "--mig", "1g.5gb")]
    with connected(node.run_dir) as connection:
        connection.sendall(b'{"op":"run","profile":"1g.5gb"}\n')
        wait_until(lambda: len(node.queue()) == 1, "the request to be queued")
        answers = ask(node, *({"op": "run", "profile": f"{number}g.{number}gb", "wait": "0s"} for number in range(300)))
        assert len(answers) == 300 and all(answer.keys() == {"error"} for answer in answers)
        assert node.penstock("run", "--mig", "3g.20gb", "--", *SHOW).stdout.startswith("MIG-")
    wait_until(lambda: not node.queue(), "the request to leave with its connection")
    assert all(holder.poll() is None for holder in holders)


def test_an_older_client_knows_no_parts_and_gets_none(node):
    answer, = ask(node, {"op": "run", "gpus": 1, "command": "older", "wait": "0s"})
    device, = answer["granted"]["devices"]
    assert device["id"].startswith("GPU-") and "profile" not in device and "number" not in device
