// `penstock top`: polls the agent and shows its samples. Changes nothing.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "api/samples.h"
#include "app/penstock/common/verbs.h"
#include "app/penstock/local/query_agent.h"
#include "app/penstock/top/top_frame.h"
#include "app/penstock/top/top_keys.h"
#include "app/penstock/top/top_screen.h"
#include "base/core/quantity.h"
#include "protocol/broker/client.h"
#include "protocol/broker/protocol.h"

namespace penstock::app {
namespace {

using base::Duration;
using Time = std::chrono::steady_clock;
using protocol::broker::Client;

constexpr char kRequest[] = R"({"op":"samples"})";
constexpr Duration kShortest = std::chrono::milliseconds(200), kLongest = std::chrono::hours(1);
constexpr Duration kPatience = std::chrono::seconds(10);  // for a response
/// A request makes the agent collect samples: --once shows that collection, unless it takes longer
/// than this.
constexpr Duration kFreshWithin = std::chrono::milliseconds(2500),
                   kPollInterval = std::chrono::milliseconds(50);

constexpr char kFooter[] = R"(Examples:
  penstock top                                 # devices, and the processes on them; h shows the keys, q ends it
  penstock top --interval 5s
  penstock top --once | head -20               # one frame, as text
  penstock top -o json | jq '.processes | sort_by(-.memoryBytes) | .[0]'

Shows the most important values of the metrics page. While it runs, the agent collects every second, regardless of
telemetry.interval. If standard output is not a terminal, one frame is printed. NO_COLOR disables colours; block
characters require a UTF-8 locale.

Exit status: 0 shown, 1 no agent responds.)";

struct TopOptions {
  bool once = false;
  std::string interval = "1s";
};

base::Result<Duration> IntervalOf(const TopOptions& options) {
  const auto interval = base::ParseDuration(options.interval);
  if (!interval.ok()) return interval.error().Within("--interval");
  if (*interval < kShortest || *interval > kLongest)
    return base::Error(base::Code::kInvalidArgument,
                       "--interval must be from 200ms to 1h, not " + options.interval);
  return interval;
}

bool TerminalHasUtf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string_view locale(value);
    return locale.find("UTF-8") != std::string_view::npos ||
           locale.find("utf8") != std::string_view::npos ||
           locale.find("UTF8") != std::string_view::npos ||
           locale.find("utf-8") != std::string_view::npos;
  }
  return false;
}

/// Returns the response once every device was sampled after the first request, or when kFreshWithin
/// has passed.
base::Result<std::string> QueryFresh(const std::string& run_dir) {
  std::optional<base::WallTime> first;
  const auto deadline = Time::now() + kFreshWithin;
  for (;;) {
    ASSIGN(std::string line, QueryLine(run_dir, kRequest));
    ASSIGN(const api::Samples samples, api::ParseSamples(line));
    if (!first) first = base::ParseTime(samples.time);
    const bool fresh = std::all_of(
        samples.devices.begin(), samples.devices.end(), [&first](const api::SampledDevice& device) {
          return device.health_state != "healthy" || !device.problem.empty() ||
                 base::ParseTime(device.collected) >= *first;
        });
    if (fresh || Time::now() >= deadline) return line;
    std::this_thread::sleep_for(kPollInterval);
  }
}

base::Status PrintOnce(const std::string& run_dir, bool json) {
  ASSIGN(const std::string line, QueryFresh(run_dir));
  if (json) {
    std::cout << line << "\n";
    return {};
  }
  ASSIGN(const api::Samples samples, api::ParseSamples(line));
  const Pen pen{.style = StyleOf(STDOUT_FILENO), .unicode = TerminalHasUtf8()};
  const TopSize size{.columns = pen.style.width > 0 ? pen.style.width : TopSize{}.columns,
                     .rows = 0};
  for (const std::string& text : TopFrame(samples, {}, size, pen)) std::cout << text << "\n";
  return {};
}

/// Polls and redraws until the user quits.
class Live {
 public:
  Live(std::string run_dir, Duration interval, api::Samples first)
      : run_dir_(std::move(run_dir)), interval_(interval), samples_(std::move(first)) {}

