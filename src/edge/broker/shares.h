// How many connections and requests each user of the socket may have, by what is left for the others. Pure: no sockets, no clock of its
// own.
#pragma once

#include <cstddef>
#include <map>

#include <sys/types.h>

#include "base/core/clock.h"

namespace penstock::edge::broker {

/// Connections are of two kinds, with places of their own: those that wait in a "run", for as long as it takes, and all others, which ask
/// and are answered. So who waits takes no place from status, queue, cancel and down.
struct ShareLimits {
  std::size_t asking = 256;
  std::size_t waiting = 352;
  std::size_t for_root = 16;         ///< beside `asking`, for root and the agent's own user
  double requests_per_second = 100;  ///< of one user, root and the agent's own user not counted; so many more at once:
  double burst = 400;
};

/// A user may have three times as many places of a kind as are free: one alone three quarters of all, the second one three quarters of the
/// rest. So there is always room for one more user, however many connections another one makes.
class Shares {
 public:
  Shares(ShareLimits limits, uid_t own_user) : limits_(limits), own_user_(own_user) {}

  /// A place for a connection that asks. False where the user may have no more. Root and the agent's own user are bounded by all places
  /// alone.
  bool Enter(uid_t user);
  void Leave(uid_t user);

  /// A connection that asks becomes one that waits. False where the user may have no more of these, root and the agent's own user as
  /// others.
  bool BeginWait(uid_t user);
  void EndWait(uid_t user);

  /// Takes one request: zero, or, where the user has none left, how long until there is one.
  base::Duration Take(uid_t user, base::TimePoint now);

  /// Users that are remembered: those with connections, and those who asked lately.
  std::size_t users() const { return users_.size(); }

 private:
  struct User {
    std::size_t asking = 0, waiting = 0;
    double requests = 0;  // left, as of `counted`
    base::TimePoint counted{};
  };
  bool Privileged(uid_t user) const { return user == 0 || user == own_user_; }
  double RequestsLeft(const User& user, base::TimePoint now) const;

  const ShareLimits limits_;
  const uid_t own_user_;
  std::map<uid_t, User> users_;
  std::size_t asking_ = 0, waiting_ = 0;
};

}  // namespace penstock::edge::broker
