// Level-triggered loop: open, list, describe each device, read each device, and repeat. Only one
// call runs at a time, so that a hang identifies its device.
#include "node/inventory/discovery.h"

#include <algorithm>
#include <iterator>

#include "base/log.h"
#include "device/kinds.h"
#include "os/machine_facts.h"

namespace penstock::node::inventory {

namespace {

constexpr base::Duration kHangRetry = std::chrono::seconds(30);
// Not immediately, so that a source of frequent events does not keep the agent busy.
constexpr base::Duration kSoon = std::chrono::milliseconds(100);
const std::string kUnnamed = "at ";

/// Why the driver no longer lists a device.
std::string WhyLeft(const std::string& sysfs_root, const device::Facts& facts) {
  const std::string left = "no longer present";
  if (!facts.pci || !facts.parent.empty()) return left;
  const std::string address = ToString(*facts.pci);
  const auto driver = os::ReadPciDriver(sysfs_root, address);
  if (!driver) return left + ": there is no PCI function " + address + " (unplugged)";
  return left + ": its PCI function " + address + " is bound to " +
         (driver->empty() ? "no driver" : "the driver " + *driver);
}

template <typename Value>
bool IsMissing(const Result<Value>& result) {
  return !result.ok() && result.error().code() == Code::kNotFound;
}

}  // namespace

Discovery::Discovery(base::Executor& executor, device::AsyncBackend& backend, Inventory& inventory,
                     Options options, Callbacks callbacks)
    : executor_(executor),
      backend_(backend),
      inventory_(inventory),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      backoff_(options_.retry_first, options_.retry_most) {
  std::weak_ptr<std::uint64_t> alive = connection_;
  backend_.Listen({.evidence =
                       [this, alive](const std::vector<device::Evidence>& evidence) {
                         if (!alive.expired()) Evidence(evidence);
                       },
                   .doubt =
                       [this, alive] {
                         if (!alive.expired() && phase_ != Phase::kWaiting) Refresh();
                       },
                   .ended =
                       [this, alive](const Error& error) {
                         if (alive.expired()) return;
                         // A hang of Discovery's own call was reported to its callback: this is
                         // another caller's.
                         in_flight_.clear();
                         Ended(error);
                       }});
}

Discovery::~Discovery() {
  connection_.reset();
  executor_.Cancel(timer_);
}

template <typename Value>
std::function<void(Result<Value>)> Discovery::Current(std::function<void(Result<Value>)> function) {
  return [function = std::move(function), weak = std::weak_ptr(connection_),
          connection = *connection_](Result<Value> value) {
    const auto now = weak.lock();
    const bool unsent = !value.ok() && value.error().code() == Code::kCancelled;
    if (now && *now == connection && !unsent) function(std::move(value));
  };
}

void Discovery::After(base::Duration delay, void (Discovery::*what)()) {
  executor_.Cancel(timer_);
  timer_ = executor_.PostAfter(delay, [this, what] { (this->*what)(); });
}

void Discovery::Start() { Open(); }

void Discovery::OnFirstScan(std::function<void()> callback) { first_scan_ = std::move(callback); }

void Discovery::FirstScanDone() {
  if (auto callback = std::exchange(first_scan_, nullptr)) callback();
}

void Discovery::Refresh() {
  if (phase_ == Phase::kReleased) return;
  if (phase_ == Phase::kWaiting) {
    Open();
  } else if (!busy_) {
    executor_.Cancel(timer_);
    List(false);
  } else {
    rescan_ = true;
  }
}

void Discovery::DescribeNow(std::function<void()> done) {
  if (given_up_ && done) return executor_.Post(std::move(done));
  if (done) await_description_.push_back(std::move(done));
  describe_again_ = true;
  Refresh();
}

std::optional<std::uint64_t> Discovery::session() const {
  return phase_ == Phase::kServing ? std::optional(*connection_) : std::nullopt;
}

void Discovery::SetPoll(base::Duration poll) {
  if (options_.poll == poll) return;
  options_.poll = poll;
  scan_at_ = executor_.clock().Now() + poll;
  if (phase_ == Phase::kServing && !busy_) ScheduleNext();
}

void Discovery::Scan() { List(false); }

void Discovery::Open() {
  executor_.Cancel(timer_);
  phase_ = Phase::kOpening;
  busy_ = true;
  rescan_ = false;
  wanted_.reset();
  soon_.clear();
  backend_.Open(Current<device::Driver>([this](Result<device::Driver> driver) {
    if (!driver.ok()) return NoDriver(driver.error());
    Opened(*std::move(driver));
    backoff_.Reset();
    List(true);
  }));
}

/// A worker that is started again opens the same driver: that changes no time.
void Discovery::Opened(device::Driver driver) {
  const auto place = options_.place ? options_.place() : nullptr;
  const std::string instance = driver.version + " " + (place ? place->instance : "");
  if (driver.version != driver_version_)
    base::Log(base::kInfo, "driver found",
              {{"vendor", options_.vendor},
               {"version", driver.version},
               {"root", place ? place->host_driver_root : ""}});
  driver_version_ = driver.version;
  if (std::exchange(driver_instance_, instance) != instance)
    driver_since_ = executor_.clock().Wall();
  inventory_.SetVendor({options_.vendor, std::make_shared<const device::Driver>(std::move(driver)),
                        "", place, driver_since_});
}

void Discovery::NoDriver(const Error& cause) {
  const auto place = options_.place ? options_.place() : nullptr;
  const auto snapshot = inventory_.published().Get();
  const VendorEntry* before = snapshot->FindVendor(options_.vendor);
  // Of a vendor that is not there nothing is said, unless it was.
  std::string why = cause.message();
  if (why.empty() && before != nullptr)
    why = "this machine has neither its devices nor its driver any more";
  if (!why.empty() && place && !place->unused.empty()) why += "; " + place->unused;
  const Error error(cause.code(), why);
  ++*connection_;
  phase_ = Phase::kWaiting;
  busy_ = false;
  in_flight_.clear();
  backend_.Stop();
  driver_version_.clear();
  const bool was_there = before != nullptr && before->driver != nullptr;
  if (was_there && error.code() == Code::kUnavailable) {
    if (before->reason != error.message())
      base::Log(base::kWarn, "driver does not respond",
                {{"vendor", options_.vendor}, {"why", error.message()}});
    inventory_.SetVendor(
        {options_.vendor, before->driver, error.message(), before->place, before->since});
    DevicesUnknown(error);
  } else if (!error.message().empty()) {
    if (before == nullptr || was_there || before->reason != error.message())
      base::Log(base::kWarn, "no driver", {{"vendor", options_.vendor}, {"why", error.message()}});
    driver_instance_.clear();
    inventory_.SetVendor({options_.vendor, nullptr, error.message()});
    inventory_.SetFacts(options_.vendor, {}, "the driver is gone: " + error.message(),
                        executor_.clock().Wall());
  }
  inventory_.PublishReadTimes();
  After(rescan_ ? base::Duration(std::chrono::milliseconds(20)) : backoff_.Next(),
        &Discovery::Open);
  rescan_ = false;
  FirstScanDone();
  CallDescribed();
}

/// Through the executor, because what is called may use this object.
void Discovery::CallDescribed() {
  for (auto& done : std::exchange(await_this_description_, {})) executor_.Post(std::move(done));
}

void Discovery::DevicesUnknown(const Error& error) {
  const auto snapshot = inventory_.published().Get();
  for (const Entry& entry : snapshot->devices)
    if (entry.facts->vendor == options_.vendor && entry.health.state != device::HealthState::kGone)
      ReportLost(entry.facts->id, device::kDriverSilent, error);
}

void Discovery::Ended(const Error& error) {
  if (phase_ == Phase::kWaiting || phase_ == Phase::kReleased) return;
  ++*connection_;
  busy_ = false;
  inventory_.PublishReadTimes();
  executor_.Cancel(timer_);
  const std::string address = std::exchange(in_flight_, "");
  if (error.code() == Code::kDeadlineExceeded && !address.empty()) {
    Hang& hang = hangs_[NameOf(address)];
    hang.retry_at = executor_.clock().Now() + kHangRetry * (1 << std::min(hang.times++, 6));
    base::Log(base::kError, "driver call hangs; skipping the device until the call returns",
              {{"device", NameOf(address)}, {"address", address}, {"times", hang.times}});
  } else {
    base::Log(base::kWarn, "worker exited",
              {{"vendor", options_.vendor}, {"why", error.message()}});
  }
  phase_ = Phase::kWaiting;
  // A hang identifies its device, which is skipped from now on, so reopen at once. A worker that
  // keeps ending for other reasons is reopened with back-off.
  const bool hung = error.code() == Code::kDeadlineExceeded && !address.empty();
  After(hung ? base::Duration(0) : backoff_.Next(), &Discovery::Open);
}

/// Returns the name of the device behind an address: its id where known, else the address, which
/// identifies the device until the driver renumbers its devices.
std::string Discovery::NameOf(const std::string& address) const {
  const auto id = ids_.find(address);
  return id == ids_.end() ? kUnnamed + address : id->second;
}

/// It is no longer known which device is behind an address.
void Discovery::ForgetNumbers() {
  ids_.clear();
  unread_.clear();
  std::erase_if(hangs_, [](const auto& hang) { return hang.first.starts_with(kUnnamed); });
}

bool Discovery::IsSkipped(const std::string& address) const {
  const auto hang = hangs_.find(NameOf(address));
  if (hang == hangs_.end()) return false;
  return backend_.abandoned() > 0 || executor_.clock().Now() < hang->second.retry_at;
}

/// A part of a device whose calls hang is not asked either.
bool Discovery::IsSkipped(const Known& known) const {
  return IsSkipped(known.address) || (!known.whole.empty() && IsSkipped(known.whole));
}

void Discovery::List(bool fresh) {
  wanted_.reset();
  soon_.clear();
  phase_ = fresh ? Phase::kDescribing : Phase::kServing;
  busy_ = true;
  in_flight_.clear();
  backend_.List(
      Current<std::vector<std::string>>([this, fresh](Result<std::vector<std::string>> addresses) {
        if (!addresses.ok()) return NoDriver(addresses.error());
        Listed(*addresses, fresh);
      }));
}

void Discovery::Listed(const std::vector<std::string>& addresses, bool fresh) {
  std::vector<std::string> listed;
  for (const Known& known : known_)
    if (known.whole.empty()) listed.push_back(known.address);
  const bool same = addresses == listed;
  const bool undescribed = std::ranges::any_of(
      known_, [this](const Known& known) { return known.id.empty() && !IsSkipped(known); });
  const bool describe_again = std::exchange(describe_again_, false);
  await_this_description_.insert(await_this_description_.end(),
                                 std::make_move_iterator(await_description_.begin()),
                                 std::make_move_iterator(await_description_.end()));
  await_description_.clear();
  if (!fresh && same && !undescribed && !rescan_ && !describe_again) {
    FollowMissing();
    return ReadNext(0);
  }
  rescan_ = false;
  if (!same) ForgetNumbers();
  phase_ = Phase::kDescribing;
  known_.clear();
  described_.clear();
  found_.clear();
  for (const std::string& address : addresses) known_.push_back({address, "", ""});
  DescribeNext(0, fresh);
}

/// A device that is missing may be unplugged, or bound to another driver, only later.
void Discovery::FollowMissing() {
  const auto snapshot = inventory_.published().Get();
  for (const Entry& entry : snapshot->devices)
    if (entry.facts->vendor == options_.vendor && entry.health.state == device::HealthState::kGone)
      inventory_.SetHealth(entry.facts->id, device::HealthState::kGone,
                           WhyLeft(options_.sysfs_root, *entry.facts), executor_.clock().Wall());
}

bool Discovery::IsAnother(const std::string& address, const std::string& id) const {
  const auto before = ids_.find(address);
  return before != ids_.end() && before->second != id;
}

void Discovery::DescribeAll(bool fresh) {
  ForgetNumbers();
  described_.clear();
  found_.clear();
  std::erase_if(known_, [](const Known& known) { return !known.whole.empty(); });
  for (Known& known : known_) known.id.clear();
  DescribeNext(0, fresh);
}

void Discovery::DescribeNext(std::size_t position, bool fresh) {
  for (; position < known_.size(); ++position) {
    const Known& known = known_[position];
    // A driver finds the parts of a device through it: of one that it did not find, it knows none.
    if (!known.whole.empty() && !found_.contains(known.whole))
      HandleFacts(position, Error(Code::kDataLoss, "the device that it is a part of was not read"));
    else if (IsSkipped(known))
      HandleFacts(position, Error(Code::kDataLoss, "a driver call for this device hangs"));
    else
      break;
  }
  if (position == known_.size()) return Described(fresh);
  in_flight_ = known_[position].address;
  backend_.Describe(in_flight_,
                    Current<device::Facts>([this, position, fresh](Result<device::Facts> facts) {
                      if (!facts.ok() && facts.error().code() == Code::kDeadlineExceeded)
                        return Ended(facts.error());
                      in_flight_.clear();
                      // The list is as long as before, but with other devices: for the devices that
                      // were skipped, the address is no longer known.
                      if (facts.ok() && IsAnother(known_[position].address, facts->id))
                        return DescribeAll(fresh);
                      if (!known_[position].whole.empty() && IsMissing(facts)) {
                        // It was removed after its device was described.
                        known_.erase(known_.begin() + static_cast<std::ptrdiff_t>(position));
                        describe_again_ = true;
                        return DescribeNext(position, fresh);
                      }
                      HandleFacts(position, std::move(facts));
                      DescribeNext(position + 1, fresh);
                    }));
}

void Discovery::HandleFacts(std::size_t position, Result<device::Facts> facts) {
  Known& known = known_[position];
  if (facts.ok()) {
    known.id = facts->id;
    hangs_.erase(kUnnamed + known.address);
    unread_.erase(known.address);
    ids_[known.address] = facts->id;
    found_.insert(known.address);
    described_.push_back(*std::move(facts));
    return AddParts(position, described_.back());
  }
  const std::string& why = facts.error().message();
  if (std::string& logged = unread_[known.address]; std::exchange(logged, why) != why)
    base::Log(base::kWarn, "cannot read the facts of a device",
              {{"vendor", options_.vendor}, {"address", known.address}, {"why", why}});
  const auto id = ids_.find(known.address);
  const auto snapshot = inventory_.published().Get();
  const Entry* entry = id == ids_.end() ? nullptr : snapshot->Find(id->second);
  if (entry == nullptr) return;
  known.id = id->second;
  described_.push_back(*entry->facts);
  AddParts(position, described_.back());
}

/// The parts of a device are described and read after it.
void Discovery::AddParts(std::size_t position, const device::Facts& facts) {
  const std::string whole = known_[position].address;
  for (const std::string& part : facts.parts) {
    if (std::ranges::find(known_, part, &Known::address) != known_.end()) continue;
    ++position;
    known_.insert(known_.begin() + static_cast<std::ptrdiff_t>(position), {part, "", whole});
  }
}

/// A device in the list that cannot be described has no id, so it may be any of the devices that
/// were not described: none of those is known to have left the list.
void Discovery::KeepHidden() {
  hidden_.clear();
  if (std::ranges::none_of(known_, [](const Known& known) { return known.id.empty(); })) return;
  const auto snapshot = inventory_.published().Get();
  for (const Entry& entry : snapshot->devices) {
    if (entry.facts->vendor != options_.vendor || entry.health.state == device::HealthState::kGone)
      continue;
    const bool described = std::ranges::any_of(
        described_, [&](const auto& facts) { return facts.id == entry.facts->id; });
    if (described) continue;
    described_.push_back(*entry.facts);
    hidden_.push_back(entry.facts->id);
  }
}

void Discovery::Described(bool fresh) {
  base::Log(base::kDebug, "facts of all devices read",
            {{"vendor", options_.vendor}, {"count", described_.size()}});
  KeepHidden();
  inventory_.SetFacts(
      options_.vendor, std::move(described_),
      [this](const device::Facts& facts) { return WhyLeft(options_.sysfs_root, facts); },
      executor_.clock().Wall());
  described_.clear();
  for (const std::string& id : hidden_)
    ReportLost(
        id, device::kUnreadable,
        Error(Code::kDataLoss,
              "the driver lists a device whose facts cannot be read, which may be this one"));
  if (fresh) callbacks_.described(fresh);
  phase_ = Phase::kServing;
  CallDescribed();
  ReadNext(0);
}

void Discovery::ReadNext(std::size_t position) {
  for (; position < known_.size(); ++position) {
    const Known& known = known_[position];
    if (known.id.empty() || (wanted_ && !wanted_->contains(known.id))) continue;
    if (!IsSkipped(known)) break;
    ReportLost(known.id, device::kHang,
               Error(Code::kDeadlineExceeded, "a driver call for this device hangs"));
  }
  if (position == known_.size()) {
    const base::TimePoint now = executor_.clock().Now();
    if (!std::exchange(wanted_, std::nullopt)) {
      base::Log(base::kDebug, "devices read", {{"vendor", options_.vendor}});
      scan_at_ = now + options_.poll;
      FirstScanDone();
    }
    if (describe_again_) scan_at_ = std::min(scan_at_, now + kSoon);
    return ScheduleNext();
  }
  in_flight_ = known_[position].address;
  const base::TimePoint began = executor_.clock().Now();
  backend_.Read(in_flight_,
                Current<device::Reading>([this, position, began](Result<device::Reading> reading) {
                  const Known& known = known_[position];
                  if (!reading.ok() && reading.error().code() == Code::kDeadlineExceeded) {
                    ReportLost(known.id, device::kHang, reading.error());
                    return Ended(reading.error());
                  }
                  std::vector<device::PartReading> parts;
                  if (reading.ok()) {
                    hangs_.erase(known.id);
                    parts = std::exchange(reading->parts, {});
                  }
                  const base::Duration ago = executor_.clock().Now() - began;
                  if (!known.whole.empty() && IsMissing(reading))
                    describe_again_ = true;
                  else
                    HandleReading(known.id, std::move(reading), ago);
                  ReadNext(HandleParts(position, parts, ago));
                }));
}

/// Parts follow their device. Returns the position behind those that were read with it: a call for
/// each of many partitions costs more than what they report.
std::size_t Discovery::HandleParts(std::size_t position,
                                   const std::vector<device::PartReading>& parts,
                                   base::Duration ago) {
  for (++position; position < known_.size(); ++position) {
    const Known& known = known_[position];
    const auto part = std::ranges::find(parts, known.address, &device::PartReading::address);
    if (part == parts.end() || known.id.empty() || IsSkipped(known)) break;
    hangs_.erase(known.id);
    HandleReading(known.id, device::Reading{.processes = part->processes}, ago);
  }
  return position;
}

/// No call is in progress: schedules the next one.
void Discovery::ScheduleNext() {
  in_flight_.clear();
  busy_ = false;
  inventory_.PublishReadTimes();
  if (std::exchange(rescan_, false)) return List(false);
  const base::TimePoint now = executor_.clock().Now();
  base::TimePoint some_at = base::TimePoint::max();
  if (AnyUnhealthy()) some_at = now + options_.poll_unhealthy;
  if (!soon_.empty()) some_at = read_some_at_ + kSoon;
  if (some_at <= now) return ReadSome();
  if (some_at < scan_at_) return After(some_at - now, &Discovery::ReadSome);
  After(std::max(scan_at_ - now, base::Duration(0)), &Discovery::Scan);
}

bool Discovery::AnyUnhealthy() const {
  const auto snapshot = inventory_.published().Get();
  return std::ranges::any_of(known_, [&](const Known& known) {
    const Entry* entry = snapshot->Find(known.id);
    return entry != nullptr && entry->health.state == device::HealthState::kUnhealthy;
  });
}

/// Reads the devices that events were about, and those that are unhealthy.
void Discovery::ReadSome() {
  executor_.Cancel(timer_);
  busy_ = true;
  read_some_at_ = executor_.clock().Now();
  wanted_ = std::exchange(soon_, {});
  const auto snapshot = inventory_.published().Get();
  for (const Known& known : known_) {
    const Entry* entry = snapshot->Find(known.id);
    if (entry != nullptr && entry->health.state == device::HealthState::kUnhealthy)
      wanted_->insert(known.id);
  }
  ReadNext(0);
}

void Discovery::HandleReading(const std::string& id, Result<device::Reading> reading,
                              base::Duration ago) {
  if (!reading.ok()) return ReportLost(id, device::kUnreadable, reading.error(), ago);
  describe_again_ = describe_again_ || reading->facts_changed;
  callbacks_.reading(id, *reading, ago);
  // They are followed by the health monitor alone, and some grow all the time: the inventory would
  // change with each reading.
  std::erase_if(reading->evidence, [](const device::Evidence& evidence) {
    return evidence.kind.starts_with(device::kResetCounter);
  });
  inventory_.SetReading(id, *std::move(reading), executor_.clock().Wall());
}

void Discovery::ReportLost(const std::string& id, std::string_view kind, const Error& error,
                           base::Duration ago) {
  device::Reading silent;
  silent.reachable = false;
  device::Evidence evidence;
  evidence.device = id;
  evidence.kind = kind;
  evidence.text = error.message();
  evidence.standing = true;
  silent.evidence.push_back(std::move(evidence));
  HandleReading(id, std::move(silent), ago);
}

void Discovery::ReadSoon(const std::string& id) {
  if (phase_ != Phase::kServing) {
    rescan_ = phase_ != Phase::kReleased;
    return;
  }
  soon_.insert(id);
  if (!busy_) ScheduleNext();
}

void Discovery::Evidence(const std::vector<device::Evidence>& evidence) {
  for (const device::Evidence& one : evidence) {
    if (one.kind == device::kFactsChanged)
      DescribeSoon();
    else
      callbacks_.evidence(one);
  }
}

/// A change of a driver consists of several steps, each with an event. They do not postpone the
/// description, and what changed while the devices were described is described again.
void Discovery::DescribeSoon() {
  if (phase_ == Phase::kReleased || phase_ == Phase::kWaiting) return;  // Open describes them
  describe_again_ = true;
  if (phase_ != Phase::kServing || busy_) return;
  scan_at_ = std::min(scan_at_, executor_.clock().Now() + kSoon);
  ScheduleNext();
}

}  // namespace penstock::node::inventory
