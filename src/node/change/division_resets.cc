#include "node/change/division_resets.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <utility>

#include "base/core/strings.h"
#include "base/log.h"
#include "node/change/division_run.h"
#include "node/change/layout_view.h"

namespace penstock::node::change {

using device::Facts;
using inventory::Entry;

namespace {

constexpr base::Duration kPollForDriver = std::chrono::milliseconds(50);
constexpr base::Duration kDriverOpens = std::chrono::minutes(1);

}  // namespace

DivisionResets::DivisionResets(base::Executor& control, const Divisions::Node& node,
                               const Divisions::VendorOf& vendor_of)
    : control_(control), node_(node), vendor_of_(vendor_of) {}

void DivisionResets::Reset(const Facts& device, Done done) {
  if (vendor_of_(device.vendor).actions == nullptr)
    return done(base::Error(base::Code::kUnimplemented,
                            "the mode takes effect with a reset, which this driver does not have"));
  waiting_.push_back({device, std::move(done)});
  Next();
}

void DivisionResets::Forget(const std::string& device) {
  std::erase_if(waiting_, [&](const Waiting& one) { return one.device.id == device; });
}

/// Polls, because that the driver is unused is not reported.
void DivisionResets::Next() {
  if (busy_ || waiting_.empty()) return;
  std::set<std::string> here;
  for (const Waiting& one : waiting_) here.insert(one.device.id);
  if (!node_.changes.AnyAt("reset") && !node_.changes.AnyUsesDriver(here) && !IsAnyToCome(here)) {
    Batch batch = Take();
    Refuse(batch);
    return batch.empty() ? Next() : Begin(std::move(batch));
  }
  if (std::exchange(polling_, true)) return;
  control_.PostAfter(kPollForDriver, lifetime_.Guard([this] {
    polling_ = false;
    Next();
  }));
}

/// Whether a change that resets its device has not come so far. One that failed may become as
/// before only much later, and is not waited for.
bool DivisionResets::IsAnyToCome(const std::set<std::string>& here) const {
  const auto snapshot = node_.inventory.published().Get();
  return std::ranges::any_of(snapshot->devices, [&](const Entry& entry) {
    const DeviceChange* change = node_.changes.On(entry.facts->id);
    return change != nullptr && change->kind.starts_with(kDivideKind) &&
           !here.contains(entry.facts->id) && change->failure.empty() &&
           IsBeforeDivision(*change) && RecordOf(*change).resets;
  });
}

/// Those that are reset in the next operation.
DivisionResets::Batch DivisionResets::Take() {
  const std::string vendor = waiting_.front().device.vendor;
  const bool alone = waiting_.front().alone;
  Batch batch, others;
  for (Waiting& one : waiting_) {
    const bool joins = alone ? batch.empty() : !one.alone && one.device.vendor == vendor;
    (joins ? batch : others).push_back(std::move(one));
  }
  waiting_ = std::move(others);
  return batch;
}

/// Those that can only be reset together with others that are not in the batch.
void DivisionResets::Refuse(Batch& batch) {
  if (batch.empty()) return;
  std::vector<const Facts*> all;
  const auto snapshot = node_.inventory.published().Get();
  for (const Entry& entry : snapshot->devices)
    if (entry.facts->vendor == batch.front().device.vendor) all.push_back(entry.facts.get());
  const device::Actions& actions = *vendor_of_(batch.front().device.vendor).actions;
  Batch refused;
  const auto lacks_others = [&](const Waiting& one) {
    return std::ranges::any_of(actions.ResetTogether(one.device, all), [&](const std::string& id) {
      return std::ranges::none_of(batch,
                                  [&](const Waiting& other) { return other.device.id == id; });
    });
  };
  // One that is refused can be lacking to others.
  for (auto one = batch.end(); (one = std::ranges::find_if(batch, lacks_others)) != batch.end();) {
    refused.push_back(std::move(*one));
    batch.erase(one);
  }
  for (const Waiting& one : refused)
    one.done(base::Error(base::Code::kUnimplemented,
                         "the mode takes effect with a reset of several devices together: "
                         "reset them, or reboot"));
}

void DivisionResets::Begin(Batch batch) {
  busy_ = true;
  const Divisions::Vendor vendor = vendor_of_(batch.front().device.vendor);
  std::vector<Facts> devices;
  std::vector<std::string> ids;
  for (const Waiting& one : batch) {
    devices.push_back(one.device);
    ids.push_back(one.device.id);
  }
  base::Log(base::kWarn, "device reset started",
            {{"device", base::Join(ids, ", ")}, {"for", "its mode"}});
  vendor.release(lifetime_.Guard([this, vendor, devices, batch = std::move(batch)] {
    vendor.actions->Reset(
        devices, lifetime_.Guard([this, vendor, batch](const base::Status& result) {
          vendor.reopen();
          AwaitDriver(
              vendor.ready, control_.clock().Now() + kDriverOpens,
              [this, batch, result](const base::Status& opened) { Ended(batch, result, opened); });
        }));
  }));
}

void DivisionResets::Ended(Batch batch, const base::Status& result, const base::Status& opened) {
  busy_ = false;
  const bool read_back = !result.ok() && opened.ok() && batch.size() > 1;
  for (Waiting& one : batch)
    if (read_back)
      ReadBack(std::move(one), result);
    else
      one.done(result.ok() ? opened : result);
  Next();
}

/// Of several, one failed, and which is only in the words of the driver's program.
void DivisionResets::ReadBack(Waiting one, const base::Status& result) {
  const auto shared = std::make_shared<Waiting>(std::move(one));
  vendor_of_(shared->device.vendor)
      .backend->Describe(shared->device.address,
                         lifetime_.Guard([this, shared, result](const base::Result<Facts>& now) {
                           if (!now.ok()) return shared->done(result);
                           if (!IsAnyModePending(*now)) return shared->done({});
                           shared->alone = true;
                           waiting_.push_back(std::move(*shared));
                           Next();
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
