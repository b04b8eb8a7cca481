// Reads and writes the bytes of one connection, plain or through TLS, without blocking. Private to
// protocol/http.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "os/core/fd.h"
#include "protocol/http/tls.h"

namespace penstock::protocol::http::internal {

/// How far a call came. An unfinished operation continues once the socket is ready for what `next`
/// names.
struct Progress {
  enum class Next { kDone, kWantsRead, kWantsWrite, kClosed };
  Next next = Next::kClosed;
  std::size_t count = 0;
};

/// On one thread. The process ignores SIGPIPE: OpenSSL writes to sockets without suppressing it.
class Stream {
 public:
  /// `tls` may be null. The descriptor is non-blocking.
  Stream(os::UniqueFd fd, std::shared_ptr<const Tls> tls);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  int fd() const { return fd_.get(); }

  /// Done at once without TLS.
  Progress Handshake();
  Progress Read(char* into, std::size_t most);
  /// `more`: further data follows at once and may share a packet.
  Progress Write(std::string_view text, bool more);
  /// Ends writing; what the peer still sends can be read.
  void EndWriting();

 private:
  Progress FromTls(int result) const;

  os::UniqueFd fd_;
  std::shared_ptr<const Tls> tls_;
  struct Session;
  std::unique_ptr<Session> session_;
};

}  // namespace penstock::protocol::http::internal
