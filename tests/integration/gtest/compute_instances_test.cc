// Tests that each set of compute instances that a GPU instance can have is reached from any other
// one, and from none, without a call that the driver refuses, and that the former ones are put back
// where they were: on a simulated GPU of each model.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "backend/nvidia/backend.h"
#include "backend/nvidia/testing/simulated_machine.h"
#include "node/change/division_run.h"
#include "node/partition/desired.h"

namespace penstock {
namespace {

using backend::nvidia::SimulatedMachine;
using device::Facts;
using device::PartProfile;
using device::Placement;
using node::change::DivisionRun;
using node::partition::DesiredDivision;
using node::partition::DesiredParts;

using Counts = std::map<std::string, int>;                        // by profile
using Places = std::multiset<std::pair<std::string, Placement>>;  // of compute instances

/// A backend in this thread that counts the parts that are created and destroyed, and what it
/// refuses.
class Direct final : public device::AsyncBackend {
 public:
  explicit Direct(device::Backend& backend) : backend_(backend) {}

  void Describe(const std::string& address, Done<Facts> done) override {
    done(backend_.Describe(address));
  }
  void CreatePart(const std::string& device, const device::NewPart& part,
                  Done<std::string> done) override {
    ++changes;
    done(Counted(backend_.CreatePart(device, part)));
  }
  void DestroyPart(const std::string& address, Done<std::string> done) override {
    ++changes;
    const base::Status destroyed = backend_.DestroyPart(address);
    done(Counted(destroyed.ok() ? base::Result<std::string>(address) : destroyed.error()));
  }
  void SetMode(const std::string&, const std::string&, const std::string&,
               Done<std::string> done) override {
    done(base::Error(base::Code::kUnimplemented, "the mode is set"));
  }
  void Open(Done<device::Driver>) override {}
  void List(Done<std::vector<std::string>>) override {}
  void Read(const std::string&, Done<device::Reading>) override {}
  void TakeSample(const std::string&, const device::SampleRequest&, Done<device::Sample>) override {
  }
  void Stop() override {}
  int abandoned() const override { return 0; }
  void Listen(Events) override {}

  int refused = 0, changes = 0;

 private:
  base::Result<std::string> Counted(base::Result<std::string> result) {
    refused += result.ok() ? 0 : 1;
    return result;
  }

  device::Backend& backend_;
};

class ComputeInstances : public testing::TestWithParam<const char*> {
 protected:
  ComputeInstances() {
    const std::string file = folder_ / "machine.yaml";
    std::ofstream(file) << "name: one\ndriver: 580.159.04\ngpus:\n  - {model: " << GetParam()
                        << ", pci: \"0000:00:06.0\"}\n";
    machine_ = std::make_unique<SimulatedMachine>(file);
    machine_->Smi({"-mig", "1"});
    backend_ = backend::nvidia::MakeBackend(machine_->paths());
    EXPECT_TRUE(backend_->Open().ok());
    EXPECT_TRUE(backend_->List().ok());
    direct_ = std::make_unique<Direct>(*backend_);
  }

  Facts Describe(const std::string& address) {
    const auto facts = backend_->Describe(address);
    EXPECT_TRUE(facts.ok()) << facts.error().ToString();
    return facts.ok() ? *facts : Facts{};
  }

  Places Now() {
    Places places;
    for (const std::string& address : Describe("0").parts) {
      const Facts part = Describe(address);
      if (part.withheld.empty()) places.emplace(part.profile, part.placement.value_or(Placement{}));
    }
    return places;
  }

  static Counts CountsOf(const Places& places) {
    Counts counts;
    for (const auto& [profile, at] : places) ++counts[profile];
    return counts;
  }

  /// Divides the GPU; afterwards `before_` is how it was.
  base::Status Try(const DesiredDivision& desired) {
    before_.reset();
    base::Status result;
    DivisionRun run({.backend = *direct_,
                     .holder_of = [](const std::string&) { return std::string(); },
                     .reset = [](const Facts&, auto) { FAIL() << "the mode is set"; },
                     .progress = [](const std::string&) {}},
                    {.device = Describe("0").id,
                     .address = "0",
                     .desired = [&](const node::partition::Division& now) {
                       if (!before_) before_ = node::partition::AsItIs(now, {.mode = "mig"});
                       return desired;
                     }});
    run.Start([&](const base::Status& end) { result = end; });
    return result;
  }
  void Divide(const DesiredDivision& desired) {
    const base::Status result = Try(desired);
    EXPECT_TRUE(result.ok()) << result.error().ToString();
    EXPECT_EQ(direct_->refused, 0);
  }
  void Divide(const Counts& counts) {
    DesiredDivision desired{.mode = "mig", .value = "enabled"};
    for (const auto& [profile, count] : counts) desired.parts.push_back({profile, count});
    Divide(desired);
  }
  void MakeWhole() { Divide(DesiredDivision{.mode = "mig", .value = "enabled"}); }

  /// As another program may divide it.
  void Create(const PartProfile& outer, const Places& places) {
    const auto created = backend_->CreatePart(
        "0", {.profile = outer.name, .placement = outer.placements.back(), .outer = true});
    ASSERT_TRUE(created.ok()) << created.error().ToString();
    for (const auto& [profile, at] : places) {
      const auto within =
          backend_->CreatePart("0", {.profile = profile, .placement = at, .within = *created});
      ASSERT_TRUE(within.ok()) << within.error().ToString();
    }
  }