  base::Status Run() {
    ASSIGN(screen_, TopScreen::Open(STDIN_FILENO, STDOUT_FILENO));
    query_at_ = Time::now() + interval_;
    Draw();
    std::optional<int> ends;
    while (!ends) ends = Step();
    screen_.reset();
    if (*ends > 0) EndBySignal(*ends);
    return {};
  }

 private:
  /// Waits for the first event and handles it. Returns what ends the view: a signal, or 0.
  std::optional<int> Step() {
    const auto until = client_ ? answer_by_ : query_at_;
    const TopScreen::Events events = screen_->Wait(
        client_ ? client_->fd() : -1, std::max<Duration>(until - Time::now(), Duration(0)));
    if (events.ends) return events.ends;
    input_ += events.keys;
    bool draw = events.resized || !events.keys.empty();
    while (const auto key = TakeKey(input_))
      if (!PressKey(*key, view_)) return 0;
    if (client_ && (events.ready || Time::now() >= answer_by_)) {
      TakeAnswer();
      draw = true;
    } else if (!client_ && Time::now() >= query_at_) {
      draw = !Query() || draw;
    }
    if (draw) Draw();
    return std::nullopt;
  }

  /// Returns false where no agent can be reached.
  bool Query() {
    query_at_ = Time::now() + interval_;
    answer_by_ = Time::now() + kPatience;
    auto client = Client::Connect(run_dir_);
    const base::Status sent =
        client.ok() ? client->SendLine(kRequest) : base::Status(client.error());
    view_.problem = sent.ok() ? view_.problem : sent.error().message();
    if (sent.ok()) client_.emplace(*std::move(client));
    return sent.ok();
  }

  void TakeAnswer() {
    const base::Status read = Read();
    view_.problem = read.ok() ? "" : read.error().message();
    client_.reset();
  }

  base::Status Read() {
    ASSIGN(const std::string line,
           client_->ReadLine(std::max<Duration>(answer_by_ - Time::now(), Duration(0))));
    ASSIGN(const std::string answer, protocol::broker::DecodeAny(line));
    ASSIGN(samples_, api::ParseSamples(answer));
    return {};
  }

  void Draw() {
    const TopSize size = screen_->size();
    screen_->Draw(TopFrame(samples_, view_, size, pen_));
  }

  const std::string run_dir_;
  const Duration interval_;
  const Pen pen_{.style = StyleOf(STDOUT_FILENO), .unicode = TerminalHasUtf8()};
  api::Samples samples_;
  TopView view_;
  std::string input_;
  std::optional<Client> client_;
  Time::time_point query_at_{}, answer_by_{};
  std::unique_ptr<TopScreen> screen_;
};

base::Status Top(const Common& common, const TopOptions& options) {
  ASSIGN(const Duration interval, IntervalOf(options));
  ASSIGN(const api::NodeConfig config, Resolve(common.settings));
  const std::string& run_dir = config.paths.run_dir;
  if (common.json || options.once || !TopScreen::Possible(STDIN_FILENO, STDOUT_FILENO))
    return PrintOnce(run_dir, common.json);
  ASSIGN(const std::string line, QueryLine(run_dir, kRequest));
  ASSIGN(api::Samples first, api::ParseSamples(line));
  return Live(run_dir, interval, std::move(first)).Run();
}

int ToExitCode(const base::Status& status) {
  if (status.ok()) return std::cout.flush() ? 0 : 1;
  std::cerr << "penstock top: " << status.error().message() << "\n";
  return 1;
}

}  // namespace

void AddTop(CLI::App& app, const Common& common, int& exit_code) {
  CLI::App* top =
      app.add_subcommand("top", "Show the activity of devices and of the processes on them, live");
  top->footer(kFooter);
  top->fallthrough();
  const auto options = std::make_shared<TopOptions>();
  top->add_flag("--once", options->once, "print one frame and exit");
  top->add_option("--interval", options->interval, "time between updates")
      ->capture_default_str()
      ->type_name("DURATION");
  top->callback([options, &common, &exit_code] { exit_code = ToExitCode(Top(common, *options)); });
}

}  // namespace penstock::app
