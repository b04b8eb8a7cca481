#include "acme/division.h"

#include <algorithm>
#include <utility>

#include "base/core/strings.h"

namespace penstock::backend::acme {
namespace {

using base::Code;
using base::Error;
using device::PartProfile;
using device::Placement;

std::string WordAt(const std::vector<std::string>& words, std::size_t position) {
  return position < words.size() ? words[position] : "";
}

/// "0:4,4:4".
std::vector<Placement> ReadPlacements(const std::string& text) {
  std::vector<Placement> placements;
  for (const std::string& one : base::Split(text, ',')) {
    const auto words = base::Split(one, ':');
    placements.push_back(
        {static_cast<int>(NumberAt(words, 0)), static_cast<int>(NumberAt(words, 1))});
  }
  return placements;
}

PartProfile ReadProfile(const std::vector<std::string>& words) {
  return {.name = WordAt(words, 0),
          .within = WordAt(words, 1) == "-" ? "" : WordAt(words, 1),
          .slices = static_cast<int>(NumberAt(words, 2)),
          .most = static_cast<int>(NumberAt(words, 3)),
          .placements = ReadPlacements(WordAt(words, 4)),
          .capacity = {base::Mebibytes(NumberAt(words, 5)), static_cast<int>(NumberAt(words, 6))},
          .engines = {}};
}

bool Overlap(const Placement& a, const Placement& b) {
  return a.start < b.start + b.size && b.start < a.start + a.size;
}

}  // namespace

Division::Division(std::string address, Lines device, const Lines& division)
    : address_(std::move(address)), device_(std::move(device)) {
  for (const auto& words : All(device_, "profile")) profiles_.push_back(ReadProfile(words));
  if (division.contains("mode")) mode_ = Text(division, "mode");
  made_ = Number(division, "made");
  for (const auto& words : All(division, "part"))
    parts_.push_back(
        {.id = WordAt(words, 0),
         .profile = WordAt(words, 1),
         .parent = WordAt(words, 2),
         .placement = {static_cast<int>(NumberAt(words, 3)), static_cast<int>(NumberAt(words, 4))},
         .outer = WordAt(words, 5) == "outer"});
}

Lines Division::Encode() const {
  Lines lines{{"mode", mode_}, {"made", std::to_string(made_)}};
  for (const Part& part : parts_)
    lines.emplace("part", part.id + " " + part.profile + " " + part.parent + " " +
                              std::to_string(part.placement.start) + " " +
                              std::to_string(part.placement.size) + (part.outer ? " outer" : ""));
  return lines;
}

const Part* Division::Find(const std::string& id) const {
  const auto found = std::ranges::find(parts_, id, &Part::id);
  return found == parts_.end() ? nullptr : &*found;
}

const PartProfile* Division::FindProfile(const std::string& name) const {
  const auto found = std::ranges::find(profiles_, name, &PartProfile::name);
  return found == profiles_.end() ? nullptr : &*found;
}

std::vector<device::Mode> Division::Modes() const {
  if (!device_.contains(kCut)) return {};
  return {{kCut, mode_, mode_, base::Split(Text(device_, kCut), ',')}};
}

bool Division::IsBusy(const std::string& part) const {
  return std::ranges::any_of(All(device_, "process"),
                             [&](const auto& words) { return WordAt(words, 2) == part; });
}

std::vector<const Part*> Division::PartsIn(const std::string& whole) const {
  std::vector<const Part*> in_it;
  for (const Part& part : parts_)
    if (part.parent == whole) in_it.push_back(&part);
  return in_it;
}

base::Status Division::SetMode(const std::string& mode, const std::string& value) {
  const auto modes = Modes();
  if (mode != kCut || modes.empty())
    return Error(Code::kUnimplemented, address_ + " has no mode " + mode);
  if (std::ranges::count(modes.front().available, value) == 0)
    return Error(Code::kInvalidArgument, "the mode " + mode + " cannot be " + value);
  if (IsBusy("")) return Error(Code::kFailedPrecondition, "a process is on " + address_);
  if (!parts_.empty()) return Error(Code::kFailedPrecondition, address_ + " has parts");
  mode_ = value;
  return {};
}

/// The device or part in which it is created.
base::Result<std::string> Division::WholeFor(const PartProfile& profile,
                                             const device::NewPart& part) const {
  if (profile.within.empty() != part.within.empty())
    return Error(Code::kInvalidArgument,
                 profile.name + " is made " +
                     (profile.within.empty() ? "on the device" : "within " + profile.within));
  if (part.within.empty()) return address_;
  const Part* within = Find(part.within);
  if (within == nullptr || within->profile != profile.within || !within->outer)
    return Error(Code::kInvalidArgument,
                 part.within + " is no " + profile.within + " for parts within it");
  if (part.outer) return Error(Code::kInvalidArgument, profile.name + " can have no parts");
  return part.within;
}

base::Result<Placement> Division::PlaceFor(const PartProfile& profile, const device::NewPart& part,
                                           const std::string& whole) const {
  const auto beside = PartsIn(whole);
  for (const Placement& at : profile.placements) {
    const bool free =
        std::ranges::none_of(beside, [&](const Part* one) { return Overlap(one->placement, at); });
    if (free && (!part.placement || *part.placement == at)) return at;
  }
  return Error(Code::kResourceExhausted,
               "there is no place for a " + profile.name + " in " + whole);
}

base::Result<std::string> Division::Create(const device::NewPart& part) {
  const PartProfile* profile = FindProfile(part.profile);
  if (profile == nullptr)
    return Error(Code::kInvalidArgument, address_ + " has no profile " + part.profile);
  if (mode_ != kOn) return Error(Code::kFailedPrecondition, "the mode cut is " + mode_);
  ASSIGN(const std::string whole, WholeFor(*profile, part));
  ASSIGN(const Placement at, PlaceFor(*profile, part, whole));
  int same = 1;
  device::Capacity taken = profile->capacity;
  for (const Part* one : PartsIn(whole)) {
    same += one->profile == profile->name ? 1 : 0;
    if (const PartProfile* other = FindProfile(one->profile)) taken += other->capacity;
  }
  const device::Capacity all = part.within.empty()
                                   ? device::Capacity{base::Mebibytes(Number(device_, "memory")),
                                                      static_cast<int>(Number(device_, "units"))}
                                   : FindProfile(profile->within)->capacity;
  if (same > profile->most || device::Exceeds(taken, all))
    return Error(Code::kResourceExhausted,
                 "too little of " + whole + " is left for a " + profile->name);
  parts_.push_back({.id = address_ + "." + std::to_string(++made_),
                    .profile = profile->name,
                    .parent = whole,
                    .placement = at,
                    .outer = part.outer});
  return parts_.back().id;
}

base::Status Division::Destroy(const std::string& id) {
  if (Find(id) == nullptr) return Error(Code::kNotFound, "there is no part " + id);
  if (IsBusy(id)) return Error(Code::kFailedPrecondition, "a process is on " + id);
  if (!PartsIn(id).empty()) return Error(Code::kFailedPrecondition, "there are parts in " + id);
  std::erase_if(parts_, [&](const Part& part) { return part.id == id; });
  return {};
}

}  // namespace penstock::backend::acme
