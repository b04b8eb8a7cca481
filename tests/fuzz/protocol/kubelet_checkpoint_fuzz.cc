// Fuzzes the kubelet's checkpoint of allocated devices.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/core/strings.h"
#include "protocol/kubelet/checkpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto checkpoint = penstock::protocol::kubelet::ParseCheckpoint(
      {reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!checkpoint.ok()) {
    if (checkpoint.error().message().find("fuzz") == std::string::npos) std::abort();
    return 0;
  }
  for (const auto& entry : checkpoint->entries) {
    if (!std::is_sorted(entry.ids.begin(), entry.ids.end())) std::abort();
    for (const auto& id : entry.ids) {
      if (!penstock::base::IsUtf8(id)) std::abort();
    }
  }
  return 0;
}
