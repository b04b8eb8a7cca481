#include "protocol/engine/engine_commands.h"

#include <algorithm>

#include "base/core/strings.h"

namespace penstock::protocol::engine {
namespace {

CommandLine Within(const EngineInstall& install, CommandLine command) {
  command.insert(command.begin(), install.enter.begin(), install.enter.end());
  return command;
}

/// Returns a program installed beside the engine's, or its name to look up.
std::string Beside(const EngineInstall& install, const std::string& name) {
  const auto slash = install.program.find_last_of('/');
  return slash == std::string::npos ? name : install.program.substr(0, slash + 1) + name;
}

std::string ConfigInForce(const EngineInstall& install) {
  return install.in_force.empty() ? install.config : install.in_force;
}

std::vector<std::string> Words(std::string_view line) {
  std::vector<std::string> words;
  for (const std::string& word : base::Split(line, ' '))
    if (!word.empty()) words.push_back(word);
  return words;
}

/// Returns the number at the beginning of a text, or the whole text as a number; -1 if there is
/// none, or if it is too large for a version.
int LeadingNumber(std::string_view text, bool whole) {
  constexpr int kMax = 9999;
  int number = -1;
  for (const char c : text) {
    if (c < '0' || c > '9') return whole ? -1 : number;
    number = std::max(number, 0) * 10 + (c - '0');
    if (number > kMax) return -1;
  }
  return number;
}

}  // namespace

CommandLine VersionCommand(const EngineInstall& install) {
  return Within(install, {install.program, "--version"});
}

std::optional<std::pair<int, int>> ParseVersion(std::string_view answer) {
  for (const std::string& line : base::Split(answer, '\n'))
    for (const std::string& word : Words(line)) {
      const auto parts =
          base::Split(std::string_view(word).substr(word.starts_with('v') ? 1 : 0), '.');
      if (parts.size() < 2) continue;
      const int major = LeadingNumber(parts[0], true), minor = LeadingNumber(parts[1], false);
      if (major >= 0 && minor >= 0) return std::pair(major, minor);
    }
  return std::nullopt;
}

CommandLine EffectCommand(const EngineInstall& install, bool has_file) {
  // Without a file an engine uses its defaults, but fails if a missing file is given explicitly.
  const bool usual = RecipeOf(Name(install.engine))->config == install.config;
  if (!has_file && !usual) return {};
  CommandLine command = {install.program};
  if (has_file) command.insert(command.end(), {"--config", ConfigInForce(install)});
  if (install.engine == Engine::kContainerd) {
    command.insert(command.end(), {"config", "dump"});
  } else if (install.engine == Engine::kCrio) {
    command.emplace_back("config");
  } else {
    return {};
  }
  return Within(install, std::move(command));
}

CommandLine CheckCommand(const EngineInstall& install, int major) {
  constexpr int kDockerThatValidates = 23;
  if (install.engine == Engine::kDocker && major >= kDockerThatValidates)
    return Within(install, {install.program, "--validate", "--config-file", install.config});
  if (install.engine == Engine::kPodman) return Within(install, {install.program, "info"});
  return {};
}

CommandLine HealthCommand(const EngineInstall& install) {
  if (install.engine == Engine::kContainerd)
    return Within(install, {Beside(install, "ctr"), "--address", install.socket, "plugins", "ls"});
  if (install.engine == Engine::kDocker)
    return Within(install,
                  {Beside(install, "docker"), "--host", "unix://" + install.socket, "version"});
  return {};
}

std::optional<std::string> HealthProblem(const EngineInstall& install, int status,
                                         std::string_view answer) {
  if (status != 0) return LastLine(answer);
  if (install.engine != Engine::kContainerd) return std::nullopt;
  for (const std::string& line : base::Split(answer, '\n')) {
    const auto words = Words(line);
    if (words.size() < 4 || words.back() != "error") continue;
    if (words[1] == "cri" || words[0].starts_with("io.containerd.cri."))
      return "its plugin " + words[0] + "." + words[1] + " did not start";
  }
  return std::nullopt;
}

CommandLine RestartCommand(const EngineInstall& install) {
  return Within(install, {"systemctl", "restart", install.unit});
}

CommandLine ResetFailedCommand(const EngineInstall& install) {
  return Within(install, {"systemctl", "reset-failed", install.unit});
}

std::string LastLine(std::string_view output) {
  std::string last;
  for (const std::string& line : base::Split(output, '\n'))
    if (const auto text = base::Trim(line); !text.empty()) last = text;
  return last;
}

}  // namespace penstock::protocol::engine
