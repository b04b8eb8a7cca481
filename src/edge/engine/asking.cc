// Command lines of containerd, crio, dockerd, podman and systemctl.
#include "edge/engine/asking.h"

#include <algorithm>

#include "base/core/strings.h"

namespace penstock::edge::engine {
namespace {

Arguments Within(const Site& site, Arguments command) {
  command.insert(command.begin(), site.enter.begin(), site.enter.end());
  return command;
}

/// A program that is installed beside the engine's, or found by its name.
std::string Beside(const Site& site, const std::string& name) {
  const auto slash = site.program.find_last_of('/');
  return slash == std::string::npos ? name : site.program.substr(0, slash + 1) + name;
}

std::string ConfigInForce(const Site& site) { return site.in_force.empty() ? site.config : site.in_force; }

std::vector<std::string> Words(std::string_view line) {
  std::vector<std::string> words;
  for (const std::string& word : base::Split(line, ' '))
    if (!word.empty()) words.push_back(word);
  return words;
}

/// The number that a text begins with, or is as a whole; -1 where there is none, or it is no version's.
int LeadingNumber(std::string_view text, bool whole) {
  constexpr int kMost = 9999;
  int number = -1;
  for (const char c : text) {
    if (c < '0' || c > '9') return whole ? -1 : number;
    number = std::max(number, 0) * 10 + (c - '0');
    if (number > kMost) return -1;
  }
  return number;
}

}  // namespace

Arguments VersionCommand(const Site& site) { return Within(site, {site.program, "--version"}); }

std::optional<std::pair<int, int>> ParseVersion(std::string_view answer) {
  for (const std::string& line : base::Split(answer, '\n'))
    for (const std::string& word : Words(line)) {
      const auto parts = base::Split(std::string_view(word).substr(word.starts_with('v') ? 1 : 0), '.');
      if (parts.size() < 2) continue;
      const int major = LeadingNumber(parts[0], true), minor = LeadingNumber(parts[1], false);
      if (major >= 0 && minor >= 0) return std::pair(major, minor);
    }
  return std::nullopt;
}

Arguments EffectCommand(const Site& site, bool has_file) {
  // Without a file an engine takes its defaults, but not where it is told one that is not there.
  const bool usual = RecipeOf(Name(site.engine))->config == site.config;
  if (!has_file && !usual) return {};
  Arguments command = {site.program};
  if (has_file) command.insert(command.end(), {"--config", ConfigInForce(site)});
  if (site.engine == Engine::kContainerd) {
    command.insert(command.end(), {"config", "dump"});
  } else if (site.engine == Engine::kCrio) {
    command.emplace_back("config");
  } else {
    return {};
  }
  return Within(site, std::move(command));
}

Arguments CheckCommand(const Site& site, int major) {
  constexpr int kDockerThatValidates = 23;
  if (site.engine == Engine::kDocker && major >= kDockerThatValidates)
    return Within(site, {site.program, "--validate", "--config-file", site.config});
  if (site.engine == Engine::kPodman) return Within(site, {site.program, "info"});
  return {};
}

Arguments HealthCommand(const Site& site) {
  if (site.engine == Engine::kContainerd) return Within(site, {Beside(site, "ctr"), "--address", site.socket, "plugins", "ls"});
  if (site.engine == Engine::kDocker) return Within(site, {Beside(site, "docker"), "--host", "unix://" + site.socket, "version"});
  return {};
}

std::optional<std::string> Illness(const Site& site, int status, std::string_view answer) {
  if (status != 0) return LastLine(answer);
  if (site.engine != Engine::kContainerd) return std::nullopt;
  for (const std::string& line : base::Split(answer, '\n')) {
    const auto words = Words(line);
    if (words.size() < 4 || words.back() != "error") continue;
    if (words[1] == "cri" || words[0].starts_with("io.containerd.cri."))
      return "its plugin " + words[0] + "." + words[1] + " does not start";
  }
  return std::nullopt;
}

Arguments RestartCommand(const Site& site) { return Within(site, {"systemctl", "restart", site.unit}); }

Arguments ForgiveCommand(const Site& site) { return Within(site, {"systemctl", "reset-failed", site.unit}); }

std::string LastLine(std::string_view output) {
  std::string last;
  for (const std::string& line : base::Split(output, '\n'))
    if (const auto text = base::Trim(line); !text.empty()) last = text;
  return last;
}

}  // namespace penstock::edge::engine
