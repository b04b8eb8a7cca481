#include "view/report_cache.h"

#include <utility>

namespace penstock::view {
namespace {

constexpr base::Duration kMadeWithin = std::chrono::seconds(1);  // after a change
constexpr base::Duration kLongestKept = std::chrono::seconds(15);

}  // namespace

ReportCache::ReportCache(base::Executor& control, Callbacks callbacks)
    : control_(control), callbacks_(std::move(callbacks)) {
  MakeSoon();
}

ReportCache::~ReportCache() { control_.Cancel(timer_); }

void ReportCache::Changed() {
  stale_ = true;
  MakeSoon();
}

void ReportCache::ReadTimesChanged() {
  if (control_.clock().Now() - made_ >= kLongestKept) Changed();
}

std::shared_ptr<const api::Report> ReportCache::Get() {
  if (stale_) (void)Replace();
  return kept_;
}

std::shared_ptr<const api::Report> ReportCache::Make() {
  if (Replace()) callbacks_.differs();
  return kept_;
}

/// Whether the new report is another one.
bool ReportCache::Replace() {
  stale_ = false;  // first: what is found while the report is made may change the next one
  made_ = control_.clock().Now();
  api::Report report = callbacks_.make();
  if (kept_ != nullptr && *kept_ == report) return false;
  kept_ = std::make_shared<const api::Report>(std::move(report));
  return true;
}

void ReportCache::MakeSoon() {
  if (timer_ != 0) return;
  timer_ = control_.PostAfter(kMadeWithin, [this] {
    timer_ = 0;
    if (stale_) (void)Make();
  });
}

}  // namespace penstock::view
