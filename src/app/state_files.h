// The files of the state directory that more than one program reads.
#pragma once

#include <string>

namespace penstock::app {

inline std::string LedgerPath(const std::string& state_dir) { return state_dir + "/ledger.json"; }
/// Of what 0.1.0 cannot read in ledger.json.
inline std::string LimitsPath(const std::string& state_dir) {
  return state_dir + "/ledger-limits.json";
}
inline std::string JournalPath(const std::string& state_dir) { return state_dir + "/changes.json"; }

/// Locked by the agent that serves.
inline std::string LockPath(const std::string& run_dir) { return run_dir + "/agent.lock"; }

}  // namespace penstock::app
