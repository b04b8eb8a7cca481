// Learns when the kubelet has the list that was offered to it, by asking it. Tells what the kubelet says and nothing else.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "base/executor.h"

namespace penstock::door {

/// What the kubelet counts of a resource, as it will say itself on the Node object.
struct KubeletAmount {
  std::size_t capacity = 0, allocatable = 0;
  bool operator==(const KubeletAmount&) const = default;
};
using KubeletAmounts = std::map<std::string, KubeletAmount>;  ///< by resource

/// On one executor. Asks after 5, 20, 50 and 100 ms and then every 200 ms, until the kubelet's own list agrees or two seconds have passed;
/// then the kubelet's next tick has to do.
class KubeletList {
 public:
  /// Resource → ids of the devices that are healthy: PodResources::GetAllocatable.
  using Answer = base::Result<std::map<std::string, std::vector<std::string>>>;
  using Ask = std::function<void(std::function<void(Answer)>)>;

  /// What was offered of one resource.
  struct Offered {
    std::size_t all = 0;
    std::vector<std::string> usable;  ///< ids, sorted
    bool operator==(const Offered&) const = default;
  };

  /// `agrees` is called each time the kubelet has what was offered last, also where it is what it had before.
  KubeletList(base::Executor& executor, Ask ask, std::function<void(const KubeletAmounts&)> agrees);
  ~KubeletList();

  /// Of all resources that a plugin of ours serves, those with nothing left in them included. What others serve is not ours to tell.
  void Expect(std::map<std::string, Offered> offered);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::door
