// Searches each kind of file in the folders where Linux, or the program that reads such files,
// looks for them.
#include "node/cdi/find_files.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/core/strings.h"
#include "node/cdi/find_libraries.h"
#include "os/core/file.h"

namespace penstock::node::cdi {
namespace {

using device::DriverFile;

constexpr const char* kProgramFolders[] = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
                                           "/usr/bin",        "/sbin",          "/bin"};
/// The defaults of the XDG base directory specification. The last ones are for driver roots that
/// are not a whole system: those of NixOS and GKE.
constexpr const char* kConfigurationFolders[] = {"/etc", "/usr/local/share", "/usr/share", "/share",
                                                 "/"};
constexpr const char* kFirmwareFolder = "/lib/firmware";

/// Documentation/driver-api/firmware/fw_search_path.rst. The first one is configured by the
/// administrator, or by an operator with a driver container.
std::vector<std::string> FirmwareFolders(const Places& places) {
  std::vector<std::string> folders;
  if (const auto custom =
          os::ReadFile(places.sysfs_root + "/module/firmware_class/parameters/path", 4096);
      custom.ok()) {
    std::string path(base::Trim(*custom));
    const std::string& root =
        places.host_driver_root.empty() ? places.driver_root : places.host_driver_root;
    if (root != "/" && path.starts_with(root + "/")) path.erase(0, root.size());
    if (path.starts_with('/')) folders.push_back(std::move(path));
  }
  utsname system{};
  const std::string release = ::uname(&system) == 0 ? system.release : "";
  const std::string standard = kFirmwareFolder;
  for (const std::string& folder : {standard + "/updates/" + release, standard + "/updates",
                                    standard + "/" + release, standard})
    folders.push_back(folder);
  return folders;
}

class Finder {
 public:
  Finder(const DriverTree& tree, const Places& places) : tree_(tree) {
    folders_[DriverFile::Kind::kProgram].assign(std::begin(kProgramFolders),
                                                std::end(kProgramFolders));
    auto& configuration = folders_[DriverFile::Kind::kConfiguration];
    configuration = places.configuration_folders;
    configuration.insert(configuration.end(), std::begin(kConfigurationFolders),
                         std::end(kConfigurationFolders));
    folders_[DriverFile::Kind::kFirmware] = FirmwareFolders(places);
  }

  /// Takes the file from the first folder that has any match.
  void Take(const DriverFile& file, const std::string& pattern) {
    for (const std::string& folder : folders_[file.kind])
      if (TakeFrom(folder, pattern, file)) return;
    if (file.expected) found_.missing.push_back(pattern);
  }

  /// Containers get write access to it, so its type and owner matter: in a folder that all users
  /// may write to, a link may lead anywhere.
  void TakeSocket(const std::string& path) {
    Watch(FolderOf(path));
    auto file = tree_.Find(path, O_PATH | O_NOFOLLOW);
    struct stat about {};
    if (!file.ok() || ::fstat(file->fd.get(), &about) != 0) return;
    if (!S_ISSOCK(about.st_mode) && !S_ISDIR(about.st_mode)) {
      found_.remarks.push_back(path +
                               " is neither a socket nor a folder: not available in containers");
    } else if (about.st_uid != 0 && about.st_uid != ::geteuid()) {
      found_.remarks.push_back(
          path + " belongs to user " + std::to_string(about.st_uid) +
          ": not available in containers; start the daemon that creates it as root");
    } else {
      sockets_.emplace(std::move(file->path), std::move(file->host_path));
    }
  }

  FoundFiles Result() && {
    for (auto& [path, host_path] : files_) found_.files.push_back({path, std::move(host_path)});
    for (auto& [path, host_path] : sockets_) found_.sockets.push_back({path, std::move(host_path)});
    auto& searched = found_.searched;
    std::ranges::sort(searched);
    searched.erase(std::unique(searched.begin(), searched.end()), searched.end());
    return std::move(found_);
  }

 private:
  /// Watches the folder, or the one in which it will be created. Not /tmp, where files come and go
  /// constantly.
  void Watch(const std::string& path) {
    auto folder = tree_.Find(path, O_PATH | O_DIRECTORY);
    if (!folder.ok()) folder = tree_.Find(FolderOf(path), O_PATH | O_DIRECTORY);
    struct stat about {};
    if (!folder.ok() || ::fstat(folder->fd.get(), &about) != 0 || (about.st_mode & S_IWOTH) != 0)
      return;
    found_.searched.push_back(std::move(folder->path));
  }

  bool TakeFrom(const std::string& base, const std::string& pattern, const DriverFile& file) {
    const std::string path = Below(base, pattern);
    if (path.find('*') == std::string::npos) return TakeOne(path, base, pattern, file);
    const auto folder = tree_.List(FolderOf(path));
    if (!folder.ok()) return false;
    bool any = false;
    for (const std::string& name : folder->names)
      if (base::GlobMatch(NameOf(path), name))
        any = TakeOne(Below(FolderOf(path), name), base,
                      Below(FolderOf("/" + pattern), name).substr(1), file) ||
              any;
    return any;
  }

  bool TakeOne(const std::string& path, const std::string& base, const std::string& below,
               const DriverFile& wanted) {
    auto file = tree_.Find(path, O_PATH);
    if (!file.ok()) {
      if (file.error().code() != base::Code::kNotFound)
        found_.remarks.push_back(file.error().message() + ": not available in containers");
      return false;
    }
    struct stat about {};
    if (::fstat(file->fd.get(), &about) != 0 || !S_ISREG(about.st_mode)) return false;
    if (wanted.kind == DriverFile::Kind::kProgram && (about.st_mode & 0111) == 0) return false;
    files_.emplace(PathInContainers(base, below, wanted), std::move(file->host_path));
    return true;
  }

  /// The path at which programs look for the file, whatever links lead to it here.
  std::string PathInContainers(const std::string& base, const std::string& below,
                               const DriverFile& wanted) const {
    if (wanted.kind == DriverFile::Kind::kConfiguration) return Below(wanted.folder, below);
    if (wanted.kind == DriverFile::Kind::kFirmware) return Below(kFirmwareFolder, below);
    const auto folder = tree_.Find(base, O_PATH);
    return Below(folder.ok() ? folder->path : base, below);
  }

  const DriverTree& tree_;
  std::map<DriverFile::Kind, std::vector<std::string>> folders_;
  std::map<std::string, std::string> files_, sockets_;
  FoundFiles found_;
};

}  // namespace

FoundFiles FindFiles(const DriverTree& tree, const device::ContainerDriver& wanted,
                     const std::string& version, const Places& places) {
  Finder finder(tree, places);
  for (const DriverFile& file : wanted.files) {
    if (file.kind == DriverFile::Kind::kSocket) finder.TakeSocket(file.pattern);
    if (file.kind == DriverFile::Kind::kProgram || file.kind == DriverFile::Kind::kConfiguration ||
        file.kind == DriverFile::Kind::kFirmware)
      finder.Take(file, WithVersion(file.pattern, version));
  }
  return std::move(finder).Result();
}

}  // namespace penstock::node::cdi
