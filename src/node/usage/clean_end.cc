// The file names its state by hash, so that neither a crash between the two files nor an agent that
// only knows one of them pairs the wrong ones.
#include "node/usage/clean_end.h"

#include <nlohmann/json.hpp>

#include "base/core/hash.h"
#include "os/core/file.h"
#include "os/kept_file.h"

namespace penstock::node::usage {
namespace {

using base::Code;
using base::Error;
using nlohmann::json;

constexpr int kVersion = 1;
constexpr double kMax = 1e300;

Hidden ReadHidden(const base::Value& item, base::Problems& problems) {
  base::MapReader reader(item, "holders", problems);
  for (const char* key : {"device", "lease"}) reader.Require(key);
  Hidden hidden{.device = reader.String("device").value_or(""),
                .lease = reader.String("lease").value_or(""),
                .busy_seconds = reader.Number("busySeconds", 0, kMax).value_or(0),
                .energy_joules = reader.Number("energyJoules", 0, kMax).value_or(0),
                .measured_seconds = reader.Number("measuredSeconds", 0, kMax).value_or(0)};
  reader.Finish();
  return hidden;
}

}  // namespace

std::string EncodeCleanEnd(const std::vector<Hidden>& hidden, std::string_view state) {
  json holders = json::array();
  for (const Hidden& one : hidden)
    holders.push_back({{"device", one.device},
                       {"lease", one.lease},
                       {"busySeconds", one.busy_seconds},
                       {"energyJoules", one.energy_joules},
                       {"measuredSeconds", one.measured_seconds}});
  const json document = {
      {"version", kVersion}, {"state", std::to_string(base::Hash(state))}, {"holders", holders}};
  return document.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

base::Result<std::optional<std::vector<Hidden>>> DecodeCleanEnd(std::string_view text,
                                                                std::string_view state,
                                                                std::string_view file) {
  const auto document = base::ParseJson(text, file, {.bytes = os::kMaxFileBytes});
  if (!document.ok()) return Error(Code::kDataLoss, document.error().message());
  base::Problems problems{std::string(file)};
  base::MapReader reader(*document, "", problems);
  TRY(os::CheckKeptVersion(reader, file, kVersion));
  const bool of_it = reader.String("state") == std::to_string(base::Hash(state));
  std::vector<Hidden> hidden;
  if (const base::Value* holders = reader.List("holders"))
    for (const base::Value& item : *holders->list) hidden.push_back(ReadHidden(item, problems));
  reader.Finish();
  if (!problems.empty()) return Error(Code::kDataLoss, problems.ToError().message());
  if (!of_it) return std::optional<std::vector<Hidden>>();
  return std::optional(std::move(hidden));
}

}  // namespace penstock::node::usage
