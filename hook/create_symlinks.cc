// The hooks create-symlinks and create-soname-symlinks.
#include <sys/stat.h>

#include "hook/hooks.h"
#include "hook/library_folder.h"

namespace penstock::hook {
namespace {

// With "-v /dev:/dev" the container sees the machine's own /dev, and a link created there would be
// created on the machine.
Status RefuseMachinesDevices(const os::ConfinedTree& devices) {
  struct stat here {
  }, machine{};
  if (::fstat(devices.fd(), &here) == 0 && ::stat("/dev", &machine) == 0 &&
      here.st_dev != machine.st_dev)
    return {};
  return Error(Code::kFailedPrecondition,
               devices.path() + " is the host's own /dev, which is not modified");
}

Status CreateLink(const os::ConfinedTree& root, const std::string& text) {
  const auto separator = text.find("::");
  if (separator == std::string::npos || separator == 0 ||
      text.find("::", separator + 2) != std::string::npos)
    return Error(Code::kInvalidArgument, "\"" + text + "\" is not a link; use TARGET::LINK");
  const std::string target = text.substr(0, separator);
  ASSIGN(const WritablePlace place, FindWritablePlace(root, text.substr(separator + 2)));
  return place.tree.WriteLink(target, place.path);
}

}  // namespace

Result<WritablePlace> FindWritablePlace(const os::ConfinedTree& root, const std::string& path) {
  const std::string clean = os::CleanPath(path);
  constexpr std::string_view devices = "/dev/";
  if (clean.starts_with(devices)) {
    auto tree = root.Below("/dev");
    if (tree.ok()) {
      TRY(RefuseMachinesDevices(*tree));
      return WritablePlace{*std::move(tree), clean.substr(devices.size() - 1)};
    }
    if (tree.error().code() != Code::kNotFound) return tree.error();
  }
  ASSIGN(os::ConfinedTree tree, root.Below("/"));
  return WritablePlace{std::move(tree), clean};
}

Status CreateSymlinks(const os::ConfinedTree& root, const std::vector<std::string>& links,
                      Warnings& warnings) {
  for (const std::string& link : links) TRY(warnings.Tolerate(CreateLink(root, link)));
  return {};
}

Status CreateSonameLinks(const os::ConfinedTree& root, const std::vector<std::string>& folders,
                         Warnings& warnings) {
  Work work;
  for (const std::string& folder : folders) {
    const auto entries = root.List(folder);
    if (!entries.ok() && entries.error().code() == Code::kNotFound) continue;
    if (!entries.ok()) return entries.error();
    const auto libraries = FindLibraries(
        root, folder, *entries, [](const std::string&) { return false; }, work);
    if (!libraries.ok()) {
      warnings.Add(folder + ": " + libraries.error().message());
      break;
    }
    for (const SharedLibrary& library : *libraries) {
      const auto made = LinkSoname(root, folder, library);
      if (!made.ok()) TRY(warnings.Tolerate(made.error()));
    }
  }
  return {};
}

}  // namespace penstock::hook
