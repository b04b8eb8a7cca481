// What the page at / shows of a node, as the JSON that its script reads. Not a stable interface:
// the script comes from the same agent, or from one of another version, which ignores what it does
// not know. Programs read the report (report.h).
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/report.h"
#include "base/core/quantity.h"

namespace penstock::api {

/// What one holder has of one device.
struct PageHolder {
  HolderReport holder;  ///< of its first slot
  int slots = 1;        ///< shares of the device that it holds
};

struct PageDevice {
  DeviceReport report;  ///< without holders
  std::vector<PageHolder> holders;
  std::optional<double> utilization;         ///< 0 to 1; absent, like the others: unknown
  std::optional<double> memory_used;         ///< bytes
  std::optional<double> power, power_limit;  ///< watts
  std::optional<double> temperature;         ///< celsius
};

/// A run that waits for devices.
struct QueuedRun {
  std::string ticket;  ///< "q-7"
  std::string user, command;
  int count = 1;  ///< devices
  int share = 1;  ///< N: one of N shares of each device
  std::string model;
  std::string profile;       ///< of parts; empty: see least_memory
  base::Bytes least_memory;  ///< of each device or part; 0 without a profile: whole devices
  std::vector<std::string> devices;
  std::string since;           ///< RFC 3339
  std::string expected_start;  ///< RFC 3339; empty: unknown
  std::string reason;          ///< what it waits for
};

struct PageState {
  std::string node, version;
  std::vector<VendorReport> vendors;
  std::vector<ConditionReport> conditions;
  std::string configuration_problem;  ///< of the configuration that is not in force
  std::vector<PageDevice> devices;
  std::vector<PageHolder> removed;  ///< holders of devices that no longer exist
  std::vector<QueuedRun> queue;     ///< in its order
};

/// The last hour, in steps of equal length, oldest first. A list may be shorter than the hour: it
/// ends with the newest complete step.
struct PageHistory {
  struct Device {
    std::vector<float> utilization, memory_used, power;  ///< NaN: unknown
  };
  double step_seconds = 0;
  std::map<std::string, Device> devices;  ///< by id
};

/// Whether process ids and command lines are shown.
enum class PageDetail { kHolders, kProcesses };

/// How many holders of a device, and how many queued runs, the state names: the others are on pages
/// of their own.
inline constexpr std::size_t kHoldersInState = 3, kRunsInState = 10;
/// Of one such page.
inline constexpr std::size_t kItemsOfPage = 200;

/// {"build", "node", "version", "vendors", "conditions", "configurationProblem", "devices",
/// "removed", "removedCount", "queue", "queueLength", "nodes"}. `build`: identifies the page's
/// files; `nodes`: names of the other nodes that the agent shows. Texts are cut to a sensible
/// length.
std::string ToJson(const PageState& state, PageDetail detail, std::string_view build,
                   const std::vector<std::string>& nodes);

/// {"holders": [...], "count"}: those of one device from this position on; those of removed devices
/// for the id "". Nothing for a device that does not exist.
std::optional<std::string> PageHoldersToJson(const PageState& state, PageDetail detail,
                                             std::string_view device, std::size_t from);

/// {"queue": [...], "count"}: the runs from this position on.
std::string PageQueueToJson(const PageState& state, PageDetail detail, std::size_t from);

/// {"problem"}: why there is nothing to show of another node.
std::string PageProblemToJson(std::string_view problem);

/// {"stepSeconds", "devices": {ID: {"utilization" (percent), "memory" (MiB), "power" (watts)}}}.
std::string ToJson(const PageHistory& history);

}  // namespace penstock::api
