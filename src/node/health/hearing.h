// Counts what is heard of devices: each event once though two sources tell it, all of them in a storm, in bounded memory. Judges nothing.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/core/clock.h"
#include "device/model.h"
#include "node/health/status.h"

namespace penstock::node::health {

/// A code that stands for all beyond the number that are told apart.
inline constexpr std::int64_t kOtherCodes = -1;

class Hearing {
 public:
  /// Whether this is a new event, or the other source's word of one that was heard within the last 2 s (the kernel's log and the driver's
  /// event tell the same thing). The same source tells the same thing twice where it happened twice.
  bool IsNew(const std::string& device, const device::Evidence& evidence, base::TimePoint now);

  /// Counts an event that happened so long ago.
  void Count(const std::string& device, const device::Evidence& evidence, device::Severity severity, const base::Clock& clock,
             base::Duration ago = {});

  /// The same event told again, by a source that knows more of it. False where that makes it no worse than it was counted.
  bool Worsen(const std::string& device, const device::Evidence& evidence, device::Severity severity);

  std::vector<EvidenceCount> Counts() const;

  /// The same of what was heard since then alone; of very many (4096) the latest.
  std::vector<EvidenceCount> CountsSince(base::TimePoint since) const;

  /// The device does not exist any more; what was counted of it stays.
  void Forget(const std::string& device) { told_.erase(device); }

 private:
  /// Of one code: how often each source told it since it was quiet last, and how many events that makes.
  struct Told {
    std::map<device::EvidenceSource, std::uint64_t> by;
    std::uint64_t events = 0;
    base::TimePoint last{};
  };
  using Code = std::pair<std::string, std::int64_t>;
  std::map<std::string, std::map<Code, Told>> told_;
  std::map<std::tuple<std::string, std::string, std::int64_t>, EvidenceCount> counts_;
  std::deque<std::pair<base::TimePoint, const EvidenceCount*>> recent_;  // of counts_, oldest first
  std::map<std::string, std::size_t> codes_;                             // device → how many codes of it are told apart
};

}  // namespace penstock::node::health
