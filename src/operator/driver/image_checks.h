// Carries out the checks of images (image_check.h): creates their pods, and removes each as soon as
// its answer is known.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "operator/driver/image_check.h"
#include "protocol/kube/api.h"

namespace penstock::cluster {

/// Use on the api's executor. One pod at a time for each check, on one of its nodes; one that does
/// not answer within half an hour is replaced by one on another node. An image that cannot be
/// pulled keeps its pod, whose kubelet tries again. At most twenty pods, four of them without an
/// answer, and no two are created within five seconds: nodes decide about what is asked for, and
/// some may be hostile. What was asked for first comes first.
class ImageChecks {
 public:
  struct Callbacks {
    std::function<void()> due;  ///< call Want again: answers() differ, or there is something to do
    std::function<void(base::Duration)> due_after;    ///< likewise, then
    std::function<void(nlohmann::json& object)> own;  ///< sets the owner of an object
  };
  ImageChecks(protocol::kube::Api& api, Callbacks callbacks);
  ~ImageChecks();

  /// Sets the checks, by their names, whose pods are in a namespace, and does what is to be done.
  /// What is known of others is forgotten, and their pods are deleted.
  void Want(const std::string& namespace_name, const std::map<std::string, ImageCheck>& checks);

  const std::map<std::string, ImageAnswer>& answers() const;
  /// Whether there are no pods, or it was not necessary yet to look for them.
  bool settled() const;
  std::uint64_t writes() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::cluster
