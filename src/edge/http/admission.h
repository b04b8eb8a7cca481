// Which requests are answered at once and which wait. Knows numbers and addresses, no sockets; private to this room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace penstock::edge::http::internal {

/// First come, first served, but one address has at most three quarters of the places, so that nobody is shut out by a single client.
class Admission {
 public:
  explicit Admission(std::size_t places);

  /// Whether a request is answered now; else it waits its turn.
  bool Begin(std::uint64_t request, const std::string& address);

  /// A request is over, answered or given up, whether it had its turn or not. Whose turn it is now.
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

}  // namespace penstock::edge::http::internal
