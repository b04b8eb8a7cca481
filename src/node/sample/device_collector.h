// Decides what to ask one device next, and keeps its newest values. The caller passes the time and
// makes the calls.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "device/dialect.h"
#include "node/sample/rejections.h"
#include "node/sample/samples.h"

namespace penstock::node::sample {

/// What to collect from all devices of a vendor.
struct CollectionPlan {
  std::vector<device::QuantityId> quantities;  ///< ascending
  bool processes = true;
  base::Duration interval{};  ///< between two collections, unless a client asked for faster ones
};

/// How often a device was asked and how often this failed, since the agent started.
struct CollectionCounts {
  std::uint64_t collections = 0, failures = 0;
};

/// Not thread-safe.
class DeviceCollector {
 public:
  /// Continues `counts`, which must outlive this object.
  DeviceCollector(std::string device, const device::Dialect& dialect, Rejections& rejections,
                  CollectionCounts& counts);

  /// Sets the device's current description and the number of its driver session. If either changed,
  /// the unsupported quantities, the constant ones, and the last counter values of the previous
  /// epoch no longer count.
  void SetFacts(std::uint64_t session, std::shared_ptr<const device::Facts> facts);

  /// What to ask now; nothing: do not ask. The caller must report the answer with Take or Fail.
  std::optional<device::SampleRequest> Due(const CollectionPlan& plan, base::TimePoint now);

  /// Whether the last call for this device hung.
  bool hung() const { return hung_; }

  /// Whether nothing was asked since Meet saw a new session or description: a quantity that needs
  /// two samples has no value after the first.
  bool fresh() const { return fresh_; }

  /// The device answered the request of Due, which was sent at `sent`.
  void Take(device::Sample sample, const base::Timestamp& sent, base::TimePoint now);

  /// The request failed. The next collection asks the device again. One that fails repeatedly is
  /// skipped for twice as long each time, up to two minutes. One whose call hung is skipped for
  /// half a minute at once (and for as long as a worker hangs: see PollLoop).
  void Fail(const base::Error& error, const CollectionPlan& plan, const base::Timestamp& sent,
            base::TimePoint now);

  /// Drops values that the plan no longer contains.
  void Keep(const CollectionPlan& plan);

  /// The current sample; the same object as long as nothing changed.
  std::shared_ptr<const DeviceSample> Show();

 private:
  /// The newest value, and lower readings of a counter since, which may be wrong.
  struct Kept {
    Latest latest;
    std::uint64_t epoch = 0;     // in which the value was read
    device::Number fallen_to{};  // the last lower reading
    int falls = 0;               // consecutive, each at least as large as the one before
    bool reported = true;        // in the last collection
    int missed = 0;              // consecutive requests without a value
  };

  void Merge(const device::SampleValue& value, base::WallTime at);
  bool WentBack(Kept& kept, const device::SampleValue& value);
  bool ShouldRequest(device::QuantityId id, bool slow_too) const;
  bool WasRequested(device::QuantityId id) const;
  void DropVanished();
  void TakeProcesses(std::vector<device::ProcessSample> processes, base::WallTime at);
  void Remember();
  void MarkUnreported();

  const std::string device_;
  const std::span<const device::Quantity> quantities_;
  Rejections& rejections_;
  CollectionCounts& counts_;

  std::uint64_t epoch_ = 0;  // counts new sessions and descriptions
  std::uint64_t session_ = 0;
  bool fresh_ = true;
  std::shared_ptr<const device::Facts> facts_;
  std::vector<bool> unsupported_, answered_;  // by quantity, in this epoch
  base::TimePoint slow_at_{};                 // when slow quantities are due
  device::SampleRequest request_;             // in flight
  base::TimePoint alone_until_{};
  int failures_in_a_row_ = 0;
  bool hung_ = false;
  bool failure_outlives_session_ = false;  // the failure may have ended the session

  std::vector<Kept> kept_;  // by quantity, then link
  DeviceSample sample_;     // without its values
  std::shared_ptr<const DeviceSample> shown_;
  // For each history, its quantities, the best one first.
  std::vector<std::vector<device::QuantityId>> remembered_;
};

}  // namespace penstock::node::sample
