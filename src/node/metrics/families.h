// Groups of families of the metrics page, each in a file of its own. For metrics.cc only.
#pragma once

#include <vector>

#include "node/metrics/exposition.h"
#include "node/metrics/metrics.h"

namespace penstock::node::metrics {

/// A device and the labels that all its series carry.
struct Device {
  const inventory::Entry* entry;
  Labels labels;
};

/// Whether it can be used, what was heard of it, how often it changed, what was done about it.
void AddHealth(const std::vector<Device>& devices, const Figures& figures, Exposition& page);

/// Into how many shares it is cut, who has them, what keeps these apart, and the servers behind them.
void AddSharing(const std::vector<Device>& devices, const ledger::Snapshot& ledger, const Figures& figures, Exposition& page);

}  // namespace penstock::node::metrics
