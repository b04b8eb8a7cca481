#include "node/assign/manual_assignments.h"

#include <nlohmann/json.hpp>

#include "base/core/document.h"
#include "os/kept_file.h"

namespace penstock::node::assign {
namespace {

using base::Code;
using base::Error;
using nlohmann::json;

constexpr int kVersion = 1;

json ToJson(const std::string& id, const ManualAssignment& device) {
  json document = {{"device", id}};
  if (device.allocator) document["door"] = *device.allocator;
  if (!device.transfer) return document;
  json transfer = {{"from", device.transfer->from.empty() ? "none" : device.transfer->from}};
  if (device.transfer->back) transfer["back"] = *device.transfer->back;
  if (device.transfer->until) transfer["until"] = base::FormatTime(*device.transfer->until);
  document["way"] = std::move(transfer);
  return document;
}

ManualAssignment ReadDevice(base::MapReader& reader, base::Problems& problems) {
  ManualAssignment device;
  device.allocator = reader.OneOf("door", {"kubelet", "local", "none"});
  if (const base::Value* value = reader.Map("way")) {
    base::MapReader move(*value, "way", problems);
    const std::string from = move.OneOf("from", {"kubelet", "local", "none"}).value_or("none");
    device.transfer =
        ManualAssignment::Transfer{.from = from == "none" ? "" : from,
                                   .back = move.OneOf("back", {"kubelet", "local", "none"})};
    if (const auto until = move.String("until")) device.transfer->until = base::ParseTime(*until);
    move.Finish();
  }
  return device;
}

}  // namespace

std::string EncodeManualAssignments(const ManualAssignments& devices) {
  json list = json::array();
  for (const auto& [id, device] : devices) list.push_back(ToJson(id, device));
  return json({{"version", kVersion}, {"devices", std::move(list)}})
             .dump(1, ' ', false, json::error_handler_t::replace) +
         "\n";
}

base::Result<ManualAssignments> DecodeManualAssignments(std::string_view text,
                                                        std::string_view file) {
  const auto document = base::ParseJson(text, file);
  if (!document.ok()) return Error(Code::kDataLoss, document.error().message());
  base::Problems problems{std::string(file)};
  base::MapReader reader(*document, "", problems);
  TRY(os::CheckKeptVersion(reader, file, kVersion));
  reader.Require("devices");
  ManualAssignments devices;
  if (const base::Value* list = reader.List("devices")) {
    for (const base::Value& item : *list->list) {
      base::MapReader device(item, "device", problems);
      device.Require("device");
      const std::string id = device.String("device").value_or("");
      devices[id] = ReadDevice(device, problems);
      device.Finish();
    }
  }
  reader.Finish();
  if (!problems.empty()) return Error(Code::kDataLoss, problems.ToError().message());
  return devices;
}

}  // namespace penstock::node::assign
