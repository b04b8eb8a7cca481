// Runs libcurl's multi interface on our loop: the loop watches its sockets, and its timeout is a
// timer of the loop.
#pragma once

#include <functional>
#include <memory>

#include "os/loop.h"
#include "protocol/net/curl_library.h"

namespace penstock::protocol::net {

/// Transfers that share a cache of connections. Use on the loop's thread. Of our code, only the
/// easy handles' own callbacks run inside libcurl, and they must call nothing here. `progress` runs
/// after libcurl returned and may call everything, including this destructor.
class CurlMulti {
 public:
  struct Limits {
    long connections_kept = 1;  ///< idle connections
    long connections_most = 0;  ///< concurrent ones; further transfers wait; 0: no limit
  };
  CurlMulti(os::Loop& loop, const CurlLibrary& curl, Limits limits, std::function<void()> progress);
  ~CurlMulti();  ///< every handle must be removed before
  CurlMulti(const CurlMulti&) = delete;
  CurlMulti& operator=(const CurlMulti&) = delete;

  void Add(CURL* handle);
  void Remove(CURL* handle);

  /// The next transfer that has ended, or null. The caller must remove it.
  CURL* NextDone(CURLcode& code);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::protocol::net
