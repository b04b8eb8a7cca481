"""What an ELF file of 64 bits says of itself (System V ABI, glibc's elf.h), as far as it matters for how hard the program is to attack."""
import struct
from pathlib import Path

ET_DYN = 3
PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_GNU_STACK, PT_GNU_RELRO = 1, 2, 3, 0x6474e551, 0x6474e552
PF_X, PF_W = 1, 2
DT_NEEDED, DT_STRTAB, DT_SYMTAB, DT_RPATH, DT_TEXTREL, DT_BIND_NOW, DT_RUNPATH, DT_FLAGS, DT_FLAGS_1 = 1, 5, 6, 15, 22, 24, 29, 30, 0x6ffffffb
DF_TEXTREL, DF_BIND_NOW = 4, 8
DF_1_NOW, DF_1_PIE = 1, 0x08000000


class Elf:
    def __init__(self, file: Path):
        self.name, self.bytes = file.name, file.read_bytes()
        assert self.bytes[:6] == b"\x7fELF\x02\x01", f"{file} is no ELF file of 64 bits"
        self.type, = struct.unpack_from("<H", self.bytes, 16)
        table, = struct.unpack_from("<Q", self.bytes, 32)
        size, count = struct.unpack_from("<HH", self.bytes, 54)
        # p_type, p_flags, p_offset, p_vaddr, p_paddr, p_filesz
        self.segments = [struct.unpack_from("<IIQQQQ", self.bytes, table + i * size) for i in range(count)]
        self.dynamic = [pair for segment in self.of_kind(PT_DYNAMIC) for pair in struct.iter_unpack("<qQ", self.content(segment))]

    def of_kind(self, kind: int) -> list[tuple]:
        return [segment for segment in self.segments if segment[0] == kind]

    def content(self, segment: tuple) -> bytes:
        return self.bytes[segment[2]:segment[2] + segment[5]]

    def values(self, tag: int) -> list[int]:
        return [value for each, value in self.dynamic if each == tag]

    def flags(self, tag: int) -> int:
        return sum(self.values(tag))

    def text(self, place: int) -> str:
        """A name of the dynamic section's table."""
        address = self.values(DT_STRTAB)[0]
        begin = next(offset + address - virtual for _, _, offset, virtual, _, size in self.of_kind(PT_LOAD) if virtual <= address < virtual + size) + place
        return self.bytes[begin:self.bytes.index(b"\0", begin)].decode()

    def needed(self) -> list[str]:
        return [self.text(place) for place in self.values(DT_NEEDED)]

    def search_path(self) -> list[str]:
        return [part for place in self.values(DT_RUNPATH) + self.values(DT_RPATH) for part in self.text(place).split(":")]
