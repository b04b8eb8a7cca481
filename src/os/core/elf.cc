// Reads ELF files with pread(2) and limits (System V ABI, chapters 4 and 5). Never maps a file,
// since its owner may truncate it meanwhile.
#include "os/core/elf.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include <elf.h>
#include <unistd.h>

namespace penstock::os {
namespace {

// Libraries have a dozen segments, some dozen sections and at most some hundred entries of each
// kind in their dynamic section.
constexpr std::size_t kMaxSegments = 128;
constexpr std::size_t kMaxSections = 4096;
constexpr std::size_t kMaxDynamicEntries = 4096;
constexpr std::size_t kMaxNeeded = 1024;
constexpr std::size_t kMaxNameBytes = 4096;
constexpr unsigned char kOwnByteOrder =
    std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;

// Headers of 32-bit files are widened when read, so that only the readers below handle two sizes.
Elf64_Ehdr Widen(const Elf32_Ehdr& narrow) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, narrow.e_ident, sizeof header.e_ident);
  header.e_machine = narrow.e_machine;
  header.e_flags = narrow.e_flags;
  header.e_phoff = narrow.e_phoff;
  header.e_phentsize = narrow.e_phentsize;
  header.e_phnum = narrow.e_phnum;
  header.e_shoff = narrow.e_shoff;
  header.e_shentsize = narrow.e_shentsize;
  header.e_shnum = narrow.e_shnum;
  header.e_shstrndx = narrow.e_shstrndx;
  return header;
}

Elf64_Phdr Widen(const Elf32_Phdr& narrow) {
  return {.p_type = narrow.p_type,
          .p_offset = narrow.p_offset,
          .p_vaddr = narrow.p_vaddr,
          .p_filesz = narrow.p_filesz};
}

Elf64_Shdr Widen(const Elf32_Shdr& narrow) {
  return {.sh_name = narrow.sh_name,
          .sh_type = narrow.sh_type,
          .sh_offset = narrow.sh_offset,
          .sh_size = narrow.sh_size};
}

Elf64_Dyn Widen(const Elf32_Dyn& narrow) {
  return {.d_tag = narrow.d_tag, .d_un = {.d_val = narrow.d_un.d_val}};
}
Elf64_Phdr Widen(const Elf64_Phdr& entry) { return entry; }
Elf64_Shdr Widen(const Elf64_Shdr& entry) { return entry; }
Elf64_Dyn Widen(const Elf64_Dyn& entry) { return entry; }

template <typename Entry>
using Wide = decltype(Widen(std::declval<Entry>()));

class ElfFile {
 public:
  static Result<ElfFile> Open(int fd, const std::string& name) {
    ElfFile file(fd, name);
    TRY(file.ReadHeader());
    return file;
  }

  const Elf64_Ehdr& header() const { return header_; }
  bool wide() const { return wide_; }
  Error Broken(const std::string& what) const {
    return {Code::kInvalidArgument, name_ + " is a broken ELF file: " + what};
  }

  Result<std::vector<Elf64_Phdr>> Segments() const {
    if (header_.e_phnum > kMaxSegments)
      return Broken("it has " + std::to_string(header_.e_phnum) + " segments");
    if (wide_) return Table<Elf64_Phdr>(header_.e_phoff, header_.e_phnum, header_.e_phentsize);
    return Table<Elf32_Phdr>(header_.e_phoff, header_.e_phnum, header_.e_phentsize);
  }

  Result<std::vector<Elf64_Shdr>> Sections() const {
    if (header_.e_shnum > kMaxSections)
      return Broken("it has " + std::to_string(header_.e_shnum) + " sections");
    if (wide_) return Table<Elf64_Shdr>(header_.e_shoff, header_.e_shnum, header_.e_shentsize);
    return Table<Elf32_Shdr>(header_.e_shoff, header_.e_shnum, header_.e_shentsize);
  }

