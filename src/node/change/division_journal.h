// Encodes what a restarted agent must know of divided devices: the layout that applies, in
// layout.json; the parts that were created on demand, in parts.json; and how devices are being
// changed, in the journal of changes.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/config/layouts.h"
#include "base/core/result.h"
#include "node/partition/plan.h"

namespace penstock::node::change {

/// DeviceChange::details of a change that divides a device.
struct DivisionRecord {
  std::string layout;  ///< its name
  partition::DesiredDivision desired, before;
  bool mode_only = false, skip_reset = false;
  bool resets = false;         ///< the plan has a reset
  std::set<std::string> kept;  ///< ids of the parts that stay
};

std::string EncodeDivision(const DivisionRecord& record);
/// kDataLoss: it is corrupt.
base::Result<DivisionRecord> DecodeDivision(std::string_view text);

/// The layout that applies.
struct AppliedLayout {
  api::Layout layout;
  std::string source;  ///< whose it is: "user", "label"
  std::string label;   ///< the value of the Node's label that was followed last, before or by it
  bool mode_only = false, skip_reset = false;
  /// Device → the index of its rule, as they were selected when the layout was applied: indices of
  /// devices change when one is missing. Empty: not selected yet.
  std::map<std::string, int> selected;
  std::string boot;                ///< id of the boot in which …
  std::set<std::string> achieved;  ///< … these devices were divided as it says
  bool operator==(const AppliedLayout&) const = default;
};

/// A layout without a name: none applies.
std::string EncodeAppliedLayout(const AppliedLayout& applied);

/// kFailedPrecondition where a newer version of the agent wrote it, kDataLoss where it is corrupt.
base::Result<AppliedLayout> DecodeAppliedLayout(std::string_view text, std::string_view file);

/// That of the previous agent; none where the file is corrupt or of a newer version
/// (os::LoadKept). Blocks.
base::Result<AppliedLayout> LoadAppliedLayout(const std::string& path);

/// DeviceChange::details of a change that creates and removes parts on demand.
struct PartsRecord {
  std::vector<partition::DesiredParts> create;  ///< one each, with its placement
  std::set<std::string> remove;                 ///< ids of parts
  std::set<std::string> kept;                   ///< ids of all other parts of the device
  std::string boot;                             ///< id of the boot in which it was made
};

std::string EncodePartsRecord(const PartsRecord& record);
/// kDataLoss: it is corrupt.
base::Result<PartsRecord> DecodePartsRecord(std::string_view text);

/// Parts that were created on demand: id → id of their device.
using OnDemandParts = std::map<std::string, std::string>;

std::string EncodeOnDemandParts(const OnDemandParts& parts, std::string_view boot);

/// Those of the previous agent; none if it was another boot: a part that is created again can have
/// the id of one that the reboot has destroyed. None where the file is corrupt or of a newer
/// version (os::LoadKept). Blocks.
base::Result<OnDemandParts> LoadOnDemandParts(const std::string& path, std::string_view boot);

}  // namespace penstock::node::change
