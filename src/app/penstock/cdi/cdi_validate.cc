#include <algorithm>
#include <iostream>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "app/penstock/cdi/cdi_files.h"
#include "app/penstock/cdi/cdi_verbs.h"
#include "app/penstock/common/table.h"
#include "base/core/json_text.h"
#include "base/core/strings.h"
#include "os/core/file.h"

namespace penstock::app {

namespace {

using Json = nlohmann::ordered_json;
using api::cdi::SpecFile;

/// The result for one file.
struct Verdict {
  std::string file;
  api::cdi::Spec spec;  ///< empty where the file is not a specification
  bool valid = false;
  std::vector<std::string> problems;
};

Verdict Judge(const SpecFile& file) {
  Verdict verdict{.file = file.path};
  if (!file.text.ok()) {
    verdict.problems = {file.text.error().message()};
    return verdict;
  }
  auto spec = api::cdi::Parse(*file.text, file.path);
  if (!spec.ok()) {
    verdict.problems = base::Split(spec.error().message(), '\n');
    return verdict;
  }
  verdict.spec = *std::move(spec);
  verdict.valid = true;
  for (const std::string& missing : Missing(verdict.spec))
    verdict.problems.push_back(file.path + ": " + missing);
  return verdict;
}

SpecFile ReadSpecFile(const std::string& file) {
  if (file == "-")
    return {"standard input", 0, os::ReadAll(STDIN_FILENO, "standard input", api::cdi::kMaxBytes)};
  return {file, 0, os::ReadInput(file, api::cdi::kMaxBytes)};
}

/// Returns conflicts among files that are valid on their own. Leaves out the registry's short form
/// of problems that a verdict already describes.
std::vector<std::string> JudgeTogether(const std::vector<SpecFile>& files,
                                       const std::vector<Verdict>& verdicts) {
  std::vector<std::string> problems = api::cdi::Registry(files).problems();
  std::erase_if(problems, [&verdicts](const std::string& problem) {
    return std::any_of(verdicts.begin(), verdicts.end(), [&](const Verdict& verdict) {
      return !verdict.valid && problem.starts_with(verdict.problems.front());
    });
  });
  return problems;
}

Json ToJson(const Verdict& verdict) {
  Json tree = {{"file", verdict.file}, {"valid", verdict.valid}};
  if (verdict.valid) {
    Json devices = Json::array();
    for (const auto& device : verdict.spec.devices) devices.push_back(device.name);
    tree["kind"] = verdict.spec.kind;
    tree["version"] = verdict.spec.version;
    tree["minimumVersion"] = api::cdi::MinimumVersion(verdict.spec);
    tree["devices"] = devices;
  }
  tree["problems"] = verdict.problems;
  return tree;
}

std::string TextOf(const Verdict& verdict) {
  for (const std::string& problem : verdict.problems) std::cerr << Printable(problem) << "\n";
  if (!verdict.problems.empty()) return "";
  const std::string minimum = api::cdi::MinimumVersion(verdict.spec);
  return verdict.file + ": OK (" + verdict.spec.kind + ", " +
         std::to_string(verdict.spec.devices.size()) + " devices, version " + verdict.spec.version +
         (minimum != verdict.spec.version ? ", where " + minimum + " would suffice" : "") + ")\n";
}

}  // namespace

base::Result<command::Shown> ValidateCdi(const Common& common,
                                         const std::vector<std::string>& files,
                                         const std::vector<std::string>& folders) {
  std::vector<SpecFile> found;
  if (files.empty()) found = ReadSpecFolders(folders);
  for (const std::string& file : files) found.push_back(ReadSpecFile(file));

  std::vector<Verdict> verdicts;
  for (const SpecFile& file : found) verdicts.push_back(Judge(file));
  const auto together = files.empty() ? JudgeTogether(found, verdicts) : std::vector<std::string>();
  const bool ok =
      together.empty() && std::all_of(verdicts.begin(), verdicts.end(),
                                      [](const Verdict& one) { return one.problems.empty(); });
  const int status = ok ? command::kDone : command::kFailed;
  if (common.json()) {
    Json tree = {{"files", Json::array()}, {"problems", together}};
    for (const Verdict& verdict : verdicts) tree["files"].push_back(ToJson(verdict));
    return command::Shown(base::JsonText(tree), status);
  }
  std::string text;
  for (const Verdict& verdict : verdicts) text += TextOf(verdict);
  for (const std::string& problem : together) std::cerr << Printable(problem) << "\n";
  if (verdicts.empty())
    std::cerr << "penstock cdi validate: there is no specification in " << base::Join(folders, ", ")
              << "\n";
  return command::Shown(text, status);
}

}  // namespace penstock::app
