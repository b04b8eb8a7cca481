// Decides which requests are served at once and which wait. Works on numbers and addresses, without
// sockets. Private to protocol/http.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace penstock::protocol::http::internal {

/// First come, first served, but one address has at most three quarters of the places, so that a
/// single client cannot shut out the others.
class RequestQueue {
 public:
  explicit RequestQueue(std::size_t places);

  /// Returns whether the request is served now; else it waits for its turn.
  bool Begin(std::uint64_t request, const std::string& address);

  /// Ends a request, answered or abandoned, whether or not it had its turn. Returns the requests
  /// whose turn it is now.
  std::vector<std::uint64_t> End(std::uint64_t request);

  bool crowded() const { return !waiting_.empty(); }

 private:
  bool HasPlace(const std::string& address) const;
  void Take(std::uint64_t request, const std::string& address);

  struct Waiting {
    std::uint64_t request;
    std::string address;
  };
  const std::size_t places_, most_of_one_;
  std::map<std::uint64_t, std::string> served_;
  std::map<std::string, std::size_t> by_address_;
  std::deque<Waiting> waiting_;
};

}  // namespace penstock::protocol::http::internal
