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

bool IsExact(const api::LayoutParts& parts) { return parts.place || parts.outer || parts.vacant; }
bool IsExact(const DesiredParts& parts) { return parts.placement || parts.outer || parts.vacant; }

std::optional<device::Placement> PlacementOf(const std::optional<api::LayoutPlace>& place) {
  if (!place) return std::nullopt;
  return device::Placement{place->start, place->size};
}

/// How exactly a place is desired.
int Exactness(const DesiredParts& parts) {
  return (parts.placement ? 2 : 0) + (parts.outer || parts.vacant ? 1 : 0);
}

/// Compares existing parts with desired ones one by one, the most exact places first.
class PlaceByPlace {
 public:
  PlaceByPlace(const Division& now, const DesiredDivision& desired)
      : now_(now), desired_(desired), taken_(now.parts.size(), false) {}

  std::string Run() {
    for (const int exactness : {3, 2, 1, 0})
      for (const DesiredParts& parts : desired_.parts)
        for (int i = 0; i < parts.count && Exactness(parts) == exactness; ++i)
          if (!Take(parts)) return Missing(parts);
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      const ExistingPart& part = now_.parts[i];
      if (!taken_[i] && !(part.outer && HasParts(now_, part)))
        return InWords(part.profile, part.placement) + " (" + part.id + ") is not desired";
    }
    return "";
  }

 private:
  bool Is(const ExistingPart& part, const DesiredParts& wanted) const {
    if (part.profile != wanted.profile) return false;
    if (part.outer ? !wanted.vacant || HasParts(now_, part) : wanted.vacant) return false;
    // A driver that does not place parts within others does not report where they lie.
    const bool placed = part.placement || part.parent.empty();
    if (wanted.placement && placed && !IsThere(part, *wanted.placement)) return false;
    if (!wanted.outer) return true;
    const auto outer = std::ranges::find(now_.parts, part.parent, &ExistingPart::id);
    return outer != now_.parts.end() && outer->placement == wanted.outer;
  }

  bool Take(const DesiredParts& wanted) {
    for (std::size_t i = 0; i < taken_.size(); ++i)
      if (!taken_[i] && Is(now_.parts[i], wanted)) return taken_[i] = true;
    return false;
  }

  static std::string Missing(const DesiredParts& parts) {
    std::string text = InWords(parts.profile, parts.placement);
    if (parts.outer) text += " in the part" + InWords("", parts.outer);
    if (parts.vacant) text += " without parts in it";
    return text + " is missing";
  }

  const Division& now_;
  const DesiredDivision& desired_;
  std::vector<bool> taken_;  // existing parts that are desired
};

/// Why a mode that no layout sets is not as the rule says; empty: it is.
std::string WhyNotInMode(const device::Mode& mode, const std::string& value) {
  if (mode.current == value) return "";
  const std::string is =
      "the mode " + mode.name + " is \"" + mode.current + "\", not \"" + value + "\"";
  if (!mode.available.empty() && std::ranges::count(mode.available, value) == 0)
    return is + ", which the device does not have: it can be " + base::Join(mode.available, ", ");
  if (mode.effect != device::ModeEffect::kAfterDriverReload) return is + ": set it first";
  return is + ", and this driver cannot change it";
}

/// Of a device whose parts come with its mode.
Result<DesiredByRule> ModeOn(const device::Facts& device, const api::LayoutRule& rule,
                             const device::PartTerms& terms) {
  DesiredByRule desired{.division = {.by_mode = true}, .remarks = {}};
  std::vector<std::string> problems;
  for (const auto& [name, value] : rule.modes) {
    const auto mode = std::ranges::find(device.modes, name, &device::Mode::name);
    if (mode == device.modes.end()) {
      problems.push_back("the device has no mode " + name + ", which shall be \"" + value + "\"");
    } else if (name == terms.mode) {
      desired.division.mode = name;
      desired.division.value = value;
    } else if (mode->effect == device::ModeEffect::kAfterDriverReload &&
               std::ranges::count(mode->available, value) > 0) {
      desired.division.later = name;
      desired.division.later_value = value;
    } else if (std::string why = WhyNotInMode(*mode, value); !why.empty()) {
      problems.push_back(std::move(why));
    }
  }
  if (rule.modes.empty())
    problems.push_back("its parts come with its mode " + terms.mode +
                       ", and the layout does not say which");
  if (!problems.empty()) return Error(Code::kInvalidArgument, base::Join(problems, "\n"));
  return desired;
}

}  // namespace

