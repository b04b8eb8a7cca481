// Limits the connections and requests of each user of the broker's socket by what is left for other
// users. Pure: no sockets, no clock of its own.
#pragma once

#include <cstddef>
#include <map>

#include <sys/types.h>

#include "base/core/clock.h"

namespace penstock::protocol::broker {

/// Connections are of two kinds with separate places: those that wait in a "run", for as long as it
/// takes, and all others, which ask and are answered. A connection that waits therefore takes no
/// place from status, queue, cancel and down.
struct ShareLimits {
  std::size_t queries = 256;
  std::size_t waiting = 352;
  std::size_t for_root = 16;         ///< beside `queries`, for root and the agent's own user
  double requests_per_second = 100;  ///< of one user, with `burst` more at once; root and the
                                     ///< agent's own user are not limited
  double burst = 400;
};

/// A user may have three times as many places of a kind as are free: the first user three quarters
/// of all, the second three quarters of the rest. There is therefore always room for one more user,
/// however many connections another user makes.
class ClientShares {
 public:
  ClientShares(ShareLimits limits, uid_t own_user) : limits_(limits), own_user_(own_user) {}

  /// Takes a place for a connection that asks. false if the user may have no more. For root and the
  /// agent's own user, only the sum of all places counts.
  bool Enter(uid_t user);
  void Leave(uid_t user);

  /// Turns a connection that asks into one that waits. false if the user may have no more of these;
  /// root and the agent's own user are limited like other users.
  bool BeginWait(uid_t user);
  void EndWait(uid_t user);

  /// Takes one request. Returns zero or, if the user has none left, the time until there is one.
  base::Duration Take(uid_t user, base::TimePoint now);

  /// Returns the number of users that are remembered: those with connections and those with recent
  /// requests.
  std::size_t users() const { return users_.size(); }

 private:
  struct User {
    std::size_t queries = 0, waiting = 0;
    double requests = 0;  // left, as of `counted`
    base::TimePoint counted{};
  };
  bool Privileged(uid_t user) const { return user == 0 || user == own_user_; }
  double RequestsLeft(const User& user, base::TimePoint now) const;

  const ShareLimits limits_;
  const uid_t own_user_;
  std::map<uid_t, User> users_;
  std::size_t queries_ = 0, waiting_ = 0;
};

}  // namespace penstock::protocol::broker
