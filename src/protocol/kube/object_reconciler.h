// Keeps one object on the API server in its desired state: reads it and applies it where it
// differs.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "protocol/kube/api.h"

namespace penstock::protocol::kube {

/// Interval of rereading our own objects.
inline constexpr base::Duration kRereadInterval = std::chrono::minutes(10);

/// Use on the executor of `api`. One call at a time: call Reconcile again only after the last one
/// ended.
class ObjectReconciler {
 public:
  struct Options {
    Resource resource;
    std::string namespace_name, name;
    /// JSON pointer to the part that is ours as a whole: "/status". Of the rest (metadata), only
    /// the fields that we set are compared.
    std::string content;
    std::string manager = "penstock";  ///< field manager
  };
  ObjectReconciler(Api& api, Options options);
  ~ObjectReconciler();

  /// Applies the object that `wanted` returns (null: nothing yet). Reads the object first at the
  /// first call and again after kRereadInterval; `wanted` gets the object as last read (null: there
  /// is none). kNotFound: the server does not have this kind.
  void Reconcile(std::function<nlohmann::json(const nlohmann::json* found)> wanted,
                 std::function<void(base::Status)> done);

  bool has_read() const;
  /// Whether the last desired object is on the server.
  bool there() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::protocol::kube
