// Fuzzes an agent's usage sums and its list of idle holders as read by clients: another version of
// the agent may have written them.
#include <cstdint>
#include <string>

#include "../oracle.h"
#include "api/usage.h"

namespace {

using namespace penstock;
using fuzz::Require;

/// A value that was read is the same after writing and reading it once more; numbers are rounded
/// the first time.
template <typename T>
void RoundTrip(std::string_view text, base::Result<T> (*parse)(std::string_view)) {
  const base::Result<T> value = parse(text);
  if (!value.ok())
    return Require(value.error().code() == base::Code::kDataLoss &&
                   !value.error().message().empty());
  const std::string written = api::ToJson(*value);
  const base::Result<T> again = parse(written);
  Require(again.ok() && api::ToJson(*again) == written);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  RoundTrip<api::UsageReport>(fuzz::Text(data, size), api::ParseUsageReport);
  RoundTrip<std::vector<api::IdleHolder>>(fuzz::Text(data, size), api::ParseIdleHolders);
  return 0;
}
