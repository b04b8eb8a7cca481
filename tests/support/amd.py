"""A machine with AMD's accelerators as a tree of files below /sys and /dev, as amdgpu shows them (Linux 6.12; the packaged driver where it differs): MI300X in each of
its compute modes, MI210. Of the files, those of the compute mode answer where `answers` says so, as the kernel does: they refuse what it refuses, and a mode that is
written changes the topology. All others do not act: a test writes what it wants to have changed."""
import errno
import os
import shutil
import stat
import struct
import time
from pathlib import Path

from answering import Answering, in_memory, unmount

UNKNOWN = 0xffff  # a 16-bit field of gpu_metrics that has no value


class Model:
    def __init__(self, device: int, name: str, number: str, gfx: int, xccs: int, units: int, memory: int, modes: str, buses: list[int]):
        self.device, self.name, self.number, self.gfx, self.xccs, self.units = device, name, number, gfx, xccs, units
        self.memory, self.modes, self.buses = memory, modes, buses


MODELS = {
    "mi300x": Model(0x74a1, "AMD Instinct MI300X OAM", "102-G30211-00", 90402, 8, 304, 192 << 30, "SPX, DPX, QPX, CPX", [0x05, 0x26, 0x46, 0x65, 0x85, 0xa6, 0xc6, 0xe5]),
    "mi210": Model(0x740f, "AMD Instinct MI210", "102-D67305-00", 90010, 1, 104, 64 << 30, "", [0x63, 0x43, 0x03, 0x27, 0xe3, 0xc3, 0x83, 0xa3]),
}
PARTS = {"SPX": 1, "DPX": 2, "QPX": 4, "CPX": 8}
FITS = {"SPX": ("NPS1",), "DPX": ("NPS1", "NPS2"), "QPX": ("NPS1", "NPS4"), "CPX": ("NPS1", "NPS4")}
VIDEO, RENDER = 44, 106  # groups of the device files, as on Debian
MINORS = 64  # of cards, and of render nodes


