// Places an inotify watch on every folder on the way to a path and on the path itself.
#include "os/watch/watch.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>
#include <vector>

#include <sys/inotify.h>
#include <sys/stat.h>

#include "base/lifetime.h"
#include "os/watch/inotify.h"

namespace penstock::os {
namespace {

constexpr auto kPoll = std::chrono::seconds(1);
constexpr std::uint32_t kEntries =
    IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF;
constexpr std::uint32_t kContent = kEntries | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB;

/// One step on the way: "/var", whose entry `next` ("lib") leads on; `next` is "" for the path
/// itself.
struct Step {
  std::string path;
  std::string next;
};

std::vector<Step> StepsTo(const std::string& path) {
  std::vector<Step> steps;
  if (path.starts_with('/'))
    steps.push_back({"/", ""});
  else
    steps.push_back({".", ""});
  for (std::size_t start = 0; start < path.size();) {
    const std::size_t end = std::min(path.find('/', start), path.size());
    if (end > start) {
      steps.back().next = path.substr(start, end - start);
      steps.push_back({path.substr(0, end), ""});
    }
    start = end + 1;
  }
  return steps;
}

/// A device file was written to, or opened for writing and closed, which changes nothing of the
/// file: programs that use a device do that all the time, the agent's own among them.
bool IsUseOfADevice(const inotify_event& event, const std::string& watched) {
  constexpr std::uint32_t kUse = IN_MODIFY | IN_CLOSE_WRITE;
  if ((event.mask & kUse) == 0 || (event.mask & ~kUse) != 0) return false;
  struct stat about {};
  const std::string path = event.len == 0 ? watched : watched + "/" + event.name;
  return ::lstat(path.c_str(), &about) == 0 && (S_ISCHR(about.st_mode) || S_ISBLK(about.st_mode));
}

}  // namespace

struct PathWatch::State : Inotify::Watcher, std::enable_shared_from_this<PathWatch::State> {
  State(Loop& its_loop, const std::string& path, std::function<void()> function,
        base::Duration wait)
      : loop(its_loop),
        steps(StepsTo(path)),
        callback(std::move(function)),
        burst(wait),
        inotify(Inotify::Of(loop)) {}

  /// The events to watch at a step: entries on the way, everything at the path itself.
  std::uint32_t EventsOf(std::size_t step) const {
    return step + 1 == steps.size() ? kContent : kEntries;
  }
  void Arm();
  bool WatchSteps();
  void OnEvent(const inotify_event& event) override;
  void OnBatch() override;
  bool Matters(const inotify_event& event) const;
  void Schedule(base::Duration delay);
  void Fire();
  void End();

  Loop& loop;
  const std::vector<Step> steps;
  std::function<void()> callback;
  const base::Duration burst;
  const std::shared_ptr<Inotify> inotify;
  std::map<int, std::size_t> watches;  // inotify's watch descriptor → step
  bool matters = false;                // whether this batch contains a relevant event
  base::TimerId timer = 0;
  bool polling = false;  // the timer is a poll, not the end of a burst
};

void PathWatch::State::Arm() {
  if (!WatchSteps()) Schedule(kPoll);
}

// Goes downwards, so that the watch above reports entries that appear during the walk. False if a
// step cannot be watched.
bool PathWatch::State::WatchSteps() {
  bool all = true;
  std::map<int, std::size_t> armed;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const int watch = inotify->Add(steps[i].path, EventsOf(i), *this);
    if (watch >= 0) {
      armed[watch] = i;
    } else if (errno == ENOENT || errno == ENOTDIR) {
      break;
    } else {
      all = false;
    }
  }
  for (const auto& [watch, step] : watches) {
    if (!armed.contains(watch)) inotify->Remove(watch, *this);
  }
  watches = std::move(armed);
  return all;
}

// Further up, only the next folder on the way matters. In the path's own folder every event
// matters: the path may be a link whose target is replaced there, as in a mounted ConfigMap.
bool PathWatch::State::Matters(const inotify_event& event) const {
  if ((event.mask & IN_Q_OVERFLOW) != 0) return true;
  const auto step = watches.find(event.wd);
  if (step == watches.end() || (event.mask & (EventsOf(step->second) | IN_IGNORED)) == 0)
    return false;
  if (IsUseOfADevice(event, steps[step->second].path)) return false;
  if (event.len == 0 || step->second + 2 >= steps.size()) return true;
  return steps[step->second].next == event.name;
}

void PathWatch::State::OnEvent(const inotify_event& event) {
  matters = matters || Matters(event);
  if ((event.mask & IN_IGNORED) != 0) watches.erase(event.wd);
}

void PathWatch::State::OnBatch() {
  if (std::exchange(matters, false)) Schedule(burst);
}

void PathWatch::State::Schedule(base::Duration delay) {
  const bool poll = delay == kPoll;
  if (timer != 0 && (poll || !polling)) return;
  if (timer != 0) loop.Cancel(timer);
  polling = poll;
  timer = loop.PostAfter(delay, base::IfAlive(this, &State::Fire));
}

// Renews the watches before the callback reads the state, so that later changes are reported again.
void PathWatch::State::Fire() {
  timer = 0;
  Arm();
  callback();
}

void PathWatch::State::End() {
  loop.Cancel(timer);
  inotify->Remove(*this);
}

PathWatch::PathWatch(Loop& loop, std::string path, std::function<void()> callback,
                     base::Duration burst)
    : state_(std::make_shared<State>(loop, path, std::move(callback), burst)) {
  state_->Arm();
}

PathWatch::~PathWatch() { state_->End(); }

}  // namespace penstock::os
