// Reads and writes a socket, directly or through OpenSSL.
#include "protocol/http/stream.h"

#include <algorithm>
#include <cerrno>

#include <sys/socket.h>

#include "protocol/http/tls_state.h"

namespace penstock::protocol::http::internal {

using Next = Progress::Next;

struct Stream::Session {
  std::unique_ptr<SSL, decltype(net::TlsLibrary::ssl_free)> ssl;
  bool open = false;  // the handshake is done: TLS must be shut down
};

Stream::Stream(os::UniqueFd fd, std::shared_ptr<const Tls> tls)
    : fd_(std::move(fd)), tls_(std::move(tls)) {
  if (!tls_) return;
  const net::TlsLibrary& library = tls_->state().library;
  session_ = std::make_unique<Session>(
      Session{{library.ssl_new(tls_->state().context.get()), library.ssl_free}});
  if (session_->ssl) library.set_fd(session_->ssl.get(), fd_.get());
}

Stream::~Stream() = default;

Progress Stream::FromTls(int result) const {
  const net::TlsLibrary& library = tls_->state().library;
  if (result > 0) return {Next::kDone, static_cast<std::size_t>(result)};
  const int error = library.get_error(session_->ssl.get(), result);
  library.clear_error();
  if (error == SSL_ERROR_WANT_READ) return {Next::kWantsRead};
  if (error == SSL_ERROR_WANT_WRITE) return {Next::kWantsWrite};
  return {Next::kClosed};
}

Progress Stream::Handshake() {
  if (!tls_) return {Next::kDone};
  if (!session_->ssl) return {Next::kClosed};
  const Progress progress = FromTls(tls_->state().library.accept(session_->ssl.get()));
  session_->open = progress.next == Next::kDone;
  return progress;
}

Progress Stream::Read(char* into, std::size_t most) {
  if (tls_)
    return FromTls(tls_->state().library.read(session_->ssl.get(), into, static_cast<int>(most)));
  while (true) {
    const ssize_t count = ::recv(fd_.get(), into, most, 0);
    if (count > 0) return {Next::kDone, static_cast<std::size_t>(count)};
    if (count < 0 && errno == EINTR) continue;
    return {count < 0 && errno == EAGAIN ? Next::kWantsRead : Next::kClosed};
  }
}

Progress Stream::Write(std::string_view text, bool more) {
  constexpr std::size_t kMostAtOnce = 1u << 30;  // SSL_write takes an int
  if (tls_)
    return FromTls(tls_->state().library.write(
        session_->ssl.get(), text.data(), static_cast<int>(std::min(text.size(), kMostAtOnce))));
  while (true) {
    const ssize_t count =
        ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL | (more ? MSG_MORE : 0));
    if (count >= 0) return {Next::kDone, static_cast<std::size_t>(count)};
    if (errno == EINTR) continue;
    return {errno == EAGAIN ? Next::kWantsWrite : Next::kClosed};
  }
}

void Stream::EndWriting() {
  if (session_ && session_->open) {
    tls_->state().library.shutdown(session_->ssl.get());
    tls_->state().library.clear_error();
  }
  ::shutdown(fd_.get(), SHUT_WR);
}

}  // namespace penstock::protocol::http::internal
