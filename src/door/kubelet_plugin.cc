// Requests from gRPC's threads are posted to the control loop; everything is decided there.
#include "door/kubelet_plugin.h"

#include <algorithm>
#include <utility>

#include "base/core/strings.h"
#include "base/log.h"
#include "door/kubelet_plugins.h"
#include "door/kubelet_pods.h"
#include "door/words.h"
#include "edge/kubelet/pod_resources.h"
#include "node/share/wish.h"

namespace penstock::door {

using base::Code;
using base::Error;
using base::Result;
using edge::kubelet::AllocateRequest;
using edge::kubelet::ContainerEdits;
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

const Offer* FindOffer(const std::vector<Offer>& offers, const std::string& resource) {
  const auto found = std::find_if(offers.begin(), offers.end(), [&](const Offer& offer) {
    return offer.door == node::share::kKubeletDoor && offer.resource == resource;
  });
  return found == offers.end() ? nullptr : &*found;
}

/// What the kubelet is to have of a resource; nothing where it is not offered to it any more.
KubeletList::Offered OfferedOf(const Offer* offer) {
  KubeletList::Offered offered;
  if (offer == nullptr) return offered;
  offered.all = offer->slots.size();
  for (const auto& slot : offer->slots)
    if (slot.usable) offered.usable.push_back(slot.slot.id);
  std::sort(offered.usable.begin(), offered.usable.end());
  return offered;
}

bool HoldsOf(const Lease& lease, const std::string& resource) {
  return lease.door == node::share::kKubeletDoor &&
         std::any_of(lease.slots.begin(), lease.slots.end(), [&](const Slot& slot) { return slot.resource == resource; });
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
        pods(c, i, options.kubelet_dir, options.proc_root, l, off.published(),
             [this](const std::string& resource, const std::vector<std::string>& ids) { return IsOurs(resource, ids); }),
        resources(c, options.kubelet_dir),
        list(
            c, [this](auto done) { resources.GetAllocatable(std::move(done)); }, options.kubelet_has),
        plugins(c, {options.kubelet_dir, options.proc_root}, PluginCallbacks()) {}

  void Open() {
    open = true;
    on_offers = offers.published().Subscribe([this](const auto& snapshot) { Advertise(*snapshot); }, true);
    on_ledger = ledger.published().Subscribe([this](const auto&) { plugins.LookAtLeaving(); });
    pods.Look();
  }

  void Advertise(const std::vector<Offer>& now) {
    std::map<std::string, std::vector<PluginDevice>> lists;
    for (const Offer& offer : now)
      if (offer.door == node::share::kKubeletDoor) lists.emplace(offer.resource, ToPluginDevices(offer));
    plugins.Offer(std::move(lists));
    AskForList(now);
  }

  /// Asks the kubelet until it has what is offered now, of resources that it reads from us.
  void AskForList(const std::vector<Offer>& now) {
    if (!options.kubelet_has) return;
    std::map<std::string, KubeletList::Offered> offered;
    for (const auto& [resource, one] : plugins.standings())
      if (one.state.phase == PluginState::Phase::kServing) offered[resource] = OfferedOf(FindOffer(now, resource));
    if (std::exchange(asked_for, offered) != offered) list.Expect(std::move(offered));
  }

  /// Whether pods that hold this hold devices of ours: by the names that are given now or were when it was handed out, or by the devices
  /// themselves, where an agent before us gave it a name that nobody knows any more. Any thread: reads snapshots, and tables.
  bool IsOurs(const std::string& resource, const std::vector<std::string>& ids) const {
    const auto snapshot = inventory.published().Get();
    const auto known = [&](const std::string& id) { return snapshot->Find(node::share::DeviceOf(id)) != nullptr; };
    if (std::any_of(ids.begin(), ids.end(), known)) return true;
    const auto of_vendor = [&](const auto& vendor) {
      const device::Dialect* dialect = dialect_of(vendor.vendor);
      return dialect != nullptr && dialect->resource() == resource;
    };
    if (std::any_of(snapshot->vendors.begin(), snapshot->vendors.end(), of_vendor)) return true;
    const auto wished = offers.wished().Get();
    const auto named = [&](const auto& wish) { return wish.second.resource == resource; };
    return std::any_of(wished->wishes.begin(), wished->wishes.end(), named) || IsHeld(resource);
  }

  bool IsHeld(const std::string& resource) const {
    const auto snapshot = ledger.Get();
    return std::any_of(snapshot->leases.begin(), snapshot->leases.end(), [&](const Lease& lease) { return HoldsOf(lease, resource); });
  }

  KubeletPlugins::Callbacks PluginCallbacks() {
    return {.allocate =
                [this](const std::string& resource, AllocateRequest request, Reply<std::vector<ContainerEdits>> reply) {
                  control.Post(
                      [this, resource, request = std::move(request), reply = std::move(reply)] { reply(Allocate(resource, request)); });
                },
            .prefer = [this](const std::string& resource, const PreferRequest& request,
                             const Reply<std::vector<std::vector<std::string>>>& reply) { reply(Prefer(resource, request)); },
            .state = [this](const std::string& resource, const PluginState& state) { StateChanged(resource, state); },
            .held = [this](const std::string& resource) { return IsHeld(resource); }};
  }

  void StateChanged(const std::string& resource, const PluginState& state) {
    const bool bad = state.phase == PluginState::Phase::kRefused || state.phase == PluginState::Phase::kSteppedBack;
    base::Log(bad ? base::kWarn : base::kInfo, "kubelet",
              {{"resource", resource}, {"state", ToString(state.phase)}, {"why", state.reason}});
    if (state.phase == PluginState::Phase::kServing) pods.LookAfterKubeletStart();
    asked_for.clear();
    AskForList(*offers.published().Get());
  }

  Result<std::vector<ContainerEdits>> Allocate(const std::string& resource, const AllocateRequest& request) {
    std::vector<ContainerEdits> answers;
    std::vector<std::string> handed;
    for (const auto& ids : request.containers) {
      auto edits = AllocateContainer(resource, ids, handed);
      if (!edits.ok()) {
        for (const std::string& lease : handed) ledger.Release(lease);
        base::Log(base::kWarn, "allocation refused",
                  {{"resource", resource}, {"devices", base::Join(ids, ",")}, {"why", edits.error().message()}});
        return edits.error();
      }
      answers.push_back(*std::move(edits));
    }
    pods.LookSoon();
    return answers;
  }

  Result<ContainerEdits> AllocateContainer(const std::string& resource, const std::vector<std::string>& ids,
                                           std::vector<std::string>& handed) {
    Lease lease;
    lease.id = "k-" +
               std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(control.clock().Wall().time_since_epoch()).count()) +
               "-" + std::to_string(++allocations);
    lease.door = node::share::kKubeletDoor;
    lease.since = control.clock().Wall();
    ASSIGN(lease.slots, UsableSlots(resource, ids));
    ASSIGN(const device::Edits edits,
           node::allocate::Commit(lease.slots, options.consumer(), *inventory.published().Get(), dialect_of, *offers.servers().Get()));
    TRY(ReleaseFormerHolders(lease.slots));
    handed.push_back(lease.id);
    TRY(ledger.Hand(std::move(lease)));
    return Translate(edits);
  }

