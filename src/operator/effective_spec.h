// Chooses which of the cluster's policies are in force, and computes what they ask for together.
// Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
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
  bool operator==(const PolicyName&) const = default;
};
PolicyName NameOf(const PolicyObject& policy);

/// Whether it was deleted and waits for our finalizer.
bool IsDeleted(const PolicyObject& policy);

/// What a policy of the cluster contributes.
struct PolicyOutcome {
  const PolicyObject* policy = nullptr;
  std::string ignored_for;  ///< the name of the older one of its kind; empty: it is in force
  std::string problem;      ///< why it cannot be read; empty: it can
  std::vector<api::compat::FieldAnswer> answers;
  std::vector<std::string> remarks;
};

struct EffectiveSpec {
  /// Of all policies in force together; empty: there is none, or one of them cannot be read.
  std::optional<api::PenstockSpec> spec;
  /// The first policy in force: it owns the objects.
  std::optional<PolicyName> owner;
  std::vector<PolicyOutcome> outcomes;  ///< of all that are not deleted
  bool wanted = false;                  ///< there is one that is not deleted
};

/// Of each kind the oldest policy is in force, the first by name of equally old ones. The pointers
/// in the result are into `policies`.
EffectiveSpec ComputeSpec(const std::vector<PolicyObject>& policies);

}  // namespace penstock::cluster
