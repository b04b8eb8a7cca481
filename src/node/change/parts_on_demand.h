// Creates parts of devices when a request needs them, and removes them once they are unused, on the
// devices that the configuration sets aside for that.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"
#include "base/executor.h"
#include "node/change/device_changes.h"
#include "node/change/division_journal.h"
#include "node/change/divisions.h"

namespace penstock::node::change {

/// What a queued request still lacks.
struct PartsRequest {
  std::string ticket;
  std::string profile;              ///< as users name it
  std::string model;                ///< glob over the model's name; empty: any
  std::size_t count = 1;            ///< parts that it asks for
  std::size_t missing = 1;          ///< of these, how many are to be created
  std::set<std::string> kept_back;  ///< devices that are kept for requests before it
};

/// On the control executor. A device that is set aside (`parts.onDemand`) belongs to the local
/// allocator. Parts are created there only while it is in the mode for that, which is never changed
/// here; they are reserved for the request until it is served or leaves. A part that was created so
/// and has neither holder nor request is removed. All other parts, whoever created them, stay.
///
/// The steps of a change, of one device: withdraw the parts that are removed; wait until they are
/// unused; remove and create; note on disk which parts were created; read them.
class PartsOnDemand final : public ChangeKind {
 public:
  /// Adds itself to the changes, which call it until it is destroyed. `path` is that of parts.json,
  /// which is written on `io`; `remembered` is what LoadOnDemandParts read from it.
  PartsOnDemand(base::Executor& control, base::Executor& io, Divisions::Node node,
                Divisions::VendorOf vendor_of, const std::string& path, OnDemandParts remembered,
                std::string boot_id);
  ~PartsOnDemand() override;

  /// Sets the devices that are set aside (share::OnDemandDevices).
  void SetDevices(const std::vector<std::string>& set_aside);

  /// Sets the function that is called when a request that waits may be served now.
  void OnChange(std::function<void()> changed);

  /// Begins to create what the request lacks, which could not be served because of `why_not`: all
  /// of it or nothing. Returns what it waits for then: "1g.5gb is being created on GPU 0". To be
  /// called again when that has not served it. Errors: `why_not`, it cannot be served with what was
  /// created; kNotFound,
  /// no device is set aside that has the profile; kFailedPrecondition, there can never be so many;
  /// kResourceExhausted, there is no room now; kUnavailable, all devices failed a moment ago, are
  /// unhealthy or not in the mode.
  base::Result<std::string> Prepare(const PartsRequest& request, const base::Error& why_not);

  /// Whether parts are being created for it, and are not offered yet.
  bool IsPreparing(const std::string& ticket) const;

  /// The request was served, or has left: what is reserved for it is free.
  void Release(const std::string& ticket);

  /// Foresees where parts could be created once the ledger is another one: the slots of all that
  /// the request lacks, or none. Remembers them, so that later calls do not place others there
  /// while a lease has them. To be used at once. Nothing: no device is set aside.
  using Forecast = std::function<std::vector<ledger::Slot>(const PartsRequest& request,
                                                           const ledger::Snapshot& then)>;
  Forecast Foresee() const;

  /// Parts that are reserved for other requests.
  std::set<std::string> ReservedForOthers(const std::string& ticket) const;

  /// Devices on which parts of the profile are created, with all parts that were created there on
  /// demand. Empty where there are none. `model`: PartsRequest::model.
  std::set<std::string> CouldServe(const std::string& profile, const std::string& model) const;

  /// How much of a device a part of the profile is, the largest of all devices that are set aside
  /// (ledger::FractionOf); 0 where none has it.
  double FractionOf(const std::string& profile) const;

  static constexpr std::string_view kName = "parts-on-demand";
  std::string_view name() const override { return kName; }
  const std::vector<ChangeStep>& steps() const override;
  bool hides_devices() const override { return true; }
  bool includes_parts() const override { return true; }
  std::set<std::string> KeptParts(const DeviceChange& change) const override;
  std::string Explain(const DeviceChange& change, const std::string& device) const override;
  std::vector<DeviceChange> Due() override;
  bool AwaitsDevices() const override;
  void Ended(const DeviceChange& change, const base::Status& result) override;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::node::change
