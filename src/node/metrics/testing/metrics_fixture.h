// Test data for metrics pages: a node with three devices of an invented vendor that has an exporter
// of its own, and their holders.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/core/strings.h"
#include "device/testing/acme.h"
#include "node/metrics/metrics.h"

namespace penstock::node::metrics::fixture {

using namespace std::chrono_literals;

inline constexpr device::Quantity kQuantities[] = {
    {.key = "utilization",
     .unit = device::Unit::kPercent,
     .family = "accelerator_utilization_ratio"},
    {.key = "memory.used",
     .unit = device::Unit::kMebibytes,
     .family = "accelerator_memory_used_bytes"},
    {.key = "power", .unit = device::Unit::kMilliwatts, .family = "accelerator_power_watts"},
    {.key = "energy",
     .unit = device::Unit::kMillijoules,
     .counter = true,
     .family = "accelerator_energy_joules_total"},
    {.key = "clock.sm",
     .unit = device::Unit::kMegahertz,
     .family = "accelerator_clock_hertz",
     .labels = R"(clock="sm")",
     .has = "Anvils"},
    {.key = "clock.max.sm",
     .unit = device::Unit::kMegahertz,
     .pace = device::Pace::kOnce,
     .family = "accelerator_clock_max_hertz",
     .labels = R"(clock="sm")"},
    {.key = "reasons", .family = ""},
    {.key = "link.sent",
     .unit = device::Unit::kKibibytes,
     .counter = true,
     .per_link = true,
     .family = "accelerator_fabric_link_transmit_bytes_total"},
    {.key = "link.errors",
     .counter = true,
     .per_link = true,
     .family = "accelerator_fabric_link_errors_total",
     .labels = R"(error="crc_flit")"},
    {.key = "sent",
     .unit = device::Unit::kKibibytes,
     .counter = true,
     .per_link = true,
     .family = "accelerator_fabric_transmit_bytes_total"},
};
enum Id : device::QuantityId {
  kUtilization,
  kMemory,
  kPower,
  kEnergy,
  kClock,
  kMaxClock,
  kReasons,
  kLinkSent,
  kLinkErrors,
  kSent
};

/// An exporter in the style of dcgm-exporter, with or without a file of settings.
class AcmeExporter final : public device::Exporter {
 public:
  explicit AcmeExporter(bool settings = false) : settings_(settings) {}

