#include "node/attribute/job_follower.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "base/core/strings.h"
#include "base/log.h"
#include "os/watch/watch.h"

namespace penstock::node::attribute {

namespace {

/// Long enough for a workload manager to write the files of all devices, and for pages of many jobs
/// not to be rendered without end; short for a scrape.
constexpr base::Duration kJobsBurst = std::chrono::seconds(1);
constexpr std::size_t kMostNamed = 8;

/// In one line of the log.
std::string NameSome(const std::vector<std::string>& problems) {
  const std::size_t named = std::min(kMostNamed, problems.size());
  const std::string text = base::Join(std::span(problems).first(named), "; ");
  return named == problems.size()
             ? text
             : text + "; and " + std::to_string(problems.size() - named) + " more";
}

}  // namespace

struct JobFollower::State : std::enable_shared_from_this<State> {
  using Deliver = std::function<void(DeviceJobs)>;
  State(base::Executor& its_control, os::Loop& its_io, Deliver function)
      : control(its_control), io(its_io), deliver(std::move(function)) {}

  void Follow(const std::string& path) {
    watch.reset();
    folder = path;
    known.clear();
    if (folder.empty()) return Take({});
    // With the last ".", changes beside the folder are none of its own.
    watch = std::make_unique<os::PathWatch>(io, folder + "/.", base::IfAlive(this, &State::Read),
                                            kJobsBurst);
    Read();
  }

  void Read() { Take(ReadJobFolder(folder)); }

  void Take(JobFolder read) {
    Warn(read.problems);
    if (read.jobs == jobs) return;
    jobs = std::move(read.jobs);
    control.Post([function = deliver, now = jobs]() mutable { function(std::move(now)); });
  }

  /// Each problem once, and again if it recurs.
  void Warn(const std::vector<std::string>& problems) {
    std::vector<std::string> unknown;
    std::ranges::copy_if(problems, std::back_inserter(unknown),
                         [this](const std::string& one) { return !known.contains(one); });
    known = {problems.begin(), problems.end()};
    if (!unknown.empty())
      base::Log(base::kWarn, "some jobs of devices are unknown",
                {{"directory", folder}, {"why", NameSome(unknown)}});
  }

  base::Executor& control;
  os::Loop& io;
  const Deliver deliver;
  std::string folder;
  std::unique_ptr<os::PathWatch> watch;
  std::set<std::string> known;  // problems of the last reading
  DeviceJobs jobs;
};

JobFollower::JobFollower(base::Executor& control, os::Loop& io)
    : io_(io), state_(std::make_shared<State>(control, io, lifetime_.Guard([this](DeviceJobs jobs) {
        published_.Set(std::move(jobs));
      }))) {}

JobFollower::~JobFollower() = default;

void JobFollower::Configure(const std::string& folder) {
  if (std::exchange(folder_, folder) == folder) return;
  io_.Post([state = state_, folder] { state->Follow(folder); });
}

}  // namespace penstock::node::attribute
