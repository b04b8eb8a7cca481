#include "operator/driver/upgrade_state.h"

#include <algorithm>
#include <array>
#include <utility>

#include <nlohmann/json.hpp>

#include "api/compat/nvidia/driver_names.h"
#include "base/core/fields.h"
#include "base/core/json_text.h"
#include "base/core/strings.h"

namespace penstock::cluster {

/// A message may not fill the object.
inline constexpr std::size_t kLongestText = 1024;
/// More than a policy can ask for: only another writer has more.
inline constexpr int kMostAttempts = 1000;

template <typename Visit, base::Of<UpgradeRecord> T>
void VisitFields(Visit& visit, T& record) {
  visit("since", record.since);
  visit("reason", record.reason, {.if_any = true, .longest = kLongestText});
  visit("message", record.message, {.if_any = true, .longest = kLongestText});
  visit("blocked", record.blocked, {.if_any = true, .longest = kLongestText});
  visit("target", record.target, {.if_any = true});
  visit("good", record.good, {.if_any = true});
  visit("failedTarget", record.failed_target, {.if_any = true});
  visit("held", record.held, {.if_any = true});
  visit("attempts", record.attempts, {.if_any = true, .most = kMostAttempts});
  visit("broken", record.broken, {.if_any = true});
  visit("cordoned", record.cordoned, {.if_any = true});
  if (Visit::kReads || record.retry_at != base::WallTime{}) visit("retryAt", record.retry_at);
}

namespace {

using api::compat::kInitiallyCordoned;
using api::compat::kSafeLoad;
using api::compat::kUpgradeRequested;
using api::compat::kUpgradeStateLabel;
using api::compat::kValidationStarted;
using api::compat::kWaitStarted;
using base::WallTime;

constexpr std::array<std::pair<UpgradeState, std::string_view>, 11> kStates = {
    {{UpgradeState::kUnknown, ""},
     {UpgradeState::kRequired, "upgrade-required"},
     {UpgradeState::kCordon, "cordon-required"},
     {UpgradeState::kWaitForJobs, "wait-for-jobs-required"},
     {UpgradeState::kPodDeletion, "pod-deletion-required"},
     {UpgradeState::kDrain, "drain-required"},
     {UpgradeState::kPodRestart, "pod-restart-required"},
     {UpgradeState::kValidation, "validation-required"},
     {UpgradeState::kUncordon, "uncordon-required"},
     {UpgradeState::kDone, "upgrade-done"},
     {UpgradeState::kFailed, "upgrade-failed"}}};

std::string TextOf(const NodeTexts& texts, std::string_view key) {
  const auto found = texts.find(std::string(key));
  return found == texts.end() ? "" : found->second;
}

/// Seconds since 1970, as NVIDIA's operator writes them.
std::optional<WallTime> SecondsOf(const NodeTexts& texts, std::string_view key) {
  const auto seconds = base::ParseInt(TextOf(texts, key));
  if (!seconds || *seconds <= 0) return std::nullopt;
  return base::NearestTime(*seconds);
}

bool HasMarks(const std::map<std::string, std::optional<std::string>>& marks,
              const NodeTexts& found) {
  return std::ranges::all_of(marks, [&found](const auto& mark) {
    const auto there = found.find(mark.first);
    return mark.second ? there != found.end() && there->second == *mark.second
                       : there == found.end();
  });
}

std::string SecondsText(WallTime time) {
  return std::to_string(
      std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count());
}

}  // namespace

std::string_view NameOf(UpgradeState state) {
  return std::ranges::find(kStates, state, &std::pair<UpgradeState, std::string_view>::first)
      ->second;
}

UpgradeState UpgradeStateOf(std::string_view name) {
  for (const auto& [state, text] : kStates)
    if (text == name) return state;
  return UpgradeState::kUnknown;
}

bool IsUnderway(UpgradeState state) {
  return state >= UpgradeState::kCordon && state <= UpgradeState::kUncordon;
}

UpgradeRecord ReadUpgradeRecord(const NodeTexts& labels, const NodeTexts& annotations,
                                WallTime now) {
  bool as_stored = false;
  return ReadStoredRecord(labels, annotations).At(now, as_stored);
}

UpgradeRecord StoredRecord::At(WallTime now, bool& as_stored) const {
  UpgradeRecord read = record;
  // Without a time that can be believed, the state begins now: a limit is then reached late, never
  // early.
  if (read.since == WallTime{} || read.since > now) read.since = now;
  for (auto* time : {&read.wait_started, &read.validation_started})
    if (*time) *time = std::min(**time, now);
  as_stored = read == record || record == UpgradeRecord{};
  return read;
}

StoredRecord ReadStoredRecord(const NodeTexts& labels, const NodeTexts& annotations) {
  UpgradeRecord record;
  if (const std::string text = TextOf(annotations, kUpgradeAnnotation); !text.empty()) {
    const auto read = base::ReadFields(
        text, kUpgradeAnnotation, {.parse = {}, .unknown = base::UnknownKeys::kIgnored},
        [&](base::StructReader& reader) { VisitFields(reader, record); });
    if (!read.ok()) record = {};
  }
  record.state = UpgradeStateOf(TextOf(labels, kUpgradeStateLabel));
  record.held = TextOf(labels, kHeldLabel);
  record.initially_cordoned = TextOf(annotations, kInitiallyCordoned) == "true";
  record.requested = TextOf(annotations, kUpgradeRequested) == "true";
  record.safe_load = !TextOf(annotations, kSafeLoad).empty();
  record.wait_started = SecondsOf(annotations, kWaitStarted);
  record.validation_started = SecondsOf(annotations, kValidationStarted);
  const UpgradeMarks marks = MarksOf(record);
  const bool tidy = HasMarks(marks.labels, labels) && HasMarks(marks.annotations, annotations);
  return {std::move(record), tidy};
}

UpgradeMarks MarksOf(const UpgradeRecord& record) {
  const auto if_any = [](std::string text) {
    return text.empty() ? std::nullopt : std::optional(std::move(text));
  };
  UpgradeMarks marks;
  const auto label = [&](std::string_view key) -> auto& { return marks.labels[std::string(key)]; };
  const auto annotation = [&](std::string_view key) -> auto& {
    return marks.annotations[std::string(key)];
  };
  label(kUpgradeStateLabel) = if_any(std::string(NameOf(record.state)));
  label(kHeldLabel) = if_any(record.held);
  annotation(kInitiallyCordoned) = if_any(record.initially_cordoned ? "true" : "");
  annotation(kUpgradeRequested) = if_any(record.requested ? "true" : "");
  // Its value is the driver pod's, which only that may write.
  if (!record.safe_load) annotation(kSafeLoad) = std::nullopt;
  annotation(kWaitStarted) = if_any(record.wait_started ? SecondsText(*record.wait_started) : "");
  annotation(kValidationStarted) =
      if_any(record.validation_started ? SecondsText(*record.validation_started) : "");
  const bool says_nothing =
      record.state == UpgradeState::kUnknown && record.good.empty() && record.failed_target.empty();
  if (says_nothing) {
    annotation(kUpgradeAnnotation) = std::nullopt;
    return marks;
  }
  annotation(kUpgradeAnnotation) =
      base::JsonText(base::ToJsonObject<nlohmann::ordered_json>(record));
  return marks;
}

}  // namespace penstock::cluster