  /// Goes through the list once, however many ids there are; they are sorted.
  Result<std::vector<Slot>> UsableSlots(const std::string& resource, const std::vector<std::string>& ids) const {
    const auto snapshot = offers.published().Get();
    const Offer* offer = FindOffer(*snapshot, resource);
    std::vector<const node::share::OfferedSlot*> found(ids.size(), nullptr);
    if (offer != nullptr) {
      for (const auto& offered : offer->slots) {
        const auto at = std::lower_bound(ids.begin(), ids.end(), offered.slot.id);
        if (at != ids.end() && *at == offered.slot.id) found[static_cast<std::size_t>(at - ids.begin())] = &offered;
      }
    }
    std::vector<Slot> slots;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (found[i] == nullptr)
        return Error(Code::kNotFound, "device " + ids[i] + " is not offered as " + resource + " by this node (any more)");
      if (!found[i]->usable) return Error(Code::kFailedPrecondition, "device " + ids[i] + " cannot be used now: " + found[i]->reason);
      // NVIDIA's device plugin in these words (internal/plugin/server.go); people search for them.
      if (offer->single && ids.size() > 1 && found[i]->slot.shape.shares > 1)
        return Error(Code::kInvalidArgument,
                     "invalid request: maximum request size for shared resources is 1; found " + std::to_string(ids.size()));
      slots.push_back(found[i]->slot);
    }
    return slots;
  }

  /// At its own door the kubelet decides: what it gives out anew under the same name, its former holder has given back, whether we have
  /// heard of that or not. It knows nothing of other doors, and counts each name for itself.
  base::Status ReleaseFormerHolders(const std::vector<Slot>& slots) {
    for (const Slot& slot : slots) {
      const auto snapshot = ledger.Get();
      const Lease* holder = snapshot->InTheWayOf(slot);
      if (holder == nullptr) continue;
      const auto same = std::find_if(holder->slots.begin(), holder->slots.end(), [&slot](const Slot& one) {
        return one.id == slot.id && (one.resource.empty() || one.resource == slot.resource);
      });
      if (holder->door != node::share::kKubeletDoor || same == holder->slots.end())
        return Error(Code::kFailedPrecondition, "device " + slot.device + " is still held by " + InWords(*holder) + AsWhat(*holder, slot));
      ledger.Release(holder->id);
    }
    return {};
  }

  /// " as nvidia.com/gpu", where that is another name than the slot's.
  static std::string AsWhat(const Lease& holder, const Slot& wanted) {
    for (const Slot& slot : holder.slots)
      if (slot.device == wanted.device && !slot.resource.empty() && slot.resource != wanted.resource) return " as " + slot.resource;
    return "";
  }

  ContainerEdits Translate(const device::Edits& edits) const {
    ContainerEdits answer;
    answer.environment = edits.environment;
    for (const auto& mount : edits.mounts) answer.mounts.push_back({mount.container_path, mount.host_path, mount.read_only});
    for (const auto& file : edits.files) answer.files.push_back({file.container_path, options.host_path(file.host_path), file.permissions});
    return answer;
  }

  /// On gRPC's threads: reads snapshots only.
  std::vector<std::vector<std::string>> Prefer(const std::string& resource, const PreferRequest& request) const {
    const auto snapshot = inventory.published().Get();
    const auto now = offers.published().Get();
    const Offer* offer = FindOffer(*now, resource);
    std::vector<std::vector<std::string>> answers(request.containers.size());
    if (offer == nullptr) return answers;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      const auto& container = request.containers[i];
      if (container.size < 1) continue;
      answers[i] = node::allocate::Prefer({container.available, container.must_include, static_cast<std::size_t>(container.size)}, *offer,
                                          options.share_policy(), *snapshot);
    }
    return answers;
  }

  /// The devices that the kubelet counts under names that it reads from us.
  void AskCounted(std::function<void(Result<std::set<std::string>>)> done) {
    std::set<std::string> names;
    for (const auto& [resource, one] : plugins.standings())
      if (one.state.phase == PluginState::Phase::kServing || one.state.phase == PluginState::Phase::kRegistering) names.insert(resource);
    if (names.empty()) return done(std::set<std::string>());
    resources.GetAllocatable([names = std::move(names), done = std::move(done)](const auto& answer) {
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
  const node::share::DialectOf dialect_of;
  bool open = false;
  std::uint64_t allocations = 0;
  KubeletPods pods;
  base::Subscription on_offers, on_ledger;
  edge::kubelet::PodResources resources;
  KubeletList list;
  std::map<std::string, KubeletList::Offered> asked_for;
  KubeletPlugins plugins;
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

void KubeletDoor::AskCounted(std::function<void(Result<std::set<std::string>>)> done) { state_->AskCounted(std::move(done)); }

void KubeletDoor::AwaitReleases(bool somebody_waits) { state_->pods.AwaitReleases(somebody_waits); }

// Several plugins may stand differently: the door is open where one of them is read, and says of the others why they are not.
api::DoorReport KubeletDoor::Report() const {
  api::DoorReport report;
  report.name = node::share::kKubeletDoor;
  report.state = "waiting";
  std::map<std::string, std::vector<std::string>> reasons;  // → resources
  bool open = false, stepped_back = false;
  for (const auto& [resource, standing] : state_->plugins.standings()) {
    if (standing.leaving) continue;
    report.resources.push_back(resource);
    open |= standing.state.phase == PluginState::Phase::kServing;
    stepped_back |= standing.state.phase == PluginState::Phase::kSteppedBack;
    if (!standing.state.reason.empty()) reasons[standing.state.reason].push_back(resource);
  }
  for (const auto& [reason, resources] : reasons) {
    const bool of_all = resources.size() == report.resources.size();
    report.reason += (report.reason.empty() ? "" : "; ") + (of_all ? "" : base::Join(resources, ", ") + ": ") + reason;
  }
  if (report.resources.empty()) report.reason = state_->open ? "no device is offered to the kubelet" : "looking at the devices first";
  if (stepped_back) report.state = "stepped-back";
  if (open) report.state = "open";
  if (open) report.enforcement = ToString(node::ledger::Enforcement::kDevices);
  return report;
}

}  // namespace penstock::door
