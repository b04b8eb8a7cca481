// Lists each folder once, opens each file with a matching name, and then searches the driver's own
// libraries that those need.
#include "node/cdi/find_libraries.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

#include "base/core/strings.h"
#include "os/core/elf.h"
#include "os/core/ld_cache.h"

namespace penstock::node::cdi {
namespace {

using base::GlobMatch;
using device::ContainerDriver;
using device::DriverFile;

/// "550.54.15" of "libcuda.so.550.54.15"; nothing of "libcuda.so.1".
std::string VersionIn(std::string_view name, std::string_view library) {
  if (!name.starts_with(library) || name.size() <= library.size() + 1 ||
      name[library.size()] != '.')
    return "";
  const std::string_view suffix = name.substr(library.size() + 1);
  const bool is_version = suffix.find_first_not_of("0123456789.") == std::string_view::npos &&
                          suffix.find('.') != std::string_view::npos;
  return is_version ? std::string(suffix) : "";
}

struct Library {
  FoundFile file;
  std::string key;  ///< path below its library folder: "vdpau/libvdpau_nvidia.so.550.54.15"
  os::ElfFacts elf;
};

class Search {
 public:
  Search(const DriverTree& tree, const ContainerDriver& wanted) : tree_(tree), wanted_(wanted) {
    ReadCache();
  }

  void AddFolders(const std::vector<std::string>& more) {
    for (const std::string& folder : more) AddFolder(folder);
    for (const std::string& folder : wanted_.library_folders) AddFolder(folder);
    // The rest of a driver is in the folder of a link's target: Debian's alternatives, and
    // libraries that ld.so finds only by configuration.
    for (const auto& entry : cache_) AddFolder(FolderOf(entry.path));
    for (const auto& entry : cache_) AddRealFolder(entry.path);
    for (std::size_t i = 0; i < folders_.size(); ++i)
      for (const std::string& name : std::vector(folders_[i].names))
        if (IsVersionLibrary(name)) AddRealFolder(Below(folders_[i].path, name));
  }

  /// The version in the name of the driver's first library, with its short names resolved; "" where
  /// there is none.
  std::string Version() const {
    for (const std::string& library : wanted_.version_libraries)
      for (const auto& folder : folders_)
        for (const std::string& name : folder.names) {
          if (!name.starts_with(library)) continue;
          const auto file = tree_.Find(Below(folder.path, name), O_PATH);
          if (!file.ok()) continue;
          if (std::string version = VersionIn(NameOf(file->host_path), library); !version.empty())
            return version;
        }
    return "";
  }

  void TakeWanted(const std::string& version) {
    for (const DriverFile& file : wanted_.files) {
      if (file.kind == DriverFile::Kind::kLibrary)
        TakePattern(WithVersion(file.pattern, version), file.expected);
      if (file.kind == DriverFile::Kind::kModule) TakeModule(WithVersion(file.pattern, version));
    }
  }

  /// Takes libraries that those taken need, and that are the driver's own.
  void TakeNeeded() {
    for (std::size_t i = 0; i < libraries_.size(); ++i)
      for (const std::string& needed : std::vector(libraries_[i].elf.needed)) {
        const bool wide = libraries_[i].elf.wide;
        if (!IsOwn(needed) || Has(needed, wide) || needed.find('/') != std::string::npos) continue;
        if (!TakeNamed(needed, wide) && reported_.insert(needed).second)
          remarks_.push_back(
              libraries_[i].file.path + " needs " + needed + ", which was not found below " +
              tree_.root() +
              ": programs that use it fail in containers; install the complete driver");
      }
  }

  /// A driver root may contain libraries for other processors, as images for cross builds do:
  /// containers on this machine cannot use them.
  void DropOtherProcessors() {
    std::map<bool, std::uint16_t> machines;
    for (const Library& library : libraries_)
      if (IsVersionLibrary(NameOf(library.file.path)))
        machines.emplace(library.elf.wide, library.elf.machine);
    std::erase_if(libraries_, [&](const Library& library) {
      const auto machine = machines.find(library.elf.wide);
      return machine != machines.end() && machine->second != library.elf.machine;
    });
  }

