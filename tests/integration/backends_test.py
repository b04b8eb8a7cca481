"""What device/backend.h promises, asked of the worker of each vendor: on the simulated driver of NVIDIA, whole and divided, on the files of AMD, whole and divided,
and on those of a made-up vendor."""
import json
import os
import subprocess
from pathlib import Path

import pytest

from acme import Acme
from amd import Amd
from node import wait_until
from worker import Refused, Worker

NONSENSE = ("", "nonsense", "-1", "999", "0/999", "../../etc/passwd", "0000:ff:1f.7", "\u00e4\n", "x" * 10000)
PID = 4711


class Machine:
    """Of one vendor, with eight devices or fewer. `root` has its files."""
    vendor, quantities = "", 0

    def __init__(self, root: Path, programs: Path):
        self.root, self.programs = root, programs

    def prepare(self, worker: Worker):
        """After the first look: what the vendor's own calls must create."""

    def close(self):
        pass


class Nvidia(Machine):
    vendor, quantities = "nvidia", 100

    def __init__(self, root: Path, programs: Path):
        super().__init__(root, programs)
        self.sim("start", "dgx-a100")

    def sim(self, *words):
        subprocess.run([self.programs / "penstock-sim", "--root", self.root, *map(str, words)], check=True, stdout=subprocess.DEVNULL)

    def run(self, device: int):
        self.sim("set", device, f"process={PID}:1024")

    def lose(self, device: int):
        self.sim("fault", device, "lost")

    def find(self, device: int):
        self.sim("heal", device)

    def unload(self):
        self.sim("fault", "driver", "unload")

    def load(self):
        self.sim("heal", "driver")

    def close(self):
        self.sim("stop")


class Mig(Nvidia):
    def __init__(self, root: Path, programs: Path):
        super().__init__(root, programs)
        self.sim("set", 0, "mig=enabled")

    def prepare(self, worker: Worker):
        """Two parts of the first GPU, by the names of its own profiles."""
        whole = worker.call("describe", worker.call("list")["addresses"][0])
        outer = next(one for one in whole["profiles"] if not one.get("within") and one["name"].startswith("3g."))
        for _ in range(2):
            worker.call("create-part", asks(whole["address"], part={"profile": outer["name"]}))


class AmdWhole(Machine):
    vendor, quantities, options = "amd", 100, {}

    def __init__(self, root: Path, programs: Path):
        super().__init__(root, programs)
        self.amd = Amd(root, **self.options)

    def run(self, device: int):
        self.amd.process(PID, (device,))

    def lose(self, device: int):
        self.gone = [(self.amd.sys / "class/kfd/kfd/topology/nodes" / str(number), text) for number, text in self.nodes(device)]
        for folder, _ in self.gone:
            (folder / "properties").unlink()
        self.amd.generation += 1
        self.amd.write("class/kfd/kfd/topology/generation_id", f"{self.amd.generation}\n")

    def nodes(self, device: int):
        for number, gpu in self.amd.nodes.items():
            if gpu == device:
                yield number, (self.amd.sys / f"class/kfd/kfd/topology/nodes/{number}/properties").read_text()

    def find(self, device: int):
        for folder, text in self.gone:
            self.amd.write(f"{folder.relative_to(self.amd.sys)}/properties", text)
        self.amd.generation += 1
        self.amd.write("class/kfd/kfd/topology/generation_id", f"{self.amd.generation}\n")

    def unload(self):
        self.amd.unload()

    def load(self):
        self.amd.close()
        self.amd = Amd(self.root, **self.options)

    def close(self):
        self.amd.close()


class AmdParts(AmdWhole):
    options = {"mode": "CPX", "metrics": "1.8"}


class AmdDies(AmdWhole):
    options = {"model": "mi250x"}


class MadeUp(Machine):
    vendor, quantities = "acme", 5

    def __init__(self, root: Path, programs: Path):
        super().__init__(root, programs.parent / "acme")
        root.mkdir()
        self.acme = Acme(root, 4)
        self.acme.divide("A-0", 7)

    def run(self, device: int):
        self.acme.set(f"A-{device}", process=f"{PID} 1024")

    def lose(self, device: int):
        self.kept = self.acme.devices[f"A-{device}"]
        self.acme.remove(f"A-{device}")

    def find(self, device: int):
        self.acme.devices[f"A-{device}"] = self.kept
        self.acme.set(f"A-{device}")

    def unload(self):
        self.acme.remove_driver()

    def load(self):
        self.acme.install("1.0")


