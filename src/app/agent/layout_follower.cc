#include "app/agent/layout_follower.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "backend/all.h"
#include "base/core/printable.h"
#include "base/core/strings.h"
#include "base/log.h"
#include "node/partition/generate.h"
#include "os/core/file.h"

namespace penstock::app {
namespace {

constexpr std::size_t kLongestFile = 4u << 20;
constexpr char kSource[] = "label";

device::LayoutFailure FailureOf(const api::compat::WrongProfile& wrong) {
  if (wrong.compute_mode) return device::LayoutFailure::kNoComputeMode;
  if (wrong.memory_mode) return device::LayoutFailure::kNoMemoryMode;
  return device::LayoutFailure::kImpossible;
}

device::LayoutStage StageOf(const std::string& state) {
  if (state == "success") return device::LayoutStage::kSuccess;
  return state == "failed" ? device::LayoutStage::kFailed : device::LayoutStage::kPending;
}

}  // namespace

std::vector<std::string> RequestLabels() {
  std::vector<std::string> keys;
  for (const device::Dialect* dialect : backend::Dialects())
    if (const device::PartTerms* terms = dialect->part_terms()) {
      keys.push_back(terms->request_label);
      if (!terms->again_label.empty()) keys.push_back(terms->again_label);
    }
  return keys;
}

LayoutFollower::LayoutFollower(os::Loop& control, base::Executor& io,
                               node::inventory::Inventory& inventory,
                               node::change::Divisions& divisions, const device::Dialect& dialect)
    : control_(control),
      io_(io),
      inventory_(inventory),
      divisions_(divisions),
      dialect_(dialect),
      terms_(*dialect.part_terms()),
      program_(api::compat::FindLayoutProgram(terms_.program)) {}

void LayoutFollower::Configure(const api::NodeConfig& config) {
  const bool has_default = program_ != nullptr && program_->by_default != nullptr;
  const std::string by_default = has_default ? config.*program_->by_default : "";
  const std::string file = program_ == nullptr ? "" : config.*program_->layouts;
  const bool other_choice = default_ != by_default || by_label_ != config.parts_by_label;
  default_ = by_default;
  by_label_ = config.parts_by_label;
  const bool other_file = std::exchange(path_, file) != file;
  if (other_file) {
    text_.reset();
    watch_.reset();
  }
  if (other_choice) Choose();
  if (!other_file) return;
  if (path_.empty()) return Follow();
  watch_ = std::make_unique<os::PathWatch>(control_, path_, [this] { Read(); });
  Read();
}

void LayoutFollower::Read() {
  const auto take = lifetime_.Guard([this, path = path_](const base::Result<std::string>& text) {
    if (path != path_) return;
    text_ = text;
    Follow();
  });
  io_.Post([take, &control = control_, path = path_] {
    control.Post([take, text = os::ReadFile(path, kLongestFile)]() mutable { take(text); });
  });
}

void LayoutFollower::Take(const std::map<std::string, std::string>& labels) {
  labels_ = labels;
  Choose();
}

void LayoutFollower::Choose() {
  if (!labels_ || suspended_) return;
  const auto repeat = labels_->find(terms_.again_label);
  std::string again = repeat != labels_->end() ? repeat->second : "";
  repeats_ = repeats_ || (again_ && again != *again_ && !again.empty());
  again_ = std::move(again);
  const auto label = labels_->find(terms_.request_label);
  labelled_ = label != labels_->end() && !label->second.empty();
  value_ = labelled_ ? label->second : default_;
  if (!by_label_) value_.clear();
  if (value_.empty()) {
    asked_.clear();
    repeats_ = false;
    return divisions_.ForgetLabel();
  }
  Follow();
}

void LayoutFollower::SetServices(const api::compat::NodeServices& services) {
  if (program_ == nullptr || program_->service == nullptr) return;
  if (std::exchange(suspended_, !(services.*program_->service)) && !suspended_) Choose();
}

void LayoutFollower::Begin() {
  begun_ = true;
  Follow();
}

void LayoutFollower::DevicesChanged() {
  const auto generation = inventory_.published().Get()->facts_generation;
  if (std::exchange(facts_generation_, generation) != generation && waits_for_devices_) Follow();
}

/// The layouts made from this node's devices.
api::Layouts LayoutFollower::Made() const {
  std::vector<const device::Facts*> devices;
  const auto snapshot = inventory_.published().Get();
  for (const node::inventory::Entry& entry : snapshot->devices)
    if (entry.facts->parent.empty() && entry.facts->vendor == dialect_.vendor())
      devices.push_back(entry.facts.get());
  return node::partition::LayoutsFor(devices, terms_);
}

LayoutFollower::Found LayoutFollower::FindIn(const api::Layouts& layouts,
                                             const std::string& name) const {
  if (const api::Layout* layout = layouts.Find(name)) return {*layout};
  const std::string where =
      path_.empty() ? "the layouts made from this node's devices" : "the layouts in " + path_;
  const auto names = layouts.names();
  const auto near = base::Nearest(name, names);
  return {Error(Code::kNotFound,
                "\"" + base::Printable(name) + "\" is not among " + where +
                    (near ? "; did you mean \"" + *near + "\"?" : ": " + base::Join(names, ", "))),
          device::LayoutFailure::kUnknown};
}

/// A layout that is not asked for may be wrong.
LayoutFollower::Found LayoutFollower::Find(const std::string& name) const {
  if (path_.empty()) return FindIn(Made(), name);
  if (!text_->ok()) return {text_->error(), device::LayoutFailure::kNoFile};
  const auto file = program_->read(**text_, path_, terms_.read_profile);
  if (!file.ok()) return {file.error(), device::LayoutFailure::kNotReadable};
  for (const std::string& remark : file->remarks)
    base::Log(base::kInfo, "file of layouts", {{"file", path_}, {"remark", remark}});
  if (const auto wrong = file->wrong.find(name); wrong != file->wrong.end())
    return {Error(Code::kInvalidArgument, wrong->second.text), FailureOf(wrong->second)};
  return FindIn(file->layouts, name);
}

bool LayoutFollower::CanDivide() const {
  const auto snapshot = inventory_.published().Get();
  return std::ranges::any_of(snapshot->devices, [this](const node::inventory::Entry& entry) {
    const auto is_mode = [this](const device::Mode& mode) { return mode.name == terms_.mode; };
    return entry.facts->vendor == dialect_.vendor() &&
           (!entry.facts->profiles.empty() || std::ranges::any_of(entry.facts->modes, is_mode));
  });
}

void LayoutFollower::Follow() {
  if (!begun_ || suspended_ || value_.empty() || (!path_.empty() && !text_)) return;
  if (!labelled_ && !CanDivide()) {
    waits_for_devices_ = true;
    return divisions_.ForgetLabel();
  }
  if (std::exchange(asked_, value_) != value_) reported_.clear();
  const bool repeat = std::exchange(repeats_, false);
  const Found found = Find(value_);
  failure_ = found.failure;
  // Without devices that can be divided, no layout can be made: they may come, and some drivers
  // report profiles only in their mode.
  waits_for_devices_ = path_.empty() && !found.layout.ok();
  if (!found.layout.ok()) return divisions_.Refuse(value_, kSource, found.layout.error().message());
  const node::change::AppliedLayout& now = divisions_.applied();
  const bool followed = now.label == value_ && !repeat;
  if (followed && (now.source != kSource || now.layout == *found.layout))
    return divisions_.Accept();
  changed_ = false;
  reported_.clear();
  divisions_.Apply({.layout = *found.layout,
                    .source = kSource,
                    .wait = node::change::kStanding,
                    .label = value_},
                   nullptr, nullptr);
}

std::map<std::string, std::string> LayoutFollower::Labels() const {
  const node::change::LayoutState& state = divisions_.state();
  if (value_.empty() || state.source != kSource || state.state.empty()) return {};
  return {{terms_.state_label, terms_.state_words.at(StageOf(state.state))}};
}

std::optional<LayoutEvent> LayoutFollower::TakeEvent() {
  const node::change::LayoutState& state = divisions_.state();
  if (!terms_.event || value_.empty() || state.source != kSource || state.state.empty() ||
      state.layout != value_)
    return std::nullopt;
  const device::LayoutStage stage = StageOf(state.state);
  changed_ = changed_ || std::ranges::any_of(state.devices, [](const auto& one) {
               return one.state == "dividing";
             });
  // That it is tried again is no event.
  if (stage == device::LayoutStage::kPending && !reported_.empty()) return std::nullopt;
  auto failure = failure_;
  if (stage == device::LayoutStage::kFailed && failure == device::LayoutFailure::kNone) {
    const bool possible = std::ranges::any_of(state.devices, [](const auto& one) {
      return one.state == "failed" || one.state == "waiting";
    });
    failure = possible ? device::LayoutFailure::kNotDone : device::LayoutFailure::kImpossible;
  }
  std::string reason = terms_.event(stage, failure, changed_);
  if (std::exchange(reported_, reason) == reason) return std::nullopt;
  return LayoutEvent{stage == device::LayoutStage::kFailed, std::move(reason),
                     state.layout + (state.reason.empty() ? "" : ": " + state.reason)};
}

}  // namespace penstock::app
