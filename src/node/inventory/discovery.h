// Keeps one vendor's part of the inventory current: opens the driver, describes its devices and
// reads them in turn, and handles drivers that appear late, disappear, change or hang. Does not
// evaluate evidence.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/backoff.h"
#include "base/executor.h"
#include "device/backend.h"
#include "node/inventory/inventory.h"

namespace penstock::node::inventory {

/// Runs on the control executor.
class Discovery {
 public:
  struct Options {
    std::string vendor;
    base::Duration poll = std::chrono::seconds(5);  ///< between two readings of a device
    base::Duration poll_unhealthy = std::chrono::milliseconds(
        500);  ///< the same for an unhealthy device, so that its recovery is noticed soon
    base::Duration retry_first = std::chrono::seconds(1);  ///< after a failed open; doubles each
                                                           ///< time
    base::Duration retry_most = std::chrono::seconds(15);
    std::string sysfs_root = "/sys";
    /// Where the driver is that was opened now; null: where it is not known.
    std::function<std::shared_ptr<const DriverLocation>()> place = nullptr;
  };
  struct Callbacks {
    /// Evidence from readings and events, for faults that persist and for single events, with the
    /// device's id filled in where it is known. Events of kFactsChanged are handled here. `ago`:
    /// how long before now the reading began; what it says may be as old.
    std::function<void(const std::string& id, const device::Reading&, base::Duration ago)> reading;
    std::function<void(const device::Evidence&)> evidence;
    /// The devices were described, perhaps again. `fresh`: the driver was reopened, which ends
    /// every fault that a reload of the driver ends.
    std::function<void(bool fresh)> described;
  };

  Discovery(base::Executor& executor, device::AsyncBackend& backend, Inventory& inventory,
            Options options, Callbacks callbacks);
  ~Discovery();

  void Start();

  /// Scans again now: files that concern the driver changed on disk.
  void Refresh();

  /// Describes all devices now, because this agent changed one of them, or because the inventory
  /// must not be older than this call. Then, or when there is no driver, calls `done`.
  void DescribeNow(std::function<void()> done = {});

  /// Reads one device out of turn, because of an event about it: at once, or 100 ms after the last
  /// such reading, however often this is called.
  void ReadSoon(const std::string& id);

  /// Closes all connections to the driver, because an open connection blocks a reset. The devices
  /// stay in the inventory unchanged. `done` is called once no connection of this agent is left,
  /// after 5 s at the latest.
  void Release(std::function<void()> done);

  /// Reopens the driver after Release.
  void Reopen();

  /// As Release, until TakeBack: meanwhile the driver is reported as absent and its devices as
  /// gone, for this reason, and Reopen does nothing.
  void GiveUp(const std::string& why, std::function<void()> done);

  /// Ends GiveUp: looks at the driver at once.
  void TakeBack();

  /// Closes the connection to the driver and opens it again: it is now elsewhere. Until that is
  /// done, the devices stay in the inventory unchanged. Does nothing between Release and Reopen.
  void Restart();

  /// Number of the current connection to the driver; nothing until all devices of a connection are
  /// described, because addresses are not valid before that.
  std::optional<std::uint64_t> session() const;

  /// Sets the time between two readings of a device, from now on.
  void SetPoll(base::Duration poll);

  /// `callback` is called once, when the first attempt to find devices has succeeded or failed.
  void OnFirstScan(std::function<void()> callback);

 private:
  struct Known {
    std::string address;
    std::string id;     // empty while it could not be described
    std::string whole;  // of a part: address of the device through which it was found
                        // (Facts::parts); empty: it is listed
  };
  struct Hang {
    int times = 0;
    base::TimePoint retry_at{};
  };
  enum class Phase { kWaiting, kOpening, kDescribing, kServing, kReleased };

