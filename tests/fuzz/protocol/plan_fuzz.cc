// Fuzzes an agent's plan as read by clients: another version of the agent may have written it.
#include <cstdint>

#include "../oracle.h"
#include "api/plan.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock;
  using fuzz::Require;
  const auto plan = api::ParsePlan(fuzz::Text(data, size));
  if (!plan.ok()) {
    Require(plan.error().message().find("plan") != std::string::npos);
    return 0;
  }
  const auto again = api::ParsePlan(api::ToJson(*plan));
  Require(again.ok() && *again == *plan);
  return 0;
}