  Result<std::vector<Elf64_Dyn>> DynamicEntries(const Elf64_Phdr& segment) const {
    const std::size_t size = wide_ ? sizeof(Elf64_Dyn) : sizeof(Elf32_Dyn);
    const std::uint64_t count = segment.p_filesz / size;
    if (count > kMaxDynamicEntries)
      return Broken("its dynamic section has " + std::to_string(count) + " entries");
    if (wide_) return Table<Elf64_Dyn>(segment.p_offset, count, size);
    return Table<Elf32_Dyn>(segment.p_offset, count, size);
  }

  /// The text at `offset` up to its NUL.
  Result<std::string> Text(std::uint64_t offset) const {
    std::string text;
    std::array<char, 256> piece;
    while (text.size() < kMaxNameBytes) {
      ASSIGN(const std::size_t got, ReadSome(offset + text.size(), piece.data(), piece.size()));
      const std::size_t length = ::strnlen(piece.data(), got);
      text.append(piece.data(), length);
      if (length < got) return text;
      if (got == 0) return Broken("a name in it is not terminated");
    }
    return Broken("a name in it is longer than " + std::to_string(kMaxNameBytes) + " bytes");
  }

  Result<std::string> Bytes(std::uint64_t offset, std::size_t size) const {
    std::string bytes(size, '\0');
    TRY(ReadWhole(offset, bytes.data(), size));
    return bytes;
  }

 private:
  ElfFile(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}

  base::Status ReadHeader() {
    std::array<char, sizeof(Elf64_Ehdr)> bytes{};
    ASSIGN(const std::size_t got, ReadSome(0, bytes.data(), bytes.size()));
    if (got < EI_NIDENT || std::memcmp(bytes.data(), ELFMAG, SELFMAG) != 0)
      return Error(Code::kInvalidArgument, name_ + " is not an ELF file");
    if (bytes[EI_CLASS] != ELFCLASS32 && bytes[EI_CLASS] != ELFCLASS64)
      return Broken("it is neither 32-bit nor 64-bit");
    if (bytes[EI_DATA] != kOwnByteOrder)
      return Error(Code::kInvalidArgument,
                   name_ + " is an ELF file for machines of the opposite byte order");
    wide_ = bytes[EI_CLASS] == ELFCLASS64;
    if (got < (wide_ ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr)))
      return Broken("it ends within its header");
    if (wide_) {
      std::memcpy(&header_, bytes.data(), sizeof header_);
    } else {
      Elf32_Ehdr narrow;
      std::memcpy(&narrow, bytes.data(), sizeof narrow);
      header_ = Widen(narrow);
    }
    return {};
  }

  template <typename Entry>
  Result<std::vector<Wide<Entry>>> Table(std::uint64_t offset, std::size_t count,
                                         std::size_t entry_size) const {
    std::vector<Wide<Entry>> table;
    if (count == 0) return table;
    if (entry_size != sizeof(Entry)) return Broken("its entries have an invalid size");
    std::vector<Entry> entries(count);
    TRY(ReadWhole(offset, entries.data(), count * sizeof(Entry)));
    table.reserve(count);
    for (const Entry& entry : entries) table.push_back(Widen(entry));
    return table;
  }

  // Headers are adjacent, and so are names: most reads are served from the buffered piece.
  Result<std::size_t> ReadSome(std::uint64_t offset, void* into, std::size_t size) const {
    if (size <= piece_.size() && (offset < piece_at_ || offset - piece_at_ > piece_bytes_ ||
                                  piece_bytes_ - (offset - piece_at_) < size)) {
      ASSIGN(piece_bytes_, ReadFile(offset, piece_.data(), piece_.size()));
      piece_at_ = offset;
    }
    if (size > piece_.size()) return ReadFile(offset, into, size);
    const std::size_t got = std::min<std::size_t>(size, piece_bytes_ - (offset - piece_at_));
    std::memcpy(into, piece_.data() + (offset - piece_at_), got);
    return got;
  }

  Result<std::size_t> ReadFile(std::uint64_t offset, void* into, std::size_t size) const {
    if (offset > static_cast<std::uint64_t>(INT64_MAX) - size)
      return Broken("an offset in it is out of range");
    std::size_t filled = 0;
    while (filled < size) {
      const ssize_t got = ::pread(fd_, static_cast<char*>(into) + filled, size - filled,
                                  static_cast<off_t>(offset + filled));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return ErrnoError(errno, "read " + name_);
      if (got == 0) break;
      filled += static_cast<std::size_t>(got);
    }
    return filled;
  }

  base::Status ReadWhole(std::uint64_t offset, void* into, std::size_t size) const {
    ASSIGN(const std::size_t got, ReadSome(offset, into, size));
    if (got < size) return Broken("it is shorter than its header says");
    return {};
  }

  int fd_;
  std::string name_;
  bool wide_ = true;
  Elf64_Ehdr header_{};
  mutable std::array<char, 4096> piece_;
  mutable std::uint64_t piece_at_ = 0;
  mutable std::size_t piece_bytes_ = 0;
};