MACHINES = {"nvidia": Nvidia, "nvidia-mig": Mig, "amd": AmdWhole, "amd-partitions": AmdParts, "amd-two-dies": AmdDies, "acme": MadeUp}


@pytest.fixture(params=MACHINES, ids=list(MACHINES))
def machine(request, tmp_path):
    made = MACHINES[request.param](tmp_path / "machine", request.config.getoption("--programs").resolve())
    yield made
    made.close()


@pytest.fixture
def worker(machine):
    with opened(machine) as worker:
        machine.prepare(worker)
        yield worker


def opened(machine: Machine) -> Worker:
    worker = Worker(machine.programs, machine.root, machine.vendor)
    worker.call("open")
    return worker


def refused(worker: Worker, operation: str, argument: str = "") -> Refused:
    with pytest.raises(Refused) as caught:
        worker.answer(operation, argument)
    return caught.value


def asks(address: str, **what) -> str:
    """The argument of a call that changes a device."""
    return f"{address}\n{json.dumps(what)}"


def described(worker: Worker) -> dict[str, dict]:
    """Facts by address, of parts, too; described twice, so that all links are known."""
    found = {}
    for _ in range(2):
        todo = worker.call("list")["addresses"]
        assert len(todo) == len(set(todo))
        found = {}
        while todo:
            address = todo.pop(0)
            if address not in found:
                found[address] = worker.call("describe", address)
                todo += found[address].get("parts", [])
    return found


def sample(worker: Worker, address: str, quantities: range) -> tuple[dict[str, str], set[str], list[str]]:
    """Values by quantity (and link), the quantities that it does not have, and processes."""
    values, lacks, processes = worker.answer("sample", " ".join((f"{address}\np", *map(str, quantities)))).split("\n")[:3]
    return dict(one.split("=") for one in values.split()), set(lacks.split()), processes.split()


def of_pid(reading: dict) -> list[dict]:
    return [one for one in reading.get("processes", []) if one["pid"] == PID]


def test_a_driver_is_named_and_its_devices_are_listed_in_the_same_way_each_time(machine, worker):
    driver = worker.call("open")
    assert driver["vendor"] == machine.vendor and driver["version"]
    assert worker.call("list") == worker.call("list")


def test_facts_are_complete_and_agree_with_each_other(machine, worker):
    found = described(worker)
    by_id = {facts["id"]: facts for facts in found.values()}
    assert len(by_id) == len(found), "an id stands for one device"
    wholes = [facts for facts in found.values() if not facts.get("parent")]
    assert len({facts["index"] for facts in wholes}) == len(wholes)
    for address, facts in found.items():
        assert facts["vendor"] == machine.vendor and facts["address"] == address and facts["model"] and int(facts["memory"]) > 0, facts
        assert all(one["path"].startswith("/dev/") and one["major"] > 0 for one in facts["files"]) and (facts["files"] or facts.get("parts")), facts
        assert {one["peer"] for one in facts.get("links", [])} <= set(by_id) - {facts["id"]}, facts["id"]
        for mode in facts.get("modes", []):
            assert mode["current"] in mode["available"] or not mode["available"], mode
    for one in (facts for facts in found.values() if facts.get("parent")):
        assert one["parent"] in by_id and int(one["memory"]) <= int(by_id[one["parent"]]["memory"])
    for whole in wholes:
        assert sum(int(one["memory"]) for one in found.values() if one.get("parent") == whole["id"]) <= int(whole["memory"])
        assert all(found[part]["parent"] == whole["id"] for part in whole.get("parts", []))


def test_facts_are_those_of_another_worker_too(machine, worker):
    before = described(worker)
    with opened(machine) as other:
        assert described(other) == before


def test_each_device_can_be_read_and_measured(machine, worker):
    found = described(worker)
    ids = {facts["id"] for facts in found.values()}
    asked = range(machine.quantities)
    for address, facts in found.items():
        reading = worker.call("read", address)
        assert reading["reachable"] and {one["device"] for one in reading.get("evidence", [])} <= ids | {""}, reading
        assert not [one for one in reading.get("evidence", []) if one["standing"] and one["kind"] in ("lost", "hang")]
        values, lacks, _ = sample(worker, address, asked)
        assert {one.partition(".")[0] for one in values} | lacks <= set(map(str, asked)), "what was not asked for"
        assert not {one.partition(".")[0] for one in values} & lacks
        assert values or facts.get("parts"), f"nothing is measured of {facts['id']}"
        some = range(min(3, machine.quantities))
        assert {one.partition(".")[0] for one in sample(worker, address, some)[0]} <= set(map(str, some))
        assert sample(worker, address, range(0))[0] == {}


