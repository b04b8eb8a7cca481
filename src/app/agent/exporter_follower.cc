#include "app/agent/exporter_follower.h"

#include <utility>

#include "api/compat/amd/metrics_config.h"
#include "backend/counter_fields.h"
#include "base/log.h"
#include "os/core/file.h"

namespace penstock::app {

namespace {

base::Result<std::string> ReadSettings(const std::string& path) {
  return os::ReadFile(path, api::compat::kLongestMetricsConfig);
}

}  // namespace

ExporterFollower::ExporterFollower(os::Loop& control, base::Executor& io,
                                   std::function<void()> changed)
    : control_(control), io_(io), changed_(std::move(changed)) {}

void ExporterFollower::Begin(const api::TelemetryConfig& telemetry) {
  path_ = telemetry.exporter_file;
  if (path_.empty()) return;
  FileRead(ReadSettings(path_));
  LogProblem({});
}

void ExporterFollower::Configure(const api::TelemetryConfig& telemetry) {
  if (telemetry.exporter_file == path_ && (path_.empty() || watch_)) return;
  const State before = state_;
  // What Begin read stays in force until it is read again.
  if (std::exchange(path_, telemetry.exporter_file) != telemetry.exporter_file) state_ = {};
  watch_.reset();
  if (!path_.empty()) {
    watch_ = std::make_unique<os::PathWatch>(control_, path_, [this] { Reload(); });
    Reload();
  }
  Notify(before);
}

void ExporterFollower::Reload() {
  if (path_.empty()) return;
  const auto read = lifetime_.Guard([this, path = path_](const base::Result<std::string>& text) {
    if (path_ != path) return;
    const State before = state_;
    FileRead(text);
    Notify(before);
  });
  io_.Post([read, &control = control_, path = path_] {
    control.Post([read, text = ReadSettings(path)]() mutable { read(text); });
  });
}

void ExporterFollower::FileRead(const base::Result<std::string>& text) {
  const auto fail = [this](const base::Error& error) {
    state_.problem = error.message();
    state_.problem_origin = "file " + path_;
  };
  if (!text.ok()) return fail(text.error());
  auto config = api::compat::TranslateMetricsConfig(*text, path_, backend::SettingsFields());
  if (!config.ok()) return fail(config.error());
  if (config->remarks != state_.remarks)
    for (const std::string& remark : config->remarks)
      base::Log(base::kInfo, "exporter settings remark", {{"remark", remark}});
  state_ = {.rows = std::move(config->rows),
            .settings = std::move(config->settings),
            .port = config->port,
            .remarks = std::move(config->remarks),
            .problem = {},
            .problem_origin = {}};
}

void ExporterFollower::LogProblem(const std::string& before) const {
  if (!state_.problem.empty() && state_.problem != before)
    base::Log(base::kError, "exporter settings rejected; the previous settings stay in use",
              {{"from", state_.problem_origin}, {"why", state_.problem}});
}

void ExporterFollower::Notify(const State& before) {
  if (state_ == before) return;
  LogProblem(before.problem);
  control_.Post(lifetime_.Guard([this] { changed_(); }));
}

}  // namespace penstock::app
