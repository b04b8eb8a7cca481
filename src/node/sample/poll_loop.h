// Polls the devices of one vendor, one after the other, in rounds.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/executor.h"
#include "base/lifetime.h"
#include "node/inventory/inventory.h"
#include "node/sample/device_collector.h"
#include "node/sample/sampler.h"

namespace penstock::node::sample {

/// On the control executor. A round starts one interval after the start of the previous one, by the
/// steady clock, but never sooner after its end than it took, so that a slow driver is idle for at
/// least half of the time.
class PollLoop {
 public:
  struct Host {
    base::Executor& control;
    inventory::Inventory& inventory;
    Rejections& rejections;
    /// The current time between two rounds: shorter while a client asks for fresh values.
    std::function<base::Duration()> interval;
    std::function<void(bool whole)> collected;  ///< samples changed; `whole`: a round has ended
    std::function<void(const std::string& vendor, const std::string& device)> processes_differ;
  };
  PollLoop(Host host, Sampler::Source source);
  ~PollLoop();

  /// Applies from now on.
  void Configure(const Sampler::Options& options);

  /// Starts the next round at once or, if the previous one started less than `apart` ago, when that
  /// time is over. Does nothing while a round is under way.
  void Soon(base::Duration apart);

  /// The inventory changed: asks new devices soon and drops gone ones.
  void InventoryChanged();

  std::string_view vendor() const { return source_.dialect->vendor(); }
  const Round& last() const { return last_; }
  /// Adds the current sample of each device to the map.
  void Show(std::map<std::string, std::shared_ptr<const DeviceSample>, std::less<>>& devices);

 private:
  void Begin();
  void Next();
  DeviceCollector* CollectorOf(const inventory::Entry& entry, std::uint64_t session);
  std::optional<device::SampleRequest> DueOf(const inventory::Entry& entry, std::uint64_t session,
                                             base::TimePoint now);
  std::vector<device::SampleRequest> DueOfParts(const inventory::Entry& entry,
                                                std::uint64_t session, base::TimePoint now);
  bool Ask(const inventory::Entry& entry, std::uint64_t session);
  void Answered(const std::string& device, std::uint64_t session, const base::Timestamp& sent,
                base::Result<device::Sample> sample);
  void Take(const std::string& device, device::Sample sample, const base::Timestamp& sent,
            base::TimePoint now);
  void CompareProcesses(const std::string& device,
                        const std::vector<device::ProcessSample>& processes);
  void End(bool whole);
  void ScheduleAt(base::TimePoint at);
  std::vector<std::string> Present() const;
  bool Forget(const std::vector<std::string>& present);

  const Host host_;
  const Sampler::Source source_;
  CollectionPlan plan_;
  std::map<std::string, CollectionCounts> counts_;  // by device, including gone ones
  std::map<std::string, std::unique_ptr<DeviceCollector>> collections_;  // by device
  // By device: the process ids that were last reported as different.
  std::map<std::string, std::vector<std::int32_t>> differed_;
  Round last_;

  base::TimerId timer_ = 0;
  base::TimePoint timer_at_{};
  bool configured_ = false;
  bool in_round_ = false;
  bool asked_ = false;             // a device was asked in this round
  bool any_new_ = false;           // in this round a device was asked for the first time
  base::Timestamp began_;          // start of the last round
  std::vector<std::string> list_;  // the devices of this round
  std::size_t position_ = 0;
  /// A part that is due, and was sent in the request for its device.
  struct Part {
    std::string address;
    device::SampleRequest request;
    bool measured = false;
  };
  std::map<std::string, Part> parts_;  // of this round, by id
  base::Lifetime lifetime_;
};

}  // namespace penstock::node::sample
