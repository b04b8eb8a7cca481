"""A machine with AMD's accelerators as a tree of files below /sys and /dev, as amdgpu shows them (Linux 6.12; the packaged driver where it differs). MACHINES lists
them. Where `answers` says so, the files of the modes answer as the kernel does: they refuse what it refuses, and a mode that is written changes the topology; and
the counters of gpu_metrics grow with the clock. All others do not act: a test writes what it wants to have changed."""
import dataclasses
import errno
import os
import re
import shutil
import stat
import struct
import subprocess
import threading
import time
from pathlib import Path

from answering import Answering, Later, in_memory, unmount

UNKNOWN = 0xffff  # a 16-bit field of gpu_metrics that has no value
OTHER, PCIE, XGMI = 1, 2, 11  # types of links (CRAT_IOLINK_TYPE_…)


PARTS = {"SPX": 1, "DPX": 2, "QPX": 4}  # CPX: one for each chiplet
NODES = "class/kfd/kfd/topology/nodes"
# What the kernel shows of a PCI function whatever driver has it.
OF_PCI = {"uevent", "config", "resource", "vendor", "device", "class", "subsystem_vendor", "subsystem_device", "revision", "irq", "numa_node", "local_cpulist",
          "max_link_speed", "current_link_speed", "max_link_width", "current_link_width"}


@dataclasses.dataclass(frozen=True)
class Model:
    """GPUs of one kind, and how a machine has them."""
    device: int
    name: str  # in the board's EEPROM, as `product_name`
    number: str  # likewise, `product_number`; empty: not known to us, and absent
    gfx: int
    units: int
    memory: int  # bytes
    buses: tuple
    xccs: int = 1
    fits: dict = dataclasses.field(default_factory=dict)  # compute modes, and the memory modes in which the driver has each; none: no partitions
    memory_modes: str = ""
    hive: int = 8  # GPUs that xGMI links
    dies: int = 1  # GPUs of one card. The first measures the power of both (Linux, aldebaran_ppt.c, aldebaran_is_primary)

    @property
    def mi200(self) -> bool:
        return self.gfx == 90010


@dataclasses.dataclass(frozen=True)
class Machine:
    model: Model
    mode: str = "SPX"
    memory: str = "NPS1"
    board: bool = False
    spelling: tuple = ("_",)
    first: int = 0
    same_id: tuple = ()  # GPUs that have the id of the first of them
    absent: tuple = ()  # files and folders below /sys; {5} is the folder of GPU 5's PCI function
    beside: dict = dataclasses.field(default_factory=dict)  # files with other contents than the driver's


OAMS = (0x05, 0x27, 0x47, 0x65, 0x85, 0xa7, 0xc7, 0xe5)
MI300 = {"SPX": ("NPS1",), "DPX": ("NPS1", "NPS2"), "QPX": ("NPS1", "NPS4"), "CPX": ("NPS1", "NPS4")}
MI350 = {"SPX": ("NPS1",), "DPX": ("NPS1", "NPS2"), "QPX": ("NPS1", "NPS2"), "CPX": ("NPS1", "NPS2")}
MI300X = Model(0x74a1, "AMD Instinct MI300X OAM", "102-G30211-00", 90402, 304, 192 << 30, OAMS, 8, MI300, "NPS1, NPS4")
MI308X = Model(0x74a2, "AMD Instinct MI308X OAM", "", 90402, 80, 192 << 30, OAMS, 4, {mode: MI300[mode] for mode in ("SPX", "DPX", "CPX")}, "NPS1, NPS4")
MI355X = Model(0x75a3, "AMD Instinct MI355 OAM", "", 90500, 256, 288 << 30, OAMS, 8, MI350, "NPS1, NPS2")
MI210 = Model(0x740f, "AMD Instinct MI210", "102-D67305-00", 90010, 104, 64 << 30, (0x63, 0x43, 0x03, 0x27, 0xe3, 0xc3, 0x83, 0xa3), hive=4)
MI250X = Model(0x7408, "AMD Instinct MI250X", "102-D65209-0C", 90010, 110, 64 << 30,
               (0xc1, 0xc6, 0xc9, 0xce, 0xd1, 0xd6, 0xd9, 0xde, 0x31, 0x36, 0x39, 0x3e, 0x41, 0x46, 0x49, 0x4e), dies=2)
