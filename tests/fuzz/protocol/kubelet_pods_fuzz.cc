// Fuzzes the path from the kubelet's response to List (pod-resources) and its checkpoint into the
// ledger. The input is the response's length in two bytes, the response, and the checkpoint.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>

#include "../oracle.h"
#include "adapter/kubelet/pod_tracker.h"
#include "protocol/kubelet/messages.h"

namespace {

using namespace penstock;
using fuzz::Require;
using protocol::kubelet::CheckpointEntry;
using protocol::kubelet::PodDevices;

std::vector<PodDevices> ReadPods(std::string_view bytes) {
  v1::ListPodResourcesResponse message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return {};
  std::vector<PodDevices> pods = protocol::kubelet::ReadPods(message);
  const auto key = [](const PodDevices& one) {
    return std::tie(one.namespace_name, one.pod, one.container, one.resource);
  };
  for (std::size_t i = 0; i < pods.size(); ++i) {
    Require(i == 0 || key(pods[i - 1]) < key(pods[i]));
    Require(std::adjacent_find(pods[i].ids.begin(), pods[i].ids.end(), std::greater_equal<>()) ==
            pods[i].ids.end());
  }
  std::erase_if(pods, [](const PodDevices& one) { return one.ids.empty(); });
  return pods;
}

void CheckAllocatable(std::string_view bytes) {
  v1::AllocatableResourcesResponse message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  for (const auto& [resource, ids] : protocol::kubelet::ReadAllocatable(message))
    Require(std::adjacent_find(ids.begin(), ids.end(), std::greater_equal<>()) == ids.end());
}

/// Each slot has one holder, and each lease belongs to a pod.
void CheckLedger(const node::ledger::Snapshot& ledger) {
  std::set<std::string> held;
  for (const auto& lease : ledger.leases) {
    Require(lease.allocator == "kubelet" && lease.state == node::ledger::LeaseState::kHeld &&
            !lease.slots.empty());
    for (const auto& slot : lease.slots) Require(held.insert(slot.id).second);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const google::protobuf::LogSilencer silent;  // the library logs text that is not UTF-8
  if (size < 2) return 0;
  const std::string_view rest = fuzz::Text(data + 2, size - 2);
  const std::size_t length = std::min<std::size_t>(rest.size(), data[0] + 256u * data[1]);
  CheckAllocatable(rest.substr(0, length));
  const std::vector<PodDevices> list = ReadPods(rest.substr(0, length));
  const auto checkpoint = protocol::kubelet::ParseCheckpoint(rest.substr(length), "fuzz");
  std::vector<CheckpointEntry> entries =
      checkpoint.ok() ? checkpoint->entries : std::vector<CheckpointEntry>{};
  std::erase_if(entries, [](const CheckpointEntry& one) { return one.ids.empty(); });
  std::set<std::string> alive;
  for (const CheckpointEntry& entry : entries) alive.insert(entry.pod_uid);

  const auto pods = adapter::kubelet::JoinPods(list, entries, alive);
  Require(pods.size() >= list.size() && pods.size() <= list.size() + entries.size());
  Require(adapter::kubelet::JoinPods(list, entries, {}).size() == list.size());
  // The kubelet reports the same pods twice, and then no pods.
  node::ledger::Ledger ledger;
  const base::WallTime now{std::chrono::hours(1)};
  node::attribute::ApplyPods(pods, now, now, ledger);
  CheckLedger(*ledger.Get());
  node::attribute::ApplyPods(pods, now, now, ledger);
  CheckLedger(*ledger.Get());
  node::attribute::ApplyPods({}, now, now, ledger);
  Require(ledger.Get()->leases.empty());
  return 0;
}
