// `penstock runtime doctor`: collects facts about this machine and prints the findings of the
// rules.
#pragma once

#include <string>
#include <vector>

#include "analysis/doctor/doctor.h"
#include "app/penstock/common/table.h"
#include "app/penstock/common/verbs.h"

namespace penstock::app {

/// A table, and below it the lines to write and the commands to run, where a finding has them.
std::string ShowFindings(const std::vector<analysis::DoctorFinding>& findings, const Style& style);

/// The findings as JSON: an object with `well` and a list.
std::string FindingsJson(const std::vector<analysis::DoctorFinding>& findings);

command::Verb RuntimeDoctorVerb(const Common& common);

/// Collects the facts of this machine. Blocks; programs are run with a deadline.
analysis::DoctorFacts Gather(const std::vector<std::string>& folders);

/// What to prove, and how.
struct Proof {
  std::vector<std::string> devices;  ///< qualified names; empty: all of the first kind
  std::string engine;  ///< "podman", "containerd", "crio"; empty: the first one installed
  std::string image;   ///< in the engine's local store; empty: a root file system with only the
                       ///< probe, which only podman can start
};

/// Starts a container with the devices and opens, inside it, the devices and every mounted file.
/// Blocks, for a minute at most.
std::vector<analysis::DoctorFinding> Prove(const Proof& proof, const analysis::DoctorFacts& facts);

}  // namespace penstock::app
