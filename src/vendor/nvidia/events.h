// Events that the driver sends of its own accord. Some never come (reference: XIDs that are only logged), so polling goes on beside them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "device/model.h"
#include "vendor/nvidia/nvml.h"

namespace penstock::vendor::nvidia {

/// One event set. Register and Wait may run at the same time, on two threads.
class Events {
 public:
  explicit Events(const Nvml& nvml);
  ~Events();
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  /// How many devices will be registered; Wait is not given up as long as some are to come.
  void Expect(std::size_t devices);

  /// Registers a device for what it supports of what we want to hear; a device that supports nothing is no error. Again after its id
  /// changed.
  void Register(abi::Device device, const std::string& id);

  /// What came, at most after `most`. kUnimplemented: no device has events; kUnavailable: the wait fails for now.
  base::Result<std::vector<device::Evidence>> Wait(std::chrono::milliseconds most);

 private:
  bool AnyRegistered(std::chrono::milliseconds most, bool& hopeless);
  device::Evidence Translate(const abi::EventData& event);

  const Nvml& nvml_;
  abi::EventSet set_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<abi::Device, std::string> ids_;  // of all that were tried
  std::size_t expected_ = 0, registered_ = 0;
};

}  // namespace penstock::vendor::nvidia
