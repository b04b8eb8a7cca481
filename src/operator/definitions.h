// Applies the definitions of our resources (CRDs), and waits until the server serves them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "protocol/kube/api.h"
#include "protocol/kube/reconcile_loop.h"

namespace penstock::cluster {

/// A definition that is used as it is found, although this operator has another one.
struct KeptDefinition {
  std::string why;  ///< with its version and a remedy, for people; empty: it is not kept
  /// False: it lacks the version that this operator reads, so that no object of the kind is read.
  bool served = true;
  bool operator==(const KeptDefinition&) const = default;
};

/// Use on the api's executor. Adds a task for each definition to `work`, which must outlive this.
/// What is found is used as it is where it is kept (KeptAs), and where the server refuses ours, or
/// refuses to show it: the task then has a problem, and the kinds of the other definitions are
/// served nevertheless. One that cannot be read counts as kept.
class Definitions {
 public:
  struct Callbacks {
    /// Called with a name ("penstocks.penstock.io") once the server serves it.
    std::function<void(const std::string& name)> established;
    std::function<void()> changed;  ///< of kept()
  };
  Definitions(protocol::kube::Api& api, protocol::kube::ReconcileLoop& work,
              std::vector<nlohmann::json> definitions, Callbacks callbacks);
  ~Definitions();

  void Start();

  /// By name; null until each of them was read once.
  const std::map<std::string, KeptDefinition>* kept() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// The definition as it is applied: with its hash, and the operator's version.
nlohmann::json Completed(nlohmann::json definition);

/// Whether what is found stays in place of `wanted`, a completed one: a later release of this
/// operator has applied it, or another operator that may serve objects of the kind beside this one
/// (foreign_finalizer), or it has objects stored in a version that `wanted` lacks, which a server
/// refuses to lose. Pure.
KeptDefinition KeptAs(const nlohmann::json& found, const nlohmann::json& wanted);

}  // namespace penstock::cluster
