"""The agent compared with NVIDIA's device plugin: accepted configurations, resources offered to a
kubelet, responses to Allocate, and preferred devices."""
import json
import random
import re
import subprocess
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

import device_plugins
import differences
import downloads
import nvidia_programs
from mutants import Mutator
from node import Node

# ---- Which files are refused -----------------------------------------------------------------

UUID = "b1028956-cfa2-0990-bf4a-5da9abb51763"
DOCUMENTS = [
    {"version": "v1", "flags": {
        "migStrategy": "none", "failOnInitError": False, "gdsEnabled": True,
        "nvidiaDriverRoot": "/run/nvidia/driver",
        "plugin": {"passDeviceSpecs": True, "deviceListStrategy": ["envvar", "cdi-cri"],
                   "deviceIDStrategy": "index", "containerDriverRoot": "/driver-root"},
        "gfd": {"oneshot": False, "noTimestamp": True, "sleepInterval": "60s", "outputFile": "/f",
                "machineTypeFile": "/m"}},
     "imex": {"channelIDs": [0], "required": False}},
    {"version": "v1",
     "flags": {"migStrategy": "mixed", "plugin": {"deviceListStrategy": "envvar"}},
     "sharing": {"timeSlicing": {
         "renameByDefault": True, "failRequestsGreaterThanOne": True,
         "resources": [{"name": "nvidia.com/gpu", "replicas": 4},
                       {"name": "nvidia.com/mig-1g.5gb", "replicas": 2}]}}},
    {"version": "v1",
     "resources": {"gpus": [{"pattern": "*A100*", "name": "a100"},
                            {"pattern": "*", "name": "nvidia.com/gpu"}],
                   "mig": [{"pattern": "1g.5gb", "name": "mig-1g.5gb"}]},
     "sharing": {"timeSlicing": {"resources": [
         {"name": "nvidia.com/gpu", "rename": "nvidia.com/small", "replicas": 4,
          "devices": [0, "1", "0:1", f"GPU-{UUID}"]},
         {"name": "gpu", "devices": 2, "replicas": 3},
         {"name": "gpu", "devices": "all", "replicas": 2}]}}},
    {"version": "v1", "flags": {"mpsRoot": "/run/nvidia/mps"},
     "sharing": {"mps": {"resources": [{"name": "nvidia.com/gpu", "replicas": 10}]}}},
]
ODD = ["", "yes", "true", 0, 1, 7, -1, 1.5, 2**40, True, False, None, [], {}, ["a"], [0], [{}],
       {"x": "y"}, "v2", "single", "index", "cdi-annotations", "auto", "10s", "5", "gpu",
       "nvidia.com/gpu.shared", "nvidia.com/-", "a/b/c", "GPU-1", f"MIG-{UUID}", "/x", "all"]
KEYS = ["name", "replicas", "rename", "devices", "mps", "timeSlicing", "extra", "flags", "plugin",
        "resources"]
# Messages of the agent for files that NVIDIA's parser accepts and the agent refuses: values that
# NVIDIA's plugin refuses after parsing, and values that cannot be honoured.
STRICTER = re.compile("|".join([
    r"must be an absolute path$", r"outside of 1 to 100000$",
    r"never takes effect, because .* comes before it",
    r"is none of (none, single, mixed|uuid, index|envvar, volume-mounts, cdi-annotations, cdi-cri)",
    r"is none of auto, nvml, tegra, vfio", r"names no strategy$",
    r"an item is .* where a string is expected$", r"is empty; write \"\*\" to mean all$",
    r"has no value$", r"an item is not a device: write an index"]))
# Messages for files that only `penstock config check` refuses.
STRICT = re.compile("|".join([STRICTER.pattern, r"unknown key", r"belongs here", r"knows no strategies either",
                              r"is (there|given) twice", r"is missing$", r"(anchors|aliases) .* are not supported", r"is a boolean .* put it in quotes$",
                              r"is an integer .* put it in quotes$", r"more than one document", r"where a boolean is expected"]))
# Values that NVIDIA's parser refuses and Penstock accepts: devices with one replica are not shared,
# and a list of channels may be a string, as in the environment.
LOOSER = {"number of replicas must be >= 2": {"replicas": 1},
          "Imex.imex.channelIDs of type []int": {"channelIDs": ""}}


