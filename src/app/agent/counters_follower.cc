// Both sources are always kept up to date; state() decides which of them is in force.
#include "app/agent/counters_follower.h"

#include <algorithm>
#include <utility>

#include "api/compat/nvidia/counters.h"
#include "backend/counter_fields.h"
#include "base/log.h"
#include "os/core/file.h"

namespace penstock::app {

namespace {

base::Result<std::string> ReadCounters(const std::string& path) {
  return os::ReadFile(path, api::compat::kLongestCounters + 1);
}

bool IsBuiltIn(const std::string& path, const base::Result<std::string>& text) {
  return !text.ok() && text.error().code() == base::Code::kNotFound &&
         std::ranges::find(api::compat::kBuiltInCounters, path) !=
             api::compat::kBuiltInCounters.end();
}

}  // namespace

CountersFollower::CountersFollower(os::Loop& control, base::Executor& io,
                                   std::function<void()> changed)
    : control_(control), io_(io), changed_(std::move(changed)) {}

void CountersFollower::Begin(const api::TelemetryConfig& telemetry) {
  if (!telemetry.counters_file.empty())
    FileRead(telemetry.counters_file, ReadCounters(telemetry.counters_file));
}

void CountersFollower::Configure(const api::TelemetryConfig& telemetry) {
  const State before = state();
  if (telemetry.counters_map != map_name_) {
    map_name_ = telemetry.counters_map;
    map_ = {};
  }
  if (telemetry.counters_file != path_) {
    path_ = telemetry.counters_file;
    watch_.reset();
    if (path_.empty()) {
      file_ = {};
    } else {
      watch_ = std::make_unique<os::PathWatch>(control_, path_, [this] { Reload(); });
      Reload();
    }
  }
  Notify(before);
}

void CountersFollower::Reload() {
  if (path_.empty()) return;
  const auto read = lifetime_.Guard([this, path = path_](const base::Result<std::string>& text) {
    if (path_ != path) return;
    const State before = state();
    FileRead(path, text);
    Notify(before);
  });
  io_.Post([read, &control = control_, path = path_] {
    control.Post([read, text = ReadCounters(path)]() mutable { read(text); });
  });
}

void CountersFollower::FileRead(const std::string& path, const base::Result<std::string>& text) {
  if (IsBuiltIn(path, text) && file_.of != path) {
    file_ = {};
    return;
  }
  file_.origin = "file " + path;
  TakeText(text, path, file_);
}

void CountersFollower::Take(const api::RemoteConfig& map) {
  const State before = state();
  map_.origin = map.origin;
  if (!map.problem.empty()) {
    map_.problem = map.problem;
  } else if (map.text.empty()) {
    map_ = {};
  } else {
    TakeText(map.text, map.origin, map_);
  }
  Notify(before);
}

void CountersFollower::TakeText(const base::Result<std::string>& text, const std::string& name,
                                Source& source) {
  if (!text.ok()) {
    source.problem = text.error().message();
    return;
  }
  auto counters = api::compat::ParseCounters(*text, name, backend::CounterFields());
  source.problem = counters.ok() ? "" : counters.error().message();
  if (!counters.ok()) return;
  if (std::exchange(source.of, name) == name && source.rows == counters->rows) return;
  for (const std::string& remark : counters->remarks)
    base::Log(base::kInfo, "counters remark", {{"remark", remark}});
  source.rows = std::move(counters->rows);
}

CountersFollower::State CountersFollower::state() const {
  const bool map = !map_.of.empty();
  const Source& shown = map || !map_.problem.empty() ? map_ : file_;
  return {.rows = map ? map_.rows : file_.rows,
          .problem = shown.problem,
          .problem_origin = shown.problem.empty() ? "" : shown.origin};
}

void CountersFollower::Notify(const State& before) {
  const State now = state();
  if (now == before) return;
  if (!now.problem.empty() && now.problem != before.problem)
    base::Log(base::kError, "counters file rejected; the previous counters stay in use",
              {{"from", now.problem_origin}, {"why", now.problem}});
  control_.Post(lifetime_.Guard([this] { changed_(); }));
}

}  // namespace penstock::app
