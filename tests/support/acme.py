"""A machine of the made-up vendor Acme: the files that its backend reads (tests/acme/machine.h) and device files that containers open. Devices are "A-0",
"A-1", ...; part 2 of A-0 is "A-0-2", and its part 1 "A-0-2-1". The driver calls those that it makes, of devices that it can divide, "A-0.1", "A-0.2", ..."""
import os
import shutil
import stat
from pathlib import Path

ENOUGH = 65536  # MiB of a whole device
NULL, ZERO = (1, 3), (1, 5)  # Linux' numbers: device files of Acme read as /dev/null or /dev/zero, and need no driver


# What a device can be divided into: one, two or four parts on the device itself, and four within each of two.
PROFILES = [f"1of1 - 8 1 0:8 {ENOUGH} 64", f"1of2 - 4 2 0:4,4:4 {ENOUGH // 2} 32", f"1of4 - 2 4 0:2,2:2,4:2,6:2 {ENOUGH // 4} 16",
            f"1of8 1of2 1 4 0:1,1:1,2:1,3:1 {ENOUGH // 8} 8"]
WISH, STATE = "acme.com/want", "acme.com/state"  # labels of a Node


class Acme:
    def __init__(self, root: Path, count: int = 2, divisible: bool = False):
        self.root, self.folder, self.devices = root, root / "acme", {}
        self.folder.joinpath("devices").mkdir(parents=True, exist_ok=True)
        (root / "dev").mkdir(exist_ok=True)
        for index in range(count):
            self.add(f"A-{index}", model="Acme Large", pci=f"0000:{0xa0 + index:02x}:00.0", numa=index * 2 // count, memory=ENOUGH, serial=700 + index,
                     link=f"A-{index ^ 1} 4", **({"units": 64, "cut": "off,on", "profile": PROFILES} if divisible else {}))
        self.install("1.0")

    def install(self, version: str):
        self._write(self.folder / "driver", f"version={version}\n")

    def remove_driver(self):
        (self.folder / "driver").unlink()

    def add(self, name: str, **facts):
        """Adds a device, with the next index and a device file; `facts` are keys of its file, a list has a line for each of its values."""
        index = 1 + max((int(one["index"]) for one in self.devices.values()), default=-1)
        path = f"/dev/acme{index}"
        if not (file := Path(f"{self.root}{path}")).exists():
            os.mknod(file, stat.S_IFCHR | 0o666, os.makedev(*ZERO))
            file.chmod(0o666)
        self.devices[name] = {"id": name, "index": index, "kind": "accelerator", "file": f"{path} {ZERO[0]} {ZERO[1]}", "utilization": 37,
                              "memory.used": 1024, "power": 40000} | facts
        self._save(name)

    def set(self, name: str, **facts):
        """Changes facts, measured values and faults of a device; None removes one."""
        self.devices[name] = {key: value for key, value in (self.devices[name] | facts).items() if value is not None}
        self._save(name)

    def divide(self, name: str, parts: int):
        """Divides a device, or a part of one, into equal parts."""
        whole = self.devices[name]
        for part in range(parts):
            self.add(f"{name}-{part}", model=f"{whole['model']} 1/{parts}", pci=whole["pci"], numa=whole["numa"], parent=name,
                     memory=int(whole["memory"]) // parts)
        self._save(name)

    def remove(self, name: str):
        """Removes a device or a part, with its parts."""
        for one in [one for one in self.devices if one == name or one.startswith(f"{name}-")]:
            del self.devices[one]
            (self.folder / "devices" / one).unlink()

    def mode(self, name: str) -> str:
        """Whether the driver has divided the device."""
        return next((value for key, value in self._divided(name) if key == "mode"), "off")

    def parts(self, name: str) -> dict[str, str]:
        """The parts that the driver has made of a device, with their profiles; in parentheses, those for parts within them."""
        parts = [value.split() for key, value in self._divided(name) if key == "part"]
        return {part: f"({profile})" if outer else profile for part, profile, _, _, _, *outer in parts}

    def _divided(self, name: str) -> list[list[str]]:
        file = self.folder / "divided" / name
        return [line.split("=", 1) for line in file.read_text().splitlines()] if file.exists() else []

    def end(self):
        shutil.rmtree(self.folder)

    def _save(self, name: str):
        lines = [(key, one) for key, value in self.devices[name].items() for one in (value if isinstance(value, list) else [value])]
        self._write(self.folder / "devices" / name, "".join(f"{key}={value}\n" for key, value in lines))

    def _write(self, file: Path, text: str):
        beside = self.folder / "new"  # outside the folder of devices, where each file is one
        beside.write_text(text)
        beside.rename(file)
