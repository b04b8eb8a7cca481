// How what a device took in an interval is parted among those who had it. Pure.
#pragma once

#include <span>
#include <vector>

#include "base/core/clock.h"

namespace penstock::node::usage {

/// Somebody on a device: from when to when, and how much of its time they computed, 0 to 1.
struct Claim {
  base::TimePoint from, to;
  double compute = 0;
};

/// Each claim's part of what the device took from `begin` to `end`, 0 to 1. At each moment it is parted among those who are there as they
/// compute, evenly while nobody does; `outside` is what others compute who hold nothing. What falls into a time when nobody was there is
/// nobody's.
std::vector<double> Part(base::TimePoint begin, base::TimePoint end, std::span<const Claim> claims, double outside = 0);

/// How long of the interval a claim is there.
base::Duration Overlap(base::TimePoint begin, base::TimePoint end, const Claim& claim);

}  // namespace penstock::node::usage