  LibrarySet Set(bool wide, const std::string& version) const {
    std::vector<device::DriverLink> wanted = wanted_.links;
    for (device::DriverLink& link : wanted) link.target = WithVersion(link.target, version);
    LibraryLinks links(tree_, folders_, std::move(wanted));
    LibrarySet set;
    std::set<std::string> folders;
    for (const Library& library : libraries_) {
      if (library.elf.wide != wide) continue;
      set.files.push_back(library.file);
      folders.insert(FolderOf(library.file.path));
      links.Add(library.file, library.elf.soname);
    }
    if (wide) set.modules = modules_;
    for (const FoundFile& module : set.modules) links.Add(module, "");
    set.folders.assign(folders.begin(), folders.end());
    const auto by_path = [](const FoundFile& a, const FoundFile& b) { return a.path < b.path; };
    std::ranges::sort(set.files, by_path);
    std::ranges::sort(set.modules, by_path);
    set.links = links.Take();
    return set;
  }

  /// Whether the driver's own libraries include one for programs of the machine's width.
  bool HasVersionLibrary() const {
    return std::ranges::any_of(libraries_, [&](const Library& library) {
      return library.elf.wide && IsVersionLibrary(NameOf(library.file.path));
    });
  }

  std::vector<std::string> searched() const {
    std::vector<std::string> paths;
    for (const auto& folder : folders_) paths.push_back(folder.path);
    return paths;
  }
  std::vector<std::string> missing_, remarks_;

 private:
  void ReadCache() {
    const auto text = tree_.Read("/etc/ld.so.cache");
    if (!text.ok()) return;
    auto entries = os::ReadLdCache(*text);
    if (!entries.ok()) {
      remarks_.push_back("/etc/ld.so.cache below " + tree_.root() + " cannot be read (" +
                         entries.error().message() +
                         "): libraries are searched in the standard folders only; run ldconfig");
      return;
    }
    cache_ = *std::move(entries);
    std::erase_if(cache_, [&](const os::LdCacheEntry& entry) { return !IsOwn(entry.soname); });
  }

  bool IsOwn(std::string_view name) const {
    return std::ranges::any_of(wanted_.own_libraries,
                               [&](const auto& glob) { return GlobMatch(glob, name); });
  }

  bool IsVersionLibrary(std::string_view name) const {
    return std::ranges::any_of(wanted_.version_libraries,
                               [&](const auto& library) { return name.starts_with(library); });
  }

  void AddFolder(const std::string& path) {
    if (!visited_.insert(path).second) return;
    auto folder = tree_.List(path);
    if (!folder.ok()) {
      if (folder.error().code() != Code::kNotFound)
        remarks_.push_back(folder.error().message() + ": its libraries are skipped");
      return;
    }
    if (listed_.insert(folder->host_path).second) folders_.push_back(*std::move(folder));
  }

  void AddRealFolder(const std::string& path) {
    const auto file = tree_.Find(path, O_PATH);
    if (file.ok() && file->path != path) AddFolder(FolderOf(file->path));
  }

  void TakePattern(const std::string& pattern, bool expected) {
    const auto slash = pattern.rfind('/');
    const std::string below = slash == std::string::npos ? "" : pattern.substr(0, slash);
    bool found = false;
    for (const auto& folder : folders_) {
      if (below.empty()) {
        found = TakeMatching(folder, "", pattern) || found;
      } else if (std::ranges::binary_search(folder.names, below)) {
        const auto inner = tree_.List(Below(folder.path, below));
        if (inner.ok())
          found = TakeMatching(*inner, below + "/", pattern.substr(slash + 1)) || found;
      }
    }
    if (!found && expected) missing_.push_back(pattern);
  }

  bool TakeMatching(const DriverTree::Folder& folder, const std::string& below,
                    const std::string& pattern) {
    if (pattern.find('*') == std::string::npos)
      return std::ranges::binary_search(folder.names, pattern) &&
             Take(Below(folder.path, pattern), below + pattern);
    bool found = false;
    for (const std::string& name : folder.names)
      if (GlobMatch(pattern, name)) found = Take(Below(folder.path, name), below + name) || found;
    return found;
  }

  bool TakeNamed(const std::string& name, bool wide) {
    for (const auto& folder : folders_)
      if (std::ranges::binary_search(folder.names, name) && Take(Below(folder.path, name), name) &&
          Has(name, wide))
        return true;
    for (const auto& entry : cache_)
      if (entry.soname == name && Take(entry.path, name) && Has(name, wide)) return true;
    return false;
  }

  /// True where the library is taken, or another of its name and width from an earlier folder is.
  bool Take(const std::string& path, const std::string& key) {
    if (const auto known = taken_.find(path); known != taken_.end()) return known->second;
    const bool taken = TakeNew(path, key);
    taken_.emplace(path, taken);
    return taken;
  }

