// Requests from gRPC threads are posted to the control loop, which makes all decisions.
#include "adapter/kubelet/kubelet_adapter.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "adapter/kubelet/advertisement_filter.h"
#include "adapter/kubelet/allocate_handler.h"
#include "adapter/kubelet/plugin_set.h"
#include "adapter/kubelet/pod_tracker.h"
#include "base/core/strings.h"
#include "base/log.h"
#include "node/share/assignment.h"
#include "protocol/kubelet/pod_resources.h"

namespace penstock::adapter::kubelet {

using node::ledger::Lease;
using node::ledger::Slot;
using node::share::Offer;
using protocol::kubelet::AllocateRequest;
using protocol::kubelet::ContainerEdits;
using protocol::kubelet::PluginDevice;
using protocol::kubelet::PluginState;
using protocol::kubelet::PreferRequest;
using protocol::kubelet::Reply;

namespace {

using DeviceLists = std::map<std::string, std::vector<PluginDevice>>;  // by resource

std::vector<PluginDevice> ToPluginDevices(const Offer& offer) {
  std::vector<PluginDevice> devices;
  devices.reserve(offer.slots.size());
  for (const auto& slot : offer.slots)
    devices.push_back({slot.slot.id, slot.usable,
                       slot.numa_node ? std::vector<int>{*slot.numa_node} : std::vector<int>{}});
  return devices;
}

/// What the kubelet should have of a resource.
AllocatableConfirmation::Offered OfferedOf(const std::vector<PluginDevice>& list) {
  AllocatableConfirmation::Offered offered;
  offered.all = list.size();
  for (const PluginDevice& device : list)
    if (device.healthy) offered.usable.push_back(device.id);
  std::ranges::sort(offered.usable);
  return offered;
}

/// The slots that pods have from the kubelet and that are not offered to it under that name, or no
/// longer.
std::vector<Slot> HeldBeside(const std::vector<Offer>& offers,
                             const node::ledger::Snapshot& ledger) {
  std::unordered_map<std::string_view, const Slot*> held;  // by id
  for (const Lease& lease : ledger.leases)
    if (lease.allocator == api::kKubeletAllocator)
      for (const Slot& slot : lease.slots) held.emplace(slot.id, &slot);
  if (held.empty()) return {};
  for (const Offer& offer : offers)
    for (const auto& one : offer.slots)
      if (const auto found = held.find(one.slot.id);
          found != held.end() && found->second->resource == offer.resource)
        held.erase(found);
  std::vector<Slot> beside;
  for (const auto& [id, slot] : held) beside.push_back(*slot);
  std::ranges::sort(beside, {}, &Slot::id);
  return beside;
}

bool HoldsOf(const Lease& lease, const std::string& resource) {
  return lease.allocator == api::kKubeletAllocator &&
         std::ranges::any_of(lease.slots,
                             [&](const Slot& slot) { return slot.resource == resource; });
}

}  // namespace

struct KubeletAdapter::State final : protocol::kubelet::PluginHandler {
  State(os::Loop& c, base::Executor& i, Options o, node::inventory::Inventory& inv,
        node::ledger::Ledger& l, node::share::Offers& off, device::DialectOf d)
      : control(c),
        options(std::move(o)),
        inventory(inv),
        ledger(l),
        offers(off),
        dialect_of(std::move(d)),
        pods(c, i, options.kubelet_dir, options.proc_root, l, off,
             [this](const std::string& resource, const std::vector<std::string>& ids) {
               return IsOwn(resource, ids);
             }),
        resources(c, options.kubelet_dir),
        allocate({c.clock(), inv, l, off, dialect_of}),
        list(
            c, [this](auto done) { resources.GetAllocatable(std::move(done)); },
            options.kubelet_has),
        plugins(c, {options.kubelet_dir, options.proc_root, options.list_read_within}, *this,
                [this](const std::string& resource, const PluginState& state) {
                  StateChanged(resource, state);
                }) {}

  void Allocate(const std::string& resource, AllocateRequest request,
                Reply<std::vector<ContainerEdits>> reply) override {
    control.Post([this, resource, request = std::move(request), reply = std::move(reply)] {
      reply(AllocateNow(resource, request));
    });
  }

