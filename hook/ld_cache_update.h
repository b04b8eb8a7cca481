// Computes a container's list of libraries from the image's list and further folders. Reads the
// container's tree; writes only SONAME links.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "hook/ld_config.h"
#include "hook/library_folder.h"
#include "hook/warnings.h"
#include "os/core/confined_tree.h"
#include "os/core/ld_cache.h"

namespace penstock::hook {

/// Identifies the directory that a path leads to; /lib and /usr/lib are often the same.
using Identity = std::pair<dev_t, ino_t>;
std::optional<Identity> Identify(const os::ConfinedTree& root, const std::string& path);

/// The list of libraries that ldconfig would write, without rereading every library of the image:
/// keeps the entries of the image's own list, and adds what the given folders contain in addition.
/// Creates SONAME links in these folders as ldconfig does.
class LdCacheUpdate {
 public:
  /// `order` is the order in which folders are searched; `gone` are folders of an earlier start
  /// that no longer count.
  LdCacheUpdate(const os::ConfinedTree& root, const std::vector<std::string>& order,
                const std::vector<std::string>& gone, Work& work, Warnings& warnings);

  /// Adds the image's own list. To be called first.
  void AddImage(std::vector<os::LdCacheEntry> entries);
  /// Adds a folder that may contain more than the image's list. A missing folder adds nothing; a
  /// folder that needs too much work adds a warning.
  void AddFolder(const std::string& folder);

  /// The list in search order.
  std::vector<os::LdCacheEntry> Take();

 private:
  struct Entry {
    os::LdCacheEntry entry;
    std::size_t rank = 0;
    std::optional<Identity> folder;
  };

  std::optional<Identity> IdentifyOnce(const std::string& path);
  std::size_t RankOf(const std::optional<Identity>& folder) const;
  std::string SpellingOf(const Identity& folder, const std::string& otherwise) const;
  base::Result<std::vector<SharedLibrary>> ReadFolder(const std::string& folder,
                                                      const Identity& identity);
  bool LinkSonames(const std::string& folder, const std::vector<SharedLibrary>& libraries);
  void AddLibrary(const std::string& folder, const Identity& identity,
                  const SharedLibrary& library);

  const os::ConfinedTree& root_;
  Work& work_;
  Warnings& warnings_;
  std::vector<std::optional<Identity>> order_;
  std::set<std::string> gone_;
  std::vector<Identity> done_;
  std::vector<std::pair<std::string, std::optional<Identity>>>
      identified_;                                         // in the order of the image's list
  std::map<std::string, std::size_t> identified_by_path_;  // indices into identified_
  std::vector<Entry> entries_;
};

}  // namespace penstock::hook
