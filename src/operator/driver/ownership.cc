#include "operator/driver/ownership.h"

#include <algorithm>

#include "api/cluster/label_selector.h"
#include "api/compat/nvidia/driver_names.h"
#include "base/core/strings.h"

namespace penstock::cluster {
namespace {

using api::DriverSpec;

/// A driver with its selectors read.
struct Candidate {
  const DriverSpec* spec = nullptr;
  api::NodeAffinity affinity;

  bool Selects(const DriverNode& node) const {
    const bool labelled = std::ranges::all_of(spec->node_selector, [&](const auto& wanted) {
      const auto found = node.labels.find(wanted.first);
      return found != node.labels.end() && found->second == wanted.second;
    });
    return labelled && affinity.Matches(node.labels, node.name);
  }
};

struct Candidates {
  std::vector<Candidate> selecting, fallback;
};

/// Their names, the driver of a ClusterPolicy having none.
std::string NamesOf(const std::vector<Candidate>& candidates) {
  constexpr std::size_t kMostNamed = 10;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(kMostNamed, candidates.size()); ++i) {
    const std::string& name = candidates[i].spec->name;
    names.push_back(name.empty() ? "that of the ClusterPolicy" : name);
  }
  if (candidates.size() > kMostNamed)
    names.push_back(std::to_string(candidates.size() - kMostNamed) + " more");
  return base::Join(names, ", ");
}

Candidates Sorted(const std::vector<DriverSpec>& drivers, DriverOwnership& ownership) {
  Candidates candidates;
  for (const DriverSpec& driver : drivers) {
    if (!driver.enabled) continue;
    auto affinity = api::NodeAffinity::Parse(driver.node_affinity);
    if (!affinity.ok()) {
      ownership.problems[driver.name] = affinity.error().message();
      continue;
    }
    (driver.fallback ? candidates.fallback : candidates.selecting)
        .push_back({&driver, *std::move(affinity)});
  }
  if (candidates.fallback.size() > 1)
    for (const Candidate& candidate : candidates.fallback)
      ownership.problems[candidate.spec->name] =
          "multiple default NVIDIADrivers found (" + NamesOf(candidates.fallback) +
          "): make one of them the default, and give the others a nodeSelector";
  return candidates;
}

std::vector<std::string> NamesOf(const std::vector<Candidate>& candidates, const DriverNode& node) {
  std::vector<std::string> names;
  for (const Candidate& candidate : candidates)
    if (candidate.Selects(node)) names.push_back(candidate.spec->name);
  std::ranges::sort(names);
  return names;
}

std::string LabelledOwner(const DriverNode& node) {
  const auto found = node.labels.find(std::string(api::compat::kDriverOwnerLabel));
  return found == node.labels.end() ? "" : found->second;
}

}  // namespace

std::string DriverConflict::Message() const {
  std::string text = "node " + node + ": selected by " + base::Join(drivers, " and ");
  return text + (keeps.empty() ? "; it gets no driver" : "; it keeps " + keeps);
}

std::vector<const DriverConflict*> DriverOwnership::ConflictsOf(const std::string& driver) const {
  std::vector<const DriverConflict*> found;
  for (const DriverConflict& conflict : conflicts)
    if (std::ranges::find(conflict.drivers, driver) != conflict.drivers.end())
      found.push_back(&conflict);
  return found;
}

std::vector<const DriverNode*> PointersTo(const std::vector<DriverNode>& nodes) {
  std::vector<const DriverNode*> pointers;
  for (const DriverNode& node : nodes) pointers.push_back(&node);
  return pointers;
}

DriverOwnership AssignDrivers(const std::vector<DriverNode>& nodes,
                              const std::vector<DriverSpec>& drivers) {
  return AssignDrivers(PointersTo(nodes), drivers);
}

DriverOwnership AssignDrivers(std::span<const DriverNode* const> nodes,
                              const std::vector<DriverSpec>& drivers) {
  DriverOwnership ownership;
  const Candidates candidates = Sorted(drivers, ownership);
  for (const DriverNode* one : nodes) {
    const DriverNode& node = *one;
    std::vector<std::string> names = NamesOf(candidates.selecting, node);
    const bool selected = !names.empty();
    if (!selected) names = NamesOf(candidates.fallback, node);
    if (names.size() == 1) ownership.owner[node.name] = names.front();
    if (names.size() < 2) continue;
    const std::string labelled = LabelledOwner(node);
    const bool keeps = std::ranges::find(names, labelled) != names.end();
    if (keeps) ownership.owner[node.name] = labelled;
    if (selected)
      ownership.conflicts.push_back({node.name, std::move(names), keeps ? labelled : ""});
  }
  std::ranges::sort(ownership.conflicts, {}, &DriverConflict::node);
  return ownership;
}

}  // namespace penstock::cluster