def holds(tree, wanted: dict) -> bool:
    """Whether any map in the tree has these items."""
    if isinstance(tree, dict):
        return (all(key in tree and type(tree[key]) is type(value) and tree[key] == value
                    for key, value in wanted.items())
                or any(holds(value, wanted) for value in tree.values()))
    return isinstance(tree, list) and any(holds(item, wanted) for item in tree)


def test_the_same_configuration_files_are_refused(request, tmp_path):
    penstock = Path(request.config.getoption("--programs")).resolve() / "penstock"
    mutator, documents = Mutator(20261122, DOCUMENTS, ODD, KEYS, cases=True), {}
    for i in range(400):
        file = tmp_path / f"{i:04}.{'json' if i % 2 else 'yaml'}"
        documents[file] = mutator.next()
        file.write_text(json.dumps(documents[file]) if i % 2
                        else yaml.safe_dump(documents[file], sort_keys=False))
    peer = subprocess.run([downloads.nvidia_programs() / "peer", "configs", *documents],
                          capture_output=True, text=True, timeout=120, check=True)
    verdicts, counts = json.loads(peer.stdout), Counter()
    for file, document in documents.items():
        done, strict = (subprocess.run([penstock, "config", "check", *options, file],
                                       capture_output=True, text=True, timeout=60)
                        for options in (["--lenient"], []))
        theirs, mine = verdicts[str(file)], done.returncode == 0
        counts[theirs == "", mine] += 1
        if mine and strict.returncode:
            problems = [line for line in strict.stderr.splitlines() if str(file) in line]
            assert problems and all(STRICT.search(line) for line in problems), strict.stderr
            # A number instead of a string, and "yes", are converted without loss and need no remark.
            if not all(re.search(r"put it in quotes$|a boolean is expected", line)
                       for line in problems):
                assert "  remark: " in done.stdout, f"{strict.stderr}\n{done.stdout}"
                counts["remarks"] += 1
        assert mine or strict.returncode, done.stderr
        if theirs and mine:
            assert any(what in theirs and holds(document, where)
                       for what, where in LOOSER.items()), f"{theirs}\n{document}"
        elif not theirs and not mine:
            problems = [line for line in done.stderr.splitlines() if str(file) in line]
            assert problems and all(STRICTER.search(line) for line in problems), \
                f"{done.stderr}\n{document}"
    assert counts[True, True] > 100 and counts[False, False] > 100, counts
    assert counts["remarks"] > 50, counts


# ---- Offered resources, and responses to Allocate -----------------------------------------------

OFFERS = {
    "nothing": "",
    "without a version": "flags: {migStrategy: none}",
    "as JSON": '{"flags": {"plugin": {"deviceListStrategy": "envvar"}}}',
    "indices": "flags: {plugin: {deviceIDStrategy: index}}",
    "volume mounts": "flags: {gdsEnabled: true, mofedEnabled: true, "
                     "plugin: {deviceListStrategy: volume-mounts, passDeviceSpecs: true}}",
    "CDI": "flags: {plugin: {deviceListStrategy: [cdi-cri, cdi-annotations]}}",
    "CDI and variables": "flags: {plugin: {deviceIDStrategy: index, "
                         "deviceListStrategy: [envvar, cdi-cri]}}",
    "time-slicing": "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}",
    "time-slicing, renamed": "sharing: {timeSlicing: {renameByDefault: true, "
                             "resources: [{name: gpu, replicas: 2}]}}",
    "one share for a container": "sharing: {timeSlicing: {failRequestsGreaterThanOne: true, "
                                 "resources: [{name: nvidia.com/gpu, replicas: 3}]}}",
    "an unknown key": "sharing: {timeSlicing: {maxShares: 4, "
                      "resources: [{name: nvidia.com/gpu, replicas: 4}]}}",
    "other letter case": "Flags: {Plugin: {deviceIdStrategy: index}}\n"
                         "Sharing: {timeslicing: {RenameByDefault: true, "
                         "resources: [{name: gpu, replicas: 3, Devices: 2}]}}",
    "anchors": "x-gpu: &gpu {name: nvidia.com/gpu, replicas: 4}\n"
               "sharing: {timeSlicing: {resources: [*gpu]}}",
    "a merge key": "x-gpu: &gpu {name: nvidia.com/gpu, replicas: 2}\n"
                   "sharing: {timeSlicing: {resources: [{<<: *gpu, replicas: 4}]}}",
    "one level too high": "flags: {deviceListStrategy: volume-mounts, passDeviceSpecs: yes}\n"
                          "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2}]}}",
    "a key twice": "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2, replicas: 5}]}}",
    "two documents": "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 3}]}}\n"
                     "---\nversion: v1",
    "a resource twice": "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2}, "
                        "{name: gpu, replicas: 4}]}}",
    "words of YAML 1.1": "flags: {plugin: {passDeviceSpecs: on}}",
    "sharing of MIG devices alone": "sharing: {timeSlicing: {resources: "
                                    "[{name: nvidia.com/mig-1g.5gb, replicas: 4}]}}",
}


