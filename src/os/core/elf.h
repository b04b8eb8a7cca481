// Reads facts of an ELF file from a descriptor, with limits: of driver files, and of files in
// container images, which may be hostile.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/core/result.h"

namespace penstock::os {

struct ElfFacts {
  bool wide = true;           ///< 64-bit
  std::uint16_t machine = 0;  ///< e_machine: 62 x86-64, 183 aarch64
  std::uint32_t flags = 0;    ///< e_flags
  std::string soname;         ///< empty if it has none
  std::vector<std::string> needed;
};

/// kInvalidArgument: not an ELF file, or a broken one; `name` is used in the message. Reads with
/// pread(2), at most some pages.
base::Result<ElfFacts> ReadElf(int fd, const std::string& name);

/// The content of a section, e.g. ".note.cuda.fwd_compatibility"; kNotFound if there is none,
/// kResourceExhausted if it is larger than `most` bytes.
base::Result<std::string> ReadElfSection(int fd, const std::string& name,
                                         const std::string& section, std::size_t most = 64u << 10);

}  // namespace penstock::os
