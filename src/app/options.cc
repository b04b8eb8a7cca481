// The options that every program of ours which looks at a node takes. Decides nothing about what they mean.
#include "app/options.h"

#include <filesystem>
#include <vector>

#include <CLI/CLI.hpp>

#include "os/file.h"

namespace penstock::app {

namespace {

constexpr const char* kNodeGroup = "Node";

std::string Absolute(const std::string& path) {
  if (path.empty()) return path;
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error).lexically_normal().string();
  if (error) return path;
  return absolute.size() > 1 && absolute.back() == '/' ? absolute.substr(0, absolute.size() - 1) : absolute;
}

bool IsPath(const std::string& flag) { return flag != "--node-name" && flag != "--listen"; }

}  // namespace

void AddNodeOptions(CLI::App& app, Settings& settings) {
  const auto add = [&](const std::string& flag, const std::string& value_name, const std::string& help) {
    app.add_option_function<std::string>(
           flag, [&settings, flag](const std::string& value) { settings.flags[flag] = value; }, help)
        ->type_name(value_name)
        ->take_last()
        ->group(kNodeGroup);
  };
  app.add_option("--config", settings.config_file, "configuration, a NodeConfig document; flags count more")
      ->type_name("FILE")
      ->take_last()
      ->group(kNodeGroup);
  for (const api::PathOption& option : api::PathOptions()) {
    const api::PathsConfig defaults;
    const std::string& preset = defaults.*option.member;
    add(std::string(option.flag), "PATH", std::string(option.help) + (preset.empty() ? "" : " [" + preset + "]"));
  }
  add("--node-name", "NAME", "name of this node [the host's name]");
  add("--listen", "ADDRESS", "where the pages are served: HOST:PORT, unix:PATH or off [" + api::NodeConfig{}.listen + "]");
}

base::Result<api::NodeConfig> Resolve(const Settings& settings) {
  api::NodeConfig config;
  if (!settings.config_file.empty()) {
    auto text = os::ReadFile(settings.config_file, 4u << 20);
    if (!text.ok()) return text.error().Within("configuration");
    ASSIGN(config, api::ParseNodeConfig(*text, settings.config_file));
  }
  for (const auto& [flag, value] : settings.flags) {
    if (flag == "--node-name") config.node_name = value;
    if (flag == "--listen") config.listen = value;
    for (const api::PathOption& option : api::PathOptions())
      if (flag == option.flag) config.paths.*option.member = Absolute(value);
  }
  TRY(api::Validate(config));
  return config;
}

std::vector<std::string> ToArguments(const Settings& settings) {
  std::vector<std::string> arguments;
  if (!settings.config_file.empty()) arguments.insert(arguments.end(), {"--config", Absolute(settings.config_file)});
  for (const auto& [flag, value] : settings.flags) arguments.insert(arguments.end(), {flag, IsPath(flag) ? Absolute(value) : value});
  return arguments;
}

}  // namespace penstock::app
