#include "node/change/manual_assignments.h"

#include <nlohmann/json.hpp>

#include "api/allocators.h"
#include "os/kept_file.h"

namespace penstock::node::change {
namespace {

constexpr int kVersion = 1;

/// A field with an allocator's name, or "none".
template <typename Visit, typename T>
void VisitAllocator(Visit& visit, const char* key, T& allocator) {
  visit(key, allocator);
  if constexpr (Visit::kReads) (void)visit.map().OneOf(key, api::AllocatorWords());
}

struct AssignedDevice {
  std::string device;
  ManualAssignment assignment;
};

template <typename Visit, base::Of<AssignedDevice> T>
void VisitFields(Visit& visit, T& one) {
  visit("device", one.device, {.required = true});
  VisitAllocator(visit, "door", one.assignment.allocator);
  visit("way", one.assignment.transfer);
}

}  // namespace

template <typename Visit, base::Of<ManualAssignment::Transfer> T>
static void VisitFields(Visit& visit, T& transfer) {
  std::string from = api::ToWord(transfer.from);
  VisitAllocator(visit, "from", from);
  if constexpr (Visit::kReads) transfer.from = api::FromWord(from);
  VisitAllocator(visit, "back", transfer.back);
  visit("until", transfer.until);
}

std::string EncodeManualAssignments(const ManualAssignments& devices) {
  std::vector<AssignedDevice> list;
  for (const auto& [id, assignment] : devices) list.push_back({id, assignment});
  return os::EncodeKept<nlohmann::json>(kVersion, [&](auto& write) { write("devices", list); });
}

base::Result<ManualAssignments> DecodeManualAssignments(std::string_view text,
                                                        std::string_view file) {
  std::vector<AssignedDevice> list;
  TRY(os::DecodeKept(kVersion, text, file,
                     [&](base::StructReader& read) { read("devices", list, {.required = true}); }));
  ManualAssignments devices;
  for (AssignedDevice& one : list) devices[std::move(one.device)] = std::move(one.assignment);
  return devices;
}

base::Result<ManualAssignments> LoadManualAssignments(const std::string& path) {
  return os::LoadKept<ManualAssignments>(path, "manual assignments", [&](const std::string& text) {
    return DecodeManualAssignments(text, path);
  });
}

}  // namespace penstock::node::change
