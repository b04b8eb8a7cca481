#include "app/penstock/cluster/explain_show.h"

#include <algorithm>
#include <span>

#include <nlohmann/json.hpp>

#include "app/penstock/cluster/cluster.h"
#include "app/penstock/local/show.h"
#include "base/core/json_text.h"
#include "base/core/strings.h"

namespace penstock::app {

namespace {

constexpr std::size_t kMaxPods = 5, kMaxNodes = 20;

std::string Number(const analysis::ResourceView& resource, int number) {
  return resource.own ? std::to_string(number) : "";
}

std::string Resources(const analysis::Explanation& explanation, const Style& style) {
  Table table({"RESOURCE", "CAPACITY", "ALLOCATABLE", "OFFERED", "USABLE", "HELD", "REQUESTED"});
  for (const analysis::ResourceView& resource : explanation.resources) {
    const bool reported = !resource.own || (resource.capacity == resource.offered &&
                                            resource.allocatable == resource.usable);
    table.Add({resource.name,
               {std::to_string(resource.capacity), reported ? Color::kNone : Color::kYellow},
               {std::to_string(resource.allocatable), reported ? Color::kNone : Color::kYellow},
               Number(resource, resource.offered),
               Number(resource, resource.usable),
               Number(resource, resource.held),
               explanation.pods.unknown.empty() ? std::to_string(resource.requested) : ""});
  }
  return table.empty() ? "it has no accelerator resources\n"
                       : table.Render(style) +
                             "(CAPACITY and ALLOCATABLE: the Node object; OFFERED, USABLE, HELD: "
                             "the agent; REQUESTED: its pods)\n";
}

std::string Configuration(const analysis::Explanation& explanation, base::WallTime now) {
  std::string text;
  if (explanation.node.report) {
    const api::ConfigurationReport& config = explanation.node.report->configuration;
    const std::string age = AgeOf(config.since, now);
    if (!config.origin.empty())
      text +=
          "configuration: " + Printable(config.origin) + (age.empty() ? "" : ", for " + age) + "\n";
  }
  if (!explanation.choice.empty())
    text += "requested by its label " + Printable(explanation.choice) + "\n";
  return text.empty() ? "" : "\n" + text;
}

std::string Pods(const analysis::PodsView& pods) {
  std::string text;
  if (!pods.unknown.empty())
    return "\nthe pods that request it are not known: " + Printable(pods.unknown) + "\n";
  for (std::size_t i = 0; i < pods.waiting.size() && i < kMaxPods; ++i) {
    const analysis::WaitingPod& pod = pods.waiting[i];
    text += "waiting: " + Printable(pod.namespace_name + "/" + pod.name) + " for " +
            std::to_string(pod.amount) + " of " +
            Printable(pod.resource + (pod.why.empty() ? "" : ": " + pod.why)) + "\n";
  }
  if (pods.waiting.size() > kMaxPods)
    text += "and " + std::to_string(pods.waiting.size() - kMaxPods) + " more pods waiting\n";
  return text.empty() ? "" : "\n" + text;
}

std::string Headline(const analysis::Explanation& explanation, base::WallTime now) {
  const analysis::NodeView& node = explanation.node;
  std::string text = "node " + Printable(node.name);
  if (node.report) {
    const analysis::DeviceCounts counts = analysis::CountDevices(*node.report);
    text += ": " + std::to_string(counts.all) + (counts.all == 1 ? " device, " : " devices, ") +
            std::to_string(counts.healthy) + " healthy, " + std::to_string(counts.held) + " held";
    const std::string age = AgeOf(node.reported_at, now);
    if (!age.empty()) text += "; nothing has changed for " + age;
  }
  return text + "\n\n";
}

std::string Findings(const std::vector<analysis::ExplainFinding>& findings, const Style& style) {
  std::string text;
  for (const analysis::ExplainFinding& finding : findings)
    text += "\n" + Paint(Printable(finding.what), Color::kYellow, style) +
            "\n  next: " + Printable(finding.step) + "\n";
  return text;
}

Json FindingsToJson(const std::vector<analysis::ExplainFinding>& findings) {
  Json all = Json::array();
  for (const analysis::ExplainFinding& one : findings)
    all.push_back({{"what", one.what}, {"next", one.step}});
  return all;
}

}  // namespace

std::string ShowExplanation(const analysis::Explanation& explanation, const Style& style,
                            base::WallTime now) {
  std::string text = Headline(explanation, now) + Resources(explanation, style) +
                     Configuration(explanation, now) + Pods(explanation.pods);
  if (explanation.findings.empty())
    return text + "\n" + Paint("nothing is wrong", Color::kGreen, style) + "\n";
  return text + Findings(explanation.findings, style);
}

std::string ExplanationToJson(const analysis::Explanation& explanation) {
  Json resources = Json::array(), waiting = Json::array();
  for (const analysis::ResourceView& one : explanation.resources)
    resources.push_back({{"name", one.name},
                         {"ours", one.own},
                         {"capacity", one.capacity},
                         {"allocatable", one.allocatable},
                         {"offered", one.offered},
                         {"usable", one.usable},
                         {"held", one.held},
                         {"requested", one.requested}});
  for (const analysis::WaitingPod& one : explanation.pods.waiting)
    waiting.push_back({{"namespace", one.namespace_name},
                       {"name", one.name},
                       {"resource", one.resource},
                       {"amount", one.amount},
                       {"why", one.why}});
  Json object = {{"node", explanation.node.name},
                 {"resources", std::move(resources)},
                 {"findings", FindingsToJson(explanation.findings)},
                 {"waiting", std::move(waiting)},
                 {"label", explanation.choice},
                 {"configuration", nullptr}};
  if (explanation.node.report)
    object["configuration"] =
        base::ParseJson<Json>(api::ToJson(*explanation.node.report))["configuration"];
  return base::JsonText(object);
}

std::string ShowPlacement(const analysis::PodPlacement& placement, const Style& style) {
  std::string text = "pod " + Printable(placement.pod);
  if (!placement.node.empty()) return text + " is on node " + Printable(placement.node) + "\n";
  text +=
      " is not scheduled" + (placement.why.empty() ? "" : ": " + Printable(placement.why)) + "\n";
  if (!placement.findings.empty()) return text + Findings(placement.findings, style);
  const std::span<const std::string> all(placement.matching);
  const std::size_t shown = std::min(all.size(), kMaxNodes);
  return text + "by their labels it may be on " + Printable(base::Join(all.first(shown), ", ")) +
         (all.size() > shown ? " and " + std::to_string(all.size() - shown) + " more" : "") +
         "; `penstock explain NODE` says what such a node has\n";
}

std::string PlacementToJson(const analysis::PodPlacement& placement) {
  return base::JsonText(Json{{"pod", placement.pod},
                             {"node", placement.node},
                             {"why", placement.why},
                             {"matching", placement.matching},
                             {"findings", FindingsToJson(placement.findings)}});
}

}  // namespace penstock::app
