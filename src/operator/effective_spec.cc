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

std::string TextOf(const PolicyName& name) {
  const std::string& space = name.namespace_name;
  return name.kind + " " + (space.empty() ? "" : space + "/") + name.name;
}

/// The outcomes of the policies of a kind, the oldest first.
std::vector<PolicyOutcome> OfKind(const std::vector<PolicyObject>& policies,
                                  const PolicyKind& kind) {
  std::vector<PolicyOutcome> outcomes;
  for (const PolicyObject& policy : policies)
    if (policy.kind == &kind && !IsDeleted(policy)) outcomes.push_back({.policy = &policy});
  std::ranges::sort(outcomes, {}, [](const auto& outcome) { return AgeOf(*outcome.policy); });
  return outcomes;
}

/// Adds one kind of policies after the other.
class SpecBuilder {
 public:
  SpecBuilder(const std::vector<PolicyObject>& policies, const AgentRights& rights,
              const api::ConfigTerms& terms)
      : policies_(policies), rights_(rights), terms_(terms) {
    if (OfKind(policies, api::compat::PenstockKind()).empty())
      no_driver_objects_ =
          "there is no ClusterPolicy and no Penstock object: alone, this object has no effect";
  }

  void Add(const PolicyKind& kind) {
    auto outcomes = OfKind(policies_, kind);
    if (kind.translate_driver) {
      for (PolicyOutcome& outcome : outcomes) AddDriver(outcome);
    } else if (!kind.not_served.empty()) {
      for (PolicyOutcome& outcome : outcomes)
        if (const auto read = Read(outcome, nullptr); !read.ok())
          outcome.problem = read.error().message();
    } else {
      AddOldest(outcomes);
    }
    std::ranges::move(outcomes, std::back_inserter(effective_.outcomes));
  }

  EffectiveSpec Finish() {
    if (effective_.wanted && readable()) effective_.spec = std::move(spec_);
    return std::move(effective_);
  }

 private:
  void AddOldest(std::vector<PolicyOutcome>& outcomes) {
    PolicyOutcome* oldest = nullptr;
    for (PolicyOutcome& outcome : outcomes) {
      if (IsForeign(*outcome.policy)) {
        outcome.ignored = "another operator serves it, whose finalizer it has, " +
                          outcome.policy->kind->foreign_finalizer +
                          ": stop that operator (an uninstall of its chart deletes the "
                          "DeviceConfigs of all namespaces), and remove the finalizer";
      } else if (oldest == nullptr) {
        oldest = &outcome;
      } else {
        const PolicyName name = NameOf(*oldest->policy);
        outcome.ignored =
            name.kind + " " + name.name + " is in force, since it is older; delete one of the two";
      }
    }
    if (oldest != nullptr) AddPolicy(*oldest);
  }

  void AddPolicy(PolicyOutcome& oldest) {
    const PolicyName name = NameOf(*oldest.policy);
    const api::PenstockSpec* over = effective_.wanted ? &spec_ : nullptr;
    effective_.wanted = true;
    const bool is_of_cluster = name.namespace_name.empty();
    if (!effective_.owner || (is_of_cluster && !effective_.owner->namespace_name.empty()))
      effective_.owner = name;
    auto read = Read(oldest, over);
    if (!read.ok()) {
      oldest.problem = read.error().message();
      effective_.unreadable.push_back(TextOf(name));
      return;
    }
    if (!readable()) return LeaveUnanswered(oldest);
    // Drivers of NVIDIADriver objects are added whatever the first policy in force is.
    std::vector<api::DriverSpec> drivers = std::move(spec_.drivers);
    spec_ = std::move(read->spec);
    HoldBackPodLabels(oldest);
    if (over == nullptr && oldest.policy->kind->translate)
      std::ranges::move(drivers, std::back_inserter(spec_.drivers));
    if (!oldest.policy->kind->translate || over != nullptr) return;
    no_driver_objects_ = std::move(read->no_driver_objects);
    if (!no_driver_objects_.empty())
      no_driver_objects_ = name.kind + " " + name.name + " " + no_driver_objects_;
  }

