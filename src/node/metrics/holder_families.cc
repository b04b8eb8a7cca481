// Adds the holders of the devices and their usage.
#include <optional>

#include "node/metrics/families.h"

namespace penstock::node::metrics {
namespace {

using usage::HolderUsage;

/// Adds a family with one value per holder, where `value_of` returns one.
template <typename ValueOf>
void AddOfHolders(std::string_view family, const std::vector<Holder>& holders, ValueOf value_of,
                  Exposition& page) {
  if (!page.Family(family)) return;
  for (const Holder& holder : holders)
    if (const auto value = value_of(*holder.usage)) page.Add(holder.labels, *value);
}

/// Adds a family with one value per lease, however many devices it has.
template <typename ValueOf>
void AddOfLeases(std::string_view family, const std::vector<Holder>& holders, ValueOf value_of,
                 Exposition& page) {
  if (!page.Family(family)) return;
  for (const Holder& holder : holders)
    if (const auto value = holder.first ? value_of(*holder.usage) : std::nullopt)
      page.Add(holder.lease_labels, *value);
}

template <typename ValueOf>
void AddOfProcesses(std::string_view family, const std::vector<ProcessRow>& processes,
                    ValueOf value_of, Exposition& page) {
  if (!page.Family(family)) return;
  for (const ProcessRow& process : processes)
    if (const auto value = value_of(process.usage)) page.Add(process.labels, *value);
}

std::optional<std::uint64_t> CountOf(const std::optional<base::Bytes>& bytes) {
  return bytes ? std::optional(bytes->count) : std::nullopt;
}

void AddTimes(const std::vector<Holder>& holders, Exposition& page) {
  AddOfHolders(
      "accelerator_holder_start_timestamp_seconds", holders,
      [](const HolderUsage& usage) { return std::optional(UnixTime(usage.since)); }, page);
  AddOfHolders(
      "accelerator_holder_end_timestamp_seconds", holders,
      [](const HolderUsage& usage) {
        return usage.until ? std::optional(UnixTime(*usage.until)) : std::nullopt;
      },
      page);
  AddOfHolders(
      "accelerator_holder_last_busy_timestamp_seconds", holders,
      [](const HolderUsage& usage) { return std::optional(UnixTime(usage.last_busy)); }, page);
  AddOfHolders(
      "accelerator_holder_idle", holders,
      [](const HolderUsage& usage) {
        return usage.until ? std::nullopt : std::optional(std::uint64_t{usage.idle});
      },
      page);
}

void AddUse(const std::vector<Holder>& holders, Exposition& page) {
  AddOfHolders(
      "accelerator_holder_utilization_ratio", holders,
      [](const HolderUsage& usage) { return usage.until ? std::nullopt : usage.utilization; },
      page);
  AddOfHolders(
      "accelerator_holder_memory_used_bytes", holders,
      [](const HolderUsage& usage) {
        return usage.until ? std::nullopt : CountOf(usage.memory_used);
      },
      page);
  AddOfHolders(
      "accelerator_holder_memory_peak_bytes", holders,
      [](const HolderUsage& usage) { return std::optional(usage.memory_peak.count); }, page);
  AddOfHolders(
      "accelerator_holder_busy_seconds_total", holders,
      [](const HolderUsage& usage) { return std::optional(usage.busy_seconds); }, page);
  AddOfHolders(
      "accelerator_holder_measured_seconds_total", holders,
      [](const HolderUsage& usage) { return std::optional(usage.measured_seconds); }, page);
  AddOfHolders(
      "accelerator_holder_energy_joules_total", holders,
      [](const HolderUsage& usage) { return std::optional(usage.energy_joules); }, page);
  AddOfLeases(
      "accelerator_holder_cpu_seconds_total", holders,
      [](const HolderUsage& usage) { return usage.cpu_seconds; }, page);
  AddOfLeases(
      "accelerator_holder_host_memory_peak_bytes", holders,
      [](const HolderUsage& usage) { return CountOf(usage.host_memory_peak); }, page);
}

}  // namespace

void AddHolders(const std::vector<DeviceRow>& devices, const std::vector<std::string>& held,
                const std::vector<Holder>& holders, const ledger::Snapshot& ledger,
                Exposition& page) {
  page.Family("accelerator_held");
  for (const std::string& labels : held) page.Add(labels, {}, true);
  page.Family("accelerator_holder_labels");
  for (const Holder& holder : holders)
    if (holder.first && !holder.usage->holder->labels.empty())
      page.Add(holder.lease_labels, holder.own_labels, true);
  AddTimes(holders, page);
  AddUse(holders, page);
  page.Family("accelerator_outside_processes");
  for (const DeviceRow& device : devices) {
    const auto found = ledger.outside.find(device.entry->facts->id);
    page.Add(device.labels,
             std::uint64_t{found == ledger.outside.end() ? 0 : found->second.size()});
  }
}

void AddProcesses(const std::vector<ProcessRow>& processes, Exposition& page) {
  AddOfProcesses(
      "accelerator_process_memory_used_bytes", processes,
      [](const auto& process) { return CountOf(process.memory); }, page);
  AddOfProcesses(
      "accelerator_process_utilization_ratio", processes,
      [](const auto& process) { return process.compute; }, page);
  AddOfProcesses(
      "accelerator_process_memory_copy_utilization_ratio", processes,
      [](const auto& process) { return process.memory_copy; }, page);
  AddOfProcesses(
      "accelerator_process_encoder_utilization_ratio", processes,
      [](const auto& process) { return process.encoder; }, page);
  AddOfProcesses(
      "accelerator_process_decoder_utilization_ratio", processes,
      [](const auto& process) { return process.decoder; }, page);
}

}  // namespace penstock::node::metrics
