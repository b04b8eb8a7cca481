// ComputeWishes and the book of offers at each change.
#include "node/share/offers.h"

#include <optional>

namespace penstock::node::share {

Offers::Offers(inventory::Inventory& inventory, ledger::Ledger& ledger, DialectOf dialect_of, OpenDoors open)
    : inventory_(inventory), ledger_(ledger), dialect_of_(std::move(dialect_of)), open_(open) {
  subscriptions_.push_back(inventory_.published().Subscribe([this](const auto&) { Changed(); }));
  subscriptions_.push_back(ledger_.published().Subscribe([this](const auto&) { Changed(); }));
  Wish();
}

void Offers::Configure(const api::NodeConfig& config) {
  config_ = config;
  Wish();
}

void Offers::SetMoves(Moves moves) {
  moves_ = std::move(moves);
  Wish();
}

void Offers::FollowServers(base::Published<device::SharedDevices>& servers) {
  subscriptions_.push_back(servers.Subscribe(
      [this](const auto& now) {
        servers_.Set(now);  // one vendor has servers today; a second one's would be joined here
        Changed();
      },
      true));
}

void Offers::Wish() {
  wish_anew_ = true;
  Changed();
}

// Those who are told may change ledger and servers, which comes back here: once more then, after all have been told.
void Offers::Changed() {
  changed_ = true;
  if (telling_) return;
  telling_ = true;
  while (changed_) {
    changed_ = false;
    Compute();
  }
  telling_ = false;
}

void Offers::Compute() {
  const auto inventory = inventory_.published().Get();
  std::optional<Wished> wished;
  if (wish_anew_ || inventory->facts_generation != facts_generation_) {
    wish_anew_ = false;
    facts_generation_ = inventory->facts_generation;
    wished = ComputeWishes(config_, open_, moves_, *inventory, dialect_of_);
    if (*wished == *wished_.Get()) wished.reset();
  }
  const Wishes& wishes = wished ? wished->wishes : wished_.Get()->wishes;
  const bool offers_changed = book_.Update(wishes, *inventory, *ledger_.Get(), *servers_.Get());
  if (wished) wished_.Set(*std::move(wished));
  if (offers_changed) published_.Set(book_.Get());
}

}  // namespace penstock::node::share
