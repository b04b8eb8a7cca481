// Level-triggered: a report changes a record, and records are written one at a time in their state
// at that time. Reports that come faster than writes are allowed become a higher count. Records
// wait in two lines, warnings and others, in which each object has one place.
#include "protocol/kube/events.h"

#include <algorithm>
#include <array>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string_view>
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
constexpr EventLimits kOfAnObject{.burst = 25, .spacing = 2s};  // client-go: defaultSpamBurst
constexpr Duration kTried = 1min, kNormalWaits = 1min, kWarningWaits = 10min;
constexpr Duration kRetry = 2s;
constexpr std::size_t kMaxRecords = 512;  // the same limit for groups and objects
constexpr std::size_t kMaxNormal = 1024, kMaxWaiting = 2048;  // room for warnings is always left
constexpr std::size_t kMaxMessage = 1024;                     // the longest note of events.k8s.io
constexpr std::size_t kMaxName = 253 - 17;  // the rest of a name is a dot and 16 digits

constexpr char kNormal[] = "Normal", kWarning[] = "Warning";

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

/// How many writes there may be now: fills up with time.
class Allowance {
 public:
  Allowance(const EventLimits& limits, TimePoint now)
      : limits_(limits), left_(limits.burst), filled_(now) {}

  /// When there may be the next one.
  TimePoint Next(TimePoint now) {
    const auto more = (now - filled_) / limits_.spacing;
    left_ = static_cast<int>(std::min<std::int64_t>(limits_.burst, left_ + more));
    filled_ = left_ == limits_.burst ? now : filled_ + more * limits_.spacing;
    return left_ > 0 ? now : filled_ + limits_.spacing;
  }
  void Take() { --left_; }

 private:
  EventLimits limits_;
  int left_;
  TimePoint filled_;
};

enum Line { kWarnings, kOthers };

}  // namespace

struct EventRecorder::State : std::enable_shared_from_this<State> {
  State(Api& its_api, std::string its_component, std::string its_host, std::string its_namespace,
        const EventLimits& limits)
      : api(its_api),
        component(std::move(its_component)),
        host(std::move(its_host)),
        namespace_name(std::move(its_namespace)),
        of_all(limits, its_api.executor().clock().Now()) {}

  struct Record {
    ObjectReference about;
    std::string object;  // its key in `objects`
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

  /// What is to be written about one object.
  struct Object {
    Allowance allowance;
    std::array<std::deque<std::string>, 2> waiting;  // by line: keys of records
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
    std::string object =
        about.kind + "\n" + about.namespace_name + "\n" + about.name + "\n" + about.uid;
    std::string key = object + "\n" + type + "\n" + reason;
    if (IsOneOfMany(key, message)) {
      message = base::Shortened("(combined from similar events): " + text, kMaxMessage);
    } else {
      key += "\n" + message;
    }
    Forget(records, kMaxRecords - 1, [](const Record& record) { return !record.queued; });
    const bool warns = std::string_view(type) == kWarning;
    if (records.size() >= (warns ? kMaxWaiting : kMaxNormal) && !records.contains(key)) return;
    Record& record = records[key];
    record.about = std::move(about);
    record.object = std::move(object);
    record.type = type;
    record.reason = reason;
    record.message = std::move(message);
    record.last = api.executor().clock().Wall();
    if (record.count++ == 0) record.first = record.last;
    record.used = Now();
    record.give_up = Now() + (warns ? kWarningWaits : kNormalWaits);
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

  static Line LineOf(const Record& record) { return record.type == kWarning ? kWarnings : kOthers; }

  void Enqueue(const std::string& key, Record& record) {
    if (std::exchange(record.queued, true)) return;
    const Line line = LineOf(record);
    Object& object = ObjectOf(record);
    if (object.waiting[line].empty()) turns[line].push_back(record.object);
    object.waiting[line].push_back(key);
    Pump({});
  }

