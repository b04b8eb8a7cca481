// Implements Api over HTTP/1.1 and TLS with libcurl, for any kind of object.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "os/loop.h"
#include "protocol/kube/api.h"
#include "protocol/kube/credentials/access.h"

namespace penstock::protocol::kube {

/// Requests to the server since the start, by verb: for metrics and for the table that the
/// end-to-end tests print.
struct Requests {
  std::uint64_t reads = 0, writes = 0, streams = 0, retries = 0, failures = 0;
};

/// Use and destroy on the loop's thread. Has one connection for calls and one for each stream, with
/// TCP keep-alive and TCP_USER_TIMEOUT. Retries 429 and 503 with Retry-After within the deadline,
/// and a 401 once with fresh credentials. Reads certificates and tokens again when their files
/// change, a token file at least once a minute (as client-go does); runs exec plugins again before
/// their credential expires.
class Client final : public Api {
 public:
  struct Options {
    std::string user_agent = "penstock";
    /// TCP_USER_TIMEOUT, and twice the keep-alive's idle time.
    base::Duration silent_peer = std::chrono::seconds(20);
  };
  Client(os::Loop& loop, ClusterAccess access, Options options);
  Client(os::Loop& loop, ClusterAccess access) : Client(loop, std::move(access), Options{}) {}
  ~Client() override;

  base::Executor& executor() override;
  void Do(ApiCall call, Done done) override;
  std::unique_ptr<WatchStream> Open(ApiCall call, std::function<void(std::string_view)> line,
                                    std::function<void(base::Status)> end) override;

  const Requests& requests() const;
  const ClusterAccess& access() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// Makes one call and waits for its answer, on a loop of its own: for command-line tools.
base::Result<ApiResponse> CallAndWait(const ClusterAccess& access, ApiCall call);

}  // namespace penstock::protocol::kube
