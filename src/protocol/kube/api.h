// Interface to an API server, for the rest of this folder and the adapters: calls that answer
// later, and streams. Client implements it over HTTP.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "base/core/result.h"
#include "base/executor.h"

namespace penstock::protocol::kube {

using Json = nlohmann::json;

/// A kind of object as its URL names it: {"apps", "v1", "daemonsets"}; the core group is "".
struct Resource {
  std::string group, version, plural;

  /// "/api/v1/nodes/n1/status", "/apis/penstock.io/v1alpha1/nodestates/n1",
  /// "/api/v1/namespaces/x/configmaps".
  std::string Path(std::string_view namespace_name = "", std::string_view name = "",
                   std::string_view subresource = "") const;
};

struct ApiCall {
  std::string method = "GET";
  std::string path;                          ///< Resource::Path
  std::map<std::string, std::string> query;  ///< values are not escaped yet
  std::string content_type;                  ///< of the body
  std::string accept;  ///< content types of the answer; empty: application/json
  std::string body;
  /// Of the whole call, including attempts after 429.
  base::Duration deadline = std::chrono::seconds(10);
};

struct ApiResponse {
  int status = 200;
  std::string body;
};

// `accept` for metadata only; a server that cannot omit the rest sends it (Kubernetes 1.15 and
// newer can). A server takes the first form that it knows, not the first that fits: a watch that
// accepts lists is answered without any event.
inline constexpr std::string_view kMetadataOfLists =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
inline constexpr std::string_view kMetadataOfEvents =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

// Content types of a PATCH.
inline constexpr std::string_view kApplyPatch = "application/apply-patch+yaml";
inline constexpr std::string_view kMergePatch = "application/merge-patch+json";
inline constexpr std::string_view kStrategicMergePatch = "application/strategic-merge-patch+json";

/// A GET whose answer arrives line by line. Its destructor ends it; nothing is called afterwards.
class WatchStream {
 public:
  virtual ~WatchStream() = default;
};

/// Use on one executor: calls are made on its thread and answered on it. Errors: 400 and 422
/// kInvalidArgument, 401 kUnauthenticated, 403 kPermissionDenied with the missing RBAC rule, 404
/// kNotFound, 409 kAborted (kAlreadyExists for AlreadyExists), 410 kOutOfRange, 429 after all
/// attempts kResourceExhausted, 5xx and no connection kUnavailable, 504 and no answer in time
/// kDeadlineExceeded, and a 403 since an owner's kind is not known yet kUnavailable.
class Api {
 public:
  using Done = std::function<void(base::Result<ApiResponse>)>;

  virtual ~Api() = default;
  virtual base::Executor& executor() = 0;

  /// Calls `done` once, never inside this call and never after the destructor.
  virtual void Do(ApiCall call, Done done) = 0;

  /// `line` gets each line without its end; `end` gets the reason: ok if the server closed a
  /// successful answer. The deadline of the call is that of the answer's first byte; a peer that is
  /// silent for longer than TCP allows ends the stream with kUnavailable.
  virtual std::unique_ptr<WatchStream> Open(ApiCall call,
                                            std::function<void(std::string_view)> line,
                                            std::function<void(base::Status)> end) = 0;
};

// Builders of common calls. `object` needs apiVersion, kind and metadata.name.

/// Server-side apply of the fields in `object` under a field manager; `force` takes over fields
/// that others manage.
ApiCall Apply(const Resource& resource, std::string_view namespace_name, const Json& object,
              std::string_view field_manager, bool force = true, std::string_view subresource = "");
ApiCall Get(const Resource& resource, std::string_view namespace_name, std::string_view name);
ApiCall Create(const Resource& resource, std::string_view namespace_name, const Json& object,
               std::string_view field_manager);
ApiCall Patch(const Resource& resource, std::string_view namespace_name, std::string_view name,
              std::string_view content_type, const Json& patch, std::string_view field_manager,
              std::string_view subresource = "");
/// `uid`: of the object; where another one has the name by now, it stays, and the answer is
/// kAborted. Empty: whichever has the name.
ApiCall Delete(const Resource& resource, std::string_view namespace_name, std::string_view name,
               std::string_view uid = "");

/// The answer's body as JSON; kDataLoss if it is not JSON.
base::Result<Json> Parse(const base::Result<ApiResponse>& answer);

}  // namespace penstock::protocol::kube
