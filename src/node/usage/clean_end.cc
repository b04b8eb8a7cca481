// The file names its state by hash, so that neither a crash between the two files nor an agent that
// only knows one of them pairs the wrong ones.
#include "node/usage/clean_end.h"

#include <nlohmann/json.hpp>

#include "base/core/hash.h"
#include "os/core/file.h"
#include "os/kept_file.h"

namespace penstock::node::usage {

static constexpr int kVersion = 1;

template <typename Visit, base::Of<Hidden> T>
static void VisitFields(Visit& visit, T& hidden) {
  visit("device", hidden.device, {.required = true});
  visit("lease", hidden.lease, {.required = true});
  visit("busySeconds", hidden.busy_seconds);
  visit("energyJoules", hidden.energy_joules);
  visit("measuredSeconds", hidden.measured_seconds);
}

std::string EncodeCleanEnd(const std::vector<Hidden>& hidden, std::string_view state) {
  return os::EncodeKept<nlohmann::json>(kVersion, [&](auto& write) {
    write("state", std::to_string(base::Hash(state)));
    write("holders", hidden);
  });
}

base::Result<std::optional<std::vector<Hidden>>> DecodeCleanEnd(std::string_view text,
                                                                std::string_view state,
                                                                std::string_view file) {
  std::string of;
  std::vector<Hidden> hidden;
  TRY(os::DecodeKept(kVersion, text, file,
                     [&](base::FieldReader& read) {
                       read("state", of);
                       read("holders", hidden);
                     },
                     {.bytes = os::kMaxFileBytes}));
  if (of != std::to_string(base::Hash(state))) return std::optional<std::vector<Hidden>>();
  return std::optional(std::move(hidden));
}

}  // namespace penstock::node::usage
