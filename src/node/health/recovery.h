// Computes how long a device must stay without faults before it is healthy again. Pure: the caller
// passes the time.
#pragma once

#include <optional>

#include "base/core/clock.h"

namespace penstock::node::health {

/// An unhealthy period starts with the first fault and ends when the device has had no fault for
/// its whole probation. A period that starts soon after the last one (within an hour, or ten times
/// the probation that the device had passed, whichever is longer) is a relapse and doubles the
/// probation, up to `most`. After a longer time without faults all relapses are forgotten.
class Recovery {
 public:
  struct Terms {
    base::Duration probation{};
    base::Duration most{};
  };
  /// The part that outlives the agent.
  struct Past {
    bool unhealthy = false;
    int relapses = 0;
    std::optional<base::Duration> recovered_ago;
    base::Duration passed{};
    bool operator==(const Past&) const = default;
  };

  /// A fault is known against the device now.
  void OnFault(base::TimePoint now);

  /// No fault is known against the device now. Returns the rest of its probation; 0: the device is
  /// healthy, and the unhealthy period, if there was one, is over.
  base::Duration OnHealthy(base::TimePoint now, const Terms& terms);

  /// The faults of this period no longer count: it ends without a probation and leaves no trace.
  void Forgive();

  /// Starts a probation that is not a relapse, without a fault.
  void Watch();

  bool unhealthy() const { return unhealthy_; }
  int relapses(base::TimePoint now) const;
  base::Duration Probation(const Terms& terms) const;

  /// How often in this period the faults ended and came back, rounded down to 3, 10, 30, 100, ...;
  /// 0: less than three times. Rounded so that the reason does not change all the time.
  int Flaps() const;

  Past Remember(base::TimePoint now) const;
  void Recall(const Past& past, base::TimePoint now);

 private:
  bool unhealthy_ = false;
  int relapses_ = 0, flaps_ = 0;
  std::optional<base::TimePoint> healthy_since_;  // within an unhealthy period
  std::optional<base::TimePoint> recovered_at_;   // end of the last period
  base::Duration passed_{};                       // the probation that ended it
};

}  // namespace penstock::node::health
