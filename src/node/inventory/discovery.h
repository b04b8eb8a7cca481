// Keeps one vendor's part of the inventory true: opens the driver, describes devices, reads them in turn, lives through drivers that come
// late, vanish, change or hang. Judges no evidence.
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

/// On the control executor, all of it.
class Discovery {
 public:
  struct Options {
    std::string vendor;
    base::Duration poll = std::chrono::seconds(5);  ///< between two readings of a device
    base::Duration poll_unhealthy =
        std::chrono::milliseconds(500);                    ///< likewise, of one that is unhealthy, so that its recovery is seen soon
    base::Duration retry_first = std::chrono::seconds(1);  ///< after a failed open, doubling
    base::Duration retry_most = std::chrono::seconds(15);
  };
  struct Callbacks {
    /// Evidence, standing and not, from readings and events, with the device's id filled in where it is known.
    std::function<void(const std::string& id, const device::Reading&)> reading;
    std::function<void(const device::Evidence&)> evidence;
    /// The devices were (re)described; `fresh` when the driver was opened anew, which ends what a reload of the driver ends.
    std::function<void(bool fresh)> described;
  };

  Discovery(base::Executor& executor, device::AsyncBackend& backend, Inventory& inventory, Options options, Callbacks callbacks);
  ~Discovery();

  void Start();

  /// Something that concerns the driver changed on disk: look now.
  void Nudge();

  /// Reads one device out of turn: something was heard of it. At once, or 100 ms after the last time, however often this is called.
  void ReadSoon(const std::string& id);

  /// Lets go of the driver, whose devices stay in the inventory as they are: an open connection is in the way of a reset. `done` is called
  /// once no connection of ours is left, at the latest after 5 s.
  void LetGo(std::function<void()> done);

  /// Opens the driver again.
  void TakeUp();

  /// Number of the present connection to the driver; nothing while none has all its devices described, so that addresses mean nothing.
  std::optional<std::uint64_t> session() const;

  /// How long to wait between two readings, from now on.
  void SetPoll(base::Duration poll);

  /// Called once, when the first attempt to find devices has ended, well or not.
  void OnFirstLook(std::function<void()> callback);

 private:
  struct Known {
    std::string address;
    std::string id;  // empty while it could not be described
  };
  struct Hang {
    int times = 0;
    base::TimePoint retry_at{};
  };
  enum class Phase { kWaiting, kOpening, kDescribing, kServing, kLetGo };

  void Open();
  void Look();
  void List(bool fresh);
  void Listed(const std::vector<std::string>& addresses, bool fresh);
  void DescribeNext(std::size_t position, bool fresh);
  bool IsAnother(const std::string& address, const std::string& id) const;
  void DescribeAll(bool fresh);
  void HandleFacts(Known& known, base::Result<device::Facts> facts);
  void KeepHidden();
  void Described(bool fresh);
  void ReadNext(std::size_t position);
  void ReadSome();
  void Rest();
  bool AnyUnhealthy() const;
  void AwaitRelease(int tries, std::function<void()> done);
  void HandleReading(const std::string& id, base::Result<device::Reading> reading);
  void ReportLost(const std::string& id, std::string_view kind, const base::Error& error);
  void Evidence(const std::vector<device::Evidence>& evidence);

  /// The connection broke, or a call hung, the one about `in_flight_` where there is one: everything is done anew with another one.
  void Ended(const base::Error& error);
  /// The driver cannot be opened, or answers nothing: say why, try later. Where it was there before and the error does not say that it is
  /// not any more, its devices are not known to be gone.
  void NoDriver(const base::Error& error);
  void DevicesUnknown(const base::Error& error);
  void FirstLookDone();
  void After(base::Duration delay, void (Discovery::*what)());
  bool LeftOut(const std::string& address) const;
  std::string NameOf(const std::string& address) const;
  void ForgetNumbers();

  /// Wraps a callback so that it is dropped once this object is gone or its connection has ended, or ends before its call was sent:
  /// `ended` follows then, and the device that was to be asked is not to blame.
  template <typename Value>
  std::function<void(base::Result<Value>)> Current(std::function<void(base::Result<Value>)> function);

  base::Executor& executor_;
  device::AsyncBackend& backend_;
  Inventory& inventory_;
  Options options_;
  const Callbacks callbacks_;
  base::Backoff backoff_;
  base::TimerId timer_ = 0;
  Phase phase_ = Phase::kWaiting;
  bool busy_ = false;  // a look is under way: another one waits for its end
  bool look_again_ = false;
  bool describe_again_ = false;                  // a reading said that what was described is not so any more
  std::optional<std::set<std::string>> wanted_;  // ids that are read in this round; nothing: all
  std::set<std::string> soon_;                   // ids that are to be read out of turn
  base::TimePoint look_at_{};                    // when all are read next
  base::TimePoint read_some_at_{};               // when some were read out of turn last
  std::vector<Known> known_;
  std::vector<device::Facts> described_;
  std::map<std::string, Hang> hangs_;       // by NameOf: addresses are numbers that may be another device's in the next connection
  std::map<std::string, std::string> ids_;  // address → id, kept over connections: a device that answers nothing is still known
  std::vector<std::string> hidden_;         // ids of devices that may be behind addresses which could not be described
  std::string in_flight_;                   // address of the call under way
  std::string driver_version_;
  std::function<void()> first_look_;
  std::shared_ptr<std::uint64_t> connection_ = std::make_shared<std::uint64_t>(0);
};

}  // namespace penstock::node::inventory
