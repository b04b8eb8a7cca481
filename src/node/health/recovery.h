// How long one device must look well before it is used again. Pure: time is given, nothing is looked at.
#pragma once

#include <optional>

#include "base/core/clock.h"

namespace penstock::node::health {

/// A spell of being unwell begins with the first trouble and ends when the device has looked well for its probation without a break. A
/// spell that begins within the watch after the last one (an hour, or ten times the probation that it had passed, whichever is longer) is a
/// relapse and doubles the probation, up to the most. Well for longer than the watch: all is forgotten.
class Recovery {
 public:
  struct Terms {
    base::Duration probation{};
    base::Duration most{};
  };
  /// What of it outlives the agent.
  struct Past {
    bool unwell = false;
    int relapses = 0;
    std::optional<base::Duration> recovered_ago;
    base::Duration passed{};
    bool operator==(const Past&) const = default;
  };

  /// Something speaks against it now.
  void Fall(base::TimePoint now);

  /// Nothing speaks against it now: what is left of its probation. 0: it is well, and the spell, if there was one, is over.
  base::Duration LookWell(base::TimePoint now, const Terms& terms);

  /// What it fell for counts for nothing any more: the spell ends without a probation, and leaves no trace.
  void Forgive();

  /// It must look well for its probation, though nothing speaks against it and it is no relapse.
  void Watch();

  bool unwell() const { return unwell_; }
  int relapses(base::TimePoint now) const;
  base::Duration Probation(const Terms& terms) const;

  /// How often in this spell it looked well and fell again, rounded down to 3, 10, 30, 100, ...; 0: less than three times. Rounded, so that
  /// what is said of it does not change all the time.
  int Flaps() const;

  Past Remember(base::TimePoint now) const;
  void Recall(const Past& past, base::TimePoint now);

 private:
  bool unwell_ = false;
  int relapses_ = 0, flaps_ = 0;
  std::optional<base::TimePoint> well_since_;    // within a spell
  std::optional<base::TimePoint> recovered_at_;  // end of the last spell
  base::Duration passed_{};                      // the probation that ended it
};

}  // namespace penstock::node::health