  /// Reads only snapshots.
  void Prefer(const std::string& resource, const PreferRequest& request,
              const Reply<std::vector<std::vector<std::string>>>& reply) override {
    reply(Preferred(resource, request));
  }

  void Open() {
    open = true;
    Advertise();
    pods.Poll();
  }

  void Follow(const node::share::NodeDevices& now, const node::share::NodeDevices& before) {
    if (!open) return;
    if (now.offers != before.offers ||
        (now.ledger != before.ledger && HeldBeside(*shown.Get(), *now.ledger) != beside))
      Advertise();
  }

  /// The specifications written now; null if none are written on this node.
  std::shared_ptr<const node::cdi::Written> Written() const {
    return options.written != nullptr ? options.written->Get() : nullptr;
  }

  /// Shows the kubelet what it may allocate now.
  void Advertise() {
    if (!open) return;
    const auto written = Written();
    const auto engine = options.engine != nullptr ? options.engine->published().Get() : nullptr;
    const api::ContainersConfig config = options.containers();
    const auto before = std::tuple(listing, not_here, gated.withheld());
    Decide(ChooseDeviceList(config, engine.get(), written != nullptr ? options.cdi_folder : ""));
    not_here = MissingClasses(config.device_classes, Dialects(), written.get());
    AdvertisementFilter::Gate gate{listing, written.get(), {}, Waiting()};
    for (const std::string& one : config.required_classes)
      if (std::ranges::find(not_here, one) != not_here.end()) gate.missing.push_back(one);
    shown.Set(gated.Show(*offers.Get(), gate));
    beside = HeldBeside(*shown.Get(), *ledger.Get());
    auto lists = Lists();
    RequestList(lists);
    plugins.Offer(std::move(lists));
    if (before != std::tuple(listing, not_here, gated.withheld())) options.containers_differ();
  }

  /// What is offered, and as unhealthy what pods have beside that: a kubelet of 1.36 ends with a
  /// panic where a device that it allocates leaves its list before it has stored the answer
  /// (devicemanager, allocateContainerResources), and likewise at hints for a pod whose device is
  /// not in it (generateDeviceTopologyHints). Only for resources that we serve: they may be another
  /// plugin's.
  DeviceLists Lists() const {
    DeviceLists lists;
    for (const Offer& offer : *shown.Get()) lists.emplace(offer.resource, ToPluginDevices(offer));
    const auto served = plugins.states();
    const auto snapshot = inventory.published().Get();
    for (const Slot& slot : beside) {
      if (!lists.contains(slot.resource) && !served.contains(slot.resource)) continue;
      const auto* entry = snapshot->Find(slot.device);
      const auto numa = entry != nullptr ? entry->facts->numa_node : std::nullopt;
      lists[slot.resource].push_back(
          {slot.id, false, numa ? std::vector<int>{*numa} : std::vector<int>{}});
    }
    return lists;
  }

  /// Device id → why the kubelet does not get it yet.
  std::map<std::string, std::string> Waiting() const {
    std::map<std::string, std::string> waiting;
    const auto vendors = options.waiting();
    if (vendors.empty()) return waiting;
    for (const auto& entry : inventory.published().Get()->devices)
      if (const auto why = vendors.find(entry.facts->vendor); why != vendors.end())
        waiting.emplace(entry.facts->id, why->second);
    return waiting;
  }

  void Decide(DeviceListChoice next) {
    if (next == listing) return;
    listing = std::move(next);
    if (!listing.decided) return;
    base::Log(base::kInfo, "device list strategy selected",
              {{"by", base::Join(listing.Names(), ", ")}, {"why", listing.reason}});
  }

  std::vector<const device::Dialect*> Dialects() const {
    std::vector<const device::Dialect*> dialects;
    for (const auto& vendor : inventory.published().Get()->vendors)
      if (const device::Dialect* dialect = dialect_of(vendor.vendor); dialect != nullptr)
        dialects.push_back(dialect);
    return dialects;
  }

  /// Asks the kubelet until it has the current offer, for the resources that it reads from us.
  void RequestList(const DeviceLists& lists) {
    if (!options.kubelet_has) return;
    std::map<std::string, AllocatableConfirmation::Offered> offered;
    for (const auto& [resource, state] : plugins.states()) {
      if (state.phase != PluginState::Phase::kServing) continue;
      const auto found = lists.find(resource);
      offered[resource] =
          found != lists.end() ? OfferedOf(found->second) : AllocatableConfirmation::Offered();
    }
    if (requested == offered) return;
    requested = offered;
    options.kubelet_has({});
    list.Expect(std::move(offered));
  }

