// What the env and the args of ClusterPolicy's operands mean to the agent.
#include <algorithm>
#include <array>

#include "api/compat/nvidia/cluster_policy_fields.h"
#include "api/compat/nvidia/exporter_options.h"
#include "base/core/printable.h"
#include "base/core/strings.h"

namespace penstock::api::compat::internal {

namespace {

using base::Value;

/// A variable of an operand that is no setting of the device plugin or the exporter.
struct KnownVariable {
  std::string_view name;
  FieldFate fate = FieldFate::kElsewhere;
  std::string_view text;
  std::string_view quiet = {};  ///< the value that asks for nothing
};

constexpr std::string_view kMountsDriver =
    "The agent mounts the driver and its devices itself, without NVIDIA's container runtime.";
constexpr std::string_view kNoConnections =
    "The agent connects only to its node and the API server, without a proxy.";

constexpr KnownVariable kCommon[] = {
    {"NVIDIA_VISIBLE_DEVICES", FieldFate::kElsewhere, kMountsDriver, "all"},
    {"NVIDIA_DRIVER_CAPABILITIES", FieldFate::kElsewhere, kMountsDriver, "all"},
    {"HTTP_PROXY", FieldFate::kElsewhere, kNoConnections},
    {"HTTPS_PROXY", FieldFate::kElsewhere, kNoConnections},
    {"NO_PROXY", FieldFate::kElsewhere, kNoConnections},
};

constexpr std::string_view kFindsEngine =
    "The agent asks the kubelet's engine for its configuration, and adds a file of its own to it: "
    "the path is not needed.";
constexpr std::string_view kNoDefault =
    "The handler nvidia does not become the engine's default: containers that request GPUs get "
    "them by CDI under any handler. A pod that uses GPUs without requesting them names the "
    "RuntimeClass in runtimeClassName; on a single node, penstock runtime configure "
    "--set-as-default makes the handler the default, and the agent leaves it so.";
constexpr std::string_view kRuntimeFile =
    "This setting of the container runtime is in /etc/nvidia-container-runtime/config.toml of each "
    "node.";

constexpr KnownVariable kToolkit[] = {
    {"CONTAINERD_CONFIG", FieldFate::kElsewhere, kFindsEngine},
    {"CRIO_CONFIG", FieldFate::kElsewhere, kFindsEngine},
    {"DOCKER_CONFIG", FieldFate::kElsewhere, kFindsEngine},
    {"RUNTIME_CONFIG", FieldFate::kElsewhere, kFindsEngine},
    {"RUNTIME_DROP_IN_CONFIG", FieldFate::kElsewhere, kFindsEngine},
    {"CONTAINERD_DROP_IN_CONFIG", FieldFate::kElsewhere, kFindsEngine},
    {"CRIO_DROP_IN_CONFIG", FieldFate::kElsewhere, kFindsEngine},
    {"RUNTIME_CONFIG_SOURCE", FieldFate::kElsewhere, kFindsEngine},
    {"CRIO_CONFIG_MODE", FieldFate::kElsewhere,
     "CRI-O gets a handler, no OCI hook: containers get GPUs by CDI.", "config"},
    {"RUNTIME", FieldFate::kElsewhere, "The agent of each node finds the engine of its node."},
    {"CONTAINERD_SET_AS_DEFAULT", FieldFate::kElsewhere, kNoDefault, "false"},
    {"CRIO_SET_AS_DEFAULT", FieldFate::kElsewhere, kNoDefault, "false"},
    {"DOCKER_SET_AS_DEFAULT", FieldFate::kElsewhere, kNoDefault, "false"},
    {"NVIDIA_RUNTIME_SET_AS_DEFAULT", FieldFate::kElsewhere, kNoDefault, "false"},
    {"CONTAINERD_RUNTIME_CLASS", FieldFate::kElsewhere,
     "The engine's handler is called nvidia; operator.runtimeClass names the RuntimeClass.",
     "nvidia"},
    {"NVIDIA_RUNTIME_NAME", FieldFate::kElsewhere,
     "The engine's handler is called nvidia; operator.runtimeClass names the RuntimeClass.",
     "nvidia"},
    {"CONTAINERD_RESTART_MODE", FieldFate::kElsewhere,
     "The agent restarts an engine by its systemd unit, and only if its effective settings "
     "change."},
    {"RESTART_MODE", FieldFate::kElsewhere,
     "The agent restarts an engine by its systemd unit, and only if its effective settings "
     "change."},
    {"NRI_SOCKET", FieldFate::kNotServed, "Devices are not injected by an NRI plugin yet."},
    {"ENABLE_NRI_PLUGIN", FieldFate::kNotServed, "Devices are not injected by an NRI plugin yet.",
     "false"},
    {"CDI_ENABLED", FieldFate::kElsewhere, "cdi.enabled is the setting of all operands.", "true"},
    // The quiet values are what the runtime does with pods where that file does not set it
    // (hook/runtime/nvidia/config.h). What protects a node is never quiet: the file may say
    // otherwise.
    {"ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED", FieldFate::kElsewhere, kRuntimeFile},
    {"ACCEPT_NVIDIA_VISIBLE_DEVICES_AS_VOLUME_MOUNTS", FieldFate::kElsewhere, kRuntimeFile, "true"},
    {"NVIDIA_CONTAINER_RUNTIME_DEBUG", FieldFate::kElsewhere, kRuntimeFile, "/dev/null"},
    {"NVIDIA_CONTAINER_RUNTIME_LOG_LEVEL", FieldFate::kElsewhere, kRuntimeFile, "info"},
    {"NVIDIA_CONTAINER_RUNTIME_MODE", FieldFate::kElsewhere, kRuntimeFile, "auto"},
    {"NVIDIA_CONTAINER_RUNTIME_MODES_CDI_ANNOTATION_PREFIXES", FieldFate::kElsewhere, kRuntimeFile,
     "cdi.k8s.io/"},
};

constexpr char kStopsServices[] = "WITH_SHUTDOWN_HOST_GPU_CLIENTS";
constexpr std::string_view kNamesServices =
    "migManager.gpuClientsConfig.name names the ConfigMap with the services of the host that are "
    "stopped.";

constexpr KnownVariable kLayouts[] = {
    {"WITH_REBOOT", FieldFate::kNotServed,
     "Nodes are not rebooted for a division; the node's state says where one needs a reset that "
     "is not possible.",
     "false"},
    {kStopsServices, FieldFate::kElsewhere,
     "No service of the host is stopped by default: name a ConfigMap with a list of them in "
     "migManager.gpuClientsConfig.name."},
    {"GPU_CLIENTS_FILE", FieldFate::kElsewhere, kNamesServices},
    {"HOST_GPU_CLIENTS_FILE", FieldFate::kElsewhere, kNamesServices},
    {"CONFIG_FILE", FieldFate::kElsewhere, "migManager.config.name names the ConfigMap."},
    {"DEFAULT_CONFIG", FieldFate::kElsewhere, "migManager.config.default names the layout."},
    {"DEFAULT_GPU_CLIENTS_FILE", FieldFate::kElsewhere, kNamesServices},
    {"HOST_KUBELET_SYSTEMD_SERVICE", FieldFate::kElsewhere,
     "The kubelet is not stopped: a GPU is withdrawn from it before it is divided."},
    {"WITH_NVIDIA_DRIVER_ROOT", FieldFate::kElsewhere,
     "hostPaths.driverInstallDir is the driver's root for all."},
};

constexpr KnownVariable kValidator[] = {
    {"WITH_WORKLOAD", FieldFate::kElsewhere,
     "No pods are started on a node to validate it: the agent checks its node itself.", "false"},
    {"DISABLE_DEV_CHAR_SYMLINK_CREATION", FieldFate::kElsewhere,
     "No links are created in /dev/char: runc 1.1.7 and newer does not need them.", "true"},
    {"DRIVER_VALIDATION_SKIP_GPU_INIT", FieldFate::kElsewhere,
     "The agent opens the driver and reads each GPU; a GPU that cannot be read is not offered.",
     "false"},
};

constexpr KnownVariable kExporterOnly[] = {
    {"DCGM_EXPORTER_COLLECTORS", FieldFate::kElsewhere,
     "A file of dcgm-exporter's image, which the agent does not have: dcgmExporter.config.name "
     "names a ConfigMap with the counters."},
};

/// As Go's strconv.ParseBool, by which the operands read switches.
bool IsOff(std::string_view value) {
  static constexpr std::array<std::string_view, 6> kOff = {"0",     "f",     "F",
                                                           "false", "False", "FALSE"};
  return std::ranges::find(kOff, value) != kOff.end();
}

struct Variable {
  const std::string& name;
  std::string value;
};

template <typename Take>
void ForEachVariable(const Value& environment, Take take) {
  for (const Value& item : *environment.list) {
    const Value* value = item.Find("value");
    take(Variable{item.Find("name")->text, value != nullptr ? value->text : ""});
  }
}

/// Answers a variable that is no setting of a program that the agent replaces.
void AnswerVariable(PolicyWork& work, const Variable& variable,
                    std::span<const KnownVariable> known) {
  for (const auto& table : {known, std::span<const KnownVariable>(kCommon)})
    for (const KnownVariable& one : table) {
      if (one.name != variable.name) continue;
      if (one.quiet.empty() || one.quiet != variable.value)
        work.Answer(variable.name, one.fate, one.text);
      return;
    }
  work.Answer(variable.name, FieldFate::kUnknown,
              "Is not a variable that has a meaning here; agent.env of a Penstock object sets "
              "variables of the agent.");
}

const PluginOption* PluginOptionOf(std::string_view name, bool variable) {
  for (const PluginOption& option : PluginOptions()) {
    const auto& names = variable ? option.environment : option.flags;
    if (std::ranges::find(names, name) != names.end()) return &option;
  }
  return nullptr;
}

void GivePluginVariables(PolicyWork& work, const Value& value, std::vector<Given>& settings) {
  ForEachVariable(value, [&](const Variable& variable) {
    if (const PluginOption* option = PluginOptionOf(variable.name, true)) {
      settings.push_back({std::string(NameOf(*option)), variable.value,
                          work.field + "[" + base::Printable(variable.name) + "]"});
    } else {
      AnswerVariable(work, variable, {});
    }
  });
}

/// A flag with its value, from "--flag=value", "--flag value", "--switch".
struct Argument {
  std::string flag;
  std::optional<std::string> value;
};

/// `takes_value`: whether the next argument is this flag's value.
template <typename TakesValue>
std::vector<Argument> SplitArguments(const std::vector<std::string>& arguments,
                                     TakesValue takes_value) {
  std::vector<Argument> split;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& one = arguments[i];
    const auto equals = one.find('=');
    Argument argument{one.substr(0, equals), std::nullopt};
    if (equals != std::string::npos) {
      argument.value = one.substr(equals + 1);
    } else if (takes_value(argument.flag) && i + 1 < arguments.size()) {
      argument.value = arguments[++i];
    }
    split.push_back(std::move(argument));
  }
  return split;
}

std::vector<std::string> TextsIn(const Value& list) {
  std::vector<std::string> texts;
  for (const Value& item : *list.list) texts.push_back(item.text);
  return texts;
}

void UnknownArgument(PolicyWork& work, const std::string& flag) {
  work.Answer(flag, FieldFate::kUnknown, "Is not a flag of the operand, and has no effect.");
}

void GivePluginArguments(PolicyWork& work, const Value& value, std::vector<Given>& settings) {
  const auto takes_value = [](const std::string& flag) {
    const PluginOption* option = PluginOptionOf(flag, false);
    return option != nullptr && !option->on_off;
  };
  for (const Argument& one : SplitArguments(TextsIn(value), takes_value)) {
    const PluginOption* option = PluginOptionOf(one.flag, false);
    if (option == nullptr) {
      UnknownArgument(work, one.flag);
    } else {
      settings.push_back({std::string(NameOf(*option)), one.value.value_or("true"),
                          work.field + "[" + one.flag + "]"});
    }
  }
}

const ExporterOption* ExporterOptionOf(std::string_view name, bool variable) {
  for (const ExporterOption& option : ExporterOptions())
    if (variable ? option.environment == name
                 : std::ranges::find(option.flags, name) != option.flags.end())
      return &option;
  return nullptr;
}

/// Files of dcgm-exporter's own image are not in the agent's; one of them is where NVIDIA's
/// operator mounts the ConfigMap.
void GiveExporterOption(PolicyWork& work, const ExporterOption& option, const std::string& name,
                        const std::string& value) {
  if (option.environment == kExporterOnly[0].name && value.starts_with("/etc/dcgm-exporter/")) {
    const Value* map = work.reading.Find("dcgmExporter.config.name");
    const bool mounted =
        map != nullptr && !map->text.empty() && value.ends_with("/dcgm-metrics.csv");
    if (!mounted) work.Answer(name, kExporterOnly[0].fate, kExporterOnly[0].text);
    return;
  }
  work.exporter.push_back(
      {std::string(option.flags.front()), value, work.field + "[" + base::Printable(name) + "]"});
}

void AnswerAll(PolicyWork& work, const Value& value, std::span<const KnownVariable> known) {
  ForEachVariable(value, [&](const Variable& variable) { AnswerVariable(work, variable, known); });
}

}  // namespace

