// `penstock runtime doctor`: why containers here do not get their devices. What is known of the machine is gathered first
// (doctor_gather.cc) and judged then (doctor_*.cc), by rules that read nothing and start nothing.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/cdi/registry.h"
#include "app/penstock/table.h"
#include "base/core/clock.h"
#include "edge/engine/plan.h"

namespace penstock::app {

enum class Verdict { kOk, kUnknown, kBad };

/// What a rule says of one thing.
struct DoctorFinding {
  std::string about;  ///< "containerd 1.7.24", "/etc/cdi/nvidia.yaml"
  Verdict verdict = Verdict::kOk;
  std::string why;                 ///< one sentence; what to do, too, where that is neither lines nor commands
  std::string file;                ///< in which the lines of `write` are to stand
  std::vector<std::string> write;  ///< exactly
  std::vector<std::string> run;    ///< commands, after that
  bool operator==(const DoctorFinding&) const = default;
};

/// A program that dockerd goes by when it is asked for `--gpus`: the first of its name on dockerd's PATH.
struct GpusHook {
  std::string path;
  bool ours = false;  ///< penstock-hook under that name
};

/// An installed container engine.
struct EngineState {
  edge::engine::Facts facts;  ///< its files, and what it says is in force
  std::string version;        ///< "1.7.24"; empty: not known
  std::string problem;        ///< why it could not be asked; empty: it was
  std::string socket;         ///< empty: it has none
  std::string restart;        ///< the command that makes it read its configuration; empty: it reads it every time
  std::optional<bool> systemd_cgroups;
  std::string low_level;                           ///< its default low-level runtime by name, "runc"; empty: not known
  std::vector<edge::engine::SourceFile> stray;     ///< drop-ins that lie in folders where people put such, read or not
  std::optional<GpusHook> runtime_hook, cdi_hook;  ///< docker: nvidia-container-runtime-hook, nvidia-cdi-hook
};

/// enroot's own hook for NVIDIA's devices, which pyxis' jobs in Slurm go through.
struct EnrootHook {
  std::string path;
  bool has_cli = false;  ///< nvidia-container-cli, which it executes, is there
};

/// An engine that listens where engines do and is not believed to be the machine's own.
struct UntrustedEngine {
  std::string name;  ///< "containerd"
  std::string socket, why;
};

/// Everything that the rules look at.
struct DoctorFacts {
  std::vector<std::string> folders;  ///< of specifications
  std::vector<api::cdi::SpecFile> files;
  std::map<std::string, std::vector<std::string>> missing;  ///< by file: see Missing (cdi_files.h)
  std::string driver;                                       ///< version of NVIDIA's loaded driver; empty: none is loaded
  std::vector<EngineState> engines;
  std::vector<UntrustedEngine> untrusted;
  std::map<std::string, std::string> low_level;           ///< low-level runtime → its version
  std::set<std::string> absent;                           ///< programs that engines' runtimes name and that are not there
  std::set<std::string> ours;                             ///< those among them that are penstock-runtime under another name
  std::optional<edge::engine::SourceFile> nvidia_config;  ///< /etc/nvidia-container-runtime/config.toml
  std::optional<EnrootHook> enroot;
};

/// What is wrong with the facts, and what is well; the order is that in which a device travels: specifications, engines, runtimes.
std::vector<DoctorFinding> Judge(const DoctorFacts& facts);

// Parts of it.
std::vector<DoctorFinding> JudgeSpecifications(const DoctorFacts& facts);
std::vector<DoctorFinding> JudgeEngine(const EngineState& engine, const DoctorFacts& facts);

/// The version of NVIDIA's driver that a specification was made for: what enable-cuda-compat is told, else the suffix of libcuda.so or
/// libnvidia-ml.so among its mounts; empty where it does not say.
std::string DriverOf(const api::cdi::Spec& spec);

/// The low-level runtimes that an engine's configuration names, by what RuntimeClasses call them, and the one for those that ask for none.
struct EngineRuntimes {
  std::map<std::string, std::string> programs;  ///< name → path, or a name found in PATH
  std::string by_default;
};
EngineRuntimes RuntimesOf(const edge::engine::Facts& facts);

/// What containerd's configuration says of its control groups and its default low-level runtime, into the state.
void TakeContainerdRuntime(EngineState& state);

/// A table, and below it what to write and to run, for each finding that says so.
std::string ShowFindings(const std::vector<DoctorFinding>& findings, const Style& style);

/// The same for programs: an object with `well` and a list.
std::string FindingsJson(const std::vector<DoctorFinding>& findings);

/// Looks at this machine. Blocks: programs are asked with a deadline.
DoctorFacts Gather(const std::vector<std::string>& folders);

/// What to prove, and how.
struct Proof {
  std::vector<std::string> devices;  ///< qualified names; empty: all of the first kind
  std::string engine;                ///< "podman", "containerd", "crio"; empty: the first that is there
  std::string image;  ///< of the engine's local store; empty: a root with nothing but the probe, which podman alone can start
};

/// Starts a container with the devices and opens them there, and every file that is mounted. Blocks, for a minute at most.
std::vector<DoctorFinding> Prove(const Proof& proof, const DoctorFacts& facts);

}  // namespace penstock::app
