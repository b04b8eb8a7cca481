#include "node/health/recovery.h"

#include <algorithm>

namespace penstock::node::health {
namespace {

constexpr base::Duration kMinWatch = std::chrono::hours(1);
constexpr int kProbationsWatched = 10;
constexpr int kMaxDoublings = 20;

base::Duration WatchAfter(base::Duration passed) {
  return std::max(kMinWatch, passed * kProbationsWatched);
}

}  // namespace

void Recovery::OnFault(base::TimePoint now) {
  if (!unhealthy_) {
    relapses_ = recovered_at_ && now - *recovered_at_ <= WatchAfter(passed_) ? relapses_ + 1 : 0;
    unhealthy_ = true;
    flaps_ = 0;
  } else if (healthy_since_) {
    ++flaps_;
  }
  healthy_since_.reset();
}

base::Duration Recovery::Probation(const Terms& terms) const {
  const base::Duration most = std::max(terms.probation, terms.most);
  base::Duration probation = terms.probation;
  for (int i = 0; i < std::min(relapses_, kMaxDoublings) && probation < most; ++i) probation *= 2;
  return std::min(probation, most);
}

base::Duration Recovery::OnHealthy(base::TimePoint now, const Terms& terms) {
  if (!unhealthy_) return {};
  if (!healthy_since_) healthy_since_ = now;
  const base::Duration left = *healthy_since_ + Probation(terms) - now;
  if (left > base::Duration(0)) return left;
  unhealthy_ = false;
  flaps_ = 0;
  healthy_since_.reset();
  recovered_at_ = now;
  passed_ = Probation(terms);
  return {};
}

void Recovery::Forgive() {
  if (unhealthy_ && relapses_ > 0) --relapses_;
  unhealthy_ = false;
  flaps_ = 0;
  healthy_since_.reset();
}

void Recovery::Watch() {
  unhealthy_ = true;
  healthy_since_.reset();
}

int Recovery::relapses(base::TimePoint now) const {
  const bool over = !unhealthy_ && recovered_at_ && now - *recovered_at_ > WatchAfter(passed_);
  return over ? 0 : relapses_;
}

int Recovery::Flaps() const {
  if (flaps_ < 3) return 0;
  int reported = 3;
  for (const int step : {10, 30, 100, 300, 1'000, 3'000, 10'000, 100'000, 1'000'000})
    if (flaps_ >= step) reported = step;
  return reported;
}

Recovery::Past Recovery::Remember(base::TimePoint now) const {
  Past past{unhealthy_, relapses(now), std::nullopt, passed_};
  if (recovered_at_ && now - *recovered_at_ <= WatchAfter(passed_))
    past.recovered_ago = now - *recovered_at_;
  return past;
}

void Recovery::Recall(const Past& past, base::TimePoint now) {
  unhealthy_ = past.unhealthy;
  relapses_ = past.relapses;
  passed_ = past.passed;
  healthy_since_.reset();
  recovered_at_.reset();
  if (past.recovered_ago) recovered_at_ = now - *past.recovered_ago;
}

}  // namespace penstock::node::health