MACHINES = {
    "mi300x": Machine(MI300X),
    "mi308x": Machine(MI308X),
    "mi355x": Machine(MI355X),
    "mi210": Machine(MI210),
    "mi250x": Machine(MI250X),
    # On the machine of penstock-sim that has NVIDIA's GPUs, whose display devices come first.
    "two-vendors": Machine(MI210, first=16),
    # A virtual machine with a virtual function of each GPU, of which its driver reads no EEPROM and counts no errors.
    "guest": Machine(dataclasses.replace(MI300X, device=0x74b5, fits={}, memory_modes=""),
                     absent=tuple(f"{{{gpu}}}/{name}" for gpu in range(8) for name in ("serial_number", "product_name", "product_number", "manufacturer", "ras"))),
    # Partitions of a GPU have the nodes of KFD from 2 + 8 * GPU on.
    "oddities": Machine(
        MI300X, mode="CPX", board=True, spelling=("_", "."), same_id=(1, 2),
        absent=(f"{NODES}/33", f"{NODES}/34/mem_banks", f"{NODES}/42/io_links", f"{NODES}/43/gpu_id", "{5}/product_name", "{5}/vbios_version", "{5}/ras", "{6}/numa_node"),
        beside={f"{NODES}/66/properties": "", f"{NODES}/67/gpu_id": "7\n", f"{NODES}/10/io_links/90/properties": "type 11\nnode_from 10\nnode_to 4000\nweight 41\n",
                f"{NODES}/11/io_links/90/properties": "type\nnode_to 3 4\n\0\xff", "{4}/gpu_metrics": b"\x08\0\x01\x0c\0\0\0\0",
                "{6}/mem_info_vram_total": f"{2**64 - 1}\n", "{7}/product_name": "\xff\xfe\n".encode("latin-1")}),
}
VIDEO, RENDER = 44, 106  # groups of the device files, as on Debian
MINORS = 64  # of cards, and of render nodes


class Slow:
    """A change of a GPU's mode that takes until `end` is set. `begun` is set while it is under way."""

    def __init__(self):
        self.begun, self.end = threading.Event(), threading.Event()


def link(kind: int, start: int, end: int, weight: int) -> dict:
    return {"type": kind, "version_major": 0, "version_minor": 0, "node_from": start, "node_to": end, "weight": weight, "min_latency": 0, "max_latency": 0,
            "min_bandwidth": 0, "max_bandwidth": 0, "recommended_transfer_size": 0, "flags": 1}


def lines(values: dict) -> str:
    return "".join(f"{name} {value}\n" for name, value in values.items())


def profile(*rules: tuple, skipped: tuple = (), memory: str = "NPS1") -> dict:
    """Of DCM's config.json: (mode, number of GPUs) each."""
    return {"skippedGPUs": {"ids": list(skipped)},
            "profiles": [{"computePartition": mode, "memoryPartition": memory, "numGPUsAssigned": count} for mode, count in rules]}


