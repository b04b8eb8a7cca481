// Requests from gRPC's threads are posted to the control loop; everything is decided there.
#include "door/kubelet_plugin.h"

#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "door/kubelet_pods.h"
#include "edge/kubelet/pod_resources.h"

namespace penstock::door {

using base::Code;
using base::Error;
using base::Result;
using edge::kubelet::AllocateRequest;
using edge::kubelet::ContainerEdits;
using edge::kubelet::DevicePlugin;
using edge::kubelet::PluginDevice;
using edge::kubelet::PluginState;
using edge::kubelet::PreferRequest;
using edge::kubelet::Reply;
using node::ledger::Lease;
using node::ledger::Slot;
using node::share::Offer;

namespace {

std::vector<PluginDevice> ToPluginDevices(const Offer& offer) {
  std::vector<PluginDevice> devices;
  devices.reserve(offer.slots.size());
  for (const auto& slot : offer.slots)
    devices.push_back({slot.slot.id, slot.usable, slot.numa_node ? std::vector<int>{*slot.numa_node} : std::vector<int>{}});
  return devices;
}

/// What the kubelet is to have of a resource; nothing where it is not offered to it any more.
KubeletList::Offered OfferedOf(const std::vector<Offer>& offers, const std::string& resource) {
  KubeletList::Offered offered;
  for (const Offer& offer : offers) {
    if (offer.door != node::share::kKubeletDoor || offer.resource != resource) continue;
    offered.all = offer.slots.size();
    for (const auto& slot : offer.slots)
      if (slot.usable) offered.usable.push_back(slot.slot.id);
  }
  std::sort(offered.usable.begin(), offered.usable.end());
  return offered;
}

/// "penstock-nvidia.com-gpu": short enough for a socket's name, and tells whose it is.
std::string SocketPrefix(const std::string& resource) {
  std::string prefix = "penstock-" + resource;
  std::replace(prefix.begin(), prefix.end(), '/', '-');
  return prefix;
}

}  // namespace

struct KubeletDoor::State {
  State(os::Loop& c, base::Executor& i, Options o, node::inventory::Inventory& inv, node::ledger::Ledger& l, node::share::Offers& off,
        node::share::DialectOf d)
      : control(c),
        options(std::move(o)),
        inventory(inv),
        ledger(l),
        offers(off),
        dialect_of(std::move(d)),
        pods(c, i, options.kubelet_dir, options.proc_root, l, [this](const std::string& resource) { return IsOurs(resource); }),
        resources(c, options.kubelet_dir),
        list(
            c, [this](auto done) { resources.GetAllocatable(std::move(done)); }, options.kubelet_has) {}

  void Open() {
    open = true;
    on_offers = offers.published().Subscribe([this](const auto& snapshot) { Advertise(*snapshot); }, true);
    pods.Look();
  }

  void Advertise(const std::vector<Offer>& now) {
    for (auto& [resource, plugin] : plugins) {
      const bool offered = std::any_of(now.begin(), now.end(), [&](const Offer& offer) {
        return offer.door == node::share::kKubeletDoor && offer.resource == resource;
      });
      if (!offered) plugin->Update({});
    }
    for (const Offer& offer : now) {
      if (offer.door != node::share::kKubeletDoor) continue;
      if (DevicePlugin* plugin = PluginFor(offer.resource)) plugin->Update(ToPluginDevices(offer));
    }
    AskForList(now);
  }

  /// Asks the kubelet until it has what is offered now, of resources that it reads from us.
  void AskForList(const std::vector<Offer>& now) {
    if (!options.kubelet_has) return;
    std::map<std::string, KubeletList::Offered> offered;
    for (const auto& [resource, plugin] : plugins)
      if (plugin->state().phase == PluginState::Phase::kServing) offered[resource] = OfferedOf(now, resource);
    if (std::exchange(asked_for, offered) != offered) list.Expect(std::move(offered));
  }