  /// The next one that is written about anything.
  void PutFirst(const std::string& key, Record& record) {
    if (std::exchange(record.queued, true)) return;
    const Line line = LineOf(record);
    std::deque<std::string>& waiting = ObjectOf(record).waiting[line];
    if (!waiting.empty()) turns[line].remove(record.object);
    turns[line].push_front(record.object);
    waiting.push_front(key);
  }

  Object& ObjectOf(const Record& record) {
    Forget(objects, kMaxRecords - 1, [](const Object& one) {
      return one.waiting[kWarnings].empty() && one.waiting[kOthers].empty();
    });
    Object& object =
        objects.try_emplace(record.object, Object{Allowance(kOfAnObject, Now()), {}, {}})
            .first->second;
    object.used = Now();
    return object;
  }

  /// Takes the record that is to be written now. None: none waits, or not before `wait` is over.
  std::optional<std::string> TakeNext(Duration& wait) {
    for (const Line line : {kWarnings, kOthers})
      if (auto key = TakeNext(line, wait)) return key;
    return std::nullopt;
  }

  std::optional<std::string> TakeNext(Line line, Duration& wait) {
    for (auto turn = turns[line].begin(); turn != turns[line].end();) {
      Object& object = objects.at(*turn);
      std::deque<std::string>& waiting = object.waiting[line];
      DropLate(waiting);
      const TimePoint now = Now();
      const Duration left = object.allowance.Next(now) - now;
      if (!waiting.empty() && left > Duration(0)) {
        wait = std::min(wait, left);
        ++turn;
        continue;
      }
      const std::string name = std::move(*turn);
      turn = turns[line].erase(turn);
      if (waiting.empty()) continue;
      std::string key = std::move(waiting.front());
      waiting.pop_front();
      if (!waiting.empty()) turns[line].push_back(name);
      object.allowance.Take();
      return key;
    }
    return std::nullopt;
  }

  void DropLate(std::deque<std::string>& waiting) {
    while (!waiting.empty()) {
      Record& record = records.at(waiting.front());
      if (Now() <= record.give_up) return;
      record.queued = false;
      waiting.pop_front();
    }
  }

  void Pump(Duration delay) {
    if (busy || (turns[kWarnings].empty() && turns[kOthers].empty())) return;
    busy = true;
    api.executor().PostAfter(delay, base::IfAlive(this, &State::WriteNext));
  }

  // At most one call at a time; `busy` until it is answered.
  void WriteNext() {
    busy = false;
    const TimePoint now = Now();
    if (const TimePoint next = of_all.Next(now); next > now) return Pump(next - now);
    Duration wait = kOfAnObject.spacing;
    const auto key = TakeNext(wait);
    if (!key) return Pump(wait);
    Record& record = records.at(*key);
    record.queued = false;
    record.give_up = std::min(record.give_up, now + kTried);
    of_all.Take();
    busy = true;
    const bool creates = !record.created;
    api.Do(creates ? CreateOf(record) : PatchOf(record),
           base::IfAlive(this, [key = *key, creates](State& self, const auto& answer) {
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
    PutFirst(key, record);
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
  std::map<std::string, Object> objects;        // by what `records` begin with
  std::array<std::list<std::string>, 2> turns;  // by line: keys of objects about which one waits
  Allowance of_all;
  std::uint64_t sequence = 0;
  bool busy = false;
};

EventRecorder::EventRecorder(Api& api, std::string component, std::string host,
                             std::string namespace_name, EventLimits limits)
    : state_(std::make_shared<State>(api, std::move(component), std::move(host),
                                     std::move(namespace_name), limits)) {}
EventRecorder::~EventRecorder() = default;

void EventRecorder::Normal(const ObjectReference& about, const std::string& reason,
                           const std::string& message) {
  state_->Emit(kNormal, about, reason, message);
}
void EventRecorder::Warning(const ObjectReference& about, const std::string& reason,
                            const std::string& message) {
  state_->Emit(kWarning, about, reason, message);
}

}  // namespace penstock::protocol::kube
