// Authenticates readers of pages: users with passwords (Basic, RFC 7617) and bearers of tokens (RFC
// 6750).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "base/executor.h"
#include "protocol/http/login_throttle.h"
#include "protocol/http/secrets.h"

namespace penstock::protocol::http {

/// The accepted credentials; one user or one token is enough.
struct PageCredentials {
  std::map<std::string, std::string> users;  ///< bcrypt hash of the password, by user name
  std::map<std::string, Digest> tokens;      ///< SHA-256 of the token, by a name for people
};

enum class AuthVerdict {
  kAllowed,
  kDenied,   ///< 401
  kLimited,  ///< too many failures from this address; the credentials were not checked: 429
  kBusy,     ///< too many checks wait: 503
};

/// Used on its server's loop, except for the work on `work`.
class Authenticator {
 public:
  /// `work` runs what takes long, one password at a time, and outlives the authenticator.
  /// `credentials` is not empty.
  Authenticator(base::Executor& loop, base::Executor& work, std::shared_ptr<const Secrets> secrets,
                PageCredentials credentials);
  ~Authenticator();

  /// Checks the value of Authorization and passes the verdict to `tell`, at once or later, on the
  /// loop, also if the authenticator was destroyed meanwhile. `address` is the client's, by which
  /// failures are counted. Credentials that were right before are accepted at once, whatever else
  /// failed at that address. An unknown user takes as long as a wrong password.
  void Check(const std::string& authorization, const std::string& address,
             std::function<void(AuthVerdict)> notify);

  /// Returns the values of WWW-Authenticate, which ask a denied client for credentials.
  const std::vector<std::string>& challenges() const;

  static constexpr std::size_t kMaxWaiting =
      16;  ///< passwords that are being checked or wait for it
  static constexpr std::size_t kMaxRemembered = 64;  ///< credentials that are remembered

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace penstock::protocol::http
