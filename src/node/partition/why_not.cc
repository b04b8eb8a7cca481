#include "node/partition/why_not.h"

#include <algorithm>
#include <bit>
#include <map>

#include "base/core/strings.h"

namespace penstock::node::partition {
namespace {

/// Held parts that are released one by one in thought, to find the one that is in the way.
constexpr std::size_t kMaxReleased = 8;

std::string HeldInWords(const ExistingPart& part) {
  return InWords(part.profile, part.placement) + " (" + part.id + "), held by " + part.holder;
}

bool IsSolvable(const SolveInput& input) {
  bool proven = true;
  return Solve(input, proven).has_value();
}

std::string ListOf(const std::vector<std::string>& items, std::string_view last) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i)
    text += (i == 0 ? "" : i + 1 == items.size() ? " " + std::string(last) + " " : ", ") + items[i];
  return text;
}

/// "2 of 1g.5gb and 1 of 3g.20gb".
std::string DesiredInWords(const ResolvedDivision& desired) {
  std::vector<std::string> counted;
  const auto add = [&](const std::vector<ResolvedParts>& all) {
    for (const ResolvedParts& one : all)
      if (one.total() > 0) counted.push_back(Counted(one.total(), one.profile->name));
  };
  add(desired.parts);
  for (const ResolvedNest& nest : desired.nests) {
    add(nest.parts);
    for (const auto& fixed : nest.fixed) add(fixed.parts);
  }
  return ListOf(counted, "and");
}

/// One desired part less.
SolveInput Without(const SolveInput& input, ResolvedDivision& less) {
  return {input.now, input.device, less, input.available, input.stays};
}

/// Desired parts that fit as soon as there is one less of a profile: the names of such profiles.
std::vector<std::string> TooMuchByOne(const SolveInput& input) {
  std::vector<std::string> names;
  const auto attempt = [&](auto&& at) {
    ResolvedDivision less = input.desired;
    ResolvedParts& parts = at(less);
    if (parts.count == 0) return;
    --parts.count;
    if (IsSolvable(Without(input, less))) names.push_back(parts.profile->name);
  };
  for (std::size_t i = 0; i < input.desired.parts.size(); ++i)
    attempt([i](ResolvedDivision& less) -> ResolvedParts& { return less.parts[i]; });
  for (std::size_t i = 0; i < input.desired.nests.size(); ++i)
    for (std::size_t j = 0; j < input.desired.nests[i].parts.size(); ++j)
      attempt([i, j](ResolvedDivision& less) -> ResolvedParts& { return less.nests[i].parts[j]; });
  return names;
}

/// The slices that the desired parts take at least; 0 where the driver places them.
int SlicesOf(const ResolvedDivision& desired) {
  int slices = 0;
  const auto size = [](const device::PartProfile& profile) {
    int least = profile.placements.empty() ? 0 : kMaxSlices;
    for (const device::Placement& at : profile.placements) least = std::min(least, at.size);
    return least;
  };
  for (const ResolvedParts& one : desired.parts) slices += one.total() * size(*one.profile);
  for (const ResolvedNest& nest : desired.nests)
    slices += std::max<int>(1, static_cast<int>(nest.fixed.size())) * size(*nest.outer);
  return slices;
}

Error WhyNotTogether(const SolveInput& input) {
  const std::string all = DesiredInWords(input.desired);
  const int needed = SlicesOf(input.desired), there = std::popcount(input.device.extent());
  if (needed > there)
    return {Code::kInvalidArgument, all + " take " + std::to_string(needed) +
                                        " slices of memory, and the device has " +
                                        std::to_string(there)};
  std::string text = all + " do not fit together, wherever they are placed";
  if (const auto names = TooMuchByOne(input); !names.empty())
    text += "; without one of " + ListOf(names, "or") + " they do";
  return {Code::kInvalidArgument, text};
}

}  // namespace

Status CheckHeldParts(const SolveInput& input) {
  std::map<std::string, int> held;
  for (std::size_t i = 0; i < input.now.parts.size(); ++i)
    if (input.stays[i] && !input.now.parts[i].outer) ++held[input.now.parts[i].profile];
  std::vector<std::string> problems;
  for (std::size_t i = 0; i < input.now.parts.size(); ++i) {
    const ExistingPart& part = input.now.parts[i];
    if (!input.stays[i] || part.outer) continue;
    const int desired = input.desired.CountOf(part.profile);
    if (held[part.profile] <= desired) continue;
    problems.push_back(HeldInWords(part) + ": " +
                       (desired == 0
                            ? "none of " + part.profile + " is desired"
                            : "only " + Counted(desired, part.profile) + " are desired, and " +
                                  std::to_string(held[part.profile]) + " are held"));
  }
  if (problems.empty()) return {};
  return Error(Code::kFailedPrecondition, base::Join(problems, "\n"));
}

Error WhyNoSolution(const SolveInput& input, bool proven) {
  if (!proven)
    return {Code::kResourceExhausted, "there are too many ways to place " +
                                          DesiredInWords(input.desired) +
                                          " to try them all, and none of the first ones fits"};
  SolveInput released = input;
  released.stays.assign(released.stays.size(), false);
  if (!IsSolvable(released)) return WhyNotTogether(released);
  std::vector<std::string> blockers, held;
  for (std::size_t i = 0; i < input.now.parts.size(); ++i) {
    if (!input.stays[i]) continue;
    held.push_back(HeldInWords(input.now.parts[i]));
    if (held.size() > kMaxReleased) continue;
    SolveInput without = input;
    without.stays[i] = without.available[i] = false;
    if (IsSolvable(without)) blockers.push_back(held.back());
  }
  const std::string all = DesiredInWords(input.desired);
  if (!blockers.empty())
    return {Code::kFailedPrecondition, all + " do not fit beside " + ListOf(blockers, "or beside") +
                                           "; they will as soon as it is released"};
  return {Code::kFailedPrecondition,
          all + " do not fit beside these parts, of which several have to be released: " +
              base::Join(held, "; ")};
}

}  // namespace penstock::node::partition