class Answer:
    """An Allocate response without irrelevant differences: the order of lists, host paths below the
    root, random parts of names. `indices` replace UUIDs in the names of CDI devices."""

    def __init__(self, answer: dict | str, root: Path, indices: dict[str, str]):
        self.error = answer if isinstance(answer, str) else ""
        answer = {} if self.error else answer
        self.variables = {name: frozenset(value.split(","))
                          for name, value in answer.get("envs", {}).items()}
        self.mounts = {(one["container_path"], one["host_path"])
                       for one in answer.get("mounts", [])}
        self.files = {(one["container_path"], one["host_path"].removeprefix(str(root)),
                       one["permissions"]) for one in answer.get("devices", [])}
        self.cdi = {self._named(one["name"], indices) for one in answer.get("cdi_devices", [])}
        self.annotations = {(re.sub(r"_[-0-9a-f]{36}$", "_ID", name), frozenset(value.split(",")))
                            for name, value in answer.get("annotations", {}).items()}

    @staticmethod
    def _named(device: str, indices: dict[str, str]) -> str:
        kind, name = device.split("=")
        return f"{kind}={indices.get(name, name)}"


FILES, VOID, NAMES = "device files beside variables", "NVIDIA_VISIBLE_DEVICES=void with CDI alone", \
    "names of CDI devices with deviceIDStrategy: index"


def compare(theirs: Answer, ours: Answer, wanted: int) -> set[str]:
    """Asserts that the answers are equal except for the listed differences; returns those found."""
    found = set()
    assert bool(ours.error) == bool(theirs.error), f"{theirs.error} | {ours.error}"
    assert (ours.mounts, ours.cdi, ours.annotations) == \
        (theirs.mounts, theirs.cdi, theirs.annotations)
    assert ours.files >= theirs.files
    if ours.files > theirs.files:
        found.add(FILES)
    gpus = {name for name, _, _ in ours.files if re.fullmatch(r"/dev/nvidia\d+", name)}
    assert len(gpus) <= wanted and all(name == host and permissions == "rw"
                                       for name, host, permissions in ours.files)
    if ours.variables != theirs.variables:
        assert not theirs.variables and ours.variables == {"NVIDIA_VISIBLE_DEVICES": frozenset({"void"})}
        found.add(VOID)
    return found


@contextmanager
def machine(request, tmp_path: Path, name):
    node = Node(tmp_path, Path(request.config.getoption("--programs")).resolve(), str(name))
    try:
        yield node
    finally:
        node.end()


def indices_of(node: Node) -> dict[str, str]:
    """The index of each GPU's UUID."""
    status = subprocess.run([node.programs / "penstock-sim", "status", "-o", "json", "--root",
                             node.root], capture_output=True, text=True, timeout=60, check=True)
    return {gpu["uuid"]: str(index) for index, gpu in enumerate(json.loads(status.stdout)["gpus"])}


@pytest.mark.parametrize("text", OFFERS.values(), ids=OFFERS.keys())
def test_resources_and_containers_are_those_of_nvidias_plugin(request, tmp_path, text):
    config = tmp_path / "config.yaml"
    config.write_text(text)
    with machine(request, tmp_path, "dgx-a100") as node:
        with device_plugins.theirs(node.root, config, tmp_path / "theirs.log") as kubelet:
            resources = kubelet.resources()
            assert len(resources) == 1
            (name, devices), = resources.items()
            ids = sorted(devices)
            asked = [ids[:1], ids[2:5], [ids[0], ids[-1]], ["GPU-0"]]
            theirs = [Answer(kubelet.allocate(name, one), node.root, {}) for one in asked]
        # NVIDIA's specification names devices by the strategy, Penstock's always by UUID.
        indices = indices_of(node) if "deviceIDStrategy: index" in text else {}
        with device_plugins.ours(node, config, 8, resources) as kubelet:
            found = set()
            for one, their in zip(asked, theirs):
                answer = Answer(kubelet.allocate(name, one), node.root, indices)
                found |= compare(their, answer, len(one))
                found |= {NAMES} if answer.cdi and indices else set()
    assert found <= set(differences.table("Containers"))
    if text in SHOWING:
        assert SHOWING[text] <= found, f"listed, but no longer different: {SHOWING[text] - found}"


