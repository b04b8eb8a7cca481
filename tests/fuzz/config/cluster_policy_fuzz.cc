// Fuzzes ClusterPolicy, NVIDIADriver and GPUCluster objects: whoever may write one can write
// anything.
#include <cstdint>
#include <string>

#include "../oracle.h"
#include "api/cluster/penstock.h"
#include "api/compat/nvidia/cluster_policy.h"
#include "api/compat/nvidia/gpu_cluster.h"
#include "api/compat/nvidia/nvidia_driver.h"
#include "backend/config_terms.h"

namespace {

using penstock::fuzz::Require;

/// Answers are bounded by the object, and each names a field.
void CheckAnswers(const std::vector<penstock::api::compat::FieldAnswer>& answers,
                  std::size_t size) {
  std::size_t written = 0;
  for (const auto& answer : answers) {
    Require(answer.field.starts_with("spec") && !answer.text.empty());
    written += answer.field.size() + answer.text.size();
  }
  Require(written <= 64 * size + 65'536);
}

/// It is a valid Penstock object, and the same after writing and reading it. `spec`: its drivers
/// get names, which a Penstock object's have and a ClusterPolicy's has not.
void CheckSpec(penstock::api::PenstockSpec spec) {
  for (penstock::api::DriverSpec& driver : spec.drivers)
    if (driver.name.empty()) driver.name = "unnamed";
  const std::string written = ToJson(spec);
  const auto again = penstock::api::ParsePenstock(
      R"({"apiVersion":"penstock.io/v1alpha1","kind":"Penstock","spec":)" + written + "}", "again",
      penstock::backend::ConfigTerms());
  Require(again.ok() && ToJson(*again) == written);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = penstock::fuzz::Text(data, size);
  using penstock::base::Code;
  const auto policy = penstock::api::compat::TranslateClusterPolicy(text);
  if (policy.ok()) {
    CheckAnswers(policy->answers, size);
    CheckSpec(policy->spec);
  } else {
    Require(policy.error().code() == Code::kInvalidArgument);
    Require(policy.error().message().starts_with("ClusterPolicy"));
  }
  if (const auto driver = penstock::api::compat::TranslateNvidiaDriver(text); driver.ok()) {
    CheckAnswers(driver->answers, size);
    // Others are read over it, and must not fail because of it.
    penstock::api::PenstockSpec spec;
    spec.drivers = {driver->driver};
    CheckSpec(spec);
  }
  if (const auto cluster = penstock::api::compat::AnswerGpuCluster(text); cluster.ok())
    CheckAnswers(*cluster, size);
  return 0;
}
