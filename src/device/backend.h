// The first seam to a vendor: what exists and how it does. Implemented by vendor/X over a library or sysfs, and by device/remote over a
// worker process that holds such a backend.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "device/model.h"
#include "device/telemetry.h"

namespace penstock::device {

/// One vendor's devices on this machine. Each call concerns as little as it can, so that one that hangs tells which device hangs it:
/// Describe and Read touch one device. Calls block; what a call may take is the caller's deadline (see remote.h). Wait may run beside the
/// others on a thread of its own; the others are called one at a time.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string vendor() const = 0;

  /// Connects to the driver; again after an error. kNotFound: no driver or library, the message says what is missing and what to do;
  /// kFailedPrecondition: there, but unusable (library and module differ); kUnavailable: try later.
  virtual base::Result<Driver> Open() = 0;

  /// The addresses of the devices and partitions that exist now: opaque names that Describe and Read take, valid until Close. For a vendor
  /// library its index, for sysfs a PCI address or a partition's name. Touches no single device. kUnavailable: the driver went away.
  virtual base::Result<std::vector<std::string>> List() = 0;

  /// Facts of one device. Links name peers by id and may be incomplete until all peers have been described once. kDataLoss: the device is
  /// there and does not answer; then facts known without it (address, PCI) are not to be had and the device counts as lost.
  virtual base::Result<Facts> Describe(const std::string& address) = 0;

  /// State of one device, described before.
  virtual base::Result<Reading> Read(const std::string& address) = 0;

  /// What one device, described before, measures now. Quantities that it does not have are told, not refused. Judges no health: that is
  /// Read's; kDataLoss where the device answers nothing. The first sample of what needs two (a rate) has no value of it.
  virtual base::Result<Sample> TakeSample(const std::string& address, const SampleRequest& request) = 0;

  /// Waits for events, at most so long; empty when none came. An error means that no events are to be had (kUnimplemented: never).
  virtual base::Result<std::vector<Evidence>> Wait(std::chrono::milliseconds most) = 0;

  /// Lets go of the driver: no open device files remain.
  virtual void Close() = 0;
};

/// The same backend as node/ sees it: calls that answer later, on the executor of the one who asked. Implemented by Remote.
class AsyncBackend {
 public:
  template <typename T>
  using Done = std::function<void(base::Result<T>)>;

  virtual ~AsyncBackend() = default;
  virtual void Open(Done<Driver> done) = 0;
  virtual void List(Done<std::vector<std::string>> done) = 0;
  virtual void Describe(const std::string& address, Done<Facts> done) = 0;
  virtual void Read(const std::string& address, Done<Reading> done) = 0;
  virtual void TakeSample(const std::string& address, const SampleRequest& request, Done<Sample> done) = 0;

  /// Ends the connection to the driver, which is let go of; the next Open starts anew. Calls under way fail with kCancelled, as do those
  /// that were not sent yet when a connection broke.
  virtual void Stop() = 0;

  /// Connections of ours that hang in a driver call which the kernel does not let end. 0 again once all have ended.
  virtual int abandoned() const = 0;

  /// What the owner hears unasked: evidence as it comes; `doubt` when waiting for it has begun to fail, which may be how a driver tells
  /// that a device is lost: nothing is known, a look will tell; `ended` when the connection broke (the worker died or hung): all calls have
  /// failed and facts must be read anew.
  struct Events {
    std::function<void(std::vector<Evidence>)> evidence;
    std::function<void()> doubt;
    std::function<void(base::Error)> ended;
  };
  virtual void Listen(Events events) = 0;
};

/// Where this machine's things lie, as the program itself sees them.
struct Paths {
  std::string driver_root = "/";
  std::string library;  ///< the vendor library's own path, not relative to the driver root; empty: found in the driver root
  std::string sysfs_root = "/sys";
  std::string dev_root = "/";  ///< the folder that holds dev/
  std::string proc_root = "/proc";
};

}  // namespace penstock::device
