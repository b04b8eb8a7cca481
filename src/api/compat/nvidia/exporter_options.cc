// Reads each value by its type; exporter_settings.cc determines its effect.
#include "api/compat/nvidia/exporter_options.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "api/compat/nvidia/exporter_reader.h"
#include "base/core/strings.h"
#include "base/yaml.h"

namespace penstock::api::compat {

namespace {

using internal::ExporterSetting;
using internal::ExporterWork;
using internal::GivenValue;

void TakeGiven(const ExporterSetting& setting, const Given& given, ExporterWork& work) {
  GivenValue value{given.where, given.value};
  if (given.value.find('\0') != std::string::npos)
    return value.Problem(work, "has a zero byte in it");
  if (setting.option.on_off) {
    const auto on = internal::ParseGoBool(given.value);
    if (!on) return value.Problem(work, "\"" + given.value + "\" is none of true, false");
    value.on = *on;
  }
  if (setting.apply != nullptr) return setting.apply(work, value);
  const bool usual = setting.option.on_off ? value.on == (setting.preset == "true")
                                           : given.value == setting.preset || given.value.empty();
  if (!usual) value.Remark(work, std::string(setting.why));
}

/// Applies the last value of each setting.
void TakeAll(std::span<const Given> given, ExporterWork& work) {
  std::map<std::string_view, const Given*> last;
  for (const Given& one : given) last[one.flag] = &one;
  for (const ExporterSetting& setting : internal::ExporterSettings())
    if (const auto found = last.find(setting.option.flags.front()); found != last.end())
      TakeGiven(setting, *found->second, work);
}

/// Applies the two label settings, which depend on each other.
void ApplyLabels(ExporterWork& work) {
  if (!work.pod_labels) {
    if (!work.label_globs_where.empty())
      work.remarks.push_back(work.label_globs_where +
                             ": has no effect without --kubernetes-enable-pod-labels");
    return;
  }
  if (work.label_globs.empty()) work.label_globs = {"*"};
  work.config.telemetry.holder_labels = std::move(work.label_globs);
}

const ExporterOption* OptionNamed(std::string_view name) {
  for (const ExporterOption& option : ExporterOptions())
    for (const std::string_view flag : option.flags)
      if (flag.substr(flag.find_first_not_of('-')) == name) return &option;
  return nullptr;
}

/// Includes the two flags that have a meaning of their own in the agent when they appear alone.
bool IsPluginFlag(std::string_view flag) {
  if (flag == "--driver-root" || flag == "--dev-root") return true;
  const auto& options = PluginOptions();
  return std::ranges::any_of(options, [flag](const PluginOption& option) {
    return std::ranges::find(option.flags, flag) != option.flags.end();
  });
}

}  // namespace

namespace internal {

std::optional<bool> ParseGoBool(std::string_view text) {
  static constexpr std::array<std::string_view, 6> kTrue = {"1", "t", "T", "TRUE", "true", "True"};
  static constexpr std::array<std::string_view, 6> kFalse = {"0",     "f",     "F",
                                                             "FALSE", "false", "False"};
  if (std::ranges::find(kTrue, text) != kTrue.end()) return true;
  if (std::ranges::find(kFalse, text) != kFalse.end()) return false;
  return std::nullopt;
}

}  // namespace internal

const std::vector<ExporterOption>& ExporterOptions() {
  static const std::vector<ExporterOption> options = [] {
    std::vector<ExporterOption> all;
    for (const ExporterSetting& setting : internal::ExporterSettings())
      all.push_back(setting.option);
    return all;
  }();
  return options;
}

std::vector<std::string> FromGoFlags(std::span<const std::string> arguments) {
  std::vector<std::string> all;
  for (const std::string& argument : arguments) {
    const std::size_t dashes = argument.find_first_not_of('-');
    const bool flag = dashes == 1 || dashes == 2;
    const std::size_t equals = argument.find('=');
    const std::string name =
        flag ? argument.substr(dashes, equals == std::string::npos ? equals : equals - dashes) : "";
    const std::string value = equals == std::string::npos ? "" : argument.substr(equals);
    if (const ExporterOption* option = name.empty() ? nullptr : OptionNamed(name))
      all.push_back(std::string(option->flags.front()) + value);
    else
      all.push_back(dashes == 1 && IsPluginFlag("--" + name) ? "--" + name + value : argument);
  }
  return all;
}

bool SaysDebug(std::span<const Given> given) {
  bool debug = false;
  for (const Given& one : given)
    if (one.flag == "--debug") debug = internal::ParseGoBool(one.value).value_or(false);
  return debug;
}

base::Result<Translation> TranslateExporter(std::string_view text, std::string_view file,
                                            std::span<const Given> given, const NodeConfig& base) {
  Translation translation{.config = base};
  ExporterWork work{.config = translation.config};
  std::vector<std::string> errors;
  if (!text.empty()) {
    base::Problems problems{std::string(file)};
    if (const auto document = base::ParseYaml(text, file); document.ok()) {
      internal::ReadExporterFile(*document, problems, work);
    } else {
      errors.push_back(document.error().message());
    }
    if (!problems.empty()) errors.push_back(problems.ToError().message());
  }
  TakeAll(given, work);
  ApplyLabels(work);
  errors.insert(errors.end(), work.problems.begin(), work.problems.end());
  if (!errors.empty()) return base::Error(base::Code::kInvalidArgument, base::Join(errors, "\n"));
  translation.not_yet = std::move(work.not_yet);
  translation.remarks = std::move(work.remarks);
  return translation;
}

}  // namespace penstock::api::compat
