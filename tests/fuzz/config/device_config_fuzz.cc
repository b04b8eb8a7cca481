// Fuzzes DeviceConfig objects, alone and over a ClusterPolicy: whoever may write one can write
// anything.
#include <cstdint>
#include <string>

#include "../oracle.h"
#include "api/cluster/penstock.h"
#include "api/compat/amd/device_config.h"
#include "api/compat/nvidia/cluster_policy.h"
#include "backend/config_terms.h"

namespace {

using penstock::api::PenstockSpec;
using penstock::fuzz::Require;

/// Answers are bounded by the object, and each names a field. The spec is a valid Penstock object,
/// and the same after writing and reading it.
void CheckTranslation(std::string_view text, const PenstockSpec* over) {
  const auto config = penstock::api::compat::TranslateDeviceConfig(text, over);
  if (!config.ok()) {
    Require(config.error().code() == penstock::base::Code::kInvalidArgument);
    Require(config.error().message().starts_with("DeviceConfig"));
    return;
  }
  std::size_t size = 0;
  for (const auto& answer : config->answers) {
    Require(answer.field.starts_with("spec") && !answer.text.empty());
    size += answer.field.size() + answer.text.size();
  }
  Require(size <= 64 * text.size() + 65'536);
  const std::string written = ToJson(config->spec);
  const auto again = penstock::api::ParsePenstock(
      R"({"apiVersion":"penstock.io/v1alpha1","kind":"Penstock","spec":)" + written + "}", "again",
      penstock::backend::ConfigTerms());
  Require(again.ok() && ToJson(*again) == written);
}

PenstockSpec OfClusterPolicy() {
  const auto policy = penstock::api::compat::TranslateClusterPolicy(
      R"({"apiVersion":"nvidia.com/v1","kind":"ClusterPolicy","spec":{"driver":{"enabled":false}}})");
  Require(policy.ok());
  return policy->spec;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const PenstockSpec over = OfClusterPolicy();
  const std::string_view text = penstock::fuzz::Text(data, size);
  CheckTranslation(text, nullptr);
  CheckTranslation(text, &over);
  return 0;
}
