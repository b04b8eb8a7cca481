// Computes the status of a policy. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "api/compat/policy_translation.h"
#include "operator/definitions.h"
#include "operator/driver/rollout_plan.h"
#include "operator/effective_spec.h"
#include "operator/fleet_state.h"

namespace penstock::cluster {

/// What the operator knows of the cluster.
struct ClusterFacts {
  std::string namespace_name;
  AgentsState agents;
  FleetState fleet;                            ///< the nodes whose labels show devices
  FleetState all_accelerators;                 ///< with those that report devices of other vendors
  std::map<std::string, VendorNodes> vendors;  ///< of those that kinds of policies name
  std::vector<DriverOutcome> drivers;
  bool reports_expected = true;  ///< agents write NodeStates
  std::int64_t reports = 0;      ///< number of NodeStates
  bool complete = false;         ///< everything was read at least once
  bool written = false;          ///< the objects are as the policies want them
  /// Of the policies when that was so last, by uid.
  std::map<std::string, nlohmann::json> generations_written;
  std::vector<std::string> problems;  ///< what prevents the operator from writing
  /// What a replaced operator has left and is none of `problems`, with the remedy, else an empty
  /// text; null: not known yet.
  std::optional<std::string> operands_left;
  /// The definitions that are used as they were found, by name; null: not all were read yet.
  std::optional<std::map<std::string, KeptDefinition>> definitions;
};

/// A policy's state, with what its Event says.
struct PolicyState {
  std::string state;   ///< "ready", "notReady", "ignored"
  std::string reason;  ///< of the conditions Ready and Error, as the vendor's operator has them
  std::string message;
  bool error = false;
  /// The message of FieldsServed, if that is False, and else an empty text; null: not known.
  std::optional<std::string> fields = {};
  std::vector<std::string> not_served = {};  ///< its sentences about fields without an effect
  /// The message of DefinitionsApplied, if that is False, and else an empty text; null: not known.
  std::optional<std::string> definitions = {};
  /// Likewise of OperandsReplaced.
  std::optional<std::string> operands_left = {};
};
/// `found`: the object's status as it is. A policy is not ready before what it wants was written
/// once, even if all that was there before it is.
PolicyState StateOf(const PolicyOutcome& outcome, const ClusterFacts& facts,
                    const nlohmann::json& found);

/// The whole status; times of conditions that did not change are those of `found`. `now`: RFC 3339
/// with seconds. At most 64 KiB. A generation counts as observed once what it wants was written, so
/// that `kubectl wait` after a change waits for it. Of a kind with a vendor it has the fields of
/// that vendor's operator: numbers of nodes for each component.
nlohmann::json StatusOf(const PolicyOutcome& outcome, const ClusterFacts& facts,
                        const nlohmann::json& found, const std::string& now);

/// Before it was computed what follows from the policies, because of `problems`; empty without any.
/// Of the status, what is known no better stays as it is in `found`.
PolicyState StateOfUndecided(const std::vector<std::string>& problems);
nlohmann::json StatusOfUndecided(const PolicyObject& policy,
                                 const std::vector<std::string>& problems,
                                 const nlohmann::json& found, const std::string& now);

/// The status of a policy that is being deleted. `left`: what it caused and is still there.
nlohmann::json StatusOfDeleted(const PolicyObject& policy, const std::vector<std::string>& left,
                               const nlohmann::json& found, const std::string& now);

}  // namespace penstock::cluster
