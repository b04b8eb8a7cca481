// Generates specifications for machines on which a driver's files are listed by the system, or are
// in folders of the system.
#include <algorithm>
#include <set>
#include <utility>

#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>

#include "base/core/strings.h"
#include "node/cdi/dev_files.h"
#include "node/cdi/find_tree.h"
#include "node/cdi/generate_driver.h"
#include "node/cdi/generate_hooks.h"
#include "node/cdi/modes.h"
#include "node/cdi/modes_list.h"
#include "os/core/elf.h"
#include "os/core/file.h"

namespace penstock::node::cdi {
namespace {

using device::CdiPlatform;
using device::HostFile;

constexpr std::size_t kMaxNamed = 5;

bool IsLibrary(const std::string& path) {
  return ::fnmatch("lib?*.so*", std::string(NameOf(path)).c_str(), 0) == 0;
}

bool IsPattern(const std::string& path) { return path.find_first_of("*?[") != std::string::npos; }

/// "a, b and 3 more".
std::string Some(const std::vector<std::string>& all) {
  const std::vector<std::string> first(
      all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), kMaxNamed)));
  return base::Join(first, ", ") +
         (all.size() > kMaxNamed ? " and " + std::to_string(all.size() - kMaxNamed) + " more" : "");
}

/// Collects a platform's files.
class PlatformMaker {
 public:
  PlatformMaker(const CdiPlatform& subject, const Input& input, const Places& places,
                const Options& options, const PlatformOptions& more, DevFiles files,
                DriverTree tree)
      : subject_(subject),
        input_(input),
        places_(places),
        options_(options),
        more_(more),
        driver_(input.dialect->DriverForContainers(*input.driver)),
        files_(std::move(files)),
        tree_(std::move(tree)),
        links_(tree_, no_folders_, BesideLinks()) {}

  base::Result<Generated> Make() {
    generated_.spec.kind =
        options_.kind.empty() ? std::string(input_.dialect->cdi_kind()) : options_.kind;
    for (const std::string& node : subject_.nodes) AddDevice(node);
    TRY(AddLists());
    for (const CdiPlatform::Folder& folder : subject_.folders) TRY(AddFolder(folder));
    if (edits_.nodes.empty()) return NoDevice();
    for (const std::string& path : subject_.mounts) AddMount(path);
    for (const device::DriverLink& link : subject_.links) AddWholeLink(link);
    ReportMissing();
    AddDevices();
    Finish();
    return std::move(generated_);
  }

 private:
  std::vector<device::DriverLink> BesideLinks() const {
    auto links = subject_.links;
    std::erase_if(links, [](const device::DriverLink& link) { return link.link.starts_with('/'); });
    return links;
  }

  base::Status AddLists() {
    const bool given = !more_.lists.empty();
    std::size_t read = 0;
    for (const std::string& list : given ? more_.lists : subject_.lists) {
      const auto text = given ? os::ReadFile(list) : tree_.Read(list);
      if (!text.ok() && !given && text.error().code() == Code::kNotFound) continue;
      if (!text.ok()) return text.error();
      ASSIGN(const auto listed, ParseFileList(*text, list, subject_.words));
      ++read;
      for (const ListedFile& file : listed) AddListed(file);
    }
    if (!subject_.lists.empty() && read == 0)
      return Error(Code::kNotFound, "found no list of the files that containers need on " +
                                        subject_.name + ": " + base::Join(subject_.lists, ", "));
    return {};
  }

  void AddListed(const ListedFile& file) {
    if (file.kind == HostFile::kDevice) return AddDevice(file.path);
    for (const std::string& path : Expand(file.path)) {
      if (file.kind == HostFile::kLink) {
        AddLink(path);
      } else {
        AddFile(path,
                file.kind == HostFile::kFolder ? O_PATH | O_DIRECTORY : O_RDONLY | O_NONBLOCK);
      }
    }
  }

  /// Expands a glob in the last part of a path; returns the path itself where it has none.
  std::vector<std::string> Expand(const std::string& path) {
    const std::string name(NameOf(path));
    if (!IsPattern(name)) return {path};
    std::vector<std::string> paths;
    if (const auto folder = tree_.List(FolderOf(path)); folder.ok())
      for (const std::string& one : folder->names)
        if (::fnmatch(name.c_str(), one.c_str(), FNM_PERIOD) == 0)
          paths.push_back(Below(FolderOf(path), one));
    if (paths.empty()) missing_.push_back(path);
    return paths;
  }

