// The operator: keeps the cluster as its policies ask for. Level-triggered: each change of an
// object only says that there may be work.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operator/effective_spec.h"
#include "operator/manifests.h"
#include "operator/policy_status.h"
#include "protocol/kube/api.h"

namespace penstock::cluster {

/// Use on the api's executor. There is one in the cluster that acts: create it where leadership
/// begins, and destroy it where that ends.
class Operator {
 public:
  struct Options {
    Installation installation;
    AgentRights agent_rights = {};
    api::ConfigTerms terms = {};  ///< of the vendors, for reading policies
    bool apply_definitions = true;
    std::string host;  ///< this process, in Events
  };
  Operator(protocol::kube::Api& api, Options options);
  ~Operator();

  void Start();

  /// How a policy stands.
  struct PolicyNumbers {
    std::string kind, name;  ///< "ClusterPolicy"
    bool ready = false;
  };
  /// The comparisons of everything with what is wanted, since leadership began.
  struct Passes {
    std::uint64_t all = 0, failed = 0;
    bool last_failed = false;                 ///< something could not be read or written
    bool last_ready = false;                  ///< and all policies are
    std::optional<base::WallTime> succeeded;  ///< when they were last; now, while they are
  };
  struct Numbers {
    std::size_t policies = 0, nodes = 0;
    std::size_t device_nodes = 0;  ///< those whose labels show devices, as a ClusterPolicy counts
    std::vector<PolicyNumbers> policy_states;  ///< of those that take effect, and of NVIDIADrivers
    Passes passes;
    std::vector<DriverOutcome> drivers;
    bool automatic_upgrades = false;  ///< of a driver
    FleetState fleet;
    AgentsState agents;
    /// Writes since leadership began, by what was written: "node", "status", "object".
    std::map<std::string, std::uint64_t> writes;
    std::size_t problems = 0;
  };
  Numbers numbers() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::cluster
