// An API server in this process, for tests and benches of whoever speaks through Api: objects, watches, server-side apply, and its faults.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "edge/kube/api.h"

namespace penstock::edge::kube {

/// How a server answers watches that ask for a streaming list.
enum class StreamingLists {
  kYes,
  kInvalid,     ///< 422, as before 1.27 or with the feature off
  kErrorEvent,  ///< an ERROR event as first line: Kubernetes 1.36 over etcd 3.4
  kIgnored,     ///< as a server that does not know the parameter: no initial events, no bookmark for their end
};

/// What goes wrong with calls. `method` is an HTTP method, or "WATCH"; empty: every one. `path` is how the path begins.
struct Fault {
  int status = 500;  ///< 0: no connection
  int times = 1;     ///< -1: until Heal
  std::string method, path;
  std::string reason;           ///< of the Status; empty: what fits
  bool after_the_deed = false;  ///< what was asked is done, only the answer is lost
};

/// Behaves as a real API server does towards one client, in the order of calls: each is carried out and answered by a function posted to
/// the executor. Objects given to a LIST have no kind, watches show managedFields, resourceVersions rise with every write. What it answers
/// to requests that our programs send is compared with a kube-apiserver (tests/contract); others it does not know. On the executor's
/// thread (with ManualExecutor: the test's).
class FakeApi final : public Api {
 public:
  explicit FakeApi(base::Executor& executor);
  ~FakeApi() override;

  base::Executor& executor() override;
  void Do(Call call, Done done) override;
  std::unique_ptr<Stream> Open(Call call, std::function<void(std::string_view)> line, std::function<void(base::Status)> end) override;

  // What others do. Paths are those of objects: "/api/v1/nodes/n1", "/api/v1/namespaces/x/configmaps/y".
  /// Makes the object or replaces it, status included; metadata.name comes from the path.
  void Put(const std::string& path, const Json& object, const std::string& manager = "someone");
  /// Merge patch of the whole object, status included.
  void Merge(const std::string& path, const Json& patch, const std::string& manager = "someone");
  void Remove(const std::string& path);
  /// Null where there is none. Valid until the next write.
  const Json* Find(const std::string& path) const;
  /// Managers of a leaf, by JSON pointer ("/metadata/labels/a~1b"; an element of conditions: "/status/conditions/k:Ready/status").
  std::vector<std::string> ManagersOf(const std::string& path, const std::string& pointer) const;

  // Faults.
  void Fail(Fault fault);
  void FailNext(int status, int times = 1) { Fail({.status = status, .times = times}); }
  /// 403 with the words of the real one, until Heal.
  void Forbid(const std::string& method, const std::string& path) { Fail({.status = 403, .times = -1, .method = method, .path = path}); }
  /// 404 without a Status for all of it, as where a CRD is not installed, until Heal.
  void NotInstalled(const std::string& path) { Fail({.status = 404, .times = -1, .path = path}); }
  void Heal();
  /// Every stream breaks, every call that is not answered yet, too.
  void Disconnect();
  /// Disconnect, and nobody answers until SetUp(true). Objects stay.
  void SetUp(bool up);
  /// Every call is taken and none is answered: they end at their deadlines. Streams stay silent.
  void SetSilent(bool silent);
  /// Versions until now are compacted: watches from them and continue tokens are expired (410). Open streams do not notice.
  void ForgetHistory();
  void SetStreamingLists(StreamingLists streaming_lists);
  void SetDelay(base::Duration delay);  ///< of every answer
  /// Others write elsewhere: the version rises and streams that allow it get a bookmark.
  void Bookmark();
  /// A line as it is, to every stream under a path.
  void SendLine(const std::string& path, const std::string& line);
  /// Every stream ends as the server ends one in peace (timeoutSeconds).
  void EndStreams();

  // What was asked. Verbs: get list watch create update patch apply delete.
  std::uint64_t Count(std::string_view verb) const;
  std::uint64_t Writes() const;
  std::uint64_t Requests() const;
  std::size_t OpenStreams() const;
  const std::vector<Call>& calls() const;
  void ForgetCalls();  ///< counts included

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::edge::kube