def test_a_process_is_on_its_device_only(machine, worker):
    found = described(worker)
    device = 3 if len([one for one in found.values() if not one.get("parent")]) > 3 else 1
    assert not any(of_pid(worker.call("read", one)) for one in found)
    machine.run(device)
    whole = next(facts for facts in found.values() if facts["index"] == device and not facts.get("parent"))

    def of_process() -> set[str]:
        return {facts.get("parent") or facts["id"] for address, facts in found.items() if of_pid(worker.call("read", address))}

    wait_until(of_process, "the process to be seen")  # a list of all processes may be a moment old
    assert of_process() == {whole["id"]}


@pytest.mark.parametrize("address", NONSENSE, ids=range(len(NONSENSE)))
def test_an_address_that_it_never_gave_is_refused(machine, worker, address):
    before = described(worker)
    for operation, argument in (("describe", address), ("read", address), ("sample", f"{address}\np 0 1"), ("destroy-part", address),
                                ("set-mode", asks(address, mode="compute", value="CPX")), ("create-part", asks(address, part={"profile": "1g.5gb"}))):
        assert refused(worker, operation, argument).message, operation
    assert described(worker) == before


def test_modes_profiles_and_operations_that_it_does_not_know_are_refused(machine, worker):
    before = described(worker)
    for address in before:
        assert refused(worker, "set-mode", asks(address, mode="nonsense", value="1")).code == "unimplemented"
        assert refused(worker, "create-part", asks(address, part={"profile": "17g.nonsense"})).message
    assert refused(worker, "explode").message
    one = next(iter(before))
    for argument in ("", one, f"{one}\n", f"{one}\n{{", f"{one}\n[]", f"{one}\nnull", f'{one}\n{{"mode": 7}}', f"{one}\n" + "[" * 100000):
        assert refused(worker, "set-mode", argument).message
    assert described(worker) == before


def test_a_device_that_is_lost_is_found_again_and_the_others_stay(machine, worker):
    found = described(worker)
    wholes = sorted((facts["index"], address) for address, facts in found.items() if not facts.get("parent"))
    (index, lost), others = wholes[-1], [address for _, address in wholes[:-1]]
    machine.lose(index)
    listed = worker.call("list")["addresses"]
    with pytest.raises(Refused) as caught:
        if lost in listed:
            worker.call("describe", lost)
        reading = worker.call("read", lost)
        assert not [one for one in reading.get("evidence", []) if one["kind"] == "lost"]
    assert caught.value.code in ("data-loss", "not-found", "unavailable") and caught.value.message
    for address in others:
        assert worker.call("describe", address)["id"] == found[address]["id"] and worker.call("read", address)["reachable"]
    machine.find(index)
    assert {one["id"] for one in described(worker).values()} == {one["id"] for one in found.values()}
    assert worker.call("read", lost)["reachable"]


def test_a_driver_that_goes_is_said_and_one_that_comes_is_opened(machine, worker):
    before = {facts["id"] for facts in described(worker).values() if not facts.get("parent")}
    machine.unload()
    with Worker(machine.programs, machine.root, machine.vendor) as other:
        why = refused(other, "open")
        assert why.code in ("not-found", "failed-precondition") and len(why.message) > 30, "what is missing, and what to do"
        for operation in ("list", "describe", "read"):
            assert refused(other, operation, "0").message
        machine.load()
        other.call("open")
        assert {facts["id"] for facts in described(other).values() if not facts.get("parent")} == before


def test_no_device_file_stays_open(machine, worker):
    """Whoever has /dev/kfd open, or a GPU that is to be reset, is in the way. NVIDIA's library keeps its own files open while it is used."""
    for address in described(worker):
        worker.call("read", address)
    held = []
    for file in Path(f"/proc/{worker.process.pid}/fd").iterdir():
        target = os.readlink(file)
        if target.startswith((f"{machine.root}/dev/", "/dev/")) and target != "/dev/null" and "nvidia" not in target:
            held.append(target)
    assert held == []
