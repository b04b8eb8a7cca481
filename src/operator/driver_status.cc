#include "operator/driver_status.h"

#include <algorithm>

#include "operator/json_values.h"

namespace penstock::cluster {
namespace {

std::string Sentence(const WaitingNode& node) {
  return node.name + ": " + node.reason + (node.message.empty() ? "" : ": " + node.message);
}

Json OneInStatus(const DriverOutcome& driver) {
  const UpgradeCounts& counts = driver.counts;
  Json json = {{"nodes", driver.nodes}, {"ready", driver.ready}};
  if (!driver.name.empty()) json["name"] = driver.name;
  for (const auto& [key, count] : {std::pair("done", counts.done),
                                   {"required", counts.required},
                                   {"underway", counts.underway},
                                   {"failed", counts.failed}})
    if (count > 0) json["upgrade"][key] = count;
  if (!driver.gate.empty())
    json["stopped"] = {{"reason", driver.gate}, {"message", driver.gate_message}};
  for (const std::string& problem : {driver.problem, driver.conflict})
    if (!problem.empty()) json["problems"].push_back(problem);
  for (const WaitingNode& node : driver.waiting) {
    Json one = {{"name", node.name}, {"reason", node.reason}};
    if (!node.state.empty()) one["state"] = node.state;
    if (!node.message.empty()) one["message"] = node.message;
    json["waiting"].push_back(std::move(one));
  }
  return json;
}

}  // namespace

Json DriversInStatus(const std::vector<DriverOutcome>& drivers) {
  Json list = Json::array();
  for (const DriverOutcome& driver : drivers) list.push_back(OneInStatus(driver));
  return list;
}

DriverTrouble TroubleOfDriver(const DriverOutcome& driver) {
  if (!driver.conflict.empty()) return {"ConflictingNodeSelector", driver.conflict, true};
  if (!driver.problem.empty())
    return {driver.lacks_object ? "PrerequisiteNotMet" : "ReconcileFailed", driver.problem, true};
  if (driver.ready == driver.nodes && driver.counts.failed == 0) return {};
  std::string text = std::to_string(driver.nodes - driver.ready) + " of " +
                     std::to_string(driver.nodes) + " nodes do not have the driver";
  constexpr std::size_t kMost = 3;
  for (std::size_t i = 0; i < std::min(kMost, driver.waiting.size()); ++i)
    text += (i == 0 ? ": " : "; ") + Sentence(driver.waiting[i]);
  if (driver.waiting.size() > kMost) text += "; ...";
  if (!driver.gate.empty()) text += "; no further node begins: " + driver.gate_message;
  return {"DriverNotReady", text, false};
}

}  // namespace penstock::cluster
