#include "node/change/division_resets.h"

#include <chrono>
#include <utility>
#include <vector>

#include "base/log.h"

namespace penstock::node::change {

using device::Facts;
using inventory::Entry;

namespace {

constexpr base::Duration kPollForDriver = std::chrono::milliseconds(50);
constexpr base::Duration kDriverOpens = std::chrono::minutes(1);

}  // namespace

DivisionResets::DivisionResets(base::Executor& control, const Divisions::Node& node,
                               Divisions::VendorOf vendor_of)
    : control_(control), node_(node), vendor_of_(std::move(vendor_of)) {}

void DivisionResets::Reset(const Facts& device, Done done) {
  const Divisions::Vendor vendor = vendor_of_(device.vendor);
  if (vendor.actions == nullptr)
    return done(base::Error(base::Code::kUnimplemented,
                            "the mode takes effect with a reset, which this driver does not have"));
  std::vector<const Facts*> all;
  const auto snapshot = node_.inventory.published().Get();
  for (const Entry& entry : snapshot->devices)
    if (entry.facts->vendor == device.vendor) all.push_back(entry.facts.get());
  if (vendor.actions->ResetTogether(device, all).size() > 1)
    return done(base::Error(base::Code::kUnimplemented,
                            "the mode takes effect with a reset of several devices together: "
                            "reset them, or reboot"));
  AwaitDriverUnused(device.id, lifetime_.Guard([this, vendor, device, done = std::move(done)] {
    ResetAlone(vendor, device, done);
  }));
}

/// Until no other reset has closed the driver, and no other change uses it.
void DivisionResets::AwaitDriverUnused(const std::string& device, std::function<void()> then) {
  if (!node_.changes.AnyAt("reset", "reset") && !node_.changes.AnyUsesDriver(device)) return then();
  control_.PostAfter(kPollForDriver, lifetime_.Guard([this, device, then = std::move(then)] {
    AwaitDriverUnused(device, then);
  }));
}

void DivisionResets::ResetAlone(const Divisions::Vendor& vendor, const Facts& device, Done done) {
  base::Log(base::kWarn, "device reset started", {{"device", device.id}, {"for", "its mode"}});
  vendor.release(lifetime_.Guard([this, vendor, device, done = std::move(done)] {
    vendor.actions->Reset(
        {device}, lifetime_.Guard([this, vendor, done](const base::Status& result) {
          vendor.reopen();
          AwaitDriver(
              vendor.ready, control_.clock().Now() + kDriverOpens,
              [done, result](const base::Status& opened) { done(result.ok() ? opened : result); });
        }));
  }));
}

void DivisionResets::AwaitDriver(const std::function<bool()>& ready, base::TimePoint until,
                                 Done done) {
  if (ready()) return done({});
  if (control_.clock().Now() >= until)
    return done(base::Error(base::Code::kUnavailable, "the driver does not open after the reset"));
  control_.PostAfter(kPollForDriver, lifetime_.Guard([this, ready, until, done = std::move(done)] {
    AwaitDriver(ready, until, done);
  }));
}

}  // namespace penstock::node::change
