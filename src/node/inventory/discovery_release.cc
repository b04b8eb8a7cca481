// How Discovery closes the connection to a driver: for a reset, where the driver is elsewhere now,
// and while it is replaced.
#include <utility>

#include "base/log.h"
#include "node/inventory/discovery.h"

namespace penstock::node::inventory {
namespace {

constexpr base::Duration kReleaseCheck = std::chrono::milliseconds(50);
constexpr int kReleaseTries = 100;

}  // namespace

void Discovery::Release(std::function<void()> done) {
  ++*connection_;
  phase_ = Phase::kReleased;
  busy_ = rescan_ = false;
  inventory_.PublishReadTimes();
  wanted_.reset();
  soon_.clear();
  in_flight_.clear();
  executor_.Cancel(timer_);
  base::Log(base::kInfo, "driver connection closed", {{"vendor", options_.vendor}});
  backend_.Stop();
  await_release_.push_back(std::move(done));
  AwaitRelease(kReleaseTries);
}

void Discovery::AwaitRelease(int tries) {
  if (backend_.abandoned() == 0 || tries == 0) {
    for (const auto& done : std::exchange(await_release_, {})) done();
    return;
  }
  timer_ = executor_.PostAfter(kReleaseCheck, [this, tries] { AwaitRelease(tries - 1); });
}

void Discovery::Reopen() {
  if (phase_ != Phase::kReleased || given_up_) return;
  await_release_.clear();
  Open();
}

void Discovery::Restart() {
  if (phase_ == Phase::kReleased) return;
  Release([] {});
  Reopen();
}

void Discovery::GiveUp(const std::string& why, std::function<void()> done) {
  given_up_ = true;
  Release(std::move(done));
  driver_version_.clear();
  driver_instance_.clear();  // the one after it is another, even if it looks the same
  inventory_.SetVendor({options_.vendor, nullptr, why});
  inventory_.SetFacts(options_.vendor, {}, why, executor_.clock().Wall());
  FirstScanDone();
  // Nothing is described until TakeBack.
  await_this_description_.insert(await_this_description_.end(),
                                 std::make_move_iterator(await_description_.begin()),
                                 std::make_move_iterator(await_description_.end()));
  await_description_.clear();
  CallDescribed();
}

void Discovery::TakeBack() {
  if (!std::exchange(given_up_, false)) return;
  await_release_.clear();
  backoff_.Reset();
  Open();
}

}  // namespace penstock::node::inventory
