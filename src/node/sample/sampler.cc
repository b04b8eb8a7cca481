// Runs one poll loop per vendor and publishes their samples as one snapshot.
#include "node/sample/sampler.h"

#include <algorithm>
#include <utility>

#include "base/lifetime.h"
#include "node/sample/poll_loop.h"

namespace penstock::node::sample {
namespace {

constexpr base::Duration kFastInterval = std::chrono::seconds(1);
// Between two rounds, even if each is requested at once.
constexpr base::Duration kAtOnceApart = std::chrono::milliseconds(100);
constexpr base::Duration kFastFor = std::chrono::seconds(5);
/// How long new samples may wait for the end of the round before they are published, so that a
/// device that hangs does not delay the others' values.
constexpr base::Duration kLongestUnpublished = std::chrono::milliseconds(200);

}  // namespace

struct Sampler::State : std::enable_shared_from_this<State> {
  State(base::Executor& c, inventory::Inventory& i, Callbacks b)
      : control(c), inventory(i), callbacks(std::move(b)) {}

  void Add(Source source) {
    loops.push_back(std::make_unique<PollLoop>(
        PollLoop::Host{.control = control,
                       .inventory = inventory,
                       .rejections = rejections,
                       .interval = [this] { return Interval(); },
                       .collected = [this](bool whole) { whole ? Publish() : PublishSoon(); },
                       .processes_differ =
                           [this](const std::string& vendor, const std::string& device) {
                             if (callbacks.processes_differ)
                               callbacks.processes_differ(vendor, device);
                           }},
        std::move(source)));
  }

  void DevicesChanged() {
    for (const auto& loop : loops) loop->InventoryChanged();
  }

  base::Duration Interval() const {
    const bool fast = control.clock().Now() < fast_until;
    return fast ? std::min(options.interval, kFastInterval) : options.interval;
  }

  void PublishSoon() {
    if (timer != 0) return;
    timer = control.PostAfter(kLongestUnpublished, [this] { Publish(); });
  }

  void Publish() {
    control.Cancel(std::exchange(timer, 0));
    Snapshot next;
    next.generation = published.Get()->generation + 1;
    next.interval = Interval();
    for (const auto& loop : loops) {
      loop->Show(next.devices);
      next.rounds.emplace(loop->vendor(), loop->last());
    }
    next.rejected = rejections.List();
    published.Set(std::move(next));
  }

  base::Executor& control;
  inventory::Inventory& inventory;
  const Callbacks callbacks;
  Options options;
  Rejections rejections;
  base::TimePoint fast_until{};
  base::TimerId timer = 0;  // pending until the new samples are published
  base::Published<Snapshot> published;
  std::vector<std::unique_ptr<PollLoop>> loops;
};

Sampler::Sampler(base::Executor& control, inventory::Inventory& inventory,
                 std::vector<Source> sources, Callbacks callbacks)
    : state_(std::make_shared<State>(control, inventory, std::move(callbacks))) {
  for (Source& source : sources) state_->Add(std::move(source));
}

Sampler::~Sampler() { state_->control.Cancel(state_->timer); }

void Sampler::Configure(Options options) {
  state_->options = std::move(options);
  for (const auto& loop : state_->loops) loop->Configure(state_->options);
}

void Sampler::DevicesChanged() { state_->DevicesChanged(); }

void Sampler::RequestSoon() {
  state_->fast_until = state_->control.clock().Now() + kFastFor;
  for (const auto& loop : state_->loops) loop->Soon(kFastInterval);
}

void Sampler::RequestNow() {
  for (const auto& loop : state_->loops) loop->Soon(kAtOnceApart);
}

const base::Published<Snapshot>& Sampler::published() const { return state_->published; }
base::Published<Snapshot>& Sampler::published() { return state_->published; }

}  // namespace penstock::node::sample
