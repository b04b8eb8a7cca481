// Prints hours and kilowatt-hours for users; the agent reports base units.
#include "app/penstock/local/usage_show.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>

#include "base/core/quantity.h"
#include "base/core/strings.h"

namespace penstock::app {
namespace {

using api::IdleHolder;
using api::UsageSum;

constexpr double kSecondsPerHour = 3600, kJoulesPerKilowattHour = 3.6e6;

std::string Fixed(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

std::string Percent(const UsageSum& sum) {
  return sum.measured_seconds > 0 ? Fixed(100 * sum.busy_seconds / sum.measured_seconds, 1) + "%"
                                  : "-";
}

std::string Ratio(const UsageSum& sum) {
  return sum.measured_seconds > 0 ? Fixed(sum.busy_seconds / sum.measured_seconds, 4) : "";
}

/// Formats a key as a column title: "label:experiment" becomes "EXPERIMENT".
std::string Title(const std::string& key) {
  std::string title = key.substr(key.starts_with("label:") ? 6 : 0);
  std::transform(title.begin(), title.end(), title.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return title;
}

void AddSum(std::vector<Cell>& row, const UsageSum& sum) {
  row.insert(row.end(),
             {std::to_string(sum.holders), Fixed(sum.device_seconds / kSecondsPerHour, 2),
              Percent(sum), Fixed(sum.energy_joules / kJoulesPerKilowattHour, 3),
              Fixed(sum.cpu_seconds / kSecondsPerHour, 2)});
}

/// A CSV field, quoted where necessary.
std::string Field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string Line(const std::vector<std::string>& fields) {
  std::vector<std::string> quoted;
  for (const std::string& field : fields) quoted.push_back(Field(field));
  return base::Join(quoted, ",") + "\r\n";
}

std::string NumberOf(const IdleHolder& one, const char* unknown) {
  if (!one.number.empty()) return one.number;
  return one.index < 0 ? unknown : std::to_string(one.index);
}

std::string Who(const IdleHolder& one) {
  if (!one.pod.empty())
    return one.namespace_name + "/" + one.pod + (one.container.empty() ? "" : "/" + one.container);
  return one.user.empty() ? one.lease : one.user + ": " + one.command;
}

}  // namespace

std::string ShowUsage(const api::UsageReport& report, const Style& style) {
  std::vector<std::string> header;
  for (const std::string& key : report.query.by) header.push_back(Title(key));
  for (const char* title : {"HOLDERS", "GPU-HOURS", "UTIL", "ENERGY-KWH", "CPU-HOURS"})
    header.emplace_back(title);
  if (report.rows.empty()) return "no devices were held in this period\n";
  Table table(header);
  for (const api::UsageRow& row : report.rows) {
    std::vector<Cell> cells;
    for (const std::string& value : row.by) cells.emplace_back(value.empty() ? "-" : value);
    AddSum(cells, row.sum);
    table.Add(std::move(cells));
  }
  if (!report.query.by.empty() && report.rows.size() > 1) {
    std::vector<Cell> total = {{"total", Color::kBold}};
    for (std::size_t i = 1; i < report.query.by.size(); ++i) total.emplace_back("");
    AddSum(total, report.total);
    table.Add(std::move(total));
  }
  return table.Render(style);
}

std::string UsageCsv(const api::UsageReport& report) {
  std::vector<std::string> header = report.query.by;
  for (const char* name : {"holders", "gpu_hours", "utilization_ratio", "energy_kwh", "cpu_hours"})
    header.emplace_back(name);
  std::string text = Line(header);
  for (const api::UsageRow& row : report.rows) {
    std::vector<std::string> fields = row.by;
    fields.insert(fields.end(), {std::to_string(row.sum.holders),
                                 Fixed(row.sum.device_seconds / kSecondsPerHour, 6), Ratio(row.sum),
                                 Fixed(row.sum.energy_joules / kJoulesPerKilowattHour, 6),
                                 Fixed(row.sum.cpu_seconds / kSecondsPerHour, 6)});
    text += Line(fields);
  }
  return text;
}

std::string ShowIdle(const std::vector<IdleHolder>& idle, const Style& style, base::WallTime now) {
  if (idle.empty()) return "no held devices are idle\n";
  Table table({"INDEX", "SLOT", "IDLE", "HELD", "MEMORY", "HOLDER"});
  for (const IdleHolder& one : idle)
    table.Add({NumberOf(one, "?"),
               one.slot,
               {base::FormatDuration(std::chrono::duration_cast<base::Duration>(
                    std::chrono::duration<double>(one.idle_seconds))),
                Color::kYellow},
               base::FormatDuration(now - one.since),
               base::FormatBytes({one.memory_bytes}),
               Who(one)});
  return table.Render(style);
}

std::string IdleCsv(const std::vector<IdleHolder>& idle) {
  std::string text =
      Line({"device", "index", "slot", "namespace", "pod", "container", "user", "command", "lease",
            "since", "last_busy", "idle_seconds", "memory_bytes"});
  for (const IdleHolder& one : idle)
    text += Line({one.device, NumberOf(one, "-1"), one.slot, one.namespace_name, one.pod,
                  one.container, one.user, one.command, one.lease, base::FormatTime(one.since),
                  base::FormatTime(one.last_busy), Fixed(one.idle_seconds, 0),
                  std::to_string(one.memory_bytes)});
  return text;
}

}  // namespace penstock::app
