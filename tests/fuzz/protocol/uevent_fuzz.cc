// Fuzzes messages on the kernel's netlink socket for device events.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "../oracle.h"
#include "os/watch/pci_watch.h"

namespace {

/// The same decision by another implementation, field by field.
bool IsChange(const std::vector<std::string>& fields) {
  const std::string& head = fields.front();
  const auto at = head.find('@');
  // A path cannot contain NUL, so the head is the first field.
  if (at == std::string::npos) return false;
  constexpr std::string_view kActions[] = {"add", "remove", "bind", "unbind"};
  if (std::find(std::begin(kActions), std::end(kActions), head.substr(0, at)) == std::end(kActions))
    return false;
  return std::find(fields.begin() + 1, fields.end() - 1, "SUBSYSTEM=pci") != fields.end() - 1;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock;
  const auto fields = fuzz::Parts(data, size);
  fuzz::Require(os::IsPciChange(fuzz::Text(data, size)) == (fields.size() > 1 && IsChange(fields)));
  return 0;
}
