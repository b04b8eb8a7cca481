// Decides what must change in a container engine's configuration, from its files and from what it
// reports about itself. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "protocol/engine/text/edit.h"
#include "protocol/engine/text/tree.h"

namespace penstock::protocol::engine {

enum class Engine { kContainerd, kCrio, kDocker, kPodman };

/// "containerd", "crio", "docker", "podman".
std::string_view Name(Engine engine);

/// A low-level runtime with the name that a RuntimeClass or `docker run --runtime` selects.
struct RuntimeHandler {
  std::string name;  ///< "nvidia"
  std::string path;  ///< absolute
  bool operator==(const RuntimeHandler&) const = default;
};

/// The desired configuration of an engine. An empty one is the configuration without Penstock's
/// changes.
struct DesiredConfig {
  bool cdi = false;  ///< inject the devices of CDI specifications
  std::vector<RuntimeHandler> handlers;
  std::string default_handler;  ///< the name of one of them; empty: unchanged
  bool operator==(const DesiredConfig&) const = default;
};

/// A file of an engine; no text: there is no such file.
struct SourceFile {
  std::string path;
  std::optional<std::string> text;
};

/// How an engine's configuration files are produced.
enum class ConfigStyle {
  kPlain,      ///< the engine reads the edited file
  kMerged,     ///< a supervisor merges drop-ins into its own file, key by key (k0s)
  kTemplated,  ///< a supervisor makes the file from a template at each start (k3s, RKE2)
  kCopied,     ///< a supervisor expands variables in the edited file, which is TOML nevertheless
               ///< (MicroK8s)
};

/// The known facts about an engine.
struct EngineFacts {
  Engine engine = Engine::kContainerd;
  ConfigStyle style = ConfigStyle::kPlain;
  std::string name;          ///< for people: "containerd", "k3s"
  int major = 0, minor = 0;  ///< of its version; 0: unknown
  SourceFile main;  ///< the file with which it is started; for k3s and RKE2, the one that they made
  std::vector<SourceFile>
      imported;        ///< imported by the main file, in the order in which the engine reads them
  SourceFile drop_in;  ///< our own file, if one is used
  bool drop_in_wanted = false;           ///< it was named explicitly
  SourceFile template_file;              ///< kTemplated only
  std::optional<std::string> effective;  ///< the configuration in force, as the engine reports it
                                         ///< (`containerd config dump`, `crio config`)
  DesiredConfig standing;     ///< what Penstock already wrote: the texts above do not contain it,
                              ///< `effective` does
  std::vector<Path> written;  ///< the keys of `standing`
};

/// The planned change of one file.
struct Target {
  std::string path;
  FileFormat format = FileFormat::kToml;
  std::optional<std::string> before;  ///< as it would be without Penstock
  std::string after;
  std::vector<Setting> settings;  ///< which `after` has and `before` lacks
};

/// The desired files of an engine, and how to verify that they took effect.
struct Goal {
  std::vector<Target> targets;       ///< without files that do not change
  std::vector<std::string> remarks;  ///< for people: what needs no change, and why
  std::vector<Setting> effective;    ///< what the engine must report in force afterwards
  std::vector<Path> may_change;      ///< keys below which the configuration in force may change
};

/// Computes what `desired` requires. kFailedPrecondition if a file cannot be edited safely or the
/// engine does not support it: the message contains the lines to add manually. kInvalidArgument if
/// a file is malformed, with file:line:column.
base::Result<Goal> MakeGoal(const EngineFacts& facts, const DesiredConfig& desired);

/// Formats settings as the TOML that people write into a document of this engine.
std::string AsToml(const std::vector<Setting>& settings);

namespace internal {

base::Result<Goal> ContainerdGoal(const EngineFacts& facts, const DesiredConfig& desired);
base::Result<Goal> TemplateGoal(const EngineFacts& facts, const DesiredConfig& desired);
base::Result<Goal> CrioGoal(const EngineFacts& facts, const DesiredConfig& desired);
base::Result<Goal> DockerGoal(const EngineFacts& facts, const DesiredConfig& desired);
base::Result<Goal> PodmanGoal(const EngineFacts& facts, const DesiredConfig& desired);

/// A containerd configuration, by its files and containerd's version.
struct Containerd {
  base::Value main;          ///< its values
  std::int64_t version = 0;  ///< of the configuration; 1 if it names none
  std::string section;       ///< of the CRI plugin
  base::Value effective;     ///< values in force; empty if the engine was not asked
  std::string effective_section;
};
base::Result<Containerd> ReadContainerd(const EngineFacts& facts);

/// Returns the settings of the CRI plugin that `desired` requires, below "plugins" and the section,
/// and adds to the goal what must be in force afterwards.
std::vector<Setting> CriSettings(const EngineFacts& facts, const Containerd& containerd,
                                 const DesiredConfig& desired, Goal& goal);

/// Adds a file with these settings to the goal if they change it.
base::Status AddTarget(Goal& goal, FileFormat format, const SourceFile& file,
                       const std::vector<Setting>& settings);

/// Returns the settings of a runtime that are worth copying: those that differ from Go's zero
/// value, which is the default.
std::vector<Setting> CopyOf(const base::Value* runtime, const Path& to);

bool HasHandler(const DesiredConfig& desired, const std::string& name);
bool AtLeast(const EngineFacts& facts, int major, int minor);

}  // namespace internal

}  // namespace penstock::protocol::engine
