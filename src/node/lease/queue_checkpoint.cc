#include "node/lease/queue_checkpoint.h"

#include <nlohmann/json.hpp>

#include "base/core/document.h"
#include "os/kept_file.h"

namespace penstock::node::lease {
namespace {

using allocate::Waiting;
using base::Code;
using base::Error;
using nlohmann::json;

constexpr int kVersion = 1;

json ToJson(const Waiting& waiting) {
  return {{"ticket", waiting.ticket},      {"uid", waiting.waiter.uid},
          {"pid", waiting.waiter.pid},     {"start", waiting.waiter.start},
          {"user", waiting.user},          {"since", base::FormatTime(waiting.since)},
          {"gpus", waiting.request.count}, {"share", waiting.request.share}};
}

std::int64_t ToNumber(base::TimePoint time) {
  return base::Duration(time.time_since_epoch()).count();
}

base::TimePoint ToTime(std::int64_t nanoseconds) {
  return base::TimePoint(base::Duration(nanoseconds));
}

Waiting ReadWaiting(const base::Value& value, base::Problems& problems) {
  base::MapReader reader(value, "waiting", problems);
  for (const char* key : {"ticket", "uid", "pid", "start"}) reader.Require(key);
  Waiting waiting;
  waiting.ticket = reader.String("ticket").value_or("");
  waiting.waiter.uid = static_cast<uid_t>(reader.Int("uid", 0, UINT32_MAX).value_or(0));
  waiting.waiter.pid = static_cast<pid_t>(reader.Int("pid", 1, INT32_MAX).value_or(0));
  waiting.waiter.start = static_cast<std::uint64_t>(reader.Int("start", 0, INT64_MAX).value_or(0));
  waiting.user = reader.String("user").value_or("");
  waiting.since = base::ParseTime(reader.String("since").value_or(""));
  waiting.request.count = static_cast<int>(reader.Int("gpus", 0, INT32_MAX).value_or(0));
  waiting.request.share = static_cast<int>(reader.Int("share", 1, INT32_MAX).value_or(1));
  reader.Finish();
  return waiting;
}

}  // namespace

std::string EncodeQueueCheckpoint(const QueueCheckpoint& checkpoint, std::string_view boot_id) {
  json waiting = json::array(), runs = json::array();
  for (const Waiting& one : checkpoint.waiting) waiting.push_back(ToJson(one));
  for (const auto& [lease, term] : checkpoint.runs) {
    runs.push_back({{"lease", lease}, {"began", ToNumber(term.began)}});
    if (term.ends) runs.back()["ends"] = ToNumber(*term.ends);
    if (term.killed) runs.back()["killed"] = ToNumber(*term.killed);
    if (term.uid) runs.back()["uid"] = *term.uid;
  }
  return json({{"version", kVersion},
               {"bootId", std::string(boot_id)},
               {"nextTicket", checkpoint.next_ticket},
               {"waiting", std::move(waiting)},
               {"runs", std::move(runs)}})
             .dump(1, ' ', false, json::error_handler_t::replace) +
         "\n";
}

base::Result<QueueCheckpoint> DecodeQueueCheckpoint(std::string_view text, std::string_view boot_id,
                                                    std::string_view file) {
  const auto document = base::ParseJson(text, file, {.bytes = kMaxQueueBytes});
  if (!document.ok()) return Error(Code::kDataLoss, document.error().message());
  base::Problems problems{std::string(file)};
  base::MapReader reader(*document, "", problems);
  TRY(os::CheckKeptVersion(reader, file, kVersion));
  const std::string written_in = reader.String("bootId").value_or("");
  QueueCheckpoint checkpoint;
  checkpoint.next_ticket =
      static_cast<std::uint64_t>(reader.Int("nextTicket", 1, INT64_MAX).value_or(1));
  if (const base::Value* list = reader.List("waiting"))
    for (const base::Value& item : *list->list)
      checkpoint.waiting.push_back(ReadWaiting(item, problems));
  if (const base::Value* list = reader.List("runs")) {
    for (const base::Value& item : *list->list) {
      base::MapReader run(item, "run", problems);
      for (const char* key : {"lease", "began"}) run.Require(key);
      Term& term = checkpoint.runs[run.String("lease").value_or("")];
      term.began = ToTime(run.Int("began", 0, INT64_MAX).value_or(0));
      if (const auto ends = run.Int("ends", 0, INT64_MAX)) term.ends = ToTime(*ends);
      if (const auto killed = run.Int("killed", 0, INT64_MAX)) term.killed = ToTime(*killed);
      if (const auto uid = run.Int("uid", 0, UINT32_MAX)) term.uid = static_cast<uid_t>(*uid);
      run.Finish();
    }
  }
  reader.Finish();
  if (!problems.empty()) return Error(Code::kDataLoss, problems.ToError().message());
  if (written_in != boot_id) return QueueCheckpoint{};
  return checkpoint;
}

}  // namespace penstock::node::lease
