// Generates specifications for the classes of devices that come with a vendor's accelerators.
#include "node/cdi/modes.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fcntl.h>
#include <fnmatch.h>

#include "base/core/strings.h"
#include "node/cdi/dev_files.h"
#include "node/cdi/find_tree.h"
#include "node/cdi/generate_driver.h"
#include "node/cdi/generate_hooks.h"
#include "os/core/file.h"

namespace penstock::node::cdi {
namespace {

using api::cdi::Device;

/// Makes the specification of one class.
class ClassMaker {
 public:
  ClassMaker(const device::CdiClass& subject, const Input& input, const Places& places,
             const Options& options, DevFiles files)
      : subject_(subject),
        input_(input),
        places_(places),
        options_(options),
        driver_(input.dialect->DriverForContainers(*input.driver)),
        files_(std::move(files)) {}

  base::Result<Generated> Make() {
    generated_.spec.kind = options_.kind.empty() ? subject_.kind : options_.kind;
    TRY(AddDevices());
    if (generated_.spec.devices.empty()) return NoDevice();
    AddMounts();
    AddVariables();
    if (subject_.with_driver) TRY(AddDriver());
    return std::move(generated_);
  }

 private:
  base::Status AddDevices() {
    if (subject_.named != nullptr) return AddNamed();
    const auto paths = Match(subject_.nodes);
    if (paths.empty()) return {};
    if (subject_.device_per_node) return AddNumbered(paths);
    auto all = paths;
    for (const std::string& path : Match(subject_.nodes_too))
      if (std::ranges::find(all, path) == all.end()) all.push_back(path);
    AddDevice(kAll, all);
    return {};
  }

  base::Status AddNamed() {
    const auto text = os::ReadFile(InProc(subject_.list));
    if (!text.ok()) return {};
    auto named = subject_.named(*text);
    if (!named.ok()) return named.error().Within("read " + subject_.list);
    for (const auto& [name, path] : *named) {
      if (const auto node = files_.Node(path); node.ok()) {
        AddDevice(name, {path});
      } else {
        generated_.remarks.push_back("there is no device \"" + name +
                                     "\": " + node.error().message());
      }
    }
    return {};
  }

  /// In order of number, so that channel10 comes after channel9.
  base::Status AddNumbered(const std::vector<std::string>& paths) {
    std::map<std::uint64_t, std::string> numbered;
    for (const std::string& path : paths) {
      const auto digits = path.find_last_not_of("0123456789") + 1;
      const auto number = base::ParseUint(std::string_view(path).substr(digits));
      if (number && *number <= subject_.highest && path.substr(digits) == std::to_string(*number)) {
        numbered.emplace(*number, path);
      } else {
        generated_.remarks.push_back(path + " has no valid device number and is skipped");
      }
    }
    for (const auto& [number, path] : numbered) AddDevice(std::to_string(number), {path});
    return {};
  }

  void AddDevice(std::string name, const std::vector<std::string>& paths) {
    Device device;
    device.name = std::move(name);
    for (const std::string& path : paths)
      if (auto node = files_.Node(path); node.ok())
        AddNode(device.edits, *std::move(node), options_.additional_gids);
    if (device.edits.nodes.empty()) return;
    if (auto hook = HookCalls(driver_, options_).OpenFolders(device.edits.nodes))
      device.edits.hooks.push_back(*std::move(hook));
    generated_.spec.devices.push_back(std::move(device));
  }

  std::vector<std::string> Match(const std::vector<std::string>& patterns) const {
    std::vector<std::string> found;
    for (const std::string& pattern : patterns)
      for (const std::string& path : files_.Match(pattern))
        if (!IsLeftOut(path) && std::ranges::find(found, path) == found.end())
          found.push_back(path);
    return found;
  }

  bool IsLeftOut(const std::string& path) const {
    return std::ranges::any_of(subject_.except, [&](const std::string& pattern) {
      return ::fnmatch(pattern.c_str(), path.c_str(), 0) == 0;
    });
  }

  std::string InProc(const std::string& path) const {
    constexpr std::string_view kProc = "/proc/";
    return path.starts_with(kProc) ? places_.proc_root + "/" + path.substr(kProc.size()) : path;
  }

  void AddMounts() {
    if (subject_.mounts.empty()) return;
    const auto tree = DriverTree::Open(places_);
    std::vector<FoundFile> found;
    for (const std::string& path : subject_.mounts) {
      if (!tree.ok()) break;
      if (const auto file = tree->Find(path, O_PATH); file.ok())
        found.push_back({path, file->host_path});
    }
    generated_.spec.edits.mounts = FileMounts(found);
  }

  /// The variables that keep the vendor's own runtime from acting; they do not depend on where
  /// libraries are.
  void AddVariables() {
    for (const std::string& variable : driver_.environment)
      if (variable.find('{') == std::string::npos) generated_.spec.edits.env.push_back(variable);
  }

  base::Status AddDriver() {
    Options options = options_;
    options.disable_hooks.insert(options.disable_hooks.end(), subject_.without_hooks.begin(),
                                 subject_.without_hooks.end());
    ASSIGN(DriverEdits driver, EditsOfDriver(input_, places_, options, ControlFiles::kLeftOut));
    generated_.spec.edits = std::move(driver.edits);
    generated_.version = std::move(driver.version);
    generated_.folders = std::move(driver.folders);
    generated_.remarks.insert(generated_.remarks.end(), driver.remarks.begin(),
                              driver.remarks.end());
    return {};
  }

  Error NoDevice() const {
    const std::string what =
        subject_.list.empty() ? base::Join(subject_.nodes, ", ") : subject_.list;
    std::string message = "there are no devices of class " + generated_.spec.kind +
                          " on this machine: searched for " + what;
    for (const std::string& remark : generated_.remarks) message += "; " + remark;
    return Error(Code::kNotFound, message);
  }

  const device::CdiClass& subject_;
  const Input& input_;
  const Places& places_;
  const Options& options_;
  const device::ContainerDriver driver_;
  const DevFiles files_;
  Generated generated_;
};

}  // namespace

base::Result<Generated> GenerateClass(const device::CdiClass& subject, const Input& input,
                                      const Places& places, const Options& options) {
  ASSIGN(DevFiles files, DevFiles::Open(places));
  return ClassMaker(subject, input, places, options, std::move(files)).Make();
}

}  // namespace penstock::node::cdi
