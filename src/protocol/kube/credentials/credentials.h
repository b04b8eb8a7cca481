// Provides fresh credentials for one API server: from rotating files, exec plugins and inline data.
// Opens no connection.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/core/result.h"
#include "os/loop.h"
#include "protocol/kube/credentials/access.h"

namespace penstock::protocol::kube {

/// The identity of a TLS connection, as PEM. Only calls with the same identity reuse a connection.
struct ClientIdentity {
  std::string authority;  ///< empty: the system's
  std::string certificate, key;
};

struct Credential {
  std::shared_ptr<const ClientIdentity> identity;
  std::string authorization;     ///< the header's value, or empty
  std::uint64_t generation = 0;  ///< for Refused
};

/// Use on the loop's thread. Checks files for each credential (stat) and reads them again if they
/// changed; a token file at least once a minute. If a file can no longer be read, its last content
/// stays in force, with a line in the log. Runs an exec plugin when its credential is requested and
/// there is none, or when it expires within ten seconds.
class Credentials {
 public:
  using Done = std::function<void(base::Result<Credential>)>;

  Credentials(os::Loop& loop, ClusterAccess access);
  ~Credentials();  ///< pending requests get no answer
  Credentials(const Credentials&) = delete;
  Credentials& operator=(const Credentials&) = delete;

  /// Answers at once, or after an exec plugin has ended.
  void Get(Done done);

  /// The server refused a credential: reads its files or runs its plugin again. Does nothing if
  /// that has already happened.
  void Refused(std::uint64_t generation);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::protocol::kube
