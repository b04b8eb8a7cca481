// Keeps a list of objects up to date with a watch, within limits of number and size. Reads only the
// metadata of an object.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "protocol/kube/api.h"
#include "protocol/kube/watch.h"

namespace penstock::protocol::kube {

/// Use on the api's executor. Starts with a streaming list (sendInitialEvents) if the server
/// supports it, else with a list in pages and a watch from its resourceVersion. Continues from the
/// last bookmark after a break. Lists again after 410, at a random time within `spread`, so that a
/// thousand informers do not list at once. After a break it waits a random time, at first within
/// `spread`, then longer; a watch that ended at its requested timeout is renewed at once. Handlers
/// may call everything, including the informer's destructor.
class Informer {
 public:
  struct Options {
    Resource resource;
    std::string namespace_name;  ///< empty: all namespaces, or not namespaced
    /// Objects have only their metadata, if the server can omit the rest.
    bool metadata_only = false;
    std::string field_selector, label_selector;
    /// JSON pointers of what is not kept, besides metadata.managedFields.
    std::vector<std::string> without;
    /// Whether `reduce` sees these: they are as large as all the rest.
    ManagedFields managed_fields = ManagedFields::kLeftOut;
    /// Returns what is kept of an object and passed to the handlers: where that is the same as
    /// before, nothing is called. Empty: all of it. Leaves metadata.name and namespace in it.
    std::function<Json(const Json& object)> reduce;
    /// Objects are kept as text, in a quarter of the memory: for many, which are seldom looked up.
    bool packed = false;
    /// More are an error, reported through `problem` until the next list; the known ones stay.
    std::size_t most_objects = 20'000;
    std::size_t most_bytes = 256u << 20;                 ///< of all objects as text
    base::Duration watch_for = std::chrono::minutes(8);  ///< timeoutSeconds, times a random 1 to 2
    /// Maximum of the random delay of the first retry after a break, or of a new list.
    base::Duration spread = std::chrono::seconds(5);
  };
  struct Handlers {
    std::function<void(const Json& object)> changed;  ///< also for each object of the first list
    std::function<void(const std::string& namespace_name, const std::string& name)> removed;
    std::function<void()> synced;  ///< once, after the first complete list
    /// Ok once it is over; a second error is only reported if its code differs.
    std::function<void(const base::Status& why)> problem;
  };

  Informer(Api& api, Options options, Handlers handlers);
  ~Informer();

  void Start();

  /// An object, whole, as the server has answered a request for it. If the watch has not shown it
  /// as new yet, it counts as shown: `changed` is called, and earlier versions that the watch has
  /// yet to show are left out, until the next list. False: a newer one is known, or it is not known
  /// at all, or there is no room for it.
  bool Learn(const Json& object);

  /// The object as last seen, or null. `packed`: parses it, some 10 µs.
  std::shared_ptr<const Json> Find(const std::string& namespace_name,
                                   const std::string& name) const;
  /// Its resourceVersion as last seen; empty: it is not known.
  std::string VersionOf(const std::string& namespace_name, const std::string& name) const;
  std::size_t size() const;
  std::size_t bytes() const;
  bool synced() const;
  /// False: since the last list there were more than there is room for.
  bool complete() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::protocol::kube
