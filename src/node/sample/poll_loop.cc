#include "node/sample/poll_loop.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

namespace penstock::node::sample {
namespace {

// Time from the start of a round that was aborted or met new devices to the next round.
constexpr base::Duration kSoon = std::chrono::seconds(1);

bool IsPresent(const inventory::Entry& entry) {
  return entry.health.state != device::HealthState::kGone;
}
bool Answers(const inventory::Entry& entry) {
  return IsPresent(entry) && (!entry.reading || entry.reading->reachable);
}

template <typename Processes>
std::vector<std::int32_t> PidsOf(const Processes& processes) {
  std::vector<std::int32_t> pids;
  for (const auto& process : processes) pids.push_back(process.pid);
  std::ranges::sort(pids);
  pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
  return pids;
}

}  // namespace

PollLoop::PollLoop(Host host, Sampler::Source source)
    : host_(std::move(host)), source_(std::move(source)) {}

PollLoop::~PollLoop() { host_.control.Cancel(timer_); }

void PollLoop::Configure(const Sampler::Options& options) {
  const auto quantities = source_.dialect->Quantities();
  plan_ = {.quantities = {}, .processes = options.processes, .interval = options.interval};
  const auto left_out = options.left_out.find(vendor());
  for (std::size_t id = 0; id < quantities.size(); ++id)
    if (left_out == options.left_out.end() || !left_out->second.contains(quantities[id].key))
      plan_.quantities.push_back(static_cast<device::QuantityId>(id));
  for (const auto& [device, collection] : collections_) collection->Keep(plan_);
  configured_ = true;
  if (!in_round_)
    ScheduleAt(asked_ ? began_.steady + host_.interval() : host_.control.clock().Now());
}

void PollLoop::ScheduleAt(base::TimePoint at) {
  host_.control.Cancel(timer_);
  timer_at_ = at;
  timer_ = host_.control.PostAfter(std::max(at - host_.control.clock().Now(), base::Duration(0)),
                                   [this] { Begin(); });
}

void PollLoop::Soon(base::Duration apart) {
  if (!configured_ || in_round_) return;
  const base::TimePoint soonest = asked_ ? began_.steady + apart : host_.control.clock().Now();
  if (soonest < timer_at_) ScheduleAt(soonest);
}

void PollLoop::InventoryChanged() {
  if (Forget(Present())) host_.collected(true);
  const auto inventory = host_.inventory.published().Get();
  const bool any_new =
      std::ranges::any_of(inventory->devices, [this](const inventory::Entry& entry) {
        return entry.facts->vendor == vendor() && Answers(entry) &&
               !collections_.contains(entry.facts->id);
      });
  if (any_new) Soon(kSoon);
}

std::vector<std::string> PollLoop::Present() const {
  std::vector<std::string> present;
  for (const inventory::Entry& entry : host_.inventory.published().Get()->devices)
    if (entry.facts->vendor == vendor() && IsPresent(entry)) present.push_back(entry.facts->id);
  return present;
}

bool PollLoop::Forget(const std::vector<std::string>& present) {
  const std::set<std::string_view> there(present.begin(), present.end());
  const auto gone = [&there](const auto& item) { return !there.contains(item.first); };
  std::erase_if(differed_, gone);
  return std::erase_if(collections_, gone) > 0;
}

void PollLoop::Begin() {
  timer_ = 0;
  timer_at_ = base::TimePoint::max();
  in_round_ = true;
  asked_ = any_new_ = false;
  began_ = {host_.control.clock().Now(), host_.control.clock().Wall()};
  list_ = Present();
  Forget(list_);
  position_ = 0;
  parts_.clear();
  Next();
}

/// Asks the next device that is due. Without a session it ends the round.
void PollLoop::Next() {
  const auto session = source_.session();
  if (!session) return End(false);
  const auto inventory = host_.inventory.published().Get();
  while (position_ < list_.size()) {
    const inventory::Entry* entry = inventory->Find(list_[position_++]);
    if (entry != nullptr && Answers(*entry) && Ask(*entry, *session)) return;
  }
  End(true);
}

/// Null: it must not be asked.
DeviceCollector* PollLoop::CollectorOf(const inventory::Entry& entry, std::uint64_t session) {
  const std::string& id = entry.facts->id;
  std::unique_ptr<DeviceCollector>& collection = collections_[id];
  if (!collection)
    collection =
        std::make_unique<DeviceCollector>(id, *source_.dialect, host_.rejections, counts_[id]);
  collection->SetFacts(session, entry.facts);
  // A worker still hangs on this device: another one would hang as well.
  return collection->hung() && source_.backend->abandoned() > 0 ? nullptr : collection.get();
}

/// What to ask a device now, which counts as asked.
std::optional<device::SampleRequest> PollLoop::DueOf(const inventory::Entry& entry,
                                                     std::uint64_t session, base::TimePoint now) {
  // It was due together with its device.
  if (const auto part = parts_.find(entry.facts->id); part != parts_.end())
    return part->second.measured ? std::nullopt : std::optional(part->second.request);
  DeviceCollector* const collection = CollectorOf(entry, session);
  if (collection == nullptr) return std::nullopt;
  const bool first = collection->fresh();
  auto request = collection->Due(plan_, now);
  any_new_ = any_new_ || (request && first);
  return request;
}

/// Of a device's parts, which follow it: a driver that measures all at once saves a call for each.
std::vector<device::SampleRequest> PollLoop::DueOfParts(const inventory::Entry& entry,
                                                        std::uint64_t session,
                                                        base::TimePoint now) {
  std::vector<device::SampleRequest> due;
  const auto inventory = host_.inventory.published().Get();
  for (std::size_t i = position_; i < list_.size(); ++i) {
    const inventory::Entry* part = inventory->Find(list_[i]);
    if (part == nullptr || !part->IsPartOf(entry.facts->id)) break;
    if (!Answers(*part)) continue;
    auto request = DueOf(*part, session, now);
    if (!request) continue;
    request->address = part->facts->address;
    parts_[list_[i]] = {request->address, *request};
    due.push_back(*std::move(request));
  }
  return due;
}

bool PollLoop::Ask(const inventory::Entry& entry, std::uint64_t session) {
  const std::string& id = entry.facts->id;
  const base::Timestamp sent{host_.control.clock().Now(), host_.control.clock().Wall()};
  auto request = DueOf(entry, session, sent.steady);
  if (!request) return false;
  if (entry.ancestors.empty()) request->parts = DueOfParts(entry, session, sent.steady);
  asked_ = true;
  source_.backend->TakeSample(
      entry.facts->address, *request,
      lifetime_.Guard([this, id, session, sent](base::Result<device::Sample> sample) {
        Answered(id, session, sent, std::move(sample));
      }));
  return true;
}

void PollLoop::Answered(const std::string& device, std::uint64_t session,
                        const base::Timestamp& sent, base::Result<device::Sample> sample) {
  // An address may mean another device in another session, so its answer is dropped. A cancelled
  // request was never sent and is no failure of the device.
  if (source_.session() != session ||
      (!sample.ok() && sample.error().code() == base::Code::kCancelled))
    return End(false);
  const base::TimePoint now = host_.control.clock().Now();
  if (sample.ok()) {
    for (device::Sample& measured : sample->parts) {
      const auto part = std::ranges::find_if(parts_, [&measured](const auto& one) {
        return one.second.address == measured.address && !one.second.measured;
      });
      if (part == parts_.end()) continue;
      part->second.measured = true;
      Take(part->first, std::move(measured), sent, now);
    }
    sample->parts.clear();
    Take(device, *std::move(sample), sent, now);
  } else if (const auto found = collections_.find(device); found != collections_.end()) {
    found->second->Fail(sample.error(), plan_, sent, now);
  }
  host_.collected(false);
  Next();
}

void PollLoop::Take(const std::string& device, device::Sample sample, const base::Timestamp& sent,
                    base::TimePoint now) {
  const auto found = collections_.find(device);
  if (found == collections_.end()) return;
  if (plan_.processes) CompareProcesses(device, sample.processes);
  found->second->Take(std::move(sample), sent, now);
}

/// Reports each differing set of processes once: a reading that keeps differing must not be
/// requested every second.
void PollLoop::CompareProcesses(const std::string& device,
                                const std::vector<device::ProcessSample>& processes) {
  const auto inventory = host_.inventory.published().Get();
  const inventory::Entry* entry = inventory->Find(device);
  if (entry == nullptr || !entry->reading) return;
  std::vector<std::int32_t> sampled = PidsOf(processes);
  if (sampled == PidsOf(entry->reading->processes)) {
    differed_.erase(device);
    return;
  }
  const auto [reported, first] = differed_.try_emplace(device);
  if (!first && reported->second == sampled) return;
  reported->second = std::move(sampled);
  host_.processes_differ(std::string(vendor()), device);
}

void PollLoop::End(bool whole) {
  in_round_ = false;
  const base::TimePoint now = host_.control.clock().Now();
  const base::Duration took = now - began_.steady;
  if (whole && asked_) {
    ++last_.count;
    last_.at = began_.wall;
    last_.took = took;
  }
  // An aborted round is repeated soon, and quantities that need two samples get the second one
  // soon.
  const bool again_soon = any_new_ || (!whole && !list_.empty());
  const base::Duration interval = again_soon ? std::min(host_.interval(), kSoon) : host_.interval();
  ScheduleAt(whole ? std::max(began_.steady + interval, now + took) : began_.steady + interval);
  if (asked_) host_.collected(true);
}

void PollLoop::Show(
    std::map<std::string, std::shared_ptr<const DeviceSample>, std::less<>>& devices) {
  for (const auto& [id, collection] : collections_) devices[id] = collection->Show();
}

}  // namespace penstock::node::sample