  void AddDevice(const std::string& path) {
    std::vector<std::string> paths{path};
    if (IsPattern(path)) paths = files_.Match(path);
    bool any = false;
    for (const std::string& one : paths) {
      auto node = files_.Node(one);
      if (!node.ok()) continue;
      AddNode(edits_, *std::move(node), options_.additional_gids);
      any = true;
    }
    if (!any) missing_.push_back(path);
  }

  /// Adds a file or folder at its real path and, if that differs from the requested path, a link
  /// from the requested path.
  void AddFile(const std::string& path, int flags) {
    auto file = tree_.Find(path, flags);
    if (!file.ok()) file = InFolders(path, flags);
    if (!file.ok()) return missing_.push_back(path);
    const FoundFile found{file->path, file->host_path};
    if (file->path != path) extra_links_.push_back({path, file->path});
    if (IsLibrary(file->path) && (flags & O_PATH) == 0) AddLibrary(found, file->fd);
    mounts_.push_back(found);
  }

  base::Result<DriverTree::File> InFolders(const std::string& path, int flags) const {
    for (const std::string& folder : places_.library_folders)
      if (auto file = tree_.Find(Below(folder, NameOf(path)), flags); file.ok()) return file;
    return Error(Code::kNotFound, path + " was not found");
  }

  void AddLibrary(const FoundFile& library, const os::UniqueFd& fd) {
    folders_.insert(FolderOf(library.path));
    const auto facts = os::ReadElf(fd.get(), library.path);
    if (facts.ok()) links_.Add(library, facts->soname);
  }

  void AddLink(const std::string& path) {
    if (!IsIgnored(path)) AddFile(path, O_PATH);
  }

  bool IsIgnored(const std::string& path) const {
    constexpr std::string_view kAnywhere = "**/";
    return std::ranges::any_of(more_.ignored_links, [&](const std::string& pattern) {
      if (pattern.starts_with(kAnywhere))
        return ::fnmatch(pattern.c_str() + kAnywhere.size(), std::string(NameOf(path)).c_str(),
                         0) == 0;
      return ::fnmatch(pattern.c_str(), path.c_str(), FNM_PATHNAME) == 0;
    });
  }

  /// Adds the newest of the folders that contain the file by which they are known.
  base::Status AddFolder(const CdiPlatform::Folder& wanted) {
    std::vector<std::pair<timespec, std::string>> found;
    for (const std::string& path : ExpandFolder(wanted.pattern)) {
      const auto file = tree_.Find(Below(path, wanted.known_by), O_PATH);
      struct stat info {};
      if (file.ok() && ::fstat(file->fd.get(), &info) == 0) found.emplace_back(info.st_mtim, path);
    }
    if (found.empty())
      return Error(Code::kNotFound, "cannot find " + Below(wanted.pattern, wanted.known_by) +
                                        ", without which " + subject_.name +
                                        " has no driver files for containers");
    std::ranges::sort(found, [](const auto& a, const auto& b) {
      return std::tie(b.first.tv_sec, b.first.tv_nsec, a.second) <
             std::tie(a.first.tv_sec, a.first.tv_nsec, b.second);
    });
    const std::string& folder = found.front().second;
    if (found.size() > 1)
      generated_.remarks.push_back(std::to_string(found.size()) + " folders match " +
                                   wanted.pattern + " and contain " + wanted.known_by +
                                   ": using the newest, " + folder);
    AddFilesOf(wanted, folder);
    return {};
  }

  std::vector<std::string> ExpandFolder(const std::string& pattern) const {
    const std::string name(NameOf(pattern));
    if (!IsPattern(name)) return {pattern};
    std::vector<std::string> paths;
    if (const auto folder = tree_.List(FolderOf(pattern)); folder.ok())
      for (const std::string& one : folder->names)
        if (::fnmatch(name.c_str(), one.c_str(), FNM_PERIOD) == 0)
          paths.push_back(Below(FolderOf(pattern), one));
    return paths;
  }

