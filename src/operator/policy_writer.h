// Writes what concerns the policies themselves: their status, an Event for each change of state, of
// an error, of the fields that are not served, of the definitions that stay as they were found and
// of what a replaced operator has left, and the finalizer that holds a deleted policy until what it
// caused was taken back. One that another program removes is written ever more rarely.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "operator/effective_spec.h"
#include "operator/policy_status.h"
#include "protocol/kube/api.h"

namespace penstock::cluster {

/// What was taken back of nodes.
struct TakenBackOfNodes {
  std::string text;           ///< in words; empty: nothing
  bool has_given_up = false;  ///< some, which the text names
};

/// Use on the api's executor. Writes each status at most once a second, and only where it differs.
/// To an object that belongs to another operator (IsForeign) it writes nothing, and an Event says
/// so: only a finalizer of ours that it has is removed, once that can be done.
class PolicyWriter {
 public:
  struct Callbacks {
    /// Whether a policy has to be held, once deleted, until what it caused was taken back.
    std::function<bool(const PolicyObject& policy)> holds;
    /// The policy as last seen; null: it is gone.
    std::function<const PolicyObject*(const std::string& key)> find;
    /// The status that it should have; null: none.
    std::function<nlohmann::json(const PolicyObject& policy, const nlohmann::json& found,
                                 const std::string& now)>
        status;
    /// Without a text: not known.
    std::function<PolicyState(const PolicyObject& policy, const nlohmann::json& found)> state;
    /// What deleted policies caused and is still there, and is no other policy's.
    std::function<std::vector<std::string>(const std::string& key)> left;
    std::function<TakenBackOfNodes()> taken_back;
    std::function<void()> changed;  ///< problems()
  };
  PolicyWriter(protocol::kube::Api& api, const std::string& host, Callbacks callbacks);
  ~PolicyWriter();

  /// There may be something to write.
  void Soon(const std::string& key);
  /// Drops what is remembered of policies with other keys than these: they are gone.
  void ForgetOthers(const std::set<std::string>& keys);
  std::size_t remembered() const;  ///< policies of which something is
  std::uint64_t writes() const;
  /// Of finalizers that another program removes again and again, with the remedy.
  std::vector<std::string> problems() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// "clusterpolicies/cluster-policy", or with the namespace: "deviceconfigs/gpu-operator/default".
std::string KeyOf(const PolicyObject& policy);
std::string KeyOf(const api::compat::PolicyKind& kind, const std::string& namespace_name,
                  const std::string& name);

}  // namespace penstock::cluster
