// Keeps one vendor's part of the inventory true: opens the driver, describes devices, reads them in turn, lives through drivers that come late,
// vanish, change or hang. Judges no evidence.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
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
    base::Duration poll = std::chrono::seconds(5);         ///< between two readings of a device
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

  /// Reads one device now, out of turn: something was heard of it.
  void ReadSoon(const std::string& id);

  /// Called once, when the first attempt to find devices has ended, well or not.
  void OnFirstLook(std::function<void()> callback);

 private:
  struct Known {
    std::string address;
    std::string id;       // empty while it could not be described
    std::string hanging;  // why it is left out
  };
  void Open();
  void Opened(base::Result<device::Driver> driver);
  void Describe(bool fresh);
  void DescribeNext(std::size_t position, bool fresh);
  void Described(bool fresh);
  void Poll();
  void ReadNext(std::size_t position);
  void HandleReading(const Known& known, base::Result<device::Reading> reading);
  void Ended(const base::Error& error);
  void Lost(const std::string& reason);
  void Retry(const std::string& reason);
  void FirstLookDone();
  void Schedule(base::Duration delay, void (Discovery::*what)());
  /// Wraps a callback so that it is dropped once this object is gone or the connection it belongs to has ended.
  template <typename Function>
  auto Current(Function function);

  base::Executor& executor_;
  device::AsyncBackend& backend_;
  Inventory& inventory_;
  const Options options_;
  const Callbacks callbacks_;
  base::Backoff backoff_;
  base::TimerId timer_ = 0;
  enum class Phase { kIdle, kOpening, kDescribing, kServing } phase_ = Phase::kIdle;
  bool nudged_ = false;
  std::shared_ptr<const device::Driver> driver_;
  std::vector<Known> known_;
  std::vector<device::Facts> described_;
  std::map<std::string, int> hangs_;  // address → how often it hung a worker
  std::string in_flight_;             // address of the call under way
  std::function<void()> first_look_;
  std::shared_ptr<std::uint64_t> connection_ = std::make_shared<std::uint64_t>(0);
};

}  // namespace penstock::node::inventory
