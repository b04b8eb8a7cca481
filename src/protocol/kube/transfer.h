// One HTTP request by libcurl: what is sent, and what has arrived of the answer. Does not decide
// about retries.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "protocol/kube/api.h"
#include "protocol/kube/credentials/access.h"
#include "protocol/kube/credentials/credentials.h"
#include "protocol/kube/line_buffer.h"
#include "protocol/net/curl_library.h"

namespace penstock::protocol::kube {

/// Use on one thread. Bytes arrive between Add and Remove of a CurlMulti; only `arrived` is called.
class Transfer {
 public:
  static constexpr std::size_t kMaxBody = 64u << 20;      ///< of a call's answer
  static constexpr std::size_t kMaxLine = 8u << 20;       ///< of a stream
  static constexpr std::size_t kMaxErrorBody = 1u << 20;  ///< of a stream's error answer

  struct Setup {
    const ClusterAccess& access;
    const ApiCall& call;
    const Credential& credential;
    const std::string& user_agent;
    base::Duration silent_peer;
    bool stream = false;
    std::function<void()> arrived;  ///< called inside libcurl after new bytes: must only take note
  };
  static base::Result<std::unique_ptr<Transfer>> Make(const net::CurlLibrary& curl, Setup setup);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  CURL* handle() const { return handle_; }
  const Credential& credential() const { return credential_; }

  int status() const { return status_; }  ///< 0 before the answer's first line
  bool success() const { return status_ >= 200 && status_ < 300; }
  const std::string& body() const { return body_; }
  std::string TakeBody() { return std::move(body_); }
  bool html() const;
  std::optional<base::Duration> retry_after() const;  ///< of a 429 or 503 with that header
  bool connected() const;

  /// The next complete line of a stream, without its end; if `ended`, also the rest. Valid until
  /// the next call.
  std::optional<std::string_view> NextLine(bool ended) { return lines_.Next(ended); }

  /// The error of a transfer that libcurl ended with a failure.
  base::Error Failure(CURLcode code, const ApiCall& call) const;

 private:
  Transfer(const net::CurlLibrary& curl, const Setup& setup);
  void SetUp(const Setup& setup);
  void SetUpTls(const Setup& setup);
  void SetUpMethod(const ApiCall& call);
  void AddHeader(const std::string& line);
  void SetBlob(CURLoption option, const std::string& data);
  static std::size_t OnHeader(char* data, std::size_t size, std::size_t count, void* self);
  static std::size_t OnBody(char* data, std::size_t size, std::size_t count, void* self);
  static int OnSocket(void* self, curl_socket_t socket, curlsocktype purpose);
  void Header(std::string_view line);
  bool Body(std::string_view part);

  const net::CurlLibrary& curl_;
  CURL* handle_ = nullptr;
  curl_slist* headers_ = nullptr;
  curl_slist* connect_to_ = nullptr;
  const Credential credential_;
  const std::string server_;
  const std::string sent_;
  const base::Duration silent_peer_;
  const bool stream_;
  const std::function<void()> arrived_;

  int status_ = 0;
  std::string content_type_;
  bool has_retry_after_ = false;
  std::string body_;  // of a stream's error answer, too
  LineBuffer lines_;
  std::size_t tail_ = 0;  // bytes after the last line's end
  bool too_large_ = false;
  char error_[CURL_ERROR_SIZE] = "";
};

/// The URL of a call, with its path and query escaped. Pure.
std::string UrlOf(const ClusterAccess& access, const ApiCall& call);

}  // namespace penstock::protocol::kube
