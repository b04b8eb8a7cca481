"""Every command and flag in nvidia-ctk's help is supported by `penstock`, or listed as a difference."""
import re
import subprocess
from pathlib import Path

import differences
import downloads

# Commands of nvidia-ctk -> the equivalent commands of penstock.
COMMANDS = {"cdi generate": "cdi generate", "cdi list": "cdi list", "cdi transform root": "cdi transform root",
            "runtime configure": "runtime configure"}
HOOKS = {"update-ldcache", "create-symlinks", "chmod", "enable-cuda-compat"}  # implemented by penstock-hook, tested by hook_test.py


def listed_by(text: str, title: str) -> list[str]:
    """The entries of a section in a help text of urfave/cli."""
    section = re.split(rf"^(?:GLOBAL )?{title}:\n", text, flags=re.M)
    return [] if len(section) < 2 else re.findall(r"^ {3}(\S[^\n]*)", re.split(r"\n\n", section[1])[0], re.M)


def help_of(command: str) -> str:
    return subprocess.run([downloads.nvidia_programs() / "nvidia-ctk", *command.split(), "--help"], capture_output=True, text=True,
                          timeout=60, check=True).stdout


def commands(prefix: str = "") -> set[str]:
    """All commands without subcommands, with their parent commands."""
    found = set()
    for line in listed_by(help_of(prefix), "COMMANDS"):
        name = line.split(",")[0].split()[0]
        if name != "help":
            below = f"{prefix} {name}".strip()
            found |= commands(below) or {below}
    return found


def flags(command: str) -> set[str]:
    names = set()
    for line in listed_by(help_of(command), "OPTIONS"):
        names |= set(re.findall(r"(?:^|, )(--[-.\w]+)", re.split(r" {2,}", line)[0]))
    return names - {"--help", "--version"}


def takes(penstock: Path, command: str, flag: str) -> bool:
    """Whether penstock accepts the flag; a missing input is a different error. Nothing is written."""
    dry = ["--dry-run"] if command == "runtime configure" else []
    done = subprocess.run([penstock, *command.split(), *dry, f"{flag}=/nonexistent/x"], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL)
    return "not expected" not in done.stderr


def test_every_command_and_flag_of_nvidia_ctk_is_taken_or_listed(request):
    penstock = Path(request.config.getoption("--programs")).resolve() / "penstock"
    theirs, missing = commands(), set()
    assert len(theirs) > 10 and theirs > set(COMMANDS), theirs
    for command in theirs:
        if command.startswith("hook "):
            missing |= set() if command.removeprefix("hook ") in HOOKS else {command}
        elif command not in COMMANDS:
            missing.add(command)
        else:
            found = flags(command)
            assert found, command
            missing |= {f"{command} {flag}" for flag in found if not takes(penstock, COMMANDS[command], flag)}
    # Global flags of nvidia-ctk are flags of each command in penstock.
    missing |= {flag for flag in flags("") for command in ("cdi generate", "cdi list", "cdi transform root") if not takes(penstock, command, flag)}
    assert missing == set(differences.table("Commands of the toolkit"))
