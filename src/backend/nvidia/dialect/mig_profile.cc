#include "backend/nvidia/dialect/mig_profile.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>

#include "base/core/strings.h"

namespace penstock::backend::nvidia {
namespace {

using device::PartProfile;

/// "3g" as 3. Go's Atoi, which also accepts leading zeros.
std::optional<int> NumberBefore(std::string_view text, std::string_view unit) {
  if (!text.ends_with(unit)) return std::nullopt;
  text.remove_suffix(unit.size());
  constexpr std::size_t kMostDigits = 6;
  if (text.empty() || text.size() > kMostDigits || !base::ParseUint(text)) return std::nullopt;
  return static_cast<int>(*base::ParseUint(text));
}

Error WrongName(std::string_view name, const std::string& why) {
  return {Code::kInvalidArgument, "\"" + std::string(name) + "\" is no MIG profile: " + why +
                                      "; profiles are named as in 1g.5gb, 1g.5gb+me, 1c.3g.20gb"};
}

bool IsAttribute(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !text.empty() && !digit(text.front()) && text.front() != '.' && text.back() != '.' &&
         std::ranges::all_of(text, [&](char c) { return letter(c) || digit(c) || c == '.'; });
}

/// Whether the memory of two profiles is the same, rounded by different drivers.
bool AreNear(const MigProfile& a, const MigProfile& b) {
  constexpr int kPercent = 5;
  return 100 * std::abs(a.gigabytes - b.gigabytes) <= kPercent * std::max(a.gigabytes, b.gigabytes);
}

bool HaveSameForm(const MigProfile& a, const MigProfile& b) {
  return a.compute == b.compute && a.slices == b.slices && a.attributes == b.attributes &&
         a.without == b.without;
}

std::string NamesOf(std::span<const PartProfile> profiles) {
  std::vector<std::string> names;
  for (const PartProfile& profile : profiles) names.push_back(profile.name);
  return base::Join(names, ", ");
}

/// The profile of the same form with the nearest memory, else the one whose name is nearest.
std::optional<std::string> Suggestion(const MigProfile& wanted, std::string_view name,
                                      std::span<const PartProfile> profiles) {
  std::optional<std::string> best;
  int least = 0;
  std::vector<std::string> names;
  for (const PartProfile& profile : profiles) {
    names.push_back(profile.name);
    const auto parsed = ParseMigProfile(profile.name);
    if (!parsed.ok() || !HaveSameForm(wanted, *parsed)) continue;
    const int distance = std::abs(parsed->gigabytes - wanted.gigabytes);
    if (best && distance >= least) continue;
    best = profile.name;
    least = distance;
  }
  return best ? best : base::Nearest(name, names);
}

}  // namespace

Result<MigProfile> ParseMigProfile(std::string_view name) {
  const std::size_t sign = name.find_first_of("+-");
  const auto fields = base::Split(name.substr(0, sign), '.');
  if (fields.size() < 2 || fields.size() > 3) return WrongName(name, "it needs slices and memory");
  MigProfile profile;
  const auto slices = NumberBefore(fields[fields.size() - 2], "g");
  const auto memory = NumberBefore(fields.back(), "gb");
  const auto compute = fields.size() == 3 ? NumberBefore(fields.front(), "c") : slices;
  if (!slices || !memory || !compute)
    return WrongName(name, "it needs a number before each of " +
                               std::string(fields.size() == 3 ? "c, g and gb" : "g and gb"));
  profile.slices = *slices;
  profile.gigabytes = *memory;
  profile.compute = *compute;
  if (sign == std::string_view::npos) return profile;
  const std::string_view list = name.substr(sign + 1);
  if (list.find_first_of("+-") != std::string_view::npos)
    return WrongName(name, "attributes follow one + or one -, separated by commas");
  std::set<std::string> attributes;
  for (const std::string& attribute : base::Split(list, ',')) {
    if (!IsAttribute(attribute)) return WrongName(name, "\"" + attribute + "\" is no attribute");
    if (!attributes.insert(attribute).second)
      return WrongName(name, "\"" + attribute + "\" is there twice");
  }
  (name[sign] == '+' ? profile.attributes : profile.without)
      .assign(attributes.begin(), attributes.end());
  return profile;
}

std::string ToString(const MigProfile& profile) {
  std::string name;
  if (profile.compute != profile.slices) name += std::to_string(profile.compute) + "c.";
  name += std::to_string(profile.slices) + "g." + std::to_string(profile.gigabytes) + "gb";
  if (!profile.attributes.empty()) name += "+" + base::Join(profile.attributes, ",");
  if (!profile.without.empty()) name += "-" + base::Join(profile.without, ",");
  return name;
}

std::string MigResource(std::string_view profile) {
  std::string name = "mig-" + std::string(profile);
  for (char& c : name)
    if (c == '+' || c == ',') c = '.';
  return name;
}

Result<const PartProfile*> FindMigProfile(std::string_view name,
                                          std::span<const PartProfile> profiles) {
  ASSIGN(const MigProfile wanted, ParseMigProfile(name));
  const PartProfile* best = nullptr;
  int least = 0;
  bool ambiguous = false;
  for (const PartProfile& profile : profiles) {
    if (profile.name == name) return &profile;
    const auto parsed = ParseMigProfile(profile.name);
    if (!parsed.ok() || !HaveSameForm(wanted, *parsed) || !AreNear(wanted, *parsed)) continue;
    const int distance = std::abs(parsed->gigabytes - wanted.gigabytes);
    if (best != nullptr && distance > least) continue;
    ambiguous = best != nullptr && distance == least;
    best = &profile;
    least = distance;
  }
  if (best != nullptr && !ambiguous) return best;
  const std::string canonical = ToString(wanted);
  if (ambiguous)
    return Error(Code::kNotFound, "\"" + canonical +
                                      "\" is as near to one profile of the GPU as to " +
                                      "another; it has " + NamesOf(profiles));
  if (const auto near = Suggestion(wanted, canonical, profiles))
    return Error(Code::kNotFound, "the GPU has no profile \"" + canonical + "\"; did you mean \"" +
                                      *near + "\"? It has " + NamesOf(profiles));
  return Error(Code::kNotFound,
               "the GPU has no profile \"" + canonical + "\"; it has " + NamesOf(profiles));
}

std::string PartName(std::uint64_t gpu_instance, std::optional<std::uint64_t> compute_instance) {
  return std::to_string(gpu_instance) +
         (compute_instance ? "/" + std::to_string(*compute_instance) : "");
}

}  // namespace penstock::backend::nvidia
