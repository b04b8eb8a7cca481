"""CDI specifications: Penstock's reader and writer against the library that container engines use, and against the published JSON schema."""
import json
import random
import subprocess
from pathlib import Path

import pytest
import yaml

import downloads
from mutants import Mutator

SOURCE = Path(__file__).parents[2]
CORPUS = sorted((SOURCE / "tests/fuzz/corpus/cdi_spec").glob("*.*"))  # files that a fuzzer found have no suffix
ODD = ["", "yes", "a b", "A=b", "=", 0, 7, -1, 1.5, 2**32, True, None, [], {}, ["A=b"], [{}], {"x": "y"}, "0.4.0", "v0.7.0", "1.1.0", "9.9.9",
       "/dev/null", "b", "rw", "createContainer", "vendor.com/class", "vendor/class.x", "a/b", "..", "/"]


@pytest.fixture(scope="session")
def peer():
    program = downloads.cdi_program("cdi")

    def ask(*arguments):
        done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
    return ask


@pytest.fixture
def penstock(request):
    program = Path(request.config.getoption("--programs")).resolve() / "penstock"

    def run(*arguments):
        return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=120)
    return run


def ours(penstock, files) -> dict[str, dict]:
    return {one["file"]: one for one in json.loads(penstock("cdi", "validate", "-o", "json", *files).stdout)["files"]}


KEYS = ["type", "hostPath", "extra", "name", "netDevices", "env", "annotations"]


def load(file: Path):
    try:
        return yaml.safe_load(file.read_text())
    except yaml.YAMLError:
        return None


@pytest.fixture
def files(tmp_path) -> list[Path]:
    """Compares the verdicts on 1500 mutated specifications, as JSON and as YAML."""
    documents = [tree for file in CORPUS if isinstance(tree := load(file), dict)]
    mutator, written = Mutator(20260101, documents, ODD, KEYS), []
    for i in range(1500):
        tree = mutator.next()
        file = tmp_path / f"{i:04}.{'json' if i % 2 else 'yaml'}"
        file.write_text(json.dumps(tree) if i % 2 else yaml.safe_dump(tree, sort_keys=False))
        written.append(file)
    return written


def test_we_judge_files_as_engines_do(peer, penstock, files):
    theirs, mine = peer("verdicts", *files), ours(penstock, files)
    accepted = [file for file in theirs if theirs[file]["ok"]]
    assert 100 < len(accepted) < len(files) - 100, "the files must include valid and invalid ones"
    for file in theirs:
        text = Path(file).read_text()
        if "enableCMT" in text or "enableMBM" in text:
            continue  # supported by the format up to 1.0.0 and by Penstock; this release of the library no longer supports them
        why = theirs[file]["error"] or "\n".join(mine[file]["problems"])
        assert mine[file]["valid"] == theirs[file]["ok"], f"{why}\n{text}"


def test_we_take_the_same_version_for_the_same_content(peer, penstock, files):
    theirs, mine = peer("verdicts", *files), ours(penstock, files)
    both = [file for file in theirs if theirs[file]["ok"] and mine[file]["valid"]]
    assert {theirs[file]["minimum"] for file in both} == {"0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "1.1.0"}
    for file in both:
        assert mine[file]["minimumVersion"] == theirs[file]["minimum"], Path(file).read_text()
        assert mine[file]["devices"] == theirs[file]["devices"]


def test_what_we_write_is_read_by_engines_and_fits_the_schema(peer, penstock, files, tmp_path):
    judge = downloads.cdi_program("cdi/schema")
    written = []
    for file in [file for file, one in ours(penstock, files).items() if one["valid"]][:150]:
        for suffix in ("json", "yaml"):
            target = tmp_path / f"written-{Path(file).name}.{suffix}"
            done = penstock("cdi", "transform", "root", "--from", "/", "--to", "/host", "--input", file, "--output", target)
            assert done.returncode == 0, done.stderr
            if "enableCMT" not in target.read_text() and "enableMBM" not in target.read_text():
                written.append(target)
    assert len(written) > 100
    for file, verdict in peer("verdicts", *written).items():
        assert verdict["ok"], f"{verdict['error']}\n{Path(file).read_text()}"
    problems = json.loads(subprocess.run([judge, *written], capture_output=True, text=True, timeout=120, check=True).stdout)
    for file, problem in problems.items():
        assert problem == "", Path(file).read_text()


def test_folders_give_the_devices_that_engines_find(peer, penstock, tmp_path):
    """Priorities, conflicts, suffixes, links and subfolders, chosen at random from few names so that they collide."""
    chance = random.Random(7)
    for attempt in range(40):
        root = tmp_path / str(attempt)
        folders = [root / "etc", root / "run", root / "link"]
        for folder in folders[:2]:
            (folder / "below.json").mkdir(parents=True)
            for i in range(chance.randrange(4)):
                spec = {"cdiVersion": "0.5.0", "kind": chance.choice(["a.com/gpu", "b.com/gpu"]),
                        "devices": [{"name": name, "containerEdits": {"env": ["A=b"]}} for name in chance.sample("0123", 2)]}
                if chance.random() < 0.2:
                    spec["unknown"] = 1
                file = folder / f"{i}.{chance.choice(['json', 'yaml', 'yml', 'json.bak'])}"
                if chance.random() < 0.2:
                    (root / f"target{folder.name}{i}").write_text(json.dumps(spec))
                    file.symlink_to(root / f"target{folder.name}{i}")
                else:
                    file.write_text(json.dumps(spec))
            (folder / "below.json/0.json").write_text('{"cdiVersion": "0.5.0"}')
        folders[2].symlink_to(folders[0])
        chosen = chance.choice([folders[:2], folders[1::-1], [folders[0]], [folders[2], folders[1]], [root / "none", folders[1]]])
        listed = penstock("cdi", "list", *[f"--spec-dir={folder}" for folder in chosen])
        assert listed.returncode == 0
        assert listed.stdout.split() == (peer("devices", *chosen) or []), f"{chosen}\n{listed.stderr}"
