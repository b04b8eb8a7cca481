// Compares passwords and tokens with their stored hashes, in constant time. Stores nothing.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/core/result.h"

namespace penstock::protocol::http {

using Digest = std::array<std::uint8_t, 32>;  ///< SHA-256

/// Hashes and compares passwords and tokens. Its libraries are loaded with the first users or
/// tokens. Any thread.
class Secrets {
 public:
  /// Blocks: loads OpenSSL and, if `passwords`, libcrypt. kUnimplemented names the missing library.
  static base::Result<std::shared_ptr<const Secrets>> Load(bool passwords);
  virtual ~Secrets() = default;

  virtual Digest Hash(std::string_view text) const = 0;
  /// HMAC-SHA-256: without the key, a stored digest reveals nothing about the text.
  virtual Digest Hash(std::string_view text, const Digest& key) const = 0;
  /// Returns whether a password matches a bcrypt hash ("$2y$10$..."). Takes as long as the hash's
  /// cost requires: about 50 ms at 10, twice that at 11. As everywhere with bcrypt, only the first
  /// 72 bytes of the password count.
  virtual bool IsPassword(std::string_view password, const std::string& bcrypt) const = 0;
};

bool Equal(const Digest& a, const Digest& b);

}  // namespace penstock::protocol::http
