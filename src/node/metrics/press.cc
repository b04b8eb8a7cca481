// Puts the groups of families together, and keeps labels as long as what they are made of stays.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/core/strings.h"
#include "node/metrics/exporter_families.h"
#include "node/metrics/exposition.h"
#include "node/metrics/families.h"
#include "node/metrics/label_names.h"
#include "node/metrics/left_out.h"
#include "node/metrics/metrics.h"

namespace penstock::node::metrics {
namespace {

/// Values of a device that has not answered for so long say nothing of now; Prometheus, too, forgets a series then.
constexpr base::Duration kMostAge = std::chrono::minutes(5);

std::string_view KindOf(const ledger::Lease& lease) { return lease.door == share::kKubeletDoor ? "pod" : "run"; }

/// The labels of all that a lease has.
void AddLease(const ledger::Lease& lease, Labels& labels) {
  labels.Add("lease", lease.id).Add("kind", KindOf(lease)).Add("namespace", lease.namespace_name).Add("pod", lease.pod);
  labels.Add("container", lease.container).Add("user", lease.user);
}

/// The labels of a lease that stay as long as the lease does.
struct LeaseLabels {
  std::shared_ptr<const ledger::Lease> lease;
  std::string of_lease, own;
  std::map<std::string, std::string, std::less<>> of_devices;
  std::uint64_t page = 0;  // the last one that had them
};

usage::ProcessUsage OutsideProcess(const ledger::Process& process, const Device& device) {
  usage::ProcessUsage told{.pid = process.pid, .user = process.user, .command = process.command};
  if (device.sample == nullptr) return told;
  const auto& samples = device.sample->processes;
  const auto found = std::find_if(samples.begin(), samples.end(), [&process](const auto& one) { return one.pid == process.pid; });
  if (found == samples.end()) return told;
  const auto ratio = [](const std::optional<double>& percent) { return percent ? std::optional(*percent / 100) : std::nullopt; };
  told.memory = found->memory;
  told.compute = ratio(found->compute);
  told.memory_copy = ratio(found->memory_copy);
  told.encoder = ratio(found->encoder);
  told.decoder = ratio(found->decoder);
  return told;
}

/// `lease` is null for a process that was not given the device.
Process ProcessOf(usage::ProcessUsage usage, const device::Facts& device, const ledger::Lease* lease, Detail detail) {
  static const ledger::Lease nobody;
  if (lease == nullptr) lease = &nobody;
  Labels labels;
  labels.Add("device", device.id).Add("index", device.index < 0 ? "" : std::to_string(device.index));
  if (detail == Detail::kProcesses) labels.Add("pid", std::to_string(usage.pid));
  labels.Add("user", usage.user);
  if (detail == Detail::kProcesses) labels.Add("command", usage.command);
  labels.Add("lease", lease->id).Add("namespace", lease->namespace_name).Add("pod", lease->pod).Add("container", lease->container);
  return {std::move(usage), labels.Take()};
}

void AddTo(std::optional<double>& sum, const std::optional<double>& more) {
  if (more) sum = sum.value_or(0) + *more;
}

void AddTo(std::optional<base::Bytes>& sum, const std::optional<base::Bytes>& more) {
  if (more) sum = base::Bytes{sum.value_or(base::Bytes{}).count + more->count};
}

/// Processes that are not told apart are told as one.
std::vector<Process> SumByLabels(const std::vector<Process>& processes) {
  std::vector<Process> sums;
  std::map<std::string_view, std::size_t> places;
  for (const Process& process : processes) {
    const auto [at, is_new] = places.try_emplace(process.labels, sums.size());
    if (is_new) {
      sums.push_back(process);
      continue;
    }
    usage::ProcessUsage& sum = sums[at->second].usage;
    AddTo(sum.memory, process.usage.memory);
    AddTo(sum.compute, process.usage.compute);
    AddTo(sum.memory_copy, process.usage.memory_copy);
    AddTo(sum.encoder, process.usage.encoder);
    AddTo(sum.decoder, process.usage.decoder);
  }
  return sums;
}

}  // namespace

struct Press::State {
  explicit State(DialectOf d) : dialect_of(std::move(d)) {}

  void Refresh(const Snapshots& node);
  void RefreshVendors(const inventory::Snapshot& inventory);
  ExporterFamilies* ExporterOf(const std::string& vendor);
  void RefreshDevices(const inventory::Snapshot& inventory);
  void RefreshHeld(const Snapshots& node);
  std::vector<Device> DevicesOf(const Snapshots& node, base::WallTime now) const;
  std::vector<Holder> HoldersOf(const Snapshots& node);
  LeaseLabels& LabelsOf(const std::shared_ptr<const ledger::Lease>& lease);
  std::vector<Process> ProcessesOf(const std::vector<Device>& devices, const std::vector<Holder>& holders, const ledger::Snapshot& ledger,
                                   Detail detail) const;
  void AddAll(const Snapshots& node, const Figures& figures, Detail detail, Exposition& page);