Result<DesiredByRule> DesiredOn(const device::Facts& device, const api::LayoutRule& rule,
                                const device::Dialect& dialect) {
  DesiredByRule desired;
  const device::PartTerms& terms = *dialect.part_terms();
  if (terms.by_mode) return ModeOn(device, rule, terms);
  if (!rule.modes.empty())
    return Error(Code::kInvalidArgument,
                 "the device is divided into parts of its profiles, and the layout sets modes");
  if (HasMode(device, terms.mode)) {
    desired.division.mode = terms.mode;
    desired.division.value = rule.partitioned ? terms.on : terms.off;
  } else if (rule.partitioned) {
    return Error(Code::kInvalidArgument,
                 "the device cannot be divided: it has no mode \"" + terms.mode + "\"");
  }
  std::map<std::string, int> counts;
  std::vector<std::string> problems;
  const auto want = [&](const std::string& profile, const api::LayoutParts& parts) {
    if (!IsExact(parts)) {
      counts[profile] += parts.count;
      return;
    }
    desired.division.parts.push_back({.profile = profile,
                                      .count = parts.count,
                                      .placement = PlacementOf(parts.place),
                                      .outer = PlacementOf(parts.outer),
                                      .vacant = parts.vacant});
  };
  for (const api::LayoutParts& parts : rule.parts) {
    if (device.profiles.empty()) {
      want(parts.profile, parts);
      continue;
    }
    const auto profile = dialect.FindProfile(parts.profile, device.profiles);
    if (!profile.ok()) {
      problems.push_back(profile.error().message());
      continue;
    }
    want((*profile)->name, parts);
    if ((*profile)->name != parts.profile)
      desired.remarks.push_back(parts.profile + " is " + (*profile)->name + " here");
  }
  if (!problems.empty()) return Error(Code::kInvalidArgument, base::Join(problems, "\n"));
  for (const auto& [profile, count] : counts)
    desired.division.parts.push_back({.profile = profile, .count = count});
  return desired;
}

DesiredDivision AsItIs(const Division& now, const DesiredDivision& desired) {
  DesiredDivision as_it_is{.by_mode = desired.by_mode};
  if (const device::Mode* found = now.FindMode(desired.mode)) {
    as_it_is.mode = found->name;
    as_it_is.value = found->current;
  }
  if (const device::Mode* found = now.FindMode(desired.later)) {
    as_it_is.later = found->name;
    as_it_is.later_value = found->current;
  }
  if (desired.by_mode) return as_it_is;
  for (const ExistingPart& part : now.parts) {
    const bool vacant = part.outer && !HasParts(now, part);
    if (part.outer && !(vacant && part.placement)) continue;
    DesiredParts parts{.profile = part.profile, .placement = part.placement, .vacant = vacant};
    for (const ExistingPart& outer : now.parts)
      if (outer.id == part.parent) parts.outer = outer.placement;
    as_it_is.parts.push_back(std::move(parts));
  }
  return as_it_is;
}

std::string WhyNotAsDesired(const Division& now, const DesiredDivision& desired, bool mode_only) {
  const auto differs = [&](const std::string& name, const std::string& value) -> std::string {
    const device::Mode* mode = now.FindMode(name);
    if (mode == nullptr || mode->current == value) return "";
    return "the mode " + mode->name + " is \"" + mode->current + "\", not \"" + value + "\"";
  };
  if (std::string why = differs(desired.later, desired.later_value); !why.empty()) return why;
  if (std::string why = differs(desired.mode, desired.value); !why.empty()) return why;
  if (mode_only || desired.by_mode) return "";
  if (std::ranges::any_of(desired.parts, [](const auto& parts) { return IsExact(parts); }))
    return PlaceByPlace(now, desired).Run();
  std::map<std::string, int> counts;
  for (const api::LayoutParts& parts : PartsOf(now)) counts[parts.profile] = parts.count;
  const auto wanted = DesiredCounts(desired);
  if (counts == wanted) return "";
  return "it has " + CountsInWords(counts) + ", not " + CountsInWords(wanted);
}

}  // namespace penstock::node::partition
