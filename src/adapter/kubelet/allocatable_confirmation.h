// Asks the kubelet until it has the device list that it was offered. Reports only what the kubelet
// answers.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "base/executor.h"

namespace penstock::adapter::kubelet {

/// What the kubelet counts of a resource, as it will report it on the Node object.
struct KubeletAmount {
  std::size_t capacity = 0, allocatable = 0;
  bool operator==(const KubeletAmount&) const = default;
};
using KubeletAmounts = std::map<std::string, KubeletAmount>;  ///< by resource

/// Use on one executor. Asks after 5, 20, 50 and 100 ms and then every 200 ms, until the kubelet's
/// own list agrees or 2 s have passed; after that the kubelet's next periodic update must do.
class AllocatableConfirmation {
 public:
  /// Resource → ids of its healthy devices: PodResources::GetAllocatable.
  using Answer = base::Result<std::map<std::string, std::vector<std::string>>>;
  using Query = std::function<void(std::function<void(Answer)>)>;

  /// What was offered of one resource.
  struct Offered {
    std::size_t all = 0;
    std::vector<std::string> usable;  ///< ids, sorted
    bool operator==(const Offered&) const = default;
  };

  /// `agrees` is called each time the kubelet has the last offer, even if it equals the one before.
  AllocatableConfirmation(base::Executor& executor, Query query,
                          std::function<void(const KubeletAmounts&)> agrees);
  ~AllocatableConfirmation();

  /// Takes all resources that plugins of ours serve, including those without devices left, but none
  /// that other plugins serve.
  void Expect(std::map<std::string, Offered> offered);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::adapter::kubelet
