// Creates certificate authorities and certificates for tests, in memory. Reads and writes no file.
#pragma once

#include <chrono>
#include <memory>
#include <string>

namespace penstock::protocol::kube::testing {

/// PEM.
struct Certificate {
  std::string certificate, key;
};

class Authority {
 public:
  explicit Authority(const std::string& name);
  ~Authority();

  const std::string& certificate() const;  ///< PEM

  /// A certificate of a server at 127.0.0.1 named `name`, or of a client; it expires `lasts` from
  /// now (may be negative).
  Certificate Server(const std::string& name = "localhost",
                     std::chrono::seconds lasts = std::chrono::hours(1)) const;
  Certificate Client(const std::string& name,
                     std::chrono::seconds lasts = std::chrono::hours(1)) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock::protocol::kube::testing
