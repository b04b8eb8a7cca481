#include "node/share/turns.h"

#include <utility>

namespace penstock::node::share {

bool OnlyReadTimesDiffer(const NodeDevices& now, const NodeDevices& before) {
  return before.inventory != nullptr &&
         now.inventory->facts_generation == before.inventory->facts_generation &&
         now.inventory->state_generation == before.inventory->state_generation &&
         now.ledger == before.ledger && now.servers == before.servers &&
         now.desired == before.desired && now.offers == before.offers;
}

Turns::Turns(base::Executor& control, inventory::Inventory& inventory, ledger::Ledger& ledger,
             Offers& offers, Follow follow)
    : control_(control),
      inventory_(inventory),
      ledger_(ledger),
      offers_(offers),
      follow_(std::move(follow)) {
  on_inventory_ = inventory_.published().Subscribe([this](const auto&) { Schedule(); });
  on_ledger_ = ledger_.published().Subscribe([this](const auto&) { Schedule(); });
  offers_.OnInput([this] { Schedule(); });
  Schedule();
}

Turns::~Turns() { offers_.OnInput(nullptr); }

void Turns::Schedule() {
  if (std::exchange(scheduled_, true)) return;
  control_.Post(lifetime_.Guard([this] { Turn(); }));
}

void Turns::Turn() {
  scheduled_ = false;
  NodeDevices now{inventory_.published().Get(), ledger_.Get(), offers_.Servers(), offers_.Desired(),
                  offers_.Get()};
  if (now == last_) return;
  const NodeDevices before = std::exchange(last_, now);
  follow_(now, before);
}

}  // namespace penstock::node::share
