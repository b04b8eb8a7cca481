// A specification has the driver's edits once, and each device's own edits under each of its names.
#include "node/cdi/generate.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "node/cdi/generate_devices.h"
#include "node/cdi/generate_driver.h"
#include "node/cdi/generate_hooks.h"
#include "node/inventory/device_tree.h"

namespace penstock::node::cdi {
namespace {

using device::Facts;

/// Devices in the order in which users count them, each partition after its parent.
class Devices {
 public:
  explicit Devices(std::vector<const Facts*> devices) : devices_(std::move(devices)) {
    for (const Facts* device : devices_) by_id_.emplace(device->id, device);
    std::ranges::sort(devices_,
                      [&](const Facts* a, const Facts* b) { return Order(*a) < Order(*b); });
  }

  const std::vector<const Facts*>& sorted() const { return devices_; }

  /// The device that it is a partition of, or a partition of a partition of. Null also where that
  /// is not among them.
  const Facts* WholeOf(const Facts& device) const {
    const Facts* whole = &device;
    for (std::size_t depth = 0; !whole->parent.empty() && depth < devices_.size(); ++depth) {
      const auto parent = by_id_.find(whole->parent);
      if (parent == by_id_.end()) return nullptr;
      whole = parent->second;
    }
    return whole == &device ? nullptr : whole;
  }

 private:
  std::tuple<int, bool, std::size_t, std::string, std::string> Order(const Facts& device) const {
    const Facts* whole = WholeOf(device);
    return {whole != nullptr ? whole->index : device.index, !device.parent.empty(),
            device.number.size(), device.number, device.id};
  }

  std::vector<const Facts*> devices_;
  std::map<std::string, const Facts*> by_id_;
};

api::cdi::CdiEdits EditsOf(const DeviceFiles& files, const HookCalls& calls,
                           const Options& options) {
  api::cdi::CdiEdits edits;
  for (const api::cdi::DeviceNode& node : files.nodes)
    AddNode(edits, node, options.additional_gids);
  std::ranges::sort(edits.additional_gids);
  if (auto hook = calls.CreateLinks(files.links)) edits.hooks.push_back(*std::move(hook));
  if (auto hook = calls.OpenFolders(files.nodes)) edits.hooks.push_back(*std::move(hook));
  return edits;
}

/// Adds the devices of a specification one by one.
class Listing {
 public:
  Listing(const Input& input, const Places& places, const Options& options, Generated& generated)
      : input_(input), places_(places), options_(options), generated_(generated) {}

  base::Status Fill() {
    const device::ContainerDriver driver = input_.dialect->DriverForContainers(*input_.driver);
    const HookCalls calls(driver, options_);
    const Devices devices(input_.devices);
    const auto places = inventory::PlaceInTree(input_.devices);
    ASSIGN(const DevFiles files, DevFiles::Open(places_));
    DeviceFiles all;
    for (const Facts* device : devices.sorted()) {
      auto found = FilesOfTree(*device, devices, files);
      if (!found.ok()) {
        // A part that is only there to be divided has no file of its own.
        if (!device->parent.empty() && device->files.empty() &&
            !places.at(device->id).withheld.empty())
          continue;
        Remark(*device, found.error().message());
        continue;
      }
      if (places.at(device->id).withheld.empty()) all = Merge(std::move(all), *found);
      AddUnderItsNames(*device, EditsOf(*found, calls, options_));
    }
    if (generated_.spec.devices.empty()) return Error(Code::kNotFound, WhyNone());
    if (options_.all && !all.nodes.empty()) Add(kAll, EditsOf(all, calls, options_));
    return {};
  }

 private:
  /// Of a device that has no file of its own, the files of its parts: whoever names it means all
  /// of it. The error names the part of which a file is missing: without that part, the name would
  /// mean less.
  base::Result<DeviceFiles> FilesOfTree(const Facts& device, const Devices& devices,
                                        const DevFiles& files) const {
    if (!device.files.empty() || !device.parent.empty())
      return FilesOf(device, files, places_.sysfs_root);
    DeviceFiles found;
    for (const Facts* part : devices.sorted()) {
      if (part->parent != device.id || part->files.empty()) continue;
      auto own = FilesOf(*part, files, places_.sysfs_root);
      if (!own.ok())
        return own.error().Within("its name means all its parts, of which " + part->id +
                                  " is omitted");
      found = Merge(std::move(found), *own);
    }
    if (found.nodes.empty()) return FilesOf(device, files, places_.sysfs_root);
    return found;
  }

  void Remark(const Facts& device, const std::string& why) {
    generated_.remarks.push_back("device " + device.id +
                                 " is omitted from the CDI specification: " + why);
  }

  std::string WhyNone() const {
    if (input_.devices.empty()) return "there is no device to write a CDI specification for";
    return "there is no device left to write a CDI specification for: " + generated_.remarks.back();
  }

  void AddUnderItsNames(const Facts& device, const api::cdi::CdiEdits& edits) {
    for (const std::string& given : input_.dialect->CdiNamesOf(device, options_.names)) {
      const std::string name = api::cdi::DeviceNameOf(given);
      if (const std::string why = api::cdi::WhyNoDeviceName(name); !why.empty()) {
        Remark(device, "its name '" + name + "' is not a valid CDI device name: " + why);
      } else {
        Add(name, edits);
      }
    }
  }

  void Add(const std::string& name, api::cdi::CdiEdits edits) {
    if (names_.insert(name).second) generated_.spec.devices.push_back({name, {}, std::move(edits)});
  }

  const Input& input_;
  const Places& places_;
  const Options& options_;
  Generated& generated_;
  std::set<std::string> names_;
};

api::cdi::Spec NarrowSpec(std::string kind, api::cdi::CdiEdits edits) {
  api::cdi::Spec spec;
  spec.kind = std::move(kind);
  spec.devices.push_back({kAll, {}, std::move(edits)});
  return spec;
}

}  // namespace

base::Result<Generated> Generate(const Input& input, const Places& places, const Options& options) {
  Generated generated;
  generated.spec.kind =
      options.kind.empty() ? std::string(input.dialect->cdi_kind()) : options.kind;
  if (const std::string why = api::cdi::WhyNoKind(generated.spec.kind); !why.empty())
    return Error(Code::kInvalidArgument,
                 "'" + generated.spec.kind + "' is not a valid CDI kind: " + why);
  ASSIGN(DriverEdits driver, EditsOfDriver(input, places, options));
  generated.spec.edits = std::move(driver.edits);
  generated.version = std::move(driver.version);
  generated.remarks = std::move(driver.remarks);
  generated.folders = std::move(driver.folders);
  TRY(Listing(input, places, options, generated).Fill());
  if (driver.narrow)
    generated.narrow = NarrowSpec(input.dialect->DriverForContainers(*input.driver).narrow_kind,
                                  *std::move(driver.narrow));
  return generated;
}

}  // namespace penstock::node::cdi
