#include "node/metrics/page_cache.h"

#include <algorithm>
#include <utility>

namespace penstock::node::metrics {
namespace {

// Combines the changes of one round of collection, which reports one device after the other.
constexpr base::Duration kTogether = std::chrono::milliseconds(20);
constexpr base::Duration kMaxPageAge = std::chrono::seconds(5);
constexpr base::Duration kForgotten = std::chrono::minutes(3);  // since the last request

}  // namespace

PageCache::PageCache(base::Executor& control, std::function<std::string(PageFormat, Detail)> make)
    : control_(control), make_(std::move(make)) {}

PageCache::~PageCache() { control_.Cancel(timer_); }

void PageCache::Changed() {
  for (Kept& kept : kept_) kept.stale = true;
  if (timer_ == 0) timer_ = control_.PostAfter(kTogether, [this] { MakeWanted(); });
}

void PageCache::MakeWanted() {
  timer_ = 0;
  const base::TimePoint now = control_.clock().Now();
  for (Kept& kept : kept_) {
    if (kept.stale && kept.read && now - kept.requested < kForgotten) Make(kept);
    if (now - kept.requested >= kForgotten) kept.page.text.reset();
  }
}

void PageCache::Make(Kept& kept) {
  const base::TimePoint begin = control_.clock().Now();
  kept.page = {std::make_shared<const std::string>(make_(kept.format, kept.detail)), ++generation_};
  kept.made = control_.clock().Now();
  kept.stale = false;
  took_ = kept.made - begin;
}

RenderedPage PageCache::Get(PageFormat format, Detail detail) {
  Kept& kept = *std::ranges::find_if(
      kept_, [&](const Kept& one) { return one.format == format && one.detail == detail; });
  kept.requested = control_.clock().Now();
  kept.read = true;
  if (kept.stale || kept.page.text == nullptr || kept.requested - kept.made > kMaxPageAge)
    Make(kept);
  return kept.page;
}

}  // namespace penstock::node::metrics
