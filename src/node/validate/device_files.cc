// A device file is looked at by its path only: opening it may start the hardware.
#include "node/validate/device_files.h"

#include <algorithm>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "os/core/root.h"
#include "os/device_file.h"

namespace penstock::node::validate {
namespace {

constexpr std::string_view kDev = "/dev", kBelowDev = "/dev/", kGraphics = "/dev/dri/";

/// The paths come from a vendor's library.
void AddWanted(WantedFile file, std::vector<WantedFile>& files) {
  if (!file.path.starts_with(kBelowDev)) return;
  const auto known = std::ranges::find(files, file.path, &WantedFile::path);
  if (known == files.end()) {
    files.push_back(std::move(file));
    return;
  }
  if (known->remedy.empty()) known->remedy = file.remedy;
}

WantedFile Numbered(const device::DeviceFile& file, std::string of) {
  return {file.path, file.major, file.minor, true, std::move(of), ""};
}

bool IsThere(const inventory::Entry& entry) {
  return entry.health.state != device::HealthState::kGone;
}

std::string NameOf(const device::Facts& device) {
  const std::string number = NumberOf(device);
  return "device " + (number.empty() ? device.id : number);
}

void AddDriverFiles(const device::Driver& driver, const device::Dialect& dialect,
                    std::vector<WantedFile>& files) {
  const auto control = dialect.DriverForContainers(driver).control_files;
  for (const device::DeviceFile& file : driver.files)
    if (std::ranges::none_of(control, [&file](const device::ControlFile& one) {
          return one.path == file.path && !one.required;
        }))
      AddWanted(Numbered(file, ""), files);
  for (const device::ControlFile& file : control)
    if (file.required) AddWanted({.path = file.path, .of = {}, .remedy = file.remedy}, files);
}

StandingFile LookIn(const os::Root& root, const std::string& path) {
  const bool has_dev = root.Exists(std::string(kDev));
  const auto fd = root.OpenFile(has_dev ? path : path.substr(kDev.size()), O_PATH | O_CLOEXEC);
  struct stat about {};
  if (!fd.ok() || ::fstat(fd->get(), &about) != 0) return {};
  if (!S_ISCHR(about.st_mode)) return {.kind = StandingFile::Kind::kOther};
  return {StandingFile::Kind::kDevice, major(about.st_rdev), minor(about.st_rdev)};
}

std::string Numbers(std::uint32_t major, std::uint32_t minor) {
  return std::to_string(major) + ":" + std::to_string(minor);
}

}  // namespace

std::vector<WantedFile> WantedFiles(const inventory::Snapshot& inventory,
                                    const device::DialectOf& dialect_of) {
  std::vector<WantedFile> files;
  for (const inventory::VendorEntry& vendor : inventory.vendors) {
    const device::Dialect* dialect = dialect_of(vendor.vendor);
    const auto is_one = [&vendor](const inventory::Entry& entry) {
      return entry.facts->vendor == vendor.vendor && IsThere(entry);
    };
    if (dialect == nullptr || vendor.driver == nullptr ||
        std::ranges::none_of(inventory.devices, is_one))
      continue;
    const std::size_t before = files.size();
    AddDriverFiles(*vendor.driver, *dialect, files);
    for (const inventory::Entry& entry : inventory.devices)
      if (is_one(entry))
        for (const device::DeviceFile& file : entry.facts->files)
          if (!file.path.starts_with(kGraphics))
            AddWanted(Numbered(file, NameOf(*entry.facts)), files);
    if (vendor.place != nullptr)
      for (std::size_t i = before; i < files.size(); ++i) {
        files[i].dev_root = vendor.place->dev_root;
        files[i].of_container = vendor.place->container;
      }
  }
  return files;
}

StandingFiles LookAt(const std::string& dev_root, const std::vector<WantedFile>& wanted,
                     const StandingFiles& before) {
  StandingFiles standing;
  std::map<std::string, base::Result<os::Root>> roots;
  for (const WantedFile& file : wanted) {
    const std::string& folder = file.dev_root.empty() ? dev_root : file.dev_root;
    auto root = roots.find(folder);
    if (root == roots.end()) root = roots.emplace(folder, os::Root::Open(folder)).first;
    StandingFile now = root->second.ok() ? LookIn(*root->second, file.path) : StandingFile();
    const auto known = before.find(file.path);
    if (now.kind == StandingFile::Kind::kMissing && file.of_container && known != before.end() &&
        !os::HasDeviceFiles(folder))
      now = known->second;
    standing[file.path] = now;
  }
  return standing;
}

std::vector<FileProblem> ProblemsOf(const std::vector<WantedFile>& wanted,
                                    const StandingFiles& standing) {
  using Kind = StandingFile::Kind;
  // Where a user may create no devices, a simulated machine has plain files only. A driver that
  // answers has at least one device file, so there is nothing to compare.
  const bool any_device = std::ranges::any_of(
      standing, [](const auto& one) { return one.second.kind == Kind::kDevice; });
  std::vector<FileProblem> problems;
  for (const WantedFile& file : wanted) {
    const auto found = standing.find(file.path);
    const StandingFile now = found == standing.end() ? StandingFile{} : found->second;
    const std::string name = file.path + (file.of.empty() ? "" : " (" + file.of + ")");
    const std::string create = file.remedy.empty() ? "" : "create it: " + file.remedy;
    if (now.kind == Kind::kMissing) {
      problems.push_back({name + " does not exist", create});
    } else if (now.kind == Kind::kOther && any_device) {
      problems.push_back({name + " is not a character device",
                          "remove it, and " + (create.empty() ? "create it again" : create)});
    } else if (now.kind == Kind::kDevice && file.numbered && file.major != 0 &&
               (now.major != file.major || now.minor != file.minor)) {
      problems.push_back({name + " has the numbers " + Numbers(now.major, now.minor) +
                              " and the driver has " + Numbers(file.major, file.minor),
                          "remove it, and " + (create.empty() ? "create it again" : create)});
    }
  }
  return problems;
}

}  // namespace penstock::node::validate
