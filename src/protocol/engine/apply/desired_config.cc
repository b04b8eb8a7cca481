// Implements what the plans of all engines share.
#include "protocol/engine/apply/desired_config.h"

#include <algorithm>

#include "protocol/engine/text/spelling.h"

namespace penstock::protocol::engine {

using base::Value;

namespace {

/// The first line of a file of our own.
constexpr char kHead[] = "# Written by Penstock; `penstock runtime unconfigure` removes it.\n";

bool IsZero(const Value& value) {
  switch (value.kind) {
    case Value::Kind::kBool: return !value.boolean;
    case Value::Kind::kInt:
    case Value::Kind::kFloat: return value.number == 0;
    case Value::Kind::kString: return value.text.empty();
    case Value::Kind::kList: return value.list->empty();
    default: return true;
  }
}

bool IsScalars(const Value& value) {
  return !value.list ||
         std::ranges::none_of(*value.list, [](const Value& item) { return item.map || item.list; });
}

base::Status CheckDesired(const DesiredConfig& desired) {
  for (const RuntimeHandler& handler : desired.handlers) {
    if (handler.name.empty()) return Error(Code::kInvalidArgument, "a runtime must have a name");
    if (handler.path.empty() || handler.path.front() != '/')
      return Error(Code::kInvalidArgument, "the path of runtime " + handler.name +
                                               " must be absolute: \"" + handler.path + "\"");
  }
  if (desired.default_handler.empty() || internal::HasHandler(desired, desired.default_handler))
    return {};
  return Error(Code::kInvalidArgument, "the default runtime " + desired.default_handler +
                                           " is not one of the configured runtimes");
}

}  // namespace

std::string_view Name(Engine engine) {
  switch (engine) {
    case Engine::kContainerd: return "containerd";
    case Engine::kCrio: return "crio";
    case Engine::kDocker: return "docker";
    case Engine::kPodman: return "podman";
  }
  return "";
}

base::Result<Goal> MakeGoal(const EngineFacts& facts, const DesiredConfig& desired) {
  TRY(CheckDesired(desired));
  if (desired == DesiredConfig{}) return Goal{};
  switch (facts.engine) {
    case Engine::kContainerd:
      return facts.style == ConfigStyle::kTemplated ? internal::TemplateGoal(facts, desired)
                                                    : internal::ContainerdGoal(facts, desired);
    case Engine::kCrio: return internal::CrioGoal(facts, desired);
    case Engine::kDocker: return internal::DockerGoal(facts, desired);
    case Engine::kPodman: return internal::PodmanGoal(facts, desired);
  }
  return Goal{};
}

std::string AsToml(const std::vector<Setting>& settings) {
  auto text = Apply(FileFormat::kToml, "", "", settings);
  return text.ok() ? *text : "";
}

namespace internal {

base::Status AddTarget(Goal& goal, FileFormat format, const SourceFile& file,
                       const std::vector<Setting>& settings) {
  const std::string before = file.text.value_or(format == FileFormat::kToml ? kHead : "");
  Target target{.path = file.path, .format = format, .before = file.text};
  auto after = Apply(format, before, file.path, settings);
  if (!after.ok() && after.error().code() == Code::kFailedPrecondition &&
      format == FileFormat::kToml)
    return Error(after.error().code(),
                 after.error().message() + "; add these lines manually:\n" + AsToml(settings));
  if (!after.ok()) return after.error();
  if (*after == before) return {};
  target.after = *std::move(after);
  target.settings = settings;
  goal.targets.push_back(std::move(target));
  return {};
}

std::vector<Setting> CopyOf(const Value* runtime, const Path& to) {
  std::vector<Setting> settings;
  if (runtime == nullptr || !runtime->map) return settings;
  for (const Value::Entry& entry : *runtime->map) {
    if (entry.value.map || IsZero(entry.value) || !IsScalars(entry.value)) continue;
    Path path = to;
    path.push_back(entry.key);
    settings.push_back({std::move(path), entry.value});
  }
  return settings;
}

bool HasHandler(const DesiredConfig& desired, const std::string& name) {
  return std::ranges::any_of(
      desired.handlers, [&name](const RuntimeHandler& handler) { return handler.name == name; });
}

bool AtLeast(const EngineFacts& facts, int major, int minor) {
  return facts.major > major || (facts.major == major && facts.minor >= minor);
}

}  // namespace internal

}  // namespace penstock::protocol::engine