  const DialectOf dialect_of;
  api::TelemetryConfig config;
  std::string node_name;
  bool stale = true;  // labels are to be made anew, whatever the generations say
  std::uint64_t facts_generation = 0, ledger_generation = 0, pages = 0;
  std::vector<std::shared_ptr<const device::Facts>> present;       // of the devices that are not gone
  std::map<std::string, ExporterFamilies, std::less<>> exporters;  // by vendor
  std::vector<Measured> measured;
  std::vector<std::string> device_labels, held;
  std::unordered_map<const ledger::Lease*, LeaseLabels> leases;
  std::array<std::size_t, 2> bytes{};  // of the last page in each format
};

void Press::State::Refresh(const Snapshots& node) {
  std::vector<std::shared_ptr<const device::Facts>> now_present;
  for (const inventory::Entry& entry : node.inventory->devices)
    if (entry.health.state != device::HealthState::kGone) now_present.push_back(entry.facts);
  const bool facts_changed = stale || facts_generation != node.inventory->facts_generation || now_present != present;
  if (facts_changed) {
    RefreshVendors(*node.inventory);
    RefreshDevices(*node.inventory);
  }
  if (facts_changed || ledger_generation != node.ledger->generation) {
    RefreshHeld(node);
    for (auto& [vendor, families] : exporters) families.Relabel(*node.inventory, *node.ledger);
  }
  stale = false;
  facts_generation = node.inventory->facts_generation;
  ledger_generation = node.ledger->generation;
  present = std::move(now_present);
}

void Press::State::RefreshVendors(const inventory::Snapshot& inventory) {
  std::vector<const device::Dialect*> dialects;
  for (const inventory::VendorEntry& vendor : inventory.vendors) {
    const device::Dialect* dialect = dialect_of(vendor.vendor);
    if (dialect == nullptr) continue;
    dialects.push_back(dialect);
    ExporterOf(vendor.vendor);
  }
  measured = MeasuredFamilies(dialects);
}

ExporterFamilies* Press::State::ExporterOf(const std::string& vendor) {
  const auto known = exporters.find(vendor);
  if (known != exporters.end()) return &known->second;
  const device::Dialect* dialect = dialect_of(vendor);
  if (dialect == nullptr || dialect->exporter() == nullptr) return nullptr;
  return &exporters.try_emplace(vendor, *dialect, config, node_name).first->second;
}

void Press::State::RefreshDevices(const inventory::Snapshot& inventory) {
  device_labels.clear();
  leases.clear();
  for (const inventory::Entry& entry : inventory.devices) {
    const device::Facts& facts = *entry.facts;
    Labels labels;
    labels.Add("device", facts.id).Add("index", facts.index < 0 ? "" : std::to_string(facts.index)).Add("model", facts.model);
    device_labels.push_back(labels.Take());
  }
}

void Press::State::RefreshHeld(const Snapshots& node) {
  held.clear();
  for (std::size_t i = 0; i < node.inventory->devices.size(); ++i) {
    for (const ledger::Lease& lease : node.ledger->leases) {
      for (const ledger::Slot& slot : lease.slots) {
        if (slot.device != node.inventory->devices[i].facts->id) continue;
        Labels labels(device_labels[i]);
        labels.Add("slot", slot.id).Add("door", lease.door).Add("kind", KindOf(lease));
        labels.Add("namespace", lease.namespace_name).Add("pod", lease.pod).Add("container", lease.container);
        labels.Add("user", lease.user).Add("lease", lease.id);
        held.push_back(labels.Take());
      }
    }
  }
}

std::vector<Device> Press::State::DevicesOf(const Snapshots& node, base::WallTime now) const {
  std::vector<Device> devices;
  devices.reserve(node.inventory->devices.size());
  for (const inventory::Entry& entry : node.inventory->devices) {
    const sample::DeviceSample* asked = node.samples ? node.samples->Find(entry.facts->id) : nullptr;
    const base::Duration most = node.samples ? std::max(kMostAge, 3 * node.samples->interval) : kMostAge;
    const bool of_now = asked != nullptr && now - asked->at <= most;
    devices.push_back({&entry, of_now ? asked : nullptr, asked, device_labels[devices.size()]});
  }
  return devices;
}

LeaseLabels& Press::State::LabelsOf(const std::shared_ptr<const ledger::Lease>& lease) {
  LeaseLabels& texts = leases[lease.get()];
  if (texts.lease == nullptr) {
    texts.lease = lease;
    Labels of_lease, own;
    AddLease(*lease, of_lease);
    for (const auto& [name, value] : KubeLabels(lease->labels)) own.Add(name, value);
    texts.of_lease = of_lease.Take();
    texts.own = own.Take();
  }
  texts.page = pages;
  return texts;
}

std::vector<Holder> Press::State::HoldersOf(const Snapshots& node) {
  std::vector<Holder> holders;
  if (!node.usage) return holders;
  const auto& all = node.usage->holders;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const usage::HolderUsage& usage = *all[i];
    const bool again = i + 1 < all.size() && all[i + 1]->holder->id == usage.holder->id && all[i + 1]->device == usage.device;
    if (again) continue;  // the same lease had ended on the device once: its later time there counts
    LeaseLabels& texts = LabelsOf(usage.holder);
    auto [of_device, fresh] = texts.of_devices.try_emplace(usage.device);
    if (fresh) {
      const inventory::Entry* entry = node.inventory->Find(usage.device);
      Labels labels;
      labels.Add("device", usage.device)
          .Add("index", entry == nullptr || entry->facts->index < 0 ? "" : std::to_string(entry->facts->index));
      AddLease(*usage.holder, labels);
      of_device->second = labels.Take();
    }
    const bool first = holders.empty() || holders.back().usage->holder->id != usage.holder->id;
    holders.push_back({&usage, of_device->second, texts.of_lease, texts.own, first});
  }
  std::erase_if(leases, [this](const auto& one) { return one.second.page != pages; });
  return holders;
}

