#include "analysis/doctor/engine_formats.h"

#include <algorithm>
#include <cctype>
#include <span>

#include "base/core/strings.h"

namespace penstock::analysis {

namespace {

using protocol::engine::Engine;

/// The first release whose library supports a version of the format.
struct Step {
  Release release;
  std::string_view format;
};

// From each release's requirement of tags.cncf.io/container-device-interface (before 2023
// github.com/container-orchestrated-devices/...) and CurrentVersion in that library. Last releases
// covered: containerd 2.2, podman 5.7, docker 28.5.
constexpr Step kContainerd[] = {{{1, 7, 0}, "0.5.0"},  {{1, 7, 12}, "0.6.0"}, {{1, 7, 16}, "0.7.0"},
                                {{1, 7, 27}, "0.8.0"}, {{2, 0, 0}, "0.8.0"},  {{2, 0, 5}, "1.0.0"}};
constexpr Step kPodman[] = {{{4, 1, 0}, "0.4.0"}, {{4, 3, 0}, "0.5.0"}, {{4, 7, 0}, "0.6.0"},
                            {{5, 1, 0}, "0.7.0"}, {{5, 2, 0}, "0.8.0"}, {{5, 5, 0}, "1.0.0"}};
constexpr Step kDocker[] = {
    {{25, 0, 0}, "0.6.0"}, {{26, 1, 0}, "0.7.0"}, {{27, 4, 0}, "0.8.0"}, {{28, 1, 0}, "1.0.0"}};

struct Steps {
  std::span<const Step> steps;
  Release uncovered;  ///< the first release that the table does not cover
};

std::optional<Steps> StepsOf(Engine engine) {
  switch (engine) {
    case Engine::kContainerd: return Steps{kContainerd, {2, 3, 0}};
    case Engine::kPodman: return Steps{kPodman, {5, 8, 0}};
    case Engine::kDocker: return Steps{kDocker, {28, 6, 0}};
    case Engine::kCrio: return std::nullopt;
  }
  return std::nullopt;
}

/// Removes a number from the front of the text and returns it.
std::optional<int> TakeNumber(std::string_view& text) {
  const auto end = std::ranges::find_if(
      text, [](char c) { return std::isdigit(static_cast<unsigned char>(c)) == 0; });
  const auto digits = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  const auto number = digits.size() <= 6 ? base::ParseInt(digits) : std::nullopt;
  text.remove_prefix(digits.size());
  return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

std::optional<Release> ReadRelease(std::string_view word) {
  if (word.starts_with('v')) word.remove_prefix(1);
  const auto major = TakeNumber(word);
  if (!major || !word.starts_with('.')) return std::nullopt;
  word.remove_prefix(1);
  const auto minor = TakeNumber(word);
  if (!minor) return std::nullopt;
  Release release{*major, *minor, 0};
  if (word.starts_with('.')) {
    word.remove_prefix(1);
    release.patch = TakeNumber(word).value_or(0);
  }
  return release;
}

}  // namespace

std::optional<Release> FindRelease(std::string_view text) {
  std::string words(text);
  std::replace(words.begin(), words.end(), '\n', ' ');
  for (const std::string& word : base::Split(words, ' '))
    if (const auto release = ReadRelease(word)) return release;
  return std::nullopt;
}

std::string ToString(const Release& release) {
  return std::to_string(release.major) + "." + std::to_string(release.minor) + "." +
         std::to_string(release.patch);
}

std::optional<Formats> FormatsOf(Engine engine, const Release& release) {
  const auto known = StepsOf(engine);
  if (!known) return std::nullopt;
  Formats formats;
  for (const Step& step : known->steps)
    if (step.release <= release) formats.latest = step.format;
  formats.exact = release < known->uncovered;
  return formats;
}

}  // namespace penstock::analysis
