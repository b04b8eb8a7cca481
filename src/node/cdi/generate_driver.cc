// Turns the libraries, files and control devices that were found into edits in order of path, so
// that the same files give the same text.
#include "node/cdi/generate_driver.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/core/strings.h"
#include "node/cdi/find_files.h"
#include "node/cdi/find_libraries.h"
#include "node/cdi/generate_devices.h"
#include "node/cdi/generate_hooks.h"

namespace penstock::node::cdi {
namespace {

using api::cdi::CdiEdits;
using device::ContainerDriver;

/// "rprivate": propagated mounts doubled with each container (NVIDIA/nvidia-container-toolkit#697).
const std::vector<std::string> kFileOptions{"ro", "nosuid", "nodev", "rbind", "rprivate"};
/// Sockets are written to: a read-only mount made their clients fail (NVIDIA container toolkit
/// 1.18.2).
const std::vector<std::string> kSocketOptions{"nosuid", "nodev", "rbind", "rprivate", "noexec"};

class Mounts {
 public:
  /// Of several files for one path it takes the first.
  void Add(const std::vector<FoundFile>& files, const std::vector<std::string>& options) {
    for (const FoundFile& file : files)
      mounts_.emplace(file.path, api::cdi::Mount{file.host_path, file.path, options, ""});
  }
  std::vector<api::cdi::Mount> Take() && {
    std::vector<api::cdi::Mount> mounts;
    for (auto& [path, mount] : mounts_) mounts.push_back(std::move(mount));
    return mounts;
  }

