#include "node/lease/queue_checkpoint.h"

#include <nlohmann/json.hpp>

#include "os/kept_file.h"

namespace penstock::node::allocate {

template <typename Visit, base::Of<Waiting> T>
static void VisitFields(Visit& visit, T& waiting) {
  visit("ticket", waiting.ticket, {.required = true});
  visit("uid", waiting.waiter.uid, {.required = true});
  visit("pid", waiting.waiter.pid, {.required = true, .least = 1});
  visit("start", waiting.waiter.start, {.required = true});
  visit("user", waiting.user);
  visit("since", waiting.since);
  if constexpr (Visit::kReads) waiting.request.count = 0;  // an older file does not say how much
  visit("gpus", waiting.request.count);
  visit("share", waiting.request.share, {.least = 1});
  visit("profile", waiting.request.profile, {.if_any = true});
  visit("leastMemory", waiting.request.least_memory, {.if_any = true});
}

}  // namespace penstock::node::allocate

namespace penstock::node::lease {
namespace {

constexpr int kVersion = 1;

struct Run {
  std::string lease;
  Term term;
};

template <typename Visit, base::Of<Run> T>
void VisitFields(Visit& visit, T& run) {
  visit("lease", run.lease, {.required = true});
  visit("began", run.term.began, {.required = true});
  visit("ends", run.term.ends);
  visit("killed", run.term.killed);
  visit("uid", run.term.uid);
}

}  // namespace

std::string EncodeQueueCheckpoint(const QueueCheckpoint& checkpoint, std::string_view boot_id) {
  std::vector<Run> runs;
  for (const auto& [lease, term] : checkpoint.runs) runs.push_back({lease, term});
  return os::EncodeKept<nlohmann::json>(kVersion, [&](auto& write) {
    write("bootId", std::string(boot_id));
    write("nextTicket", checkpoint.next_ticket);
    write("waiting", checkpoint.waiting);
    write("runs", runs);
  });
}

base::Result<QueueCheckpoint> DecodeQueueCheckpoint(std::string_view text, std::string_view boot_id,
                                                    std::string_view file) {
  std::string written_in;
  QueueCheckpoint checkpoint;
  std::vector<Run> runs;
  TRY(os::DecodeKept(kVersion, text, file,
                     [&](base::StructReader& read) {
                       read("bootId", written_in);
                       read("nextTicket", checkpoint.next_ticket, {.least = 1});
                       read("waiting", checkpoint.waiting);
                       read("runs", runs);
                     },
                     {.bytes = kMaxQueueBytes}));
  if (written_in != boot_id) return QueueCheckpoint{};
  for (Run& run : runs) checkpoint.runs[std::move(run.lease)] = run.term;
  return checkpoint;
}

}  // namespace penstock::node::lease
