#include <iostream>

#include <unistd.h>

#include "api/cdi/registry.h"
#include "api/cdi/transform.h"
#include "app/penstock/cdi/cdi_verbs.h"
#include "os/core/file.h"

namespace penstock::app {

namespace {

/// Appends a suffix to a name without a known one, like `nvidia-ctk`.
std::string WithSuffix(const std::string& file) {
  return file.ends_with(".json") || file.ends_with(".yaml") ? file : file + ".yaml";
}

base::Status Transform(const CdiRootChange& change) {
  for (const std::string& root : {change.from, change.to})
    if (!root.empty() && !root.starts_with('/'))
      return base::Error(base::Code::kInvalidArgument,
                         "\"" + root + "\" is not an absolute path; --from and --to require one");
  ASSIGN(const std::string text,
         change.input == "-" ? os::ReadAll(STDIN_FILENO, "standard input", api::cdi::kMaxBytes)
                             : os::ReadInput(change.input, api::cdi::kMaxBytes));
  ASSIGN(api::cdi::Spec spec,
         api::cdi::Parse(text, change.input == "-" ? "standard input" : change.input));
  const auto relative = change.relative_to == "container" ? api::cdi::Relative::kContainer
                                                          : api::cdi::Relative::kHost;
  spec = api::cdi::TransformRoot(std::move(spec), change.from, change.to, relative);
  if (change.output.empty()) {
    std::cout << api::cdi::ToYaml(spec) << std::flush;
    return std::cout ? base::Status()
                     : base::Error(base::Code::kUnavailable, "cannot write to standard output");
  }
  const std::string file = WithSuffix(change.output);
  return os::WriteFileAtomically(
      file, file.ends_with(".json") ? api::cdi::ToJson(spec) : api::cdi::ToYaml(spec));
}

}  // namespace

int TransformCdiRoot(const CdiRootChange& change) {
  const auto done = Transform(change);
  if (done.ok()) return 0;
  std::cerr << "penstock cdi transform root: " << done.error().message() << "\n";
  return 1;
}

}  // namespace penstock::app
