// A list that is kept true by a watch, within bounds. Interprets no object beyond its metadata.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "edge/kube/api.h"

namespace penstock::edge::kube {

/// On the api's executor. Starts with a streaming list (sendInitialEvents) where the server has it, else with a list in pages and a watch
/// from its resourceVersion; goes on from the last bookmark after a break; lists anew after 410, at a random moment within `spread`, so
/// that a thousand of us do not come at once. After a break it waits at random, at first within `spread`, then longer; a watch that ended
/// at the time it asked for is renewed at once. Handlers may do everything, destroying the informer included.
class Informer {
 public:
  struct Options {
    Resource resource;
    std::string namespace_name;  ///< empty: all, or not namespaced
    bool metadata_only = false;  ///< objects have their metadata alone, where the server can leave the rest out
    std::string field_selector, label_selector;
    std::vector<std::string> without;                    ///< JSON pointers of what is not kept, beside metadata.managedFields
    std::size_t most_objects = 20'000;                   ///< more are an error told through `trouble` until the next list; those known stay
    std::size_t most_bytes = 256u << 20;                 ///< of all objects as text
    base::Duration watch_for = std::chrono::minutes(8);  ///< timeoutSeconds, times 1 to 2 by chance
    base::Duration spread = std::chrono::seconds(5);     ///< in it, at random, we come back after a break or list anew
  };
  struct Handlers {
    std::function<void(const Json& object)> changed;  ///< also for each object of the first list
    std::function<void(const std::string& namespace_name, const std::string& name)> removed;
    std::function<void()> synced;                          ///< once, after the first whole list
    std::function<void(const base::Status& why)> trouble;  ///< ok once it is over; one after another only where the code differs
  };

  Informer(Api& api, Options options, Handlers handlers);
  ~Informer();

  void Start();

  /// The object as it was last seen, or null. Valid until the next handler runs.
  const Json* Find(const std::string& namespace_name, const std::string& name) const;
  std::size_t size() const;
  std::size_t bytes() const;
  bool synced() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::edge::kube
