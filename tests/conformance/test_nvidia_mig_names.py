"""Names of MIG profiles in a layout, compared with go-nvlib, by which mig-parted checks them."""
import json
import random
import subprocess
from pathlib import Path

import downloads

NAMES = ["1g.5gb", "1g.5gb+me", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb", "1c.3g.20gb", "2c.7g.80gb", "1g.24gb+gfx", "1g.24gb+me.all",
         "1g.24gb-me", "2g.48gb+gfx,me", "0g.0gb", "01g.05gb", "3c.3g.20gb"]
PIECES = ["", "+", "-", ",", ".", "c", "g", "gb", "G", " ", "\t", "1", "05", "me", "x", "_", "é", "..", "1c."]


def mutants(count: int) -> list[str]:
    """Different names near valid ones, with one to three pieces put in or replaced."""
    choose, found = random.Random(20260115), set(NAMES)
    while len(found) < count:
        name = choose.choice(NAMES)
        for _ in range(choose.randint(1, 3)):
            at = choose.randint(0, len(name))
            name = name[:at] + choose.choice(PIECES) + name[at + choose.randint(0, 2):]
        found.add(name)
    return sorted(found)


def accepted(penstock: Path, file: Path, names: list[str]) -> set[str]:
    """A name on each line, by which the problems name it."""
    lines = ",\n".join(f"{json.dumps(name)}: 1" for name in names)
    file.write_text('{"version": "v1", "mig-configs": {"a": [{"devices": "all", "mig-enabled": true, "mig-devices": {\n' + lines + "\n}}]}}\n")
    done = subprocess.run([penstock, "mig", "assert", "--valid-config", "-f", file], capture_output=True, text=True, timeout=60)
    refused = {int(line.split(":")[1]) for line in done.stderr.replace("penstock mig assert: ", "").splitlines() if "is no MIG profile" in line}
    assert done.returncode == 1 and refused, done.stdout
    return {name for number, name in enumerate(names, 2) if number not in refused}


def test_names_of_profiles_are_valid_where_they_are_for_mig_parted(request, tmp_path):
    penstock = Path(request.config.getoption("--programs")).resolve() / "penstock"
    names = mutants(4000)
    done = subprocess.run([downloads.nvidia_programs() / "peer", "profiles"], input=json.dumps(names) + "\n", capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    theirs = {name for name, wrong in zip(names, json.loads(done.stdout), strict=True) if not wrong}

    # Of more problems in one file, only the first 100 are shown.
    parts = [names[at:at + 100] for at in range(0, len(names), 100)]
    ours = {name for part in parts for name in accepted(penstock, tmp_path / "layouts.json", part)}

    assert len(NAMES) <= len(theirs) < len(names) - 1000
    assert ours == theirs
