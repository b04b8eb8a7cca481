// What people see of a report. Pure; programs read the JSON.
#include "app/penstock/show.h"

#include <algorithm>

#include "base/quantity.h"
#include "base/strings.h"

namespace penstock::app {

namespace {

using api::DeviceReport;
using api::HolderReport;
using api::Report;

std::string IndexOf(int index) { return index < 0 ? "-" : std::to_string(index); }

/// The model without its vendor's name in front, which would be the same in each row: "NVIDIA A100-SXM4-40GB" is "A100-SXM4-40GB".
std::string ModelOf(const DeviceReport& device) {
  const std::size_t length = device.vendor.size();
  const bool named = length > 0 && device.model.size() > length + 1 && device.model[length] == ' ' &&
                     base::ToLower(device.model.substr(0, length)) == device.vendor;
  return named ? device.model.substr(length + 1) : device.model;
}

std::string MemoryOf(const DeviceReport& device) { return device.memory_bytes == 0 ? "" : base::FormatBytes({device.memory_bytes}); }

std::string NumaOf(const DeviceReport& device) { return device.numa ? std::to_string(*device.numa) : ""; }

Color ColorOf(std::string_view health) {
  if (health == "healthy") return Color::kGreen;
  return health == "unhealthy" ? Color::kRed : Color::kYellow;
}

/// In one cell: "ml/train-0/main", "ann: python train.py".
std::string NameOf(const HolderReport& holder) {
  if (holder.kind == "pod") {
    const std::string pod = holder.namespace_name.empty() ? holder.pod : holder.namespace_name + "/" + holder.pod;
    if (pod.empty()) return "a pod not known yet";
    return holder.container.empty() ? pod : pod + "/" + holder.container;
  }
  if (holder.user.empty()) return holder.command;
  return holder.command.empty() ? holder.user : holder.user + ": " + holder.command;
}

Cell HolderCell(const DeviceReport& device) {
  if (device.holders.empty()) return device.withheld.empty() ? Cell("free", Color::kDim) : Cell("withheld", Color::kYellow);
  const HolderReport& first = device.holders.front();
  const std::string name = NameOf(first);  // none in a report that has counts of holders only
  std::string text = first.state == "outside" && !name.empty() ? "outside: " + name : name.empty() ? first.state : name;
  if (device.holders.size() > 1) text += " (and " + std::to_string(device.holders.size() - 1) + " more)";
  return {text, first.state == "outside" ? Color::kYellow : Color::kNone};
}

/// A line for each device about which there is more to say than fits into a row.
std::string Notes(const Report& report, const Style& style, base::WallTime now) {
  std::string text;
  for (const DeviceReport& device : report.devices) {
    std::string note;
    if (device.health_state != "healthy") {
      note = device.health_state;
      const std::string age = AgeOf(device.health_since, now);
      if (!age.empty()) note += " for " + age;
      if (!device.health_reason.empty()) note += ": " + device.health_reason;
    }
    if (!device.withheld.empty()) note += (note.empty() ? "" : "; ") + ("not offered: " + device.withheld);
    if (!note.empty())
      text += Paint(IndexOf(device.index) + ": " + Printable(note),
                    ColorOf(device.health_state == "healthy" ? "unknown" : device.health_state), style) +
              "\n";
  }
  return text.empty() ? "" : "\n" + text;
}

std::string Drivers(const Report& report) {
  std::string text;
  for (const api::VendorReport& vendor : report.vendors) {
    if (!vendor.driver.empty()) {
      text +=
          Printable(vendor.vendor + " driver " + vendor.driver + (vendor.runtime.empty() ? "" : " (API " + vendor.runtime + ")")) + "\n";
    } else {
      text += Printable("no " + vendor.vendor + " driver" + (vendor.reason.empty() ? "" : ": " + vendor.reason)) + "\n";
    }
  }
  return text;
}

std::string Doors(const Report& report, bool wide, const Style& style) {
  std::vector<std::string> header = {"DOOR", "STATE", "OFFERS"};
  if (wide) header.emplace_back("LIMITS");
  header.emplace_back("NOTE");
  Table table(header);
  for (const api::DoorReport& door : report.doors) {
    std::vector<Cell> row = {
        door.name, {door.state, door.state == "open" ? Color::kGreen : Color::kYellow}, base::Join(door.resources, ",")};
    if (wide) row.emplace_back(door.enforcement);
    row.emplace_back(door.reason);
    table.Add(std::move(row));
  }
  return table.empty() ? "" : "\n" + table.Render(style);
}

bool NoDriver(const Report& report) {
  return std::all_of(report.vendors.begin(), report.vendors.end(), [](const api::VendorReport& vendor) { return vendor.driver.empty(); });
}

std::string Conditions(const Report& report, bool wide, const Style& style, base::WallTime now) {
  Table table({"CONDITION", "STATUS", "FOR", "REASON", "MESSAGE"});
  for (const api::ConditionReport& condition : report.conditions)
    if (wide || !condition.status)
      table.Add({condition.type,
                 {condition.status ? "true" : "false", condition.status ? Color::kGreen : Color::kYellow},
                 AgeOf(condition.since, now),
                 condition.reason,
                 condition.message});
  return table.empty() ? "" : "\n" + table.Render(style);
}

}  // namespace

std::string AgeOf(const std::string& since, base::WallTime now) {
  const base::WallTime then = base::ParseTime(since);
  if (since.empty() || then == base::WallTime{} || now < then) return "";
  return base::FormatDuration(now - then);
}

std::string ShowConfiguration(const Report& report, bool wide, const Style& style, base::WallTime now) {
  const api::ConfigurationReport& config = report.configuration;
  std::string text;
  if (!config.origin.empty() && (wide || config.origin != "defaults" || !config.problem.empty())) {
    const std::string age = AgeOf(config.since, now);
    text += "\nconfiguration: " + Printable(config.origin) + (age.empty() ? "" : ", in force for " + age) + "\n";
  }
  if (!config.problem.empty()) {
    text += Paint("not in force: " + Printable(config.problem_origin), Color::kYellow, style) + "\n";
    for (const std::string& line : base::Split(config.problem, '\n'))
      if (!line.empty()) text += "  " + Printable(line) + "\n";
  }
  for (const std::string& one : config.not_yet) text += Paint("not yet: " + Printable(one), Color::kYellow, style) + "\n";
  return text + Conditions(report, wide, style, now);
}

std::string ShowFound(const Report& report, const Style& style, base::WallTime now) {
  Table table({"INDEX", "MODEL", "MEMORY", "UUID", "PCI", "NUMA", "HEALTH"});
  for (const DeviceReport& device : report.devices)
    table.Add({IndexOf(device.index),
               ModelOf(device),
               MemoryOf(device),
               device.id,
               device.pci,
               NumaOf(device),
               {device.health_state, ColorOf(device.health_state)}});
  std::string text = table.empty() ? "" : table.Render(style) + Notes(report, style, now) + "\n";
  text += Drivers(report);
  if (report.devices.empty() && NoDriver(report)) {
    text += "The agent keeps looking for it. To try Penstock on a simulated machine: penstock up --simulate dgx-a100\n";
  } else if (report.devices.empty()) {
    text += "no devices found; the agent keeps looking for them\n";
  }
  return text + Doors(report, false, style);
}

std::string ShowStatus(const Report& report, bool wide, const Style& style, base::WallTime now) {
  std::vector<std::string> header = {"INDEX", "MODEL", "MEMORY", "PCI", "NUMA", "HEALTH", "DOOR"};
  if (wide) header.insert(header.end(), {"SINCE", "UUID"});
  header.emplace_back("HOLDER");
  Table table(header);
  for (const DeviceReport& device : report.devices) {
    std::vector<Cell> row = {IndexOf(device.index),
                             ModelOf(device),
                             MemoryOf(device),
                             device.pci,
                             NumaOf(device),
                             {device.health_state, ColorOf(device.health_state)},
                             device.door};
    if (wide) row.insert(row.end(), {AgeOf(device.health_since, now), device.id});
    row.push_back(HolderCell(device));
    table.Add(std::move(row));
  }
  std::string text = table.empty() ? "no devices\n" : table.Render(style) + Notes(report, style, now);
  text += "\n" + Drivers(report) + Doors(report, wide, style) + ShowConfiguration(report, wide, style, now);
  const std::string process = report.agent_pid > 0 ? ", process " + std::to_string(report.agent_pid) : "";  // none from another machine
  if (wide) text += "\nnode " + Printable(report.node) + ", agent " + Printable(report.version) + process + "\n";
  return text;
}

std::string ShowHolders(const Report& report, const Style& style, base::WallTime now) {
  Table table({"INDEX", "STATE", "AGE", "LIMITS", "PIDS", "USER", "HOLDER"});
  for (const DeviceReport& device : report.devices) {
    for (const HolderReport& holder : device.holders) {
      std::vector<std::string> pids;
      for (std::size_t i = 0; i < holder.pids.size() && i < 3; ++i) pids.push_back(std::to_string(holder.pids[i]));
      if (holder.pids.size() > 3) pids.push_back("+" + std::to_string(holder.pids.size() - 3));
      const Color color = holder.state == "outside" ? Color::kYellow : Color::kNone;
      table.Add({IndexOf(holder.index),
                 {holder.state, color},
                 AgeOf(holder.since, now),
                 holder.enforcement,
                 base::Join(pids, ","),
                 holder.user,
                 {holder.kind == "pod" ? NameOf(holder) : holder.command, color}});
    }
  }
  return table.empty() ? "nobody holds a device\n" : table.Render(style);
}

}  // namespace penstock::app
