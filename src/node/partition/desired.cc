#include "node/partition/desired.h"

#include <algorithm>
#include <map>

#include "base/core/strings.h"
#include "node/partition/generate.h"
#include "node/partition/space.h"

namespace penstock::node::partition {
namespace {

bool HasMode(const device::Facts& device, const std::string& mode) {
  return std::ranges::find(device.modes, mode, &device::Mode::name) != device.modes.end();
}

std::map<std::string, int> DesiredCounts(const DesiredDivision& desired) {
  std::map<std::string, int> counts;
  for (const DesiredParts& parts : desired.parts)
    if (parts.count > 0) counts[parts.profile] += parts.count;
  return counts;
}

std::string CountsInWords(const std::map<std::string, int>& counts) {
  std::vector<std::string> counted;
  for (const auto& [profile, count] : counts) counted.push_back(Counted(count, profile));
  return counted.empty() ? "no parts" : base::Join(counted, ", ");
}

}  // namespace

Result<DesiredByRule> DesiredOn(const device::Facts& device, const api::LayoutRule& rule,
                                const device::Dialect& dialect) {
  DesiredByRule desired;
  const device::PartTerms& terms = *dialect.part_terms();
  if (HasMode(device, terms.mode)) {
    desired.division.mode = terms.mode;
    desired.division.value = rule.partitioned ? terms.on : terms.off;
  } else if (rule.partitioned) {
    return Error(Code::kInvalidArgument,
                 "the device cannot be divided: it has no mode \"" + terms.mode + "\"");
  }
  std::map<std::string, int> counts;
  std::vector<std::string> problems;
  for (const api::LayoutParts& parts : rule.parts) {
    if (device.profiles.empty()) {
      counts[parts.profile] += parts.count;
      continue;
    }
    const auto profile = dialect.FindProfile(parts.profile, device.profiles);
    if (!profile.ok()) {
      problems.push_back(profile.error().message());
      continue;
    }
    counts[(*profile)->name] += parts.count;
    if ((*profile)->name != parts.profile)
      desired.remarks.push_back(parts.profile + " is " + (*profile)->name + " here");
  }
  if (!problems.empty()) return Error(Code::kInvalidArgument, base::Join(problems, "\n"));
  for (const auto& [profile, count] : counts) desired.division.parts.push_back({profile, count});
  return desired;
}

std::string WhyNotAsDesired(const Division& now, const DesiredDivision& desired, bool mode_only) {
  if (const device::Mode* mode = now.FindMode(desired.mode);
      mode != nullptr && mode->current != desired.value)
    return "the mode " + mode->name + " is \"" + mode->current + "\", not \"" + desired.value +
           "\"";
  if (mode_only) return "";
  std::map<std::string, int> counts;
  for (const api::LayoutParts& parts : PartsOf(now)) counts[parts.profile] = parts.count;
  const auto wanted = DesiredCounts(desired);
  if (counts == wanted) return "";
  return "it has " + CountsInWords(counts) + ", not " + CountsInWords(wanted);
}

}  // namespace penstock::node::partition
