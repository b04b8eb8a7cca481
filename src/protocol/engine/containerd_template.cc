// Plans changes for k3s and RKE2, which make containerd's file from a template at each start: adds
// whole tables through a template of our own, or uses drop-ins where they import a folder
// (docs.k3s.io, advanced, "Configuring containerd").
#include "protocol/engine/apply/desired_config.h"
#include "protocol/engine/text/spelling.h"

namespace penstock::protocol::engine::internal {
namespace {

using base::Value;

constexpr char kBase[] = "{{ template \"base\" . }}\n";
constexpr char kHead[] =
    "{{/* Written by Penstock; `penstock runtime unconfigure` removes it. */}}\n";

Error NeedsManualEdit(const EngineFacts& facts, const std::string& why,
                      const std::vector<Setting>& settings) {
  return Error(Code::kFailedPrecondition, why + "; change " + facts.template_file.path +
                                              " to produce these lines:\n" + AsToml(settings));
}

/// A template may add tables that the base lacks. A key in one of the base's tables would define
/// that table twice.
base::Status CheckSettings(const EngineFacts& facts, const Containerd& containerd,
                           const DesiredConfig& desired, const std::vector<Setting>& settings) {
  const Path cri = {"plugins", containerd.section};
  for (const Setting& setting : settings)
    if (setting.path.size() == cri.size() + 1 && setting.path.back() == "enable_cdi")
      return NeedsManualEdit(
          facts,
          facts.name + " writes plugins." + TomlKey(containerd.section) + " itself, with CDI off",
          settings);
  if (!desired.default_handler.empty())
    return Error(Code::kFailedPrecondition,
                 facts.name + " chooses its default runtime itself: write `default-runtime: " +
                     desired.default_handler + "` into /etc/rancher/" + facts.name +
                     "/config.yaml");
  return {};
}

/// k3s and RKE2 detect a runtime of this name if its program is in a folder where they look.
base::Result<bool> IsThere(const EngineFacts& facts, const Containerd& containerd,
                           const RuntimeHandler& handler, const std::vector<Setting>& settings) {
  const Path top = {"plugins", containerd.section, "containerd", "runtimes", handler.name};
  const Value* table = FindAt(containerd.main, top);
  if (table == nullptr) return false;
  const Value* options = table->Find("options");
  const Value* binary = options == nullptr ? nullptr : options->Find("BinaryName");
  if (binary != nullptr && binary->text == handler.path) return true;
  return NeedsManualEdit(facts,
                         facts.name + " has a runtime " + handler.name + " already, which runs " +
                             (binary == nullptr ? "another program" : binary->text),
                         settings);
}

}  // namespace

base::Result<Goal> TemplateGoal(const EngineFacts& facts, const DesiredConfig& desired) {
  if (!facts.main.text)
    return Error(Code::kFailedPrecondition,
                 facts.main.path + " does not exist: " + facts.name +
                     " creates it when it starts; configure it once it runs");
  if (AtLeast(facts, 2, 1)) {
    ASSIGN(const Goal by_drop_in, ContainerdGoal(facts, desired));
    const auto edits_main = [&facts](const Target& target) {
      return target.path == facts.main.path;
    };
    bool main_edited = false;
    for (const Target& target : by_drop_in.targets) main_edited = main_edited || edits_main(target);
    if (!main_edited) return by_drop_in;
  }
  Goal goal;
  ASSIGN(const Containerd containerd, ReadContainerd(facts));
  const std::vector<Setting> settings = CriSettings(facts, containerd, desired, goal);
  TRY(CheckSettings(facts, containerd, desired, settings));
  bool missing = false;
  for (const RuntimeHandler& handler : desired.handlers) {
    // Our own template made this runtime in the main file, so it would disappear with the template.
    if (HasHandler(facts.standing, handler.name)) {
      missing = true;
      continue;
    }
    ASSIGN(const bool there, IsThere(facts, containerd, handler, settings));
    missing = missing || !there;
  }
  if (!missing) return goal;
  if (facts.template_file.text)
    return NeedsManualEdit(
        facts, facts.template_file.path + " is a custom template, which is not changed", settings);
  goal.targets.push_back({.path = facts.template_file.path,
                          .format = FileFormat::kText,
                          .after = kHead + std::string(kBase) + "\n" + AsToml(settings)});
  return goal;
}

}  // namespace penstock::protocol::engine::internal
