// `penstock top`: polls the agent and shows its samples. Changes nothing.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <unistd.h>

#include "api/samples.h"
#include "app/penstock/common/verbs.h"
#include "app/penstock/local/query_agent.h"
#include "app/penstock/top/top_frame.h"
#include "app/penstock/top/top_keys.h"
#include "app/penstock/top/top_screen.h"
#include "base/core/quantity.h"
#include "base/core/strings.h"
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

constexpr char kExamples[] =
    R"(penstock top                                 # devices, and the processes on them; h shows the keys, q ends it
penstock top --interval 5s
penstock top --once | head -20               # one frame, as text
penstock top -o json | jq '.processes | sort_by(-.memoryBytes) | .[0]')";

constexpr char kDetails[] =
    R"(Shows the most important values of the metrics page. While it runs, the agent collects every second,
regardless of telemetry.interval. If standard output is not a terminal, one frame is printed.
NO_COLOR disables colours; block characters require a UTF-8 locale.)";

struct TopOptions {
  bool once = false;
  std::string interval = "1s";
};

base::Result<Duration> IntervalOf(const TopOptions& options) {
  auto interval = base::ParseDuration(options.interval);
  if (!interval.ok()) return interval.error().Within("--interval");
  if (*interval < kShortest || *interval > kLongest)
    return base::Error(base::Code::kInvalidArgument,
                       "--interval must be from 200ms to 1h, not " + options.interval);
  return interval;
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

base::Result<Shown> ShowOnce(const Common& common, const std::string& run_dir) {
  ASSIGN(const std::string line, QueryFresh(run_dir));
  if (common.json()) return Shown(line);
  ASSIGN(const api::Samples samples, api::ParseSamples(line));
  const Pen pen{.style = common.style(), .unicode = LocaleIsUtf8()};
  const TopSize size{.columns = pen.style.width > 0 ? pen.style.width : TopSize{}.columns,
                     .rows = 0};
  return Shown(base::Join(TopFrame(samples, {}, size, pen), "\n") + "\n");
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
  const Pen pen_{.style = StyleOf(STDOUT_FILENO), .unicode = LocaleIsUtf8()};
  api::Samples samples_;
  TopView view_;
  std::string input_;
  std::optional<Client> client_;
  Time::time_point query_at_{}, answer_by_{};
  std::unique_ptr<TopScreen> screen_;
};

base::Result<Shown> Top(const Common& common, const TopOptions& options) {
  ASSIGN(const Duration interval, IntervalOf(options));
  ASSIGN(const api::NodeConfig config, Resolve(common.settings));
  const std::string& run_dir = config.paths.run_dir;
  if (common.json() || options.once || !TopScreen::Possible(STDIN_FILENO, STDOUT_FILENO))
    return ShowOnce(common, run_dir);
  ASSIGN(const std::string line, QueryLine(run_dir, kRequest));
  ASSIGN(api::Samples first, api::ParseSamples(line));
  TRY(Live(run_dir, interval, std::move(first)).Run());
  return Shown("");
}

}  // namespace

Verb TopVerb(const Common& common) {
  const auto options = std::make_shared<TopOptions>();
  return {.name = "top",
          .summary = "Show the activity of devices and of the processes on them, live",
          .examples = kExamples,
          .details = kDetails,
          .exit_status = "0 shown, 1 no agent responds, 2 usage error",
          .options = {Flag("--once", &options->once, "print one frame"),
                      Value("--interval", &options->interval, "DURATION",
                            "time between updates, from 200ms to 1h [1s]")},
          .shares = AgentOptionNames(),
          .formats = command::PlainFormats(),
          .check = [options]() -> base::Status {
            const auto interval = IntervalOf(*options);
            return interval.ok() ? base::Status() : interval.error();
          },
          .show = [options, &common] { return Top(common, *options); }};
}

}  // namespace penstock::app
