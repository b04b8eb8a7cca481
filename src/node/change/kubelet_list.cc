#include "node/change/kubelet_list.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/lifetime.h"

namespace penstock::node::change {
namespace {

constexpr base::Duration kFirstRetry = std::chrono::milliseconds(5);
constexpr base::Duration kMaxRetry = std::chrono::seconds(1);

}  // namespace

struct KubeletList::State : std::enable_shared_from_this<State> {
  struct Withdrawn {
    std::uint64_t first_query = 0;  // the first one that was asked after the withdrawal
    bool noted = false;
  };

  void Await(const std::set<std::string>& now) {
    std::erase_if(devices, [&](const auto& one) { return !now.contains(one.first); });
    for (const std::string& id : now) {
      if (!devices.try_emplace(id, Withdrawn{queries + 1}).second) continue;
      // Ask now, even where the back-off of an earlier question has grown.
      retry_after = kFirstRetry;
      if (!pending) control.Cancel(std::exchange(timer, 0));
    }
    const bool awaited = std::ranges::any_of(devices, [](auto& one) { return !one.second.noted; });
    if (!awaited || pending || timer != 0) return;
    timer = control.PostAfter(retry_after, base::IfAlive(this, &State::Query));
    retry_after = std::min(retry_after * 2, kMaxRetry);
  }

  void Query() {
    timer = 0;
    pending = true;
    ask([weak = weak_from_this(),
         number = ++queries](const base::Result<std::set<std::string>>& counted) {
      if (const auto self = weak.lock()) self->Answer(number, counted);
    });
  }

  void Answer(std::uint64_t number, const base::Result<std::set<std::string>>& counted) {
    pending = false;
    problem = counted.ok() ? ""
                           : "cannot read the kubelet's allocatable devices (" +
                                 counted.error().message() + ")";
    for (auto& [id, device] : devices)
      if (counted.ok() && number >= device.first_query && !counted->contains(id))
        device.noted = true;
    answered();
  }

  State(base::Executor& c, Ask a, std::function<void()> done)
      : control(c), ask(std::move(a)), answered(std::move(done)) {}

  base::Executor& control;
  const Ask ask;
  const std::function<void()> answered;
  std::map<std::string, Withdrawn> devices;
  std::uint64_t queries = 0;  // asked so far
  bool pending = false;       // one is not answered yet
  base::TimerId timer = 0;    // of the next one
  base::Duration retry_after = kFirstRetry;
  std::string problem;
};

KubeletList::KubeletList(base::Executor& control, Ask ask, std::function<void()> answered)
    : state_(std::make_shared<State>(control, std::move(ask), std::move(answered))) {}

KubeletList::~KubeletList() { state_->control.Cancel(state_->timer); }

void KubeletList::Await(const std::set<std::string>& withdrawn) {
  if (state_->ask) state_->Await(withdrawn);
}

bool KubeletList::HasTakenNote(const std::string& device) const {
  const auto found = state_->devices.find(device);
  return !state_->ask || (found != state_->devices.end() && found->second.noted);
}

const std::string& KubeletList::problem() const { return state_->problem; }

}  // namespace penstock::node::change
