// Level-triggered: a report changes a record, and records are written one at a time in their state
// at that time. Reports that come faster than writes are allowed become a higher count.
#include "protocol/kube/events.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/core/printable.h"
#include "base/lifetime.h"
#include "base/log.h"

namespace penstock::protocol::kube {

using base::Duration;
using base::TimePoint;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kMaxSimilar = 10;     // client-go: defaultAggregateMaxEvents
constexpr Duration kSimilarWithin = 10min;  // client-go: defaultAggregateIntervalInSeconds
constexpr int kBurst = 25;                  // client-go: defaultSpamBurst
constexpr Duration kToken = 2s;
constexpr Duration kTried = 1min;
constexpr Duration kRetry = 2s;
constexpr std::size_t kMaxRecords = 512;    // the same limit for groups
constexpr std::size_t kMaxMessage = 1024;   // the longest note of events.k8s.io
constexpr std::size_t kMaxName = 253 - 17;  // the rest of a name is a dot and 16 digits

const Resource kEvents{"", "v1", "events"};

// RFC 3339 with seconds, like metav1.Time.
std::string TimeText(base::WallTime time) { return base::FormatTime(time).substr(0, 19) + "Z"; }

bool MayPass(Code code) {
  return code == Code::kUnavailable || code == Code::kDeadlineExceeded ||
         code == Code::kResourceExhausted;
}

std::string Hex(std::uint64_t number) {
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[(number >> shift) & 0xF];
  return text;
}

}  // namespace

struct EventRecorder::State : std::enable_shared_from_this<State> {
  State(Api& its_api, std::string its_component, std::string its_host, std::string its_namespace)
      : api(its_api),
        component(std::move(its_component)),
        host(std::move(its_host)),
        namespace_name(std::move(its_namespace)),
        filled(its_api.executor().clock().Now()) {}

  struct Record {
    ObjectReference about;
    std::string type, reason, message, name;
    base::WallTime first, last;
    int count = 0;
    bool created = false, queued = false;
    TimePoint give_up, used;
  };

  struct Similar {
    std::set<std::string> messages;
    TimePoint used;
  };

  TimePoint Now() const { return api.executor().clock().Now(); }
  const std::string& NamespaceOf(const ObjectReference& about) const {
    return about.namespace_name.empty() ? namespace_name : about.namespace_name;
  }

  void Emit(const char* type, ObjectReference about, const std::string& reason,
            const std::string& text) {
    // kubectl describe finds a node's events by its name as uid, as the kubelet writes them.
    if (about.kind == "Node") about.uid = about.name;
    std::string message = base::Shortened(text, kMaxMessage);
    std::string key = about.kind + "\n" + about.namespace_name + "\n" + about.name + "\n" +
                      about.uid + "\n" + type + "\n" + reason;
    if (IsOneOfMany(key, message)) {
      message = base::Shortened("(combined from similar events): " + text, kMaxMessage);
    } else {
      key += "\n" + message;
    }
    Forget(records, kMaxRecords - 1, [](const Record& record) { return !record.queued; });
    Record& record = records[key];
    record.about = std::move(about);
    record.type = type;
    record.reason = reason;
    record.message = std::move(message);
    record.last = api.executor().clock().Wall();
    if (record.count++ == 0) record.first = record.last;
    record.used = Now();
    record.give_up = Now() + kTried;
    Enqueue(key, record);
  }

  bool IsOneOfMany(const std::string& key, const std::string& message) {
    Forget(groups, kMaxRecords - 1, [](const Similar&) { return true; });
    Similar& similar = groups[key];
    if (Now() - similar.used > kSimilarWithin) similar.messages.clear();
    similar.used = Now();
    similar.messages.insert(message);
    if (similar.messages.size() <= kMaxSimilar) return false;
    similar.messages.erase(message);
    return true;
  }

  // Removes the least recently used first.
  template <typename Map, typename Predicate>
  void Forget(Map& map, std::size_t most, Predicate may) {
    while (map.size() > most) {
      auto oldest = map.end();
      for (auto it = map.begin(); it != map.end(); ++it) {
        if (may(it->second) && (oldest == map.end() || it->second.used < oldest->second.used))
          oldest = it;
      }
      if (oldest == map.end()) return;
      map.erase(oldest);
    }
  }

  void Enqueue(const std::string& key, Record& record) {
    if (std::exchange(record.queued, true)) return;
    queue.push_back(key);
    Pump({});
  }

