// Events that the NVIDIA driver sends by itself. Some are never sent (reference: XIDs that are only
// logged), so the agent polls as well.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "backend/nvidia/nvml.h"
#include "base/core/result.h"
#include "device/model.h"

namespace penstock::backend::nvidia {

/// One event set. Register and Wait may run at the same time, on two threads.
class Events {
 public:
  explicit Events(const Nvml& nvml);
  ~Events();
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  /// Sets how many devices will be registered; Wait does not give up while some are missing.
  void Expect(std::size_t devices);

  /// Registers a device for those of the wanted events that it supports; supporting none is no
  /// error. Call it again after the device's id changed.
  void Register(abi::Device device, const std::string& id);

  /// Waits at most `most` for events and returns them. kUnimplemented: no device has events;
  /// kUnavailable: the wait fails for now.
  base::Result<std::vector<device::Evidence>> Wait(std::chrono::milliseconds most);

 private:
  bool AnyRegistered(std::chrono::milliseconds most, bool& hopeless);
  device::Evidence Translate(const abi::EventData& event);

  const Nvml& nvml_;
  abi::EventSet set_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<abi::Device, std::string> ids_;  // of all devices passed to Register
  std::size_t expected_ = 0, registered_ = 0;
};

}  // namespace penstock::backend::nvidia
