#include "sim/files/shared_object.h"

#include <cstddef>
#include <cstring>
#include <utility>

#include <elf.h>

namespace penstock::sim {
namespace {

constexpr char kSectionNames[] = "\0.dynamic\0.dynsym\0.dynstr\0.hash\0.shstrtab";
constexpr std::size_t kPage = 0x1000;

// Addresses equal file offsets, and one writable segment contains everything, because the loader
// writes into the dynamic section.
class Object {
 public:
  std::size_t size() const { return bytes_.size(); }

  template <typename T>
  std::size_t Put(const T& value) {
    return PutBytes({reinterpret_cast<const char*>(&value), sizeof value});
  }
  std::size_t PutBytes(std::string_view bytes) {
    bytes_.resize((bytes_.size() + 7) / 8 * 8);
    const std::size_t at = bytes_.size();
    bytes_.append(bytes);
    return at;
  }
  template <typename T>
  void Replace(std::size_t at, const T& value) {
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

Elf64_Word NameOf(std::string_view section) {
  return static_cast<Elf64_Word>(
      std::string_view(kSectionNames, sizeof kSectionNames).find(section));
}

Elf64_Shdr Section(std::string_view name, Elf64_Word type, std::size_t at, std::size_t size,
                   Elf64_Word link, std::size_t entry) {
  const Elf64_Xword flags = type == SHT_STRTAB && name == ".shstrtab" ? 0 : SHF_ALLOC;
  return {
      NameOf(name), type, flags, flags ? at : 0, at, size, link, type == SHT_DYNSYM ? 1u : 0u, 8,
      entry};
}

Elf64_Ehdr Header(std::size_t sections_at) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_phoff = sizeof header;
  header.e_shoff = sections_at;
  header.e_ehsize = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 3;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 6;
  header.e_shstrndx = 5;
  return header;
}

}  // namespace

std::string SharedObject(std::string_view soname, const std::vector<std::string>& needed) {
  Object object;
  object.Put(Elf64_Ehdr{});
  const std::size_t segments = object.Put(Elf64_Phdr{});
  object.Put(Elf64_Phdr{});
  object.Put(Elf64_Phdr{});

  std::string strings(1, '\0');
  std::vector<Elf64_Dyn> dynamic;
  const auto name = [&](Elf64_Sxword tag, std::string_view text) {
    dynamic.push_back({tag, {strings.size()}});
    strings.append(text).push_back('\0');
  };
  for (const std::string& library : needed) name(DT_NEEDED, library);
  if (!soname.empty()) name(DT_SONAME, soname);

  constexpr Elf64_Word kHash[] = {1, 1, 0, 0};  // one bucket, which contains the null symbol
  const std::size_t hash = object.Put(kHash), symbols = object.Put(Elf64_Sym{}),
                    names = object.PutBytes(strings);
  dynamic.insert(dynamic.end(), {{DT_HASH, {hash}},
                                 {DT_STRTAB, {names}},
                                 {DT_SYMTAB, {symbols}},
                                 {DT_STRSZ, {strings.size()}},
                                 {DT_SYMENT, {sizeof(Elf64_Sym)}},
                                 {DT_NULL, {0}}});
  const std::size_t dynamic_size = dynamic.size() * sizeof(Elf64_Dyn);
  const std::size_t entries =
      object.PutBytes({reinterpret_cast<const char*>(dynamic.data()), dynamic_size});
  const std::size_t loaded = object.size();

  const std::size_t section_names = object.PutBytes({kSectionNames, sizeof kSectionNames});
  const std::size_t sections = object.Put(Elf64_Shdr{});
  object.Put(Section(".dynamic", SHT_DYNAMIC, entries, dynamic_size, 3, sizeof(Elf64_Dyn)));
  object.Put(Section(".dynsym", SHT_DYNSYM, symbols, sizeof(Elf64_Sym), 3, sizeof(Elf64_Sym)));
  object.Put(Section(".dynstr", SHT_STRTAB, names, strings.size(), 0, 0));
  object.Put(Section(".hash", SHT_HASH, hash, sizeof kHash, 2, sizeof(Elf64_Word)));
  object.Put(Section(".shstrtab", SHT_STRTAB, section_names, sizeof kSectionNames, 0, 0));

  object.Replace(0, Header(sections));
  const Elf64_Phdr program[] = {
      {PT_LOAD, PF_R | PF_W, 0, 0, 0, loaded, loaded, kPage},
      {PT_DYNAMIC, PF_R | PF_W, entries, entries, entries, dynamic_size, dynamic_size, 8},
      {PT_GNU_STACK, PF_R | PF_W, 0, 0, 0, 0, 0, 16}};
  object.Replace(segments, program);
  return object.Take();
}

}  // namespace penstock::sim
