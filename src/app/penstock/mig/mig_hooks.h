// Runs the hooks of mig-parted: programs that an administrator wants to run before and after a
// change, with the rights of the caller of this program.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "api/compat/nvidia/mig_hooks.h"
#include "app/penstock/mig/mig_interrupt.h"
#include "base/core/clock.h"
#include "base/core/result.h"
#include "os/process/process.h"

namespace penstock::app {

class MigHookRunner {
 public:
  struct Options {
    std::map<std::string, std::string> environment;  ///< in place of the same variables of a hook
    bool show_output = true;                         ///< on standard error
    base::Duration deadline = std::chrono::minutes(5);  ///< of each program
    /// From SIGTERM to SIGKILL, for a program that is running when a signal arrives.
    base::Duration grace = std::chrono::seconds(10);
    Interruption* interruption = nullptr;  ///< ends all but the programs of apply-exit
  };

  /// Reads the file, which only root and the caller may be able to change or redirect
  /// (os::OpenTrusted): kPermissionDenied otherwise. Other errors: those of ReadMigHooks. Blocks.
  static base::Result<MigHookRunner> Open(const std::string& file, Options options);

  /// Runs the programs of a hook in their order, until one fails: kAborted, it ended with a status
  /// other than 0; kDeadlineExceeded, it was killed, with what it started; kNotFound and others, it
  /// could not be started; kCancelled, a signal ended it, with what it started, or prevented it.
  /// They have no standard input, the given environment and no other. Blocks.
  base::Status Run(const char* name) const;

 private:
  MigHookRunner(api::compat::MigHooks hooks, Options options)
      : hooks_(std::move(hooks)), options_(std::move(options)) {}
  base::Status RunOne(const api::compat::MigHook& hook, bool last) const;
  base::Status End(const os::Child& child, const std::string& command) const;

  api::compat::MigHooks hooks_;
  Options options_;
};

}  // namespace penstock::app
