// Divides what a device consumed in an interval among its holders. Pure.
#pragma once

#include <span>
#include <vector>

#include "base/core/clock.h"

namespace penstock::node::usage {

/// One holder of a device: from when to when, and how much of the device's time it computed, 0 to
/// 1.
struct Occupancy {
  base::TimePoint from, to;
  double compute = 0;
};

/// Returns each occupancy's part of what the device consumed from `begin` to `end`, 0 to 1. At each
/// moment the consumption is divided among the holders present in proportion to their compute, or
/// evenly while nothing computes; `outside` is the compute of processes outside these holders.
/// Consumption at times without a holder is assigned to none.
std::vector<double> Apportion(base::TimePoint begin, base::TimePoint end,
                              std::span<const Occupancy> occupancies, double outside = 0);

/// How long an occupancy overlaps the interval.
base::Duration Overlap(base::TimePoint begin, base::TimePoint end, const Occupancy& occupancy);

}  // namespace penstock::node::usage