  bool TakeNew(const std::string& path, const std::string& key) {
    auto file = tree_.Find(path, O_RDONLY | O_NONBLOCK);
    if (!file.ok()) return LeaveOut(file.error().message());
    struct stat about {};
    if (::fstat(file->fd.get(), &about) != 0 || !S_ISREG(about.st_mode))
      return LeaveOut(path + " is not a regular file");
    if (!hosts_.insert(file->host_path).second) return true;
    auto elf = os::ReadElf(file->fd.get(), path);
    if (!elf.ok()) return LeaveOut(elf.error().message());
    const auto same = [&](const Library& other) {
      return other.elf.wide == elf->wide && other.elf.machine == elf->machine && other.key == key;
    };
    if (std::ranges::any_of(libraries_, same)) return true;
    libraries_.push_back(
        {{std::move(file->path), std::move(file->host_path)}, key, *std::move(elf)});
    return true;
  }

  bool LeaveOut(const std::string& why) {
    remarks_.push_back(why + ": not available in containers");
    return false;
  }

  /// Takes the first match, because programs look in one place.
  void TakeModule(const std::string& pattern) {
    const std::string name(NameOf(pattern));
    for (const FoundFile& module : modules_)
      if (NameOf(module.path) == name) return;
    for (const auto& folder : folders_) {
      if (!std::ranges::binary_search(folder.names, pattern.substr(0, pattern.find('/')))) continue;
      const std::string path = Below(folder.path, pattern);
      auto file = tree_.Find(path, O_PATH);
      struct stat about {};
      if (!file.ok() || ::fstat(file->fd.get(), &about) != 0 || !S_ISREG(about.st_mode)) continue;
      modules_.push_back({path, std::move(file->host_path)});
      return;
    }
  }

  bool Has(std::string_view name, bool wide) const {
    return std::ranges::any_of(libraries_, [&](const Library& library) {
      return library.elf.wide == wide &&
             (library.elf.soname == name || NameOf(library.file.path) == name);
    });
  }

  const DriverTree& tree_;
  const ContainerDriver& wanted_;
  std::vector<os::LdCacheEntry> cache_;  ///< of the driver's own libraries
  std::vector<DriverTree::Folder> folders_;
  std::set<std::string> visited_,
      listed_;  ///< folders by the requested path, and by their path on the host
  std::vector<Library> libraries_;
  std::vector<FoundFile> modules_;
  std::map<std::string, bool> taken_;  ///< paths that were already checked
  std::set<std::string> hosts_;
  std::set<std::string> reported_;
};

Error NoLibraries(const DriverTree& tree, const ContainerDriver& wanted, const std::string& version,
                  const std::string& other) {
  std::vector<std::string> names;
  for (const std::string& library : wanted.version_libraries)
    names.push_back(library + "." + (version.empty() ? "*" : version));
  const std::string what =
      "found no driver library (" + base::Join(names, ", ") + ") below " + tree.root();
  if (other.empty() || other == version)
    return {Code::kNotFound, what +
                                 ": install the driver, or specify its location with --driver-root "
                                 "or --library-search-path"};
  return {Code::kFailedPrecondition,
          what + ", which has version " + other +
              ": load the driver of that version (or restart the machine), or install " + version};
}

}  // namespace

std::string WithVersion(std::string pattern, const std::string& version) {
  constexpr std::string_view kPlace = "{version}";
  for (auto at = pattern.find(kPlace); at != std::string::npos;
       at = pattern.find(kPlace, at + version.size()))
    pattern.replace(at, kPlace.size(), version);
  return pattern;
}

base::Result<FoundLibraries> FindLibraries(const DriverTree& tree, const ContainerDriver& wanted,
                                           const std::string& version,
                                           const std::vector<std::string>& more_folders) {
  Search search(tree, wanted);
  search.AddFolders(more_folders);
  FoundLibraries found;
  found.version = version.empty() ? search.Version() : version;
  if (found.version.empty()) return NoLibraries(tree, wanted, "", "");
  search.TakeWanted(found.version);
  search.TakeNeeded();
  search.DropOtherProcessors();
  if (!search.HasVersionLibrary())
    return NoLibraries(tree, wanted, found.version, search.Version());
  found.wide = search.Set(true, found.version);
  found.narrow = search.Set(false, found.version);
  found.missing = std::move(search.missing_);
  found.remarks = std::move(search.remarks_);
  found.searched = search.searched();
  return found;
}

}  // namespace penstock::node::cdi
