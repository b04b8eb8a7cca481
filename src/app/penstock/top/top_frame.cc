// Arranges head, devices, processes and foot in the terminal's lines.
#include "app/penstock/top/top_frame.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "app/penstock/top/top_devices.h"
#include "base/core/clock.h"
#include "base/core/strings.h"

namespace penstock::app {
namespace {

using api::SampledProcess;

constexpr std::size_t kLeastProcesses = 4;  // the devices leave room for these
constexpr std::size_t kWide = 120;          // columns from which on there is room for more
constexpr std::size_t kLeastColumns = 60;   // narrower terminals cut the lines

constexpr std::array kHelp{
    "penstock top: devices, and the processes on them",
    "",
    "  c  sort by compute       m  by memory      p  by process id",
    "  d  sort by device        u  by user        the same key again: reverse order",
    "  /  filter processes: text in any column; Enter keeps it, Esc clears it",
    "  Up, Down                 scroll processes",
    "  PageUp, PageDown         scroll devices",
    "  h, ?                     this help         q  quit",
    "",
    "Each device: temperature, power and its limit, clock; utilization and memory now and,",
    "below, over the last collections; whether it is free, or why it is unusable.",
    "GPU% is the process's part of the device's compute time as the driver reports it.",
    "",
    "Any key goes back.",
};

/// Formats the holder for one cell: "ml/train-0/main", "python train.py".
std::string HolderOf(const SampledProcess& process) {
  if (process.kind == "outside" || process.kind == "graphics")
    return process.command + " (" + process.kind + ")";
  if (process.kind != "pod")
    return process.command.empty() && process.kind.empty() ? "?" : process.command;
  const std::string pod =
      process.namespace_name.empty() ? process.pod : process.namespace_name + "/" + process.pod;
  if (pod.empty()) return "a pod not known yet";
  return process.container.empty() ? pod : pod + "/" + process.container;
}

std::string NumberOf(const SampledProcess& process) {
  if (!process.number.empty()) return Printable(process.number);
  return process.index < 0 ? "-" : std::to_string(process.index);
}

/// The place of a process's device: parts follow their device, "0:10" after "0:9".
std::tuple<std::int64_t, std::size_t, std::string> PlaceOf(const SampledProcess& process) {
  const std::string& number = process.number;
  return {number.empty() ? process.index
                         : base::ParseInt(number.substr(0, number.find(':'))).value_or(-1),
          number.size(), number};
}

std::optional<double> MemoryOf(const SampledProcess& process) {
  return process.memory_bytes ? std::optional(static_cast<double>(*process.memory_bytes))
                              : std::nullopt;
}

/// Orders known values before unknown ones, and larger values first.
bool More(std::optional<double> a, std::optional<double> b) {
  return a.value_or(-1) > b.value_or(-1);
}

bool Before(const SampledProcess& a, const SampledProcess& b, TopSort sort) {
  const auto order = [](const SampledProcess& one) {
    return std::tuple(PlaceOf(one), one.device, one.pid, one.lease);
  };
  switch (sort) {
    case TopSort::kCompute:
      if (a.compute != b.compute) return More(a.compute, b.compute);
      [[fallthrough]];
    case TopSort::kMemory:
      if (MemoryOf(a) != MemoryOf(b)) return More(MemoryOf(a), MemoryOf(b));
      return order(a) < order(b);
    case TopSort::kPid: return std::tuple(a.pid, PlaceOf(a)) < std::tuple(b.pid, PlaceOf(b));
    case TopSort::kDevice: return order(a) < order(b);
    case TopSort::kUser: return a.user != b.user ? a.user < b.user : order(a) < order(b);
  }
  return false;
}

bool Fits(const SampledProcess& process, const std::string& filter) {
  const std::array texts{process.user,
                         process.command,
                         process.pod,
                         process.namespace_name,
                         process.container,
                         process.kind,
                         "gpu " + NumberOf(process)};
  // Of ids only the start counts: a few digits are somewhere in most of them.
  const std::array ids{std::to_string(process.pid), process.lease, process.device};
  return std::any_of(texts.begin(), texts.end(),
                     [&](const std::string& text) {
                       return base::ToLower(text).find(filter) != std::string::npos;
                     }) ||
         std::any_of(ids.begin(), ids.end(),
                     [&](const std::string& id) { return base::ToLower(id).starts_with(filter); });
}

struct Column {
  const char* title;
  std::size_t width;  // 0: the remaining width
  std::optional<TopSort> sort;
  bool right = true;
};

std::vector<Column> ColumnsOf(std::size_t columns) {
  std::vector<Column> list{{"PID", 8, TopSort::kPid},
                           {"USER", 9, TopSort::kUser, false},
                           {"GPU", 4, TopSort::kDevice},
                           {"GPU%", 5, TopSort::kCompute},
                           {"MEM", 6, TopSort::kMemory}};
  if (columns < kWide) {
    list.push_back({"HOLDER", 0, std::nullopt, false});
    return list;
  }
  list.insert(list.end(), {{"COPY%", 6, std::nullopt},
                           {"ENC%", 5, std::nullopt},
                           {"DEC%", 5, std::nullopt},
                           {"KIND", 8, std::nullopt, false},
                           {"POD", columns * 30 / 100, std::nullopt, false},
                           {"COMMAND", 0, std::nullopt, false}});
  return list;
}

std::vector<std::string> CellsOf(const SampledProcess& process, std::size_t columns) {
  std::vector<std::string> cells{process.pid == 0 ? "-" : std::to_string(process.pid),
                                 process.user.empty() ? "-" : process.user, NumberOf(process),
                                 Percent(process.compute), ShortBytes(MemoryOf(process))};
  if (columns < kWide) {
    cells.push_back(HolderOf(process));
    return cells;
  }
  cells.insert(cells.end(), {Percent(process.memory_copy), Percent(process.encoder),
                             Percent(process.decoder), process.kind.empty() ? "-" : process.kind,
                             process.kind == "pod" ? HolderOf(process) : "-",
                             process.command.empty() ? "-" : process.command});
  return cells;
}

/// Separates columns by one blank; the last column gets the remaining width.
std::string Row(const std::vector<Column>& layout, const std::vector<std::string>& cells,
                std::size_t columns) {
  std::string row;
  std::size_t used = 0;
  for (std::size_t i = 0; i < layout.size(); ++i) {
    const std::size_t width =
        layout[i].width > 0 ? layout[i].width : columns - std::min(columns, used);
    row += Fit(cells[i], width, layout[i].right) + (layout[i].width > 0 ? " " : "");
    used += width + 1;
  }
  return row;
}

std::string ProcessHead(const TopView& view, std::size_t columns, const Pen& pen) {
  const auto layout = ColumnsOf(columns);
  std::vector<std::string> titles;
  for (const Column& column : layout) {
    const bool sorted = column.sort == view.sort;
    titles.push_back(std::string(column.title) + (!sorted ? "" : view.reverse ? "^" : "v"));
  }
  return Paint(Row(layout, titles, columns), Color::kBold, pen.style);
}

std::string ProcessLine(const SampledProcess& process, std::size_t columns, const Pen& pen) {
  const Color color = process.kind == "outside" ? Color::kYellow
                      : process.pid == 0        ? Color::kDim
                                                : Color::kNone;
  return Paint(Row(ColumnsOf(columns), CellsOf(process, columns), columns), color, pen.style);
}

std::string Head(const api::Samples& samples, const TopView& view, std::size_t columns,
                 const Pen& pen) {
  if (!view.problem.empty())
    return Paint(Fit("outdated: " + view.problem, columns), Color::kRed, pen.style);
  const std::string interval = base::FormatDuration(
      std::chrono::milliseconds(static_cast<std::int64_t>(samples.interval_seconds * 1000)));
  const std::string right = "every " + interval;
  const std::size_t room = columns - std::min(columns, Columns(right) + 1);
  return Paint(
      Fit(Printable(samples.node) + "  " + DevicesTogether(samples.devices), room) + " " + right,
      Color::kBold, pen.style);
}

std::string Foot(const TopView& view, std::size_t shown, std::size_t all, std::size_t columns,
                 const Pen& pen) {
  if (view.typing) return Fit("filter: " + view.filter + "_", columns);
  std::string text = "q quit  h help  c m p d u sort  / filter";
  if (!view.filter.empty()) text += ": " + view.filter;
  if (shown < all)
    text += "  (" + std::to_string(shown) + " of " + std::to_string(all) + " processes)";
  return Paint(Fit(text, columns), Color::kDim, pen.style);
}

/// The number of lines of each part.
struct Room {
  std::size_t lines_each = 2, devices = 0, processes = 0;
};

Room Divide(std::size_t rows, std::size_t devices, std::size_t processes) {
  if (rows == 0) return {.lines_each = 2, .devices = devices, .processes = processes};
  const std::size_t rest =
      rows - std::min<std::size_t>(rows, 3);  // head, header of the processes, foot
  const std::size_t kept = std::min({processes, kLeastProcesses, rest / 2});
  Room room;
  room.lines_each = devices * 2 + kept <= rest ? 2 : 1;
  room.devices = std::min(devices, (rest - kept) / room.lines_each);
  room.processes = rest - room.devices * room.lines_each;
  return room;
}

void AddDevices(const api::Samples& samples, const TopView& view, const Room& room,
                std::size_t columns, const Pen& pen, std::vector<std::string>& lines) {
  const std::size_t all = samples.devices.size();
  const std::size_t first = std::min(view.first_device, all - std::min(all, room.devices));
  for (std::size_t i = first; i < std::min(all, first + room.devices); ++i)
    for (std::string& line : DeviceLines(samples.devices[i], room.lines_each, columns, pen))
      lines.push_back(std::move(line));
  if (all == 0) lines.push_back(Fit("no devices: penstock status says why", columns));
}

std::vector<std::string> Help(const TopSize& size) {
  std::vector<std::string> lines;
  for (const char* line : kHelp) lines.push_back(Fit(line, size.columns));
  if (size.rows > 0 && lines.size() > size.rows) lines.resize(size.rows);
  return lines;
}

std::vector<std::string> Lines(const api::Samples& samples, const TopView& view,
                               const TopSize& size, const Pen& pen) {
  const std::size_t columns = std::max(size.columns, kLeastColumns);
  const auto processes = ShownProcesses(samples, view);
  const Room room = Divide(size.rows, samples.devices.size(), processes.size());
  std::vector<std::string> lines{Head(samples, view, columns, pen)};
  AddDevices(samples, view, room, columns, pen, lines);
  lines.push_back(ProcessHead(view, columns, pen));
  const std::size_t first =
      std::min(view.first_process, processes.size() - std::min(processes.size(), room.processes));
  const std::size_t end = std::min(processes.size(), first + room.processes);
  for (std::size_t i = first; i < end; ++i)
    lines.push_back(ProcessLine(processes[i], columns, pen));
  if (processes.empty())
    lines.push_back(Paint(Fit(view.filter.empty() ? "no processes" : "no matches", columns),
                          Color::kDim, pen.style));
  if (size.rows == 0) return lines;
  while (lines.size() + 1 < size.rows) lines.emplace_back(columns, ' ');
  lines.resize(size.rows - 1);
  lines.push_back(Foot(view, end - first, samples.processes.size(), columns, pen));
  return lines;
}

}  // namespace

std::vector<SampledProcess> ShownProcesses(const api::Samples& samples, const TopView& view) {
  std::vector<SampledProcess> shown;
  const std::string filter = base::ToLower(view.filter);
  for (const SampledProcess& process : samples.processes)
    if (filter.empty() || Fits(process, filter)) shown.push_back(process);
  std::stable_sort(shown.begin(), shown.end(),
                   [&](const auto& a, const auto& b) { return Before(a, b, view.sort); });
  if (view.reverse) std::reverse(shown.begin(), shown.end());
  return shown;
}

std::vector<std::string> TopFrame(const api::Samples& samples, const TopView& view,
                                  const TopSize& size, const Pen& pen) {
  auto lines = view.help ? Help(size) : Lines(samples, view, size, pen);
  if (!pen.unicode) std::transform(lines.begin(), lines.end(), lines.begin(), InLetters);
  return lines;
}

}  // namespace penstock::app
