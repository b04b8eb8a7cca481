// Counts device errors: an event that two sources report is counted once, and a storm of events
// needs bounded memory.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/core/clock.h"
#include "device/model.h"
#include "node/health/status.h"

namespace penstock::node::health {

/// The code that stands for all codes beyond the number that is counted separately.
inline constexpr std::int64_t kOtherCodes = -1;

class EventCounter {
 public:
  /// Returns true for a new event, false if another source already reported it within the last 2 s
  /// (the kernel's log and the driver's event stream report the same events). Two reports from the
  /// same source are two events.
  bool IsNew(const std::string& device, const device::Evidence& evidence, base::TimePoint now);

  /// Counts an event that happened `ago` before now.
  void Count(const std::string& device, const device::Evidence& evidence, device::Severity severity,
             const base::Clock& clock, base::Duration ago = {});

  /// Raises the severity of an event already counted, when a second source knows more about it.
  /// Returns false if the new severity is not higher.
  bool Worsen(const std::string& device, const device::Evidence& evidence,
              device::Severity severity);

  std::vector<EvidenceCount> Counts() const;

  /// Counts of the events since `since`, from at most the latest 4096 events.
  std::vector<EvidenceCount> CountsSince(base::TimePoint since) const;

  /// The device no longer exists. Its counts are kept.
  void Forget(const std::string& device) { reported_.erase(device); }

 private:
  /// One code: how many reports each source made since the last quiet period, and how many events
  /// these reports amount to.
  struct Reported {
    std::map<device::EvidenceSource, std::uint64_t> by;
    std::uint64_t events = 0;
    base::TimePoint last{};
  };
  using Code = std::pair<std::string, std::int64_t>;
  std::map<std::string, std::map<Code, Reported>> reported_;
  std::map<std::tuple<std::string, std::string, std::int64_t>, EvidenceCount> counts_;
  std::deque<std::pair<base::TimePoint, const EvidenceCount*>> recent_;  // of counts_, oldest first
  // Device → number of its codes that are counted separately.
  std::map<std::string, std::size_t> codes_;
};

}  // namespace penstock::node::health
