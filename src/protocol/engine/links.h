// Creates the links to our programs that dockerd looks for by name on its PATH before it supports
// `--gpus`, where no other program has that name. Planning does no I/O; the rest works on files.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/core/result.h"
#include "protocol/engine/config_files.h"

namespace penstock::protocol::engine {

/// A symbolic link.
struct GpusLink {
  std::string path, target;
  bool operator==(const GpusLink&) const = default;
};

/// The program that dockerd makes a prestart hook: for `--gpus`, dockerd passes on the environment
/// and this program (moby, daemon/nvidia_linux.go).
inline constexpr std::string_view kRuntimeHook = "nvidia-container-runtime-hook";
/// The program whose presence makes dockerd support `--gpus` by CDI, from 29.2 (moby#50228).
inline constexpr std::string_view kCdiHook = "nvidia-cdi-hook";

/// The desired links.
struct DesiredLinks {
  std::string program;                    ///< their target, as the engine sees it
  std::string folder = "/usr/local/bin";  ///< their folder; must be on the engine's PATH
};

/// What occupies a path.
struct LinkOccupant {
  bool there = false;
  std::optional<std::string> target;  ///< of a symbolic link
};

struct LinkPlan {
  std::vector<GpusLink> wanted;
  std::vector<std::string> remarks;  ///< why fewer links are made than expected
};

/// Returns the names of the links for docker of this version; 0: unknown. From 29.2, `--gpus` uses
/// CDI if nvidia-cdi-hook alone is present; later releases prefer the other name if both are
/// (moby#52704), which needs a runtime that supports it.
std::vector<std::string_view> LinkNames(int major, int minor);

/// Decides which links should exist. `path` is the engine's PATH, empty if it cannot be read;
/// `own` are the links that were made before.
LinkPlan PlanLinks(const DesiredLinks& desired, const std::vector<std::string_view>& names,
                   const std::vector<std::string>& path, const std::vector<GpusLink>& own,
                   const std::function<LinkOccupant(const std::string&)>& inspect);

/// Moves from one set of our links to another: removes a link that is no longer desired if it still
/// has our target, and creates a missing one if its path is free. Never replaces files of others:
/// kAlreadyExists.
base::Status MoveLinks(const ConfigFiles& files, const std::vector<GpusLink>& from,
                       const std::vector<GpusLink>& to);

/// Returns the folders of a process's PATH; empty if it cannot be read.
std::vector<std::string> SearchPath(const std::string& proc_root, pid_t pid);

/// The PATH of systemd's units, which an engine has unless it is configured otherwise.
const std::vector<std::string>& UsualPath();

/// Our links are recorded next to the journal, in a separate file, which older versions ignore.
std::string LinksPath(const std::string& journal_path);
base::Result<std::vector<GpusLink>> LoadLinks(const std::string& path);
base::Status SaveLinks(const std::string& path, const std::vector<GpusLink>& links);

}  // namespace penstock::protocol::engine
