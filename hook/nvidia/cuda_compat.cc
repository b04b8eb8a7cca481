// The hook enable-cuda-compat: decides whether to use an image's CUDA forward compatibility
// libraries.
#include <algorithm>
#include <cstring>
#include <optional>

#include <dirent.h>

#include "base/core/document.h"
#include "base/core/strings.h"
#include "hook/hooks.h"
#include "hook/ld_config.h"
#include "os/core/elf.h"

namespace penstock::hook {
namespace {

constexpr std::string_view kLibrary = "libcuda.so.";

/// The content of the library's note .note.cuda.fwd_compatibility.
struct Note {
  std::string cuda_version;
  std::vector<std::int64_t> drivers;  // major versions that it runs on
};

// Splits a version into numbers, so that 12.10 is newer than 12.9; nothing if a part is not a
// number.
std::optional<std::vector<std::uint64_t>> Numbers(std::string_view version) {
  std::vector<std::uint64_t> numbers;
  for (const std::string& part : base::Split(version, '.')) {
    const auto number = base::ParseUint(part);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  while (!numbers.empty() && numbers.back() == 0) numbers.pop_back();
  return numbers;
}

Result<Note> ParseNote(const std::string& section, const std::string& name) {
  struct {
    std::uint32_t name_bytes, text_bytes, type;
  } header;
  constexpr std::string_view vendor = "NVIDIA Corporation";
  const Error broken(Code::kInvalidArgument, name + " has an invalid CUDA compatibility note");
  if (section.size() < sizeof header) return broken;
  std::memcpy(&header, section.data(), sizeof header);
  const std::size_t text = sizeof header + ((std::size_t{header.name_bytes} + 3) & ~std::size_t{3});
  if (text > section.size() || header.text_bytes > section.size() - text ||
      !section.substr(sizeof header).starts_with(vendor))
    return broken;
  const std::string json = section.substr(text, header.text_bytes).c_str();
  ASSIGN(const base::Value value, base::ParseJson(json, name));
  Note note;
  if (const base::Value* version = value.Find("CUDA Version"); version != nullptr)
    note.cuda_version = version->text;
  if (const base::Value* drivers = value.Find("Driver");
      drivers != nullptr && drivers->kind == base::Value::Kind::kList) {
    for (const base::Value& driver : *drivers->list) note.drivers.push_back(driver.integer);
  }
  return note;
}

Result<std::optional<Note>> ReadNote(const os::ConfinedTree& root, const std::string& path) {
  ASSIGN(const os::UniqueFd file, root.OpenRegular(path));
  const auto section = os::ReadElfSection(file.get(), path, ".note.cuda.fwd_compatibility");
  if (!section.ok()) return std::optional<Note>();
  ASSIGN(Note note, ParseNote(*section, path));
  return std::optional<Note>(std::move(note));
}

// The library's file name in the folder: libcuda.so.<major>.<minor>, if it is a file and the only
// one.
Result<std::optional<std::string>> FindLibrary(const os::ConfinedTree& root,
                                               const std::string& folder) {
  const auto entries = root.List(folder);
  if (!entries.ok()) return std::optional<std::string>();
  std::vector<std::string> names;
  for (const os::TreeEntry& entry : *entries) {
    const bool versioned = entry.name.starts_with(kLibrary) &&
                           entry.name.find('.', kLibrary.size()) != std::string::npos;
    if (versioned && entry.type != DT_LNK && entry.type != DT_DIR) names.push_back(entry.name);
  }
  if (names.size() > 1)
    return Error(Code::kFailedPrecondition,
                 folder + " has several CUDA compatibility libraries, none of which is used: " +
                     base::Join(names, ", "));
  return names.empty() ? std::optional<std::string>() : names.front();
}

// If the library has a note, the note decides; otherwise the versions of the file's name and the
// driver.
Result<bool> IsNewer(const os::ConfinedTree& root, const CudaCompat& machine,
                     const std::string& name) {
  const auto driver = Numbers(machine.driver_version);
  ASSIGN(const auto note, ReadNote(root, machine.folder + "/" + name));
  if (note) {
    const auto library = Numbers(note->cuda_version);
    const auto host = Numbers(machine.cuda_version);
    if (library && host && !machine.cuda_version.empty()) return *library > *host;
    if (driver && !driver->empty() && !note->drivers.empty())
      return std::ranges::find(note->drivers, static_cast<std::int64_t>(driver->front())) !=
             note->drivers.end();
  }
  const auto version = Numbers(std::string_view(name).substr(kLibrary.size()));
  if (!version || version->empty() || !driver || driver->empty()) return false;
  return version->front() > driver->front();
}

Result<bool> IsWanted(const os::ConfinedTree& root, const CudaCompat& machine) {
  ASSIGN(const auto library, FindLibrary(root, machine.folder));
  return library ? IsNewer(root, machine, *library) : Result<bool>(false);
}

}  // namespace

Status EnableCudaCompat(const os::ConfinedTree& root, const CudaCompat& machine,
                        Warnings& warnings) {
  for (const std::string* version : {&machine.driver_version, &machine.cuda_version}) {
    if (!version->empty() && !Numbers(*version))
      return Error(Code::kInvalidArgument,
                   "\"" + *version + "\" is not a version; use the form 550.54.15");
  }
  const auto wanted = IsWanted(root, machine);
  if (!wanted.ok()) warnings.Add(wanted.error().message());
  // An earlier start may have run with another driver and enabled the libraries.
  if (!wanted.ok() || !*wanted) return warnings.Tolerate(root.Remove(kCompatDropIn));
  return warnings.Tolerate(
      root.Write(kCompatDropIn, WriteFolders({os::CleanPath(machine.folder)})));
}

}  // namespace penstock::hook
