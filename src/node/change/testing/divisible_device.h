// A simulated driver with devices that can be divided, for unit tests.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "device/testing/acme.h"

namespace penstock::node::change::testing {

class DivisibleDialect final : public device::testing::AcmeDialect {
 public:
  const device::PartTerms* part_terms() const override {
    static const device::PartTerms kByMode = {.mode = "cut", .off = "off", .by_mode = true};
    return by_mode ? &kByMode : AcmeDialect::part_terms();
  }
  bool by_mode = false;  // parts come with the mode
};

/// A driver with one device, which can be divided into four parts of one slice, or one of four;
/// with AllowPartsWithin also into two of two slices, each of which can have two parts. Its parts
/// are P1, P2 …; those of the second device Q1 …. They have the capacity of their profile.
class DivisibleDevice final : public device::AsyncBackend {
 public:
  explicit DivisibleDevice(int index = 0) {
    device = device::testing::AcmeDevice(index, 1);
    device.address = std::to_string(index);
    device.modes = {{"cut", "off", "off", {"off", "on"}}};
    device.profiles = {
        {.name = "1g", .slices = 1, .most = 4, .placements = {{0, 1}, {1, 1}, {2, 1}, {3, 1}}},
        {.name = "4g", .slices = 4, .most = 1, .placements = {{0, 4}}}};
  }

  /// Parts within parts, from now on.
  void AllowPartsWithin() {
    device.profiles.push_back(
        {.name = "2g", .slices = 2, .most = 2, .placements = {{0, 2}, {2, 2}}});
    device.profiles.push_back(
        {.name = "1c", .within = "2g", .slices = 1, .most = 2, .placements = {{0, 1}, {1, 1}}});
  }

  void Describe(const std::string& address, Done<device::Facts> done) override {
    if (auto before = std::exchange(before_describe, nullptr)) before();
    if (const auto error = Fails("describe")) return done(*error);
    if (address == device.address) return done(Now());
    for (const device::Facts& part : parts)
      if (part.address == address) return done(part);
    done(base::Error(base::Code::kNotFound, "no part " + address));
  }

  void SetMode(const std::string&, const std::string& mode, const std::string& value,
               Done<std::string> done) override {
    if (const auto error = Fails("set-mode")) return done(*error);
    if (before_change) before_change(device.id);
    device::Mode& set = *std::ranges::find(device.modes, mode, &device::Mode::name);
    set.pending = value;
    if (set.effect == device::ModeEffect::kNow) set.current = value;
    Answer("set-mode", device.address, done);
  }

  void CreatePart(const std::string&, const device::NewPart& part,
                  Done<std::string> done) override {
    if (before_create) before_create();
    if (const auto error = Fails("create")) return done(*error);
    device::Facts facts;
    facts.placement = part.placement;
    if (facts.placement) facts.placement->start += shift;
    facts.parent = part.within.empty() ? device.id : part.within;
    if (IsTaken(facts))
      return done(base::Error(base::Code::kResourceExhausted, "its slices are taken"));
    const std::string letter(1, static_cast<char>('P' + std::stoi(device.address)));
    facts.vendor = "acme";
    facts.id = facts.address = letter + std::to_string(++made);
    if (reuses_ids)
      facts.id = facts.address = letter + part.profile + std::to_string(facts.placement->start);
    facts.number = device.address + ":" + std::to_string(made);
    if (part.outer) facts.withheld = "it is there for the parts within it";
    facts.profile = part.profile;
    for (const device::PartProfile& profile : device.profiles) {
      if (profile.name != part.profile) continue;
      facts.memory = profile.capacity.memory;
      facts.compute_units = profile.capacity.compute_units;
    }
    parts.push_back(facts);
    if (answers) Answer("create", facts.address, done);
  }

  void DestroyPart(const std::string& address, Done<std::string> done) override {
    if (const auto error = Fails("destroy")) return done(*error);
    if (before_change) before_change(address);
    if (std::ranges::find(parts, address, &device::Facts::parent) != parts.end())
      return done(base::Error(base::Code::kFailedPrecondition, "there are parts in " + address));
    std::erase_if(parts, [&](const device::Facts& part) { return part.address == address; });
    Answer("destroy", address, done);
  }

