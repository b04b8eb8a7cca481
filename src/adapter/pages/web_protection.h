// Applies the web configuration file to the pages: follows the file and the certificates that it
// names; an invalid version changes nothing. Serves nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "base/executor.h"
#include "os/loop.h"
#include "protocol/http/server.h"

namespace penstock::adapter::pages {

/// Status of a web configuration.
struct ProtectionStatus {
  std::string file;  ///< empty: there is none, and the pages are open to everyone
  /// False: no valid file was read yet, and the earlier protection stays: after a start, only
  /// probes are answered.
  bool in_force = false;
  bool tls = false, credentials = false;
  base::WallTime since{};             ///< when it came into force
  base::WallTime certificate_ends{};  ///< of its certificate, if it has TLS
  std::string problem;                ///< why the current files are not in force; empty if they are
  std::vector<std::string> remarks;   ///< about the configuration in force
  std::uint64_t applied = 0, refused = 0;
};

/// What was read from the files of a web configuration.
struct ReadProtection {
  protocol::http::Protection protection;
  base::WallTime certificate_begins{}, certificate_ends{};
  std::vector<std::string> remarks;
  std::size_t fingerprint = 0;  ///< of everything that was read
};

/// Reads the file and the files that it names, and lists them in `files`, also on failure. Blocks.
/// The error names the file and the remedy.
base::Result<ReadProtection> LoadProtection(const std::string& file, base::WallTime now,
                                            std::vector<std::string>& files);

/// Use on the loop once it runs; create and destroy it there too, or while the loop does not run.
class WebProtection {
 public:
  struct Callbacks {
    std::function<void(protocol::http::Protection)> protect;
    std::function<void(const ProtectionStatus&)> notify;
  };

  /// Protection until a valid file was read: all access is closed, or the earlier protection stays.
  enum class Until { kClosed, kAsBefore };

  /// Starts to read. `io` reads the files; it may outlive this object.
  WebProtection(os::Loop& loop, base::Executor& io, std::string file, Until until,
                Callbacks callbacks);
  ~WebProtection();
  WebProtection(const WebProtection&) = delete;
  WebProtection& operator=(const WebProtection&) = delete;

  /// Reads the files again, changed or not.
  void Reload();

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace penstock::adapter::pages