  std::span<const device::ExporterField> fields() const override {
    using device::FieldSource;
    static constexpr device::ExporterField kFields[] = {
        {.name = "ACME_DRIVER_VERSION",
         .new_name = "ACME_SYSTEM_DRIVER",
         .number = 1,
         .source = FieldSource::kFact},
        {.name = "ACME_SERIAL", .number = 2, .source = FieldSource::kFact},
        {.name = "ACME_CLOCK",
         .new_name = "ACME_CLOCK_HERTZ",
         .number = 100,
         .from = "clock.sm",
         .new_divisor = 1e-6},
        {.name = "ACME_POWER",
         .number = 155,
         .from = "power",
         .divisor = 1000,
         .new_divisor = 1000,
         .real = true,
         .new_real = true},
        {.name = "ACME_UTIL",
         .new_name = "ACME_UTIL_RATIO",
         .number = 203,
         .from = "utilization",
         .new_divisor = 100,
         .new_real = true},
        {.name = "ACME_XID", .number = 230, .source = FieldSource::kLastError, .from = "xid"},
        {.name = "ACME_MEMORY",
         .new_name = "ACME_MEMORY_BYTES",
         .number = 252,
         .from = "memory.used",
         .new_divisor = 1.0 / 1048576},
        {.name = "ACME_LINK_SENT", .number = 440, .from = "link.sent", .link = true},
        {.name = "ACME_LINK_1", .number = 441, .from = "link.sent", .one_link = 1},
        {.name = "ACME_SECRET",
         .number = 500,
         .source = FieldSource::kUnavailable,
         .from = "the vendor keeps it to itself"},
        {.name = "ACME_XID_COUNT",
         .number = 9001,
         .source = FieldSource::kErrorsInWindow,
         .from = "xid"},
        {.name = "ACME_REASON_COUNT",
         .number = 9002,
         .source = FieldSource::kReasonsInWindow,
         .from = "reasons"},
        {.name = "ACME_HEALTH", .number = 9003, .source = FieldSource::kHealth},
        {.name = "ACME_PEERS", .number = 9004, .source = FieldSource::kPeers},
        {.name = "ACME_XID_TOTAL",
         .number = 9005,
         .source = FieldSource::kErrorsTotal,
         .from = "xid"},
        {.name = "ACME_REASON_TOTAL",
         .number = 9006,
         .source = FieldSource::kReasonsTotal,
         .from = "reasons"},
        {.name = "ACME_ENGINE", .number = 9007, .from = "link.sent", .index = true},
        {.name = "ACME_HEALTHY", .number = 9008, .source = FieldSource::kHealthy},
        {.name = "ACME_DEVICES", .number = 9009, .source = FieldSource::kDevices},
    };
    return kFields;
  }
  std::vector<device::CounterRow> DefaultRows() const override {
    std::vector<device::CounterRow> rows{{"ACME_DRIVER_VERSION", "label", "Driver."}};
    for (const char* field : {"ACME_UTIL", "ACME_MEMORY", "ACME_CLOCK", "ACME_XID"})
      rows.push_back({field, "gauge", std::string(field) + " help. "});
    rows.push_back({"ACME_LINK_SENT", "counter", "Sent."});
    return rows;
  }
  std::string Fact(const device::ExporterField& field, const device::Facts& device,
                   const device::Driver* driver) const override {
    return field.number == 2 ? device.serial : driver != nullptr ? driver->version : "";
  }
  device::ExporterLabels LabelsOf(const device::Facts& device, const device::Facts* whole, int link,
                                  const device::ExporterStyle& style) const override {
    const device::Facts& named = whole != nullptr ? *whole : device;
    device::ExporterLabels labels;
    if (link >= 0) labels.emplace_back("nvlink", std::to_string(link));
    labels.emplace_back("gpu", std::to_string(named.index));
    labels.emplace_back(style.old_names ? "uuid" : "UUID", named.id);
    labels.emplace_back("modelName", named.model);
    if (!device.profile.empty()) labels.emplace_back("profile", device.profile);
    for (const std::string& label : style.hostname_labels)
      labels.emplace_back(label, style.hostname);
    return labels;
  }
  bool IsOfWhole(const device::ExporterField& field, const device::Facts&) const override {
    return field.number != 252;
  }
  device::ExporterLabels HolderLabels(const device::ExporterHolder& holder,
                                      const device::ExporterStyle& style) const override {
    device::ExporterLabels labels{{style.old_names ? "pod_name" : "pod", std::string(holder.pod)},
                                  {"namespace", std::string(holder.namespace_name)},
                                  {"container", std::string(holder.container)},
                                  {"pod_uid", std::string(holder.pod_uid)},
                                  {"vgpu", std::string(holder.share)},
                                  {"job", std::string(holder.job)}};
    std::erase_if(labels, [](const auto& label) { return label.second.empty(); });
    return labels;
  }
  std::string JobFile(const device::Facts& device, const device::Facts* whole) const override {
    return whole == nullptr ? std::to_string(device.index)
                            : std::to_string(whole->index) + "." + device.profile;
  }
  device::ExporterLabels ErrorLabels(std::int64_t code) const override {
    return {{"err_code", std::to_string(code)},
            {"err_msg", code == 79 ? "off the \"bus\"" : "No Error"}};
  }
  device::ExporterLabels PartLabels(const device::ExporterField&, std::string_view part,
                                    base::Duration window, std::int64_t) const override {
    device::ExporterLabels labels;
    if (window > 0s) labels.emplace_back("window_size_in_ms", std::to_string(window / 1ms));
    if (!part.empty()) labels.emplace_back("part", std::string(part));
    return labels;
  }
  std::span<const std::string_view> watches() const override {
    static constexpr std::string_view kWatches[] = {"LINK", "MEM"};
    return kWatches;
  }
  device::HealthWatch WatchOf(std::string_view kind, std::int64_t code) const override {
    if (kind != "xid") return {};
    return code == 74   ? device::HealthWatch{"LINK", "LINK_DOWN"}
           : code == 63 ? device::HealthWatch{"MEM", ""}
                        : device::HealthWatch{};
  }
  std::string_view UnknownError() const override { return "UNKNOWN"; }
  device::ExporterLabels WatchLabels(const device::HealthWatch& watch) const override {
    return {{"error", watch.error.empty() ? "OK" : std::string(watch.error)},
            {"watch", std::string(watch.watch)}};
  }
  std::int64_t PeerValue(const device::Link& link) const override {
    return link.fabric_lanes > 0 ? 0 : 5;
  }
  std::span<const std::pair<std::uint64_t, std::string_view>> reasons() const override {
    static constexpr std::pair<std::uint64_t, std::string_view> kBits[] = {{1, "idle"},
                                                                           {4, "power_cap"}};
    return kBits;
  }
  std::string_view NewLabel(std::string_view label) const override {
    return label == "ACME_DRIVER_VERSION" ? "ACME_SYSTEM_DRIVER" : label;
  }
  device::ExporterLabels NodeLabels(const device::ExporterStyle& style) const override {
    return {{"node", style.hostname}};
  }
  bool has_settings() const override { return settings_; }
  std::optional<int> NumberOf(const device::Facts& device) const override { return device.index; }