def put(path: str, text: str):
    """As Path.write_text, which is slow where there are thousands."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.write(file, text.encode())
    os.close(file)


def list_of(folder: str, all_values: list[dict]):
    """Numbered folders with a file `properties` each."""
    os.mkdir(folder)
    for number, values in enumerate(all_values):
        os.mkdir(f"{folder}/{number}")
        put(f"{folder}/{number}/properties", lines(values))


class Amd:
    """`model`: of MACHINES, whose properties the arguments of the same names replace. `board`: the BMC's card takes the first of the 64 minors of cards, so that a
    partition is left without. `first`: of the minors, where another vendor's devices have those before. `high`: Linux' driver writes the number of a partition into the highest bits of its location, the packaged one into the lowest. `spelling`: of the partitions'
    platform devices. `answers`: files answer, until `close`. `inside`: the command that enters the mount namespace of the programs that read. `any_process`: any process of
    KFD keeps all GPUs from being divided, as up to Linux 6.12; else only those that have this GPU. `metrics`: the version of an MI300's gpu_metrics, 1.5 (Linux 6.12) or
    1.8. `clock`: in seconds, by which counters grow. `on_disk`: also where many files change, for a root that others see under another path: no mount of ours is there."""

    def __init__(self, root: Path, model: str = "mi300x", gpus: int = 8, mode: str | None = None, memory: str | None = None, board: bool | None = None,
                 high: bool = False, spelling: str | None = None, answers: bool = False, any_process: bool = True, inside: tuple = (), first: int | None = None,
                 metrics: str = "1.5", clock=time.monotonic, on_disk: bool = False):
        self.root, self.sys, self.dev = root, root / "sys", root / "dev"
        given = {"mode": mode, "memory": memory, "board": board, "spelling": spelling and (spelling,), "first": first}
        self.machine = dataclasses.replace(MACHINES[model], **{name: value for name, value in given.items() if value is not None})
        self.model, self.memory = self.machine.model, self.machine.memory
        self.gpus, self.high, self.any_process, self.metrics, self.inside = gpus, high, any_process, metrics, inside
        self.clock, self.began = clock, clock()
        self.made = []  # device files
        self.generation = 1
        self.written: list[tuple[int, str]] = []  # modes that were written, by GPU
        self.ignores: set[int] = set()  # GPUs whose writes succeed and change nothing
        self.resetting: set[int] = set()  # GPUs whose writes are refused
        self.slow: dict[int, Slow] = {}  # GPUs whose modes change slowly
        self.unloads_after: int | None = None  # the GPU after whose change of mode the driver is unloaded
        self.requested: dict[int, str] = {}  # memory modes, which take effect with `reload`
        self.loads: list[str] = []  # what `modprobe` was called with
        self.readings: dict[int, dict] = {}
        self.in_memory = os.geteuid() == 0 and not on_disk
        if self.in_memory:
            in_memory(self.sys / "class/kfd", inside)  # 4,000 files at each change of a mode
        self.answering = Answering(self.sys / "answering", inside) if answers else None
        self.write("module/amdgpu/initstate", "live\n")
        self.modes = [self.machine.mode] * gpus
        self.minors = self.probe()
        self.processes: dict[int, tuple] = {}  # of KFD, by pid: their GPUs
        for gpu in range(gpus if answers else 0):
            self.answer(gpu)
        self.switch(self.machine.mode)

    # Files.

    def write(self, path: str, content: str | bytes):
        file = self.sys / path
        file.parent.mkdir(parents=True, exist_ok=True)
        beside = file.with_name(file.name + ".new")
        beside.write_bytes(content if isinstance(content, bytes) else content.encode())
        beside.rename(file)

    def link(self, path: str, target: str):
        """A relative link, as in sysfs; `target` is below /sys."""
        file = self.sys / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        file.symlink_to(os.path.relpath(self.sys / target, file.parent))

    def node(self, name: str, major: int, minor: int, group: int):
        file = self.dev / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if os.geteuid() == 0 and not file.exists():
            os.mknod(file, stat.S_IFCHR | 0o660, os.makedev(major, minor))
            os.chown(file, 0, group)
            self.made.append(file)

    # What the driver makes when it is loaded.

    def address(self, gpu: int) -> str:
        return f"0000:{self.model.buses[gpu]:02x}:00.0"

    def unique_id(self, gpu: int) -> int:
        gpu = min(self.machine.same_id) if gpu in self.machine.same_id else gpu
        return 0xe3aa1c5bd7b5f051 + gpu * 0x1111

    def id(self, gpu: int) -> str:
        return f"GPU-{self.unique_id(gpu):016x}"

    def parts(self, gpu: int) -> int:
        """In the mode that it has; the driver has DRM devices for fewer where it ran out of minors."""
        return PARTS.get(self.modes[gpu], self.model.xccs)

    def folder(self, gpu: int) -> str:
        return f"devices/pci0000:00/{self.address(gpu)}"

    def probe(self) -> list[list[int]]:
        """The control file, PCI functions with their DRM devices, and the platform devices of possible partitions, in the order in which the driver makes them.
        Returns the render nodes' minors of each GPU; there are none left for the last partition where the BMC has a card."""
        self.write("class/kfd/kfd/dev", "511:0\n")
        self.node("kfd", 511, 0, RENDER)
        free = list(range(self.machine.first, MINORS - (1 if self.machine.board else 0)))
        minors, xcps = [], 0
        if self.machine.board:
            self.bmc()
        for gpu in range(self.gpus):
            folder = self.folder(gpu)
            self.function(folder, 0x1002, self.model.device, 0x120000, "amdgpu")
            speed = "16.0 GT/s PCIe" if self.model.mi200 else "32.0 GT/s PCIe"
            for name, text in {"numa_node": self.numa(gpu), "local_cpulist": "64-127" if self.numa(gpu) else "0-63", "product_name": self.model.name,
                               "product_number": self.model.number, "manufacturer": "AMD", "max_link_speed": speed, "current_link_speed": speed,
                               "max_link_width": 16, "current_link_width": 16, "gpu_busy_percent": 37, "mem_busy_percent": 5,
                               "mem_info_vis_vram_total": self.model.memory, "mem_info_vis_vram_used": 1 << 29,
                               "mem_info_gtt_total": 512 << 30, "mem_info_gtt_used": 3 << 20,
                               "pp_dpm_sclk": "0: 500Mhz\n1: 800Mhz *\n2: 1700Mhz" if self.model.mi200 else "S: 19Mhz *\n0: 132Mhz\n1: 2100Mhz",
                               "pp_dpm_mclk": "0: 900Mhz *\n1: 1300Mhz", "pp_dpm_socclk": "0: 800Mhz *",
                               "serial_number": f"69254700{gpu:04d}", "vbios_version": "113-M3000100-102",
                               "mem_info_vram_total": self.model.memory, "mem_info_vram_used": 1 << 30, "mem_info_vram_vendor": "hynix", "unique_id": f"{self.unique_id(gpu):016x}"}.items():
                if text != "":
                    self.write(f"{folder}/{name}", f"{text}\n")
            # Each block is compiled in; those with counts have a file.
            self.write(f"{folder}/ras/features", "feature mask: 0x7\numc: multi_uncorrectable\nsdma: multi_uncorrectable\ngfx: multi_uncorrectable\n")
            for block in ("umc", "gfx", "sdma", "mmhub"):
                self.errors(gpu, block)
            self.write(f"{folder}/ras/gpu_vram_bad_pages", "")
            self.measure(gpu)
            minors.append([])
            for part in range(8 if self.model.fits else 1):
                if not free:
                    break
                place = folder
                if part:
                    spelling = self.machine.spelling[gpu % len(self.machine.spelling)]
                    place, xcps = f"devices/platform/amdgpu_xcp{spelling}{xcps}", xcps + 1
                    self.write(f"{place}/uevent", "MODALIAS=platform:amdgpu_xcp\n")
                minors[-1].append(self.drm(place, free.pop(0)))
        return minors

    def numa(self, gpu: int) -> int:
        return gpu * 2 // self.gpus

    def function(self, folder: str, vendor: int, device: int, kind: int, driver: str):
        """What the kernel itself shows of a PCI function: the first 64 bytes of its configuration space, among others."""
        address = folder.rpartition("/")[2]
        self.link(f"bus/pci/devices/{address}", folder)
        self.link(f"bus/pci/drivers/{driver}/{address}", folder)
        self.link(f"{folder}/driver", f"bus/pci/drivers/{driver}")
        self.write(f"{folder}/uevent", f"DRIVER={driver}\nPCI_CLASS={kind:X}\nPCI_ID={vendor:04X}:{device:04X}\nPCI_SLOT_NAME={address}\n")
        config = struct.pack("<HHHHI4xB", vendor, device, 0x0406, 0x0010, kind << 8, 0).ljust(44, b"\0") + struct.pack("<HH", vendor, device)
        self.write(f"{folder}/config", config.ljust(64, b"\0"))
        self.write(f"{folder}/resource", "0x0000000000000000 0x0000000000000000 0x0000000000000000\n" * 13)
        for name, text in {"vendor": f"0x{vendor:04x}", "device": f"0x{device:04x}", "class": f"0x{kind:06x}", "subsystem_vendor": f"0x{vendor:04x}",
                           "subsystem_device": f"0x{device:04x}", "revision": "0x00", "irq": "0"}.items():
            self.write(f"{folder}/{name}", f"{text}\n")

    def bmc(self):
        """The display of the board's management controller: a card without a render node."""
        folder = "devices/pci0000:00/0000:02:00.0"
        self.function(folder, 0x1a03, 0x2000, 0x030000, "ast")
        self.drm_device(folder, "card0", 0, VIDEO)

    def drm(self, place: str, number: int) -> int:
        """Returns the minor of the render node. Those of cards are counted apart."""
        card = self.card(128 + number)
        self.drm_device(place, f"card{card}", card, VIDEO)
        self.drm_device(place, f"renderD{128 + number}", 128 + number, RENDER)
        return 128 + number

    def card(self, render: int) -> int:
        return render - 128 + (1 if self.machine.board else 0)

    def drm_device(self, place: str, name: str, minor: int, group: int):
        self.write(f"{place}/drm/{name}/dev", f"226:{minor}\n")
        self.link(f"{place}/drm/{name}/device", place)
        self.link(f"class/drm/{name}", f"{place}/drm/{name}")
        self.node(f"dri/{name}", 226, minor, group)

    # What changes while it is loaded.

    def switch(self, mode: str, memory: str | None = None, gpus: tuple | None = None):
        """Changes the compute mode of these GPUs, by default of all: only the topology and the files that say so change, and no event is sent."""
        self.memory = memory or self.memory
        for gpu in range(self.gpus) if gpus is None else gpus:
            self.modes[gpu] = mode
        if self.model.fits:
            for gpu in range(self.gpus):
                files = {"available_compute_partition": ", ".join(self.model.fits), "available_memory_partition": self.model.memory_modes}
                if not self.answering:
                    files.update(current_compute_partition=self.modes[gpu], current_memory_partition=self.memory)
                for name, text in files.items():
                    self.write(f"{self.folder(gpu)}/{name}", f"{text}\n")
        self.topology()

    def answer(self, gpu: int):
        """The files of a GPU's modes and of its measurements answer."""
        self.answering.add(f"{self.address(gpu)}-metrics", lambda: self.table(gpu))
        if self.model.fits:
            self.answering.add(f"{self.address(gpu)}-mode", lambda: f"{self.modes[gpu]}\n", lambda text: self.written_to(gpu, text))
            self.answering.add(f"{self.address(gpu)}-memory", lambda: f"{self.memory}\n", lambda text: self.requests(gpu, text))
        self.show_answers(gpu)

    def show_answers(self, gpu: int):
        self.link(f"{self.folder(gpu)}/gpu_metrics", f"answering/{self.address(gpu)}-metrics")
        if self.model.fits:
            self.link(f"{self.folder(gpu)}/current_compute_partition", f"answering/{self.address(gpu)}-mode")
            self.link(f"{self.folder(gpu)}/current_memory_partition", f"answering/{self.address(gpu)}-memory")

    def requests(self, gpu: int, text: str):
        """As current_memory_partition_store (Linux, drivers/gpu/drm/amd/amdgpu/amdgpu_gmc.c): nothing changes before the driver is loaded again, and a request of the
        present mode is skipped, so that an earlier one stays."""
        mode = text.strip().upper()
        self.written.append((gpu, mode))
        if mode not in self.model.memory_modes.split(", "):
            raise OSError(errno.EINVAL, text)
        if mode != self.memory:
            self.requested[gpu] = mode

    def written_to(self, gpu: int, text: str):
        """As amdgpu_gfx_set_compute_partition (Linux, drivers/gpu/drm/amd/amdgpu/amdgpu_gfx.c, amdgpu_xcp.c, aqua_vanjaram.c)."""
        if (slow := self.slow.get(gpu)) and not slow.end.is_set():
            slow.begun.set()
            raise Later(slow.end)
        mode = next((word for word in self.model.fits if text.upper().startswith(word)), None)
        self.written.append((gpu, text.strip()))
        if mode is None or self.memory not in self.model.fits[mode]:
            raise OSError(errno.EINVAL, text)
        if gpu in self.resetting:
            raise OSError(errno.EPERM, text)
        if mode == self.modes[gpu]:
            return
        if any(self.any_process or gpu in gpus for gpus in self.processes.values()):
            raise OSError(errno.EBUSY, text)
        if gpu not in self.ignores:
            self.switch(mode, gpus=(gpu,))
        if gpu == self.unloads_after:
            self.unload()

    def process(self, pid: int, gpus: tuple = ()):
        """A process that has opened /dev/kfd, and has these GPUs."""
        self.processes[pid] = gpus
        self.show_processes()

    def ends(self, pid: int):
        del self.processes[pid]
        shutil.rmtree(self.sys / f"class/kfd/kfd/proc/{pid}")

    def show_processes(self):
        for pid, gpus in self.processes.items():
            shutil.rmtree(self.sys / f"class/kfd/kfd/proc/{pid}", ignore_errors=True)
            self.write(f"class/kfd/kfd/proc/{pid}/pasid", "32770\n")
            for number in (number for number, gpu in self.nodes.items() if gpu in gpus):
                self.write(f"class/kfd/kfd/proc/{pid}/vram_{self.gpu_id(number)}", f"{1 << 20}\n")

    @staticmethod
    def gpu_id(node: int) -> int:
        return (node * 7919) & 0xffff

    def close(self):
        if self.answering:
            self.answering.close()
        if self.in_memory:
            unmount(self.sys / "class/kfd", self.inside)

    def topology(self, skip: tuple = ()):
        """Writes KFD's topology without the GPUs to skip, with a new generation."""
        nodes, former, shown = (self.sys / f"class/kfd/kfd/topology/{name}" for name in ("new", "former", "nodes"))
        places = [(gpu, part) for gpu in range(self.gpus) if gpu not in skip for part in range(min(self.parts(gpu), len(self.minors[gpu])))]
        self.nodes = {number: gpu for number, (gpu, _) in enumerate(places, 2)}
        nodes.mkdir(parents=True)
        for cpu in range(2):
            links = [link(OTHER, cpu, 1 - cpu, 32)]
            links += [link(PCIE, cpu, number, 20) for number, gpu in self.nodes.items() if self.numa(gpu) == cpu]
            self.node_of(f"{nodes}/{cpu}", "", 0, {"io_links": links}, cpu_cores_count=64, simd_count=0, mem_banks_count=0, drm_render_minor=0)
        for number, (gpu, part) in enumerate(places, 2):
            parts = self.parts(gpu)
            location = self.model.buses[gpu] << 8 | (part << 28 if self.high else part)
            links = {"io_links": [link(PCIE, number, self.numa(gpu), 20)], "p2p_links": []}
            for peer, (other, _) in enumerate(places, 2):
                if peer != number:
                    kind, weight = self.joined(gpu, other)
                    links["io_links" if kind == XGMI else "p2p_links"].append(link(kind, number, peer, weight))
            self.node_of(f"{nodes}/{number}", self.model.name, self.gpu_id(number), links, cpu_cores_count=0, simd_count=self.model.units * 4 // parts,
                         mem_banks_count=1, simd_per_cu=4, gfx_target_version=self.model.gfx, vendor_id=0x1002, device_id=self.model.device, location_id=location,
                         domain=0, drm_render_minor=self.minors[gpu][part], hive_id=15188982192727901047 + gpu // self.model.hive,
                         unique_id=self.unique_id(gpu), num_xcc=self.model.xccs // parts, array_count=8, simd_arrays_per_engine=1,
                         cu_per_simd_array=self.model.units // parts // 8, max_waves_per_simd=8, wave_front_size=64, lds_size_in_kb=64, num_cp_queues=24,
                         max_engine_clk_fcompute=2100, fw_version=92)
            list_of(f"{nodes}/{number}/mem_banks", [{"heap_type": 1, "size_in_bytes": self.model.memory // parts, "flags": 0, "width": 8192}])
        if shown.exists():
            shown.rename(former)
        nodes.rename(shown)
        shutil.rmtree(former, ignore_errors=True)
        self.deviate()
        self.show_processes()
        self.generation += 1
        self.write("class/kfd/kfd/topology/generation_id", f"{self.generation}\n")

    def joined(self, gpu: int, other: int) -> tuple[int, int]:
        """Type and weight of the link of two GPUs, or of partitions of one. As on the machines that ROCm's k8s-device-plugin keeps in testdata (MI300X, MI210); how many
        hops are between the cards of MI250X differs by machine."""
        if gpu // self.model.hive != other // self.model.hive:
            return PCIE, 72
        if not self.model.mi200:
            return XGMI, 13 if gpu == other else 41
        return XGMI, 15 if self.model.dies == 1 or gpu // 2 == other // 2 else 30

    @staticmethod
    def node_of(folder: str, name: str, gpu_id: int, links: dict, **values: int):
        os.mkdir(folder)
        counts = {f"{kind}_count": len(its) for kind, its in links.items()}
        put(f"{folder}/properties", lines(values | counts))
        put(f"{folder}/gpu_id", f"{gpu_id}\n")
        put(f"{folder}/name", f"{name.split()[-1].lower() if name else ''}\n")
        for kind, its in links.items():
            list_of(f"{folder}/{kind}", its)

    def deviate(self):
        """Removes and replaces what this machine has otherwise than the driver makes it."""
        folders = [self.folder(gpu) for gpu in range(self.gpus)]
        for path in self.machine.absent:
            file = self.sys / path.format(*folders)
            if file.is_dir():
                shutil.rmtree(file)
            else:
                file.unlink(missing_ok=True)
        for path, content in self.machine.beside.items():
            self.write(path.format(*folders), content)

    def errors(self, gpu: int, block: str, uncorrectable: int = 0, correctable: int = 0, text: str | None = None):
        self.write(f"{self.folder(gpu)}/ras/{block}_err_count", text or f"ue: {uncorrectable}\nce: {correctable}\n" + ("de: 0\n" if block == "umc" else ""))

    def says(self, gpu: int, text: str, tag: str = "amdgpu: "):
        """A line of the driver in the kernel's log."""
        self.logs(f"amdgpu {self.address(gpu)}: {tag}{text}")

    def logs(self, text: str):
        log = self.root / "dev/kmsg"
        records = log.read_text().splitlines()
        sequence = int(records[-1].split(",")[1]) + 1 if records else 1
        with open(log, "a") as kernel:
            kernel.write(f"3,{sequence},{time.monotonic_ns() // 1000},-;{text}\n")

    def measure(self, gpu: int, hotspot: int = 47, memory: int = 41, power: int = 140, busy: int = 37, energy: int = 65536 * 9):
        """What gpu_metrics and hwmon have of a GPU, in °C, W and %, with the energy at the start in 2^-16 J."""
        if gpu % self.model.dies:
            power, energy = 0, 0
        self.readings[gpu] = {"hotspot": hotspot, "memory": memory, "power": power, "busy": busy, "energy": energy}
        self.write(f"{self.folder(gpu)}/gpu_busy_percent", f"{busy}\n")
        self.monitor(gpu)
        if not self.answering:
            self.write(f"{self.folder(gpu)}/gpu_metrics", self.table(gpu))

    def monitor(self, gpu: int):
        """MI300 has no temperature at its edge, and measures power now, not on average (Linux, amdgpu_pm.c)."""
        its, folder = self.readings[gpu], f"{self.folder(gpu)}/hwmon/hwmon{gpu}"
        files = {"name": "amdgpu", "temp2_label": "junction", "temp2_input": its["hotspot"] * 1000, "temp3_label": "mem", "temp3_input": its["memory"] * 1000,
                 "freq1_label": "sclk", "freq1_input": 132000000, "freq2_label": "mclk", "freq2_input": 900000000,
                 "power1_cap": 750000000, "power1_cap_max": 750000000, "power1_cap_min": 0,
                 "power1_average" if self.model.mi200 else "power1_input": its["power"] * 1000000}
        if self.model.mi200:
            files |= {"temp1_label": "edge", "temp1_input": (its["hotspot"] - 9) * 1000, "in0_label": "vddgfx", "in0_input": 806}
        for name, value in files.items():
            self.write(f"{folder}/{name}", f"{value}\n")
        self.link(f"{folder}/device", self.folder(gpu))
        self.link(f"class/hwmon/hwmon{gpu}", folder)

    def table(self, gpu: int) -> bytes:
        """Version 1.3 of gpu_metrics for MI200, 1.5 or 1.8 for MI300 (drivers/gpu/drm/amd/include/kgd_pp_interface.h). Counters grow only in a file that answers."""
        seconds = self.clock() - self.began if self.answering else 0
        hotspot, memory, power, busy, energy = self.readings[gpu].values()
        energy += int(power * seconds * 65536)
        if self.model.mi200:
            table = bytearray(b"\xff" * 120)
            struct.pack_into("<HBB10HQ", table, 0, 120, 1, 3, hotspot - 9, hotspot, memory, UNKNOWN, UNKNOWN, UNKNOWN, busy, 5, UNKNOWN, power, energy)
            struct.pack_into("<3H", table, 54, 1700, 800, 1600)
            struct.pack_into("<4H", table, 88, 40, 41, 42, 43)
        elif self.metrics == "1.5":
            table = bytearray(b"\xff" * 360)
            struct.pack_into("<HBB6H", table, 0, 360, 1, 5, hotspot, memory, UNKNOWN, power, busy, 5)
            struct.pack_into("<Q", table, 88, energy)
            struct.pack_into("<HH", table, 112, 16, 320)
            struct.pack_into("<H", table, 312, 2100)
        else:
            grown = int(1000 * seconds)
            table = bytearray(b"\xff" * 3872)
            struct.pack_into("<HBB6HQQ", table, 0, 3872, 1, 8, hotspot, memory, UNKNOWN, power, busy, 5, 5300, energy)
            struct.pack_into("<6I", table, 40, 100000 + grown, 1, 22, 3, 4, 5)  # intervals, and those in which it throttled
            struct.pack_into("<HH", table, 68, 16, 320)
            struct.pack_into("<5Q2I", table, 88, 7000 + gpu + grown, 77, 6, 5, 4, 3, 2)  # PCIe
            struct.pack_into("<16Q", table, 136, *(1000 * link + gpu + grown for link in range(16)))  # xGMI: received, sent
            struct.pack_into("<8H", table, 296, *(2100 - xcc if xcc < self.model.xccs else UNKNOWN for xcc in range(8)))
            struct.pack_into("<4H", table, 312, 800, 801, 802, 803)
            struct.pack_into("<H", table, 336, 1300)
            for part in range(8):
                at = 344 + 440 * part
                own = self.model.xccs // self.parts(gpu) if part < self.parts(gpu) else 0
                struct.pack_into("<8I", table, at, *(10 * part + xcc if xcc < own else 0xffffffff for xcc in range(8)))
                struct.pack_into("<4H", table, at + 112, 11, 12, 13, 14)
                struct.pack_into("<Q", table, at + 184, 900 + part)
        return bytes(table)

    def reload(self):
        """As rmmod and modprobe of amdgpu, of which only the end can be seen: the module's folder is another one, and the modes are those of a driver that starts."""
        shutil.rmtree(self.sys / "module/amdgpu", ignore_errors=True)
        self.write("module/amdgpu/initstate", "live\n")
        if self.model.fits:
            self.start_modes()

    def start_modes(self):
        """The last request of a memory mode is that of all GPUs that xGMI links, and they have the first compute mode that fits."""
        memory = next(reversed(self.requested.values()), self.memory)
        self.requested.clear()
        self.switch(next(mode for mode, memories in self.model.fits.items() if memory in memories), memory=memory)

    def modprobe(self):
        """The machine has a modprobe, which waits while there is a FIFO /gate and fails where a process of KFD is, and a shell for those who enter its root."""
        self.answering.add("modprobe", lambda: "", self.probed)
        libraries = re.findall(r"(/\S+) \(0x", subprocess.run(["ldd", "/bin/sh"], check=True, capture_output=True, text=True).stdout)
        for file in ["/bin/sh", *libraries]:
            copy = self.root / file[1:]
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, copy)
        if not (self.root / "dev/null").exists():
            os.mknod(self.root / "dev/null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        program = self.root / "usr/sbin/modprobe"
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text('#!/bin/sh\n[ ! -p /gate ] || read open < /gate\necho "$@" 2>/dev/null >/sys/answering/modprobe || { echo "modprobe: FATAL: Module amdgpu is in use."; exit 1; }\n')
        program.chmod(0o755)

    def probed(self, text: str):
        self.loads.append(text.strip())
        if text.startswith("-r") and self.processes:
            raise OSError(errno.EBUSY, text)
        if text.startswith("-r"):
            shutil.rmtree(self.sys / "module/amdgpu")
        else:
            self.reload()

    def unload(self):
        """As rmmod amdgpu."""
        shutil.rmtree(self.sys / "module/amdgpu")
        shutil.rmtree(self.sys / "class/kfd", ignore_errors=self.in_memory)
        for file in self.made:
            file.unlink()
            (self.sys / "class/drm" / file.name).unlink(missing_ok=True)
        self.made.clear()
        for gpu in range(self.gpus):
            (self.sys / f"class/hwmon/hwmon{gpu}").unlink(missing_ok=True)
            for file in (self.sys / self.folder(gpu)).iterdir():
                if not file.is_symlink() and file.is_dir():  # what answers may be waiting for this
                    shutil.rmtree(file)
                elif file.name not in OF_PCI:
                    file.unlink()

    def load(self):
        """As modprobe amdgpu after `unload`. The module is seen last: an agent that saw it without devices would look again only seconds later."""
        self.minors = self.probe()
        for gpu in range(self.gpus if self.answering else 0):
            self.show_answers(gpu)
        if self.model.fits:
            self.start_modes()
        else:
            self.switch(self.machine.mode)
        self.write("module/amdgpu/initstate", "live\n")
