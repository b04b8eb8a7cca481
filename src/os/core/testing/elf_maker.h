// Builds minimal shared libraries for tests: a header, a dynamic section, names.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <elf.h>

namespace penstock::os {

struct ElfRecipe {
  bool wide = true;
  std::uint16_t machine = EM_X86_64;
  std::string soname;  ///< empty: none
  std::vector<std::string> needed;
  std::vector<std::pair<std::string, std::string>> sections;  ///< notes: name and content
};

namespace internal {

/// Works for both file classes; addresses in the dynamic section are file offsets.
template <typename Ehdr, typename Phdr, typename Shdr, typename Dyn>
std::string MakeElf(const ElfRecipe& recipe) {
  std::string strings(1, '\0');
  std::vector<Dyn> dynamic;
  const auto add = [&](auto tag, const std::string& text) {
    Dyn entry{};
    entry.d_tag = tag;
    entry.d_un.d_val = static_cast<decltype(entry.d_un.d_val)>(strings.size());
    dynamic.push_back(entry);
    strings += text + '\0';
  };
  for (const std::string& library : recipe.needed) add(DT_NEEDED, library);
  if (!recipe.soname.empty()) add(DT_SONAME, recipe.soname);
  const std::size_t dynamic_at = sizeof(Ehdr) + 2 * sizeof(Phdr);
  const std::size_t strings_at = dynamic_at + (dynamic.size() + 2) * sizeof(Dyn);
  dynamic.push_back({});
  dynamic.back().d_tag = DT_STRTAB;
  dynamic.back().d_un.d_ptr = static_cast<decltype(dynamic.back().d_un.d_ptr)>(strings_at);
  dynamic.push_back({});

  std::string names(1, '\0');
  std::string contents;
  std::vector<Shdr> sections(1);
  const auto section = [&](std::uint32_t type, const std::string& name, std::size_t at,
                           std::size_t size) {
    Shdr header{};
    header.sh_name = static_cast<decltype(header.sh_name)>(names.size());
    header.sh_type = type;
    header.sh_offset = static_cast<decltype(header.sh_offset)>(at);
    header.sh_size = static_cast<decltype(header.sh_size)>(size);
    sections.push_back(header);
    names += name + '\0';
  };
  for (const auto& [name, content] : recipe.sections) {
    section(SHT_NOTE, name, strings_at + strings.size() + contents.size(), content.size());
    contents += content;
  }
  const std::size_t names_at = strings_at + strings.size() + contents.size();
  section(SHT_STRTAB, ".shstrtab", names_at, 0);
  sections.back().sh_size = static_cast<decltype(sections.back().sh_size)>(names.size());

  Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = recipe.wide ? ELFCLASS64 : ELFCLASS32;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = recipe.machine;
  header.e_version = EV_CURRENT;
  header.e_phoff = sizeof header;
  header.e_ehsize = sizeof header;
  header.e_phentsize = sizeof(Phdr);
  header.e_phnum = 2;
  header.e_shoff = static_cast<decltype(header.e_shoff)>(names_at + names.size());
  header.e_shentsize = sizeof(Shdr);
  header.e_shnum = static_cast<std::uint16_t>(sections.size());
  header.e_shstrndx = static_cast<std::uint16_t>(sections.size() - 1);
  Phdr segments[2] = {};
  segments[0].p_type = PT_LOAD;
  segments[0].p_filesz = segments[0].p_memsz =
      static_cast<decltype(segments[0].p_filesz)>(names_at);
  segments[1].p_type = PT_DYNAMIC;
  segments[1].p_offset = segments[1].p_vaddr =
      static_cast<decltype(segments[1].p_offset)>(dynamic_at);
  segments[1].p_filesz = static_cast<decltype(segments[1].p_filesz)>(dynamic.size() * sizeof(Dyn));

  std::string file;
  const auto append = [&](const void* data, std::size_t size) {
    file.append(static_cast<const char*>(data), size);
  };
  append(&header, sizeof header);
  append(segments, sizeof segments);
  append(dynamic.data(), dynamic.size() * sizeof(Dyn));
  file += strings + contents + names;
  append(sections.data(), sections.size() * sizeof(Shdr));
  return file;
}

}  // namespace internal

inline std::string MakeElf(const ElfRecipe& recipe) {
  return recipe.wide ? internal::MakeElf<Elf64_Ehdr, Elf64_Phdr, Elf64_Shdr, Elf64_Dyn>(recipe)
                     : internal::MakeElf<Elf32_Ehdr, Elf32_Phdr, Elf32_Shdr, Elf32_Dyn>(recipe);
}

}  // namespace penstock::os