void GivePlugin(PolicyWork& work, std::string_view flag, const std::string& value) {
  work.plugin.push_back({std::string(flag), value, work.field});
}

void GiveExporter(PolicyWork& work, std::string_view flag, const std::string& value) {
  work.exporter.push_back({std::string(flag), value, work.field});
}

void PluginVariables(PolicyWork& work, const Value& value) {
  GivePluginVariables(work, value, work.plugin);
}

void PluginArguments(PolicyWork& work, const Value& value) {
  GivePluginArguments(work, value, work.plugin);
}

void DiscoveryVariables(PolicyWork& work, const Value& value) {
  GivePluginVariables(work, value, work.labels);
}

void DiscoveryArguments(PolicyWork& work, const Value& value) {
  GivePluginArguments(work, value, work.labels);
}

void ExporterVariables(PolicyWork& work, const Value& value) {
  ForEachVariable(value, [&](const Variable& variable) {
    if (const ExporterOption* option = ExporterOptionOf(variable.name, true)) {
      GiveExporterOption(work, *option, variable.name, variable.value);
    } else {
      AnswerVariable(work, variable, {});
    }
  });
}

void ExporterArguments(PolicyWork& work, const Value& value) {
  const auto takes_value = [](const std::string& flag) {
    const ExporterOption* option = ExporterOptionOf(flag, false);
    return option != nullptr && !option->on_off;
  };
  for (const Argument& one : SplitArguments(FromGoFlags(TextsIn(value)), takes_value)) {
    if (const ExporterOption* option = ExporterOptionOf(one.flag, false)) {
      GiveExporterOption(work, *option, one.flag, one.value.value_or("true"));
    } else {
      UnknownArgument(work, one.flag);
    }
  }
}