  /// Any thread: resources are the dialects', which are tables.
  bool IsOurs(const std::string& resource) const {
    const auto snapshot = inventory.published().Get();
    return std::any_of(snapshot->vendors.begin(), snapshot->vendors.end(), [&](const auto& vendor) {
      const device::Dialect* dialect = dialect_of(vendor.vendor);
      return dialect != nullptr && dialect->resource() == resource;
    });
  }

  DevicePlugin* PluginFor(const std::string& resource) {
    const auto found = plugins.find(resource);
    if (found != plugins.end()) return found->second.get();
    auto plugin = DevicePlugin::Create(
        control,
        {.kubelet_dir = options.kubelet_dir, .resource = resource, .socket_prefix = SocketPrefix(resource), .proc_root = options.proc_root},
        {.allocate =
             [this](AllocateRequest request, Reply<std::vector<ContainerEdits>> reply) {
               control.Post([this, request = std::move(request), reply = std::move(reply)] { reply(Allocate(request)); });
             },
         .prefer = [this, resource](const PreferRequest& request,
                                    const Reply<std::vector<std::vector<std::string>>>& reply) { reply(Prefer(resource, request)); },
         .state = [this, resource](const PluginState& state) { StateChanged(resource, state); }});
    if (!plugin.ok()) {
      base::Log(base::kError, "the kubelet's door cannot open", {{"resource", resource}, {"why", plugin.error().message()}});
      return nullptr;
    }
    return plugins.emplace(resource, *std::move(plugin)).first->second.get();
  }

  void StateChanged(const std::string& resource, const PluginState& state) {
    const bool bad = state.phase == PluginState::Phase::kRefused || state.phase == PluginState::Phase::kSteppedBack;
    base::Log(bad ? base::kWarn : base::kInfo, "kubelet",
              {{"resource", resource}, {"state", ToString(state.phase)}, {"why", state.reason}});
    if (state.phase == PluginState::Phase::kServing) pods.LookAfterKubeletStart();
    if (!plugins.contains(resource)) return;  // it says so while it is being made
    asked_for.clear();
    AskForList(*offers.published().Get());
  }

  Result<std::vector<ContainerEdits>> Allocate(const AllocateRequest& request) {
    std::vector<ContainerEdits> answers;
    std::vector<std::string> handed;
    for (const auto& ids : request.containers) {
      auto edits = AllocateContainer(ids, handed);
      if (!edits.ok()) {
        for (const std::string& lease : handed) ledger.Release(lease);
        base::Log(base::kWarn, "allocation refused", {{"devices", base::Join(ids, ",")}, {"why", edits.error().message()}});
        return edits.error();
      }
      answers.push_back(*std::move(edits));
    }
    pods.LookSoon();
    return answers;
  }

  Result<ContainerEdits> AllocateContainer(const std::vector<std::string>& ids, std::vector<std::string>& handed) {
    Lease lease;
    lease.id = "k-" +
               std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(control.clock().Wall().time_since_epoch()).count()) +
               "-" + std::to_string(++allocations);
    lease.door = node::share::kKubeletDoor;
    lease.since = control.clock().Wall();
    for (const std::string& id : ids) {
      ASSIGN(Slot slot, UsableSlot(id));
      lease.slots.push_back(std::move(slot));
    }
    ASSIGN(const device::Edits edits,
           node::allocate::Commit(lease.slots, options.consumer(), *inventory.published().Get(), dialect_of, *offers.servers().Get()));
    TRY(ReleaseFormerHolders(lease.slots));
    handed.push_back(lease.id);
    TRY(ledger.Hand(std::move(lease)));
    return Translate(edits);
  }

  Result<Slot> UsableSlot(const std::string& id) const {
    const auto snapshot = offers.published().Get();
    for (const Offer& offer : *snapshot) {
      if (offer.door != node::share::kKubeletDoor) continue;
      for (const auto& offered : offer.slots) {
        if (offered.slot.id != id) continue;
        if (!offered.usable) return Error(Code::kFailedPrecondition, "device " + id + " cannot be used now: " + offered.reason);
        return offered.slot;
      }
    }
    return Error(Code::kNotFound, "device " + id + " is not offered by this node (any more)");
  }