# The configurations that show each listed difference.
SHOWING = {OFFERS["nothing"]: {FILES}, OFFERS["CDI"]: {VOID}, OFFERS["CDI and variables"]: {NAMES}}


def test_each_difference_that_is_listed_is_looked_at():
    preferred = {"preferred devices", "preferred shares"}  # tested at the end of this file
    assert set(differences.table("Containers")) == preferred.union(*SHOWING.values())
    assert set(differences.table("Files of the plugin")) == {
        *(f"{key}: {json.dumps(value)}" for where in LOOSER.values() for key, value in where.items()), "resources", "rename, devices"}


REFUSED = {
    "an unknown version": "version: v2",
    "an unknown list strategy": "flags: {plugin: {deviceListStrategy: [envvar, cdi]}}",
    "an unknown id strategy": "flags: {plugin: {deviceIDStrategy: serial}}",
    "an unknown MIG strategy": "flags: {migStrategy: all}",
    "an unknown discovery": "flags: {deviceDiscoveryStrategy: pci}",
    "another IMEX channel": "imex: {channelIDs: [1]}",
    "no entries": "sharing: {timeSlicing: {resources: []}}",
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED.keys())
def test_what_nvidias_plugin_refuses_at_its_start_is_refused(request, tmp_path, text):
    config = tmp_path / "config.yaml"
    config.write_text(text)
    with machine(request, tmp_path, "t4-x1") as node:
        with pytest.raises(device_plugins.Refused), \
                device_plugins.theirs(node.root, config, tmp_path / "theirs.log"):
            pass
        done = subprocess.run([node.programs / "penstock-agent", "--config", config],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode != 0 and str(config) in done.stderr


# Documented in docs/reference/device-plugin-config.md: settings that NVIDIA's plugin parses and
# ignores take effect in Penstock.
HONOURED = {
    "names of models": ("resources: {gpus: [{pattern: '*A100*', name: a100}]}",
                        {"nvidia.com/gpu": 8}, {"nvidia.com/a100": 8}),
    "some devices under another name": (
        "sharing: {timeSlicing: {resources: "
        "[{name: nvidia.com/gpu, rename: nvidia.com/small, devices: 2, replicas: 4}]}}",
        {"nvidia.com/gpu": 32}, {"nvidia.com/small": 8, "nvidia.com/gpu": 6}),
}


def counts(resources: dict) -> dict[str, int]:
    return {name: len(ids) for name, ids in resources.items()}


@pytest.mark.parametrize("text,theirs,ours", HONOURED.values(), ids=HONOURED.keys())
def test_what_nvidias_plugin_passes_over_takes_effect(request, tmp_path, text, theirs, ours):
    config = tmp_path / "config.yaml"
    config.write_text(text)
    with machine(request, tmp_path, "dgx-a100") as node:
        with device_plugins.theirs(node.root, config, tmp_path / "theirs.log") as kubelet:
            assert counts(kubelet.resources()) == theirs
        with device_plugins.ours(node, config, 8, ours, of=counts):
            pass
        # With the option as-nvidia, the agent ignores the settings as well.
        with device_plugins.ours(node, config, 8, theirs, "--device-plugin-config-files",
                                 "as-nvidia", of=counts):
            report = json.loads(node.penstock("status", "-o", "json").stdout)
        assert all(": is ignored, as by NVIDIA's plugin" in one
                   for one in report["configuration"]["remarks"])


# ---- Preferred devices -------------------------------------------------------------------------

def write_machine(file: Path, chance: random.Random):
    """Eight GPUs without NVLink, on random PCIe switches and NUMA nodes."""
    gpus = []
    for place in range(8):
        numa = chance.randrange(2)
        switch = chance.choice([None, 10 * numa, 10 * numa + 1])
        gpus.append({"model": "a100-pcie-40gb", "pci": f"0000:{16 + 8 * place:02x}:00.0",
                     "numa": numa, "nvlinksDown": True,
                     **({} if switch is None else {"pcieSwitch": switch})})
    file.write_text(yaml.safe_dump({
        "name": file.stem, "description": "links by chance", "driver": "550.54.15",
        "product": {"vendor": "Nobody", "name": "By chance"},
        "numa": {0: "0-15", 1: "16-31"}, "gpus": gpus}, sort_keys=False))


def requests(chance: random.Random, ids: list[str], most: int, count: int):
    """Random requests of a kubelet: some devices are available, and a few of them are required."""
    for _ in range(count):
        free = sorted(chance.sample(ids, chance.randint(2, len(ids))))
        size = chance.randint(1, min(most, len(free)))
        yield free, sorted(chance.sample(free, chance.choice([0, 0, 1, size // 2]))), size


def scores(node: Node, sets: list[list[str]]) -> list[int]:
    """The scores of the sets by go-gpuallocator."""
    done = subprocess.run(nvidia_programs.command(node.root, "peer", "scores"), text=True,
                          env=nvidia_programs.environment(node.root), input=json.dumps(sets) + "\n",
                          capture_output=True, timeout=120, check=True)
    return json.loads(done.stdout)


# Few requests: NVIDIA's plugin reads all links for each, and tries all partitions of the free devices.
@pytest.mark.parametrize("name,most,count", [
    ("dgx-a100", 8, 60), ("mixed", 3, 60), ("dgx-2", 2, 12),
    (1, 8, 60), (2, 8, 60), (3, 8, 60), (4, 8, 60), (5, 8, 60), (6, 8, 60)])
def test_preferred_devices_are_linked_no_worse_than_those_of_nvidias_plugin(
        request, tmp_path, name, most, count):
    chance = random.Random(f"preferred {name}")
    (config := tmp_path / "config.yaml").write_text("version: v1\n")
    if isinstance(name, int):
        write_machine(tmp_path / f"chance{name}.yaml", chance)
        name = tmp_path / f"chance{name}.yaml"
    with machine(request, tmp_path, name) as node:
        with device_plugins.theirs(node.root, config, tmp_path / "theirs.log") as kubelet:
            resources = kubelet.resources()
            (resource, devices), = resources.items()
            asked = list(requests(chance, sorted(devices), most, count))
            theirs = [kubelet.prefer(resource, *one) for one in asked]
        with device_plugins.ours(node, config, len(devices), resources) as kubelet:
            ours = [kubelet.prefer(resource, *one) for one in asked]
        for (free, given, size), their, our in zip(asked, theirs, ours):
            assert len(our) == size == len(set(our)) and set(given) <= set(our) <= set(free)
            assert len(their) in (0, size)  # NVIDIA's finds none if too many devices are required
        compared = [at for at, their in enumerate(theirs) if their]
        assert len(compared) > count // 2
        their, our = (scores(node, [sets[at] for at in compared]) for sets in (theirs, ours))
        worse = [(asked[at], theirs[at], ours[at], one, other)
                 for at, one, other in zip(compared, their, our) if other < one]
        assert not worse, f"{len(worse)} of {len(compared)}, the first {worse[0]}"


def test_preferred_shares_are_spread_no_worse_than_by_nvidias_plugin(request, tmp_path):
    """A single share is on a GPU with the fewest taken shares, as in NVIDIA's plugin. Several shares
    are on at least as many GPUs as NVIDIA's, which first counts the shares taken by others."""
    chance = random.Random("shares")
    (config := tmp_path / "config.yaml").write_text(
        "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}")
    with machine(request, tmp_path, "dgx-a100") as node:
        with device_plugins.theirs(node.root, config, tmp_path / "theirs.log") as kubelet:
            resources = kubelet.resources()
            ids = sorted(resources["nvidia.com/gpu"])
            asked = [*requests(chance, ids, 12, 60), *requests(chance, ids, 1, 40)]
            theirs = [kubelet.prefer("nvidia.com/gpu", *one) for one in asked]
        with device_plugins.ours(node, config, 8, resources) as kubelet:
            ours = [kubelet.prefer("nvidia.com/gpu", *one) for one in asked]

        def gpus(shares) -> Counter:
            return Counter(share.split("::")[0] for share in shares)
        ones = 0
        for (free, given, size), their, our in zip(asked, theirs, ours):
            assert len(our) == len({*our}) == size and {*given} <= {*our} <= {*free}
            assert len(gpus(our)) >= len(gpus(their))
            if size == 1 and not given:
                left, ones = gpus(free), ones + 1
                assert left[our[0].split("::")[0]] == left[their[0].split("::")[0]]
        assert ones > 20