 private:
  std::map<std::string, api::cdi::Mount> mounts_;
};

void Push(std::vector<api::cdi::Hook>& hooks, std::optional<api::cdi::Hook> hook) {
  if (hook) hooks.push_back(*std::move(hook));
}

/// The dialect's hooks in their order; those that depend on libraries are made for this set.
std::vector<api::cdi::Hook> Hooks(const ContainerDriver& wanted, const LibrarySet& set,
                                  const std::string& version, const Options& options) {
  const HookCalls calls(wanted, options);
  std::vector<api::cdi::Hook> hooks;
  for (const device::ContainerHook& hook : wanted.hooks) {
    if (hook.name == kOpenFolders) continue;  // added with the device files that it is for
    if (hook.name == kCreateLinks) {
      Push(hooks, calls.CreateLinks(set.links));
    } else if (hook.name == kUpdateCache) {
      Push(hooks, calls.UpdateCache(set.folders));
    } else {
      std::vector<std::string> arguments;
      for (const std::string& argument : hook.arguments)
        arguments.push_back(WithVersion(argument, version));
      Push(hooks, calls.Call(hook.name, arguments));
    }
  }
  return hooks;
}

CdiEdits NarrowEdits(const ContainerDriver& wanted, const LibrarySet& set, const Options& options) {
  CdiEdits edits;
  edits.mounts = FileMounts(set.files);
  const HookCalls calls(wanted, options);
  Push(edits.hooks, calls.CreateLinks(set.links));
  Push(edits.hooks, calls.UpdateCache(set.folders));
  return edits;
}

/// Adds one sentence for each part of the driver that is incomplete.
void ReportMissing(const ContainerDriver& wanted, const std::string& version,
                   const std::vector<std::string>& missing, const std::string& root,
                   std::vector<std::string>& remarks) {
  std::map<std::string, std::set<std::string>> parts;
  for (const device::DriverFile& file : wanted.files) {
    const std::string pattern = WithVersion(file.pattern, version);
    if (std::ranges::find(missing, pattern) != missing.end())
      parts[file.capability].insert(pattern);
  }
  for (const auto& [capability, names] : parts) {
    const std::vector<std::string> list(names.begin(), names.end());
    remarks.push_back("containers lack some of the driver's " + capability +
                      " files, which were not found below " + root + ": " + base::Join(list, ", "));
  }
}

base::Status AddControlFiles(const Input& input, const ContainerDriver& wanted,
                             const Places& places, const Options& options, CdiEdits& edits) {
  ASSIGN(const DevFiles files, DevFiles::Open(places));
  std::map<std::string, device::DeviceFile> known;
  for (const device::DeviceFile& file : input.driver->files) known.emplace(file.path, file);
  std::map<std::string, const device::ControlFile*> all;
  for (const auto& [path, file] : known) all.emplace(path, nullptr);
  for (const device::ControlFile& file : wanted.control_files) all[file.path] = &file;
  for (const auto& [path, file] : all) {
    const auto numbers = known.find(path);
    auto node = NodeOf(files, numbers != known.end() ? numbers->second : device::DeviceFile{path});
    if (node.ok()) {
      AddNode(edits, *std::move(node), options.additional_gids);
    } else if (file != nullptr && file->required) {
      return base::Error(base::Code::kNotFound,
                         node.error().message() +
                             ", and no container can use the devices without it: run '" +
                             file->remedy + "' on the host");
    }
  }
  return {};
}

std::vector<std::string> AsSeen(const std::string& root, const std::vector<std::string>& paths) {
  std::set<std::string> folders;
  for (const std::string& path : paths) folders.insert((root == "/" ? "" : root) + path);
  return {folders.begin(), folders.end()};
}

}  // namespace

std::vector<api::cdi::Mount> FileMounts(const std::vector<FoundFile>& files) {
  Mounts mounts;
  mounts.Add(files, kFileOptions);
  return std::move(mounts).Take();
}

std::vector<std::string> DriverEnvironment(const ContainerDriver& wanted,
                                           const std::vector<std::string>& library_folders) {
  constexpr std::string_view kPlace = "{folders}";
  std::vector<std::string> environment;
  for (std::string variable : wanted.environment) {
    if (const auto at = variable.find(kPlace); at != std::string::npos)
      variable.replace(at, kPlace.size(), base::Join(library_folders, ":"));
    environment.push_back(std::move(variable));
  }
  std::ranges::sort(environment);
  return environment;
}

base::Result<DriverEdits> EditsOfDriver(const Input& input, const Places& places,
                                        const Options& options, ControlFiles control_files) {
  const ContainerDriver wanted = input.dialect->DriverForContainers(*input.driver);
  ASSIGN(const DriverTree tree, DriverTree::Open(places));
  FoundLibraries libraries;
  libraries.version = input.driver->version;
  if (!wanted.version_libraries.empty()) {
    ASSIGN(libraries, FindLibraries(tree, wanted, input.driver->version, places.library_folders));
  }
  FoundFiles files = FindFiles(tree, wanted, libraries.version, places);

  DriverEdits driver;
  driver.version = libraries.version;
  if (control_files == ControlFiles::kGiven)
    TRY(AddControlFiles(input, wanted, places, options, driver.edits));
  Mounts mounts;
  mounts.Add(libraries.wide.files, kFileOptions);
  mounts.Add(libraries.wide.modules, kFileOptions);
  mounts.Add(files.files, kFileOptions);
  mounts.Add(files.sockets, kSocketOptions);
  driver.edits.mounts = std::move(mounts).Take();
  driver.edits.hooks = Hooks(wanted, libraries.wide, driver.version, options);
  driver.edits.env = DriverEnvironment(wanted, libraries.wide.folders);
  if (!libraries.narrow.files.empty())
    driver.narrow = NarrowEdits(wanted, libraries.narrow, options);

  auto& missing = libraries.missing;
  missing.insert(missing.end(), files.missing.begin(), files.missing.end());
  driver.remarks = std::move(libraries.remarks);
  driver.remarks.insert(driver.remarks.end(), files.remarks.begin(), files.remarks.end());
  ReportMissing(wanted, driver.version, missing, tree.root(), driver.remarks);
  auto& searched = libraries.searched;
  searched.insert(searched.end(), files.searched.begin(), files.searched.end());
  driver.folders = AsSeen(tree.root(), searched);
  return driver;
}

}  // namespace penstock::node::cdi
