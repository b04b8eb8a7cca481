#include "node/health/event_counter.h"

#include <algorithm>

namespace penstock::node::health {
namespace {

constexpr base::Duration kSameEvent = std::chrono::seconds(2);
constexpr std::size_t kMaxCodes = 256;  // per device
constexpr std::size_t kMaxRecent = 4096;

}  // namespace

bool EventCounter::IsNew(const std::string& device, const device::Evidence& evidence,
                         base::TimePoint now) {
  auto& codes = reported_[device];
  if (codes.size() >= kMaxCodes)
    std::erase_if(codes, [now](const auto& code) { return now - code.second.last >= kSameEvent; });
  const Code code(evidence.kind, evidence.code);
  if (codes.size() >= kMaxCodes && !codes.contains(code))
    return true;  // count it twice rather than not at all
  Reported& reported = codes[code];
  if (now - reported.last >= kSameEvent) reported = {};
  reported.last = now;
  if (++reported.by[evidence.source] <= reported.events) return false;
  ++reported.events;
  return true;
}

void EventCounter::Count(const std::string& device, const device::Evidence& evidence,
                         device::Severity severity, const base::Clock& clock, base::Duration ago) {
  auto at = counts_.find({device, evidence.kind, evidence.code});
  if (at == counts_.end()) {
    std::size_t& codes = codes_[device];
    const std::int64_t code = codes < kMaxCodes ? evidence.code : kOtherCodes;
    const std::string kind = codes < kMaxCodes ? evidence.kind : "other";
    bool fresh = false;
    std::tie(at, fresh) =
        counts_.try_emplace({device, kind, code}, EvidenceCount{device, kind, code, severity, 0});
    codes += fresh ? 1 : 0;
  }
  at->second.severity = severity;
  ++at->second.count;
  at->second.last = std::max(
      at->second.last, clock.Wall() - std::chrono::duration_cast<base::WallTime::duration>(ago));
  if (ago > base::Duration(0)) return;
  recent_.emplace_back(clock.Now(), &at->second);
  if (recent_.size() > kMaxRecent) recent_.pop_front();
}

bool EventCounter::Worsen(const std::string& device, const device::Evidence& evidence,
                          device::Severity severity) {
  const auto at = counts_.find({device, evidence.kind, evidence.code});
  if (at == counts_.end() || severity <= at->second.severity) return false;
  at->second.severity = severity;
  return true;
}

std::vector<EvidenceCount> EventCounter::Counts() const {
  std::vector<EvidenceCount> counts;
  counts.reserve(counts_.size());
  for (const auto& [what, count] : counts_) counts.push_back(count);
  return counts;
}

std::vector<EvidenceCount> EventCounter::CountsSince(base::TimePoint since) const {
  std::map<const EvidenceCount*, std::uint64_t> within;
  for (auto event = recent_.rbegin(); event != recent_.rend() && event->first >= since; ++event)
    ++within[event->second];
  std::vector<EvidenceCount> counts;
  for (const auto& [what, count] : counts_) {
    const auto found = within.find(&count);
    if (found == within.end()) continue;
    counts.push_back(count);
    counts.back().count = found->second;
  }
  return counts;
}

}  // namespace penstock::node::health
