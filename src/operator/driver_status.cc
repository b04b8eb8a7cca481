#include "operator/driver_status.h"

#include <algorithm>
#include <utility>

#include "base/core/strings.h"
#include "operator/json_values.h"

namespace penstock::cluster {
namespace {

std::string Sentence(const WaitingNode& node) {
  return node.name + ": " + node.reason + (node.message.empty() ? "" : ": " + node.message);
}

std::string_view WordFor(ImageState state) {
  switch (state) {
    case ImageState::kThere: return "Available";
    case ImageState::kMissing: return "Missing";
    case ImageState::kUnknown: break;
  }
  return "Unknown";
}

Json UpcomingInStatus(const UpcomingKernel& upcoming) {
  Json json = {{"kernel", upcoming.kernel},
               {"image", upcoming.image},
               {"state", WordFor(upcoming.answer.state)},
               {"nodes", upcoming.nodes},
               {"named", upcoming.named}};
  if (!upcoming.answer.why.empty()) json["message"] = upcoming.answer.why;
  return json;
}

/// "n1, n2 and 3 more will boot kernel 5.15.0-112-generic, for which the image x cannot be pulled:
/// ...".
std::string Sentence(const UpcomingKernel& upcoming) {
  std::string text = base::Join(upcoming.named, ", ");
  if (upcoming.nodes > upcoming.named.size())
    text += " and " + std::to_string(upcoming.nodes - upcoming.named.size()) + " more";
  return text + " will boot kernel " + upcoming.kernel + ", for which the image " + upcoming.image +
         " cannot be pulled: " + upcoming.answer.why;
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
  for (const UpcomingKernel& upcoming : driver.upcoming)
    json["nextKernels"].push_back(UpcomingInStatus(upcoming));
  return json;
}

}  // namespace

Json DriversInStatus(const std::vector<DriverOutcome>& drivers) {
  Json list = Json::array();
  for (const DriverOutcome& driver : drivers) list.push_back(OneInStatus(driver));
  return list;
}

std::optional<std::vector<std::string>> MissingImagesOf(const std::vector<DriverOutcome>& drivers) {
  std::size_t known = 0;
  std::vector<std::string> missing;
  for (const DriverOutcome& driver : drivers)
    for (const UpcomingKernel& upcoming : driver.upcoming) {
      known += upcoming.answer.state == ImageState::kUnknown ? 0 : 1;
      if (upcoming.answer.state == ImageState::kMissing) missing.push_back(Sentence(upcoming));
    }
  return known == 0 ? std::nullopt : std::optional(std::move(missing));
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
