// What must change in a container engine's configuration, decided from its files and from what it says of itself. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "edge/engine/edit.h"
#include "edge/engine/tree.h"

namespace penstock::edge::engine {

enum class Engine { kContainerd, kCrio, kDocker, kPodman };

/// "containerd", "crio", "docker", "podman".
std::string_view Name(Engine engine);

/// A low-level runtime under the name that a RuntimeClass or `docker run --runtime` asks for.
struct Handler {
  std::string name;  ///< "nvidia"
  std::string path;  ///< absolute
  bool operator==(const Handler&) const = default;
};

/// What an engine's configuration shall say. Nothing wished is how it was before anybody wished.
struct Wish {
  bool cdi = false;  ///< devices of CDI specifications are injected
  std::vector<Handler> handlers;
  std::string default_handler;  ///< the name of one of them; empty: as it is
  bool operator==(const Wish&) const = default;
};

/// A file of an engine; no text: there is no such file.
struct SourceFile {
  std::string path;
  std::optional<std::string> text;
};

/// How an engine's files come to be.
enum class Manner {
  kPlain,      ///< the engine reads the file that is edited
  kMerged,     ///< a supervisor merges drop-ins into a file of its own, key by key (k0s)
  kTemplated,  ///< a supervisor makes the file from a template at each start (k3s, RKE2)
  kCopied,     ///< a supervisor fills variables of the file that is edited, which is TOML all the same (MicroK8s)
};

/// What is known of an engine.
struct Facts {
  Engine engine = Engine::kContainerd;
  Manner manner = Manner::kPlain;
  std::string name;                      ///< for people: "containerd", "k3s"
  int major = 0, minor = 0;              ///< of its version; 0: not known
  SourceFile main;                       ///< the file that it is started with; of k3s and RKE2 the one they made
  std::vector<SourceFile> imported;      ///< that the main file imports, in the order that the engine reads them
  SourceFile drop_in;                    ///< where a file of ours would be
  bool drop_in_wanted = false;           ///< somebody named it
  SourceFile template_file;              ///< kTemplated only
  std::optional<std::string> effective;  ///< what the engine says is in force (`containerd config dump`, `crio config`)
  Wish standing;                         ///< what we wrote already: the texts above are without it, `effective` is with it
  std::vector<Path> written;             ///< its keys
};

/// What becomes of one file.
struct Target {
  std::string path;
  Format format = Format::kToml;
  std::optional<std::string> before;  ///< as it would be without us
  std::string after;
  std::vector<Setting> settings;  ///< that `after` has and `before` lacks
};

/// What an engine's files shall be, and how one sees that it came about.
struct Goal {
  std::vector<Target> targets;       ///< without those that change nothing
  std::vector<std::string> remarks;  ///< worth knowing: what needs no line at all, and why
  std::vector<Setting> effective;    ///< what the engine must say is in force afterwards
  std::vector<Path> may_change;      ///< keys below which what is in force may change
};

/// What `wish` takes. kFailedPrecondition where a file cannot be edited safely or the engine cannot do it: the message has the lines to
/// write by hand; kInvalidArgument where a file is ill-formed, with file:line:column.
base::Result<Goal> MakeGoal(const Facts& facts, const Wish& wish);

/// The keys of a document of this engine as people write them by hand.
std::string AsToml(const std::vector<Setting>& settings);

namespace internal {

base::Result<Goal> ContainerdGoal(const Facts& facts, const Wish& wish);
base::Result<Goal> TemplateGoal(const Facts& facts, const Wish& wish);
base::Result<Goal> CrioGoal(const Facts& facts, const Wish& wish);
base::Result<Goal> DockerGoal(const Facts& facts, const Wish& wish);
base::Result<Goal> PodmanGoal(const Facts& facts, const Wish& wish);

/// What a containerd's configuration is of, by its files and its version.
struct Containerd {
  base::Value main;          ///< its values
  std::int64_t version = 0;  ///< of the configuration; 1 where it says none
  std::string section;       ///< of the CRI plugin
  base::Value effective;     ///< values; empty where the engine was not asked
  std::string effective_section;
};
base::Result<Containerd> ReadContainerd(const Facts& facts);

/// The settings of the CRI plugin that the wish takes, below "plugins" and the section; and what to see afterwards.
std::vector<Setting> CriSettings(const Facts& facts, const Containerd& containerd, const Wish& wish, Goal& goal);

/// Adds the file with these settings to the goal where they change it.
base::Status AddTarget(Goal& goal, Format format, const SourceFile& file, const std::vector<Setting>& settings);

/// The settings of a runtime that are worth a copy: not what is Go's zero value, which is the default.
std::vector<Setting> CopyOf(const base::Value* runtime, const Path& to);

bool HasHandler(const Wish& wish, const std::string& name);
bool AtLeast(const Facts& facts, int major, int minor);

}  // namespace internal

}  // namespace penstock::edge::engine
