// The chmod hook: for low-level runtimes that create the folders of device files with access for
// their owner only.
#include <algorithm>

#include <sys/stat.h>

#include "base/core/strings.h"
#include "hook/hooks.h"

namespace penstock::hook {
namespace {

Status ChangeMode(const os::ConfinedTree& root, const std::string& path, unsigned mode) {
  ASSIGN(const WritablePlace place, FindWritablePlace(root, path));
  return place.tree.ChangeMode(place.path, mode);
}

}  // namespace

Status ChangeModes(const os::ConfinedTree& root, const std::string& mode,
                   const std::vector<std::string>& paths, Warnings& warnings) {
  const auto bits = base::ParseUint(mode, 8);
  if (!bits || *bits > 07777)
    return Error(Code::kInvalidArgument,
                 "\"" + mode + "\" is not a mode; pass --mode in octal digits, such as 755");
  if (std::ranges::any_of(paths, [](const std::string& path) { return base::Trim(path).empty(); }))
    return Error(Code::kInvalidArgument, "--path must not be empty");
  for (const std::string& path : paths) {
    const auto changed = ChangeMode(root, path, static_cast<unsigned>(*bits));
    if (!changed.ok() && changed.error().code() == Code::kNotFound) continue;
    TRY(warnings.Tolerate(changed));
  }
  return {};
}

}  // namespace penstock::hook
