// Keeps the objects of one kind as they are wanted: writes those that differ, and deletes those of
// the operator that are not wanted any more.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "operator/manifests.h"
#include "protocol/kube/api.h"

namespace penstock::cluster {

/// Use on the api's executor. Watches the objects with the operator's label.
class OwnedObjects {
 public:
  struct Callbacks {
    std::function<void()> changed;  ///< there may be work for Reconcile, or the state has changed
    std::function<void(base::Duration)> due_after;  ///< there will be: for Reconcile, or the state
    /// What prevents reading; ok once that is over.
    std::function<void(const base::Status& why)> problem;
  };
  OwnedObjects(protocol::kube::Api& api, const OwnedKind& kind, std::string namespace_name,
               Callbacks callbacks);
  ~OwnedObjects();

  void Start();
  bool started() const;
  bool missing() const;  ///< the cluster does not have the kind, which it need not have

  /// Sets the objects that are wanted, by name; Reconcile then does the rest. `keep`: whether an
  /// object that is not wanted stays as it is; empty: none does. `owner`: the uid of the policy
  /// that owns what is wanted; what is kept does not go with another one. Empty: there is none.
  void Want(std::map<std::string, nlohmann::json> objects,
            std::function<bool(const nlohmann::json& object)> keep = {}, std::string owner = {});

  /// A DaemonSet that is not wanted then goes without its pods: nodes that do not respond would
  /// hold it. It also does after a minute, unless it is that of a driver.
  void LetGo(const std::string& name);

  /// Sets the uids of the policies. Of the kinds of which OwnedKind::leaves_others, an object
  /// without the operator's label is written where a policy controls it, as the operator made it
  /// that this one replaces, or where it has fields of this one. Others stay, and are problems().
  void SetPolicies(std::set<std::string> uids);

  /// Writes and deletes what differs, one object after another, each at most once. Answers with the
  /// first error; the other objects are still tried. One call at a time.
  void Reconcile(std::function<void(base::Status)> done);

  /// Whether everything is as wanted: what is being deleted counts as gone after a minute, since a
  /// node that does not respond keeps its pod.
  bool agrees() const;
  /// Whether it is known what there is and what is wanted.
  bool known() const;
  /// The kinds and names of the objects that are there and not as wanted; empty before everything
  /// was read. What is not written because someone else has an object of the name is not among
  /// them. `policy`: the uid of one that is to go; what would go with it is among them.
  std::vector<std::string> left(const std::string& policy = {}) const;

  /// As last seen, or null.
  const nlohmann::json* Find(const std::string& name) const;
  std::uint64_t writes() const;
  /// The objects whose content another program takes back again and again, and those of someone
  /// else that have the name of a wanted one.
  std::vector<std::string> problems() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::cluster
