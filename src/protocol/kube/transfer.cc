#include "protocol/kube/transfer.h"

#include <algorithm>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/core/strings.h"

namespace penstock::protocol::kube {
namespace {

// RFC 3986: unreserved characters stay, and in a path (`also`) those that delimit nothing there.
void Escape(std::string_view text, std::string_view also, std::string& to) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  for (const char c : text) {
    if (kPlain.find(c) != std::string_view::npos || also.find(c) != std::string_view::npos) {
      to += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      to.append({'%', kDigits[byte >> 4], kDigits[byte & 15]});
    }
  }
}

// "https://host:port/prefix" in its parts; brackets stay.
struct Server {
  std::string scheme, host, port, prefix;
};

Server Split(const std::string& url) {
  Server server;
  const std::size_t colon = url.find("://");
  server.scheme = url.substr(0, colon);
  std::string rest = colon == std::string::npos ? url : url.substr(colon + 3);
  if (const std::size_t slash = rest.find('/'); slash != std::string::npos) {
    server.prefix = rest.substr(slash);
    rest.resize(slash);
  }
  const std::size_t port = rest.rfind(':');
  const std::size_t bracket = rest.rfind(']');
  if (port != std::string::npos && (bracket == std::string::npos || port > bracket)) {
    server.port = rest.substr(port + 1);
    rest.resize(port);
  }
  server.host = rest;
  if (server.port.empty()) server.port = server.scheme == "http" ? "80" : "443";
  return server;
}

bool NamesAnother(const ClusterAccess& access) {
  return !access.tls_server_name.empty() && access.server.starts_with("https://");
}

void SetOption(int socket, int level, int option, std::int64_t value) {
  const int number = static_cast<int>(std::clamp<std::int64_t>(value, 1, 1 << 30));
  ::setsockopt(socket, level, option, &number, sizeof number);
}

}  // namespace

std::string UrlOf(const ClusterAccess& access, const ApiCall& call) {
  std::string url = access.server;
  if (NamesAnother(access)) {
    // libcurl uses one name for SNI, the certificate and the address: it gets this one, and another
    // address to connect to.
    const Server server = Split(access.server);
    url = server.scheme + "://" + access.tls_server_name + ":" + server.port + server.prefix;
  }
  Escape(call.path, "/:@!$&'()*+,;=", url);
  char separator = '?';
  for (const auto& [key, value] : call.query) {
    url += std::exchange(separator, '&');
    Escape(key, "", url);
    url += '=';
    Escape(value, "", url);
  }
  return url;
}

base::Result<std::unique_ptr<Transfer>> Transfer::Make(const net::CurlLibrary& curl, Setup setup) {
  std::unique_ptr<Transfer> transfer(new Transfer(curl, setup));
  if (transfer->handle_ == nullptr)
    return Error(Code::kResourceExhausted, "libcurl cannot create a handle: out of memory");
  transfer->SetUp(setup);
  return transfer;
}

Transfer::Transfer(const net::CurlLibrary& curl, const Setup& setup)
    : curl_(curl),
      handle_(curl.easy_init()),
      credential_(setup.credential),
      server_(setup.access.server),
      sent_(setup.call.body),
      silent_peer_(setup.silent_peer),
      stream_(setup.stream),
      arrived_(setup.arrived) {}

Transfer::~Transfer() {
  if (handle_ != nullptr) curl_.easy_cleanup(handle_);
  curl_.slist_free_all(headers_);
  curl_.slist_free_all(connect_to_);
}

void Transfer::AddHeader(const std::string& line) {
  if (curl_slist* longer = curl_.slist_append(headers_, line.c_str())) headers_ = longer;
}

