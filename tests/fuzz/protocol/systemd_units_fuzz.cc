// Fuzzes what systemctl shows of units: each unit has a name, and no name holds a blank or a line's
// end.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "protocol/systemd/services.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  for (const auto& unit : penstock::protocol::systemd::ParseUnits(text)) {
    if (unit.id.empty() || unit.id.find('\n') != std::string::npos) std::abort();
    for (const auto* names : {&unit.names, &unit.stopped_with})
      for (const std::string& name : *names)
        if (name.empty() || name.find_first_of(" \n") != std::string::npos) std::abort();
  }
  return 0;
}
