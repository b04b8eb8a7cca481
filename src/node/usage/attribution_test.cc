// Tests attribution with ten thousand holders that come and go at random, against a reference that
// counts second by second.
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "node/usage/usage_accumulator.h"

namespace penstock::node::usage {
namespace {

using namespace std::chrono_literals;

constexpr int kDevices = 8, kShares = 4, kHolders = 10'000;
constexpr double kJouleSlip =
    1e-3;  // in joules: the rounding error of sums of several hundred parts

std::string DeviceName(int device) { return "G" + std::to_string(device); }
bool IsShared(int device) { return device % 2 == 1; }

/// The true state of a holder.
struct Person {
  std::string pod;
  int device = 0;
  pid_t pid = 0;
  double compute = 0;  // of its process, from the next sample on
  int began = 0, ended = -1;
  double reported = 0;  // in the last samples
  double energy = 0, busy = 0;
};

class World {
 public:
  explicit World(unsigned seed) : random_(seed) {}

  /// Runs until `holders` holders have come and all have gone.
  void Live(int holders) {
    while (begun_ < holders || !here_.empty()) Step(begun_ < holders);
    Second(30);
    SampleAll();
    Collect();
  }

  void Check() {
    ASSERT_EQ(records_.size(), people_.size()) << "somebody is lost, or told of twice";
    double energy = nobodys_;
    for (const auto& [lease, record] : records_) {
      const Person& person = people_.at(lease);
      EXPECT_EQ(record.pod, person.pod);
      EXPECT_EQ(record.device, DeviceName(person.device));
      EXPECT_NEAR(record.seconds, person.ended - person.began, kJouleSlip) << lease;
      EXPECT_NEAR(record.energy_joules, person.energy, kJouleSlip)
          << lease << " on " << record.device;
      EXPECT_NEAR(record.busy_seconds, person.busy, kJouleSlip) << lease << " on " << record.device;
      energy += record.energy_joules;
      ASSERT_FALSE(::testing::Test::HasFailure()) << "after " << begun_ << " holders";
    }
    EXPECT_NEAR(energy, given_, 1) << "energy is neither lost nor made";
    EXPECT_EQ(accumulator_->running(), 0u);
    EXPECT_TRUE(accumulator_->Keep(now_).empty());
    Second(3600);
    accumulator_->Tick(now_);
    EXPECT_TRUE(accumulator_->Show(now_).empty());
    EXPECT_FALSE(accumulator_->due());
  }

  int restarts() const { return restarts_; }

 private:
  int Some(int below) { return std::uniform_int_distribution<int>(0, below - 1)(random_); }

  void Step(bool come) {
    const int dice = Some(100);
    if (dice < 45 && come) Come();
    if (dice >= 45 && dice < 80 && !here_.empty())
      Go(*std::next(here_.begin(), Some(static_cast<int>(here_.size()))));
    if (dice >= 80 && dice < 90) Change();
    if (dice >= 90 && dice < 99) Second(Some(3));
    if (dice == 99 && Some(10) == 0) Restart();
    if (Some(4) == 0) SampleAll();
  }

  /// Lets time pass; energy counters grow.
  void Second(int count) {
    time_ += count;
    now_.steady += std::chrono::seconds(count);
    now_.wall += std::chrono::seconds(count);
    if (Some(50) == 0)
      now_.wall += std::chrono::seconds(Some(7200) - 3600);  // the wall clock is set
  }

  void Follow() { accumulator_->Follow(ledger_.Get(), now_); }

  void Come() {
    const int device = Some(kDevices);
    const std::string name = DeviceName(device), lease = "k-" + std::to_string(begun_);
    const std::string slot = IsShared(device) ? name + "::" + std::to_string(Some(kShares)) : name;
    ledger::Lease one{.id = lease, .allocator = "kubelet", .slots = {{slot, name, "", {}}}};
    one.since = now_.wall;
    if (!ledger_.Add(one).ok()) return;
    ++begun_;
    Follow();
    here_.insert(lease);
    people_[lease] = {
        .pod = "pod-" + lease, .device = device, .pid = 1000 + begun_, .began = time_};
    if (Some(3) != 0) Name(lease);  // the pod may become known later
  }

  void Name(const std::string& lease) {
    ledger::Lease one = *ledger_.Get()->FindLease(lease);
    one.pod = people_.at(lease).pod;
    one.processes = {{people_.at(lease).pid, 1, "eva", "train"}};
    ASSERT_TRUE(ledger_.Update(one).ok());
    Follow();
  }

  void Go(std::string lease) {  // a copy: the argument may be the element that is erased
    Name(lease);
    people_.at(lease).ended = time_;
    here_.erase(lease);
    gone_.insert(lease);  // until the next sample
    ledger_.Release(lease);
    Follow();
  }

  void Change() {
    for (const std::string& lease : here_) {
      if (Some(3) != 0) continue;
      Name(lease);
      people_.at(lease).compute = Some(3) == 0 ? 0 : Some(25) / 100.0;
    }
  }