void Transfer::SetUp(const Setup& setup) {
  const ClusterAccess& access = setup.access;
  curl_.setopt(handle_, CURLOPT_ERRORBUFFER, error_);
  curl_.setopt(handle_, CURLOPT_NOSIGNAL, 1L);
  curl_.setopt(handle_, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_.setopt(handle_, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_.setopt(handle_, CURLOPT_PATH_AS_IS, 1L);
  curl_.setopt(handle_, CURLOPT_URL, UrlOf(access, setup.call).c_str());
  curl_.setopt(handle_, CURLOPT_USERAGENT, setup.user_agent.c_str());
  curl_.setopt(handle_, CURLOPT_BUFFERSIZE, 16384L);
  curl_.setopt(handle_, CURLOPT_UPLOAD_BUFFERSIZE, 16384L);
  curl_.setopt(handle_, CURLOPT_HEADERFUNCTION, &Transfer::OnHeader);
  curl_.setopt(handle_, CURLOPT_HEADERDATA, this);
  curl_.setopt(handle_, CURLOPT_WRITEFUNCTION, &Transfer::OnBody);
  curl_.setopt(handle_, CURLOPT_WRITEDATA, this);
  curl_.setopt(handle_, CURLOPT_SOCKOPTFUNCTION, &Transfer::OnSocket);
  curl_.setopt(handle_, CURLOPT_SOCKOPTDATA, this);
  curl_.setopt(handle_, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_.setopt(handle_, CURLOPT_SOCKS5_AUTH,
               static_cast<long>(CURLAUTH_BASIC));  // GSSAPI is left out (curl/absent.c)
  if (!access.proxy.empty()) {
    curl_.setopt(handle_, CURLOPT_PROXY, access.proxy.c_str());
    curl_.setopt(handle_, CURLOPT_NOPROXY, "");
  }
  if (stream_) {
    curl_.setopt(handle_, CURLOPT_FRESH_CONNECT, 1L);
    curl_.setopt(handle_, CURLOPT_FORBID_REUSE, 1L);
  }
  SetUpTls(setup);
  SetUpMethod(setup.call);
  AddHeader("Accept: " +
            (setup.call.accept.empty() ? std::string("application/json") : setup.call.accept));
  if (!credential_.authorization.empty()) AddHeader("Authorization: " + credential_.authorization);
  curl_.setopt(handle_, CURLOPT_HTTPHEADER, headers_);
}

void Transfer::SetBlob(CURLoption option, const std::string& data) {
  if (data.empty()) return;
  // NOCOPY: the identity lives as long as this object.
  curl_blob blob{const_cast<char*>(data.data()), data.size(), CURL_BLOB_NOCOPY};
  curl_.setopt(handle_, option, &blob);
}

void Transfer::SetUpTls(const Setup& setup) {
  const ClusterAccess& access = setup.access;
  if (!access.server.starts_with("https://")) return;
  curl_.setopt(handle_, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  SetBlob(CURLOPT_CAINFO_BLOB, credential_.identity->authority);
  SetBlob(CURLOPT_SSLCERT_BLOB, credential_.identity->certificate);
  SetBlob(CURLOPT_SSLKEY_BLOB, credential_.identity->key);
  if (!credential_.identity->authority.empty())
    curl_.setopt(handle_, CURLOPT_CAPATH, static_cast<char*>(nullptr));
  if (access.insecure_skip_tls_verify) {
    curl_.setopt(handle_, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_.setopt(handle_, CURLOPT_SSL_VERIFYHOST, 0L);
  }
  if (!NamesAnother(access)) return;
  const Server server = Split(access.server);
  connect_to_ = curl_.slist_append(nullptr, ("::" + server.host + ":" + server.port).c_str());
  curl_.setopt(handle_, CURLOPT_CONNECT_TO, connect_to_);
  AddHeader("Host: " + server.host + ":" + server.port);
}

void Transfer::SetUpMethod(const ApiCall& call) {
  if (call.method == "HEAD") {
    curl_.setopt(handle_, CURLOPT_NOBODY, 1L);
  } else if (call.method == "GET" && sent_.empty()) {
    curl_.setopt(handle_, CURLOPT_HTTPGET, 1L);
  } else {
    if (!sent_.empty() || call.method == "POST" || call.method == "PUT" || call.method == "PATCH") {
      curl_.setopt(handle_, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(sent_.size()));
      curl_.setopt(handle_, CURLOPT_POSTFIELDS, sent_.c_str());
      AddHeader("Content-Type: " +
                (call.content_type.empty() ? std::string("application/json") : call.content_type));
      AddHeader("Expect:");  // the body is not worth another round trip
    }
    curl_.setopt(handle_, CURLOPT_CUSTOMREQUEST, call.method.c_str());
  }
}

int Transfer::OnSocket(void* self, curl_socket_t socket, curlsocktype purpose) {
  if (purpose != CURLSOCKTYPE_IPCXN) return CURL_SOCKOPT_OK;
  const base::Duration silent = static_cast<Transfer*>(self)->silent_peer_;
  const std::int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(silent).count();
  SetOption(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  SetOption(socket, IPPROTO_TCP, TCP_KEEPIDLE, seconds / 2);
  SetOption(socket, IPPROTO_TCP, TCP_KEEPINTVL, seconds / 8);
  // Limits how long sent bytes may stay unacknowledged; it also ends the keep-alive's probes
  // (tcp(7)).
  SetOption(socket, IPPROTO_TCP, TCP_USER_TIMEOUT,
            std::chrono::duration_cast<std::chrono::milliseconds>(silent).count());
  return CURL_SOCKOPT_OK;
}

std::size_t Transfer::OnHeader(char* data, std::size_t size, std::size_t count, void* self) {
  auto* transfer = static_cast<Transfer*>(self);
  transfer->Header(std::string_view(data, size * count));
  transfer->arrived_();
  return size * count;
}

void Transfer::Header(std::string_view line) {
  line = base::Trim(line);
  if (line.starts_with("HTTP/")) {
    // A 100 may precede the answer.
    const std::size_t blank = line.find(' ');
    const auto code =
        blank == std::string_view::npos ? std::nullopt : base::ParseInt(line.substr(blank + 1, 3));
    status_ = code && *code >= 200 ? static_cast<int>(*code) : 0;
    content_type_.clear();
    has_retry_after_ = false;
    return;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  const std::string name = base::ToLower(line.substr(0, colon));
  if (name == "content-type") content_type_ = base::ToLower(base::Trim(line.substr(colon + 1)));
  if (name == "retry-after") has_retry_after_ = true;
}

std::size_t Transfer::OnBody(char* data, std::size_t size, std::size_t count, void* self) {
  auto* transfer = static_cast<Transfer*>(self);
  if (!transfer->Body({data, size * count})) return 0;
  transfer->arrived_();
  return size * count;
}

bool Transfer::Body(std::string_view part) {
  const bool lines = stream_ && success();
  const std::size_t end = lines ? part.rfind('\n') : std::string_view::npos;
  tail_ = end == std::string_view::npos ? tail_ + part.size() : part.size() - end - 1;
  too_large_ = tail_ > (lines ? kMaxLine : stream_ ? kMaxErrorBody : kMaxBody);
  if (too_large_) return false;
  lines ? lines_.Append(part) : void(body_.append(part));
  return true;
}

bool Transfer::html() const { return content_type_.starts_with("text/html"); }

std::optional<base::Duration> Transfer::retry_after() const {
  if (!has_retry_after_ || (status_ != 429 && status_ != 503)) return std::nullopt;
  curl_off_t seconds = 0;  // libcurl parses both forms, seconds and a date
  curl_.getinfo(handle_, CURLINFO_RETRY_AFTER, &seconds);
  return std::chrono::seconds(std::clamp<std::int64_t>(seconds, 0, 24 * 3600));
}

bool Transfer::connected() const {
  double seconds = 0;
  curl_.getinfo(handle_, CURLINFO_PRETRANSFER_TIME, &seconds);
  return seconds > 0;
}

base::Error Transfer::Failure(CURLcode code, const ApiCall& call) const {
  const std::string doing = call.method + " " + call.path + ": ";
  if (too_large_) {
    return {Code::kResourceExhausted,
            doing +
                (stream_ && success()
                     ? "a line of the answer is longer than " + std::to_string(kMaxLine >> 20)
                     : "the answer is larger than " + std::to_string(kMaxBody >> 20)) +
                " MiB"};
  }
  const std::string message = error_[0] != '\0' ? error_ : curl_.strerror(code);
  const auto at = [&](Code which, const std::string& what) {
    return Error(which, doing + what + " (" + server_ + "): " + message);
  };
  switch (code) {
    case CURLE_UNSUPPORTED_PROTOCOL:
      // Also if the first line of an answer is not HTTP.
      if (connected()) return at(Code::kUnavailable, "the answer is not HTTP");
      [[fallthrough]];
    case CURLE_URL_MALFORMAT:
      return at(Code::kInvalidArgument, "this is not the address of an API server");
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT: return at(Code::kUnavailable, "no connection to the API server");
    case CURLE_PEER_FAILED_VERIFICATION:
      return at(
          Code::kUnavailable,
          "the API server's certificate does not match the given certificate authority and name");
    case CURLE_SSL_CACERT_BADFILE:
      return at(Code::kFailedPrecondition, "the given certificate authority is invalid");
    case CURLE_SSL_CERTPROBLEM:
      return at(Code::kUnauthenticated, "the client certificate and key cannot be used");
    case CURLE_PARTIAL_FILE:
      return at(Code::kUnavailable, "the answer was cut off after " +
                                        std::to_string(body_.size() + lines_.size()) + " bytes");
    case CURLE_OPERATION_TIMEDOUT:
      return at(Code::kDeadlineExceeded, "the API server did not answer in time");
    default: break;
  }
  // In TLS 1.3, the server's alert about our certificate arrives after the handshake.
  if (!credential_.identity->certificate.empty() && message.find("alert") != std::string::npos &&
      message.find("certificate") != std::string::npos) {
    return at(Code::kUnauthenticated, "the API server rejects the client certificate");
  }
  return at(Code::kUnavailable, status_ == 0
                                    ? "the connection to the API server was lost before its answer"
                                    : "the connection to the API server was lost");
}

}  // namespace penstock::protocol::kube
