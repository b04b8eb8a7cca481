// Computes how devices are shared, for the report. Pure.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "api/report.h"
#include "device/sharing.h"
#include "node/ledger/ledger.h"
#include "node/share/offer.h"

namespace penstock::view {

/// What is offered of each device, and how much of it is free. Borrows everything.
class SharesReport {
 public:
  SharesReport(const std::vector<node::share::Offer>& offers, const node::ledger::Snapshot& ledger,
               const node::share::Assignments& assignments, const device::SharedDevices& servers);

  /// Fills in resource, sharing, shares, free, isolation and the limits.
  void Fill(api::DeviceReport& device) const;

  /// Each set's server. A server is "ending" when no device is to be shared through it any more.
  std::vector<api::ServerReport> Servers() const;

 private:
  struct Offered {
    const node::share::Offer* offer = nullptr;
    const node::share::OfferedSlot* first = nullptr;
    int slots = 0, free = 0;
  };
  const node::share::Assignments& assignments_;
  const device::SharedDevices& servers_;
  std::map<std::string_view, Offered> offered_;  // by device
};

}  // namespace penstock::view
