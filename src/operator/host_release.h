// Takes back what agents left on their nodes' hosts, once no policy is wanted any more: by a
// DaemonSet of pods where agents are or were (HostReleaseOf). Decides how it stands; its objects
// are written as the other ones are.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operator/manifests.h"
#include "protocol/kube/api.h"

namespace penstock::cluster {

/// Use on the api's executor.
class HostRelease {
 public:
  struct Callbacks {
    std::function<void()> changed;                         ///< left()
    std::function<void(base::Duration)> due_after;         ///< Look() is due then
    std::function<void(const base::Status& why)> problem;  ///< of reading; ok once it is over
  };
  HostRelease(protocol::kube::Api& api, std::string namespace_name, Callbacks callbacks);
  ~HostRelease();

  /// Nothing is wanted any more, and `agents` nodes had an agent; empty: that is not known, since
  /// their DaemonSet is gone, or not seen yet. What is known first counts, and nothing once it has
  /// begun.
  void Want(std::optional<std::int64_t> agents);
  void Forget();  ///< a policy is in force again
  bool wanted() const;

  /// The pods may start. Without objects there is nothing to do.
  void Begin(std::vector<WantedObject> objects);
  bool begun() const;
  /// What is to be there: empty, unless it has begun and is not over.
  const std::vector<WantedObject>& objects() const;

  /// Looks at the DaemonSet; null: it is not there. `is_refused`: nor does the server take it.
  /// `nodes`: of the cluster, where that is known: one that leaves it meanwhile is not waited for.
  /// True where this ends it: all nodes have done it, or those that have not are given up.
  bool Look(const nlohmann::json* daemon_set, bool is_refused, std::optional<std::int64_t> nodes);
  bool over() const;

  /// What is to be done, for people, with why; empty: nothing.
  std::string left() const;
  /// What was done and where not, with what to do there; empty: nothing.
  std::string taken_back() const;
  bool has_given_up() const;  ///< some hosts, which taken_back() says

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::cluster
