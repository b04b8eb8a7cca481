// Chooses which of the cluster's policies are in force, and computes what they ask for together.
// Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "api/cluster/penstock.h"
#include "api/compat/policy_kinds.h"

namespace penstock::cluster {

/// An object of one of api::compat::PolicyKinds(), or of PenstockKind().
struct PolicyObject {
  const api::compat::PolicyKind* kind = nullptr;
  nlohmann::json object;
};

/// Name and uid of a policy as messages and owner references have them.
struct PolicyName {
  std::string api_version, kind, name, uid;
  std::string namespace_name = {};  ///< empty: an object of the cluster
  bool operator==(const PolicyName&) const = default;
};
PolicyName NameOf(const PolicyObject& policy);

/// Whether it was deleted and waits for our finalizer.
bool IsDeleted(const PolicyObject& policy);

bool HasFinalizer(const PolicyObject& policy, std::string_view finalizer);

/// Whether it belongs to another operator, which has put its finalizer on it: it has no effect.
bool IsForeign(const PolicyObject& policy);

/// Whether it is an object of a kind that only adds a driver, such as NVIDIADriver.
bool AddsDriver(const PolicyObject& policy);

/// What a policy of the cluster contributes.
struct PolicyOutcome {
  const PolicyObject* policy = nullptr;
  std::string ignored;  ///< why it has no effect, for people; empty: it is in force
  std::string problem;  ///< why it cannot be read; empty: it can
  /// False: it is read over a policy that cannot be read, so its answers are not known.
  bool answered = true;
  std::vector<api::compat::FieldAnswer> answers;
  std::vector<std::string> remarks;
  /// Fields of its status that have numbers of nodes (PolicyTranslation).
  std::vector<std::pair<std::string, api::compat::Counted>> components;
};

struct EffectiveSpec {
  /// Of all policies in force together; empty: there is none, or one of them cannot be read. Its
  /// drivers are a ClusterPolicy's (without a name), those of all NVIDIADrivers (with the names of
  /// the objects), and a Penstock object's, which changes the ones with its names, or adds others.
  std::optional<api::PenstockSpec> spec;
  /// The policies in force that cannot be read, for messages: "DeviceConfig gpu-operator/default".
  std::vector<std::string> unreadable;
  /// The names of drivers whose objects are in force and cannot be read: they are not among the
  /// spec's, but exist, so that their nodes keep what they have and get no other driver.
  std::vector<std::string> unreadable_drivers;
  /// The first policy in force, if possible of the cluster: it owns the objects.
  std::optional<PolicyName> owner;
  std::vector<PolicyOutcome> outcomes;  ///< of all that are not deleted
  bool wanted = false;  ///< there is one that is not deleted and not only about a driver

  /// False: a policy in force cannot be read, so that nothing may change.
  bool IsKnown() const { return spec.has_value() || !wanted; }
};

/// What agents may do that not every installation grants.
struct AgentRights {
  bool pod_labels = true;  ///< list pods, for their labels
};

/// Of each kind the oldest policy is in force, the first by name of equally old ones, but none that
/// is foreign. Objects that add drivers are all in force, if a ClusterPolicy says so, or if there
/// is none but a Penstock object; one of them that cannot be read does not concern the others. What
/// agents may not do is answered, and not asked of them. The pointers in the result are into
/// `policies`.
EffectiveSpec ComputeSpec(const std::vector<PolicyObject>& policies, const AgentRights& rights = {},
                          const api::ConfigTerms& terms = {});

}  // namespace penstock::cluster
