#include "operator/driver/rollout_facts.h"

#include <algorithm>

#include "api/cluster/label_selector.h"
#include "api/compat/nvidia/driver_names.h"
#include "api/compat/policy_kinds.h"
#include "base/core/printable.h"
#include "operator/fleet_state.h"
#include "operator/json_values.h"

namespace penstock::cluster {
namespace {

using base::WallTime;

constexpr std::string_view kMarkLabels[] = {
    api::compat::kUpgradeStateLabel, api::compat::kDriverOwnerLabel,
    api::compat::kDeployDriverLabel, kPoolLabel, kHeldLabel};
constexpr std::string_view kReadLabels[] = {api::compat::kUpgradeSkipLabel, api::compat::kOsIdLabel,
                                            api::compat::kOsVersionLabel, api::compat::kOsTreeLabel,
                                            api::compat::kKernelLabel};
constexpr std::string_view kAnnotations[] = {kUpgradeAnnotation,
                                             api::compat::kInitiallyCordoned,
                                             api::compat::kWaitStarted,
                                             api::compat::kValidationStarted,
                                             api::compat::kUpgradeRequested,
                                             api::compat::kSafeLoad};
constexpr std::size_t kLongestTrouble = 500;
constexpr WallTime::duration kSettled = std::chrono::seconds(30);

bool IsTrue(const Json& object, const std::string& pointer) {
  const Json* found = Find(object, pointer);
  return found != nullptr && *found == true;
}

std::optional<WallTime> TimeIn(const Json& object, const std::string& pointer) {
  const WallTime time = base::ParseTime(TextAt(object, pointer));
  return time == WallTime{} ? std::nullopt : std::optional(time);
}

const Json* ConditionIn(const Json& object, std::string_view type) {
  for (const Json& condition : ListAt(object, "/status/conditions"))
    if (TextAt(condition, "/type") == type) return &condition;
  return nullptr;
}

Json Chosen(const NodeTexts& texts, const auto& keys) {
  Json chosen = Json::object();
  for (const auto& key : keys)
    if (const auto found = texts.find(std::string(key)); found != texts.end())
      chosen[found->first] = found->second;
  return chosen;
}

/// Why a container does not run, in the words of the kubelet, or of its last end.
std::string TroubleOf(const Json& status) {
  std::string text;
  for (const char* state : {"/state/waiting", "/state/terminated", "/lastState/terminated"}) {
    const Json* found = Find(status, state);
    if (found == nullptr) continue;
    const Json* code = Find(*found, "/exitCode");
    if (code != nullptr && *code == 0) continue;
    const std::string reason = TextAt(*found, "/reason"), message = TextAt(*found, "/message");
    if (reason.empty() || reason == "PodInitializing" || reason == "ContainerCreating") continue;
    text += (text.empty() ? TextAt(status, "/name") + ": " : ", ") + reason +
            (message.empty() ? "" : ": " + message);
  }
  return base::Printable(text.substr(0, kLongestTrouble));
}

struct Containers {
  int restarts = 0;
  std::string trouble;
  std::string started;  // the driver's, as text
};

Containers ContainersOf(const Json& pod) {
  Containers all;
  for (const char* list : {"/status/initContainerStatuses", "/status/containerStatuses"})
    for (const Json& status : ListAt(pod, list)) {
      const Json* count = Find(status, "/restartCount");
      if (count != nullptr && count->is_number_integer())
        all.restarts = std::max(all.restarts, count->get<int>());
      if (TextAt(status, "/name") == kDriverContainer)
        all.started = TextAt(status, "/state/running/startedAt");
      if (all.trouble.empty() && !IsTrue(status, "/ready")) all.trouble = TroubleOf(status);
    }
  return all;
}

}  // namespace

std::set<std::string> DriverLabelKeys(const api::PenstockSpec& spec) {
  std::set<std::string> keys(std::begin(kMarkLabels), std::end(kMarkLabels));
  if (spec.drivers.empty()) return keys;
  keys.insert(std::begin(kReadLabels), std::end(kReadLabels));
  for (const std::string& key : api::compat::DeviceLabels()) keys.insert(key);
  for (const std::string& key : {spec.marks.present_label, spec.marks.opt_out_label})
    if (!key.empty()) keys.insert(key);
  for (const api::DriverSpec& driver : spec.drivers) {
    for (const auto& [key, value] : driver.node_selector) keys.insert(key);
    for (const auto& [key, value] : driver.upgrade.canaries.node_selector) keys.insert(key);
    if (const auto affinity = api::NodeAffinity::Parse(driver.node_affinity); affinity.ok())
      keys.merge(affinity->Keys());
  }
  return keys;
}

Json ReducedDriverNode(const Json& node, const std::set<std::string>& labels) {
  Json reduced = {
      {"metadata",
       {{"name", TextAt(node, "/metadata/name")},
        {"uid", TextAt(node, "/metadata/uid")},
        {"labels", Chosen(TextsAt(node, "/metadata/labels"), labels)},
        {"annotations", Chosen(TextsAt(node, "/metadata/annotations"), kAnnotations)}}}};
  if (IsTrue(node, "/spec/unschedulable")) reduced["spec"]["unschedulable"] = true;
  for (const char* fact : {"/status/nodeInfo/osImage", "/status/nodeInfo/kernelVersion"})
    if (const std::string text = TextAt(node, fact); !text.empty())
      reduced[Json::json_pointer(fact)] = text;
  if (const Json* ready = ConditionIn(node, "Ready"))
    reduced["status"]["conditions"] =
        Json::array({{{"type", "Ready"}, {"status", TextAt(*ready, "/status")}}});
  return reduced;
}

RolloutNode RolloutNodeOf(const Json& reduced, const api::NodeMarks& marks, WallTime now) {
  RolloutNode node;
  node.node = {TextAt(reduced, "/metadata/name"), TextsAt(reduced, "/metadata/labels"),
               TextAt(reduced, "/status/nodeInfo/osImage"),
               TextAt(reduced, "/status/nodeInfo/kernelVersion")};
  node.annotations = TextsAt(reduced, "/metadata/annotations");
  node.has_devices = api::compat::HasDevices(node.node.labels, marks.present_label);
  const auto opted = node.node.labels.find(marks.opt_out_label);
  node.opted_out = opted != node.node.labels.end() && opted->second == "false";
  node.cordoned = IsTrue(reduced, "/spec/unschedulable");
  const Json* ready = ConditionIn(reduced, "Ready");
  if (ready == nullptr || TextAt(*ready, "/status") != "True") node.not_ready_since = now;
  return node;
}

Json ReducedDriverPod(const Json& pod) {
  const Containers containers = ContainersOf(pod);
  const Json* ready = ConditionIn(pod, "Ready");
  const NodeTexts annotations = TextsAt(pod, "/metadata/annotations");
  const auto target = annotations.find(std::string(kTemplateAnnotation));
  return {{"metadata",
           {{"name", TextAt(pod, "/metadata/name")},
            {"namespace", TextAt(pod, "/metadata/namespace")},
            {"uid", TextAt(pod, "/metadata/uid")}}},
          {"node", TextAt(pod, "/spec/nodeName")},
          {"target", target == annotations.end() ? "" : target->second},
          {"digest", ConfigDigestOf(pod)},
          {"ready", ready != nullptr && TextAt(*ready, "/status") == "True"},
          {"terminating", !TextAt(pod, "/metadata/deletionTimestamp").empty()},
          {"restarts", containers.restarts},
          {"trouble", containers.trouble},
          {"started", containers.started}};
}

RolloutPod RolloutPodOf(const Json& reduced, WallTime now) {
  RolloutPod found;
  found.node = TextAt(reduced, "/node");
  found.started = TimeIn(reduced, "/started");
  if (IsTrue(reduced, "/ready")) found.ready_since = now;
  found.pod = {
      .name = TextAt(reduced, "/metadata/namespace") + "/" + TextAt(reduced, "/metadata/name"),
      .uid = TextAt(reduced, "/metadata/uid"),
      .target = TextAt(reduced, "/target"),
      .digest = TextAt(reduced, "/digest"),
      .ready = IsTrue(reduced, "/ready"),
      .terminating = IsTrue(reduced, "/terminating"),
      .restarts = reduced.value("restarts", 0),
      .trouble = TextAt(reduced, "/trouble")};
  return found;
}

std::optional<DriverReport> DriverReportOf(const Json& reduced_state) {
  const NodeDriver driver = DriverOnNode(reduced_state);
  if (!driver.looked) return std::nullopt;
  DriverReport report;
  report.version = driver.version;
  report.of_host = driver.source == "host";
  if (const WallTime since = base::ParseTime(driver.since); since != WallTime{})
    report.since = since;
  // Ready also says whether an allocator serves, which is no matter of the driver.
  const std::string decides = reduced_state.contains("validation") ? "/validation" : "/ready";
  report.ready = TextAt(reduced_state, decides + "/status") == "True";
  report.message = TextAt(reduced_state, decides + "/message");
  report.next_kernel = TextAt(reduced_state, "/nextKernel");
  return report;
}

ValidationResult ValidationOf(const RolloutPod& pod, const DriverReport* report, WallTime now) {
  if (report == nullptr) return {.text = "the node's agent has not reported yet"};
  if (report->version.empty())
    return {DriverValidation::kFailed,
            report->message.empty() ? "the node's agent finds no driver" : report->message,
            {}};
  const bool of_pod = pod.started && report->since && *report->since >= *pod.started;
  if (!of_pod) {
    ValidationResult pending{.text = "the node's agent has not looked at this driver yet"};
    if (!pod.ready_since) return pending;
    const WallTime settled = std::min(*pod.ready_since, now) + kSettled;
    if (now < settled) {
      pending.look_again = settled;
      return pending;
    }
  }
  if (!report->ready) return {DriverValidation::kFailed, report->message, {}};
  return {DriverValidation::kPassed, "", {}};
}

}  // namespace penstock::cluster