  /// Answered of the policy that brings them.
  void HoldBackPodLabels(PolicyOutcome& outcome) {
    std::vector<std::string>& labels = spec_.node.telemetry.holder_labels;
    if (rights_.pod_labels || labels.empty()) return;
    labels.clear();
    outcome.answers.push_back({"labels of pods (telemetry.holderLabels)",
                               api::compat::FieldFate::kNotServed,
                               "the agents may not list pods, since penstock.rbac.podLabels of the "
                               "chart is false: set it "
                               "to true, or ask for no labels"});
  }

  /// Over settings that no one asked for, it is only known whether it can be read.
  static void LeaveUnanswered(PolicyOutcome& outcome) {
    outcome.answered = false;
    outcome.answers.clear();
    outcome.remarks.clear();
    outcome.components.clear();
  }

  /// Reads a policy over what others asked for.
  base::Result<api::compat::PolicyTranslation> Read(PolicyOutcome& outcome,
                                                    const api::PenstockSpec* over) {
    const std::string text = base::JsonText(outcome.policy->object);
    api::compat::PolicyTranslation translation;
    if (outcome.policy->kind->translate) {
      ASSIGN(translation, outcome.policy->kind->translate(text, over));
      outcome.answers = translation.answers;
      outcome.components = translation.components;
    } else {
      ASSIGN(translation.spec, api::ParsePenstock(text, NameOf(*outcome.policy).name, terms_, spec_,
                                                  &outcome.remarks));
    }
    return translation;
  }

  void AddDriver(PolicyOutcome& outcome) {
    // Without a readable ClusterPolicy it is not known which drivers there are.
    if (readable()) outcome.ignored = no_driver_objects_;
    auto read = outcome.policy->kind->translate_driver(base::JsonText(outcome.policy->object));
    if (read.ok()) outcome.answers = std::move(read->answers);
    if (!read.ok()) outcome.problem = read.error().message();
    if (!outcome.ignored.empty()) return;
    if (read.ok()) {
      spec_.drivers.push_back(std::move(read->driver));
    } else {
      effective_.unreadable_drivers.push_back(NameOf(*outcome.policy).name);
    }
  }

  bool readable() const { return effective_.unreadable.empty(); }

  const std::vector<PolicyObject>& policies_;
  const AgentRights rights_;
  const api::ConfigTerms& terms_;
  EffectiveSpec effective_;
  api::PenstockSpec spec_;
  std::string no_driver_objects_;  // why such objects have no effect
};

}  // namespace

PolicyName NameOf(const PolicyObject& policy) {
  return {policy.kind->group + "/" + policy.kind->version, policy.kind->kind,
          TextAt(policy.object, "/metadata/name"), TextAt(policy.object, "/metadata/uid"),
          policy.kind->namespaced ? TextAt(policy.object, "/metadata/namespace") : ""};
}

bool IsDeleted(const PolicyObject& policy) {
  return !TextAt(policy.object, "/metadata/deletionTimestamp").empty();
}

bool HasFinalizer(const PolicyObject& policy, std::string_view finalizer) {
  const Json& finalizers = ListAt(policy.object, "/metadata/finalizers");
  return std::ranges::any_of(finalizers, [&](const Json& one) { return one == finalizer; });
}

bool IsForeign(const PolicyObject& policy) {
  const std::string& theirs = policy.kind->foreign_finalizer;
  return !theirs.empty() && HasFinalizer(policy, theirs);
}

bool AddsDriver(const PolicyObject& policy) {
  return static_cast<bool>(policy.kind->translate_driver);
}

EffectiveSpec ComputeSpec(const std::vector<PolicyObject>& policies, const AgentRights& rights,
                          const api::ConfigTerms& terms) {
  SpecBuilder builder(policies, rights, terms);
  for (const PolicyKind& kind : api::compat::PolicyKinds()) builder.Add(kind);
  builder.Add(api::compat::PenstockKind());
  return builder.Finish();
}

}  // namespace penstock::cluster
