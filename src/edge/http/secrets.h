// Passwords and tokens against what is known of them. Keeps nothing; compares in constant time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/core/result.h"

namespace penstock::edge::http {

using Digest = std::array<std::uint8_t, 32>;  ///< SHA-256

/// The functions behind it, loaded with the first users or tokens. Any thread.
class Secrets {
 public:
  /// Blocks: loads OpenSSL, and with `passwords` libcrypt. kUnimplemented says which is missing.
  static base::Result<std::shared_ptr<const Secrets>> Load(bool passwords);
  virtual ~Secrets() = default;

  virtual Digest Hash(std::string_view text) const = 0;
  /// HMAC-SHA-256: for those who do not know the key a stored digest says nothing of the text.
  virtual Digest Hash(std::string_view text, const Digest& key) const = 0;
  /// Whether a password is the one of a bcrypt hash ("$2y$10$..."). Takes as long as the hash's cost asks for: about 50 ms at 10, twice
  /// that at 11. Longer than 72 bytes, the rest does not count, as everywhere with bcrypt.
  virtual bool IsPassword(std::string_view password, const std::string& bcrypt) const = 0;
};

bool Equal(const Digest& a, const Digest& b);

}  // namespace penstock::edge::http
