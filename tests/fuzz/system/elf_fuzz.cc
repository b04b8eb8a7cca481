// Fuzzes ELF files: the libraries of an image may contain anything.
#include <cstdint>
#include <cstdlib>
#include <string>

#include <sys/mman.h>

#include "os/core/elf.h"
#include "os/core/fd.h"
#include "os/core/file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const penstock::os::UniqueFd file(::memfd_create("elf", MFD_CLOEXEC));
  if (!penstock::os::WriteAll(file.get(), {reinterpret_cast<const char*>(data), size}, "memory")
           .ok())
    std::abort();
  const auto facts = penstock::os::ReadElf(file.get(), "libx.so");
  if (facts.ok() && (facts->soname.size() > 4096 || facts->needed.size() > 1024)) std::abort();
  const auto section =
      penstock::os::ReadElfSection(file.get(), "libx.so", ".note.cuda.fwd_compatibility", 4096);
  if (section.ok() && section->size() > 4096) std::abort();
  return 0;
}
