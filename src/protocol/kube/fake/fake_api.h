// A fake API server in this process, for tests and benchmarks of code that uses Api: objects,
// watches, server-side apply, and faults.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/testing/manual_executor.h"
#include "protocol/kube/api.h"

namespace penstock::protocol::kube {

/// How the server answers watches that ask for a streaming list.
enum class StreamingLists {
  kYes,
  kInvalid,  ///< 422, as with the feature off (tests/contract)
  /// An ERROR event as the first line, as Kubernetes 1.36 over Debian 12's etcd 3.4 sent it
  /// (tests/e2e/cluster/README.md). The etcd of tests/contract is newer: no case has it.
  kErrorEvent,
  /// As a server that does not know the parameter: no initial events, no bookmark at their end.
  kIgnored,
};

/// A fault of calls. `method` is an HTTP method, or "WATCH"; empty: every method. `path` is a
/// prefix of the path.
struct Fault {
  int status = 500;  ///< 0: no connection
  int times = 1;     ///< -1: until Heal
  std::string method, path;
  std::string reason;           ///< of the Status; empty: the usual one for `status`
  std::string message;          ///< likewise
  bool after_the_deed = false;  ///< the request is carried out, only its answer is lost
};

/// Behaves like a real API server towards one client: carries out and answers calls in their order,
/// each in a function posted to the executor. Objects in a LIST have no kind, watches show
/// managedFields, and every write raises resourceVersion. Its answers to the requests that our
/// programs send are compared with those of a kube-apiserver (tests/contract); it does not know
/// other requests. A pod that is deleted ends at once, as does what a foreground deletion leaves:
/// watches show first the mark and then the end. Use on the executor's thread (with ManualExecutor:
/// the test's).
class FakeApi final : public Api {
 public:
  explicit FakeApi(base::Executor& executor);
  ~FakeApi() override;

  base::Executor& executor() override;
  void Do(ApiCall call, Done done) override;
  std::unique_ptr<WatchStream> Open(ApiCall call, std::function<void(std::string_view)> line,
                                    std::function<void(base::Status)> end) override;

  // Writes of other clients. Paths are those of objects: "/api/v1/nodes/n1",
  // "/api/v1/namespaces/x/configmaps/y".
  /// Creates or replaces the object, including its status; metadata.name comes from the path.
  void Put(const std::string& path, const Json& object, const std::string& manager = "someone");
  /// Merge patch of the whole object, including its status.
  void Merge(const std::string& path, const Json& patch, const std::string& manager = "someone");
  /// At once, whatever finalizers it has.
  void Remove(const std::string& path);
  /// Null if there is none. Valid until the next write.
  const Json* Find(const std::string& path) const;
  /// Managers of a leaf, by JSON pointer ("/metadata/labels/a~1b"; an element of conditions:
  /// "/status/conditions/k:Ready/status").
  std::vector<std::string> ManagersOf(const std::string& path, const std::string& pointer) const;

  // Faults.
  void Fail(Fault fault);
  void FailNext(int status, int times = 1) { Fail({.status = status, .times = times}); }
  /// 403 with the text of the real server, until Heal.
  void Forbid(const std::string& method, const std::string& path) {
    Fail({.status = 403, .times = -1, .method = method, .path = path});
  }
  /// 404 without a Status for everything under `path`, as if a CRD were not installed, until Heal.
  void NotInstalled(const std::string& path) { Fail({.status = 404, .times = -1, .path = path}); }
  /// Drops a field (JSON pointer) of all objects under `path`, a collection, in every write, as
  /// under a definition without it, until Heal.
  void Drop(const std::string& path, const std::string& pointer);
  void Heal();
  /// Breaks every stream and every call that is not answered yet.
  void Disconnect();
  /// False: disconnects, and answers nothing until SetUp(true). Objects stay.
  void SetUp(bool up);
  /// True: accepts every call and answers none, so that they end at their deadlines. Streams stay
  /// silent.
  void SetSilent(bool silent);
  /// Compacts all versions until now: watches from them and continue tokens are expired (410). Open
  /// streams are not affected.
  void ForgetHistory();
  void SetStreamingLists(StreamingLists streaming_lists);
  void SetDelay(base::Duration delay);  ///< of every answer
  /// Of answers to calls that are carried out at once, so that watches show their effect before.
  void SetLateAnswers(base::Duration late);
  /// Of what streams show, so that answers come before.
  void SetLateWatches(base::Duration late);
  /// As if others wrote other objects: the version rises, and streams that allow bookmarks get one.
  void Bookmark();
  /// Sends a line as it is to every stream under a path.
  void SendLine(const std::string& path, const std::string& line);
  /// Ends every stream as a server does after timeoutSeconds.
  void EndStreams();

  // Requests received. Verbs: get list watch create update patch apply delete.
  std::uint64_t Count(std::string_view verb) const;
  std::uint64_t Writes() const;
  std::uint64_t Requests() const;
  std::size_t OpenStreams() const;
  const std::vector<ApiCall>& calls() const;
  void ForgetCalls();  ///< also resets the counts

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::protocol::kube
