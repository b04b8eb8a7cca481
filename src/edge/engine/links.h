// Programs that dockerd looks for by name on its PATH before it knows `--gpus`: links to ours, put where no other program has the name.
// Which there shall be is decided without files; the rest is files.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/core/result.h"
#include "edge/engine/config_files.h"

namespace penstock::edge::engine {

/// A symbolic link.
struct Link {
  std::string path, target;
  bool operator==(const Link&) const = default;
};

/// What dockerd makes a prestart hook of: of `--gpus`, it passes the environment and this program (moby, daemon/nvidia_linux.go).
inline constexpr std::string_view kRuntimeHook = "nvidia-container-runtime-hook";
/// What dockerd takes for a sign that `--gpus` may be asked for by CDI, from 29.2 (moby#50228).
inline constexpr std::string_view kCdiHook = "nvidia-cdi-hook";

/// What the links shall be.
struct LinkWish {
  std::string program;                    ///< what they lead to, as the engine sees it
  std::string folder = "/usr/local/bin";  ///< where they lie; must be on the engine's PATH
};

/// What lies at a path.
struct Occupant {
  bool there = false;
  std::optional<std::string> target;  ///< of a symbolic link
};

struct LinkPlan {
  std::vector<Link> wanted;
  std::vector<std::string> remarks;  ///< why less is put there than one would expect
};

/// The names that docker of this version is given; 0: not known. From 29.2 `--gpus` becomes CDI where nvidia-cdi-hook alone is there; later
/// releases prefer the other name where both are (moby#52704), which needs a runtime that knows it.
std::vector<std::string_view> LinkNames(int major, int minor);

/// Which links there shall be: `path` are the folders of the engine's PATH, empty where it cannot be seen, `ours` what was put there
/// before.
LinkPlan PlanLinks(const LinkWish& wish, const std::vector<std::string_view>& names, const std::vector<std::string>& path,
                   const std::vector<Link>& ours, const std::function<Occupant(const std::string&)>& look);

/// From one set of our links to another: what is not wanted any more is removed if it leads where we had it lead, what is missing is made
/// where nothing lies. Nothing of others is ever replaced: kAlreadyExists.
base::Status MoveLinks(const ConfigFiles& files, const std::vector<Link>& from, const std::vector<Link>& to);

/// The folders of a process' PATH; empty where it cannot be seen.
std::vector<std::string> SearchPath(const std::string& proc_root, pid_t pid);

/// Those of systemd's units, which an engine has unless it was given another one.
const std::vector<std::string>& UsualPath();

/// Our links are remembered beside the journal, in a file of their own, which older versions pass over.
std::string LinksPath(const std::string& journal_path);
base::Result<std::vector<Link>> LoadLinks(const std::string& path);
base::Status SaveLinks(const std::string& path, const std::vector<Link>& links);

}  // namespace penstock::edge::engine
