// Compares sets by sums over whole devices, each computed once.
#include "node/allocate/linked_parts.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <tuple>

namespace penstock::node::allocate {
namespace {

using Sum = std::int64_t;

/// 2^12 sets of devices, each with one of 12 that gives some of its parts.
constexpr std::size_t kMostDevices = 12;

/// A device that has parts to choose from.
struct Source {
  std::vector<std::size_t> parts;  // in order, into the list of parts
  double held = 0;                 // fraction of the device
  std::vector<Sum> own;            // [n]: of the first n parts, with each other and with `fixed`
  std::vector<std::vector<Sum>> with;  // [d][n]: of the first n parts with all of device d
};

/// A set in terms of devices.
struct Division {
  std::array<std::size_t, kMostDevices> taken{};  // of each device, how many of its first parts
  Sum score = 0;
  int begun = 0;         // devices of which nothing was held
  double fullness = 0;   // sum of what was held of the devices, for each part
  std::size_t rest = 0;  // parts that are left on devices from which some are taken

  auto key() const { return std::tuple(-score, begun, -fullness, rest); }
};

class Comparison {
 public:
  Comparison(const DeviceLinks& links, const std::vector<LinkedPart>& parts,
             const std::vector<std::size_t>& fixed, const PartsInUse& in_use)
      : links_(links), parts_(parts) {
    std::vector<std::string_view> devices;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::string& whole = allocate::WholeOf(*parts[i].slot);
      const auto at = std::ranges::find(devices, std::string_view(whole)) - devices.begin();
      if (at == std::ssize(devices)) {
        devices.emplace_back(whole);
        sources_.push_back({.held = in_use.Of(whole)});
      }
      sources_[static_cast<std::size_t>(at)].parts.push_back(i);
    }
    if (sources_.size() <= kMostDevices) AddUp(fixed);
  }

  std::size_t devices() const { return sources_.size(); }

  /// Positions into the list of parts.
  std::vector<std::size_t> Best(std::size_t size) {
    Extend(0, size, {});
    std::vector<std::size_t> chosen;
    for (std::size_t i = 0; best_ && i < sources_.size(); ++i)
      chosen.insert(chosen.end(), sources_[i].parts.begin(),
                    sources_[i].parts.begin() + static_cast<std::ptrdiff_t>(best_->taken[i]));
    return chosen;
  }

 private:
  Sum Score(std::size_t a, std::size_t b) const {
    return links_.Score(parts_[a].position, parts_[b].position);
  }

  void AddUp(const std::vector<std::size_t>& fixed) {
    for (Source& source : sources_) {
      source.own = {0};
      for (std::size_t n = 0; n < source.parts.size(); ++n) {
        const std::size_t part = source.parts[n];
        Sum sum = source.own.back();
        for (std::size_t i = 0; i < n; ++i) sum += Score(part, source.parts[i]);
        for (const std::size_t other : fixed) sum += links_.Score(parts_[part].position, other);
        source.own.push_back(sum);
      }
      for (const Source& other : sources_) source.with.push_back(Between(source, other));
    }
  }

  std::vector<Sum> Between(const Source& source, const Source& other) const {
    std::vector<Sum> sums = {0};
    for (const std::size_t part : source.parts)
      sums.push_back(
          std::accumulate(other.parts.begin(), other.parts.end(), sums.back(),
                          [&](Sum sum, std::size_t with) { return sum + Score(part, with); }));
    return sums;
  }

  /// Decides for each device from `next` on whether all of its parts are taken.
  void Extend(std::size_t next, std::size_t wanted, const Division& division) {
    if (wanted == 0 || next == sources_.size()) return Finish(wanted, division);
    if (const std::size_t all = sources_[next].parts.size(); all <= wanted) {
      Division with = division;
      Take(next, all, with);
      Extend(next + 1, wanted - all, with);
    }
    Extend(next + 1, wanted, division);
  }

  /// Takes what is still wanted from one device.
  void Finish(std::size_t wanted, const Division& division) {
    if (wanted == 0) return Consider(division);
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      if (division.taken[i] > 0 || sources_[i].parts.size() < wanted) continue;
      Division with = division;
      Take(i, wanted, with);
      Consider(with);
    }
  }

  void Take(std::size_t device, std::size_t count, Division& division) const {
    const Source& source = sources_[device];
    division.score += source.own[count];
    for (std::size_t i = 0; i < sources_.size(); ++i)
      if (division.taken[i] > 0) division.score += source.with[i][count];
    division.taken[device] = count;
    division.begun += source.held > 0 ? 0 : 1;
    division.fullness += source.held * static_cast<double>(count);
    division.rest += source.parts.size() - count;
  }

  void Consider(const Division& division) {
    if (!best_ || division.key() < best_->key()) best_ = division;
  }

  const DeviceLinks& links_;
  const std::vector<LinkedPart>& parts_;
  std::vector<Source> sources_;
  std::optional<Division> best_;
};

}  // namespace

std::optional<std::vector<std::size_t>> ChooseLinkedParts(const DeviceLinks& links,
                                                          const std::vector<LinkedPart>& parts,
                                                          const std::vector<std::size_t>& fixed,
                                                          std::size_t size, PartsInUse& in_use) {
  Comparison comparison(links, parts, fixed, in_use);
  if (comparison.devices() > kMostDevices || size > parts.size()) return std::nullopt;
  std::vector<std::size_t> chosen;
  for (const std::size_t part : comparison.Best(size)) {
    chosen.push_back(parts[part].position);
    in_use.Add(*parts[part].slot);
  }
  return chosen;
}

}  // namespace penstock::node::allocate
