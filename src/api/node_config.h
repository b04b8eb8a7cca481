// NodeConfig: everything that can be said to an agent, in one document. Other people's files are translated into it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace penstock::api {

/// Where things lie, as the program itself sees them. Defaults are a plain machine's.
struct PathsConfig {
  std::string driver_root = "/";
  std::string nvml_library;  ///< not relative to the driver root; empty: found in it
  std::string sysfs_root = "/sys";
  std::string dev_root;  ///< the folder that holds dev/, or a /dev itself; empty: the driver root
  std::string proc_root = "/proc";
  std::string cdi_root = "/var/run/cdi";
  std::string kubelet_dir = "/var/lib/kubelet";
  std::string state_dir = "/var/lib/penstock";
  std::string run_dir = "/run/penstock";
};

/// Which door some devices belong to; the first rule that matches a device counts.
struct DoorRule {
  std::vector<std::string> devices;  ///< ids, indices or globs over the model; empty: all
  std::string door;                  ///< "kubelet", "local", "none"
};

enum class Switch { kAuto, kOn, kOff };

struct NodeConfig {
  PathsConfig paths;
  std::string node_name;  ///< empty: the host's name

  Switch kubelet_door = Switch::kAuto;   ///< auto: where the kubelet's directory exists
  Switch local_door = Switch::kAuto;     ///< auto: on
  std::string local_group = "penstock";  ///< members may use the local door; where no such group exists, root only
  std::vector<DoorRule> doors;           ///< before the default: the kubelet's door where it is open, else the local one

  base::Duration poll = std::chrono::seconds(5);        ///< between two looks at a device
  base::Duration probation = std::chrono::seconds(10);  ///< how long a device must look well before it is used again

  std::string listen = "127.0.0.1:9400";  ///< host:port, unix:PATH, or "off"
};

/// Reads and checks a whole document (YAML; JSON is YAML). Everything wrong at once, with file:line:column and a hint (kInvalidArgument).
base::Result<NodeConfig> ParseNodeConfig(std::string_view text, std::string_view file);

/// The values as a document that ParseNodeConfig reads back, with every key there is: what `penstock config show` prints.
std::string ToYaml(const NodeConfig& config);

/// A path that can be set by a flag of the same name and a key below `paths`.
struct PathOption {
  std::string_view flag;  ///< "--driver-root"
  std::string_view key;   ///< "driverRoot"
  std::string PathsConfig::*member;
  std::string_view help;
};
const std::vector<PathOption>& PathOptions();

/// What a running agent needs restarted for, or cannot do: checks that need more than one key (paths that contradict each other).
base::Status Validate(const NodeConfig& config);

}  // namespace penstock::api