const Elf64_Phdr* FindDynamic(std::span<const Elf64_Phdr> segments) {
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_DYNAMIC) return &segment;
  }
  return nullptr;
}

// Converts an address of the running program to an offset in the file.
Result<std::uint64_t> OffsetOf(const ElfFile& file, std::span<const Elf64_Phdr> segments,
                               std::uint64_t address) {
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_LOAD || address < segment.p_vaddr ||
        address - segment.p_vaddr >= segment.p_filesz)
      continue;
    const std::uint64_t within = address - segment.p_vaddr;
    if (segment.p_offset > UINT64_MAX - within) break;
    return segment.p_offset + within;
  }
  return file.Broken("its names are in no segment");
}

base::Status ReadNames(const ElfFile& file, std::span<const Elf64_Phdr> segments,
                       std::span<const Elf64_Dyn> entries, ElfFacts& facts) {
  std::uint64_t strings = 0;
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag == DT_STRTAB) strings = entry.d_un.d_ptr;
  }
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag != DT_SONAME && entry.d_tag != DT_NEEDED) continue;
    if (strings > UINT64_MAX - entry.d_un.d_val)
      return file.Broken("the offset of a name in it is out of range");
    ASSIGN(const std::uint64_t offset, OffsetOf(file, segments, strings + entry.d_un.d_val));
    ASSIGN(std::string text, file.Text(offset));
    if (entry.d_tag == DT_SONAME) {
      facts.soname = std::move(text);
    } else {
      if (facts.needed.size() == kMaxNeeded)
        return file.Broken("it needs more than " + std::to_string(kMaxNeeded) + " libraries");
      facts.needed.push_back(std::move(text));
    }
  }
  return {};
}

}  // namespace

Result<ElfFacts> ReadElf(int fd, const std::string& name) {
  ASSIGN(const ElfFile file, ElfFile::Open(fd, name));
  ElfFacts facts{
      .wide = file.wide(), .machine = file.header().e_machine, .flags = file.header().e_flags};
  ASSIGN(const auto segments, file.Segments());
  if (const Elf64_Phdr* dynamic = FindDynamic(segments)) {
    ASSIGN(const auto entries, file.DynamicEntries(*dynamic));
    TRY(ReadNames(file, segments, entries, facts));
  }
  return facts;
}

Result<std::string> ReadElfSection(int fd, const std::string& name, const std::string& section,
                                   std::size_t most) {
  ASSIGN(const ElfFile file, ElfFile::Open(fd, name));
  ASSIGN(const auto sections, file.Sections());
  const std::size_t names = file.header().e_shstrndx;
  if (names >= sections.size()) return Error(Code::kNotFound, name + " has no section " + section);
  for (const Elf64_Shdr& candidate : sections) {
    if (candidate.sh_type == SHT_NULL || candidate.sh_type == SHT_NOBITS) continue;
    if (sections[names].sh_offset > UINT64_MAX - candidate.sh_name)
      return file.Broken("the offset of a name in it is out of range");
    ASSIGN(const std::string candidate_name,
           file.Text(sections[names].sh_offset + candidate.sh_name));
    if (candidate_name != section) continue;
    if (candidate.sh_size > most)
      return Error(Code::kResourceExhausted,
                   section + " of " + name + " is larger than " + std::to_string(most) + " bytes");
    return file.Bytes(candidate.sh_offset, static_cast<std::size_t>(candidate.sh_size));
  }
  return Error(Code::kNotFound, name + " has no section " + section);
}

}  // namespace penstock::os
