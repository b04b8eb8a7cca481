// Fuzzes dcgm-exporter's YAML configuration and the values of its flags, including regular
// expressions over labels.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "api/compat/label_patterns.h"
#include "api/compat/nvidia/exporter_options.h"

namespace compat = penstock::api::compat;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const auto translation = compat::TranslateExporter(text, "fuzz", {}, {});
  if (translation.ok()) {
    for (const auto& one : translation->remarks)
      if (one.find(": ") == std::string::npos) std::abort();
  } else if (translation.error().code() != penstock::base::Code::kInvalidArgument ||
             translation.error().message().rfind("fuzz", 0) != 0) {
    std::abort();
  }
  for (const auto& option : compat::ExporterOptions()) {
    const std::string name(option.flags.front());
    const compat::Given given{name, std::string(text), name};
    const auto said = compat::TranslateExporter("", "fuzz", {&given, 1}, {});
    if (!said.ok() && said.error().message().rfind(name, 0) != 0) std::abort();
  }
  if (const auto globs = compat::GlobsOf(text); globs.ok() && globs->empty()) std::abort();
  const std::string argument(text);
  if (compat::FromGoFlags({&argument, 1}).size() != 1) std::abort();
  return 0;
}
