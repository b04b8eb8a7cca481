// Assembles the groups of families into a page, and caches labels while their sources are
// unchanged.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "node/metrics/exporter/exporter_families.h"
#include "node/metrics/exposition.h"
#include "node/metrics/families.h"
#include "node/metrics/label_names.h"
#include "node/metrics/metrics.h"
#include "node/metrics/unused_quantities.h"

namespace penstock::node::metrics {
namespace {

/// The values of a device that has not answered for this long no longer describe the present;
/// Prometheus, too, drops a series after this time.
constexpr base::Duration kMaxSampleAge = std::chrono::minutes(5);

std::string_view KindOf(const ledger::Lease& lease) {
  return api::FindAllocator(lease.allocator).holder;
}

/// Adds the labels of all series of a lease.
void AddLease(const ledger::Lease& lease, LabelText& labels) {
  labels.Add("lease", lease.id)
      .Add("kind", KindOf(lease))
      .Add("namespace", lease.namespace_name)
      .Add("pod", lease.pod);
  labels.Add("container", lease.container).Add("user", lease.user);
}

/// The label texts of a lease, valid as long as the lease exists.
struct LeaseLabels {
  std::shared_ptr<const ledger::Lease> lease;
  std::string of_lease, own;
  std::map<std::string, std::string, std::less<>> of_devices;
  std::uint64_t page = 0;  // the last page that used them
};

usage::ProcessUsage OutsideProcess(const ledger::Process& process, const DeviceRow& device) {
  usage::ProcessUsage reported{
      .pid = process.pid, .user = process.user, .command = process.command};
  if (device.sample == nullptr) return reported;
  const auto& samples = device.sample->processes;
  const auto found = std::find_if(samples.begin(), samples.end(),
                                  [&process](const auto& one) { return one.pid == process.pid; });
  if (found == samples.end()) return reported;
  const auto ratio = [](const std::optional<double>& percent) {
    return percent ? std::optional(*percent / 100) : std::nullopt;
  };
  reported.memory = found->memory;
  reported.compute = ratio(found->compute);
  reported.memory_copy = ratio(found->memory_copy);
  reported.encoder = ratio(found->encoder);
  reported.decoder = ratio(found->decoder);
  return reported;
}

/// `lease` is null for an outside process.
ProcessRow ProcessOf(usage::ProcessUsage usage, const device::Facts& device,
                     const ledger::Lease* lease, Detail detail) {
  static const ledger::Lease nobody;
  if (lease == nullptr) lease = &nobody;
  LabelText labels;
  labels.Add("device", device.id).Add("index", NumberOf(device));
  if (detail == Detail::kProcesses) labels.Add("pid", std::to_string(usage.pid));
  labels.Add("user", usage.user);
  if (detail == Detail::kProcesses) labels.Add("command", usage.command);
  labels.Add("lease", lease->id)
      .Add("namespace", lease->namespace_name)
      .Add("pod", lease->pod)
      .Add("container", lease->container);
  return {std::move(usage), labels.Take()};
}

void AddTo(std::optional<double>& sum, const std::optional<double>& more) {
  if (more) sum = sum.value_or(0) + *more;
}

void AddTo(std::optional<base::Bytes>& sum, const std::optional<base::Bytes>& more) {
  if (more) sum = base::Bytes{sum.value_or(base::Bytes{}).count + more->count};
}

/// Processes with the same labels are added up.
std::vector<ProcessRow> SumByLabels(const std::vector<ProcessRow>& processes) {
  std::vector<ProcessRow> sums;
  std::map<std::string_view, std::size_t> places;
  for (const ProcessRow& process : processes) {
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

struct MetricsRenderer::State {
  explicit State(device::DialectOf d) : dialect_of(std::move(d)) {}

  void Refresh(const Snapshots& node);
  void RefreshVendors(const inventory::Snapshot& inventory);
  ExporterFamilies* ExporterOf(const std::string& vendor);
  void RefreshDevices(const inventory::Snapshot& inventory);
  void RefreshHeld(const Snapshots& node);
  std::vector<DeviceRow> DevicesOf(const Snapshots& node, base::WallTime now) const;
  std::vector<Holder> HoldersOf(const Snapshots& node);
  LeaseLabels& LabelsOf(const std::shared_ptr<const ledger::Lease>& lease);
  std::vector<ProcessRow> ProcessesOf(const std::vector<DeviceRow>& devices,
                                      const std::vector<Holder>& holders,
                                      const ledger::Snapshot& ledger, Detail detail) const;
  void AddAll(const Snapshots& node, const PageInputs& inputs, Detail detail, Exposition& page);

  const device::DialectOf dialect_of;
  api::TelemetryConfig config;
  std::string node_name;
  bool stale = true;  // rebuild the labels, whatever the generations are
  std::uint64_t facts_generation = 0, ledger_generation = 0, pages = 0;
  std::shared_ptr<const attribute::DeviceJobs> jobs;
  std::vector<std::shared_ptr<const device::Facts>> present;  // of the devices that are not gone
  std::map<std::string, ExporterFamilies, std::less<>> exporters;  // by vendor
  std::vector<Measured> measured;
  std::vector<std::string> device_labels, held;
  std::unordered_map<const ledger::Lease*, LeaseLabels> leases;
  std::array<std::size_t, 2> bytes{};  // size of the last page in each format
};

void MetricsRenderer::State::Refresh(const Snapshots& node) {
  std::vector<std::shared_ptr<const device::Facts>> now_present;
  for (const inventory::Entry& entry : node.inventory->devices)
    if (entry.health.state != device::HealthState::kGone) now_present.push_back(entry.facts);
  const bool facts_changed =
      stale || facts_generation != node.inventory->facts_generation || now_present != present;
  if (facts_changed) {
    RefreshVendors(*node.inventory);
    RefreshDevices(*node.inventory);
  }
  const bool ledger_changed = ledger_generation != node.ledger->generation;
  if (facts_changed || ledger_changed) RefreshHeld(node);
  if (facts_changed || ledger_changed || jobs != node.jobs)
    for (auto& [vendor, families] : exporters)
      families.Relabel(*node.inventory, *node.ledger, node.jobs.get());
  stale = false;
  facts_generation = node.inventory->facts_generation;
  ledger_generation = node.ledger->generation;
  jobs = node.jobs;
  present = std::move(now_present);
}

void MetricsRenderer::State::RefreshVendors(const inventory::Snapshot& inventory) {
  std::vector<const device::Dialect*> dialects;
  for (const inventory::VendorEntry& vendor : inventory.vendors) {
    const device::Dialect* dialect = dialect_of(vendor.vendor);
    if (dialect == nullptr) continue;
    dialects.push_back(dialect);
    ExporterOf(vendor.vendor);
  }
  measured = MeasuredFamilies(dialects);
}

ExporterFamilies* MetricsRenderer::State::ExporterOf(const std::string& vendor) {
  const auto known = exporters.find(vendor);
  if (known != exporters.end()) return &known->second;
  const device::Dialect* dialect = dialect_of(vendor);
  if (dialect == nullptr || dialect->exporter() == nullptr) return nullptr;
  return &exporters.try_emplace(vendor, *dialect, config, node_name).first->second;
}

void MetricsRenderer::State::RefreshDevices(const inventory::Snapshot& inventory) {
  device_labels.clear();
  leases.clear();
  for (const inventory::Entry& entry : inventory.devices) {
    const device::Facts& facts = *entry.facts;
    LabelText labels;
    labels.Add("device", facts.id).Add("index", NumberOf(facts)).Add("model", facts.model);
    device_labels.push_back(labels.Take());
  }
}

void MetricsRenderer::State::RefreshHeld(const Snapshots& node) {
  held.clear();
  for (std::size_t i = 0; i < node.inventory->devices.size(); ++i) {
    for (const ledger::Lease& lease : node.ledger->leases) {
      for (const ledger::Slot& slot : lease.slots) {
        if (slot.device != node.inventory->devices[i].facts->id) continue;
        LabelText labels(device_labels[i]);
        labels.Add("slot", slot.id).Add("door", lease.allocator).Add("kind", KindOf(lease));
        labels.Add("namespace", lease.namespace_name)
            .Add("pod", lease.pod)
            .Add("container", lease.container);
        labels.Add("user", lease.user).Add("lease", lease.id);
        held.push_back(labels.Take());
      }
    }
  }
}

std::vector<DeviceRow> MetricsRenderer::State::DevicesOf(const Snapshots& node,
                                                         base::WallTime now) const {
  std::vector<DeviceRow> devices;
  devices.reserve(node.inventory->devices.size());
  for (const inventory::Entry& entry : node.inventory->devices) {
    const sample::DeviceSample* newest =
        node.samples ? node.samples->Find(entry.facts->id) : nullptr;
    const base::Duration most =
        node.samples ? std::max(kMaxSampleAge, 3 * node.samples->interval) : kMaxSampleAge;
    const bool of_now = newest != nullptr && now - newest->at <= most;
    devices.push_back({&entry, of_now ? newest : nullptr, newest, device_labels[devices.size()]});
  }
  return devices;
}

LeaseLabels& MetricsRenderer::State::LabelsOf(const std::shared_ptr<const ledger::Lease>& lease) {
  LeaseLabels& texts = leases[lease.get()];
  if (texts.lease == nullptr) {
    texts.lease = lease;
    LabelText of_lease, own;
    AddLease(*lease, of_lease);
    for (const auto& [name, value] : KubeLabels(lease->labels)) own.Add(name, value);
    texts.of_lease = of_lease.Take();
    texts.own = own.Take();
  }
  texts.page = pages;
  return texts;
}

std::vector<Holder> MetricsRenderer::State::HoldersOf(const Snapshots& node) {
  std::vector<Holder> holders;
  if (!node.usage) return holders;
  const auto& all = node.usage->holders;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const usage::HolderUsage& usage = *all[i];
    const bool again = i + 1 < all.size() && all[i + 1]->holder->id == usage.holder->id &&
                       all[i + 1]->device == usage.device;
    if (again)
      continue;  // an ended entry of the same lease and device: only the later one is shown
    LeaseLabels& texts = LabelsOf(usage.holder);
    auto [of_device, fresh] = texts.of_devices.try_emplace(usage.device);
    if (fresh) {
      const inventory::Entry* entry = node.inventory->Find(usage.device);
      LabelText labels;
      labels.Add("device", usage.device)
          .Add("index", entry == nullptr ? "" : NumberOf(*entry->facts));
      AddLease(*usage.holder, labels);
      of_device->second = labels.Take();
    }
    const bool first = holders.empty() || holders.back().usage->holder->id != usage.holder->id;
    holders.push_back({&usage, of_device->second, texts.of_lease, texts.own, first});
  }
  std::erase_if(leases, [this](const auto& one) { return one.second.page != pages; });
  return holders;
}

std::vector<ProcessRow> MetricsRenderer::State::ProcessesOf(const std::vector<DeviceRow>& devices,
                                                            const std::vector<Holder>& holders,
                                                            const ledger::Snapshot& ledger,
                                                            Detail detail) const {
  std::vector<ProcessRow> processes;
  std::map<std::string_view, std::vector<const usage::HolderUsage*>> by_device;
  for (const Holder& holder : holders)
    if (!holder.usage->until) by_device[holder.usage->device].push_back(holder.usage);
  for (const DeviceRow& device : devices) {
    const device::Facts& facts = *device.entry->facts;
    std::set<pid_t> reported;
    for (const usage::HolderUsage* usage : by_device[facts.id])
      for (const usage::ProcessUsage& process : usage->processes)
        if (reported.insert(process.pid).second)
          processes.push_back(ProcessOf(process, facts, usage->holder.get(), detail));
    const auto outside = ledger.outside.find(facts.id);
    if (outside == ledger.outside.end()) continue;
    for (const ledger::Process& process : outside->second)
      if (reported.insert(process.pid).second)
        processes.push_back(ProcessOf(OutsideProcess(process, device), facts, nullptr, detail));
  }
  return detail == Detail::kProcesses ? processes : SumByLabels(processes);
}

void MetricsRenderer::State::AddAll(const Snapshots& node, const PageInputs& inputs, Detail detail,
                                    Exposition& page) {
  const std::vector<DeviceRow> devices = DevicesOf(node, inputs.now);
  const std::vector<Holder> holders = HoldersOf(node);
  AddDevices(devices, *node.inventory, page);
  AddTelemetry(devices, measured, page);
  AddHealth(devices, inputs, page);
  AddSharing(devices, node, page);
  AddHolders(devices, held, holders, *node.ledger, page);
  if (config.processes) AddProcesses(ProcessesOf(devices, holders, *node.ledger, detail), page);
  AddCollection(devices, node, dialect_of, inputs.now, page);
  if (node.samples) {
    std::vector<Unavailable> unavailable;
    for (const auto& [vendor, families] : exporters)
      for (Unavailable& one : families.UnavailableNow(*node.inventory, *node.samples))
        unavailable.push_back(std::move(one));
    AddUnavailable(unavailable, page);
  }
  AddAgent(*node.inventory, *node.ledger, inputs, page);
  for (const NodeValue& one : inputs.node_values)
    if (page.Family(one.name, Exposition::Type::kGauge, one.help))
      page.Add(LabelText().Add("node", node_name).text(), one.value);
  for (auto& [vendor, families] : exporters) families.Add(devices, node, inputs, page);
}

MetricsRenderer::MetricsRenderer(device::DialectOf dialect_of)
    : state_(std::make_unique<State>(std::move(dialect_of))) {}
MetricsRenderer::~MetricsRenderer() = default;

void MetricsRenderer::Configure(const api::TelemetryConfig& config, const std::string& node) {
  state_->exporters.clear();  // they refer to the configuration
  state_->config = config;
  state_->node_name = node;
  state_->stale = true;
}

void MetricsRenderer::AddSample(const sample::Snapshot& samples, base::TimePoint now) {
  for (const auto& [id, sample] : samples.devices) {
    ExporterFamilies* exporter = state_->ExporterOf(sample->vendor);
    if (exporter != nullptr) exporter->AddSample(*sample, now);
  }
}

std::string MetricsRenderer::Make(const Snapshots& node, const PageInputs& inputs,
                                  PageFormat format, Detail detail) {
  State& state = *state_;
  ++state.pages;
  state.Refresh(node);
  std::size_t& bytes = state.bytes[format == PageFormat::kText ? 0 : 1];
  Exposition page(format,
                  [&state](std::string_view family) { return IsShown(state.config, family); });
  page.Reserve(bytes + bytes / 8);
  state.AddAll(node, inputs, detail, page);
  std::string text = page.Take();
  bytes = text.size();
  return text;
}

}  // namespace penstock::node::metrics
