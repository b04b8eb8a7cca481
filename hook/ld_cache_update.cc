// Merges an image's ld.so.cache with the folders of a driver. Writes only the libraries' links.
#include "hook/ld_cache_update.h"

#include <algorithm>

#include <sys/stat.h>

#include "base/core/strings.h"

namespace penstock::hook {
namespace {

// An image's list has a handful of folders. Further folders of a hostile list are not identified
// and sort last.
constexpr std::size_t kMaxIdentified = 256;

// "libz.so.1.2.13" has five parts. A file name with more parts is read as if no list named it.
constexpr int kMaxParts = 16;

/// Which files of a folder an existing list already covers: the files that it names, and the files
/// with a SONAME that it names, since "libz.so.1.2.13" adds nothing to "libz.so.1". A name without
/// a version covers nothing: "libcuda.so" may exist only for compilers.
class Covered {
 public:
  void Add(const os::LdCacheEntry& entry) {
    files_.insert(entry.path.substr(entry.path.rfind('/') + 1));
    entries_.emplace(entry.soname, entry.flags);
    if (!entry.soname.ends_with(".so")) sonames_.insert(entry.soname);
  }

  bool Names(const SharedLibrary& library) const {
    return entries_.contains({library.soname, library.flags});
  }

  bool operator()(const std::string& file) const {
    if (files_.contains(file)) return true;
    int parts = 0;
    for (auto dot = file.find('.'); dot != std::string::npos && ++parts <= kMaxParts;
         dot = file.find('.', dot + 1)) {
      if (sonames_.contains(file.substr(0, dot))) return true;
    }
    return false;
  }

 private:
  std::set<std::string> files_;
  std::set<std::string> sonames_;
  std::set<std::pair<std::string, std::int32_t>> entries_;
};

bool HasEntry(const std::vector<os::TreeEntry>& entries, const std::string& name) {
  const auto found = std::lower_bound(
      entries.begin(), entries.end(), name,
      [](const os::TreeEntry& entry, const std::string& wanted) { return entry.name < wanted; });
  return found != entries.end() && found->name == name;
}

template <typename T>
bool Contains(const std::vector<T>& list, const T& value) {
  return std::ranges::find(list, value) != list.end();
}

}  // namespace

std::optional<Identity> Identify(const os::ConfinedTree& root, const std::string& path) {
  const auto found = root.Locate(path);
  struct stat status {};
  if (!found.ok() || ::fstat(found->get(), &status) != 0 || !S_ISDIR(status.st_mode))
    return std::nullopt;
  return Identity(status.st_dev, status.st_ino);
}

LdCacheUpdate::LdCacheUpdate(const os::ConfinedTree& root, const std::vector<std::string>& order,
                             const std::vector<std::string>& gone, Work& work, Warnings& warnings)
    : root_(root), work_(work), warnings_(warnings), gone_(gone.begin(), gone.end()) {
  for (const std::string& folder : order) order_.push_back(Identify(root, folder));
}

void LdCacheUpdate::AddImage(std::vector<os::LdCacheEntry> entries) {
  entries_.reserve(entries.size() + 128);
  for (os::LdCacheEntry& entry : entries) {
    const std::string path = base::FolderOf(entry.path);
    if (gone_.contains(path)) continue;
    const auto folder = IdentifyOnce(path);
    entries_.push_back({.entry = std::move(entry), .rank = RankOf(folder), .folder = folder});
  }
}

void LdCacheUpdate::AddFolder(const std::string& folder) {
  const auto identity = Identify(root_, folder);
  if (!identity || Contains(done_, *identity)) return;
  done_.push_back(*identity);
  auto libraries = ReadFolder(folder, *identity);
  // A link to a SONAME ("libcuda.so" to "libcuda.so.1") resolves only now.
  if (libraries.ok() && LinkSonames(folder, *libraries)) libraries = ReadFolder(folder, *identity);
  if (!libraries.ok()) return warnings_.Add(folder + ": " + libraries.error().message());
  for (const SharedLibrary& library : *libraries) AddLibrary(folder, *identity, library);
}

// Returns the folder's libraries that the entries do not cover; removes the folder's entries whose
// file does not exist.
Result<std::vector<SharedLibrary>> LdCacheUpdate::ReadFolder(const std::string& folder,
                                                             const Identity& identity) {
  ASSIGN(const auto files, root_.List(folder));
  TRY(work_.Spend(entries_.size() * Work::kOfEntry));
  Covered covered;
  std::erase_if(entries_, [&](const Entry& entry) {
    if (entry.folder != identity) return false;
    const bool there = HasEntry(files, entry.entry.path.substr(entry.entry.path.rfind('/') + 1));
    if (there) covered.Add(entry.entry);
    return !there;
  });
  ASSIGN(auto libraries, FindLibraries(root_, folder, files, covered, work_));
  std::erase_if(libraries, [&](const SharedLibrary& library) { return covered.Names(library); });
  return libraries;
}

// Foreign mounts and read-only file systems get no links; the list names the files themselves,
// which programs find as well.
bool LdCacheUpdate::LinkSonames(const std::string& folder,
                                const std::vector<SharedLibrary>& libraries) {
  bool any = false;
  for (const SharedLibrary& library : libraries) {
    const auto made = LinkSoname(root_, folder, library);
    any = any || (made.ok() && *made);
    if (!made.ok() && !Warnings().Tolerate(made.error()).ok())
      warnings_.Add(made.error().message());
  }
  return any;
}

std::vector<os::LdCacheEntry> LdCacheUpdate::Take() {
  std::vector<Entry*> order;
  for (Entry& entry : entries_) order.push_back(&entry);
  std::ranges::stable_sort(order, {}, &Entry::rank);
  std::vector<os::LdCacheEntry> list;
  list.reserve(order.size());
  for (Entry* entry : order) list.push_back(std::move(entry->entry));
  return list;
}

std::optional<Identity> LdCacheUpdate::IdentifyOnce(const std::string& path) {
  if (const auto known = identified_by_path_.find(path); known != identified_by_path_.end())
    return identified_[known->second].second;
  if (identified_.size() == kMaxIdentified) return std::nullopt;
  identified_by_path_.emplace(path, identified_.size());
  return identified_.emplace_back(path, Identify(root_, path)).second;
}

std::size_t LdCacheUpdate::RankOf(const std::optional<Identity>& folder) const {
  if (!folder) return order_.size();
  return static_cast<std::size_t>(std::ranges::find(order_, folder) - order_.begin());
}

// Spells a folder as the image's list does, so that old and new entries of a folder match.
std::string LdCacheUpdate::SpellingOf(const Identity& folder, const std::string& otherwise) const {
  const auto known =
      std::ranges::find_if(identified_, [&](const auto& other) { return other.second == folder; });
  return known == identified_.end() ? otherwise : known->first;
}

void LdCacheUpdate::AddLibrary(const std::string& folder, const Identity& identity,
                               const SharedLibrary& library) {
  const std::string name =
      root_.Exists(folder + "/" + library.soname) ? library.soname : library.file;
  entries_.push_back({.entry = {.soname = library.soname,
                                .path = SpellingOf(identity, folder) + "/" + name,
                                .flags = library.flags},
                      .rank = RankOf(identity),
                      .folder = identity});
}

}  // namespace penstock::hook
