// k3s and RKE2 make containerd's file anew at each start: from their own template, to which one of ours can add whole tables, or with
// drop-ins where they import a folder (docs.k3s.io, advanced, "Configuring containerd").
#include "edge/engine/plan.h"
#include "edge/engine/spelling.h"

namespace penstock::edge::engine::internal {
namespace {

using base::Code;
using base::Error;
using base::Value;

constexpr char kBase[] = "{{ template \"base\" . }}\n";
constexpr char kHead[] = "{{/* Written by Penstock; `penstock runtime unconfigure` removes it. */}}\n";

Error ByHand(const Facts& facts, const std::string& why, const std::vector<Setting>& settings) {
  return Error(Code::kFailedPrecondition, why + "; have " + facts.template_file.path + " make these lines:\n" + AsToml(settings));
}

/// A template may add tables that the base does not have; a key in one of those that it has would make that table stand there twice.
base::Status CheckSettings(const Facts& facts, const Containerd& containerd, const Wish& wish, const std::vector<Setting>& settings) {
  const Path cri = {"plugins", containerd.section};
  for (const Setting& setting : settings)
    if (setting.path.size() == cri.size() + 1 && setting.path.back() == "enable_cdi")
      return ByHand(facts, facts.name + " writes plugins." + TomlKey(containerd.section) + " itself, where CDI is off", settings);
  if (!wish.default_handler.empty())
    return Error(Code::kFailedPrecondition, facts.name + " decides on its default runtime itself: write `default-runtime: " +
                                                wish.default_handler + "` into /etc/rancher/" + facts.name + "/config.yaml");
  return {};
}

/// k3s and RKE2 find a runtime of this name by themselves where its program lies on their way.
base::Result<bool> IsThere(const Facts& facts, const Containerd& containerd, const Handler& handler, const std::vector<Setting>& settings) {
  const Path top = {"plugins", containerd.section, "containerd", "runtimes", handler.name};
  const Value* theirs = FindAt(containerd.main, top);
  if (theirs == nullptr) return false;
  const Value* options = theirs->Find("options");
  const Value* binary = options == nullptr ? nullptr : options->Find("BinaryName");
  if (binary != nullptr && binary->text == handler.path) return true;
  return ByHand(
      facts,
      facts.name + " has a runtime " + handler.name + " already, which runs " + (binary == nullptr ? "another program" : binary->text),
      settings);
}

}  // namespace

base::Result<Goal> TemplateGoal(const Facts& facts, const Wish& wish) {
  if (!facts.main.text)
    return Error(Code::kFailedPrecondition,
                 facts.main.path + " is not there: " + facts.name + " makes it when it starts; configure it once it runs");
  if (AtLeast(facts, 2, 1)) {
    ASSIGN(const Goal by_drop_in, ContainerdGoal(facts, wish));
    const auto edits_main = [&facts](const Target& target) { return target.path == facts.main.path; };
    bool main_edited = false;
    for (const Target& target : by_drop_in.targets) main_edited = main_edited || edits_main(target);
    if (!main_edited) return by_drop_in;
  }
  Goal goal;
  ASSIGN(const Containerd containerd, ReadContainerd(facts));
  const std::vector<Setting> settings = CriSettings(facts, containerd, wish, goal);
  TRY(CheckSettings(facts, containerd, wish, settings));
  bool missing = false;
  for (const Handler& handler : wish.handlers) {
    // What our own template made of the main file would go with it.
    if (HasHandler(facts.standing, handler.name)) {
      missing = true;
      continue;
    }
    ASSIGN(const bool there, IsThere(facts, containerd, handler, settings));
    missing = missing || !there;
  }
  if (!missing) return goal;
  if (facts.template_file.text)
    return ByHand(facts, facts.template_file.path + " is somebody's own template, which is left alone", settings);
  goal.targets.push_back(
      {.path = facts.template_file.path, .format = Format::kText, .after = kHead + std::string(kBase) + "\n" + AsToml(settings)});
  return goal;
}

}  // namespace penstock::edge::engine::internal
