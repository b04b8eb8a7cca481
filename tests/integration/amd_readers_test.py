"""Programs that others wrote read the files of simulated AMD machines, bound over /sys in a mount namespace of their own, and see what Penstock says of them: Debian's rocm-smi
(5.2 of Debian 12, which knows neither partitions nor MI300X, and 6.1 of Debian 13), node_exporter's collector of DRM, lspci."""
import contextlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import downloads
from amd import NODES, Amd
from node import Node, wait_until
from prometheus import fetch

REAL = Path(__file__).with_name("amd_real_topology.json")  # see the test that reads it


@pytest.fixture
def node(make_node) -> Node:
    """A machine without GPUs of NVIDIA, not yet with an agent."""
    node = make_node(machine="empty", config="telemetry: {interval: 1s}\n")
    node.listen = f"unix:{node.home}/page.sock"
    return node


def reading(amd: Amd, *command) -> list:
    """The command line of a program that sees the machine's files."""
    return ["unshare", "-m", "sh", "-c", f'mount --rbind "{amd.sys}" /sys && exec "$@"', "sh", *command]


def read(amd: Amd, *command, fine: tuple = (0,)) -> str:
    done = subprocess.run(reading(amd, *command), capture_output=True, text=True, timeout=120)
    assert done.returncode in fine, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def rocm_smi(amd: Amd, *options: str, program: tuple = ("rocm-smi",)) -> list[dict]:
    """By GPU."""
    cards = json.loads(read(amd, *program, *options, "--json", fine=(0, 2)))  # 2: one of the values is not there
    return [cards[name] for name in sorted(cards, key=lambda name: int(re.sub(r"\D", "", name) or -1)) if re.fullmatch(r"card\d+", name)]


