// What the web configuration file says, at work before the pages: the file and the certificates that it names are followed, and a wrong one
// changes nothing. Serves nothing.
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
#include "edge/http/server.h"
#include "os/loop.h"

namespace penstock::door {

/// How a web configuration fares.
struct ProtectionStatus {
  std::string file;       ///< empty: there is none, and the pages are open to everybody
  bool in_force = false;  ///< false: none was right yet, and what was before stays: after a start, that only probes are answered
  bool tls = false, credentials = false;
  base::WallTime since{};             ///< of what is in force
  base::WallTime certificate_ends{};  ///< of its certificate, where it has TLS
  std::string problem;                ///< why what is in the files now is not in force; empty: it is
  std::vector<std::string> remarks;   ///< of what is in force
  std::uint64_t applied = 0, refused = 0;
};

/// What was read from the files of a web configuration.
struct ReadProtection {
  edge::http::Protection protection;
  base::WallTime certificate_begins{}, certificate_ends{};
  std::vector<std::string> remarks;
  std::size_t fingerprint = 0;  ///< of all that was read
};

/// Reads the file, and the files that it names into `files`, also where it fails. Blocks. The error names file and remedy.
base::Result<ReadProtection> LoadProtection(const std::string& file, base::WallTime now, std::vector<std::string>& files);

/// On the loop, once it runs; made and destroyed there too, or while it does not run.
class WebProtection {
 public:
  struct Callbacks {
    std::function<void(edge::http::Protection)> protect;
    std::function<void(const ProtectionStatus&)> tell;
  };

  /// What stands before the pages until a right file was read: nobody passes, or what was there before stays.
  enum class Until { kClosed, kAsBefore };

  /// Begins to read. `io` reads the files; it may outlive this.
  WebProtection(os::Loop& loop, base::Executor& io, std::string file, Until until, Callbacks callbacks);
  ~WebProtection();
  WebProtection(const WebProtection&) = delete;
  WebProtection& operator=(const WebProtection&) = delete;

  /// Reads again, whether something has changed or not.
  void Reload();

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace penstock::door
