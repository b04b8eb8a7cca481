#include "protocol/systemd/services.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/core/strings.h"

namespace penstock::protocol::systemd {
namespace {

using namespace std::chrono_literals;

constexpr base::Duration kAnswersWithin = 20s;
// systemd kills what does not stop within 90 s (DefaultTimeoutStopSec=), and then waits once more.
constexpr base::Duration kStopsWithin = 200s;
constexpr std::size_t kMostAnswer = 1u << 20;

/// The inverses of what makes a unit stop with another one: Requires=, Requisite=, BindsTo=,
/// PartOf=, StopPropagatedFrom=. A systemctl that does not know one prints nothing for it.
constexpr std::string_view kStoppedWith[] = {"RequiredBy", "RequisiteOf", "BoundBy", "ConsistsOf",
                                             "PropagatesStopTo"};

std::vector<std::string> Words(std::string_view list) {
  std::vector<std::string> words = base::Split(list, ' ');
  std::erase(words, "");
  return words;
}

void Take(ServiceUnit& unit, std::string_view key, std::string_view value) {
  if (key == "Id") {
    unit.id = value;
  } else if (key == "Names") {
    unit.names = Words(value);
  } else if (key == "LoadState") {
    unit.exists = value == "loaded";
  } else if (key == "ActiveState") {
    unit.active = value == "active" || value == "activating" || value == "reloading";
  } else if (key == "ControlGroup") {
    unit.control_group = value;
  } else if (std::ranges::find(kStoppedWith, key) != std::end(kStoppedWith)) {
    for (std::string& other : Words(value)) unit.stopped_with.push_back(std::move(other));
  }
}

}  // namespace

std::vector<ServiceUnit> ParseUnits(std::string_view shown) {
  std::vector<ServiceUnit> units;
  ServiceUnit unit;
  const auto end = [&] {
    if (!unit.id.empty()) units.push_back(std::move(unit));
    unit = {};
  };
  for (const std::string& line : base::Split(shown, '\n')) {
    const std::size_t equals = line.find('=');
    if (line.empty())
      end();
    else if (equals != std::string::npos)
      Take(unit, std::string_view(line).substr(0, equals),
           std::string_view(line).substr(equals + 1));
  }
  end();
  return units;
}

Services::Services(os::Loop& loop, std::vector<std::string> enter)
    : loop_(loop), enter_(std::move(enter)) {}

void Services::Run(std::vector<std::string> arguments, const std::vector<std::string>& units,
                   base::Duration most, Answered answered) {
  os::Command::Options run{.deadline = most, .most_output = kMostAnswer, .errors_apart = true};
  run.spawn.arguments = enter_;
  run.spawn.arguments.insert(run.spawn.arguments.end(), {"systemctl", "--no-ask-password"});
  run.spawn.arguments.insert(run.spawn.arguments.end(), arguments.begin(), arguments.end());
  run.spawn.arguments.emplace_back("--");
  run.spawn.arguments.insert(run.spawn.arguments.end(), units.begin(), units.end());
  command_ = std::make_unique<os::Command>(
      loop_, std::move(run),
      [what = "systemctl " + arguments.front() + " " + base::Join(units, " "),
       answered = std::move(answered)](base::Result<os::Command::Outcome> outcome) {
        if (!outcome.ok()) return answered(outcome.error().Within(what));
        if (outcome->status == 0) return answered(std::move(outcome->output));
        const std::string said = os::LastLines(outcome->errors);
        answered(base::Error(
            base::Code::kUnavailable,
            what +
                (said.empty() ? ": exit status " + std::to_string(outcome->status) : ": " + said)));
      });
}

void Services::Show(const std::vector<std::string>& units, Shown shown) {
  std::vector<std::string> properties = {"Id", "Names", "LoadState", "ActiveState", "ControlGroup"};
  properties.insert(properties.end(), std::begin(kStoppedWith), std::end(kStoppedWith));
  Run({"show", "--property=" + base::Join(properties, ",")}, units, kAnswersWithin,
      [shown = std::move(shown)](base::Result<std::string> answer) {
        if (!answer.ok()) return shown(answer.error());
        shown(ParseUnits(*answer));
      });
}

void Services::Stop(const std::string& unit, Done done) {
  Run({"stop"}, {unit}, kStopsWithin, [done = std::move(done)](base::Result<std::string> answer) {
    done(answer.ok() ? base::Status() : answer.error());
  });
}

void Services::Start(const std::string& unit, Done done) {
  Run({"start"}, {unit}, kStopsWithin, [done = std::move(done)](base::Result<std::string> answer) {
    done(answer.ok() ? base::Status() : answer.error());
  });
}

}  // namespace penstock::protocol::systemd
