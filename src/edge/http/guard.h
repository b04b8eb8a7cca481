// Who may read the pages: users with passwords (Basic, RFC 7617) and bearers of tokens (RFC 6750). Knows no page.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "base/executor.h"
#include "edge/http/failures.h"
#include "edge/http/secrets.h"

namespace penstock::edge::http {

/// Either lets one in.
struct Credentials {
  std::map<std::string, std::string> users;  ///< by name, the bcrypt hash of the password
  std::map<std::string, Digest> tokens;      ///< by a name for people, the SHA-256 of the token
};

enum class Verdict {
  kAllowed,
  kDenied,   ///< 401
  kLimited,  ///< too many failures from this address; this try was not looked at: 429
  kBusy,     ///< too many wait to be looked at: 503
};

/// On the loop of its server, but for what it does on `work`.
class Guard {
 public:
  /// `work` does what takes long, a password at a time; it outlives the guard. Credentials are not empty.
  Guard(base::Executor& loop, base::Executor& work, std::shared_ptr<const Secrets> secrets, Credentials credentials);
  ~Guard();

  /// Tells a verdict on what a request has in Authorization, at once or later, on the loop, also where the guard has ended meanwhile.
  /// `address` is where it comes from, as failures are counted. Credentials that were right before are right at once, whatever else failed
  /// there. An unknown user takes as long as a wrong password.
  void Check(const std::string& authorization, const std::string& address, std::function<void(Verdict)> tell);

  /// What a client that is denied is told to bring: the values of WWW-Authenticate.
  const std::vector<std::string>& challenges() const;

  static constexpr std::size_t kMostWaiting = 16;  ///< passwords that are being looked at or wait for it
  static constexpr std::size_t kMostKnown = 64;    ///< credentials that are remembered

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace penstock::edge::http
