// What a container engine can do, by its own words over CRI. Pure; asks nobody.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace penstock::edge::engine::cri {

/// Whether an engine gives containers the CDI devices that are named to it.
enum class Cdi {
  kUnknown,  ///< it does not say, and nothing is known of it
  kNever,    ///< it cannot: too old, or not that kind of engine; the names are ignored in silence
  kOff,      ///< it can, and its configuration says that it shall not
  kOn,
};

struct Engine {
  std::string socket;   ///< that it was asked at
  std::string name;     ///< "containerd", "cri-o"
  std::string version;  ///< "1.7.24", without what packagers and builders add in front ("v")
  Cdi cdi = Cdi::kUnknown;
  bool cdi_by_field = false;             ///< it reads the names from CRI's own field for them, not from annotations alone
  std::string why;                       ///< how that is known: "enable_cdi = false", "containerd can from 1.7 on"
  std::vector<std::string> cdi_folders;  ///< where it looks for specifications; empty: it does not say
  pid_t pid = 0;                         ///< of the process that listens; 0: in another pid namespace
  bool operator==(const Engine&) const = default;
};

/// From CRI's Version, and from what Status tells under "config" when it is asked to be verbose (empty: nothing). Text that is no JSON
/// tells nothing. Sources: containerd, pkg/cri/config (1.7) and internal/cri/config (2.x), whose JSON has enableCDI and cdiSpecDirs; 1.6
/// has neither, the field is read from 1.7.2 on (containerd#8519). CRI-O's server/runtime_status.go does not tell; there CDI is always on
/// (cri-o#5571, 1.24), and the field is read from 1.28 on (cri-o#6944).
Engine FromAnswers(std::string_view name, std::string_view version, std::string_view config);

/// Whether it would find specifications in this folder. /var/run is taken for /run, as it is everywhere.
bool LooksIn(const Engine& engine, std::string_view folder);

/// "containerd 1.7.24".
std::string InWords(const Engine& engine);

}  // namespace penstock::edge::engine::cri
