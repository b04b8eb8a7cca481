// One object of ours on the API server, kept as it is wanted: looked at, and applied where it differs. Knows nothing of what is in it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "base/core/result.h"
#include "edge/kube/api.h"

namespace penstock::door {

/// On the api's executor. One call at a time: Bring again once the last has ended.
class ClusterObject {
 public:
  struct Options {
    edge::kube::Resource resource;
    std::string namespace_name, name;
    std::string content;  ///< JSON pointer of what is ours whole: "/status"; of the rest, metadata, only what we say is compared
  };
  ClusterObject(edge::kube::Api& api, Options options);
  ~ClusterObject();

  /// Brings about what `wanted` answers (null: nothing yet). It is asked after the object was looked at, which happens the first time and
  /// again after ten minutes, with the object as it was found then (null: there is none). kNotFound: there is no such kind on this server.
  void Bring(std::function<nlohmann::json(const nlohmann::json* found)> wanted, std::function<void(base::Status)> done);

  bool looked() const;
  /// Whether what was wanted last is there.
  bool there() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::door
