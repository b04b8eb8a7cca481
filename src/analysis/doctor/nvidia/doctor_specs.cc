// Judges whether specifications exist, whether the engines can read them, and whether they match
// the machine as it is now.
#include <algorithm>

#include "analysis/doctor/doctor.h"
#include "base/core/strings.h"

namespace penstock::analysis {

namespace {

using api::cdi::Spec;

constexpr char kAbout[] = "specifications";
constexpr char kGenerated[] =
    "/var/run/cdi/nvidia.yaml";  // where nvidia-ctk's service writes its file
constexpr std::size_t kMaxNamed = 3;

/// Matches "1.2" or "550.54.15": at least two groups of digits between dots.
bool IsDriverVersion(std::string_view text) {
  const auto groups = base::Split(text, '.');
  return groups.size() >= 2 && std::ranges::all_of(groups, [](const std::string& group) {
           return !group.empty() && group.find_first_not_of("0123456789") == std::string::npos;
         });
}

std::string FromArguments(const std::vector<std::string>& arguments) {
  static constexpr std::string_view kFlag = "--host-driver-version";
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string_view argument = arguments[i];
    if (!argument.starts_with(kFlag)) continue;
    argument.remove_prefix(kFlag.size());
    if (argument.starts_with('=')) return std::string(argument.substr(1));
    if (argument.empty() && i + 1 < arguments.size()) return arguments[i + 1];
  }
  return "";
}

std::string FromMount(const api::cdi::Mount& mount) {
  for (const std::string_view library : {"/libcuda.so.", "/libnvidia-ml.so."})
    if (const auto at = mount.host_path.rfind(library); at != std::string::npos)
      if (std::string suffix = mount.host_path.substr(at + library.size()); IsDriverVersion(suffix))
        return suffix;
  return "";
}

/// Joins sentences as "a; b; c and 4 more".
std::string Some(const std::vector<std::string>& sentences) {
  const auto shown = std::span(sentences).first(std::min(sentences.size(), kMaxNamed));
  const std::size_t rest = sentences.size() - shown.size();
  return base::Join(shown, "; ") + (rest > 0 ? " and " + std::to_string(rest) + " more" : "");
}

/// Returns the commands that regenerate an outdated file.
std::vector<std::string> Remake(const std::string& file, const Spec& spec) {
  if (spec.kind.find("nvidia.com/") == std::string::npos) return {"rm " + file};
  return {"penstock cdi generate --output " + file};
}

DoctorFinding JudgeFile(const std::string& file, const Spec& spec, const DoctorFacts& facts) {
  const std::string driver = DriverOf(spec);
  if (!driver.empty() && !facts.driver.empty() && driver != facts.driver)
    return {file,
            FindingState::kBad,
            "is for driver " + driver + ", but " + facts.driver + " is loaded",
            "",
            {},
            Remake(file, spec)};
  if (const auto missing = facts.missing.find(file);
      missing != facts.missing.end() && !missing->second.empty())
    return {file,
            FindingState::kBad,
            "no container with its devices can start: " + Some(missing->second),
            "",
            {},
            Remake(file, spec)};
  std::vector<std::string> names;
  for (const auto& device : spec.devices) names.push_back(device.name);
  const bool many = names.size() > kMaxNamed;
  if (many) names.resize(kMaxNamed);
  return {file, FindingState::kOk,
          spec.kind + " with " + base::Join(names, ", ") + (many ? ", ..." : "")};
}

DoctorFinding NoDevices(const DoctorFacts& facts) {
  const std::string where =
      "no specification in " + base::Join(facts.folders, ", ") + " defines a device";
  if (facts.driver.empty())
    return {kAbout, FindingState::kUnknown, where + ", and no NVIDIA driver is loaded"};
  return {kAbout, FindingState::kBad,
          where,  "",
          {},     {"penstock cdi generate --output " + std::string(kGenerated)}};
}

}  // namespace

std::string DriverOf(const Spec& spec) {
  for (const auto& hook : spec.edits.hooks)
    if (std::string version = FromArguments(hook.args); !version.empty()) return version;
  for (const auto& mount : spec.edits.mounts)
    if (std::string version = FromMount(mount); !version.empty()) return version;
  return "";
}

std::vector<DoctorFinding> JudgeSpecifications(const DoctorFacts& facts) {
  std::vector<DoctorFinding> findings;
  const api::cdi::Registry registry(facts.files);
  for (const std::string& problem : registry.problems())
    findings.push_back({kAbout, FindingState::kBad, problem});
  for (const auto& file : facts.files) {
    if (!file.text.ok()) continue;
    if (const auto spec = api::cdi::Parse(*file.text, file.path); spec.ok())
      findings.push_back(JudgeFile(file.path, *spec, facts));
  }
  if (registry.devices().empty()) findings.push_back(NoDevices(facts));
  return findings;
}

}  // namespace penstock::analysis
