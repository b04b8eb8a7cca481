// A series of questions belongs to one offer: a newer offer ends it.
#include "adapter/kubelet/allocatable_confirmation.h"

#include <algorithm>
#include <array>

#include "base/lifetime.h"

namespace penstock::adapter::kubelet {

using namespace std::chrono_literals;

namespace {

constexpr std::array<base::Duration, 4> kFirst = {
    5ms, 15ms, 30ms, 50ms};  // between two questions: at 5, 20, 50 and 100 ms
constexpr base::Duration kLater = 200ms;
constexpr base::Duration kAtMost = 2s;

}  // namespace

struct AllocatableConfirmation::State : std::enable_shared_from_this<State> {
  State(base::Executor& e, Query a, std::function<void(const KubeletAmounts&)> f)
      : executor(e), query(std::move(a)), agrees(std::move(f)) {}

  void Expect(std::map<std::string, Offered> now) {
    offered = std::move(now);
    ++round;
    attempts = 0;
    executor.Cancel(timer);
    if (offered.empty()) return;
    begun = executor.clock().Now();
    ScheduleQuery();
  }

  void ScheduleQuery() {
    const base::Duration wait = attempts < kFirst.size() ? kFirst[attempts] : kLater;
    ++attempts;
    timer = executor.PostAfter(wait, base::IfAlive(this, &State::QueryNow));
  }

  void QueryNow() {
    query(base::IfAlive(this, [of = round](State& self, const Answer& answer) {
      if (self.round == of) self.Answered(answer);
    }));
  }

  void Answered(const Answer& answer) {
    if (answer.ok() && Agrees(*answer)) return agrees(Amounts());
    if (executor.clock().Now() - begun < kAtMost) ScheduleQuery();
  }

  bool Agrees(const std::map<std::string, std::vector<std::string>>& list) const {
    return std::ranges::all_of(offered, [&list](const auto& one) {
      const auto found = list.find(one.first);
      return found == list.end() ? one.second.usable.empty() : found->second == one.second.usable;
    });
  }

  KubeletAmounts Amounts() const {
    KubeletAmounts amounts;
    for (const auto& [resource, one] : offered) amounts[resource] = {one.all, one.usable.size()};
    return amounts;
  }

  base::Executor& executor;
  const Query query;
  const std::function<void(const KubeletAmounts&)> agrees;
  std::map<std::string, Offered> offered;
  std::uint64_t round = 0;
  std::size_t attempts = 0;
  base::TimePoint begun{};
  base::TimerId timer = 0;
};

AllocatableConfirmation::AllocatableConfirmation(base::Executor& executor, Query query,
                                                 std::function<void(const KubeletAmounts&)> agrees)
    : state_(std::make_shared<State>(executor, std::move(query), std::move(agrees))) {}

AllocatableConfirmation::~AllocatableConfirmation() { state_->executor.Cancel(state_->timer); }

void AllocatableConfirmation::Expect(std::map<std::string, Offered> offered) {
  state_->Expect(std::move(offered));
}

}  // namespace penstock::adapter::kubelet
