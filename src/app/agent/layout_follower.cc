#include "app/agent/layout_follower.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "api/compat/nvidia/mig_parted.h"
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

}  // namespace

std::vector<std::string> RequestLabels() {
  std::vector<std::string> keys;
  for (const device::Dialect* dialect : backend::Dialects())
    if (const device::PartTerms* terms = dialect->part_terms())
      keys.push_back(terms->request_label);
  return keys;
}

LayoutFollower::LayoutFollower(os::Loop& control, base::Executor& io,
                               node::inventory::Inventory& inventory,
                               node::change::Divisions& divisions)
    : control_(control), io_(io), inventory_(inventory), divisions_(divisions) {}

void LayoutFollower::Configure(const api::NodeConfig& config) {
  const bool other_choice = default_ != config.default_layout || by_label_ != config.parts_by_label;
  default_ = config.default_layout;
  by_label_ = config.parts_by_label;
  const bool other_file = std::exchange(path_, config.layouts_file) != config.layouts_file;
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
  value_ = default_;
  labelled_ = false;
  terms_ = nullptr;
  for (const device::Dialect* dialect : backend::Dialects()) {
    const device::PartTerms* terms = dialect->part_terms();
    if (terms == nullptr) continue;
    const auto label = labels_->find(terms->request_label);
    const bool given = label != labels_->end() && !label->second.empty();
    if (terms_ == nullptr || given) terms_ = terms;
    if (!given) continue;
    value_ = label->second;
    labelled_ = true;
    break;
  }
  if (!by_label_) value_.clear();
  if (value_.empty()) return divisions_.ForgetLabel();
  Follow();
}

void LayoutFollower::Suspend(bool suspended) {
  if (std::exchange(suspended_, suspended) && !suspended_) Choose();
}

void LayoutFollower::Begin() {
  begun_ = true;
  Follow();
}

void LayoutFollower::DevicesChanged() {
  const auto generation = inventory_.published().Get()->facts_generation;
  if (std::exchange(facts_generation_, generation) != generation && waits_for_devices_) Follow();
}

base::Result<api::Layouts> LayoutFollower::Layouts() const {
  if (!path_.empty()) {
    if (!text_->ok()) return text_->error();
    return api::compat::TranslateMigParted(**text_, path_, terms_->read_profile);
  }
  std::vector<const device::Facts*> devices;
  const auto snapshot = inventory_.published().Get();
  for (const node::inventory::Entry& entry : snapshot->devices)
    if (entry.facts->parent.empty() && !entry.facts->profiles.empty())
      devices.push_back(entry.facts.get());
  return node::partition::GenerateLayouts(devices).layouts;
}

base::Result<api::Layout> LayoutFollower::Find(const std::string& name) const {
  ASSIGN(const api::Layouts layouts, Layouts());
  if (const api::Layout* layout = layouts.Find(name)) return *layout;
  const std::string where =
      path_.empty() ? "the layouts made from this node's devices" : "the layouts in " + path_;
  const auto names = layouts.names();
  const auto near = base::Nearest(name, names);
  return Error(Code::kNotFound,
               "\"" + base::Printable(name) + "\" is not among " + where +
                   (near ? "; did you mean \"" + *near + "\"?" : ": " + base::Join(names, ", ")));
}

bool LayoutFollower::CanDivide() const {
  const auto snapshot = inventory_.published().Get();
  return std::ranges::any_of(snapshot->devices, [this](const node::inventory::Entry& entry) {
    const auto is_mode = [this](const device::Mode& mode) { return mode.name == terms_->mode; };
    return !entry.facts->profiles.empty() || std::ranges::any_of(entry.facts->modes, is_mode);
  });
}

void LayoutFollower::Follow() {
  if (!begun_ || suspended_ || value_.empty() || (!path_.empty() && !text_)) return;
  if (!labelled_ && !CanDivide()) {
    waits_for_devices_ = true;
    return divisions_.ForgetLabel();
  }
  const auto layout = Find(value_);
  // Without devices that can be divided, no layout can be made: they may come, and some drivers
  // report profiles only in their mode.
  waits_for_devices_ = path_.empty() && !layout.ok();
  if (!layout.ok()) return divisions_.Refuse(value_, kSource, layout.error().message());
  const node::change::AppliedLayout& now = divisions_.applied();
  const bool followed = now.label == value_;
  if (followed && (now.source != kSource || now.layout == *layout)) return divisions_.Accept();
  divisions_.Apply(
      {.layout = *layout, .source = kSource, .wait = node::change::kStanding, .label = value_},
      nullptr, nullptr);
}

std::map<std::string, std::string> LayoutFollower::Labels() const {
  const node::change::LayoutState& state = divisions_.state();
  if (terms_ == nullptr || value_.empty() || state.source != kSource || state.state.empty())
    return {};
  return {{terms_->state_label, state.state}};
}

}  // namespace penstock::app
