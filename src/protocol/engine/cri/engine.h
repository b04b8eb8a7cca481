// Describes what a container engine can do, from its answers over CRI. Pure; sends no request.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace penstock::protocol::engine::cri {

/// Whether an engine gives containers the CDI devices that are named to it.
enum class Cdi {
  kUnknown,  ///< it does not report it, and nothing else is known
  kNever,    ///< unsupported: too old, or another kind of engine; it ignores the names silently
  kOff,      ///< supported, and disabled in its configuration
  kOn,
};

struct EngineAbilities {
  std::string socket;   ///< at which it was asked
  std::string name;     ///< "containerd", "cri-o"
  std::string version;  ///< "1.7.24", without the prefix ("v") and suffix of packagers and builders
  Cdi cdi = Cdi::kUnknown;
  bool cdi_by_field =
      false;  ///< it reads the names from CRI's own field for them, not only from annotations
  bool cdi_groups = false;  ///< it reads version 0.7.0 of the format, which has additionalGids; a
                            ///< specification of a version that it does not know it ignores as a
                            ///< whole
  std::string why;  ///< the source of `cdi`: "enable_cdi = false", "containerd can from 1.7 on"
  std::vector<std::string>
      cdi_folders;  ///< where it looks for specifications; empty: it does not report them
  pid_t pid = 0;    ///< of the process that listens; 0: in another pid namespace
  bool operator==(const EngineAbilities&) const = default;
};

/// Derives the abilities from CRI's Version and from "config" of a verbose Status (empty: none). A
/// text that is not JSON counts as none. Sources: containerd, pkg/cri/config (1.7) and
/// internal/cri/config (2.x), whose JSON has enableCDI and cdiSpecDirs; 1.6 has neither, the field
/// is read from 1.7.2 on (containerd#8519). CRI-O's server/runtime_status.go does not report it;
/// there CDI is always on (cri-o#5571, 1.24), and the field is read from 1.28 on (cri-o#6944).
/// Version 0.7.0 of the format came with version 0.7.0 of CDI's library, which the go.mod of
/// containerd has from 1.7.16 on, that of CRI-O from 1.30 on.
EngineAbilities FromAnswers(std::string_view name, std::string_view version,
                            std::string_view config);

/// Returns whether the engine finds specifications in this folder. /var/run counts as /run, as
/// everywhere.
bool ReadsFolder(const EngineAbilities& engine, std::string_view folder);

/// "containerd 1.7.24".
std::string Describe(const EngineAbilities& engine);

}  // namespace penstock::protocol::engine::cri
