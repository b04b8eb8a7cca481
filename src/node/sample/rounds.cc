// A round: each device in its turn, then a rest.
#include "node/sample/rounds.h"

#include <algorithm>
#include <utility>

namespace penstock::node::sample {
namespace {

constexpr base::Duration kSoon = std::chrono::seconds(1);  // after a round began, where devices are new or it was cut off

bool IsThere(const inventory::Entry& entry) { return entry.health.state != device::HealthState::kGone; }
bool Answers(const inventory::Entry& entry) { return IsThere(entry) && (!entry.reading || entry.reading->reachable); }

template <typename Processes>
std::vector<std::int32_t> PidsOf(const Processes& processes) {
  std::vector<std::int32_t> pids;
  for (const auto& process : processes) pids.push_back(process.pid);
  std::sort(pids.begin(), pids.end());
  pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
  return pids;
}

}  // namespace

Rounds::Rounds(Host host, Sampler::Source source)
    : host_(std::move(host)), source_(std::move(source)), self_(std::make_shared<Rounds*>(this)) {}

Rounds::~Rounds() {
  *self_ = nullptr;
  host_.control.Cancel(timer_);
}

void Rounds::Configure(const Sampler::Options& options) {
  const auto quantities = source_.dialect->Quantities();
  wish_ = {.quantities = {}, .processes = options.processes, .interval = options.interval};
  const auto left_out = options.left_out.find(vendor());
  for (std::size_t id = 0; id < quantities.size(); ++id)
    if (left_out == options.left_out.end() || !left_out->second.contains(quantities[id].key))
      wish_.quantities.push_back(static_cast<device::QuantityId>(id));
  for (const auto& [device, collection] : collections_) collection->Keep(wish_);
  configured_ = true;
  if (!under_way_) ScheduleAt(asked_ ? began_.now + host_.interval() : host_.control.clock().Now());
}

void Rounds::ScheduleAt(base::TimePoint at) {
  host_.control.Cancel(timer_);
  timer_at_ = at;
  timer_ = host_.control.PostAfter(std::max(at - host_.control.clock().Now(), base::Duration(0)), [this] { Begin(); });
}

void Rounds::Soon(base::Duration apart) {
  if (!configured_ || under_way_) return;
  const base::TimePoint soonest = asked_ ? began_.now + apart : host_.control.clock().Now();
  if (soonest < timer_at_) ScheduleAt(soonest);
}

void Rounds::Look() {
  if (Forget(Present())) host_.collected(true);
  const auto inventory = host_.inventory.published().Get();
  const bool any_new = std::any_of(inventory->devices.begin(), inventory->devices.end(), [this](const inventory::Entry& entry) {
    return entry.facts->vendor == vendor() && Answers(entry) && !collections_.contains(entry.facts->id);
  });
  if (any_new) Soon(kSoon);
}

std::vector<std::string> Rounds::Present() const {
  std::vector<std::string> present;
  for (const inventory::Entry& entry : host_.inventory.published().Get()->devices)
    if (entry.facts->vendor == vendor() && IsThere(entry)) present.push_back(entry.facts->id);
  return present;
}

bool Rounds::Forget(const std::vector<std::string>& present) {
  const auto gone = [&present](const auto& item) { return std::find(present.begin(), present.end(), item.first) == present.end(); };
  std::erase_if(differed_, gone);
  return std::erase_if(collections_, gone) > 0;
}

void Rounds::Begin() {
  timer_ = 0;
  timer_at_ = base::TimePoint::max();
  under_way_ = true;
  asked_ = met_ = false;
  began_ = {host_.control.clock().Now(), host_.control.clock().Wall()};
  list_ = Present();
  Forget(list_);
  position_ = 0;
  Next();
}

/// Asks the next device that is to be asked. Between two rounds or two sessions nothing is.
void Rounds::Next() {
  const auto session = source_.session();
  if (!session) return End(false);
  const auto inventory = host_.inventory.published().Get();
  while (position_ < list_.size()) {
    const inventory::Entry* entry = inventory->Find(list_[position_++]);
    if (entry != nullptr && Answers(*entry) && Ask(*entry, *session)) return;
  }
  End(true);
}

bool Rounds::Ask(const inventory::Entry& entry, std::uint64_t session) {
  const std::string& id = entry.facts->id;
  std::unique_ptr<Collection>& collection = collections_[id];
  if (!collection) collection = std::make_unique<Collection>(id, *source_.dialect, host_.rejections, counts_[id]);
  collection->Meet(session, entry.facts);
  // The worker that it hung still hangs there: another one would go the same way.
  if (collection->hung() && source_.backend->abandoned() > 0) return false;
  const bool first = collection->fresh();
  const Moment asked{host_.control.clock().Now(), host_.control.clock().Wall()};
  const auto request = collection->Due(wish_, asked.now);
  if (!request) return false;
  asked_ = true;
  met_ = met_ || first;
  source_.backend->TakeSample(entry.facts->address, *request, [self = self_, id, session, asked](base::Result<device::Sample> sample) {
    if (*self != nullptr) (*self)->Answered(id, session, asked, std::move(sample));
  });
  return true;
}

void Rounds::Answered(const std::string& device, std::uint64_t session, const Moment& asked, base::Result<device::Sample> sample) {
  // What another session says is of nobody knows which device; what was not sent blames nobody.
  if (source_.session() != session || (!sample.ok() && sample.error().code() == base::Code::kCancelled)) return End(false);
  const base::TimePoint now = host_.control.clock().Now();
  if (const auto found = collections_.find(device); found != collections_.end()) {
    if (sample.ok()) {
      if (wish_.processes) CompareProcesses(device, sample->processes);
      found->second->Take(*std::move(sample), asked, now);
    } else {
      found->second->Fail(sample.error(), wish_, asked, now);
    }
    host_.collected(false);
  }
  Next();
}

/// Told once for each set of processes that differs: a reading that keeps differing must not be asked for each second.
void Rounds::CompareProcesses(const std::string& device, const std::vector<device::ProcessSample>& processes) {
  const auto inventory = host_.inventory.published().Get();
  const inventory::Entry* entry = inventory->Find(device);
  if (entry == nullptr || !entry->reading) return;
  std::vector<std::int32_t> sampled = PidsOf(processes);
  if (sampled == PidsOf(entry->reading->processes)) {
    differed_.erase(device);
    return;
  }
  const auto [told, first] = differed_.try_emplace(device);
  if (!first && told->second == sampled) return;
  told->second = std::move(sampled);
  host_.processes_differ(std::string(vendor()), device);
}

void Rounds::End(bool whole) {
  under_way_ = false;
  const base::TimePoint now = host_.control.clock().Now();
  const base::Duration took = now - began_.now;
  if (whole && asked_) {
    ++last_.count;
    last_.at = began_.wall;
    last_.took = took;
  }
  // A round that was cut off is made up for soon, and what needs two samples has its second one soon.
  const bool again_soon = met_ || (!whole && !list_.empty());
  const base::Duration interval = again_soon ? std::min(host_.interval(), kSoon) : host_.interval();
  ScheduleAt(whole ? std::max(began_.now + interval, now + took) : began_.now + interval);
  if (asked_) host_.collected(true);
}

void Rounds::Show(std::map<std::string, std::shared_ptr<const DeviceSample>, std::less<>>& devices) {
  for (const auto& [id, collection] : collections_) devices[id] = collection->Show();
}

}  // namespace penstock::node::sample