  os::TemporaryFolder folder_;
  std::unique_ptr<SimulatedMachine> machine_;
  std::unique_ptr<device::Backend> backend_;
  std::unique_ptr<Direct> direct_;
  std::optional<DesiredDivision> before_;
};

/// All ways to place compute instances beside each other, as the driver lists their placements.
void ListPlaces(const std::vector<std::pair<std::string, Placement>>& possible, std::size_t from,
                unsigned taken, const Places& places, std::vector<Places>& all) {
  if (!places.empty()) all.push_back(places);
  for (std::size_t i = from; i < possible.size(); ++i) {
    const Placement& at = possible[i].second;
    const unsigned mask = ((1u << at.size) - 1) << at.start;
    if ((mask & taken) != 0) continue;
    Places more = places;
    more.insert(possible[i]);
    ListPlaces(possible, i + 1, taken | mask, more, all);
  }
}

/// Which of the sets are tried: all of a GPU with each of the two rules for placements, and of the
/// others every eighth one, or also all.
std::size_t StepOf(std::string_view model) {
  const char* all = std::getenv("PENSTOCK_CHECK_ALL");
  if (all != nullptr && std::string_view(all) == "1") return 1;
  return model == "a100-sxm4-40gb" || model == "h200-sxm-141gb" ? 1 : 8;
}

TEST_P(ComputeInstances, AreReachedFromAnyOthersAndPutBack) {
  std::mt19937 random(20'261'126);
  int reached = 0;
  std::size_t number = 0;
  for (const PartProfile& outer : Describe("0").profiles) {
    if (!outer.within.empty()) continue;
    Create(outer, {});
    std::vector<std::pair<std::string, Placement>> possible;
    for (const PartProfile& one : Describe("0").profiles)
      for (const Placement& at : one.placements)
        if (one.within == outer.name) possible.emplace_back(one.name, at);
    MakeWhole();
    if (possible.empty()) continue;
    std::vector<Places> all;
    ListPlaces(possible, 0, 0, {}, all);
    std::set<Counts> sets;
    for (const Places& places : all) sets.insert(CountsOf(places));
    for (const Counts& wanted : sets) {
      if (number++ % StepOf(GetParam()) != 0) continue;
      const Places others =
          all[std::uniform_int_distribution<std::size_t>(0, all.size() - 1)(random)];
      SCOPED_TRACE(outer.name + " " + testing::PrintToString(wanted));
      Divide(wanted);
      EXPECT_EQ(CountsOf(Now()), wanted) << "from nothing";
      MakeWhole();
      Create(outer, others);
      Divide(wanted);
      EXPECT_EQ(CountsOf(Now()), wanted) << "from others";
      if (before_) Divide(DesiredDivision(*before_));
      EXPECT_EQ(Now(), others) << "put back";
      MakeWhole();
      if (HasFailure()) return;
      ++reached;
    }
  }
  EXPECT_GT(reached, 1);
}

TEST_P(ComputeInstances, StayWhereAnotherDriverRecordedThemWithAnotherSize) {
  for (const PartProfile& outer : Describe("0").profiles) {
    if (!outer.within.empty() || outer.slices != 7) continue;
    const std::string three = "3c." + outer.name;
    Create(outer, {});
    Places there;
    for (const PartProfile& one : Describe("0").profiles)
      for (const Placement& at : one.placements)
        if (one.name == three && at.start % 4 == 0) there.emplace(three, at);
    MakeWhole();
    ASSERT_EQ(there.size(), 2u);
    Create(outer, there);
    ASSERT_EQ(Now(), there);
    DesiredDivision recorded{.mode = "mig", .value = "enabled"};
    for (const auto& [profile, at] : there)
      recorded.parts.push_back({.profile = profile,
                                .placement = Placement{at.start, 7 - at.size},
                                .outer = outer.placements.back()});
    direct_->changes = 0;
    Divide(recorded);
    EXPECT_EQ(direct_->changes, 0);
    EXPECT_EQ(Now(), there);
    MakeWhole();
    direct_->changes = 0;
    Divide(recorded);
    EXPECT_EQ(direct_->changes, 3) << "from nothing";
    EXPECT_EQ(Now(), there);
    MakeWhole();
  }
}

TEST_P(ComputeInstances, AreCreatedOnceWhereTheDriverHasNotTheRecordedPlace) {
  for (const PartProfile& outer : Describe("0").profiles) {
    if (!outer.within.empty() || outer.slices != 7) continue;
    const DesiredDivision recorded{.mode = "mig",
                                   .value = "enabled",
                                   .parts = {{.profile = "4c." + outer.name,
                                              .placement = Placement{5, 4},
                                              .outer = outer.placements.back()}}};
    direct_->changes = 0;
    const base::Status refused = Try(recorded);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code(), base::Code::kInvalidArgument) << refused.error().ToString();
    EXPECT_EQ(direct_->changes, 2) << "only the driver knows: one try";
    EXPECT_FALSE(Try(recorded).ok());
    EXPECT_EQ(direct_->changes, 2) << "it lists its placements now";
    MakeWhole();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, ComputeInstances,
    testing::Values("a100-sxm4-40gb", "a100-sxm4-80gb", "a100-pcie-40gb", "a100-pcie-80gb", "a100x",
                    "a800-sxm4-40gb", "a800-sxm4-80gb", "a800-pcie-80gb", "ax800", "a30-pcie-24gb",
                    "h100-sxm-80gb", "h100-pcie-80gb", "h100-nvl-94gb", "h800-sxm-80gb",
                    "h800-pcie-80gb", "h800-nvl-94gb", "gh200-96gb", "gh200-144gb", "h20-96gb",
                    "h200-sxm-141gb", "h200-nvl-141gb", "h20-141gb", "b200-sxm-180gb",
                    "b100-sxm-180gb", "gb200-186gb", "b300-sxm-269gb", "rtx-pro-6000-blackwell"),
    [](const auto& model) {
      std::string name = model.param;
      std::ranges::replace(name, '-', '_');
      return name;
    });

}  // namespace
}  // namespace penstock
