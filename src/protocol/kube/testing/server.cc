// Uses blocking sockets and a thread for each connection.
#include "protocol/kube/testing/server.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include <linux/sockios.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/core/strings.h"
#include "os/core/fd.h"

namespace penstock::protocol::kube::testing {
namespace {

using SslContext = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;

X509* ReadCertificate(const std::string& pem) {
  BIO* bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  X509* certificate = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  return certificate;
}

SslContext MakeContext(const Certificate& own, const std::string& client_authority) {
  SslContext context(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free);
  X509* certificate = ReadCertificate(own.certificate);
  SSL_CTX_use_certificate(context.get(), certificate);
  X509_free(certificate);
  BIO* bio = BIO_new_mem_buf(own.key.data(), static_cast<int>(own.key.size()));
  EVP_PKEY* key = PEM_read_bio_PrivateKey(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  SSL_CTX_use_PrivateKey(context.get(), key);
  EVP_PKEY_free(key);
  SSL_CTX_set_session_id_context(context.get(), reinterpret_cast<const unsigned char*>("test"), 4);
  if (client_authority.empty()) return context;
  X509* authority = ReadCertificate(client_authority);
  X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), authority);
  X509_free(authority);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  return context;
}

/// A connection, with TLS if there is a context.
class Connection final : public Peer {
 public:
  Connection(int fd, SSL_CTX* context) : fd_(fd) {
    if (context == nullptr) return;
    ssl_ = SSL_new(context);
    SSL_set_fd(ssl_, fd);
  }
  ~Connection() override { SSL_free(ssl_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  bool Accept() { return ssl_ == nullptr || SSL_accept(ssl_) == 1; }

  void Send(std::string_view bytes) override {
    while (!bytes.empty()) {
      const long sent =
          ssl_ != nullptr
              ? SSL_write(ssl_, bytes.data(),
                          static_cast<int>(std::min<std::size_t>(bytes.size(), 1 << 20)))
              : ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  void WaitUntilReceived() override {
    for (int unacknowledged = 1;
         ::ioctl(fd_, SIOCOUTQ, &unacknowledged) == 0 && unacknowledged > 0;)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  void WaitUntilClosed() override {
    std::string ignored;
    while (Receive(ignored)) ignored.clear();
  }

  bool Receive(std::string& to) {
    char part[16384];
    const long got =
        ssl_ != nullptr ? SSL_read(ssl_, part, sizeof part) : ::recv(fd_, part, sizeof part, 0);
    if (got <= 0) return false;
    to.append(part, static_cast<std::size_t>(got));
    return true;
  }

  std::string Client() const {
    if (ssl_ == nullptr) return {};
    X509* certificate = SSL_get1_peer_certificate(ssl_);
    if (certificate == nullptr) return {};
    char name[256] = "";
    X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name,
                              sizeof name);
    X509_free(certificate);
    return name;
  }

 private:
  int fd_;
  SSL* ssl_ = nullptr;
};

HttpRequest ReadHead(std::string_view head) {
  HttpRequest request;
  bool first = true;
  for (const std::string& line : base::Split(head, '\n')) {
    const std::string text(base::Trim(line));
    if (std::exchange(first, false)) {
      const auto words = base::Split(text, ' ');
      if (words.size() < 2) return request;
      request.method = words[0];
      request.target = words[1];
    } else if (const std::size_t colon = text.find(':'); colon != std::string::npos) {
      request.headers[base::ToLower(text.substr(0, colon))] =
          base::Trim(std::string_view(text).substr(colon + 1));
    }
  }
  return request;
}

// Reads the next request of a connection; false at its end.
bool ReadRequest(Connection& connection, std::string& buffer, HttpRequest& request) {
  std::size_t end = 0;
  while ((end = buffer.find("\r\n\r\n")) == std::string::npos)
    if (!connection.Receive(buffer)) return false;
  request = ReadHead(std::string_view(buffer).substr(0, end));
  buffer.erase(0, end + 4);
  const auto length = request.headers.find("content-length");
  const std::size_t wanted =
      length != request.headers.end() ? base::ParseUint(length->second).value_or(0) : 0;
  while (buffer.size() < wanted)
    if (!connection.Receive(buffer)) return false;
  request.body = buffer.substr(0, wanted);
  buffer.erase(0, wanted);
  return true;
}

}  // namespace

struct Server::State {
  explicit State(Handler then) : handler(std::move(then)) {}

  void Listen();
  void Accept();
  void Serve(int fd, int number);

  Handler handler;
  SslContext context{nullptr, &SSL_CTX_free};
  os::UniqueFd listener;
  int port = 0;
  std::thread acceptor;
  std::mutex mutex;  // guards the next three members
  bool stopping = false;
  std::vector<os::UniqueFd> sockets;
  std::vector<std::thread> threads;
};

void Server::State::Listen() {
  listener = os::UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listener.get(), 128) != 0)
    std::abort();
  ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
  port = ::ntohs(address.sin_port);
  acceptor = std::thread([this] { Accept(); });
}

void Server::State::Accept() {
  for (int number = 1;; ++number) {
    const int fd = ::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC);
    std::lock_guard lock(mutex);
    if (fd < 0 || stopping) {
      if (fd >= 0) ::close(fd);
      return;
    }
    sockets.emplace_back(fd);
    threads.emplace_back([this, fd, number] { Serve(fd, number); });
  }
}

void Server::State::Serve(int fd, int number) {
  sigset_t pipe;  // blocked in this thread only: the tested code must not depend on it
  ::sigemptyset(&pipe);
  ::sigaddset(&pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  {
    Connection connection(fd, context.get());
    std::string buffer;
    HttpRequest request;
    if (connection.Accept()) {
      const std::string client = connection.Client();
      while (ReadRequest(connection, buffer, request)) {
        request.client = client;
        request.connection = number;
        if (!handler(request, connection)) break;
      }
    }
  }
  ::shutdown(fd, SHUT_RDWR);  // closed by the destructor, so that the number is not reused
}

Server::Server(Handler handler) : state_(std::make_unique<State>(std::move(handler))) {
  state_->Listen();
}

Server::Server(Handler handler, const Certificate& certificate, const std::string& client_authority)
    : state_(std::make_unique<State>(std::move(handler))) {
  state_->context = MakeContext(certificate, client_authority);
  state_->Listen();
}

Server::~Server() {
  {
    std::lock_guard lock(state_->mutex);
    state_->stopping = true;
    for (const os::UniqueFd& socket : state_->sockets) ::shutdown(socket.get(), SHUT_RDWR);
  }
  ::shutdown(state_->listener.get(), SHUT_RDWR);
  state_->acceptor.join();
  for (std::thread& thread : state_->threads) thread.join();
}

int Server::port() const { return state_->port; }

std::string Server::url() const {
  return (state_->context != nullptr ? "https" : "http") + std::string("://127.0.0.1:") +
         std::to_string(state_->port);
}

std::string Reply(int status, std::string_view body, std::string_view headers) {
  return "HTTP/1.1 " + std::to_string(status) + " X\r\n" + std::string(headers) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

std::string Chunk(std::string_view data) {
  char size[32];
  std::snprintf(size, sizeof size, "%zx\r\n", data.size());
  return size + std::string(data) + "\r\n";
}

}  // namespace penstock::protocol::kube::testing
