// Writes log lines with spdlog and suppresses repeats. The only file that uses spdlog.
#include "base/log.h"

// Header-only: fmt's shared library would bring the shared libstdc++ into programs that are linked
// without it.
#define FMT_HEADER_ONLY
#define SPDLOG_FMT_EXTERNAL
#include <algorithm>
#include <memory>
#include <mutex>
#include <unordered_map>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "base/core/printable.h"

namespace penstock::base {
namespace {

constexpr int kBurst = 10;
constexpr auto kWindow = std::chrono::minutes(1);
constexpr std::size_t kMaxTracked = 512;

struct Repeat {
  TimePoint begin;
  int written = 0;
  int held = 0;
};

/// The state of logging. One per process, since there is one standard error.
struct State {
  std::mutex mutex;
  std::shared_ptr<spdlog::logger> logger = std::make_shared<spdlog::logger>(
      "penstock", std::make_shared<spdlog::sinks::stderr_sink_st>());
  std::unordered_map<std::string, Repeat> repeats;

  State() { logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %L %n %v", spdlog::pattern_time_type::utc); }
};

State& TheState() {
  static State* const state =
      new State;  // never destroyed: other threads may log until the process ends
  return *state;
}

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarn: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
  }
  return spdlog::level::info;
}

void AppendValue(std::string& line, std::string_view value) {
  const bool quote = value.empty() || value.find_first_of(" \"=\n\r\t\\") != std::string_view::npos;
  if (quote) line += '"';
  for (std::size_t begin = 0; begin <= value.size();) {
    const std::size_t end = std::min(value.find('\n', begin), value.size());
    for (const char c : Printable(value.substr(begin, end - begin))) {
      if (c == '"' || c == '\\') line += '\\';
      line += c;
    }
    if (end < value.size()) line += "\\n";
    begin = end + 1;
  }
  if (quote) line += '"';
}

/// True if the line is to be written; `held` is then the number of suppressed lines like it.
bool Admit(State& state, std::string key, int& held) {
  const TimePoint now = std::chrono::steady_clock::now();
  if (state.repeats.size() >= kMaxTracked)
    std::erase_if(state.repeats,
                  [now](const auto& entry) { return now - entry.second.begin > kWindow; });
  if (state.repeats.size() >= kMaxTracked) state.repeats.clear();
  Repeat& repeat = state.repeats[std::move(key)];
  held = 0;
  if (now - repeat.begin > kWindow) {
    held = repeat.held;
    repeat = {now, 0, 0};
  }
  if (repeat.written < kBurst) {
    ++repeat.written;
    return true;
  }
  ++repeat.held;
  return false;
}

}  // namespace

void StartLog(std::string_view program, LogLevel least) {
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  auto sink = state.logger->sinks().front();
  state.logger = std::make_shared<spdlog::logger>(std::string(program), std::move(sink));
  state.logger->set_level(ToSpdlog(least));
  state.logger->flush_on(spdlog::level::debug);
}

void Log(LogLevel level, std::string_view message, std::initializer_list<Field> fields) {
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  if (!state.logger->should_log(ToSpdlog(level))) return;
  std::string key(message);
  if (fields.size() > 0) key += fields.begin()->value;
  int held = 0;
  if (!Admit(state, std::move(key), held)) return;
  std::string line(message);
  for (const Field& field : fields) {
    line.append(" ").append(field.key).append("=");
    AppendValue(line, field.value);
  }
  if (held > 0) line += " repeated=" + std::to_string(held);
  state.logger->log(ToSpdlog(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace penstock::base
