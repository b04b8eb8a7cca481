// Fuzzes the configuration of AMD's Device Metrics Exporter: what is in force has only names that a
// series can have, in bounded numbers, and errors and remarks name the file.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "api/compat/amd/metrics_config.h"

namespace compat = penstock::api::compat;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static constexpr compat::CounterField kFields[] = {
      {.name = "gpu_clock"},
      {.name = "gpu_prof_sm_active", .unavailable = "why"},
      {.name = "gpu_uuid", .text = true}};
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const auto read = compat::TranslateMetricsConfig(text, "fuzz", kFields);
  if (!read.ok()) {
    if (read.error().code() != penstock::base::Code::kInvalidArgument ||
        read.error().message().rfind("fuzz", 0) != 0)
      std::abort();
    return 0;
  }
  for (const std::string& remark : read->remarks)
    if (remark.rfind("fuzz: ", 0) != 0) std::abort();
  const auto& settings = read->settings;
  if (read->remarks.size() > 21 || read->rows.size() > std::size(kFields) ||
      settings.labels.size() > 10 || settings.holder_labels.size() > 20 ||
      settings.devices.size() > 4096)
    std::abort();
  const auto is_name = [](const std::string& name) {
    return !name.empty() &&
           name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789") == std::string::npos;
  };
  for (const auto* labels : {&settings.labels, &settings.holder_labels})
    for (const auto& [name, value] : *labels)
      if (!is_name(name) || value.size() > 1024) std::abort();
  if (settings.prefix.find_first_of(" {}\"\n") != std::string::npos) std::abort();
  return 0;
}
