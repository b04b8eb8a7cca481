// penstock: the command-line tool for users, also called by kubectl as its plugin, and by scripts
// as nvidia-mig-parted.
#include <algorithm>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "app/command/completion.h"
#include "app/command/parse.h"
#include "app/penstock/cluster/cluster_verbs.h"
#include "app/penstock/common/program.h"

namespace penstock::app {

namespace {

/// The names under which kubectl executes its plugin, and the completion of that.
constexpr std::string_view kPlugin = "kubectl-penstock", kCompletion = "kubectl_complete-penstock";

/// Moves flags that nvidia-ctk accepts before its verbs: "--quiet cdi generate" becomes "cdi
/// generate --quiet".
void MoveToolkitFlags(std::vector<std::string>& words) {
  const auto is_flag = [](const std::string& word) {
    return word == "--quiet" || word == "--debug" || word == "-d";
  };
  const auto verb = std::find_if_not(words.begin(), words.end(), is_flag);
  if (verb != words.end() && *verb == "cdi") std::rotate(words.begin(), verb, words.end());
}

/// Go programs accept long options also after a single dash: "-mode-only".
void DoubleDash(const std::string& name, std::vector<std::string>& words) {
  for (std::string& word : words)
    if (name.starts_with("--") && "-" + word.substr(0, word.find('=')) == name) word.insert(0, "-");
}

void DoubleDashes(const command::Verb& verb, std::vector<std::string>& words) {
  for (const command::Option& option : verb.options)
    for (const std::string& name : command::NamesOf(option)) DoubleDash(name, words);
  for (const command::Verb& below : verb.verbs) DoubleDashes(below, words);
}

int RunMigParted(std::vector<std::string> words, Common& common) {
  command::Verb program;
  DefineMigParted(program, common);
  DoubleDashes(program, words);
  for (const char* name : {"--help", "--version"}) DoubleDash(name, words);
  if (words.empty()) words = {"--help"};
  return command::Run(program, std::move(words), common.output) == command::kDone
             ? command::kDone
             : command::kFailed;
}

int Main(std::string_view name, std::vector<std::string> words) {
  Common common;
  common.terminal = ::isatty(STDERR_FILENO) != 0;
  if (name == kMigPartedName) return RunMigParted(std::move(words), common);
  command::Verb program;
  if (name == kPlugin || name == kCompletion) {
    DefineKubectlPenstock(program, common);
  } else {
    DefinePenstock(program, common);
    MoveToolkitFlags(words);
  }
  if (name != kCompletion) return command::Run(program, std::move(words), common.output);
  std::cout << command::CompleteForKubectl(program, words, [] { return NodeNames({}); });
  return command::kDone;
}

}  // namespace

}  // namespace penstock::app

int main(int argc, char** argv) {
  const std::string_view path = argc > 0 ? argv[0] : "";
  return penstock::app::Main(path.substr(path.rfind('/') + 1),
                             std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
}
