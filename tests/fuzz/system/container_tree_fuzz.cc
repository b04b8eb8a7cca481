// Fuzzes the hooks on the files of a container that an image's author wrote: the linker's
// configuration and cache, an ELF library, CUDA's compatibility library, musl's path. The input is
// a sequence of files, each after its length in two bytes.
#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "../oracle.h"
#include "hook/hooks.h"
#include "hook/ld_config.h"
#include "os/core/ld_cache.h"
#include "os/core/testing/elf_maker.h"
#include "os/core/testing/temporary_folder.h"

namespace {

using namespace penstock;
using fuzz::Require;

constexpr std::string_view kDriver = "/usr/local/nvidia/lib64";
constexpr std::array<std::string_view, 5> kFiles = {
    hook::kLdConfig, "/etc/ld.so.cache", "/usr/lib/libimage.so.1",
    "/usr/local/cuda/compat/libcuda.so.560.1", "/etc/ld-musl-x86_64.path"};

/// Creates a new tree. Files that are missing in the input are missing in the tree.
void Fill(const os::TemporaryFolder& folder, std::string_view input) {
  for (const char* name : {"root", "outside"}) std::filesystem::remove_all(folder / name);
  std::filesystem::create_directories(folder / "outside");
  for (std::size_t i = 0; i < kFiles.size() && input.size() > 2; ++i) {
    const std::size_t length =
        static_cast<unsigned char>(input[0]) + 256u * static_cast<unsigned char>(input[1]);
    folder.Write("root" + std::string(kFiles[i]), std::string(input.substr(2, length)));
    input.remove_prefix(std::min(input.size(), 2 + length));
  }
  folder.Link("root/opt/outside", "../../../outside");
  if (std::filesystem::exists(folder / ("root" + std::string(kFiles.back()))))
    folder.Write("root/lib/ld-musl-x86_64.so.1", "musl");
  static const std::string library = os::MakeElf({.soname = "libcuda.so.1"});
  folder.Write("root" + std::string(kDriver) + "/libcuda.so.550.54.15", library);
}

void Require(const base::Status& status) {
  Require(status.ok() || !status.error().message().empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const os::TemporaryFolder folder;
  Fill(folder, fuzz::Text(data, size));
  const auto root = os::ConfinedTree::Open(folder / "root");
  Require(root.ok());
  hook::Warnings warnings;
  const std::vector<std::string> folders = {std::string(kDriver), "/opt/outside"};
  Require(hook::EnableCudaCompat(*root, {.driver_version = "550.54.15", .cuda_version = "12.4"},
                                 warnings));
  const base::Status updated = hook::UpdateLdCache(*root, folders, warnings);
  Require(updated);
  Require(hook::CreateSonameLinks(*root, folders, warnings));

  Require(std::filesystem::is_empty(folder / "outside"));
  const auto cache = root->Read("/etc/ld.so.cache");
  if (!updated.ok() || !warnings.messages().empty() || !cache.ok()) return 0;
  const auto entries = os::ReadLdCache(*cache);
  Require(entries.ok());
  // The image may have chosen the entry's name: its own cache may list libraries of the driver's
  // folder.
  Require(std::any_of(entries->begin(), entries->end(), [](const os::LdCacheEntry& entry) {
    return entry.path.find("/libcuda.so") != std::string::npos;
  }));
  // Starting the container once more changes nothing.
  Require(hook::UpdateLdCache(*root, folders, warnings));
  Require(root->Read("/etc/ld.so.cache").value_or("") == *cache);
  return 0;
}
