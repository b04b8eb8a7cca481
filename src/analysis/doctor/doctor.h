// Rules of `penstock runtime doctor`: explain why containers on this machine do not get their
// devices. doctor_gather.cc collects the facts first; the rules (doctor_*.cc) then judge them, do
// no I/O and start no program.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/cdi/registry.h"
#include "protocol/engine/apply/desired_config.h"

namespace penstock::analysis {

enum class FindingState { kOk, kUnknown, kBad };

/// The judgement of a rule about one subject.
struct DoctorFinding {
  std::string about;  ///< "containerd 1.7.24", "/etc/cdi/nvidia.yaml"
  FindingState verdict = FindingState::kOk;
  std::string why;   ///< one sentence; includes the remedy where that is neither lines nor commands
  std::string file;  ///< the file that must contain the lines of `write`
  std::vector<std::string> write;  ///< the exact lines
  std::vector<std::string> run;    ///< commands to run after writing the lines
  bool operator==(const DoctorFinding&) const = default;
};

/// The program that dockerd uses for `--gpus`: the first with the hook's name on dockerd's PATH.
struct GpusHook {
  std::string path;
  bool is_penstock = false;  ///< it is penstock-hook under that name
};

/// An installed container engine.
struct EngineState {
  protocol::engine::EngineFacts facts;  ///< its files, and its effective configuration
  std::string version;                  ///< "1.7.24"; empty: unknown
  std::string problem;                  ///< why the engine could not be queried; empty: it was
  std::string socket;                   ///< empty: the engine has no socket
  std::string restart;  ///< command that applies a new configuration; empty: the engine rereads it
                        ///< every time
  std::optional<bool> systemd_cgroups;
  std::string low_level;  ///< name of the default low-level runtime, "runc"; empty: unknown
  std::vector<protocol::engine::SourceFile>
      stray;  ///< drop-ins in the customary folders, whether the engine reads them or not
  std::optional<GpusHook> runtime_hook,
      cdi_hook;  ///< Docker: nvidia-container-runtime-hook, nvidia-cdi-hook
};

/// enroot's own hook for NVIDIA devices. Slurm jobs that use pyxis go through it.
struct EnrootHook {
  std::string path;
  bool has_cli = false;  ///< nvidia-container-cli, which the hook executes, is installed
};

/// An engine that listens on a usual socket but is not trusted to be this machine's own.
struct UntrustedEngine {
  std::string name;  ///< "containerd"
  std::string socket, why;
};

/// The input of the rules.
struct DoctorFacts {
  std::vector<std::string> folders;  ///< folders of CDI specifications
  std::vector<api::cdi::SpecFile> files;
  std::map<std::string, std::vector<std::string>> missing;  ///< file → absent things that it names:
                                                            ///< see Missing (cdi_files.h)
  std::string driver;  ///< version of NVIDIA's loaded driver; empty: no driver is loaded
  std::vector<EngineState> engines;
  std::vector<UntrustedEngine> untrusted;
  std::map<std::string, std::string> low_level;  ///< name of a low-level runtime → its version
  std::set<std::string> absent;        ///< programs of the engines' runtimes that are absent
  std::set<std::string> own_programs;  ///< those runtimes' programs that are penstock-runtime under
                                       ///< another name
  std::optional<protocol::engine::SourceFile>
      nvidia_config;  ///< /etc/nvidia-container-runtime/config.toml
  std::optional<EnrootHook> enroot;
};

/// Returns what is wrong and what is in order, for specifications, engines and runtimes: the order
/// in which a device reaches a container.
std::vector<DoctorFinding> Judge(const DoctorFacts& facts);

// Parts of Judge.
std::vector<DoctorFinding> JudgeSpecifications(const DoctorFacts& facts);
std::vector<DoctorFinding> JudgeEngine(const EngineState& engine, const DoctorFacts& facts);

/// Returns the version of NVIDIA's driver that a specification was generated for: the argument of
/// enable-cuda-compat, else the suffix of libcuda.so or libnvidia-ml.so among the mounts. Empty
/// where the specification has none of these.
std::string DriverOf(const api::cdi::Spec& spec);

/// The low-level runtimes in an engine's configuration, by the names that RuntimeClasses use, and
/// the default for containers that request none.
struct EngineRuntimes {
  std::map<std::string, std::string> programs;  ///< name → path, or a name to search in PATH
  std::string by_default;
};
EngineRuntimes RuntimesOf(const protocol::engine::EngineFacts& facts);

/// Copies the control group setting and the default low-level runtime of containerd's configuration
/// into `state`.
void TakeContainerdRuntime(EngineState& state);

}  // namespace penstock::analysis
