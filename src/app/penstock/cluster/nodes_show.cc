#include "app/penstock/cluster/nodes_show.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "api/allocators.h"
#include "app/penstock/cluster/cluster.h"
#include "app/penstock/local/show.h"
#include "base/core/json_text.h"
#include "base/core/strings.h"

namespace penstock::app {

namespace {

std::string DriverOf(const api::Report& report) {
  std::vector<std::string> drivers;
  for (const api::VendorReport& vendor : report.vendors)
    if (!vendor.driver.empty()) drivers.push_back(vendor.driver);
  return drivers.empty() ? "none" : base::Join(drivers, ",");
}

std::string ModelsOf(const api::Report& report) {
  std::map<std::string, int> counts;
  for (const api::DeviceReport& device : report.devices) ++counts[device.model];
  std::vector<std::string> models;
  for (const auto& [model, count] : counts) models.push_back(std::to_string(count) + " " + model);
  return base::Join(models, ", ");
}

/// The allocators that are not disabled: "kubelet:open local:open".
std::string AllocatorsOf(const api::Report& report, bool wide) {
  std::vector<std::string> allocators;
  for (const api::AllocatorReport& allocator : report.allocators)
    if (wide || api::FindAllocator(allocator.name).advertises || allocator.state == "waiting" ||
        allocator.state == "stepped-back")
      allocators.push_back(allocator.name + ":" + allocator.state);
  return base::Join(allocators, " ");
}

/// "any (ConfigMap gpu/cfg)" with `wide`; else only the key or the file's name.
std::string ConfigurationOf(const api::Report& report, bool wide) {
  const std::string& origin = report.configuration.origin;
  if (wide) return origin;
  if (const auto key = origin.find(", key "); key != std::string::npos) {
    const std::string rest = origin.substr(key + 6);
    return "key " + rest.substr(0, rest.find(' '));
  }
  return origin.starts_with("file ") ? "file" : origin;
}

std::string AllocatableOf(const analysis::NodeView& node) {
  std::vector<std::string> resources;
  for (const auto& [name, capacity] : node.capacity) {
    const auto allocatable = node.allocatable.find(name);
    if (capacity == 0) continue;  // left by an earlier plugin
    resources.push_back(
        name + " " +
        std::to_string(allocatable == node.allocatable.end() ? 0 : allocatable->second) + "/" +
        std::to_string(capacity));
  }
  return base::Join(resources, ", ");
}

std::string SharesOf(const analysis::DeviceCounts& counts) {
  return counts.shares == 0
             ? ""
             : std::to_string(counts.free_shares) + "/" + std::to_string(counts.shares) + " free";
}

}  // namespace

std::string ShowNodes(const std::vector<analysis::NodeView>& nodes, bool wide, const Style& style,
                      base::WallTime now) {
  const bool shared = std::any_of(nodes.begin(), nodes.end(), [](const analysis::NodeView& node) {
    return node.report &&
           std::any_of(node.report->devices.begin(), node.report->devices.end(), api::IsShared);
  });
  std::vector<std::string> header = {"NODE", "DRIVER", "HEALTHY", "HELD"};
  if (shared) header.emplace_back("SHARES");
  header.insert(header.end(), {"ALLOCATORS", "CONFIGURATION", "REPORTED"});
  if (wide) header.insert(header.end(), {"AGENT", "DEVICES", "ALLOCATABLE"});
  header.emplace_back("PROBLEM");
  Table table(header);
  for (const analysis::NodeView& node : nodes) {
    const analysis::DeviceCounts counts =
        node.report ? analysis::CountDevices(*node.report) : analysis::DeviceCounts{};
    const std::vector<std::string> problems = analysis::ProblemsOf(node);
    const bool problem = !problems.empty();
    std::vector<Cell> row = {{node.name, problem ? Color::kYellow : Color::kNone}};
    if (node.report) {
      row.insert(row.end(), {DriverOf(*node.report),
                             {std::to_string(counts.healthy) + "/" + std::to_string(counts.all),
                              counts.healthy == counts.all ? Color::kGreen : Color::kRed},
                             std::to_string(counts.held)});
      if (shared) row.emplace_back(SharesOf(counts));
      row.insert(row.end(), {AllocatorsOf(*node.report, wide), ConfigurationOf(*node.report, wide),
                             AgeOf(node.reported_at, now)});
      if (wide)
        row.insert(row.end(), {node.report->version, ModelsOf(*node.report), AllocatableOf(node)});
    } else {
      row.insert(row.end(), shared ? 7 : 6, Cell(""));
      if (wide) row.insert(row.end(), {"", "", AllocatableOf(node)});
    }
    row.emplace_back(base::Join(problems, "; "), Color::kYellow);
    table.Add(std::move(row));
  }
  return table.empty() ? "the cluster has no nodes\n" : table.Render(style);
}

std::string NodesToJson(const std::vector<analysis::NodeView>& nodes) {
  Json list = Json::array();
  for (const analysis::NodeView& node : nodes) {
    Json one = {{"name", node.name},
                {"problems", analysis::ProblemsOf(node)},
                {"capacity", node.capacity},
                {"allocatable", node.allocatable},
                {"reportedAt", node.reported_at},
                {"report", nullptr}};
    if (node.report) {
      const analysis::DeviceCounts counts = analysis::CountDevices(*node.report);
      one["devices"] = {{"all", counts.all},       {"healthy", counts.healthy},
                        {"held", counts.held},     {"outside", counts.outside},
                        {"shares", counts.shares}, {"freeShares", counts.free_shares}};
      one["report"] = base::ParseJson<Json>(api::ToJson(*node.report));
    }
    list.push_back(std::move(one));
  }
  return base::JsonText(Json{{"nodes", std::move(list)}});
}

}  // namespace penstock::app
