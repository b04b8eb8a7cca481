// The hook update-ldcache for glibc; musl's part is in musl.cc.
#include <algorithm>

#include "hook/hooks.h"
#include "hook/ld_cache_update.h"
#include "hook/ld_config.h"
#include "os/core/ld_cache.h"

namespace penstock::hook {
namespace {

constexpr char kCache[] = "/etc/ld.so.cache";

std::vector<std::string> Clean(const std::vector<std::string>& folders) {
  std::vector<std::string> clean;
  for (const std::string& folder : folders) {
    std::string path = os::CleanPath(folder);
    if (path != "/" && std::ranges::find(clean, path) == clean.end())
      clean.push_back(std::move(path));
  }
  return clean;
}

// Excludes folders that the image searches anyway: listing them first would reorder all of the
// image's own libraries.
std::vector<std::string> FoldersBeyond(const os::ConfinedTree& root,
                                       const std::vector<LdConfigFolder>& config,
                                       const std::vector<std::string>& folders) {
  std::vector<std::optional<Identity>> known;
  for (const LdConfigFolder& folder : config) known.push_back(Identify(root, folder.path));
  std::vector<std::string> beyond;
  for (const std::string& folder : folders) {
    const auto identity = Identify(root, folder);
    if (identity && std::ranges::find(known, identity) == known.end()) beyond.push_back(folder);
  }
  return beyond;
}

// The folders in the order in which ldconfig will search them once Penstock's drop-in contains
// `beyond`: the image's files below /etc/ld.so.conf.d are ordered by name.
std::vector<std::string> SearchOrder(const std::vector<LdConfigFolder>& config,
                                     const std::vector<std::string>& compat,
                                     const std::vector<std::string>& beyond) {
  const std::string drop_ins = std::string(kDropIns) + "/";
  std::vector<std::string> order;
  std::size_t place = 0;
  for (const LdConfigFolder& folder : config) {
    order.push_back(folder.path);
    if (folder.file.starts_with(drop_ins) && folder.file < kDriverDropIn) place = order.size();
  }
  order.insert(order.begin() + static_cast<std::ptrdiff_t>(place), beyond.begin(), beyond.end());
  order.insert(order.begin(), compat.begin(), compat.end());
  return order;
}

Status WriteIfNew(const os::ConfinedTree& root, const std::string& path,
                  const std::string& content) {
  const auto there = root.Read(path);
  return there.ok() && *there == content ? Status() : root.Write(path, content);
}

Status WriteDropIn(const os::ConfinedTree& root, const std::vector<std::string>& beyond,
                   bool compat) {
  if (!beyond.empty()) {
    TRY(WriteIfNew(root, kDriverDropIn, WriteFolders(beyond)));
  } else {
    TRY(root.Remove(kDriverDropIn));
  }
  if (beyond.empty() && !compat) return {};
  const auto created =
      root.Exists(kLdConfig)
          ? Status()
          : root.Create(kLdConfig, std::string("include ") + kDropIns + "/*.conf\n");
  return !created.ok() && created.error().code() == Code::kAlreadyExists ? Status() : created;
}

Status WriteCache(const os::ConfinedTree& root, LdCacheUpdate update,
                  const std::vector<std::string>& folders, Warnings& warnings) {
  const auto bytes = root.Read(kCache);
  if (bytes.ok()) {
    auto entries = os::ReadLdCache(*bytes);
    if (!entries.ok())
      warnings.Add("the image's " + std::string(kCache) +
                   " is not used: " + entries.error().message());
    if (entries.ok()) update.AddImage(*std::move(entries));
  } else if (bytes.error().code() != Code::kNotFound) {
    warnings.Add("the image's " + std::string(kCache) + " is not used: " + bytes.error().message());
  }
  for (const std::string& folder : folders) update.AddFolder(folder);
  auto entries = update.Take();
  if (entries.empty()) return {};
  const std::string content = os::WriteLdCache(entries);
  return bytes.ok() && *bytes == content ? Status() : root.Write(kCache, content);
}

}  // namespace

Status UpdateLdCache(const os::ConfinedTree& root, const std::vector<std::string>& given,
                     Warnings& warnings) {
  const std::vector<std::string> folders = Clean(given);
  Work work;
  if (HasMusl(root)) {
    TRY(warnings.Tolerate(UpdateMuslPaths(root, folders, work)));
    if (!root.Exists(kCache)) return {};
  }
  const auto config = ReadLdConfig(root);
  const auto compat = ReadFolders(root, kCompatDropIn);
  const auto beyond = FoldersBeyond(root, config, folders);
  std::vector<std::string> gone = ReadFolders(root, kDriverDropIn);
  std::erase_if(gone, [&](const std::string& folder) {
    return std::ranges::find(folders, folder) != folders.end();
  });
  std::vector<std::string> all = compat;
  all.insert(all.end(), folders.begin(), folders.end());
  TRY(warnings.Tolerate(WriteCache(
      root, LdCacheUpdate(root, SearchOrder(config, compat, beyond), gone, work, warnings), all,
      warnings)));
  return warnings.Tolerate(WriteDropIn(root, beyond, !compat.empty()));
}

}  // namespace penstock::hook