void ToolkitVariables(PolicyWork& work, const Value& value) {
  static constexpr std::array<std::string_view, 4> kSockets = {"CONTAINERD_SOCKET", "CRIO_SOCKET",
                                                               "DOCKER_SOCKET", "RUNTIME_SOCKET"};
  ForEachVariable(value, [&](const Variable& variable) {
    if (std::ranges::find(kSockets, variable.name) == kSockets.end())
      return AnswerVariable(work, variable, kToolkit);
    Value path;
    path.text = variable.value.starts_with("unix://") ? variable.value.substr(7) : variable.value;
    SetAbsolutePath(work, path, work.spec.node.containers.engine_socket);
  });
}

bool StopsClientServices(const PolicyWork& work) {
  bool stops = true;
  if (const Value* variables = work.reading.Find("migManager.env"))
    ForEachVariable(*variables, [&](const Variable& variable) {
      if (variable.name == kStopsServices) stops = !IsOff(variable.value);
    });
  return stops;
}

void LayoutVariables(PolicyWork& work, const Value& value) {
  const Value* map = work.reading.Find("migManager.gpuClientsConfig.name");
  const bool listed = map != nullptr && !map->text.empty();
  ForEachVariable(value, [&](const Variable& variable) {
    if (variable.name != kStopsServices || !(listed || IsOff(variable.value)))
      AnswerVariable(work, variable, kLayouts);
  });
}

void ValidatorVariables(PolicyWork& work, const Value& value) {
  AnswerAll(work, value, kValidator);
}

}  // namespace penstock::api::compat::internal
