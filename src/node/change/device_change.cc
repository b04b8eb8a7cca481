#include "node/change/device_change.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "os/kept_file.h"

namespace penstock::node::change {
namespace {

constexpr int kJournalVersion = 1;

}  // namespace

template <typename Visit, base::Of<ChangedDevice> T>
static void VisitFields(Visit& visit, T& device) {
  visit("id", device.id, {.filled = true});
  visit("address", device.address, {.if_any = true});
  visit("allocator", device.allocator, {.if_any = true});
}

template <typename Visit, base::Of<DeviceChange> T>
static void VisitFields(Visit& visit, T& change) {
  visit("kind", change.kind, {.filled = true});
  visit("devices", change.devices, {.filled = true});
  visit("step", change.step, {.filled = true});
  visit("since", change.since);
  visit("failure", change.failure, {.if_any = true});
  visit("details", change.details, {.if_any = true});
}

bool DeviceChange::Has(std::string_view device) const {
  return std::ranges::find(devices, device, &ChangedDevice::id) != devices.end();
}

std::string EncodeChanges(const std::vector<DeviceChange>& changes) {
  return os::EncodeKept<nlohmann::json>(kJournalVersion,
                                        [&](auto& write) { write("changes", changes); });
}

base::Result<std::vector<DeviceChange>> DecodeChanges(std::string_view text,
                                                      std::string_view file) {
  std::vector<DeviceChange> changes;
  TRY(os::DecodeKept(kJournalVersion, text, file, [&](base::StructReader& read) {
    read("changes", changes, {.required = true});
  }));
  return changes;
}

base::Result<std::vector<DeviceChange>> LoadChanges(const std::string& path) {
  return os::LoadKept<std::vector<DeviceChange>>(
      path, "the journal of changes",
      [&](const std::string& text) { return DecodeChanges(text, path); });
}

}  // namespace penstock::node::change
