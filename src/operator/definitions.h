// Applies the definitions of our resources (CRDs), and waits until the server serves them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "protocol/kube/api.h"
#include "protocol/kube/reconcile_loop.h"

namespace penstock::cluster {

/// Use on the api's executor. Adds a task for each definition to `work`, which must outlive this.
/// A definition that a later release of the operator has applied is left as it is, and so is that
/// of another operator that may serve objects of the kind beside this one (foreign_finalizer).
class Definitions {
 public:
  /// `established` is called with a name ("penstocks.penstock.io") once the server serves it.
  Definitions(protocol::kube::Api& api, protocol::kube::ReconcileLoop& work,
              std::vector<nlohmann::json> definitions,
              std::function<void(const std::string& name)> established);
  ~Definitions();

  void Start();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// The definition as it is applied: with its hash, and the operator's version.
nlohmann::json Completed(nlohmann::json definition);

/// Whether a found definition was applied by a later release.
bool IsLater(const nlohmann::json& found, const std::string& version);

}  // namespace penstock::cluster