  /// Whether pods that hold these ids hold devices of ours. Recognizes resource names that are in
  /// use or were in use at allocation, and the devices themselves, since an earlier agent may have
  /// used a resource name that is unknown now. Any thread: reads snapshots and tables.
  bool IsOwn(const std::string& resource, const std::vector<std::string>& ids) const {
    const auto snapshot = inventory.published().Get();
    const auto known = [&](const std::string& id) {
      return snapshot->Find(node::share::DeviceOf(id)) != nullptr;
    };
    if (std::ranges::any_of(ids, known)) return true;
    const auto of_vendor = [&](const auto& vendor) {
      const device::Dialect* dialect = dialect_of(vendor.vendor);
      return dialect != nullptr && dialect->resource() == resource;
    };
    if (std::ranges::any_of(snapshot->vendors, of_vendor)) return true;
    const auto desired = offers.LastDesired();
    const auto named = [&](const auto& assignment) {
      return assignment.second.resource == resource;
    };
    return std::ranges::any_of(desired->assignments, named) || IsHeld(resource);
  }

  bool IsHeld(const std::string& resource) const {
    const auto snapshot = ledger.Get();
    return std::ranges::any_of(snapshot->leases,
                               [&](const Lease& lease) { return HoldsOf(lease, resource); });
  }

  void StateChanged(const std::string& resource, const PluginState& state) {
    const bool bad = state.phase == PluginState::Phase::kRefused ||
                     state.phase == PluginState::Phase::kSteppedBack;
    base::Log(bad ? base::kWarn : base::kInfo, "device plugin state changed",
              {{"resource", resource}, {"state", ToString(state.phase)}, {"why", state.reason}});
    if (state.phase == PluginState::Phase::kServing) {
      pods.PollAfterKubeletStart();
      if (options.engine != nullptr) options.engine->QueryAgain();
    }
    requested.reset();
    RequestList(Lists());
    if (options.containers_differ) options.containers_differ();
  }

  Result<std::vector<ContainerEdits>> AllocateNow(const std::string& resource,
                                                  const AllocateRequest& request) {
    const auto now = shown.Get();
    const auto written = Written();
    const api::ContainersConfig config = options.containers();
    const DeviceListChoice by = listing;
    auto answers = allocate.Allocate(resource, request,
                                     {*now,
                                      {.listing = by,
                                       .config = config,
                                       .consumer = options.consumer(),
                                       .written = written.get(),
                                       .unique = RandomUuid,
                                       .host_path = options.host_paths()}});
    if (answers.ok()) pods.SchedulePoll();
    return answers;
  }

  std::vector<std::vector<std::string>> Preferred(const std::string& resource,
                                                  const PreferRequest& request) const {
    const auto snapshot = inventory.published().Get();
    const auto held = ledger.Get();
    const auto now = shown.Get();
    const Offer* offer = FindOffer(*now, resource);
    std::vector<std::vector<std::string>> answers(request.containers.size());
    if (offer == nullptr) return answers;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      const auto& container = request.containers[i];
      if (container.size < 1) continue;
      answers[i] = node::allocate::Prefer(
          {container.available, container.must_include, static_cast<std::size_t>(container.size)},
          *offer, options.share_policy(), *snapshot, *held);
    }
    return answers;
  }

  /// Passes the devices that the kubelet counts under the resources that it reads from us. Fails
  /// until it was asked for its pods: one that holds a device may be missing in the ledger.
  void QueryCounted(std::function<void(Result<std::set<std::string>>)> done) {
    if (!pods.polled()) {
      pods.Poll();
      return done(Error(Code::kUnavailable, "which pods hold devices is not known yet"));
    }
    std::set<std::string> names;
    for (const auto& [resource, state] : plugins.states())
      if (state.phase == PluginState::Phase::kServing ||
          state.phase == PluginState::Phase::kRegistering)
        names.insert(resource);
    if (names.empty()) return done(std::set<std::string>());
    resources.GetAllocatable(
        [names = std::move(names), done = std::move(done)](const auto& answer) {
          if (!answer.ok()) return done(answer.error());
          std::set<std::string> counted;
          for (const auto& [resource, ids] : *answer)
            if (names.contains(resource))
              for (const std::string& id : ids) counted.insert(node::share::DeviceOf(id));
          done(std::move(counted));
        });
  }

