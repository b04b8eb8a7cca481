#include "operator/effective_spec.h"

#include <algorithm>
#include <utility>

#include "base/core/json_text.h"
#include "operator/json_values.h"

namespace penstock::cluster {

using api::compat::PolicyKind;

namespace {

/// Older before younger; the server writes times in a form that sorts as text.
std::pair<std::string, std::string> AgeOf(const PolicyObject& policy) {
  return {TextAt(policy.object, "/metadata/creationTimestamp"),
          TextAt(policy.object, "/metadata/name")};
}

/// The outcomes of the policies of a kind; the one in force is the first.
std::vector<PolicyOutcome> OfKind(const std::vector<PolicyObject>& policies,
                                  const PolicyKind& kind) {
  std::vector<PolicyOutcome> outcomes;
  for (const PolicyObject& policy : policies)
    if (policy.kind == &kind && !IsDeleted(policy)) outcomes.push_back({.policy = &policy});
  std::ranges::sort(outcomes, {}, [](const auto& outcome) { return AgeOf(*outcome.policy); });
  for (std::size_t i = 1; i < outcomes.size(); ++i)
    outcomes[i].ignored_for = NameOf(*outcomes.front().policy).name;
  return outcomes;
}

/// Reads a policy over what others asked for.
base::Result<api::PenstockSpec> Read(PolicyOutcome& outcome, const api::PenstockSpec& below) {
  const std::string text = base::JsonText(outcome.policy->object);
  if (!outcome.policy->kind->translate) {
    ASSIGN(auto spec,
           api::ParsePenstock(text, NameOf(*outcome.policy).name, below, &outcome.remarks));
    if (!spec.drivers.empty())
      outcome.answers.push_back({"spec.drivers", api::compat::FieldFate::kNotServed,
                                 "Driver containers are not served yet: install the driver on the "
                                 "nodes, where it is adopted."});
    return spec;
  }
  ASSIGN(auto translation, outcome.policy->kind->translate(text));
  outcome.answers = std::move(translation.answers);
  return std::move(translation.spec);
}

/// Objects from which nothing follows: all of them are answered, none is ignored.
std::vector<PolicyOutcome> Answered(std::vector<PolicyOutcome> outcomes) {
  for (PolicyOutcome& outcome : outcomes) {
    outcome.ignored_for.clear();
    if (const auto read = Read(outcome, {}); !read.ok()) outcome.problem = read.error().message();
  }
  return outcomes;
}

}  // namespace

PolicyName NameOf(const PolicyObject& policy) {
  return {policy.kind->group + "/" + policy.kind->version, policy.kind->kind,
          TextAt(policy.object, "/metadata/name"), TextAt(policy.object, "/metadata/uid")};
}

bool IsDeleted(const PolicyObject& policy) {
  return !TextAt(policy.object, "/metadata/deletionTimestamp").empty();
}

EffectiveSpec ComputeSpec(const std::vector<PolicyObject>& policies) {
  EffectiveSpec effective;
  std::vector<const PolicyKind*> kinds;
  for (const PolicyKind& kind : api::compat::PolicyKinds()) kinds.push_back(&kind);
  kinds.push_back(&api::compat::PenstockKind());
  api::PenstockSpec spec;
  bool readable = true;
  for (const PolicyKind* kind : kinds) {
    auto outcomes = OfKind(policies, *kind);
    if (!kind->not_served.empty()) {
      std::ranges::move(Answered(std::move(outcomes)), std::back_inserter(effective.outcomes));
      continue;
    }
    if (outcomes.empty()) continue;
    effective.wanted = true;
    if (!effective.owner) effective.owner = NameOf(*outcomes.front().policy);
    auto read = Read(outcomes.front(), spec);
    if (read.ok()) {
      spec = *std::move(read);
    } else {
      outcomes.front().problem = read.error().message();
      readable = false;
    }
    std::ranges::move(outcomes, std::back_inserter(effective.outcomes));
  }
  if (effective.wanted && readable) effective.spec = std::move(spec);
  return effective;
}

}  // namespace penstock::cluster
