// Fuzzes files of /proc/PID: a process chooses its own name, its arguments and, with privileges,
// the names of its control groups.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/core/strings.h"
#include "os/process/process_text.h"

namespace {

void Require(bool held) {
  if (!held) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto stat = os::ParseStat(text)) Require(stat->parent >= 0 && stat->name.size() < size);
  for (const std::string& path : os::ParseCgroups(text))
    Require(path.starts_with('/') && path.find('\n') == std::string::npos);
  const std::string command = os::DescribeCommand(text, text);
  Require(base::IsUtf8(command) && command.find('\n') == std::string::npos &&
          command.find('\x1b') == std::string::npos);
  (void)os::FindNumber(text, "Uid");
  return 0;
}
