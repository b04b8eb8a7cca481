// Declares the verbs of penstock-sim and what they share: exit codes, tables, errors. Each verb is
// a function in a cli_*.cc; main.cc reads the flags.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/core/result.h"

namespace penstock::sim::cli {

enum ExitCode { kOk = 0, kFailed = 1, kUsage = 2 };

/// Prints "penstock-sim: message" to standard error. Returns kUsage for errors of the caller, else
/// kFailed.
int Fail(const base::Error& error);

/// Prints rows below a header in aligned columns.
void PrintTable(const std::vector<std::vector<std::string>>& rows);

enum class Output { kTable, kJson, kYaml };

int List(Output output);
int Describe(const std::string& machine, Output output);

struct StartOptions {
  std::string machine, root, driver, seed;
  bool no_driver = false, replace = false;
};
int Start(const StartOptions& options);
int Stop(const std::string& root);
int ShowStatus(const std::string& root, Output output);

struct SetOptions {
  std::string root, target;
  std::vector<std::string> settings;
};
int Set(const SetOptions& options);

struct FaultOptions {
  std::string root, target;
  std::vector<std::string> words;  // kind and its arguments
  std::string text, instance, where = "both";
  std::uint32_t count = 0;
  bool corrected = false, no_log = false, no_event = false, alone = false;
};
int Fault(const FaultOptions& options);

struct ClockOptions {
  std::string root, action, by;
};
int Clock(const ClockOptions& options);

struct HealOptions {
  std::string root, target, driver;
  bool module_only = false;
};
int Heal(const HealOptions& options);

}  // namespace penstock::sim::cli