  void Open();
  void Opened(device::Driver driver);
  void Scan();
  void List(bool fresh);
  void Listed(const std::vector<std::string>& addresses, bool fresh);
  void DescribeNext(std::size_t position, bool fresh);
  void FollowMissing();
  bool IsAnother(const std::string& address, const std::string& id) const;
  void DescribeAll(bool fresh);
  void HandleFacts(std::size_t position, base::Result<device::Facts> facts);
  void AddParts(std::size_t position, const device::Facts& facts);
  void KeepHidden();
  void Described(bool fresh);
  void ReadNext(std::size_t position);
  std::size_t HandleParts(std::size_t position, const std::vector<device::PartReading>& parts,
                          base::Duration ago);
  void ReadSome();
  void ScheduleNext();
  bool AnyUnhealthy() const;
  void AwaitRelease(int tries);
  void HandleReading(const std::string& id, base::Result<device::Reading> reading,
                     base::Duration ago);
  void ReportLost(const std::string& id, std::string_view kind, const base::Error& error,
                  base::Duration ago = {});
  void Evidence(const std::vector<device::Evidence>& evidence);
  void DescribeSoon();

  /// The connection broke, or a call hung: the one about `in_flight_` where that is set. Everything
  /// starts over with a new connection.
  void Ended(const base::Error& error);
  /// The driver cannot be opened or does not answer: publishes the reason and retries later. Where
  /// the driver was there before, and the error does not say that it was removed, its devices are
  /// not reported as gone.
  void NoDriver(const base::Error& cause);
  void DevicesUnknown(const base::Error& error);
  void FirstScanDone();
  void CallDescribed();
  void After(base::Duration delay, void (Discovery::*what)());
  bool IsSkipped(const std::string& address) const;
  bool IsSkipped(const Known& known) const;
  std::string NameOf(const std::string& address) const;
  void ForgetNumbers();

  /// Wraps a callback so that it is dropped once this object is destroyed or its connection has
  /// ended, or where the connection ends before the call was sent: then `ended` follows, and the
  /// device that the call was about is not to blame.
  template <typename Value>
  std::function<void(base::Result<Value>)> Current(
      std::function<void(base::Result<Value>)> function);

  base::Executor& executor_;
  device::AsyncBackend& backend_;
  Inventory& inventory_;
  Options options_;
  const Callbacks callbacks_;
  base::Backoff backoff_;
  base::TimerId timer_ = 0;
  Phase phase_ = Phase::kWaiting;
  bool given_up_ = false;                             // stays released
  std::vector<std::function<void()>> await_release_;  // until no connection is left
  bool busy_ = false;  // a scan is in progress: the next one waits for its end
  bool rescan_ = false;
  // What waits for the next description, and for that under way.
  std::vector<std::function<void()>> await_description_, await_this_description_;
  bool describe_again_ = false;                  // a reading contradicts what was described
  std::optional<std::set<std::string>> wanted_;  // ids to read in this round; nothing: all
  std::set<std::string> soon_;                   // ids to read out of turn
  base::TimePoint scan_at_{};                    // when all devices are read next
  base::TimePoint read_some_at_{};               // when devices were last read out of turn
  std::vector<Known> known_;
  std::vector<device::Facts> described_;
  std::set<std::string> found_;        // addresses of devices that were described in this round
  std::map<std::string, Hang> hangs_;  // by NameOf: an address is a number that may mean another
                                       // device in the next connection
  std::map<std::string, std::string> ids_;  // address → id, kept over connections, so that a device
                                            // that does not answer is still known
  std::map<std::string, std::string>
      unread_;  // address → why its facts could not be read, as logged
  std::vector<std::string>
      hidden_;  // ids of devices that may be behind addresses which could not be described
  std::string in_flight_;  // address of the call in progress
  std::string driver_version_;
  std::string driver_instance_;  // of the driver that was opened last, as long as it is there
  base::WallTime driver_since_{};
  std::function<void()> first_scan_;
  std::shared_ptr<std::uint64_t> connection_ = std::make_shared<std::uint64_t>(0);
};

}  // namespace penstock::node::inventory
