// Options of `penstock cdi generate`: the flags and environment variables of `nvidia-ctk cdi
// generate`, so that scripts written for it keep working. Calls no driver and writes nothing.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/cdi/spec.h"
#include "app/options.h"
#include "base/core/result.h"
#include "device/container.h"
#include "node/cdi/generate.h"
#include "node/cdi/modes.h"

namespace penstock::app {

/// The options as given, not validated yet.
struct CdiRequest {
  std::string output, format, mode, vendor, class_name, hook, ldconfig;
  std::vector<std::string> names, configuration_folders, library_folders, lists, ignored_links,
      disabled_hooks, enabled_hooks, features, devices;
  bool no_all = false;
  bool additional_gids = false;       ///< see api::CdiConfig
  bool quiet = false;                 ///< hides remarks, not errors
  bool debug = false;                 ///< of nvidia-ctk: without effect
  std::string compat_root;            ///< of nvidia-ctk's mode csv: without effect
  std::map<std::string, bool> given;  ///< by the first name of a flag: it was on the command line
};

/// The flags. `request` must outlive the parsing.
std::vector<command::Option> CdiOptions(CdiRequest& request);

/// Takes nvidia-ctk's environment variables for flags that were not given. Call it after the
/// command line was parsed. `lookup` is ::getenv except in tests. Root folders go to `settings`, as
/// if given there as flags. kInvalidArgument: the value of a variable is invalid.
base::Status TakeCdiEnvironment(CdiRequest& request, Settings& settings,
                                const std::function<const char*(const char*)>& lookup);

/// Returns the driver root of NVIDIA's config.toml (nvidia-container-cli.root); empty: it has none.
/// kInvalidArgument: the text is not TOML.
base::Result<std::string> RootOfToolkitConfig(std::string_view text, const std::string& file);

/// The validated options.
struct CdiOrder {
  std::string mode;  ///< "auto", "nvml", or the name of a class or a platform
  std::string path;  ///< the file to write; empty: standard output
  bool json = false;
  std::string vendor, class_name;  ///< parts of the kind; empty: as the mode defines
  bool every_device = true;
  std::vector<std::string> devices;  ///< ids, where not every device is requested
  bool none = false;                 ///< also a device "none": the driver without a device
  node::cdi::Options options;        ///< except the kind
  node::cdi::PlatformOptions platform;
  std::vector<std::string> configuration_folders, library_folders;
  std::vector<std::string> remarks;
  bool quiet = false;  ///< remarks are not shown
};

/// Validates the request. kInvalidArgument: all problems at once.
base::Result<CdiOrder> UnderstandCdiRequest(const CdiRequest& request);

/// Returns a kind like "management.nvidia.com/gpu" with the requested parts replaced.
std::string KindFor(const CdiOrder& order, std::string_view kind);

/// All modes, sorted, "auto" first.
std::vector<std::string> CdiModes();

}  // namespace penstock::app
