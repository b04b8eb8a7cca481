#include "sim/files/symbols.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <string_view>
#include <vector>

#include <elf.h>

namespace penstock::sim {
namespace {

// Returns the branch that introduced each function.
const std::map<std::string_view, std::uint32_t>& Branches() {
  static const std::map<std::string_view, std::uint32_t> branches = {
#define F(branch, name, parameters) {#name, branch},
#define D F
#include "sim/nvml/functions.def"
#undef F
#undef D
  };
  return branches;
}

base::Error NotALibrary(const std::string& path) {
  return {base::Code::kDataLoss, path + " is not a 64-bit shared library"};
}

// Returns a pointer to a T at `offset` of the file, or null past its end.
template <typename T>
T* At(std::vector<char>& file, std::uint64_t offset) {
  return offset <= file.size() && file.size() - offset >= sizeof(T)
             ? reinterpret_cast<T*>(file.data() + offset)
             : nullptr;
}

const Elf64_Shdr* FindSymbols(std::vector<char>& file) {
  const auto* header = At<Elf64_Ehdr>(file, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64)
    return nullptr;
  for (unsigned i = 0; i < header->e_shnum; i++) {
    const auto* section = At<Elf64_Shdr>(file, header->e_shoff + i * sizeof(Elf64_Shdr));
    if (section && section->sh_type == SHT_DYNSYM) return section;
  }
  return nullptr;
}

}  // namespace

base::Status HideNewerSymbols(const std::string& path, std::uint32_t branch) {
  std::fstream stream(path, std::ios::in | std::ios::out | std::ios::binary);
  if (!stream) return base::ErrnoError(errno, "open " + path);
  std::vector<char> file((std::istreambuf_iterator<char>(stream)), {});
  const Elf64_Shdr* symbols = FindSymbols(file);
  const auto* header = At<Elf64_Ehdr>(file, 0);
  const auto* names =
      symbols ? At<Elf64_Shdr>(file, header->e_shoff + symbols->sh_link * sizeof(Elf64_Shdr))
              : nullptr;
  if (!names) return NotALibrary(path);
  for (std::uint64_t offset = 0; offset + sizeof(Elf64_Sym) <= symbols->sh_size;
       offset += sizeof(Elf64_Sym)) {
    auto* symbol = At<Elf64_Sym>(file, symbols->sh_offset + offset);
    if (!symbol || symbol->st_name >= names->sh_size ||
        names->sh_offset + names->sh_size > file.size())
      return NotALibrary(path);
    const char* name = file.data() + names->sh_offset + symbol->st_name;
    const auto known =
        Branches().find(std::string_view(name, strnlen(name, names->sh_size - symbol->st_name)));
    // Undefined and without a value, like a reference to another library's function: the loader
    // skips it.
    if (known != Branches().end() && known->second > branch)
      symbol->st_shndx = SHN_UNDEF, symbol->st_value = 0;
  }
  stream.seekp(0);
  stream.write(file.data(), static_cast<std::streamsize>(file.size()));
  stream.flush();
  if (!stream) return base::ErrnoError(errno, "write " + path);
  return {};
}

}  // namespace penstock::sim
