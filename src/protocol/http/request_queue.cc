#include "protocol/http/request_queue.h"

#include <algorithm>

namespace penstock::protocol::http::internal {

RequestQueue::RequestQueue(std::size_t places)
    : places_(std::max<std::size_t>(places, 1)),
      most_of_one_(std::max<std::size_t>((places_ * 3 + 3) / 4, 1)) {}

/// Local clients over a unix socket have no address that distinguishes them.
bool RequestQueue::HasPlace(const std::string& address) const {
  if (served_.size() >= places_) return false;
  const auto found = by_address_.find(address);
  return address == "unix" || found == by_address_.end() || found->second < most_of_one_;
}

void RequestQueue::Take(std::uint64_t request, const std::string& address) {
  served_[request] = address;
  ++by_address_[address];
}

bool RequestQueue::Begin(std::uint64_t request, const std::string& address) {
  if (HasPlace(address)) {
    Take(request, address);
    return true;
  }
  waiting_.push_back({request, address});
  return false;
}

std::vector<std::uint64_t> RequestQueue::End(std::uint64_t request) {
  std::erase_if(waiting_, [request](const Waiting& one) { return one.request == request; });
  if (const auto served = served_.find(request); served != served_.end()) {
    if (--by_address_[served->second] == 0) by_address_.erase(served->second);
    served_.erase(served);
  }
  std::vector<std::uint64_t> next;
  for (auto at = waiting_.begin(); at != waiting_.end() && served_.size() < places_;) {
    if (!HasPlace(at->address)) {
      ++at;
      continue;
    }
    Take(at->request, at->address);
    next.push_back(at->request);
    at = waiting_.erase(at);
  }
  return next;
}

}  // namespace penstock::protocol::http::internal
