// One device: what it is asked for next, and what is known of it. Told the time; calls nobody.
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

/// What is wanted of all devices of a vendor.
struct Wish {
  std::vector<device::QuantityId> quantities;  ///< ascending
  bool processes = true;
  base::Duration interval{};  ///< between two collections, when nobody hurries
};

/// Of what came when.
struct Moment {
  base::TimePoint now{};
  base::WallTime wall{};
};

/// How often a device was asked and answered, or did not, since the agent started.
struct Counts {
  std::uint64_t collections = 0, failures = 0;
};

/// Not thread-safe.
class Collection {
 public:
  /// `counts` goes on from what it is, and outlives this.
  Collection(std::string device, const device::Dialect& dialect, Rejections& rejections, Counts& counts);

  /// The device as it is described now, in this session with its driver. Where either is another one than before, what it said that it
  /// lacks, what stays, and how far its counters were, count no more.
  void Meet(std::uint64_t session, std::shared_ptr<const device::Facts> facts);

  /// What to ask it now; nothing: it is left alone. An answer has to be told by Take or Fail.
  std::optional<device::SampleRequest> Due(const Wish& wish, base::TimePoint now);

  /// Whether the last call about it hung.
  bool hung() const { return hung_; }

  /// Whether nothing has been asked since it was met: what needs two samples has no value after the first.
  bool fresh() const { return fresh_; }

  /// It answered what Due wanted at `asked`.
  void Take(device::Sample sample, const Moment& asked, base::TimePoint now);

  /// It did not. The next collection asks it again; one that keeps failing is left alone for twice as long each time, up to two minutes,
  /// and one whose call hung for half a minute at once (and for as long as a worker hangs: see Rounds).
  void Fail(const base::Error& error, const Wish& wish, const Moment& asked, base::TimePoint now);

  /// Forgets what is not wanted any more.
  void Keep(const Wish& wish);

  /// As it stands; the same object while nothing has changed.
  std::shared_ptr<const DeviceSample> Show();

 private:
  /// The newest value, and what a counter said since that may be nonsense.
  struct Kept {
    Latest latest;
    std::uint64_t epoch = 0;     // in which it was said
    device::Number fallen_to{};  // the last smaller one
    int falls = 0;               // in a row, each at least as large as the one before
    bool heard = true;           // in the last collection
    int missed = 0;              // times in a row that it was asked for and the device had none
  };

  void Merge(const device::Value& value, base::WallTime at);
  bool WentBack(Kept& kept, const device::Value& value);
  bool IsWorthAsking(device::QuantityId id, bool slow_too) const;
  bool WasAskedFor(device::QuantityId id) const;
  void DropWhatIsNoMore();
  void TakeProcesses(std::vector<device::ProcessSample> processes, base::WallTime at);
  void Remember();
  void HearNothing();

  const std::string device_;
  const std::span<const device::Quantity> quantities_;
  Rejections& rejections_;
  Counts& counts_;

  std::uint64_t epoch_ = 0;  // counts sessions and descriptions
  std::uint64_t session_ = 0;
  bool fresh_ = true;
  std::shared_ptr<const device::Facts> facts_;
  std::vector<bool> unsupported_, answered_;  // by quantity, in this epoch
  base::TimePoint slow_at_{};                 // when what changes slowly is asked for next
  device::SampleRequest request_;             // under way
  base::TimePoint alone_until_{};
  int failures_in_a_row_ = 0;
  bool hung_ = false;
  bool failure_outlives_session_ = false;  // it may have been what ended the session

  std::vector<Kept> kept_;  // by quantity, then link
  DeviceSample sample_;     // but for its values
  std::shared_ptr<const DeviceSample> shown_;
  std::vector<std::vector<device::QuantityId>> remembered_;  // of each history, the quantities that tell it
};

}  // namespace penstock::node::sample