  /// Starts the next agent with the state that this one kept, and the kubelet's leases.
  void Restart() {
    Collect();
    auto kept = accumulator_->Keep(now_);
    const auto energy = accumulator_->KeepEnergy();
    // Counters cover the time of the restart, utilization does not: to keep the reference simple,
    // samples come just before and after.
    SampleAll();
    Collect();
    kept = accumulator_->Keep(now_);
    auto next = MakeUsage();
    next->Recall(kept, accumulator_->KeepEnergy());
    accumulator_ = std::move(next);
    Follow();
    accumulator_->EndOrphans();
    SampleAll();
    ++restarts_;
  }

  static std::unique_ptr<UsageAccumulator> MakeUsage() {
    auto accumulator = std::make_unique<UsageAccumulator>([](const std::string&) { return ""; });
    accumulator->Configure({.keep_ended = 300s, .most_ended = 100'000});
    return accumulator;
  }

  void SampleAll() {
    for (int device = 0; device < kDevices; ++device) SampleOne(device);
    last_sample_ = time_;
    gone_.clear();
    Collect();
  }

  void SampleOne(int device) {
    const int seconds = time_ - last_sample_;
    const double taken = seconds * (50.0 + Some(300));
    if (last_sample_ >= 0) Reference(device, taken);
    counters_[device] += taken;
    std::vector<device::ProcessSample> processes;
    double utilization = 0;
    for (const std::string& lease : here_) {
      const Person& person = people_.at(lease);
      if (person.device != device) continue;
      utilization += person.compute;
      if (Knows(lease))
        processes.push_back(
            {.pid = person.pid, .memory = base::Mebibytes(1), .compute = person.compute * 100});
    }
    DeviceActivity activity{.watts = 1e9, .joules = counters_[device], .processes = true};
    if (!IsShared(device)) {
      activity.utilization = utilization;
      if (last_sample_ >= 0) Busy(device, utilization);
    }
    accumulator_->Take(DeviceName(device), activity, processes, 1h, now_);
  }

  bool Knows(const std::string& lease) const {
    const ledger::Lease* one = ledger_.Get()->FindLease(lease);
    return one != nullptr && !one->processes.empty();
  }

  void Busy(int device, double utilization) {
    for (auto* people : {&here_, &gone_})
      for (const std::string& lease : *people) {
        Person& person = people_.at(lease);
        if (person.device != device) continue;
        const int to = person.ended < 0 ? time_ : person.ended;
        person.busy += utilization * std::max(0, to - std::max(person.began, last_sample_));
      }
  }

  /// Computes the expected usage second by second.
  void Reference(int device, double taken) {
    std::vector<Person*> on;
    for (auto* people : {&here_, &gone_})
      for (const std::string& lease : *people) {
        Person& person = people_.at(lease);
        if (person.device != device) continue;
        on.push_back(&person);
        if (people == &here_) person.reported = Knows(lease) ? person.compute : 0;
        if (people == &gone_) person.reported = 0;  // samples no longer contain its process
      }
    given_ += taken;
    const double each = taken / std::max(time_ - last_sample_, 1);
    for (int second = last_sample_; second < time_; ++second) {
      double computed = 0;
      std::vector<Person*> there;
      for (Person* person : on) {
        if (person->began > second || (person->ended >= 0 && person->ended <= second)) continue;
        there.push_back(person);
        computed += person->reported;
      }
      if (there.empty()) nobodys_ += each;
      for (Person* person : there) {
        const double part =
            computed > 0 ? person->reported / computed : 1.0 / static_cast<double>(there.size());
        person->energy += each * part;
        if (IsShared(device)) person->busy += person->reported;
      }
    }
  }

  void Collect() {
    accumulator_->Tick(now_);
    for (Record& record : accumulator_->TakeRecords()) {
      ASSERT_FALSE(records_.contains(record.lease)) << record.lease << " has ended twice";
      records_.emplace(record.lease, std::move(record));
    }
  }

  std::mt19937 random_;
  base::Timestamp now_{base::TimePoint(1000s), base::WallTime(1000000s)};
  int time_ = 0, last_sample_ = -1, begun_ = 0, restarts_ = 0;
  double given_ = 0, nobodys_ = 0;
  std::map<int, double> counters_;
  std::map<std::string, Person> people_;
  std::set<std::string> here_, gone_;
  ledger::Ledger ledger_;
  std::unique_ptr<UsageAccumulator> accumulator_ = MakeUsage();
  std::map<std::string, Record> records_;
};

class RandomHolders : public ::testing::TestWithParam<unsigned> {};

TEST_P(RandomHolders, AreNeitherLostNorTakenForEachOther) {
  World world(GetParam());
  world.Live(kHolders);
  world.Check();
  EXPECT_GT(world.restarts(), 0);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomHolders, ::testing::Range(1u, 4u));

}  // namespace
}  // namespace penstock::node::usage
