// A round: one device after the other, then a pause.
#include "node/sample/sampler.h"

#include <algorithm>
#include <utility>

namespace penstock::node::sample {

struct Sampler::State : std::enable_shared_from_this<State> {
  State(base::Executor& c, const inventory::Inventory& i, std::vector<Source> s) : control(c), inventory(i), sources(std::move(s)) {}

  void Round() {
    for (const Source& source : sources)
      for (const inventory::Entry& entry : inventory.published().Get()->devices)
        if (entry.facts->vendor == source.dialect->vendor()) Ask(source, *entry.facts);
    timer = control.PostAfter(options.interval, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->Round();
    });
  }

  void Ask(const Source& source, const device::Facts& facts) {
    device::SampleRequest request{.processes = options.processes};
    for (device::QuantityId i = 0; i < source.dialect->Quantities().size(); ++i) request.quantities.push_back(i);
    source.backend->TakeSample(facts.address, request, [weak = weak_from_this(), id = facts.id, vendor = facts.vendor](auto sample) {
      if (const auto self = weak.lock()) self->Take(id, vendor, std::move(sample));
    });
  }

  void Take(const std::string& id, const std::string& vendor, base::Result<device::Sample> sample) {
    if (!sample.ok()) return;
    Snapshot next = *published.Get();
    ++next.generation;
    next.interval = options.interval;
    auto made = std::make_shared<DeviceSample>();
    made->device = id;
    made->vendor = vendor;
    made->at = control.clock().Wall();
    for (const device::Value& value : sample->values) made->values.push_back({value, made->at});
    std::sort(made->values.begin(), made->values.end(), [](const Latest& a, const Latest& b) {
      return std::pair(a.value.quantity, a.value.link) < std::pair(b.value.quantity, b.value.link);
    });
    made->processes = std::move(sample->processes);
    made->unsupported = std::move(sample->unsupported);
    next.devices[id] = std::move(made);
    published.Set(std::move(next));
  }

  base::Executor& control;
  const inventory::Inventory& inventory;
  const std::vector<Source> sources;
  Options options;
  base::TimerId timer = 0;
  base::Published<Snapshot> published;
};

Sampler::Sampler(base::Executor& control, inventory::Inventory& inventory, std::vector<Source> sources, Callbacks)
    : state_(std::make_shared<State>(control, inventory, std::move(sources))) {}

Sampler::~Sampler() { state_->control.Cancel(state_->timer); }

void Sampler::Configure(Options options) {
  state_->options = std::move(options);
  state_->control.Cancel(std::exchange(state_->timer, 0));
  state_->Round();
}

void Sampler::Hurry() {}

const base::Published<Snapshot>& Sampler::published() const { return state_->published; }
base::Published<Snapshot>& Sampler::published() { return state_->published; }

}  // namespace penstock::node::sample
