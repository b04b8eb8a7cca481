// What outlives an agent: devices that their driver really divides, a kubelet with its pods, runs
// in their control groups, and the disk. Compares all that happens with the model.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "node/attribute/attribute.h"
#include "node/change/testing/slow_driver.h"
#include "node/lease/testing/fake_cgroup_manager.h"
#include "node/ledger/ledger.h"
#include "node/share/offer.h"
#include "os/testing/temporary_folder.h"
#include "tests/capacity/model.h"

namespace penstock::capacity {

/// Allocates from the lists that it read last, which may be old.
struct Kubelet {
  struct Pod {
    std::string uid, resource;
    std::vector<std::string> ids;  // of slots
  };
  std::map<std::string, std::map<std::string, bool>> lists;  // resource → slot → it is healthy
  std::map<std::string, Pod> pods;                           // by uid
  std::optional<Pod> asking;  // a pod for which an Allocate is under way

  /// Reads the list of one resource.
  void Read(const std::string& resource, const std::vector<node::share::Offer>& offers);
  std::set<std::string> Resources(const std::vector<node::share::Offer>& offers) const;
  /// The connections to the agent's plugins have ended.
  void Lose();

  /// Slots that it may allocate under this name now.
  std::vector<std::string> Free(const std::string& resource) const;
  /// The devices that it counts as allocatable.
  std::set<std::string> Counted() const;
  std::vector<node::attribute::PodHolding> List() const;
};

class Machine {
 public:
  static constexpr std::size_t kDevices = 4;

  explicit Machine(unsigned seed);

  // --- chance

  /// From 0 to `below` - 1.
  int Pick(int below) { return std::uniform_int_distribution<int>(0, below - 1)(random_); }
  bool Chance(int percent) { return Pick(100) < percent; }
  template <typename T>
  const T& OneOf(const std::vector<T>& all) {
    return all[static_cast<std::size_t>(Pick(static_cast<int>(all.size())))];
  }

  // --- what happens, for the message of a failure, and how often

  void Note(std::string what) { history_.push_back(std::move(what)); }
  void Count(const std::string& effect) { ++effects_[effect]; }
  /// What must never happen has happened.
  void Wrong(const std::string& what) {
    Note("WRONG: " + what);
    wrong_.push_back(what);
  }
  const std::vector<std::string>& history() const { return history_; }
  const std::map<std::string, int>& effects() const { return effects_; }
  const std::vector<std::string>& wrong() const { return wrong_; }

  // --- devices

  std::vector<node::change::testing::DivisibleDevice*> devices();
  /// The devices and their parts, as discovery finds them.
  std::vector<device::Facts> Look() const;
  /// The driver resets a device.
  void Reset(const std::string& id);
  /// Calls that the driver was asked for have their effect, or never will.
  void EndCalls();

  // --- holders

  /// A pod or a run has these slots now.
  void Granted(const std::string& holder, const std::vector<node::ledger::Slot>& slots);
  /// It is gone.
  void Ended(const std::string& holder);
  const Model& model() const { return model_; }
  /// The holders' devices and parts must be as they were when they were granted.
  void Check();

  /// The process of all runs: their control groups say which of them have ended.
  static constexpr pid_t kRunner = 7;
  os::TemporaryFolder disk, proc;
  base::Duration uptime{};
  node::change::testing::SlowDriver::Asked asked;
  node::lease::FakeKernel kernel;
  Kubelet kubelet;
  bool reset_fails = false;
  int names = 0;  // given to pods and runs

 private:
  /// Where a slot is; nothing: its device is not there.
  std::optional<Claim> ClaimOf(const std::string& device, int shares) const;
  /// A driver call is about to change this device or part.
  void BeforeChange(std::size_t device, const std::string& id);
  /// Counts the parts that have come and gone since the last call.
  void CountParts();

  std::mt19937 random_;
  std::vector<std::unique_ptr<node::change::testing::DivisibleDevice>> devices_;
  Model model_{kDevices};
  struct Held {
    std::string device;
    int shares = 1;
    Claim claim;
  };
  std::map<std::string, std::vector<Held>> held_;  // by holder
  std::set<std::string> parts_;                    // that were there at the last check
  std::vector<std::string> history_, wrong_;
  std::map<std::string, int> effects_;
};

}  // namespace penstock::capacity
