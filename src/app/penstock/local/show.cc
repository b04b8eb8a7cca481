#include "app/penstock/local/show.h"

#include <algorithm>
#include <map>

#include "api/allocators.h"
#include "base/core/quantity.h"
#include "base/core/strings.h"

namespace penstock::app {

namespace {

using api::DeviceReport;
using api::HolderReport;
using api::Report;

/// Of a device or a holder.
std::string IndexOf(const auto& one) {
  if (!one.number.empty()) return Printable(one.number);
  return one.index < 0 ? "-" : std::to_string(one.index);
}

std::string ModelOf(const DeviceReport& device) {
  const std::string model = app::ModelOf(device.vendor, device.model);
  return device.profile.empty() ? model : model + " " + device.profile;
}

std::string MemoryOf(const DeviceReport& device) {
  return device.memory_bytes == 0 ? "" : base::FormatBytes({device.memory_bytes});
}

std::string NumaOf(const DeviceReport& device) {
  return device.numa ? std::to_string(*device.numa) : "";
}

/// Joins a message into one line: problems of a file come with one line each.
std::string OneLine(const std::string& text) {
  std::vector<std::string> lines;
  for (const std::string& line : base::Split(text, '\n'))
    if (const std::string_view trimmed = base::Trim(line); !trimmed.empty())
      lines.emplace_back(trimmed);
  return base::Join(lines, "; ");
}

Color ColorOf(std::string_view health) {
  if (health == "healthy") return Color::kGreen;
  return health == "unhealthy" ? Color::kRed : Color::kYellow;
}

/// Formats a holder for one cell: "ml/train-0/main", "ann: python train.py".
std::string NameOf(const HolderReport& holder) {
  if (holder.kind == "pod") {
    const std::string pod =
        holder.namespace_name.empty() ? holder.pod : holder.namespace_name + "/" + holder.pod;
    if (pod.empty()) return "a pod not known yet";
    return holder.container.empty() ? pod : pod + "/" + holder.container;
  }
  if (holder.user.empty()) return holder.command;
  return holder.command.empty() ? holder.user : holder.user + ": " + holder.command;
}

Cell HolderCell(const DeviceReport& device) {
  const bool withheld = !device.withheld.empty() && device.resource.empty();
  if (device.holders.empty() && device.parts > 0) return Cell("divided", Color::kDim);
  if (device.holders.empty() && device.on_demand && withheld) return Cell("on demand", Color::kDim);
  if (device.holders.empty() && !withheld) {
    if (device.allocator.empty()) return Cell("not offered", Color::kDim);
    return Cell(device.health_state == "healthy" ? "free" : "-", Color::kDim);
  }
  if (device.holders.empty()) return Cell("withheld", Color::kYellow);
  const HolderReport& first = device.holders.front();
  const std::string name = NameOf(first);  // empty in a report that only counts holders
  std::string text = first.state == "outside" && !name.empty() ? "outside: " + name
                     : name.empty()                            ? first.state
                                                               : name;
  if (device.holders.size() > 1)
    text += " (and " + std::to_string(device.holders.size() - 1) + " more)";
  return {text, first.state == "outside" ? Color::kYellow : Color::kNone};
}

std::string SharesOf(const DeviceReport& device) {
  if (!api::IsShared(device) || device.resource.empty()) return "";
  return std::to_string(device.free) + "/" + std::to_string(device.shares) + " free";
}

/// Formats the enforced limits of each process: "13.3 GiB, 33 %".
std::string LimitsOf(const DeviceReport& device) {
  std::vector<std::string> limits;
  if (device.share_memory_bytes > 0)
    limits.push_back(base::FormatBytes({device.share_memory_bytes}));
  if (device.share_compute_percent > 0)
    limits.push_back(std::to_string(device.share_compute_percent) + " %");
  return base::Join(limits, ", ");
}

/// The share of the device that the holder has: 3 for "GPU-5a...::3"; empty for a whole device.
std::string ShareOf(const HolderReport& holder) {
  const std::string prefix = holder.device + "::";
  return holder.slot.starts_with(prefix) ? holder.slot.substr(prefix.size()) : "";
}

Color ColorOf(const HolderReport& holder) {
  if (holder.state == "outside" || !holder.note.empty()) return Color::kYellow;
  return holder.state == "graphics" ? Color::kDim : Color::kNone;
}

/// Formats process ids: "11,12,13,+4".
std::string PidsOf(const HolderReport& holder) {
  std::vector<std::string> pids;
  for (std::size_t i = 0; i < holder.pids.size() && i < 3; ++i)
    pids.push_back(std::to_string(holder.pids[i]));
  if (holder.pids.size() > 3) pids.push_back("+" + std::to_string(holder.pids.size() - 3));
  return base::Join(pids, ",");
}

/// The expected recovery: "; probation ends in 7s; relapsed 3 times".
std::string RecoveryNote(const DeviceReport& device, base::WallTime now) {
  std::string text;
  if (const base::WallTime until = base::ParseTime(device.probation_until);
      !device.probation_until.empty() && until != base::WallTime{})
    text += until > now
                ? "; probation ends in " +
                      base::FormatDuration(std::chrono::ceil<std::chrono::seconds>(until - now))
                : "; probation ends shortly";
  if (device.relapses > 0)
    text += "; relapsed " + std::to_string(device.relapses) +
            (device.relapses == 1 ? " time" : " times");
  return text;
}

std::string HealthNote(const DeviceReport& device, base::WallTime now) {
  if (device.health_state == "healthy")
    return device.relapses > 0 ? "healthy again" + RecoveryNote(device, now) : "";
  std::string note = device.health_state;
  const std::string age = AgeOf(device.health_since, now);
  if (!age.empty()) note += " for " + age;
  if (!device.health_reason.empty()) note += ": " + device.health_reason;
  return note + RecoveryNote(device, now);
}

std::string OfferNote(const DeviceReport& device) {
  if (!device.withheld.empty())
    return (device.resource.empty() ? "not offered: " : "not as configured: ") + device.withheld;
  return device.allocator.empty() && device.health_state == "healthy"
             ? "not offered: assigned to none, by the configuration or with penstock assign"
             : "";
}

/// One line for each device that has more details than fit into a row.
std::string Notes(const Report& report, const Style& style, base::WallTime now) {
  std::string text;
  for (const DeviceReport& device : report.devices) {
    std::vector<std::string> notes = {HealthNote(device, now), device.warning, OfferNote(device),
                                      device.replaced, device.telemetry_problem};
    std::erase(notes, "");
    if (!notes.empty())
      text += Paint(IndexOf(device) + ": " + Printable(base::Join(notes, "; ")),
                    ColorOf(device.health_state == "healthy" ? "unknown" : device.health_state),
                    style) +
              "\n";
  }
  return text.empty() ? "" : "\n" + text;
}

std::string Drivers(const Report& report) {
  std::string text;
  for (const api::VendorReport& vendor : report.vendors) {
    if (!vendor.driver.empty()) {
      text += Printable(vendor.vendor + " driver " + vendor.driver +
                        (vendor.runtime.empty() ? "" : " (API " + vendor.runtime + ")") +
                        (vendor.driver_source == "container"
                             ? " of the driver container in " + vendor.driver_root
                             : "") +
                        (vendor.reason.empty() ? "" : ": " + vendor.reason)) +
              "\n";
    } else {
      text += Printable("no " + vendor.vendor + " driver" +
                        (vendor.reason.empty() ? "" : ": " + vendor.reason)) +
              "\n";
    }
  }
  return text;
}

/// Explains the words in the column LIMITS: what they enforce, and for which processes not.
std::string WhatLimitsMean(const Report& report) {
  const auto has = [&report](std::string_view kind) {
    return std::any_of(
        report.allocators.begin(), report.allocators.end(),
        [kind](const api::AllocatorReport& allocator) { return allocator.enforcement == kind; });
  };
  std::string text;
  if (has("devices"))
    text +=
        "devices: a holder can open only its own devices; processes without an allocation are not "
        "restricted, but are shown as outside\n";
  if (has("visibility"))
    text +=
        "visibility: a holder gets the names of its own devices; nothing prevents it from opening "
        "others\n";
  return text;
}

std::string Allocators(const Report& report, bool wide, const Style& style) {
  std::vector<std::string> header = {"ALLOCATOR", "FOR", "STATE", "OFFERS"};
  if (wide) header.emplace_back("LIMITS");
  header.emplace_back("NOTE");
  Table table(header);
  for (const api::AllocatorReport& allocator : report.allocators) {
    std::vector<Cell> row = {
        allocator.name,
        std::string(api::FindAllocator(allocator.name).serves),
        {allocator.state, allocator.state == "open" ? Color::kGreen : Color::kYellow},
        base::Join(allocator.resources, ",")};
    if (wide) row.emplace_back(allocator.enforcement);
    row.emplace_back(allocator.reason);
    table.Add(std::move(row));
  }
  return table.empty() ? "" : "\n" + table.Render(style) + (wide ? WhatLimitsMean(report) : "");
}

/// The control groups whose processes cannot open devices that were not allocated to them, where
/// that is configured.
std::string ClosedTo(const Report& report, const Style& style) {
  std::string text;
  for (const api::AllocatorReport& allocator : report.allocators) {
    if (!allocator.closed_cgroups.empty())
      text += Printable("closed to " + base::Join(allocator.closed_cgroups, ", ") +
                        ": processes there can open only devices that were allocated to them") +
              "\n";
    if (!allocator.closed_problem.empty())
      text += Paint("not closed as configured: " + Printable(allocator.closed_problem),
                    Color::kYellow, style) +
              "\n";
  }
  return text;
}

/// How containers receive allocated devices, where the allocator determines that.
std::string DeviceLists(const Report& report) {
  std::string text;
  for (const api::AllocatorReport& allocator : report.allocators)
    if (!allocator.device_list.empty())
      text +=
          Printable(
              "containers get devices by " + base::Join(allocator.device_list, ", ") +
              (allocator.device_list_reason.empty() ? "" : ": " + allocator.device_list_reason)) +
          "\n";
  return text;
}

std::string Servers(const Report& report, const Style& style) {
  Table table({"SERVER", "KIND", "STATE", "CLIENTS", "DEVICES", "NOTE"});
  for (const api::ServerReport& server : report.servers) {
    std::vector<std::string> indices;
    for (const DeviceReport& device : report.devices)
      if (std::find(server.devices.begin(), server.devices.end(), device.id) !=
          server.devices.end())
        indices.push_back(IndexOf(device));
    table.Add({server.set,
               server.kind,
               {server.state, server.state == "ready"     ? Color::kGreen
                              : server.state == "waiting" ? Color::kYellow
                                                          : Color::kDim},
               std::to_string(server.clients),
               base::Join(indices, ","),
               server.reason});
  }
  return table.empty() ? "" : "\n" + table.Render(style);
}

bool NoDriver(const Report& report) {
  return std::all_of(report.vendors.begin(), report.vendors.end(),
                     [](const api::VendorReport& vendor) { return vendor.driver.empty(); });
}

std::string Conditions(const Report& report, bool wide, const Style& style, base::WallTime now) {
  Table table({"CONDITION", "STATUS", "FOR", "REASON", "MESSAGE"});
  for (const api::ConditionReport& condition : report.conditions)
    if (wide || !condition.status)
      table.Add(
          {condition.type,
           {condition.status ? "true" : "false", condition.status ? Color::kGreen : Color::kYellow},
           AgeOf(condition.since, now),
           condition.reason,
           OneLine(condition.message)});
  return table.empty() ? "" : "\n" + table.Render(style);
}

}  // namespace

std::string ModelOf(std::string_view vendor, const std::string& model) {
  const std::size_t length = vendor.size();
  const bool named = length > 0 && model.size() > length + 1 && model[length] == ' ' &&
                     base::ToLower(model.substr(0, length)) == vendor;
  return named ? model.substr(length + 1) : model;
}

std::string AgeOf(const std::string& since, base::WallTime now) {
  const base::WallTime then = base::ParseTime(since);
  if (since.empty() || then == base::WallTime{} || now < then) return "";
  return base::FormatDuration(now - then);
}

std::string ShowConfiguration(const Report& report, bool wide, const Style& style,
                              base::WallTime now) {
  const api::ConfigurationReport& config = report.configuration;
  std::string text;
  if (!config.origin.empty() && (wide || config.origin != "defaults" || !config.problem.empty())) {
    const std::string age = AgeOf(config.since, now);
    text += "\nconfiguration: " + Printable(config.origin) +
            (age.empty() ? "" : ", in force for " + age) + "\n";
  }
  if (const api::LayoutReport& layout = report.layout; !layout.name.empty())
    text += "\nlayout: " + Printable(layout.name) + ", " + Printable(layout.state) + "\n";
  if (!config.problem.empty()) {
    text +=
        Paint("not in force: " + Printable(config.problem_origin), Color::kYellow, style) + "\n";
    for (const std::string& line : base::Split(config.problem, '\n'))
      if (!line.empty()) text += "  " + Printable(line) + "\n";
  }
  if (!config.waiting.empty())
    text += Paint("waiting: " + Printable(config.waiting), Color::kYellow, style) + "\n";
  for (const std::string& one : config.not_yet)
    text += Paint("not supported yet: " + Printable(one), Color::kYellow, style) + "\n";
  for (const std::string& one : config.remarks) text += "remark: " + Printable(one) + "\n";
  return text + Conditions(report, wide, style, now);
}

std::string ShowUnavailable(const std::vector<api::UnavailableMetric>& metrics,
                            std::string_view indent) {
  std::vector<std::string> groups;  // in the order of their first metrics
  std::map<std::string, std::vector<std::string>> names;
  for (const api::UnavailableMetric& one : metrics) {
    const std::string group =
        (one.models.empty() ? "" : "on " + base::Join(one.models, ", ") + ": ") + one.reason;
    if (names[group].empty()) groups.push_back(group);
    names[group].push_back(one.name);
  }
  std::string text;
  for (const std::string& group : groups)
    text += std::string(indent) + "no value for " + Printable(base::Join(names[group], ", ")) +
            " " + Printable(group.starts_with("on ") ? group : "here: " + group) + "\n";
  return text;
}

std::string ShowFound(const Report& report, const Style& style, base::WallTime now) {
  Table table({"INDEX", "MODEL", "MEMORY", "UUID", "PCI", "NUMA", "HEALTH"});
  for (const DeviceReport& device : report.devices)
    table.Add({IndexOf(device),
               ModelOf(device),
               MemoryOf(device),
               device.id,
               device.pci,
               NumaOf(device),
               {device.health_state, ColorOf(device.health_state)}});
  std::string text = table.empty() ? "" : table.Render(style) + Notes(report, style, now) + "\n";
  text += Drivers(report);
  if (report.devices.empty() && NoDriver(report)) {
    text +=
        "The agent keeps looking for it. To try Penstock on a simulated machine: penstock up "
        "--simulate dgx-a100\n";
  } else if (report.devices.empty()) {
    text += "no devices found; the agent keeps looking for them\n";
  }
  return text + Allocators(report, false, style);
}

std::string ShowStatus(const Report& report, bool wide, const Style& style, base::WallTime now) {
  const bool shared = std::any_of(report.devices.begin(), report.devices.end(), api::IsShared);
  const bool places = wide || !shared;  // omitted where a terminal has no room for it
  std::vector<std::string> header = {"INDEX", "MODEL", "MEMORY"};
  if (places) header.insert(header.end(), {"PCI", "NUMA"});
  header.insert(header.end(), {"HEALTH", "ALLOCATOR"});
  if (shared) header.insert(header.end(), {"SHARES", "ISOLATION"});
  if (wide) header.insert(header.end(), {"SINCE", "UUID", "RESOURCE"});
  if (wide && shared) header.insert(header.end(), {"SHARING", "PER PROCESS"});
  header.emplace_back("HOLDER");
  Table table(header);
  for (const DeviceReport& device : report.devices) {
    std::vector<Cell> row = {IndexOf(device), ModelOf(device), MemoryOf(device)};
    if (places) row.insert(row.end(), {device.pci, NumaOf(device)});
    row.insert(row.end(), {{device.health_state, ColorOf(device.health_state)}, device.allocator});
    if (shared) row.insert(row.end(), {SharesOf(device), device.isolation});
    if (wide) row.insert(row.end(), {AgeOf(device.health_since, now), device.id, device.resource});
    if (wide && shared) row.insert(row.end(), {device.sharing, LimitsOf(device)});
    row.push_back(HolderCell(device));
    table.Add(std::move(row));
  }
  std::string text =
      table.empty() ? "no devices\n" : table.Render(style) + Notes(report, style, now);
  text += "\n" + Drivers(report) + Allocators(report, wide, style) + ClosedTo(report, style) +
          DeviceLists(report) + Servers(report, style) +
          ShowConfiguration(report, wide, style, now);
  if (const std::string unavailable = ShowUnavailable(report.unavailable_metrics, "  ");
      !unavailable.empty())
    text += "\nmetrics:\n" + unavailable;
  const std::string process = report.agent_pid > 0 ? ", process " + std::to_string(report.agent_pid)
                                                   : "";  // a report of another machine has no
                                                          // process
  if (wide)
    text += "\nnode " + Printable(report.node) + ", agent " + Printable(report.version) + process +
            "\n";
  return text;
}

std::string ShowHolders(const Report& report, bool wide, const Style& style, base::WallTime now) {
  std::vector<const HolderReport*> holders;
  for (const DeviceReport& device : report.devices)
    for (const auto* list : {&device.holders, &device.graphics})
      for (const HolderReport& one : *list) holders.push_back(&one);
  for (const HolderReport& one : report.removed) holders.push_back(&one);
  const bool shares = std::any_of(holders.begin(), holders.end(),
                                  [](const HolderReport* one) { return !ShareOf(*one).empty(); });
  const bool notes = std::any_of(holders.begin(), holders.end(),
                                 [](const HolderReport* one) { return !one->note.empty(); });
  std::vector<std::string> header = {"INDEX"};
  if (shares) header.emplace_back("SHARE");
  if (wide) header.emplace_back("SLOT");
  header.insert(header.end(), {"STATE", "AGE", "LIMITS", "PIDS", "USER", "HOLDER"});
  if (notes) header.emplace_back("NOTE");
  Table table(header);
  for (const HolderReport* holder : holders) {
    const Color color = ColorOf(*holder);
    std::vector<Cell> row = {IndexOf(*holder)};
    if (shares) row.emplace_back(ShareOf(*holder));
    if (wide) row.emplace_back(holder->slot);
    row.insert(row.end(), {{holder->state, color},
                           AgeOf(holder->since, now),
                           holder->enforcement,
                           PidsOf(*holder),
                           holder->user});
    row.emplace_back(holder->kind == "pod" ? NameOf(*holder) : holder->command, color);
    if (notes) row.emplace_back(holder->note, color);
    table.Add(std::move(row));
  }
  return table.empty() ? "no devices are held\n" : table.Render(style);
}

std::string ShowAllocators(const Report& report, const Style& style) {
  Table table({"INDEX", "MODEL", "ALLOCATOR", "RESOURCE", "SHARES", "HOLDER", "NOTE"});
  for (const DeviceReport& device : report.devices)
    table.Add({IndexOf(device), ModelOf(device), api::ToWord(device.allocator), device.resource,
               SharesOf(device), HolderCell(device),
               device.withheld.empty() && device.health_state != "healthy" ? device.health_state
                                                                           : device.withheld});
  return (table.empty() ? "no devices\n" : table.Render(style)) + Allocators(report, false, style);
}

}  // namespace penstock::app
