#include "app/agent/container_check.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "api/cdi/registry.h"
#include "base/core/printable.h"
#include "base/log.h"
#include "os/core/file.h"

namespace penstock::app {
namespace {

using protocol::engine::cri::ProbeAnswer;
using protocol::engine::cri::ProbeContainer;
using protocol::engine::cri::ProbeRun;
using protocol::engine::cri::WhyNotHandled;

/// A sandbox and a container take a few tenths of a second, and seconds on a machine that is busy.
constexpr base::Duration kWithin = std::chrono::seconds(30);
constexpr std::size_t kMostAnswer = 300, kMostRead = 2000,
                      kShortestId = 16;  // more than a part of a device's UUID has
constexpr int kLateRuns = 3;             // by then it is no chance
constexpr int kEndedRuns = 10;           // likewise
constexpr char kOwner[] = "agent", kContainerOff[] = "validation.container is off",
               kNoAnswer[] = "it has not answered yet",
               kChanging[] = "a change of devices is under way",
               kOther[] = "something changed meanwhile",
               kEnded[] =
                   "another program ended it before it answered, as the kubelet does with a "
                   "container that takes seconds to start: ",
               kLate[] =
                   "a container with the devices does not end within 30 s; one without them "
                   "does";

/// What the specifications of the folder promise to a container with these devices.
base::Result<node::validate::PromisedFiles> Promised(const std::string& folder,
                                                     const std::vector<std::string>& devices) {
  std::vector<api::cdi::SpecFile> files;
  for (os::FolderFile& file : os::ReadFolder(folder, api::cdi::kSuffixes, api::cdi::kMaxBytes))
    files.push_back({.path = std::move(file.path), .text = std::move(file.text)});
  ASSIGN(const auto edits, api::cdi::Registry(std::move(files)).Inject(devices));
  return node::validate::PromiseOf(edits);
}

/// Whether `devices` has one that is not among `others`.
bool HasAnother(const std::vector<std::string>& devices, const std::vector<std::string>& others) {
  return std::ranges::any_of(devices, [&](const std::string& device) {
    return std::ranges::find(others, device) == others.end();
  });
}

/// Without what differs each time, as ids of containers and processes do: at rest, the same error
/// is the same text.
std::string WithoutIds(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const bool process = result.ends_with("/proc/");
    const std::string_view digits = process ? "0123456789" : "0123456789abcdefABCDEF";
    std::size_t length = std::min(text.find_first_not_of(digits), text.size());
    if (length >= (process ? 1 : kShortestId)) {
      result += "…";
    } else {
      length = std::max<std::size_t>(length, 1);
      result += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return result;
}

/// Which way of giving devices to containers was tried where there are two.
std::string RemarkOn(const ContainerCheck::Target& target, bool handled) {
  if (target.handler.empty()) return "";
  if (handled) return "by the runtime handler " + target.handler;
  return "without a runtime handler: " +
         WhyNotHandled({.handler = target.handler, .runtime = target.start.runtime});
}

std::string Shortened(const std::string& text) {
  const std::string all = WithoutIds(std::string_view(text).substr(0, kMostRead));
  return base::Printable(base::Shortened(all, kMostAnswer));
}

}  // namespace

ContainerCheck::ContainerCheck(os::Loop& control, base::Executor& io, std::function<void()> changed,
                               const Times& times)
    : control_(control),
      io_(io),
      changed_(std::move(changed)),
      times_(times),
      after_failure_(times.failure, times.most),
      after_nothing_(times.nothing, times.most) {}

ContainerCheck::~ContainerCheck() {
  control_.Cancel(timer_);
  control_.Cancel(patience_);
}

void ContainerCheck::Configure(const api::NodeConfig& config) {
  log_folder_ = config.paths.state_dir;
  if (std::exchange(enabled_, config.validation.container) == enabled_) return;
  control_.Cancel(std::exchange(timer_, 0));
  control_.Cancel(std::exchange(patience_, 0));
  passed_.clear();
  remark_.clear();
  began_.reset();
  next_ = {};
  Forget();
  // The step may have passed: only an agent that starts makes the node wait.
  facts_ = {.state = State::kNotTried, .why = {enabled_ ? kNoAnswer : kContainerOff}};
}

void ContainerCheck::Follow(Target target, bool changing) {
  if (changing) Abandon(kChanging);
  const bool ended = std::exchange(changing_, changing) && !changing;
  if (std::exchange(way_, target.way) != way_ && enabled_ && facts_.state != State::kNone) {
    Abandon(kOther);
    wanted_.clear();
    passed_.clear();
    facts_ = {};
    // The step may have passed: only an agent that starts makes the node wait.
    if (!target.devices.empty()) facts_ = {.state = State::kNotTried, .why = {kNoAnswer}};
  }
  if (!enabled_ || target.devices.empty()) return;
  Wait();
  const std::string instance = target.start.instance + " " + target.instance + " " + target.way;
  target_ = std::move(target);
  // One device less keeps none of the others from opening, but may have been the cause of a
  // failure.
  const bool other = HasAnother(target_.devices, used_.devices) ||
                     (facts_.state == State::kFailed && HasAnother(used_.devices, target_.devices));
  if (other) passed_.clear();
  if (std::exchange(wanted_, instance) != instance || ended || other) {
    Forget();
    next_ = began_ ? std::min(next_, *began_ + times_.apart) : base::TimePoint{};
  }
  if (busy_ || passed_ == wanted_) return;
  if (changing) {
    remark_ = kChanging;
    return;
  }
  if (control_.clock().Now() < next_) return AgainAt(next_);
  Begin();
}

void ContainerCheck::GiveUp() { Abandon(kOther); }

/// What is left of it, the next one removes; its program ends with the call, or within a minute.
void ContainerCheck::Abandon(const std::string& why) {
  if (!busy_) return;
  ++round_;
  run_.reset();
  busy_ = false;
  if (enabled_) Undecided(why);
}

/// The first answer decides whether the node is ready, unless it takes too long. The node waits
/// once: the step may have passed since, where no way was known to give a container any device.
void ContainerCheck::Wait() {
  if (facts_.state != State::kNone) return;
  if (std::exchange(waited_, true)) {
    facts_ = {.state = State::kNotTried, .why = {kNoAnswer}};
    return;
  }
  facts_.state = State::kWaiting;
  patience_ = control_.PostAfter(times_.patience, [this] {
    patience_ = 0;
    if (facts_.state == State::kWaiting)
      Show(State::kNotTried, {remark_.empty() ? kNoAnswer : remark_});
  });
}

void ContainerCheck::Begin() {
  busy_ = true;
  began_ = control_.clock().Now();
  next_ = *began_ + times_.apart;
  tried_ = wanted_;
  used_ = target_;
  compared_ = late_ = false;
  if (!os::Exists(target_.start.own_program))
    return Decide(State::kNotTried, {"there is no " + target_.start.own_program});
  const auto take = lifetime_.Guard(
      [this, round = ++round_](const base::Result<node::validate::PromisedFiles>& promised) {
        if (round == round_) Try(promised);
      });
  if (!used_.promised.empty()) {
    node::validate::PromisedFiles files;
    for (const std::string& file : used_.promised) files.files[file] = true;
    return Try(files);
  }
  io_.Post([take, &control = control_, folder = used_.start.folder, devices = used_.devices] {
    control.Post([take, promised = Promised(folder, devices)] { take(promised); });
  });
}

void ContainerCheck::Try(const base::Result<node::validate::PromisedFiles>& promised) {
  busy_ = enabled_;
  if (!busy_) return;
  if (!promised.ok()) return Undecided(promised.error().message());
  promised_ = *promised;
  Run(true);
}

/// One without devices shows whether it is the devices that keep the other from starting. That one
/// is tried once more: the kubelet may just have ended it.
void ContainerCheck::Run(bool with_devices) {
  ProbeContainer container{.socket = used_.start.socket,
                           .program = used_.start.program,
                           .log_folder = log_folder_,
                           .by_annotation = used_.by_annotation,
                           .relabel = used_.start.installed,
                           .owner = kOwner};
  if (with_devices) {
    container.files = promised_.paths();
    if (used_.promised.empty()) container.cdi_devices = used_.devices;
    container.devices = used_.files;
    container.environment = used_.environment;
    container.handler = used_.handler;
    container.runtime = used_.start.runtime;
  }
  run_ = std::make_unique<ProbeRun>(
      control_, std::move(container), kWithin,
      [this, with_devices](const ProbeAnswer& answer) { Answered(with_devices, answer); });
}

void ContainerCheck::Answered(bool with_devices, const ProbeAnswer& answer) {
  using Kind = ProbeAnswer::Kind;
  // It calls this, and is not used afterwards.
  control_.Post([ended = std::shared_ptr<ProbeRun>(std::move(run_))] {});
  busy_ = enabled_;
  if (!busy_) return;
  if (tried_ != wanted_) return Undecided(kOther);
  switch (answer.kind) {
    case Kind::kNotTried: return Undecided(Shortened(answer.text));
    case Kind::kEnded: return Ended(Shortened(answer.text));
    case Kind::kLate:
      if (!with_devices) {
        late_runs_ = 0;
        return Undecided("also one without devices does not end within 30 s");
      }
      late_ = true;
      if (compared_) return Late();
      return Run(false);
    case Kind::kRefused:
      if (!with_devices)
        return Undecided("also one without devices does not start: " + Shortened(answer.text));
      if (!compared_) return Run(false);
      return Decide(State::kFailed,
                    {"a container with the devices does not start: " + Shortened(answer.text)});
    case Kind::kAnswered: break;
  }
  if (!with_devices) {
    compared_ = true;
    if (late_) return Late();
    return Run(true);
  }
  auto opened = node::validate::WhatOpened(promised_, answer.text);
  if (!opened.ok()) return Undecided(opened.error().message());
  if (!opened->why_not.empty()) return Decide(State::kFailed, std::move(opened->why_not));
  unserved_ = opened->unserved.size();
  facts_.remark = RemarkOn(used_, answer.handled);
  Decide(State::kOpened, {});
}

/// A hook or a device that hangs. Once may be chance on a machine that is busy.
void ContainerCheck::Late() {
  if (++late_runs_ < kLateRuns) return Unknown(kLate, std::max(after_nothing_.Next(), times_.late));
  Decide(State::kFailed, {kLate});
}

/// A failure is tried again; the rest holds until something changes.
void ContainerCheck::Decide(State state, std::vector<std::string> why) {
  busy_ = false;
  after_nothing_.Reset();
  ended_runs_ = 0;
  if (!late_) late_runs_ = 0;
  if (state == State::kFailed) {
    passed_.clear();
    next_ = control_.clock().Now() + after_failure_.Next();
  } else {
    passed_ = tried_;
  }
  facts_.unserved = state == State::kOpened ? unserved_ : 0;
  facts_.opened = state == State::kOpened ? promised_.devices() - unserved_ : 0;
  Show(state, std::move(why));
}

void ContainerCheck::Undecided(std::string why) { Unknown(std::move(why), after_nothing_.Next()); }

/// A kubelet looks at fixed times, and the next run takes as long as this one: after whole seconds
/// it would be met at the same moment each time. It is met by chance on a machine that is busy, so
/// that soon another one is tried; one that always is takes too long for this kubelet.
void ContainerCheck::Ended(const std::string& text) {
  const base::Duration back_off = after_nothing_.Next();
  const bool chance = ++ended_runs_ < kEndedRuns;
  std::uniform_int_distribution<base::Duration::rep> phase(0, times_.kubelet.count());
  Unknown(kEnded + text, (chance ? std::min(back_off, times_.ended) : times_.most) +
                             base::Duration(phase(random_)));
}

/// What was found before holds.
void ContainerCheck::Unknown(std::string why, base::Duration again) {
  busy_ = false;
  next_ = control_.clock().Now() + again;
  if (std::exchange(remark_, std::move(why)) != remark_)
    base::Log(base::kInfo, "no container tried the devices", {{"why", remark_}});
  if (facts_.state == State::kNotTried) facts_.why = {remark_};
  changed_();
}

/// What former runs say about when the next one is due.
void ContainerCheck::Forget() {
  after_failure_.Reset();
  after_nothing_.Reset();
  late_runs_ = ended_runs_ = 0;
}

void ContainerCheck::AgainAt(base::TimePoint time) {
  control_.Cancel(timer_);
  timer_ = control_.PostAfter(time - control_.clock().Now(), [this] {
    timer_ = 0;
    changed_();
  });
}

void ContainerCheck::Show(State state, std::vector<std::string> why) {
  facts_.state = state;
  facts_.why = std::move(why);
  changed_();
}

}  // namespace penstock::app
