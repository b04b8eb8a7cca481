// What `penstock cdi generate` was asked for: flags and variables of `nvidia-ctk cdi generate`, which people have in their scripts. Asks no
// driver and writes nothing.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "api/cdi/spec.h"
#include "app/options.h"
#include "base/core/result.h"
#include "device/container.h"
#include "node/cdi/generate.h"
#include "node/cdi/modes.h"

namespace CLI {
class App;
}

namespace penstock::app {

/// As given, not checked yet.
struct CdiRequest {
  std::string output, format, mode, vendor, class_name, hook, ldconfig;
  std::vector<std::string> names, configuration_folders, library_folders, lists, ignored_links, disabled_hooks, enabled_hooks, features,
      devices;
  bool no_all = false;
  bool additional_gids = false;  ///< see api::CdiConfig
  bool quiet = false;            ///< remarks are not shown, errors are
  bool debug = false;            ///< nvidia-ctk's: of no effect
  std::string compat_root;       ///< likewise, of its mode csv
};

/// Adds the flags. `request` must outlive the parsing.
void AddCdiRequest(CLI::App& verb, CdiRequest& request);

/// What nvidia-ctk takes from its environment, for flags that were not given. After the command line was parsed. `lookup` is ::getenv but
/// in tests. Roots go to `settings`, as if they had been given. kInvalidArgument: a variable that is no answer to its question.
base::Status TakeCdiEnvironment(const CLI::App& verb, CdiRequest& request, Settings& settings,
                                const std::function<const char*(const char*)>& lookup);

/// The driver root of NVIDIA's config.toml (nvidia-container-cli.root); empty: it has none. kInvalidArgument: it is no TOML.
base::Result<std::string> RootOfToolkitConfig(std::string_view text, const std::string& file);

/// What it means.
struct CdiOrder {
  std::string mode;  ///< "auto", "nvml", or of a class or a platform
  std::string path;  ///< the file that is written; empty: standard output
  bool json = false;
  std::string vendor, class_name;  ///< parts of the kind; empty: as the mode has it
  bool every_device = true;
  std::vector<std::string> devices;  ///< ids, where it is not every one
  bool none = false;                 ///< also a device "none": the driver without a device
  node::cdi::Options options;        ///< but for the kind
  node::cdi::PlatformOptions platform;
  std::vector<std::string> configuration_folders, library_folders;
  std::vector<std::string> remarks;
  bool quiet = false;  ///< no remark is shown
};

/// Everything that is wrong with it, at once: kInvalidArgument.
base::Result<CdiOrder> UnderstandCdiRequest(const CdiRequest& request);

/// "management.nvidia.com/gpu" with the parts replaced that were asked for.
std::string KindFor(const CdiOrder& order, std::string_view kind);

/// All modes there are, sorted; "auto" first.
std::vector<std::string> CdiModes();

}  // namespace penstock::app