  /// At its own door the kubelet decides: what it gives out anew, its former holder has given back, whether we have heard of that or not.
  base::Status ReleaseFormerHolders(const std::vector<Slot>& slots) {
    for (const Slot& slot : slots) {
      const auto snapshot = ledger.Get();
      const Lease* holder = snapshot->InTheWayOf(slot);
      if (holder == nullptr) continue;
      if (holder->door != node::share::kKubeletDoor)
        return Error(Code::kFailedPrecondition,
                     "device " + slot.device + " is held by " + holder->id + " of the " + holder->door + " door");
      ledger.Release(holder->id);
    }
    return {};
  }

  ContainerEdits Translate(const device::Edits& edits) const {
    ContainerEdits answer;
    answer.environment = edits.environment;
    for (const auto& file : edits.files) answer.files.push_back({file.container_path, options.host_path(file.host_path), file.permissions});
    return answer;
  }

  /// On gRPC's threads: reads snapshots only.
  std::vector<std::vector<std::string>> Prefer(const std::string& resource, const PreferRequest& request) const {
    const auto snapshot = inventory.published().Get();
    const auto now = offers.published().Get();
    const auto offer = std::find_if(now->begin(), now->end(),
                                    [&](const Offer& one) { return one.door == node::share::kKubeletDoor && one.resource == resource; });
    std::vector<std::vector<std::string>> answers(request.containers.size());
    if (offer == now->end()) return answers;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      const auto& container = request.containers[i];
      if (container.size < 1) continue;
      answers[i] = node::allocate::Prefer({container.available, container.must_include, static_cast<std::size_t>(container.size)}, *offer,
                                          options.share_policy(), *snapshot);
    }
    return answers;
  }

  os::Loop& control;
  const Options options;
  node::inventory::Inventory& inventory;
  node::ledger::Ledger& ledger;
  node::share::Offers& offers;
  const node::share::DialectOf dialect_of;
  bool open = false;
  std::uint64_t allocations = 0;
  KubeletPods pods;
  base::Subscription on_offers;
  edge::kubelet::PodResources resources;
  KubeletList list;
  std::map<std::string, KubeletList::Offered> asked_for;
  std::map<std::string, std::unique_ptr<DevicePlugin>> plugins;
};

KubeletDoor::KubeletDoor(os::Loop& control, base::Executor& io, Options options, node::inventory::Inventory& inventory,
                         node::ledger::Ledger& ledger, node::share::Offers& offers, node::share::DialectOf dialect_of)
    : state_(std::make_unique<State>(control, io, std::move(options), inventory, ledger, offers, std::move(dialect_of))) {}

KubeletDoor::~KubeletDoor() = default;

void KubeletDoor::Recover(const std::vector<Lease>& checkpoint) {
  for (const Lease& lease : checkpoint)
    if (lease.door == node::share::kKubeletDoor) (void)state_->ledger.Hand(lease);  // refused where a slot has changed doors since
}

void KubeletDoor::Open() { state_->Open(); }

api::DoorReport KubeletDoor::Report() const {
  api::DoorReport report;
  report.name = node::share::kKubeletDoor;
  report.state = "waiting";
  report.reason = state_->open ? "no device is offered to the kubelet" : "looking at the devices first";
  for (const auto& [resource, plugin] : state_->plugins) {
    report.resources.push_back(resource);
    const PluginState& state = plugin->state();
    report.state = state.phase == PluginState::Phase::kServing       ? "open"
                   : state.phase == PluginState::Phase::kSteppedBack ? "stepped-back"
                                                                     : "waiting";
    report.reason = state.reason;
  }
  if (report.state == "open") report.enforcement = ToString(node::ledger::Enforcement::kDevices);
  return report;
}

}  // namespace penstock::door
