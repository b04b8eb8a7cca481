// The bytes of one connection, as they are or through TLS. Never waits; private to this room.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "edge/http/tls.h"
#include "os/core/fd.h"

namespace penstock::edge::http::internal {

/// How far a call came. What was begun goes on when the socket is ready for what is wanted.
struct Progress {
  enum class Next { kDone, kWantsRead, kWantsWrite, kClosed };
  Next next = Next::kClosed;
  std::size_t count = 0;
};

/// On one thread. The process ignores SIGPIPE: OpenSSL writes to sockets without saying otherwise.
class Stream {
 public:
  /// `tls` may be null. The descriptor does not block.
  Stream(os::UniqueFd fd, std::shared_ptr<const Tls> tls);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  int fd() const { return fd_.get(); }

  /// Done at once without TLS.
  Progress Handshake();
  Progress Read(char* into, std::size_t most);
  /// `more`: that something follows at once, and may share a packet.
  Progress Write(std::string_view text, bool more);
  /// Says that no more is written; what the other side still sends can be read.
  void EndWriting();

 private:
  Progress FromTls(int result) const;

  os::UniqueFd fd_;
  std::shared_ptr<const Tls> tls_;
  struct Session;
  std::unique_ptr<Session> session_;
};

}  // namespace penstock::edge::http::internal
