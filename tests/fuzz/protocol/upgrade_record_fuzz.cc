// Fuzzes what a Node says about the upgrade of its driver: anyone who may write the Node may have
// written it.
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "../oracle.h"
#include "api/compat/nvidia/driver_names.h"
#include "operator/driver/upgrade_state.h"

namespace {

using namespace penstock;
using cluster::NodeTexts;

void Write(const std::map<std::string, std::optional<std::string>>& marks, NodeTexts& texts) {
  for (const auto& [key, value] : marks) {
    if (value)
      texts[key] = *value;
    else
      texts.erase(key);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using fuzz::Require;
  using namespace api::compat;
  NodeTexts labels, annotations;
  const std::pair<std::string_view, NodeTexts*> texts[] = {
      {kUpgradeStateLabel, &labels},
      {cluster::kHeldLabel, &labels},
      {cluster::kUpgradeAnnotation, &annotations},
      {kInitiallyCordoned, &annotations},
      {kUpgradeRequested, &annotations},
      {kSafeLoad, &annotations},
      {kWaitStarted, &annotations},
      {kValidationStarted, &annotations}};
  const auto parts = fuzz::Parts(data, size, std::size(texts));
  for (std::size_t i = 0; i < std::size(texts); ++i)
    if (!parts[i].empty()) (*texts[i].second)[std::string(texts[i].first)] = parts[i];

  const cluster::StoredRecord stored = cluster::ReadStoredRecord(labels, annotations);
  const base::WallTime now = base::NearestTime(1'800'000'000);
  bool as_stored = false;
  const cluster::UpgradeRecord record = stored.At(now, as_stored);
  Require(record.since > base::WallTime{} && record.since <= now);
  for (const auto& time : {record.wait_started, record.validation_started})
    Require(!time || *time <= now);
  Require(record.attempts <= 1000);

  // What was written is what is read, so that the operator does not write it again and again.
  const cluster::UpgradeMarks marks = cluster::MarksOf(record);
  Write(marks.labels, labels);
  Write(marks.annotations, annotations);
  const cluster::StoredRecord again = cluster::ReadStoredRecord(labels, annotations);
  Require(again.tidy);
  Require(again.record.state == record.state && again.record.good == record.good &&
          again.record.held == record.held && again.record.failed_target == record.failed_target &&
          again.record.safe_load == record.safe_load);
  return 0;
}
