// libcurl's multi interface on our loop: sockets are the loop's watches, its time-out the loop's timer. Knows no HTTP.
#pragma once

#include <functional>
#include <memory>

#include "edge/kube/curl_library.h"
#include "os/loop.h"

namespace penstock::edge::kube {

/// Transfers that share a cache of connections. On the loop's thread. Nothing of ours runs inside libcurl but the easy handles' own
/// callbacks, which may call nothing here; `progress` runs after it returned, and may call everything, destroying this included.
class CurlMulti {
 public:
  struct Limits {
    long connections_kept = 1;  ///< idle ones
    long connections_most = 0;  ///< at once; transfers beyond wait; 0: no limit
  };
  CurlMulti(os::Loop& loop, const CurlLibrary& curl, Limits limits, std::function<void()> progress);
  ~CurlMulti();  ///< every handle was removed before
  CurlMulti(const CurlMulti&) = delete;
  CurlMulti& operator=(const CurlMulti&) = delete;

  void Add(CURL* handle);
  void Remove(CURL* handle);

  /// The next transfer that has ended, or null. Remove it.
  CURL* NextDone(CURLcode& code);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::edge::kube
