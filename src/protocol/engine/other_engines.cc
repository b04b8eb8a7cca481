// Plans changes for CRI-O (drop-ins, merged key by key, crio.conf.d(5)), docker (one JSON file) and
// podman (reads CDI specifications without configuration; drop-ins, merged key by key,
// containers.conf(5)).
#include "protocol/engine/apply/desired_config.h"

namespace penstock::protocol::engine::internal {
namespace {

using base::Value;

Error TooOld(const EngineFacts& facts, const std::string& first) {
  return Error(Code::kFailedPrecondition, facts.name + " " + std::to_string(facts.major) + "." +
                                              std::to_string(facts.minor) +
                                              " does not support CDI (" + first +
                                              " and newer do): use a newer version, or omit "
                                              "--cdi.enabled and run containers with the runtime");
}

void Want(Goal& goal, std::vector<Setting>& settings, Setting setting) {
  goal.effective.push_back(setting);
  goal.may_change.push_back(setting.path);
  settings.push_back(std::move(setting));
}

/// Returns the default runtime's settings, which a further runtime needs as well (monitor_path,
/// allowed_annotations).
const Value* CrioModel(const EngineFacts& facts, const Value& effective,
                       const DesiredConfig& desired) {
  const Value* runtimes = FindAt(effective, {"crio", "runtime", "runtimes"});
  if (runtimes == nullptr) return nullptr;
  const Value* by_default = FindAt(effective, {"crio", "runtime", "default_runtime"});
  for (const std::string& name : {by_default == nullptr ? std::string() : by_default->text,
                                  std::string("crun"), std::string("runc")}) {
    if (HasHandler(desired, name) || HasHandler(facts.standing, name)) continue;
    if (const Value* runtime = runtimes->Find(name)) return runtime;
  }
  return nullptr;
}

}  // namespace

base::Result<Goal> CrioGoal(const EngineFacts& facts, const DesiredConfig& desired) {
  Goal goal;
  if (desired.cdi && facts.major > 0 && !AtLeast(facts, 1, 23)) return TooOld(facts, "1.23");
  if (desired.cdi) goal.remarks.push_back(facts.name + " always has CDI enabled");
  ASSIGN(const Value effective,
         Read(FileFormat::kToml, facts.effective ? *facts.effective : facts.main.text.value_or(""),
              facts.main.path));
  const Value* model = CrioModel(facts, effective, desired);
  std::vector<Setting> settings;
  for (const RuntimeHandler& handler : desired.handlers) {
    const Path top = {"crio", "runtime", "runtimes", handler.name};
    const auto at = [&top](const std::string& key) {
      Path path = top;
      path.push_back(key);
      return path;
    };
    for (Setting& setting : CopyOf(model, top))
      if (setting.path.back() != "runtime_path" && setting.path.back() != "runtime_type")
        Want(goal, settings, std::move(setting));
    Want(goal, settings, {at("runtime_path"), Text(handler.path)});
    Want(goal, settings, {at("runtime_type"), Text("oci")});
    goal.may_change.push_back(top);
  }
  if (!desired.default_handler.empty())
    Want(goal, settings, {{"crio", "runtime", "default_runtime"}, Text(desired.default_handler)});
  if (!settings.empty())
    TRY(AddTarget(goal, FileFormat::kToml, facts.drop_in.path.empty() ? facts.main : facts.drop_in,
                  settings));
  return goal;
}

base::Result<Goal> DockerGoal(const EngineFacts& facts, const DesiredConfig& desired) {
  Goal goal;
  if (facts.drop_in_wanted)
    return Error(Code::kInvalidArgument,
                 "docker reads one file and no drop-ins: omit --drop-in-config");
  if (desired.cdi && facts.major > 0 && facts.major < 25) return TooOld(facts, "25.0");
  ASSIGN(const Value document,
         Read(FileFormat::kJson, facts.main.text.value_or(""), facts.main.path));
  std::vector<Setting> settings;
  for (const RuntimeHandler& handler : desired.handlers) {
    Want(goal, settings, {{"runtimes", handler.name, "path"}, Text(handler.path)});
    Want(goal, settings, {{"runtimes", handler.name, "args"}, Texts({})});
  }
  if (!desired.default_handler.empty())
    Want(goal, settings, {{"default-runtime"}, Text(desired.default_handler)});
  if (desired.cdi) {
    if (AtLeast(facts, 28, 2) && FindAt(document, {"features", "cdi"}) == nullptr) {
      goal.remarks.push_back(facts.name + " already has CDI enabled");
    } else {
      Want(goal, settings, {{"features", "cdi"}, Flag(true)});
    }
  }
  if (!settings.empty()) TRY(AddTarget(goal, FileFormat::kJson, facts.main, settings));
  return goal;
}

base::Result<Goal> PodmanGoal(const EngineFacts& facts, const DesiredConfig& desired) {
  Goal goal;
  if (desired.cdi && facts.major > 0 && !AtLeast(facts, 4, 1)) return TooOld(facts, "4.1");
  if (desired.cdi) goal.remarks.push_back("podman reads CDI specifications without configuration");
  std::vector<Setting> settings;
  for (const RuntimeHandler& handler : desired.handlers)
    Want(goal, settings, {{"engine", "runtimes", handler.name}, Texts({handler.path})});
  if (!desired.default_handler.empty())
    Want(goal, settings, {{"engine", "runtime"}, Text(desired.default_handler)});
  if (!settings.empty())
    TRY(AddTarget(goal, FileFormat::kToml, facts.drop_in.path.empty() ? facts.main : facts.drop_in,
                  settings));
  return goal;
}

}  // namespace penstock::protocol::engine::internal
