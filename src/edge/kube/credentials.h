// Who we are towards one API server, kept fresh: files that rotate, exec plugins, inline data. Opens no connection.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/core/result.h"
#include "edge/kube/access.h"
#include "os/loop.h"

namespace penstock::edge::kube {

/// What a TLS connection is made with, as PEM. A connection is used again only by calls with the same identity.
struct Identity {
  std::string authority;  ///< empty: the system's
  std::string certificate, key;
};

struct Credential {
  std::shared_ptr<const Identity> identity;
  std::string authorization;     ///< the header's value, or empty
  std::uint64_t generation = 0;  ///< for Refused
};

/// On the loop's thread. Files are looked at for each credential (stat) and read again when they changed; a token file at least once a
/// minute. A file that cannot be read any more leaves what was read before in force, with a line in the log. An exec plugin runs when its
/// credential is wanted and there is none, or when it expires within ten seconds.
class Credentials {
 public:
  using Done = std::function<void(base::Result<Credential>)>;

  Credentials(os::Loop& loop, Access access);
  ~Credentials();  ///< what was asked for is not answered any more
  Credentials(const Credentials&) = delete;
  Credentials& operator=(const Credentials&) = delete;

  /// Answers at once, or after an exec plugin has ended.
  void Get(Done done);

  /// The server refused a credential: what it was made of is read, or asked for, anew. Nothing where that has happened already.
  void Refused(std::uint64_t generation);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::edge::kube
