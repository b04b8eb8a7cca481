// Interface to a vendor's devices: which exist and what state they are in. Implemented by
// backend/<vendor> over a library or sysfs, and by device/remote over a worker process that runs
// such a backend.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "device/model.h"
#include "device/telemetry.h"

namespace penstock::device {

/// A part to create.
struct NewPart {
  std::string profile;                 ///< PartProfile::name
  std::optional<Placement> placement;  ///< nothing: the driver chooses
  std::string within;  ///< address of the part in which it is created; empty: on the device itself
  bool outer = false;  ///< it is created for the parts within it, and is no part for a holder
  bool operator==(const NewPart&) const = default;
};

/// One vendor's devices on this machine. Each call touches as little as possible (Describe and Read
/// one device), so that a hanging call identifies the device. Calls block; the caller sets the
/// deadline (see remote.h). Wait may run on a thread of its own, in parallel with the other calls;
/// the others are called one at a time.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string vendor() const = 0;

  /// Connects to the driver; may be called again after an error. kNotFound: no driver or library,
  /// the message says what is missing and what to do; kFailedPrecondition: present but unusable
  /// (library and module differ); kUnavailable: try later.
  virtual base::Result<Driver> Open() = 0;

  /// The addresses of the devices and partitions that exist now: opaque names for Describe and
  /// Read, valid until Close. The address is the index for a vendor library, a PCI address or a
  /// partition's name for sysfs. Touches no single device. kUnavailable: the driver went away.
  virtual base::Result<std::vector<std::string>> List() = 0;

  /// Facts of one device. Links name peers by id and may be incomplete until all peers have been
  /// described once. kDataLoss: the device is present and does not answer; then even facts known
  /// without it (address, PCI) are unavailable and the device counts as lost.
  virtual base::Result<Facts> Describe(const std::string& address) = 0;

  /// State of one device that was described before. A vendor whose driver reads the parts of a
  /// device with it returns those, too; each can also be read alone.
  virtual base::Result<Reading> Read(const std::string& address) = 0;

  /// Measures one device that was described before. Quantities that the device does not have are
  /// listed in the sample and are no error. Does not judge health; Read does. kDataLoss: the device
  /// answers no call. The first sample has no value for quantities that need two readings (a rate).
  /// A vendor whose driver measures the parts of a device with it returns those of the request,
  /// too; each can also be measured alone.
  virtual base::Result<Sample> TakeSample(const std::string& address,
                                          const SampleRequest& request) = 0;

  /// Sets a mode of a device (Facts::modes). OK also where it takes effect only after a reset: the
  /// device's facts show which. kUnimplemented: it has no such mode, here and below; otherwise the
  /// driver's refusal: kFailedPrecondition (a process is on the device), kPermissionDenied, …
  virtual base::Status SetMode(const std::string& address, const std::string& mode,
                               const std::string& value);

  /// Creates a part of a device that was described before and returns its address, which Describe
  /// knows once the device was described again. Where it fails, no part is left.
  /// kInvalidArgument: there is no such profile or part; kResourceExhausted: there is no place.
  virtual base::Result<std::string> CreatePart(const std::string& device, const NewPart& part);

  /// Destroys a part that was described before. kFailedPrecondition: a process uses it, or there
  /// are parts within it. kNotFound: it is not there.
  virtual base::Status DestroyPart(const std::string& address);

  /// Waits for events for at most `most`; empty if none came. An error means that events are
  /// unavailable (kUnimplemented: permanently).
  virtual base::Result<std::vector<Evidence>> Wait(std::chrono::milliseconds most) = 0;

  /// Disconnects from the driver: no open device files remain.
  virtual void Close() = 0;
};

/// The same backend as node/ sees it: asynchronous calls that complete on the caller's executor.
/// Implemented by Remote.
class AsyncBackend {
 public:
  template <typename T>
  using Done = std::function<void(base::Result<T>)>;

  virtual ~AsyncBackend() = default;
  virtual void Open(Done<Driver> done) = 0;
  virtual void List(Done<std::vector<std::string>> done) = 0;
  virtual void Describe(const std::string& address, Done<Facts> done) = 0;
  virtual void Read(const std::string& address, Done<Reading> done) = 0;
  virtual void TakeSample(const std::string& address, const SampleRequest& request,
                          Done<Sample> done) = 0;
  /// Each returns an address: of the device or the part.
  virtual void SetMode(const std::string& address, const std::string& mode,
                       const std::string& value, Done<std::string> done);
  virtual void CreatePart(const std::string& device, const NewPart& part, Done<std::string> done);
  virtual void DestroyPart(const std::string& address, Done<std::string> done);

  /// Ends the connection to the driver and releases the driver; the next Open starts a new
  /// connection. Calls in flight fail with kCancelled, as do calls that were not sent yet when a
  /// connection broke.
  virtual void Stop() = 0;

  /// The number of connections that hang in a driver call which the kernel does not interrupt. 0
  /// again when all have ended.
  virtual int abandoned() const = 0;

  /// Notifications to the owner. `evidence`: evidence as it comes. `doubt`: waiting for events
  /// began to fail, which some drivers do when a device is lost; nothing is known until the next
  /// reading. `ended`: the connection broke (the worker died or hung); all calls have failed and
  /// facts must be reread.
  struct Events {
    std::function<void(std::vector<Evidence>)> evidence;
    std::function<void()> doubt;
    std::function<void(base::Error)> ended;
  };
  virtual void Listen(Events events) = 0;
};

/// Paths of this machine, as this process sees them.
struct Paths {
  std::string driver_root = "/";
  std::string library;  ///< path of the vendor library, not relative to the driver root; empty:
                        ///< search the driver root
  std::string sysfs_root = "/sys";
  std::string dev_root = "/";  ///< the folder that contains dev/
  std::string proc_root = "/proc";
};

}  // namespace penstock::device