class Amd:
    """`board`: the BMC's card takes the first of the 64 minors, so that a partition is left without. `first`: of the minors, where another vendor's devices have those
    before. `high`: Linux' driver writes the number of a partition into the highest bits of its location, the packaged one into the lowest. `spelling`: of the partitions'
    platform devices. `answers`: the files of the compute mode answer, until `close`, in the mount namespace that the command `inside` enters. `any_process`: any process of
    KFD keeps all GPUs from being divided, as up to Linux 6.12; else only those that have this GPU. `metrics`: the version of an MI300's gpu_metrics, 1.5 (Linux 6.12) or
    1.8."""

    def __init__(self, root: Path, model: str = "mi300x", gpus: int = 8, mode: str = "SPX", memory: str = "NPS1", board: bool = False, high: bool = False,
                 spelling: str = "_", answers: bool = False, any_process: bool = True, inside: tuple = (), first: int = 0, metrics: str = "1.5"):
        self.root, self.sys, self.dev = root, root / "sys", root / "dev"
        self.model, self.gpus, self.memory, self.board, self.high, self.spelling = MODELS[model], gpus, memory, board, high, spelling
        self.any_process, self.in_memory, self.metrics = any_process, answers and not inside, metrics
        self.first, self.made = first, []  # device files
        self.generation = 1
        self.written: list[tuple[int, str]] = []  # modes that were written, by GPU
        self.ignores: set[int] = set()  # GPUs whose writes succeed and change nothing
        self.resetting: set[int] = set()
        self.answering = Answering(self.sys / "answering", inside) if answers else None
        if self.in_memory:
            in_memory(self.sys / "class/kfd")  # 4,000 files at each change of a mode
        self.write("module/amdgpu/initstate", "live\n")
        self.write("class/kfd/kfd/dev", "511:0\n")
        self.node("kfd", 511, 0, RENDER)
        self.modes = [mode] * gpus
        self.minors = self.probe()
        self.processes: dict[int, tuple] = {}  # of KFD, by pid: their GPUs
        for gpu in range(gpus if answers else 0):
            self.answer(gpu)
        self.switch(mode)

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
        return 0xe3aa1c5bd7b5f051 + gpu * 0x1111

    def id(self, gpu: int) -> str:
        return f"GPU-{self.unique_id(gpu):016x}"

    def folder(self, gpu: int) -> str:
        return f"devices/pci0000:00/{self.address(gpu)}"

    def probe(self) -> list[list[int]]:
        """PCI functions with their DRM devices, and the platform devices of possible partitions, in the order in which the driver makes them. Returns the
        render nodes' minors of each GPU; there are none left for the last partition where the BMC has a card."""
        free = list(range(self.first + (1 if self.board else 0), MINORS))
        if self.board:
            self.write("class/drm/card0/dev", "226:0\n")
        minors, xcps = [], 0
        for gpu in range(self.gpus):
            folder, address = self.folder(gpu), self.address(gpu)
            self.link(f"bus/pci/devices/{address}", folder)
            for name, text in {"vendor": "0x1002", "device": f"0x{self.model.device:04x}", "class": "0x120000", "numa_node": gpu * 2 // self.gpus,
                               "local_cpulist": "0-63" if gpu < self.gpus / 2 else "64-127", "product_name": self.model.name,
                               "product_number": self.model.number, "manufacturer": "AMD", "max_link_speed": "32.0 GT/s PCIe",
                               "mem_info_vis_vram_total": self.model.memory, "mem_info_vis_vram_used": 1 << 29,
                               "mem_info_gtt_total": 512 << 30, "mem_info_gtt_used": 3 << 20,
                               "pp_dpm_sclk": "S: 19Mhz *\n0: 132Mhz\n1: 2100Mhz", "pp_dpm_mclk": "0: 900Mhz *\n1: 1300Mhz", "pp_dpm_socclk": "0: 800Mhz *",
                               "serial_number": f"69254700{gpu:04d}", "vbios_version": "113-M3000100-102",
                               "mem_info_vram_total": self.model.memory, "mem_info_vram_used": 1 << 30, "unique_id": f"{self.unique_id(gpu):016x}"}.items():
                self.write(f"{folder}/{name}", f"{text}\n")
            for block in ("umc", "gfx", "sdma", "mmhub"):
                self.errors(gpu, block)
            self.write(f"{folder}/ras/gpu_vram_bad_pages", "")
            self.measure(gpu)
            minors.append([])
            for part in range(8 if self.model.xccs > 1 else 1):
                if not free:
                    break
                place = folder
                if part:
                    place, xcps = f"devices/platform/amdgpu_xcp{self.spelling}{xcps}", xcps + 1
                self.drm(place, free.pop(0))
                minors[-1].append(self.last_render)
        return minors

    def drm(self, place: str, number: int):
        self.last_render = 128 + number
        for name, minor, group in ((f"card{number}", number, VIDEO), (f"renderD{self.last_render}", self.last_render, RENDER)):
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
        if self.model.modes:
            for gpu in range(self.gpus):
                files = {"available_compute_partition": self.model.modes, "current_memory_partition": self.memory, "available_memory_partition": "NPS1, NPS4"}
                if not self.answering:
                    files["current_compute_partition"] = self.modes[gpu]
                for name, text in files.items():
                    self.write(f"{self.folder(gpu)}/{name}", f"{text}\n")
        self.topology()

    def answer(self, gpu: int):
        """The file of a GPU's compute mode answers."""
        name = f"{self.address(gpu)}-mode"
        self.answering.add(name, lambda: f"{self.modes[gpu]}\n", lambda text: self.written_to(gpu, text))
        self.link(f"{self.folder(gpu)}/current_compute_partition", f"answering/{name}")

    def written_to(self, gpu: int, text: str):
        """As amdgpu_gfx_set_compute_partition (Linux, drivers/gpu/drm/amd/amdgpu/amdgpu_gfx.c, amdgpu_xcp.c, aqua_vanjaram.c)."""
        mode = next((word for word in PARTS if text.upper().startswith(word)), None)
        self.written.append((gpu, text.strip()))
        if mode is None or self.model.xccs % PARTS[mode] or self.memory not in FITS[mode]:
            raise OSError(errno.EINVAL, text)
        if gpu in self.resetting:
            raise OSError(errno.EPERM, text)
        if mode == self.modes[gpu]:
            return
        if any(self.any_process or gpu in gpus for gpus in self.processes.values()):
            raise OSError(errno.EBUSY, text)
        if gpu not in self.ignores:
            self.switch(mode, gpus=(gpu,))

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
            unmount(self.sys / "class/kfd")

    def topology(self, skip: tuple = ()):
        """Writes KFD's topology without the GPUs to skip, with a new generation."""
        nodes, former = "class/kfd/kfd/topology/new", self.sys / "class/kfd/kfd/topology/former"
        places = [(gpu, part) for gpu in range(self.gpus) if gpu not in skip for part in range(min(PARTS[self.modes[gpu]], len(self.minors[gpu])))]
        self.nodes = {number: gpu for number, (gpu, _) in enumerate(places, 2)}
        for cpu in range(2):
            self.properties(f"{nodes}/{cpu}", cpu_cores_count=64, simd_count=0, drm_render_minor=0)
            self.write(f"{nodes}/{cpu}/gpu_id", "0\n")
        for number, (gpu, part) in enumerate(places, 2):
            parts = PARTS[self.modes[gpu]]
            location = self.model.buses[gpu] << 8 | (part << 28 if self.high else part)
            simds = self.model.units * 4 // parts
            self.properties(f"{nodes}/{number}", cpu_cores_count=0, simd_count=simds, mem_banks_count=1, simd_per_cu=4, gfx_target_version=self.model.gfx,
                            vendor_id=0x1002, device_id=self.model.device, location_id=location, domain=0, drm_render_minor=self.minors[gpu][part],
                            hive_id=15188982192727901047, unique_id=self.unique_id(gpu), num_xcc=self.model.xccs // parts)
            self.write(f"{nodes}/{number}/gpu_id", f"{self.gpu_id(number)}\n")
            self.properties(f"{nodes}/{number}/mem_banks/0", heap_type=1, size_in_bytes=self.model.memory // parts, flags=0, width=8192)
            self.properties(f"{nodes}/{number}/io_links/0", type=2, node_from=number, node_to=0, weight=20)
            for link, (peer, (other, _)) in enumerate(((n, p) for n, p in enumerate(places, 2) if n != number), 1):
                self.properties(f"{nodes}/{number}/io_links/{link}", type=11, node_from=number, node_to=peer, weight=13 if other == gpu else 41)
        shown = self.sys / "class/kfd/kfd/topology/nodes"
        if shown.exists():
            shown.rename(former)
        (self.sys / nodes).rename(shown)
        shutil.rmtree(former, ignore_errors=True)
        self.show_processes()
        self.generation += 1
        self.write("class/kfd/kfd/topology/generation_id", f"{self.generation}\n")

    def properties(self, folder: str, **values: int):
        self.write(f"{folder}/properties", "".join(f"{name} {value}\n" for name, value in values.items()))

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
        """Version 1.3 of gpu_metrics for MI200, 1.5 or 1.8 for MI300 (drivers/gpu/drm/amd/include/kgd_pp_interface.h)."""
        if self.model.xccs == 1:
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
            table = bytearray(b"\xff" * 3872)
            struct.pack_into("<HBB6HQQ", table, 0, 3872, 1, 8, hotspot, memory, UNKNOWN, power, busy, 5, 5300, energy)
            struct.pack_into("<6I", table, 40, 100000, 1, 22, 3, 4, 5)  # intervals, and those in which it throttled
            struct.pack_into("<HH", table, 68, 16, 320)
            struct.pack_into("<5Q2I", table, 88, 7000 + gpu, 77, 6, 5, 4, 3, 2)  # PCIe
            struct.pack_into("<16Q", table, 136, *(1000 * link + gpu for link in range(16)))  # xGMI: received, sent
            struct.pack_into("<8H", table, 296, *(2100 - xcc for xcc in range(8)))
            struct.pack_into("<4H", table, 312, 800, 801, 802, 803)
            struct.pack_into("<H", table, 336, 1300)
            for part in range(8):
                at = 344 + 440 * part
                parts = PARTS[self.modes[gpu]]
                own = 8 // parts if part < parts else 0
                struct.pack_into("<8I", table, at, *(10 * part + xcc if xcc < own else 0xffffffff for xcc in range(8)))
                struct.pack_into("<4H", table, at + 112, 11, 12, 13, 14)
                struct.pack_into("<Q", table, at + 184, 900 + part)
        self.write(f"{self.folder(gpu)}/gpu_metrics", bytes(table))

    def reload(self):
        """The module was loaded again; its folder is another one."""
        shutil.rmtree(self.sys / "module/amdgpu")
        self.write("module/amdgpu/initstate", "live\n")

    def unload(self):
        """As rmmod amdgpu."""
        shutil.rmtree(self.sys / "module/amdgpu")
        shutil.rmtree(self.sys / "class/kfd", ignore_errors=self.in_memory)
        for file in self.made:
            file.unlink()
            (self.sys / "class/drm" / file.name).unlink(missing_ok=True)
        for gpu in range(self.gpus):
            shutil.rmtree(self.sys / self.folder(gpu) / "drm")
