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

}  // namespace

base::Result<command::Shown> TransformCdiRoot(const CdiRootChange& change) {
  ASSIGN(const std::string text,
         change.input == "-" ? os::ReadAll(STDIN_FILENO, "standard input", api::cdi::kMaxBytes)
                             : os::ReadInput(change.input, api::cdi::kMaxBytes));
  ASSIGN(api::cdi::Spec spec,
         api::cdi::Parse(text, change.input == "-" ? "standard input" : change.input));
  const auto relative = change.relative_to == "container" ? api::cdi::Relative::kContainer
                                                          : api::cdi::Relative::kHost;
  spec = api::cdi::TransformRoot(std::move(spec), change.from, change.to, relative);
  if (change.output.empty()) return command::Shown(api::cdi::ToYaml(spec));
  const std::string file = WithSuffix(change.output);
  TRY(os::WriteFileAtomically(
      file, file.ends_with(".json") ? api::cdi::ToJson(spec) : api::cdi::ToYaml(spec)));
  return command::Shown("");
}

}  // namespace penstock::app
