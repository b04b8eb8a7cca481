#include "app/options.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <vector>

#include "api/config/config_revision.h"
#include "backend/config_terms.h"
#include "backend/counter_fields.h"
#include "base/core/strings.h"
#include "os/core/file.h"

namespace penstock::app {

namespace {

using command::Value;

constexpr const char* kNodeGroup = "Node";
constexpr const char* kPluginGroup = "Options of NVIDIA's device plugin and GPU Feature Discovery";
constexpr const char* kExporterGroup = "Options of NVIDIA's dcgm-exporter";
constexpr std::size_t kMaxConfigBytes = 4u << 20;

std::string Absolute(const std::string& path) {
  if (path.empty()) return path;
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error).lexically_normal().string();
  if (error) return path;
  return absolute.size() > 1 && absolute.back() == '/' ? absolute.substr(0, absolute.size() - 1)
                                                       : absolute;
}

/// A flag that is not a path below `paths`: its name, its value's name, its help.
struct PlainFlag {
  std::string_view flag, value_name, help;
  void (*set)(api::NodeConfig& config, const std::string& value);
  bool path = false;
};

api::Switch ToSwitch(const std::string& value) {
  return value == "on" ? api::Switch::kOn : value == "off" ? api::Switch::kOff : api::Switch::kAuto;
}

std::vector<std::string> SplitWords(const std::string& value) {
  std::vector<std::string> words;
  for (const std::string& word : base::Split(value, ','))
    if (const auto trimmed = base::Trim(word); !trimmed.empty()) words.emplace_back(trimmed);
  return words;
}

const std::vector<PlainFlag>& PlainFlags() {
  using api::NodeConfig;
  static const std::vector<PlainFlag> flags = {
      {"--nvml-library", "PATH", "path of libnvidia-ml.so.1, not relative to the driver root",
       [](NodeConfig& config, const std::string& value) {
         config.paths.libraries["nvidia"] = value;
       },
       true},
      {"--node-name", "NAME", "name of this node [the host's name]",
       [](NodeConfig& config, const std::string& value) { config.node_name = value; }},
      {"--listen", "ADDRESS",
       "address of the HTTP pages: HOST:PORT, unix:PATH, systemd:NAME or off [127.0.0.1:9400]",
       [](NodeConfig& config, const std::string& value) { config.http.listen = value; }},
      {"--cluster", "SWITCH",
       "join an API server: auto (in a pod, or with --kubeconfig), on, off [auto]",
       [](NodeConfig& config, const std::string& value) {
         config.cluster.enabled = ToSwitch(value);
       }},
      {"--kubeconfig", "PATH", "kubeconfig for the API server, outside of a pod",
       [](NodeConfig& config, const std::string& value) { config.cluster.kubeconfig = value; },
       true},
      {"--namespace", "NAME", "namespace of Penstock's objects [the pod's own, else default]",
       [](NodeConfig& config, const std::string& value) { config.cluster.namespace_name = value; }},
      {"--device-plugin-config-files", "WHICH",
       "which of the fields that NVIDIA's plugin ignores take effect: all (extended), none "
       "(as-nvidia)",
       [](NodeConfig& config, const std::string& value) {
         config.plugin_files =
             value == "as-nvidia" ? api::PluginFiles::kAsNvidia : api::PluginFiles::kExtended;
       }},
      {"--config-map", "NAME", "ConfigMap with a configuration for each kind of node",
       [](NodeConfig& config, const std::string& value) {
         config.cluster.config_map.name = value;
       }},
      {"--config-map-namespace", "NAME", "namespace of that ConfigMap [--namespace]",
       [](NodeConfig& config, const std::string& value) {
         config.cluster.config_map.namespace_name = value;
       }},
      {"--config-map-default", "KEY", "key to use if the node's label names none",
       [](NodeConfig& config, const std::string& value) {
         config.cluster.config_map.default_key = value;
       }},
      {"--config-map-fallback", "LIST",
       "what to use with neither label nor default: named, single, empty [named,single]",
       [](NodeConfig& config, const std::string& value) {
         config.cluster.config_map.fallbacks = SplitWords(value);
       }},
  };
  return flags;
}

bool IsPath(const std::string& flag) {
  for (const PlainFlag& plain : PlainFlags())
    if (flag == plain.flag) return plain.path;
  return true;
}

std::vector<std::string> ChoicesOf(std::string_view flag) {
  if (flag == "--cluster") return {"auto", "on", "off"};
  if (flag == "--device-plugin-config-files") return {"extended", "as-nvidia"};
  return {};
}

std::string CheckFallbacks(const std::string& value) {
  for (const std::string& word : SplitWords(value))
    if (word != "named" && word != "single" && word != "empty")
      return "\"" + word + "\" is not one of named, single, empty";
  return {};
}

const api::compat::PluginOption* OptionOfFlag(const std::string& flag) {
  for (const auto& option : api::compat::PluginOptions())
    if (std::find(option.flags.begin(), option.flags.end(), flag) != option.flags.end())
      return &option;
  return nullptr;
}

template <typename List>
List Joined(List first, const List& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

void ApplyFlags(const Settings& settings, api::NodeConfig& config) {
  for (const auto& [flag, value] : settings.flags) {
    for (const PlainFlag& plain : PlainFlags())
      if (flag == plain.flag) plain.set(config, plain.path ? Absolute(value) : value);
    for (const api::PathOption& option : api::PathOptions())
      if (flag == option.flag) config.paths.*option.member = Absolute(value);
  }
}

/// Translates --driver-root and --dev-root on a command line of NVIDIA's device plugin: there they
/// have the meaning of its --nvidia-driver-root and --nvidia-dev-root, the host's paths. Applies
/// only to a command line with flags of the plugin and none of Penstock's; none of the plugin's
/// manifests has such a line.
Settings WithPluginsRoots(Settings settings, std::vector<std::string>& remarks) {
  constexpr std::array<std::array<const char*, 2>, 2> kRoots = {
      {{"--driver-root", "--nvidia-driver-root"}, {"--dev-root", "--nvidia-dev-root"}}};
  const auto is_nvidias = [](const api::compat::Given& given) {
    return given.flag != "--nvidia-driver-root" && given.flag != "--nvidia-dev-root";
  };
  if (std::none_of(settings.plugin_flags.begin(), settings.plugin_flags.end(), is_nvidias))
    return settings;
  for (const auto& [flag, value] : settings.flags)
    if (flag != kRoots[0][0] && flag != kRoots[1][0] && flag != "--node-name") return settings;
  for (const auto& [flag, plugin_flag] : kRoots) {
    const auto found = settings.flags.find(flag);
    if (found == settings.flags.end()) continue;
    remarks.push_back(std::string(flag) +
                      " with flags of NVIDIA's device plugin has the plugin's meaning, the path on "
                      "the host: interpreted as " +
                      plugin_flag +
                      "; the path that the agent itself opens is --driver-root-ctr-path, or "
                      "driverRoot and devRoot in its configuration");
    settings.plugin_flags.push_back({plugin_flag, found->second, flag});
    settings.flags.erase(found);
  }
  return settings;
}

/// Merges other programs' file, environment and flags over `base`. The parser of the text's own
/// kind reads it.
base::Result<api::compat::Translation> Translate(const Settings& settings,
                                                 api::compat::Document kind, std::string_view text,
                                                 const std::string& file,
                                                 const api::NodeConfig& base) {
  using api::compat::Document;
  auto exporter = api::compat::TranslateExporter(
      kind == Document::kExporter ? text : "", file,
      Joined(settings.exporter_environment, settings.exporter_flags), base);
  auto plugin = api::compat::TranslateDevicePlugin(
      kind == Document::kDevicePlugin ? text : "", file,
      Joined(settings.plugin_environment, settings.plugin_flags),
      exporter.ok() ? exporter->config : base, settings.plugin_reading);
  if (!exporter.ok() && !plugin.ok())
    return base::Error(base::Code::kInvalidArgument,
                       exporter.error().message() + "\n" + plugin.error().message());
  if (!exporter.ok()) return exporter.error();
  if (!plugin.ok()) return plugin.error();
  plugin->not_yet = Joined(std::move(exporter->not_yet), plugin->not_yet);
  plugin->remarks = Joined(std::move(exporter->remarks), plugin->remarks);
  return plugin;
}

/// Shows only the exporter's metric names to users who set what only dcgm-exporter has, unless the
/// configuration selects names.
void ResolveNames(const Settings& settings, api::compat::Document kind,
                  api::TelemetryConfig& telemetry) {
  const bool counters = !telemetry.counters.empty() || !telemetry.counters_file.empty() ||
                        !telemetry.counters_map.empty();
  const bool exporter = kind == api::compat::Document::kExporter ||
                        !settings.exporter_flags.empty() || !settings.exporter_environment.empty();
  if (!telemetry.names_set && (counters || exporter))
    telemetry.names = {api::MetricNames::kExporter};
}

}  // namespace

std::vector<command::Option> NodeOptions(Settings& settings) {
  std::vector<command::Option> options;
  const auto add = [&](std::string_view flag, std::string_view value, std::string help) {
    options.push_back(Value(
                          std::string(flag),
                          [&settings, name = std::string(flag)](const std::string& given) {
                            settings.flags[name] = given;
                          },
                          std::string(value), std::move(help))
                          .OneOf(ChoicesOf(flag))
                          .Group(kNodeGroup));
  };
  options.push_back(Value("--config,--config-file", &settings.config_file, "FILE",
                          "configuration: a NodeConfig document, or a file of NVIDIA's device "
                          "plugin or dcgm-exporter; flags take precedence")
                        .Group(kNodeGroup));
  for (const api::PathOption& option : api::PathOptions()) {
    const api::PathsConfig defaults;
    const std::string& preset = defaults.*option.member;
    add(option.flag, "PATH",
        std::string(option.help) + (preset.empty() ? "" : " [" + preset + "]"));
  }
  for (const PlainFlag& plain : PlainFlags()) {
    add(plain.flag, plain.value_name, std::string(plain.help));
    if (plain.flag == "--config-map-fallback") options.back().check = CheckFallbacks;
  }
  return options;
}

std::vector<std::string> NodeOptionNames() {
  Settings unused;
  std::vector<std::string> names;
  for (const command::Option& option : NodeOptions(unused))
    names.push_back(command::NamesOf(option).front());
  return names;
}

std::vector<std::string> AgentOptionNames() { return {"--config", "--run-dir"}; }

std::vector<command::Option> PluginOptions(Settings& settings) {
  std::vector<std::string> taken;
  for (const command::Option& option : NodeOptions(settings))
    for (const std::string& name : command::NamesOf(option)) taken.push_back(name);
  std::vector<command::Option> options;
  for (const auto& option : api::compat::PluginOptions()) {
    if (option.flags.empty() ||
        std::find(taken.begin(), taken.end(), option.flags.front()) != taken.end())
      continue;
    if (OptionOfFlag("--config-file") == &option) continue;  // NodeOptions has it as --config
    const std::vector<std::string> names(option.flags.begin(), option.flags.end());
    const auto take = [&settings, name = names.front(),
                       alone = option.on_off ? "true" : ""](const std::string& value) {
      settings.plugin_flags.push_back({name, value.empty() ? alone : value, name});
    };
    options.push_back(Value(base::Join(names, ","), take, option.on_off ? "BOOL" : "VALUE",
                            std::string(option.help))
                          .ValueOptional(option.on_off)
                          .Group(kPluginGroup));
  }
  return options;
}

std::vector<command::Option> ExporterOptions(Settings& settings) {
  std::vector<command::Option> options;
  for (const auto& option : api::compat::ExporterOptions()) {
    const std::vector<std::string> names(option.flags.begin(), option.flags.end());
    const auto take = [&settings, name = names.front(), alone = option.on_off ? "true" : "",
                       path = option.path](const std::string& value) {
      settings.exporter_flags.push_back({name,
                                         value.empty() ? alone
                                         : path        ? Absolute(value)
                                                       : value,
                                         name});
    };
    options.push_back(Value(base::Join(names, ","), take,
                            option.on_off ? "BOOL"
                            : option.path ? "PATH"
                                          : "VALUE",
                            std::string(option.help))
                          .ValueOptional(option.on_off)
                          .Group(kExporterGroup));
  }
  return options;
}

void TakeEnvironment(Settings& settings, const std::function<const char*(const char*)>& lookup) {
  const auto value_of = [&lookup](std::string_view name) -> std::string {
    const char* value = lookup(std::string(name).c_str());
    return value == nullptr ? "" : value;
  };
  settings.config_revision = value_of(api::kConfigRevisionVariable);
  for (const auto& option : api::compat::ExporterOptions())
    if (const std::string value = value_of(option.environment); !value.empty())
      settings.exporter_environment.push_back({std::string(option.flags.front()),
                                               option.path ? Absolute(value) : value,
                                               "environment " + std::string(option.environment)});
  for (const auto& option : api::compat::PluginOptions()) {
    for (const std::string_view name : option.environment) {
      const char* value = lookup(std::string(name).c_str());
      // An empty variable counts as unset, except the one that disables the plugin's registration.
      if (value == nullptr || (*value == '\0' && name != "KUBELET_SOCKET")) continue;
      if (name.ends_with("CONFIG_FILE")) {
        if (settings.config_file.empty()) settings.config_file = value;
      } else {
        settings.plugin_environment.push_back(
            {std::string(NameOf(option)), value, "environment " + std::string(name)});
      }
      break;
    }
  }
  if (settings.config_file.empty())
    settings.config_file = value_of(api::compat::kExporterConfigVariable);
}

base::Result<Resolved> ResolveText(const Settings& given, std::string_view text,
                                   const std::string& file, const api::NodeConfig& below) {
  using api::compat::Document;
  std::vector<std::string> about_roots, about_keys;
  const Settings settings = WithPluginsRoots(given, about_roots);
  const Document kind = api::compat::Recognise(text);
  const bool is_own = !text.empty() && kind == Document::kNodeConfig;
  api::NodeConfig base = below;
  if (is_own) {
    ASSIGN(base, api::ParseNodeConfig(text, file, backend::ConfigTerms(), &about_keys));
  }
  api::NodeConfig flagged = base;  // some flags define how files of other programs are read
  ApplyFlags(settings, flagged);
  ASSIGN(auto translation, Translate(settings, kind, text, file, flagged));
  Resolved resolved{
      .config = std::move(translation.config),
      .origin = file.empty() ? "defaults" : "file " + file,
      .not_yet = std::move(translation.not_yet),
      .remarks = Joined(Joined(std::move(about_keys), about_roots), translation.remarks),
      .below = is_own ? base : api::NodeConfig{}};
  ApplyFlags(settings, resolved.config);
  ResolveNames(settings, kind, resolved.config.telemetry);
  const api::ConfigTerms& terms = backend::ConfigTerms();
  if (std::string& label = resolved.config.cluster.config_map.node_label; label.empty())
    label = terms.node_label;
  resolved.config.sharing.server_roots.insert(terms.server_roots.begin(), terms.server_roots.end());
  TRY(api::Validate(resolved.config));
  const std::string where = (file.empty() ? "" : file + ": ") +
                            (kind == Document::kExporter ? "metrics.fields" : "telemetry.counters");
  ASSIGN(auto counters, api::compat::CheckCounters(resolved.config.telemetry.counters, where,
                                                   backend::CounterFields()));
  resolved.config.telemetry.counters = std::move(counters.rows);
  resolved.remarks.insert(resolved.remarks.end(), counters.remarks.begin(), counters.remarks.end());
  return resolved;
}

base::Result<std::string> ReadConfigText(const std::string& file) {
  auto text = os::ReadInput(file, kMaxConfigBytes);
  if (!text.ok()) return text.error().Within("configuration");
  return text;
}

base::Result<Resolved> ResolveAll(const Settings& settings) {
  if (settings.config_file.empty()) return ResolveText(settings, "", "");
  ASSIGN(const std::string text, ReadConfigText(settings.config_file));
  return ResolveText(settings, text, settings.config_file);
}

base::Result<api::NodeConfig> Resolve(const Settings& settings) {
  ASSIGN(auto resolved, ResolveAll(settings));
  return std::move(resolved.config);
}

std::vector<std::string> ToArguments(const Settings& settings) {
  std::vector<std::string> arguments;
  if (!settings.config_file.empty())
    arguments.insert(arguments.end(), {"--config", Absolute(settings.config_file)});
  for (const auto& [flag, value] : settings.flags)
    arguments.insert(arguments.end(), {flag, IsPath(flag) ? Absolute(value) : value});
  for (const auto& given : Joined(settings.plugin_flags, settings.exporter_flags))
    arguments.push_back(given.flag + "=" + given.value);
  return arguments;
}

}  // namespace penstock::app