@contextlib.contextmanager
def drm_collector(amd: Amd, home: Path):
    """The page of node_exporter."""
    said = home / "node-exporter.log"
    with open(said, "wb") as log:
        process = subprocess.Popen(reading(amd, "prometheus-node-exporter", "--collector.disable-defaults", "--collector.drm", "--web.listen-address=127.0.0.1:0"),
                                   stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        at = wait_until(lambda: re.search(r'msg="Listening on" address=(\S+)', said.read_text()), "node_exporter to listen", seen=said.read_text)
        yield fetch(f"http://{at[1]}/metrics")
    finally:
        process.terminate()
        process.wait(60)


def whole(node: Node) -> list[dict]:
    """What Penstock says of GPUs, in the order of their numbers."""
    return sorted((one for one in node.report()["devices"] if not one.get("parent")), key=lambda one: one["index"])


def measured(node: Node, count: int) -> dict[str, dict[str, float]]:
    """Values of the page by family and device, as soon as all have them."""
    found: dict[str, dict[str, float]] = {}

    def complete() -> bool:
        found.clear()
        page = subprocess.run(["curl", "-sS", "--unix-socket", node.home / "page.sock", "http://node/metrics"], check=True, capture_output=True, text=True).stdout
        for family, device, value in re.findall(r'^(accelerator_\w+)\{device="([^"]+)"[^}]*\} (\S+)$', page, re.M):
            found.setdefault(family, {})[device] = float(value)
        return len(found.get("accelerator_power_watts", {})) == count
    wait_until(complete, f"measurements of {count} devices", seen=lambda: found)
    return found


@pytest.mark.parametrize("model, first_bus", [("mi210", "0000:63:00.0"), ("mi250x", "0000:C1:00.0")])
def test_rocm_smi_and_node_exporter_see_what_penstock_says(node, model, first_bus):
    amd = Amd(node.root, model)
    amd.measure(3, hotspot=71, memory=66, power=250 if model == "mi210" else 0, busy=90)
    for gpu in range(8):  # up to Linux 6.7 without a line `de`
        amd.errors(gpu, "umc", text=f"ue: 0\nce: {gpu}\n")
    node.start_agent()
    ours, page = whole(node), measured(node, 8)
    theirs = rocm_smi(amd, "--showid", "--showuniqueid", "--showmeminfo", "vram", "--showuse", "--showbus", "--showtemp", "--showpower")
    assert len(theirs) == len(ours) == 8 and theirs[0]["PCI Bus"] == first_bus
    for gpu, (one, other) in enumerate(zip(ours, theirs)):
        device = one["id"]
        assert device == "GPU-" + other["Unique ID"].removeprefix("0x") and other["GPU ID"] == f"0x{amd.model.device:04x}"
        assert one["memoryBytes"] == int(other["VRAM Total Memory (B)"])
        assert page["accelerator_temperature_celsius"][device] == float(other["Temperature (Sensor junction) (C)"]) == (71 if gpu == 3 else 47)
        assert page["accelerator_utilization_ratio"][device] * 100 == pytest.approx(float(other["GPU use (%)"]))
        # rocm-smi leaves out the power of the second GPU of a card.
        assert page["accelerator_power_watts"][device] == float(other.get("Average Graphics Package Power (W)", 0))
        assert page["accelerator_memory_used_bytes"][device] == int(other["VRAM Total Used Memory (B)"])
    with drm_collector(amd, node.home) as shown:
        unique = {int(card): text for card, text in re.findall(r'node_drm_card_info\{card="card(\d+)".*unique_id="(\w+)"', shown)}
        sizes = re.findall(r"node_drm_memory_vram_size_bytes\{.*\} (\S+)", shown)
        assert [f"GPU-{unique[card]}" for card in range(8)] == [one["id"] for one in ours], shown
        assert {float(size) for size in sizes} == {one["memoryBytes"] for one in ours} and len(sizes) == 8
        assert len(re.findall(r"node_drm_gpu_busy_percent\{.*\} 90$", shown, re.M)) == 1


def test_rocm_smi_counts_the_same_errors(node):
    """Its columns are exchanged."""
    amd = Amd(node.root, "mi210")
    for gpu in range(8):
        amd.errors(gpu, "umc", text="ue: 0\nce: 0\n")
    amd.errors(2, "sdma", uncorrectable=3, correctable=11)
    node.start_agent(devices=7)
    said = read(amd, "rocm-smi", "--showrasinfo", "sdma")
    assert re.findall(r"SDMA\s+\S+\s+(\d+)\s+(\d+)", said)[2] == ("11", "3"), said
    wait_until(lambda: "3 uncorrectable errors in block sdma" in whole(node)[2]["health"].get("reason", ""), "the errors", seen=lambda: whole(node)[2])


def shown_by_61(amd: Amd) -> list[tuple[str, str, str]]:
    """Of each partition that Debian 13's rocm-smi shows: the id of its GPU, its place, its mode."""
    return [(f"GPU-{other['Unique ID'].removeprefix('0x')}", other["PCI Bus"].lower(), other["Compute Partition"])
            for other in rocm_smi(amd, "--showuniqueid", "--showbus", "--showcomputepartition", program=downloads.rocm_smi())]


def said_of_parts(node: Node) -> list[tuple[str, str, str]]:
    """The same as Penstock says it. A GPU of which Linux made seven partitions is in the mode of eight."""
    modes = {0: "SPX", 2: "DPX", 7: "CPX", 8: "CPX"}
    return [(one["id"], f"{one['pci'][:-1]}{part}", modes[one.get("parts", 0)]) for one in whole(node) for part in range(one.get("parts", 0) or 1)]


def test_rocm_smi_of_debian_13_knows_the_partitions_and_a_mode_that_it_sets_is_served(node):
    """Its bus numbers have the partition in place of the function."""
    amd = Amd(node.root, answers=True)
    node.start_agent()
    assert shown_by_61(amd) == said_of_parts(node) and len(said_of_parts(node)) == 8
    for mode, count in (("CPX", 15), ("DPX", 9), ("SPX", 8)):
        assert f"Successfully set compute partition to {mode}" in read(amd, *downloads.rocm_smi(), "--device", "2", "--setcomputepartition", mode)
        wait_until(lambda: len(said_of_parts(node)) == count, f"the parts of {mode}", seen=lambda: said_of_parts(node))  # noqa: B023
        assert shown_by_61(amd) == said_of_parts(node)
    assert amd.written == [(2, "CPX"), (2, "DPX"), (2, "SPX")]


@pytest.mark.parametrize("model", ["mi300x", "mi355x", "mi250x", "oddities"])
def test_lspci_lists_the_same_functions(node, model):
    amd = Amd(node.root, model)
    said = [line.split() for line in read(amd, "lspci", "-D", "-n").splitlines()]
    gpus = sorted(address for address, kind, of in said if kind == "1200:" and of == f"1002:{amd.model.device:04x}")
    assert gpus == sorted(amd.address(gpu) for gpu in range(8)) and len(said) == 8 + amd.machine.board
    node.launch_agent()
    wait_until(lambda: (node.report() or {}).get("devices") and len(whole(node)) == 8, "the GPUs", seen=node.log)


def test_the_topology_of_a_real_machine_with_63_partitions_is_read_by_others_and_by_us(node):
    """KFD's files of 8 MI300X in CPX beside a BMC's card (ROCm, k8s-device-plugin, testdata), from the facts in REAL to the byte. They lack memory, names and gpu_id, which come from the simulated machine, as all of
    DRM and PCI does."""
    amd = Amd(node.root, mode="CPX", board=True)
    take_over(amd)
    node.start_agent(devices=8 + 63)
    ours = node.report()["devices"]
    parts = [one for one in ours if one.get("parent")]
    assert len(parts) == 63 and {one["memoryBytes"] for one in parts} == {24 << 30}
    assert [one["parts"] for one in whole(node)] == [8] * 7 + [7]
    theirs = rocm_smi(amd, "--showuniqueid", "--showbus", "--showmeminfo", "vram")
    assert [one["id"] for one in whole(node)] == ["GPU-" + other["Unique ID"].removeprefix("0x") for other in theirs] and len(theirs) == 8
    assert [one["PCI Bus"].lower() for one in theirs] == [amd.address(gpu) for gpu in range(8)]
    assert read(amd, "lspci", "-n", "-d", "1002:").count("1200: 1002:74a1") == 8
    assert shown_by_61(amd) == said_of_parts(node) and len(said_of_parts(node)) == 63
    with drm_collector(amd, node.home) as shown:
        # It reads card0 to card9 only: the BMC's, GPU 0 with seven partitions, GPU 1.
        assert re.findall(r'node_drm_card_info\{.*unique_id="(\w+)"', shown) == [one["id"].removeprefix("GPU-") for one in whole(node)[:2]], shown


def real_nodes() -> list[tuple[dict[str, str], list[str]]]:
    """Of each node of KFD's topology its properties, and the files of its links."""
    facts = json.loads(REAL.read_text())
    return [(facts[one["kind"]] | one["own"], [link_file(facts, number, to, kind) for first, last, kind in one["links"] for to in range(first, last + 1)])
            for number, one in enumerate(facts["nodes"])]


def link_file(facts: dict, number: int, to: int, kind: int) -> str:
    values, ends = iter(facts["link_kinds"][kind].split()), {"node_from": number, "node_to": to}
    return "".join(f"{field} {ends[field] if field in ends else next(values)}\n" for field in facts["link_fields"])


def take_over(amd: Amd):
    nodes = real_nodes()
    assert len(nodes) == 65 and sum(len(links) for _, links in nodes) == 4034
    for number, (of, links) in enumerate(nodes):
        made = amd.sys / NODES / str(number)
        (made / "properties").write_text("".join(f"{key} {value}\n" for key, value in of.items()))
        shutil.rmtree(made / "io_links")
        for at, text in enumerate(links):
            (made / f"io_links/{at}").mkdir(parents=True)
            (made / f"io_links/{at}/properties").write_text(text)
        if of["drm_render_minor"] != "0":
            gpu = amd.model.buses.index(int(of["location_id"]) >> 8)
            amd.write(f"{amd.folder(gpu)}/unique_id", f"{int(of['unique_id']):016x}\n")
    for gpu in range(8):  # rocm-smi 5.2 precedes MI300, which has no voltage
        amd.write(f"{amd.folder(gpu)}/hwmon/hwmon{gpu}/in0_label", "vddgfx\n")
