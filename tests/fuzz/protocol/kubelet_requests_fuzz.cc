// Fuzzes the kubelet's Allocate and GetPreferredAllocation requests, as bytes, through the plugin's
// handlers on a machine with four devices. The input is a sequence of messages, each after one byte
// for its kind and one for its length.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "../oracle.h"
#include "adapter/kubelet/allocate_handler.h"
#include "base/core/testing/fake_clock.h"
#include "device/testing/acme.h"
#include "node/allocate/allocate.h"
#include "protocol/kubelet/messages.h"

namespace {

using namespace penstock;
using fuzz::Require;
using node::share::Offer;

constexpr std::size_t kMostMessages = 16;

api::NodeConfig Config() {
  // Two of the devices are shared.
  auto config = api::ParseNodeConfig(
      "apiVersion: penstock.io/v1alpha1\nkind: NodeConfig\nsharing: {rules: [{devices: [2, 3], "
      "strategy: time-slicing, replicas: 3}]}\n",
      "fuzz");
  Require(config.ok());
  return *config;
}

class Machine {
 public:
  Machine() {
    inventory_.SetVendor(
        {"acme", std::make_shared<const device::Driver>(device::testing::AcmeDriver()), ""});
    std::vector<device::Facts> facts;
    for (int i = 0; i < 4; ++i) facts.push_back(device::testing::AcmeDevice(i, 4));
    inventory_.SetFacts("acme", facts, "", clock_.Wall());
    for (const auto& one : facts) {
      inventory_.SetHealth(one.id, device::HealthState::kHealthy, "", clock_.Wall());
      inventory_.SetReading(one.id, {.reachable = true}, clock_.Wall());
    }
    static const api::NodeConfig config = Config();
    offers_.Configure(config, {});
    Require(!offers_.Get()->empty());
  }

  void Allocate(std::string_view bytes, std::size_t which) {
    v1beta1::AllocateRequest message;
    if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
    const auto offers = offers_.Get();
    const Offer& offer = offers->at(which % offers->size());
    const auto request = protocol::kubelet::ReadRequest(message, Devices(offer), offer.resource);
    if (!request.ok()) return Require(!request.error().message().empty());
    const auto before = ledger_.Get();
    const adapter::kubelet::DeviceListChoice listing{.strategies = {api::DeviceList::kEnvvar}};
    const api::ContainersConfig containers;
    const auto edits = allocate_.Allocate(
        offer.resource, *request,
        {*offers,
         {.listing = listing, .config = containers, .host_path = [](const std::string& path) {
            return path;
          }}});
    const auto after = ledger_.Get();
    CheckLedger(*after);
    if (!edits.ok()) {
      Require(!edits.error().message().empty());
      for (const auto& lease : after->leases) Require(before->FindLease(lease.id) != nullptr);
      return;
    }
    v1beta1::AllocateResponse response;
    Require(edits->size() == request->containers.size());
    Require(protocol::kubelet::WriteEdits(*edits, request->containers.size(), response).ok());
    for (std::size_t i = 0; i < edits->size(); ++i) {
      Require(!response.container_responses(static_cast<int>(i)).envs().empty());
      Require(Holds(*after, request->containers[i], *before));
    }
  }

  void Prefer(std::string_view bytes, std::size_t which) {
    v1beta1::PreferredAllocationRequest message;
    if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
    const auto request = protocol::kubelet::ReadRequest(message);
    const auto offers = offers_.Get();
    const Offer& offer = offers->at(which % offers->size());
    for (const auto& container : request.containers) {
      if (container.size < 1) continue;
      for (const auto policy : {api::SharePolicy::kDistributed, api::SharePolicy::kPacked}) {
        const node::allocate::Preference asked{container.available, container.must_include,
                                               static_cast<std::size_t>(container.size)};
        CheckPreferred(asked,
                       node::allocate::Prefer(asked, offer, policy, *inventory_.published().Get(),
                                              *ledger_.Get()));
      }
    }
  }

 private:
  static std::vector<protocol::kubelet::PluginDevice> Devices(const Offer& offer) {
    std::vector<protocol::kubelet::PluginDevice> devices;
    for (const auto& slot : offer.slots) devices.push_back({slot.slot.id, slot.usable, {}});
    return protocol::kubelet::Normalize(std::move(devices));
  }

  /// Each slot has one holder.
  static void CheckLedger(const node::ledger::Snapshot& ledger) {
    std::set<std::string> held;
    for (const auto& lease : ledger.leases)
      for (const auto& slot : lease.slots) Require(held.insert(slot.id).second);
  }

  /// Whether a lease that is not in `before` has exactly these slots.
  static bool Holds(const node::ledger::Snapshot& ledger, const std::vector<std::string>& ids,
                    const node::ledger::Snapshot& before) {
    return std::any_of(ledger.leases.begin(), ledger.leases.end(),
                       [&](const node::ledger::Lease& lease) {
                         std::vector<std::string> slots;
                         for (const auto& slot : lease.slots) slots.push_back(slot.id);
                         std::sort(slots.begin(), slots.end());
                         return slots == ids && before.FindLease(lease.id) == nullptr;
                       });
  }

  static void CheckPreferred(const node::allocate::Preference& asked,
                             const std::vector<std::string>& preferred) {
    if (preferred.empty()) return;
    const std::set<std::string> ids(preferred.begin(), preferred.end()),
        available(asked.available.begin(), asked.available.end());
    Require(ids.size() == preferred.size() && ids.size() == asked.size);
    for (const std::string& id : ids) Require(available.contains(id));
    for (const std::string& id : asked.must_include) Require(ids.contains(id));
  }

  base::FakeClock clock_;
  node::inventory::Inventory inventory_;
  node::ledger::Ledger ledger_;
  node::share::Offers offers_{inventory_, ledger_, device::testing::FindAcme, {"kubelet"}};
  adapter::kubelet::AllocateHandler allocate_{
      {clock_, inventory_, ledger_, offers_, device::testing::FindAcme}};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const google::protobuf::LogSilencer silent;  // the library logs text that is not UTF-8
  Machine machine;
  std::string_view rest = fuzz::Text(data, size);
  for (std::size_t i = 0; i < kMostMessages && rest.size() > 2; ++i) {
    const auto kind = static_cast<unsigned char>(rest[0]);
    const std::string_view bytes = rest.substr(2, static_cast<unsigned char>(rest[1]));
    rest.remove_prefix(2 + bytes.size());
    if (kind % 2 == 0)
      machine.Allocate(bytes, kind / 2);
    else
      machine.Prefer(bytes, kind / 2);
  }
  return 0;
}
