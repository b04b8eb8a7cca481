#include "protocol/broker/shares.h"

#include <algorithm>

namespace penstock::protocol::broker {
namespace {

constexpr std::size_t kTimesWhatIsFree = 3;
constexpr std::size_t kMaxUsers = 1024;

bool MayHaveOneMore(std::size_t own, std::size_t all, std::size_t limit) {
  return all < limit && own < kTimesWhatIsFree * (limit - all);
}

}  // namespace

bool ClientShares::Enter(uid_t user) {
  const bool admitted = Privileged(user)
                            ? queries_ < limits_.queries + limits_.for_root
                            : MayHaveOneMore(users_[user].queries, queries_, limits_.queries);
  if (!admitted) return false;
  ++users_[user].queries;
  ++queries_;
  return true;
}

void ClientShares::Leave(uid_t user) {
  --users_[user].queries;
  --queries_;
}

bool ClientShares::BeginWait(uid_t user) {
  if (!MayHaveOneMore(users_[user].waiting, waiting_, limits_.waiting)) return false;
  Leave(user);
  ++users_[user].waiting;
  ++waiting_;
  return true;
}

void ClientShares::EndWait(uid_t user) {
  --users_[user].waiting;
  --waiting_;
  ++users_[user].queries;
  ++queries_;
}

double ClientShares::RequestsLeft(const User& user, base::TimePoint now) const {
  if (user.counted == base::TimePoint{}) return limits_.burst;
  return std::min(limits_.burst,
                  user.requests + base::Seconds(now - user.counted) * limits_.requests_per_second);
}

base::Duration ClientShares::Take(uid_t user, base::TimePoint now) {
  if (Privileged(user)) return base::Duration::zero();
  if (users_.size() > kMaxUsers)
    std::erase_if(users_, [&](const auto& entry) {
      return entry.second.queries + entry.second.waiting == 0 &&
             RequestsLeft(entry.second, now) >= limits_.burst;
    });
  User& one = users_[user];
  one.requests = RequestsLeft(one, now);
  one.counted = now;
  if (one.requests >= 1) {
    one.requests -= 1;
    return base::Duration::zero();
  }
  return std::chrono::ceil<base::Duration>(
      std::chrono::duration<double>((1 - one.requests) / limits_.requests_per_second));
}

}  // namespace penstock::protocol::broker