  os::Loop& control;
  const Options options;
  node::inventory::Inventory& inventory;
  node::ledger::Ledger& ledger;
  node::share::Offers& offers;
  const device::DialectOf dialect_of;
  bool open = false;
  DeviceListChoice listing{.decided = false};
  std::vector<std::string> not_here;  // configured classes of devices that are missing
  AdvertisementFilter gated;
  base::Published<std::vector<Offer>> shown;
  std::vector<Slot> beside;  // what pods have that is not in it
  PodTracker pods;
  protocol::kubelet::PodResources resources;
  AllocateHandler allocate;
  AllocatableConfirmation list;
  std::optional<std::map<std::string, AllocatableConfirmation::Offered>> requested;
  PluginSet plugins;
};

KubeletAdapter::KubeletAdapter(os::Loop& control, base::Executor& io, Options options,
                               node::inventory::Inventory& inventory, node::ledger::Ledger& ledger,
                               node::share::Offers& offers, device::DialectOf dialect_of)
    : state_(std::make_unique<State>(control, io, std::move(options), inventory, ledger, offers,
                                     std::move(dialect_of))) {}

KubeletAdapter::~KubeletAdapter() = default;

void KubeletAdapter::Recover(const std::vector<Lease>& checkpoint) {
  for (const Lease& lease : checkpoint)
    if (lease.allocator == api::kKubeletAllocator)
      (void)state_->ledger.Add(lease);  // refused if a slot has changed its allocator since
}

void KubeletAdapter::Open() { state_->Open(); }

void KubeletAdapter::Follow(const node::share::NodeDevices& now,
                            const node::share::NodeDevices& before) {
  state_->Follow(now, before);
}

void KubeletAdapter::ContainersChanged() { state_->Advertise(); }

const std::map<std::string, std::string>& KubeletAdapter::withheld() const {
  return state_->gated.withheld();
}

void KubeletAdapter::QueryCounted(std::function<void(Result<std::set<std::string>>)> done) {
  state_->QueryCounted(std::move(done));
}

void KubeletAdapter::AwaitReleases(bool has_waiters) { state_->pods.AwaitReleases(has_waiters); }

// Plugins may be in different states: the allocator is open if the kubelet reads one of them, and
// the reason says why it does not read the others.
api::AllocatorReport KubeletAdapter::Report() const {
  api::AllocatorReport report;
  report.name = api::kKubeletAllocator;
  report.state = "waiting";
  std::map<std::string, std::vector<std::string>> reasons;  // reason → resources
  bool open = false, stepped_back = false;
  const auto offers = state_->shown.Get();
  for (const auto& [resource, plugin] : state_->plugins.states()) {
    if (FindOffer(*offers, resource) == nullptr) continue;
    report.resources.push_back(resource);
    open |= plugin.phase == PluginState::Phase::kServing;
    stepped_back |= plugin.phase == PluginState::Phase::kSteppedBack;
    if (!plugin.reason.empty()) reasons[plugin.reason].push_back(resource);
  }
  for (const auto& [reason, resources] : reasons) {
    const bool of_all = resources.size() == report.resources.size();
    report.reason += (report.reason.empty() ? "" : "; ") +
                     (of_all ? "" : base::Join(resources, ", ") + ": ") + reason;
  }
  if (report.resources.empty())
    report.reason = state_->open ? "no device is offered to the kubelet"
                                 : "waiting for initial device discovery";
  if (stepped_back) report.state = "stepped-back";
  if (open) report.state = "open";
  if (open) report.enforcement = ToString(node::ledger::Enforcement::kDevices);
  if (!state_->open) return report;
  if (report.resources.empty() && !withheld().empty()) report.reason = withheld().begin()->second;
  if (state_->listing.decided) report.device_list = state_->listing.Names();
  report.device_list_reason = state_->listing.reason;
  if (!state_->not_here.empty())
    report.device_list_reason += "; not on this node: " + base::Join(state_->not_here, ", ");
  return report;
}

}  // namespace penstock::adapter::kubelet
