"""Plays requests to the broker in a fixed order and compares the answers. A transcript is a list of steps:

  {"request": {...}, "answers": [...]}               sent by this program
  {"as": NAME, "request": {...}, "answers": [...]}   sent by a separate process, which keeps its
                                                     connection until the step {"end": NAME}
  {"read": NAME, "answers": [...]}                   the next line that this process receives

In requests, "@TICKET@" is the ticket of the last queued request."""
import json
import subprocess
import sys
from pathlib import Path

from broker import exchange
from node import wait_until

BROKER = Path(__file__).parents[1] / "support/broker.py"
# Times, process ids, measured values and human-readable text: their types are the same in every
# version, but not their values.
VOLATILE = {
    "PENSTOCK_LEASE", "agentPid", "busySeconds", "clockHertz", "collected", "command", "compute",
    "cpuSeconds", "deviceListReason", "deviceSeconds", "energyJoules", "folder", "generation",
    "history", "hostMemoryPeakBytes", "idleSeconds", "lastBusy", "lease", "measuredSeconds",
    "memoryBytes", "memoryUsedBytes", "message", "node", "notYet", "origin", "pid", "pids",
    "powerWatts", "problem", "problemOrigin", "problems", "reason", "remarks", "seconds", "since",
    "temperatureCelsius", "ticket", "time", "until", "user", "utilization", "version", "withheld",
}

# Lists of objects in some answers, and of human-readable text in a plan.
TEXTS = {"holders"}
# Names of configuration keys that were replaced; the old ones are read as before, and a plan shows the new ones.
RENAMED = {"doors.": "allocators.", "door: ": "allocator: "}


def holding(run_dir: Path) -> set[int]:
    """The processes that hold a device."""
    return {pid for one in exchange(run_dir, {"op": "ps"})[-1]["holders"] for pid in one["pids"]}


def settled(run_dir: Path) -> bool:
    """Whether specifications are written and all devices were measured."""
    [status], [samples] = (exchange(run_dir, {"op": op}) for op in ("status", "samples"))
    measured = (device.get("utilization") is not None for device in samples["devices"])
    return status["cdi"]["kinds"] != [] and all(measured)


def play(run_dir: Path, steps: list[dict]) -> list[dict]:
    """Sends the requests of the steps after the agent has settled; returns the steps with the received
    answers."""
    wait_until(lambda: settled(run_dir), "the agent to settle")
    processes: dict[str, subprocess.Popen] = {}
    ticket, played = "", []
    try:
        for step in steps:
            if "end" in step:
                process = processes.pop(step["end"])
                process.kill()
                process.wait()
                wait_until(lambda: process.pid not in holding(run_dir), "the devices to be released")
                played.append(step)
                continue
            if "read" in step:
                line = processes[step["read"]].stdout.readline()
                played.append(step | {"answers": [json.loads(line)]})
                continue
            request = json.dumps(step["request"]).replace("@TICKET@", ticket)
            if "as" in step:
                process = processes[step["as"]] = subprocess.Popen(
                    [sys.executable, BROKER, run_dir, request], stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE, text=True)
                answers = [json.loads(process.stdout.readline())]
                ticket = answers[0].get("waiting", {}).get("ticket", ticket)
            else:
                answers = exchange(run_dir, json.loads(request))
            played.append(step | {"answers": answers})
    finally:
        for process in processes.values():
            process.kill()
            process.wait()
    return played


def kind(value) -> str:
    if isinstance(value, bool):
        return "true or false"
    names = {dict: "an object", list: "a list", str: "a text", type(None): "null"}
    return names.get(type(value), "a number")


def differences(old, new, at: str = "", key: str = "") -> list[str]:
    """The parts of the old answer that the new one lacks or changes. Additional keys are allowed."""
    if kind(old) != kind(new):
        if key in VOLATILE and "null" in (kind(old), kind(new)):
            return []
        return [f"{at}: was {kind(old)} ({old!r}), is {kind(new)} ({new!r})"]
    if isinstance(old, dict):
        found = []
        for name, value in old.items():
            if name in new:
                found += differences(value, new[name], f"{at}.{name}", name)
            else:
                found.append(f"{at}.{name}: is missing; it was {value!r}")
        return found
    if key in VOLATILE:
        return []
    if key == "conditions":  # found by their type; later versions have more
        return differences(*({one["type"]: one for one in them} for them in (old, new)), at)
    if isinstance(old, list) and key == "kinds":  # 0.1.0 also wrote those of the kubelet where it served none
        old = [one for one in old if one in new or not one.startswith("k8s.device-plugin.")]
    if isinstance(old, list):
        if len(old) != len(new) and not (new and ".history." in at):  # which grows with time
            return [f"{at}: had {len(old)} items, has {len(new)}"]
        return [one for number, (was, is_now) in enumerate(zip(old, new))
                for one in differences(was, is_now, f"{at}[{number}]", key)]
    if isinstance(old, str) and key in ("key", "from", "to"):
        for before, since in RENAMED.items():
            old = old.replace(before, since)
    if old == new or (isinstance(old, str) and key in TEXTS):
        return []
    return [f"{at}: was {old!r}, is {new!r}"]