std::vector<Process> Press::State::ProcessesOf(const std::vector<Device>& devices, const std::vector<Holder>& holders,
                                               const ledger::Snapshot& ledger, Detail detail) const {
  std::vector<Process> processes;
  std::map<std::string_view, std::vector<const usage::HolderUsage*>> by_device;
  for (const Holder& holder : holders)
    if (!holder.usage->until) by_device[holder.usage->device].push_back(holder.usage);
  for (const Device& device : devices) {
    const device::Facts& facts = *device.entry->facts;
    std::set<pid_t> told;
    for (const usage::HolderUsage* usage : by_device[facts.id])
      for (const usage::ProcessUsage& process : usage->processes)
        if (told.insert(process.pid).second) processes.push_back(ProcessOf(process, facts, usage->holder.get(), detail));
    const auto outside = ledger.outside.find(facts.id);
    if (outside == ledger.outside.end()) continue;
    for (const ledger::Process& process : outside->second)
      if (told.insert(process.pid).second) processes.push_back(ProcessOf(OutsideProcess(process, device), facts, nullptr, detail));
  }
  return detail == Detail::kProcesses ? processes : SumByLabels(processes);
}

void Press::State::AddAll(const Snapshots& node, const Figures& figures, Detail detail, Exposition& page) {
  const std::vector<Device> devices = DevicesOf(node, figures.now);
  const std::vector<Holder> holders = HoldersOf(node);
  AddDevices(devices, *node.inventory, page);
  AddTelemetry(devices, measured, page);
  AddHealth(devices, figures, page);
  AddSharing(devices, node, page);
  AddHolders(devices, held, holders, *node.ledger, page);
  if (config.processes) AddProcesses(ProcessesOf(devices, holders, *node.ledger, detail), page);
  AddCollection(devices, node, dialect_of, figures.now, page);
  if (node.samples) {
    std::vector<Unavailable> unavailable;
    for (const auto& [vendor, families] : exporters)
      for (Unavailable& one : families.UnavailableNow(*node.inventory, *node.samples)) unavailable.push_back(std::move(one));
    AddUnavailable(unavailable, page);
  }
  AddAgent(*node.inventory, *node.ledger, figures, page);
  for (auto& [vendor, families] : exporters) families.Add(devices, node, figures, page);
}

Press::Press(DialectOf dialect_of) : state_(std::make_unique<State>(std::move(dialect_of))) {}
Press::~Press() = default;

void Press::Configure(const api::TelemetryConfig& config, const std::string& node) {
  state_->exporters.clear();  // they look at the configuration
  state_->config = config;
  state_->node_name = node;
  state_->stale = true;
}

void Press::See(const sample::Snapshot& samples, base::TimePoint now) {
  for (const auto& [id, sample] : samples.devices) {
    ExporterFamilies* exporter = state_->ExporterOf(sample->vendor);
    if (exporter != nullptr) exporter->See(*sample, now);
  }
}

std::string Press::Make(const Snapshots& node, const Figures& figures, Format format, Detail detail) {
  State& state = *state_;
  ++state.pages;
  state.Refresh(node);
  std::size_t& bytes = state.bytes[format == Format::kText ? 0 : 1];
  Exposition page(format, [&state](std::string_view family) { return IsShown(state.config, family); });
  page.Reserve(bytes + bytes / 8);
  state.AddAll(node, figures, detail, page);
  std::string text = page.Take();
  bytes = text.size();
  return text;
}

}  // namespace penstock::node::metrics