 private:
  const bool settings_;
};

class MeasuredAcme final : public device::testing::AcmeDialect {
 public:
  explicit MeasuredAcme(bool settings = false) : exporter_(settings) {}
  std::span<const device::Quantity> Quantities() const override { return kQuantities; }
  const device::Exporter* exporter() const override { return &exporter_; }

 private:
  AcmeExporter exporter_;
};

inline const device::Dialect* FindMeasuredAcme(std::string_view vendor) {
  static const MeasuredAcme acme;
  return vendor == "acme" ? &acme : nullptr;
}

inline const device::Dialect* FindAcmeWithSettings(std::string_view vendor) {
  static const MeasuredAcme acme(true);
  return vendor == "acme" ? &acme : nullptr;
}

inline constexpr base::WallTime kNow{1700000000500ms};

inline inventory::Entry Entry(int index, device::HealthState state) {
  device::Facts facts = device::testing::AcmeDevice(index, 4);
  facts.memory = base::Mebibytes(40960);
  facts.architecture = "anvil";
  facts.serial = std::to_string(1000 + index);
  return {.facts = std::make_shared<const device::Facts>(facts),
          .health = {.state = state},
          .reading = std::make_shared<const device::Reading>(),
          .read_at = kNow};
}

inline std::shared_ptr<const sample::DeviceSample> Sample(const std::string& device,
                                                          std::uint64_t utilization,
                                                          base::WallTime at = kNow) {
  sample::DeviceSample sample{
      .device = device, .vendor = "acme", .at = at, .collections = 7, .failures = 1, .took = 12ms};
  const auto add = [&](device::QuantityId id, device::Number number, int link = -1) {
    sample.values.push_back({{id, link, number}, at});
  };
  add(kUtilization, utilization);
  add(kMemory, std::uint64_t{20480});
  add(kPower, std::uint64_t{61234});
  add(kEnergy, std::uint64_t{123456789});
  add(kClock, std::uint64_t{1410});
  sample.values.push_back({{kMaxClock, -1, std::uint64_t{1980}}, at - 2h});
  add(kReasons, std::uint64_t{5});
  add(kLinkSent, std::uint64_t{10}, 0);
  add(kLinkSent, std::uint64_t{20}, 1);
  add(kLinkErrors, std::uint64_t{3}, 1);
  add(kSent, std::uint64_t{30});
  add(kSent, std::uint64_t{10}, 0);
  sample.processes = {{.pid = 11, .memory = base::Mebibytes(512), .compute = 25.0},
                      {.pid = 99, .memory = base::Mebibytes(64)}};
  sample.processes_at = at;
  sample.unsupported = {};
  return std::make_shared<const sample::DeviceSample>(std::move(sample));
}

inline ledger::Lease Pod(const std::string& id, const std::string& name, const std::string& slot,
                         const std::string& device) {
  ledger::Lease lease{.id = id,
                      .allocator = "kubelet",
                      .slots = {{.id = slot, .device = device}},
                      .state = ledger::LeaseState::kHeld,
                      .since = kNow - 1h};
  if (slot != device) lease.slots[0].shape = {device::Sharing::kTimeSlicing, 4};
  lease.pod = name;
  lease.pod_uid = "uid-" + name;
  lease.namespace_name = "ml";
  lease.container = "main";
  lease.labels = {{"app.kubernetes.io/name", "train"}, {"gpu", "mine"}, {"secret", "s"}};
  return lease;
}

inline std::shared_ptr<const usage::HolderUsage> Usage(const ledger::Lease& lease,
                                                       double utilization) {
  usage::HolderUsage holder{.holder = std::make_shared<const ledger::Lease>(lease),
                            .device = lease.slots[0].device,
                            .slot = lease.slots[0].id,
                            .since = lease.since,
                            .seconds = 3600};
  holder.processes = {{.pid = 11 + lease.id.back() - '0',
                       .user = "root",
                       .command = "python",
                       .memory = base::Mebibytes(512),
                       .compute = utilization}};
  holder.memory_used = base::Mebibytes(512);
  holder.memory_peak = base::Mebibytes(600);
  holder.utilization = utilization;
  holder.busy_seconds = 1800.5;
  holder.energy_joules = 250000;
  holder.measured_seconds = 3590;
  holder.cpu_seconds = 720.25;
  holder.host_memory_peak = base::Mebibytes(2048);
  holder.last_busy = kNow - 5s;
  return std::make_shared<const usage::HolderUsage>(std::move(holder));
}

/// G0 is held by a pod, G1 is shared by two pods, G2 is gone.
struct Node {
  inventory::Snapshot inventory;
  ledger::Snapshot ledger;
  sample::Snapshot samples;
  usage::Snapshot usage;
  attribute::DeviceJobs jobs;