  void Pump(Duration delay) {
    if (busy || queue.empty()) return;
    busy = true;
    api.executor().PostAfter(delay, base::IfAlive(this, &State::WriteNext));
  }

  // At most one call at a time; `busy` until it is answered.
  void WriteNext() {
    busy = false;
    const auto refill = (Now() - filled) / kToken;
    tokens = static_cast<int>(std::min<std::int64_t>(kBurst, tokens + refill));
    filled = tokens == kBurst ? Now() : filled + refill * kToken;
    if (tokens == 0) return Pump(filled + kToken - Now());
    const std::string key = queue.front();
    queue.pop_front();
    Record& record = records[key];
    record.queued = false;
    if (Now() > record.give_up) return Pump({});
    --tokens;
    busy = true;
    const bool creates = !record.created;
    api.Do(creates ? CreateOf(record) : PatchOf(record),
           base::IfAlive(this, [key, creates](State& self, const Result<ApiResponse>& answer) {
             self.Written(key, creates, answer);
           }));
  }

  void Written(const std::string& key, bool creates, const base::Result<ApiResponse>& answer) {
    busy = false;
    const auto found = records.find(key);
    if (found == records.end()) return Pump({});
    Record& record = found->second;
    if (answer.ok()) {
      record.created = true;
      return Pump({});
    }
    const Code code = answer.error().code();
    // An Event expires after an hour; the count then continues in a new one.
    const bool recreate = code == Code::kNotFound && !creates;
    // Our own, whose answer was lost, or another client's with the same name.
    const bool there = code == Code::kAlreadyExists && creates;
    if (recreate) record.created = false, record.name.clear();
    if (there) record.created = true;
    if (!recreate && !there && !MayPass(code)) {
      base::Log(base::kWarn, "event not written",
                {{"reason", record.reason}, {"error", answer.error().ToString()}});
      return Pump({});
    }
    if (!std::exchange(record.queued, true)) queue.push_front(key);
    Pump(MayPass(code) ? kRetry : Duration(0));
  }

  ApiCall CreateOf(Record& record) {
    const std::string& space = NamespaceOf(record.about);
    const auto since =
        std::chrono::duration_cast<std::chrono::nanoseconds>(record.last.time_since_epoch())
            .count();
    if (record.name.empty())
      record.name = base::Shortened(record.about.name, kMaxName, "") + "." +
                    Hex(static_cast<std::uint64_t>(since) + sequence++);
    Json about = {{"apiVersion", record.about.api_version},
                  {"kind", record.about.kind},
                  {"name", record.about.name}};
    if (!record.about.uid.empty()) about["uid"] = record.about.uid;
    if (!record.about.namespace_name.empty()) about["namespace"] = record.about.namespace_name;
    const Json event = {{"apiVersion", "v1"},
                        {"kind", "Event"},
                        {"metadata", {{"name", record.name}, {"namespace", space}}},
                        {"involvedObject", std::move(about)},
                        {"type", record.type},
                        {"reason", record.reason},
                        {"message", record.message},
                        {"source", {{"component", component}, {"host", host}}},
                        {"reportingComponent", component},
                        {"reportingInstance", host},
                        {"firstTimestamp", TimeText(record.first)},
                        {"lastTimestamp", TimeText(record.last)},
                        {"count", record.count}};
    return Create(kEvents, space, event, component);
  }

  ApiCall PatchOf(const Record& record) {
    const Json patch = {{"count", record.count},
                        {"lastTimestamp", TimeText(record.last)},
                        {"message", record.message}};
    return Patch(kEvents, NamespaceOf(record.about), record.name, kStrategicMergePatch, patch,
                 component);
  }

  Api& api;
  const std::string component, host, namespace_name;
  std::map<std::string, Record> records;
  std::map<std::string, Similar> groups;
  std::deque<std::string> queue;
  int tokens = kBurst;
  TimePoint filled;
  std::uint64_t sequence = 0;
  bool busy = false;
};

EventRecorder::EventRecorder(Api& api, std::string component, std::string host,
                             std::string namespace_name)
    : state_(std::make_shared<State>(api, std::move(component), std::move(host),
                                     std::move(namespace_name))) {}
EventRecorder::~EventRecorder() = default;

void EventRecorder::Normal(const ObjectReference& about, const std::string& reason,
                           const std::string& message) {
  state_->Emit("Normal", about, reason, message);
}
void EventRecorder::Warning(const ObjectReference& about, const std::string& reason,
                            const std::string& message) {
  state_->Emit("Warning", about, reason, message);
}

}  // namespace penstock::protocol::kube
