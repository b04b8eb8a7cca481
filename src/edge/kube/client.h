// The API server over HTTP/1.1 and TLS, by libcurl. Knows no kind of object.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "edge/kube/access.h"
#include "edge/kube/api.h"
#include "os/loop.h"

namespace penstock::edge::kube {

/// What was asked of the server since the start, by verb: for metrics and for the table that the end-to-end tests print.
struct Requests {
  std::uint64_t reads = 0, writes = 0, streams = 0, retries = 0, failures = 0;
};

/// On the loop's thread, destruction included. One connection for calls, one for each stream; TCP keep-alive and TCP_USER_TIMEOUT. 429 and
/// 503 with Retry-After are asked again in time, a 401 once with fresh credentials. Certificates and tokens are read again when their files
/// change; a token file at least once a minute (client-go does so); exec plugins run again before their credential expires.
class Client final : public Api {
 public:
  struct Options {
    std::string user_agent = "penstock";
    base::Duration silent_peer = std::chrono::seconds(20);  ///< TCP_USER_TIMEOUT, and twice the keep-alive's idle time
  };
  Client(os::Loop& loop, Access access, Options options);
  Client(os::Loop& loop, Access access) : Client(loop, std::move(access), Options{}) {}
  ~Client() override;

  base::Executor& executor() override;
  void Do(Call call, Done done) override;
  std::unique_ptr<Stream> Open(Call call, std::function<void(std::string_view)> line, std::function<void(base::Status)> end) override;

  const Requests& requests() const;
  const Access& access() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// Makes one call and waits for it, on a loop of its own: for command line tools.
base::Result<Answer> CallAndWait(const Access& access, Call call);

}  // namespace penstock::edge::kube
