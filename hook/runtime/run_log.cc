// logrus' two formats: time="…" level=… msg="…", and {"level":…,"msg":…,"time":…}.
#include "hook/runtime/run_log.h"

#include <array>
#include <ctime>

#include <fcntl.h>
#include <unistd.h>

#include "base/core/strings.h"
#include "os/core/file.h"

namespace penstock::hook::runtime {
namespace {

constexpr std::size_t kMaxMessage = 4096;

std::string_view Name(RuntimeLogLevel level) {
  switch (level) {
    case RuntimeLogLevel::kDebug: return "debug";
    case RuntimeLogLevel::kInfo: return "info";
    case RuntimeLogLevel::kWarn: return "warning";
    case RuntimeLogLevel::kError: return "error";
  }
  return "error";
}

std::string Now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

/// Escapes a message for use between quotes in both formats. Messages contain values of a
/// container's environment, and none of their bytes may end a line.
std::string Quoted(std::string_view message) {
  std::string text = "\"";
  std::string_view head = message.substr(0, kMaxMessage);
  for (int i = 0; i < 3 && head.size() < message.size() && !base::IsUtf8(head); ++i)
    head.remove_suffix(1);
  const bool utf8 = base::IsUtf8(head);
  for (const char c : head) {
    if (c == '"' || c == '\\') {
      text.append(1, '\\').append(1, c);
    } else if (c == '\n') {
      text += "\\n";
    } else {
      const auto byte = static_cast<unsigned char>(c);
      text += byte < 0x20 || byte == 0x7f || (byte >= 0x80 && !utf8) ? '?' : c;
    }
  }
  if (head.size() < message.size()) text += "...";
  return text + "\"";
}

os::UniqueFd OpenLog(const std::string& path) {
  return os::UniqueFd(::open(
      path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644));
}

void Append(os::UniqueFd& file, const std::string& path, const std::string& line) {
  if (path.empty()) return;
  if (!file) file = OpenLog(path);
  if (!file) return;
  // One write per line, so that lines of several containers do not mix.
  [[maybe_unused]] const ssize_t written = ::write(file.get(), line.data(), line.size());
}

}  // namespace

std::string FormatLogLine(RuntimeLogLevel level, std::string_view message, std::string_view time,
                          bool json) {
  const std::string text = Quoted(message), name(Name(level)), when(time);
  if (json) return "{\"level\":\"" + name + "\",\"msg\":" + text + ",\"time\":\"" + when + "\"}\n";
  return "time=\"" + when + "\" level=" + name + " msg=" + text + "\n";
}

void RunLog::Configure(const Config& config) {
  debug_file_ = config.debug_file;
  least_ = options_.debug ? RuntimeLogLevel::kDebug : config.log_level;
  if (const auto slash = debug_file_.rfind('/'); slash != std::string::npos && slash > 0)
    (void)os::MakeDirectories(debug_file_.substr(0, slash)).ok();
}

void RunLog::Write(RuntimeLogLevel level, std::string_view message) {
  const std::string time = Now();
  if (level >= RuntimeLogLevel::kWarn)
    Append(runtime_log_, options_.path, FormatLogLine(level, message, time, options_.json));
  if (level >= least_) Append(debug_log_, debug_file_, FormatLogLine(level, message, time, false));
}

}  // namespace penstock::hook::runtime
