// Searches files for the vendor's name before parsing them, so that other vendors' files cost
// little.
#include "hook/runtime/specs.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "os/core/file.h"

namespace penstock::hook::runtime {
namespace {

using api::cdi::CdiEdits;
using api::cdi::SpecFile;

/// "nvidia.com/gpu=0" → "nvidia.com". JSON may escape the slash of a full name, but nothing in a
/// vendor's name.
std::string VendorOf(const std::string& device) { return device.substr(0, device.find('/')); }

bool IsOfName(unsigned char c) { return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_'; }

/// Whether the text contains the vendor's whole name: "management.nvidia.com" is a different vendor
/// from "nvidia.com".
bool Mentions(const std::string& text, const std::string& vendor) {
  for (std::size_t at = text.find(vendor); at != std::string::npos; at = text.find(vendor, at + 1))
    if (at == 0 || !IsOfName(static_cast<unsigned char>(text[at - 1]))) return true;
  return false;
}

bool MentionsAny(const std::string& text, std::span<const std::string> vendors) {
  return std::ranges::any_of(vendors,
                             [&text](const std::string& vendor) { return Mentions(text, vendor); });
}

}  // namespace

std::vector<SpecFile> ReadSpecFiles(std::span<const std::string> folders,
                                    std::span<const std::string> devices) {
  std::vector<std::string> vendors;
  for (const std::string& device : devices)
    if (std::string vendor = VendorOf(device); std::ranges::find(vendors, vendor) == vendors.end())
      vendors.push_back(std::move(vendor));
  std::vector<SpecFile> files;
  int priority = 0;
  for (const std::string& folder : folders) {
    auto names = os::ListDirectory(folder);
    if (!names.ok() && names.error().code() != Code::kNotFound)
      files.push_back({folder, priority, names.error()});
    for (const std::string& name : std::move(names).value_or({})) {
      if (!name.ends_with(".json") && !name.ends_with(".yaml")) continue;
      const std::string path = folder + "/" + name;
      auto text = os::ReadFile(path);
      if (!text.ok() || MentionsAny(*text, vendors))
        files.push_back({path, priority, std::move(text)});
    }
    ++priority;
  }
  return files;
}

Result<CdiEdits> EditsOfKind(std::span<const SpecFile> files, const std::string& kind) {
  const SpecFile* best = nullptr;
  CdiEdits edits;
  for (const SpecFile& file : files) {
    if (!file.text.ok() || (best != nullptr && best->priority > file.priority)) continue;
    auto spec = api::cdi::Parse(*file.text, file.path);
    if (!spec.ok() || spec->kind != kind) continue;
    best = &file;
    edits = std::move(spec->edits);
  }
  if (best == nullptr) return Error(Code::kNotFound, "no CDI specification found for " + kind);
  return edits;
}

Error Unresolved(const Error& error, const api::cdi::Registry& registry, std::string_view file) {
  std::string text = error.message();
  for (const std::string& problem : registry.problems()) text += "; " + problem;
  return {error.code(), text +
                            "; create the specification with \"penstock cdi generate "
                            "--output=/var/run/cdi/" +
                            std::string(file) +
                            "\", or start penstock-agent, which keeps it up to date"};
}

}  // namespace penstock::hook::runtime