  void AddFilesOf(const CdiPlatform::Folder& wanted, const std::string& folder) {
    std::set<std::string> names(wanted.files.begin(), wanted.files.end());
    if (const auto listed = tree_.List(folder); listed.ok())
      for (const std::string& name : listed->names)
        if (std::ranges::any_of(wanted.files_too, [&](const std::string& pattern) {
              return ::fnmatch(pattern.c_str(), name.c_str(), FNM_PERIOD) == 0;
            }))
          names.insert(name);
    for (const std::string& name : names) AddFile(Below(folder, name), O_RDONLY | O_NONBLOCK);
  }

  void AddMount(const std::string& path) {
    if (path.starts_with(kSys)) {
      if (os::Exists(places_.sysfs_root + "/" + path.substr(kSys.size())))
        mounts_.push_back({path, path});
    } else if (const auto file = tree_.Find(path, O_PATH); file.ok()) {
      mounts_.push_back({path, file->host_path});
    }
  }

  void AddWholeLink(const device::DriverLink& link) {
    if (!link.link.starts_with('/')) return;
    const auto leads_to = [&](const FoundFile& file) { return NameOf(file.path) == link.target; };
    const auto target = std::ranges::find_if(mounts_, leads_to);
    if (target != mounts_.end() && target->path != link.link)
      extra_links_.push_back({link.link, target->path});
  }

  void ReportMissing() {
    if (missing_.empty()) return;
    generated_.remarks.push_back(std::to_string(missing_.size()) +
                                 " of the files that containers need on " + subject_.name +
                                 " were not found on this machine: " + Some(missing_));
  }

  void AddDevices() {
    std::vector<std::string> names;
    if (subject_.numbered) {
      device::Facts first;
      first.index = 0;
      names = input_.dialect->CdiNamesOf(first, options_.names);
      std::erase(names, "");
    }
    if (options_.all || !subject_.numbered) names.push_back(kAll);
    for (const std::string& name : names) generated_.spec.devices.push_back({name, {}, edits_});
  }

  void Finish() {
    auto& edits = generated_.spec.edits;
    edits.mounts = FileMounts(mounts_);
    auto links = links_.Take();
    links.insert(links.end(), extra_links_.begin(), extra_links_.end());
    std::ranges::sort(links);
    links.erase(std::unique(links.begin(), links.end(),
                            [](const auto& a, const auto& b) { return a.path == b.path; }),
                links.end());
    const auto is_file = [&](const FoundLink& link) {
      return std::ranges::any_of(mounts_,
                                 [&](const FoundFile& file) { return file.path == link.path; });
    };
    std::erase_if(links, is_file);
    const std::vector<std::string> folders(folders_.begin(), folders_.end());
    const HookCalls calls(driver_, options_);
    if (auto hook = calls.CreateLinks(links)) edits.hooks.push_back(*std::move(hook));
    if (auto hook = calls.UpdateCache(folders)) edits.hooks.push_back(*std::move(hook));
    edits.env = DriverEnvironment(driver_, folders);
  }

  Error NoDevice() const {
    return Error(Code::kNotFound, "this is not a machine with " + subject_.name +
                                      ": none of its device files was found" +
                                      (missing_.empty() ? "" : " (" + Some(missing_) + ")"));
  }

  const CdiPlatform& subject_;
  const Input& input_;
  const Places& places_;
  const Options& options_;
  const PlatformOptions& more_;
  const device::ContainerDriver driver_;
  const DevFiles files_;
  const DriverTree tree_;
  const std::vector<DriverTree::Folder> no_folders_;
  LibraryLinks links_;
  Generated generated_;
  api::cdi::CdiEdits edits_;  ///< of the device
  std::vector<FoundFile> mounts_;
  std::vector<FoundLink> extra_links_;
  std::set<std::string> folders_;  ///< of libraries
  std::vector<std::string> missing_;
};

}  // namespace

base::Result<Generated> GeneratePlatform(const CdiPlatform& subject, const Input& input,
                                         const Places& places, const Options& options,
                                         const PlatformOptions& more) {
  ASSIGN(DevFiles files, DevFiles::Open(places));
  ASSIGN(DriverTree tree, DriverTree::Open(places));
  return PlatformMaker(subject, input, places, options, more, std::move(files), std::move(tree))
      .Make();
}

}  // namespace penstock::node::cdi
