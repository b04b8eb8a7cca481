// Fuzzes configurations of NVIDIA's device plugin, whose users are used to typos being ignored.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "api/compat/nvidia/device_plugin.h"

namespace compat = penstock::api::compat;
using penstock::base::ReadingMode;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  (void)compat::Recognise(text);
  // As a file.
  for (const auto reading : {ReadingMode::kStrict, ReadingMode::kLenient}) {
    const auto translation = compat::TranslateDevicePlugin(text, "fuzz", {}, {}, reading);
    if (translation.ok()) {
      if (!penstock::api::Validate(translation->config).ok()) std::abort();
      for (const auto& one : translation->not_yet)
        if (one.find(": ") == std::string::npos) std::abort();
    } else if (translation.error().code() != penstock::base::Code::kInvalidArgument ||
               translation.error().message().rfind("fuzz", 0) != 0) {
      std::abort();
    }
  }
  // What a strict reading accepts, a lenient reading accepts too.
  if (compat::TranslateDevicePlugin(text, "fuzz", {}, {}, ReadingMode::kStrict).ok() &&
      !compat::TranslateDevicePlugin(text, "fuzz", {}, {}, ReadingMode::kLenient).ok())
    std::abort();
  // As the value of every flag.
  for (const auto& option : compat::PluginOptions()) {
    const std::string name(compat::NameOf(option));
    const auto given = compat::TranslateDevicePlugin("", "fuzz", {{name, std::string(text), name}},
                                                     {}, ReadingMode::kStrict);
    if (!given.ok() && given.error().message().rfind(name, 0) != 0) std::abort();
  }
  return 0;
}
