// Labels and event reasons: ROCm, device-config-manager, pkg/config_manager/globals/constants.go.
#include "backend/amd/dialect/mode_terms.h"

#include <string>

#include "backend/amd/dialect/kinds.h"

namespace penstock::backend::amd {
namespace {

using device::LayoutFailure;
using device::LayoutStage;

std::string EventReason(LayoutStage stage, LayoutFailure failure, bool changed) {
  if (stage == LayoutStage::kPending) return "PartitionInProgress";
  if (stage == LayoutStage::kSuccess)
    return changed ? "SuccessfullyPartitioned" : "RequestedPartitionConfigAlreadyExists";
  switch (failure) {
    case LayoutFailure::kNoFile: return "ConfigMapNotPresent";
    case LayoutFailure::kNotReadable: return "InvalidJSONInConfigMap";
    case LayoutFailure::kUnknown: return "NonExistentProfile";
    case LayoutFailure::kImpossible: return "InvalidProfileInfo";
    case LayoutFailure::kNoComputeMode: return "InvalidComputeType";
    case LayoutFailure::kNoMemoryMode: return "InvalidMemoryType";
    case LayoutFailure::kNone:
    case LayoutFailure::kNotDone: break;
  }
  return "PartitionFailure";
}

device::PartTerms MakeTerms() {
  device::PartTerms terms;
  terms.mode = kComputePartition;
  terms.off = "SPX";
  terms.by_mode = true;
  terms.request_label = "dcm.amd.com/gpu-config-profile";
  terms.state_label = "dcm.amd.com/gpu-config-profile-state";
  terms.state_words = {{LayoutStage::kPending, "in-progress"},
                       {LayoutStage::kSuccess, "success"},
                       {LayoutStage::kFailed, "failure"}};
  terms.event = EventReason;
  terms.kept_as = "-amd";
  terms.again_label = "dcm.amd.com/apply-gpu-config-profile";
  terms.program = "device-config-manager";
  return terms;
}

}  // namespace

const device::PartTerms& TheModeTerms() {
  static const device::PartTerms terms = MakeTerms();
  return terms;
}

}  // namespace penstock::backend::amd
