// One vendor's devices, asked one after the other, round after round. Knows no other vendor, and publishes nothing itself.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/executor.h"
#include "node/inventory/inventory.h"
#include "node/sample/collection.h"
#include "node/sample/sampler.h"

namespace penstock::node::sample {

/// On the control executor. The next round begins an interval after the last one began, by the steady clock; but never sooner after it
/// ended than it took, so that a slow driver has half of its time for others.
class Rounds {
 public:
  struct Host {
    base::Executor& control;
    inventory::Inventory& inventory;
    Rejections& rejections;
    std::function<base::Duration()> interval;   ///< between two rounds now: shorter while somebody looks
    std::function<void(bool whole)> collected;  ///< something changed; `whole`: a round has ended
    std::function<void(const std::string& vendor, const std::string& device)> processes_differ;
  };
  Rounds(Host host, Sampler::Source source);
  ~Rounds();

  /// Follows these from now on.
  void Configure(const Sampler::Options& options);

  /// The next round begins at once, or, where the last one began less than `apart` ago, when that is over. Nothing while one is under way.
  void Soon(base::Duration apart);

  /// Devices have come or gone: asks the new ones soon, forgets the gone ones.
  void Look();

  std::string_view vendor() const { return source_.dialect->vendor(); }
  const Round& last() const { return last_; }
  /// Puts what is known of each device into the map.
  void Show(std::map<std::string, std::shared_ptr<const DeviceSample>, std::less<>>& devices);

 private:
  void Begin();
  void Next();
  bool Ask(const inventory::Entry& entry, std::uint64_t session);
  void Answered(const std::string& device, std::uint64_t session, const Moment& asked, base::Result<device::Sample> sample);
  void CompareProcesses(const std::string& device, const std::vector<device::ProcessSample>& processes);
  void End(bool whole);
  void ScheduleAt(base::TimePoint at);
  std::vector<std::string> Present() const;
  bool Forget(const std::vector<std::string>& present);

  const Host host_;
  const Sampler::Source source_;
  Wish wish_;
  std::map<std::string, Counts> counts_;                            // by device, also of those that are away
  std::map<std::string, std::unique_ptr<Collection>> collections_;  // by device
  std::map<std::string, std::vector<std::int32_t>> differed_;       // by device: the processes that were told to differ
  Round last_;

  base::TimerId timer_ = 0;
  base::TimePoint timer_at_{};
  bool configured_ = false;
  bool under_way_ = false;
  bool asked_ = false;             // anything in this round
  bool met_ = false;               // a device for the first time in this round
  Moment began_;                   // the last round
  std::vector<std::string> list_;  // of this round
  std::size_t position_ = 0;
  std::shared_ptr<Rounds*> self_;  // null inside once destroyed: for answers on their way
};

}  // namespace penstock::node::sample
