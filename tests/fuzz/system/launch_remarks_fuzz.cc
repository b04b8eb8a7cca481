// Fuzzes the standard output of a launched program, in which the launch step leaves its own
// remarks.
#include <cstdint>
#include <string>

#include "../oracle.h"
#include "os/process/launch.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using penstock::fuzz::Require;
  const std::string output(penstock::fuzz::Text(data, size));
  const auto remarks = penstock::os::ReadLaunchRemarks(output);
  for (const std::string& one : {remarks.group, remarks.mounts})
    Require(one.find('\n') == std::string::npos && output.find(one) != std::string::npos);
  // Later remarks replace earlier ones.
  const auto again = penstock::os::ReadLaunchRemarks(
      output + "\nlaunch: mounts: first\nlaunch: group: second\nlaunch: other: third");
  Require(again.mounts == "first" && again.group == "second");
  return 0;
}