  Node() {
    inventory.facts_generation = 1;
    inventory.vendors = {
        {.vendor = "acme",
         .driver = std::make_shared<const device::Driver>(device::testing::AcmeDriver())},
        {.vendor = "other", .reason = "no driver"}};
    inventory.devices = {Entry(0, device::HealthState::kHealthy),
                         Entry(1, device::HealthState::kUnhealthy),
                         Entry(2, device::HealthState::kGone)};
    ledger.generation = 1;
    ledger.leases = {Pod("k-0", "train-0", "G0", "G0"), Pod("k-1", "a", "G1::1", "G1"),
                     Pod("k-2", "b", "G1::2", "G1")};
    ledger.outside["G1"] = {{.pid = 99, .start = 1, .user = "eve", .command = "mine\"r"}};
    samples.interval = 10s;
    samples.devices = {{"G0", Sample("G0", 37)}, {"G1", Sample("G1", 90)}};
    samples.rounds = {{"acme", {.count = 7, .at = kNow, .took = 40ms}}};
    samples.rejected = {{"G0", "temperature", "too-large", 2}};
    usage.holders = {Usage(ledger.leases[0], 0.37), Usage(ledger.leases[1], 0.29),
                     Usage(ledger.leases[2], 0.6)};
    usage.records = {.written = 4, .pending = 1};
  }

  void EditLeases(const std::function<void(ledger::Lease&)>& edit) {
    for (std::size_t i = 0; i < ledger.leases.size(); ++i) edit(ledger.leases.Edit(i));
  }

  Snapshots Get() const {
    return {.inventory = std::make_shared<const inventory::Snapshot>(inventory),
            .ledger = std::make_shared<const ledger::Snapshot>(ledger),
            .samples = std::make_shared<const sample::Snapshot>(samples),
            .usage = std::make_shared<const usage::Snapshot>(usage),
            .offers = nullptr,
            .servers = nullptr,
            .jobs = std::make_shared<const attribute::DeviceJobs>(jobs)};
  }
};

inline PageInputs PlainFigures() { return {.version = "0.1.0", .now = kNow}; }

/// Renders a page of this node.
inline std::string PageOf(const Node& node, const api::TelemetryConfig& config = {},
                          const PageInputs& inputs = PlainFigures(),
                          PageFormat format = PageFormat::kText,
                          Detail detail = Detail::kProcesses) {
  MetricsRenderer renderer(FindMeasuredAcme);
  renderer.Configure(config, "node-1");
  return renderer.Make(node.Get(), inputs, format, detail);
}

/// The series of a family, each with its value.
inline std::vector<std::string> SeriesOf(const std::string& page, const std::string& family) {
  std::vector<std::string> series;
  for (const std::string& line : base::Split(page, '\n'))
    if (line.starts_with(family + "{") || line.starts_with(family + " ")) series.push_back(line);
  return series;
}

/// The series that occur more than once on the page, whatever their values.
inline std::vector<std::string> Repeated(const std::string& page) {
  std::set<std::string> seen;
  std::vector<std::string> repeated;
  for (const std::string& line : base::Split(page, '\n')) {
    if (line.empty()) continue;
    const std::string series = line.starts_with("# ") ? line.substr(0, line.find(' ', 7))
                                                      : line.substr(0, line.rfind(' '));
    if (!seen.insert(series).second) repeated.push_back(series);
  }
  return repeated;
}

}  // namespace penstock::node::metrics::fixture