  void Open(Done<device::Driver>) override {}
  void List(Done<std::vector<std::string>>) override {}
  void Read(const std::string&, Done<device::Reading>) override {}
  void TakeSample(const std::string&, const device::SampleRequest&, Done<device::Sample>) override {
  }
  void Stop() override {}
  int abandoned() const override { return 0; }
  void Listen(Events) override {}

  bool Has(const std::string& address) const {
    return address == device.address ||
           std::ranges::any_of(parts, [&](const auto& part) { return part.address == address; });
  }
  /// Whether another part of the same parent lies there.
  bool IsTaken(const device::Facts& wanted) const {
    return wanted.placement && std::ranges::any_of(parts, [&](const device::Facts& part) {
             return part.parent == wanted.parent && part.placement &&
                    part.placement->start < wanted.placement->start + wanted.placement->size &&
                    wanted.placement->start < part.placement->start + part.placement->size;
           });
  }
  /// As a reset leaves it.
  void Reset() {
    parts.clear();
    device.modes[0].current = device.modes[0].pending;
  }

  device::Facts Now() const {
    device::Facts now = device;
    for (const device::Facts& part : parts) now.parts.push_back(part.address);
    return now;
  }
  /// "1g at 0".
  std::vector<std::string> Parts() const {
    std::vector<std::string> list;
    for (const device::Facts& part : parts)
      list.push_back(part.profile + " at " + std::to_string(part.placement->start));
    return list;
  }
  std::optional<base::Error> Fails(const std::string& call) {
    const auto left = failing.find(call);
    if (left == failing.end() || left->second == 0) return std::nullopt;
    --left->second;
    return base::Error(base::Code::kUnknown, call + " does not work");
  }
  /// Of a call that took effect.
  void Answer(const std::string& call, const std::string& address, const Done<std::string>& done) {
    std::deque<bool>& next = fails_after[call];
    const bool fails = !next.empty() && next.front();
    if (!next.empty()) next.pop_front();
    fails ? done(base::Error(late_failure, "the worker closed its sockets")) : done(address);
  }

  device::Facts device;
  std::vector<device::Facts> parts;
  std::function<void()> before_describe, before_create;
  std::function<void(const std::string& id)> before_change;  // of a mode, or of a part to nothing
  bool answers = true;                 // otherwise a part is created, and no answer comes
  bool reuses_ids = false;             // a part has the id of an earlier one in its place
  std::map<std::string, int> failing;  // call → how often it still fails
  std::map<std::string, std::deque<bool>>
      fails_after;  // call → which of its next ones take effect, and then fail
  base::Code late_failure = base::Code::kUnavailable;  // of these
  int shift = 0;  // by so many slices, parts are created elsewhere than asked
  int made = 0;
};

/// A driver with several of them.
class DivisibleDevices : public device::AsyncBackend {
 public:
  explicit DivisibleDevices(std::vector<DivisibleDevice*> list) : devices(std::move(list)) {}

  void Describe(const std::string& address, Done<device::Facts> done) override {
    if (DivisibleDevice* one = Find(address)) return one->Describe(address, std::move(done));
    done(base::Error(base::Code::kNotFound, "no part " + address));
  }
  void SetMode(const std::string& address, const std::string& mode, const std::string& value,
               Done<std::string> done) override {
    Find(address)->SetMode(address, mode, value, std::move(done));
  }
  void CreatePart(const std::string& address, const device::NewPart& part,
                  Done<std::string> done) override {
    Find(address)->CreatePart(address, part, std::move(done));
  }
  void DestroyPart(const std::string& address, Done<std::string> done) override {
    Find(address)->DestroyPart(address, std::move(done));
  }
  void Open(Done<device::Driver>) override {}
  void List(Done<std::vector<std::string>>) override {}
  void Read(const std::string&, Done<device::Reading>) override {}
  void TakeSample(const std::string&, const device::SampleRequest&, Done<device::Sample>) override {
  }
  void Stop() override {}
  int abandoned() const override { return 0; }
  void Listen(Events) override {}

  std::vector<DivisibleDevice*> devices;

 protected:
  /// The one with this address, or with a part that has it; null: there is none.
  DivisibleDevice* Find(const std::string& address) const {
    for (DivisibleDevice* one : devices)
      if (one->Has(address)) return one;
    return nullptr;
  }
};

}  // namespace penstock::node::change::testing
