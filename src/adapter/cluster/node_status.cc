// The numbers of a Node are quantities as text; ours are integers: "8".
#include "adapter/cluster/node_status.h"

#include <nlohmann/json.hpp>

namespace penstock::adapter::cluster {

namespace {

using Json = nlohmann::json;

void Differ(const std::map<std::string, std::string>& shown, const std::string& resource,
            std::size_t number, const char* list, Json& status) {
  const auto found = shown.find(resource);
  // A resource of amount 0 that the Node does not list is not worth a write.
  const std::string before = found == shown.end() ? "0" : found->second;
  if (before != std::to_string(number)) status[list][resource] = std::to_string(number);
}

/// Times of the API have no fractions of seconds.
std::string WholeSecondsOf(const std::string& time) {
  const auto point = time.find('.');
  return point == std::string::npos ? time : time.substr(0, point) + "Z";
}

}  // namespace

std::optional<Json> StatusPatch(const NodeNumbers& shown,
                                const adapter::kubelet::KubeletAmounts& amounts) {
  Json status = Json::object();
  for (const auto& [resource, amount] : amounts) {
    Differ(shown.capacity, resource, amount.capacity, "capacity", status);
    Differ(shown.allocatable, resource, amount.allocatable, "allocatable", status);
  }
  if (status.empty()) return std::nullopt;
  return Json{{"status", std::move(status)}};
}

std::optional<Json> ConditionPatch(const std::optional<ObservedCondition>& shown,
                                   const api::ConditionReport& wanted, const std::string& now) {
  const std::string status = wanted.status ? "True" : "False";
  const bool same_status = shown && shown->status == status;
  if (same_status && shown->reason == wanted.reason && shown->message == wanted.message)
    return std::nullopt;
  const std::string since =
      same_status && !shown->since.empty() ? shown->since : WholeSecondsOf(wanted.since);
  return Json{{"status",
               {{"conditions", Json::array({{{"type", kReadyCondition},
                                             {"status", status},
                                             {"reason", wanted.reason},
                                             {"message", wanted.message},
                                             {"lastHeartbeatTime", WholeSecondsOf(now)},
                                             {"lastTransitionTime", since}}})}}}};
}

}  // namespace penstock::adapter::cluster
