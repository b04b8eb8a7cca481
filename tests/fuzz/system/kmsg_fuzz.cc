// Fuzzes records of the kernel log: any user may write to /dev/kmsg.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "os/watch/kmsg.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  const auto record = penstock::os::ParseKernelRecord(line);
  if (!record) return 0;
  if (record->priority < 0 || record->text.size() > 8192 ||
      record->text.find('\n') != std::string::npos)
    std::abort();
  const std::string again = std::to_string(record->priority) + "," +
                            std::to_string(record->sequence) + "," +
                            std::to_string(record->microseconds) + ",-;" + record->text;
  const auto second = penstock::os::ParseKernelRecord(again);
  if (again.size() <= 8192 &&
      (!second || second->sequence != record->sequence || second->text != record->text))
    std::abort();
  return 0;
}
