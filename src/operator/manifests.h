// Computes the objects that the operator wants in the cluster from what is wanted of its
// accelerators. Pure.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "api/cluster/penstock.h"
#include "base/core/result.h"
#include "operator/effective_spec.h"
#include "protocol/kube/api.h"

namespace penstock::cluster {

/// A kind of objects that the operator writes.
struct OwnedKind {
  protocol::kube::Resource resource;
  std::string kind;
  bool namespaced = true;
  bool may_be_missing = false;  ///< not every cluster has it
  /// Policies choose the names, and others make such objects in the same namespace, too: one that
  /// someone else made stays as it is.
  bool leaves_others = false;
};

/// In the order in which their objects are written: the agents' pods need those before them.
const std::vector<OwnedKind>& OwnedKinds();

/// Where and by whom the objects are written.
struct Installation {
  std::string namespace_name;
  /// Of the agents, where the policy names none, and of the pods that take back what they left: the
  /// operator's own.
  std::string image;
  std::string pull_policy = "IfNotPresent";
  std::vector<std::string> pull_secrets;  ///< besides the policy's
  std::string service_account = "penstock";
};

struct WantedObject {
  const OwnedKind* kind = nullptr;
  nlohmann::json object;  ///< with the hash of its content (kAppliedHash)
};

/// All objects that `spec` asks for. kInvalidArgument: a part of it that the API server's schema
/// does not check makes no object (a list of volumes that is no list); all of them at once.
base::Result<std::vector<WantedObject>> ObjectsOf(const api::PenstockSpec& spec,
                                                  const Installation& installation,
                                                  const PolicyName& owner);

/// Makes a policy the owner of an object, which goes with it.
void SetOwner(nlohmann::json& object, const PolicyName& owner);

/// A DaemonSet of a driver (driver/driver_daemon_set.h) with what all our objects have.
WantedObject OwnedDriverSet(nlohmann::json daemon_set, const Installation& installation,
                            const PolicyName& owner);
/// Whether a DaemonSet is one of these.
bool IsDriverSet(const nlohmann::json& daemon_set);

/// The DaemonSet of the agents, made from the embedded one; the parts of ObjectsOf.
base::Result<nlohmann::json> AgentDaemonSet(const api::PenstockSpec& spec,
                                            const Installation& installation,
                                            const std::string& configuration);
/// What takes back what agents left on their hosts, of which `spec` was the last: a DaemonSet of
/// pods that, in the installation's image, do what `penstock cleanup --host --keep-state` does, and
/// are ready once it is done, and its ConfigMap. They run where `spec` selects, and on the nodes
/// that have had an agent; where that is not known, on all. No policy owns these objects: they are
/// there while it is deleted, also by someone who deletes first what it owns. Errors as ObjectsOf.
base::Result<std::vector<WantedObject>> HostReleaseOf(const api::PenstockSpec& spec,
                                                      const Installation& installation,
                                                      const std::set<std::string>& had_agents);
/// The DaemonSet of these pods, with `labels`; made from that of the agents, without what may have
/// been deleted together with the policy.
base::Result<nlohmann::json> HostReleaseSet(const api::PenstockSpec& spec,
                                            const Installation& installation,
                                            const std::string& configuration,
                                            const std::map<std::string, std::string>& labels,
                                            const std::set<std::string>& had_agents);

nlohmann::json ServiceOf(const api::MetricsService& service);
nlohmann::json MonitorOf(const api::MetricsService& service, const std::string& namespace_name);

/// The labels that select the agents' pods.
const std::map<std::string, std::string>& AgentLabels();

/// What the operator's namespace is labelled with, so that it may have privileged pods.
std::map<std::string, std::string> PrivilegedLabels(const api::PenstockSpec& spec);

}  // namespace penstock::cluster
