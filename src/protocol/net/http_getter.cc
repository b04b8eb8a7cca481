#include "protocol/net/http_getter.h"

#include <cstdint>
#include <unordered_map>
#include <utility>

#include "base/core/strings.h"
#include "protocol/net/curl_library.h"
#include "protocol/net/curl_multi.h"

namespace penstock::protocol::net {

namespace {

using base::Code;
using base::Error;

constexpr std::size_t kLongestTag = 256;

/// One request. libcurl calls back into it between Add and Remove.
struct Exchange {
  Exchange(const CurlLibrary& library, HttpGet what, HttpGetter::Done then)
      : curl(library), request(std::move(what)), done(std::move(then)), handle(curl.easy_init()) {}
  ~Exchange() {
    if (handle != nullptr) curl.easy_cleanup(handle);
    curl.slist_free_all(headers);
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  void SetUp();
  void AddHeader(const std::string& line) {
    if (curl_slist* longer = curl.slist_append(headers, line.c_str())) headers = longer;
  }
  void Header(std::string_view line);
  Error Failure(CURLcode code) const;
  static std::size_t OnHeader(char* data, std::size_t size, std::size_t count, void* self) {
    static_cast<Exchange*>(self)->Header({data, size * count});
    return size * count;
  }
  static std::size_t OnBody(char* data, std::size_t size, std::size_t count, void* self);

  const CurlLibrary& curl;
  const HttpGet request;
  const HttpGetter::Done done;
  CURL* handle;
  curl_slist* headers = nullptr;
  HttpGot got;
  bool too_large = false;
  char error[CURL_ERROR_SIZE] = "";
};

std::size_t Exchange::OnBody(char* data, std::size_t size, std::size_t count, void* self) {
  auto* exchange = static_cast<Exchange*>(self);
  std::string& body = exchange->got.body;
  exchange->too_large = size * count > exchange->request.most - body.size();
  if (exchange->too_large) return 0;
  body.append(data, size * count);
  return size * count;
}

void Exchange::SetUp() {
  curl.setopt(handle, CURLOPT_ERRORBUFFER, error);
  curl.setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl.setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl.setopt(handle, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl.setopt(handle, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  curl.setopt(handle, CURLOPT_URL, request.url.c_str());
  curl.setopt(handle, CURLOPT_PROXY, "");  // whatever the environment names
  curl.setopt(handle, CURLOPT_USERAGENT, "penstock");
  curl.setopt(handle, CURLOPT_ACCEPT_ENCODING, "gzip");
  curl.setopt(handle, CURLOPT_BUFFERSIZE, 16384L);
  curl.setopt(handle, CURLOPT_TIMEOUT_MS,
              static_cast<long>(
                  std::chrono::duration_cast<std::chrono::milliseconds>(request.deadline).count()));
  curl.setopt(handle, CURLOPT_HEADERFUNCTION, &Exchange::OnHeader);
  curl.setopt(handle, CURLOPT_HEADERDATA, this);
  curl.setopt(handle, CURLOPT_WRITEFUNCTION, &Exchange::OnBody);
  curl.setopt(handle, CURLOPT_WRITEDATA, this);
  if (!request.authority.empty()) {
    curl_blob blob{const_cast<char*>(request.authority.data()), request.authority.size(),
                   CURL_BLOB_NOCOPY};
    curl.setopt(handle, CURLOPT_CAINFO_BLOB, &blob);
    curl.setopt(handle, CURLOPT_CAPATH, static_cast<char*>(nullptr));
  }
  if (!request.authorization.empty()) AddHeader("Authorization: " + request.authorization);
  if (!request.tag.empty()) AddHeader("If-None-Match: " + request.tag);
  curl.setopt(handle, CURLOPT_HTTPHEADER, headers);
}

void Exchange::Header(std::string_view line) {
  line = base::Trim(line);
  if (line.starts_with("HTTP/")) {
    const std::size_t blank = line.find(' ');
    const auto code =
        blank == std::string_view::npos ? std::nullopt : base::ParseInt(line.substr(blank + 1, 3));
    got.status = static_cast<int>(code.value_or(0));
    return;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  const std::string name = base::ToLower(line.substr(0, colon));
  if (name == "content-type") got.content_type = base::Trim(line.substr(colon + 1));
  if (name == "etag" && line.size() <= kLongestTag) got.tag = base::Trim(line.substr(colon + 1));
}

Error Exchange::Failure(CURLcode code) const {
  if (too_large)
    return {Code::kResourceExhausted,
            "its answer is larger than " + std::to_string(request.most >> 10) + " KiB"};
  const std::string message = error[0] != '\0' ? error : curl.strerror(code);
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT: return {Code::kDeadlineExceeded, "it did not answer in time"};
    case CURLE_COULDNT_RESOLVE_HOST: return {Code::kUnavailable, "its name has no address"};
    case CURLE_COULDNT_CONNECT: return {Code::kUnavailable, "no connection: " + message};
    case CURLE_PEER_FAILED_VERIFICATION:
      return {Code::kUnavailable, "its certificate cannot be verified: " + message};
    default: return {Code::kUnavailable, "the request failed: " + message};
  }
}

}  // namespace

struct HttpGetter::State : std::enable_shared_from_this<State> {
  State(os::Loop& the_loop, int most) : loop(the_loop), most_connections(most) {}

  base::Status Start();
  void Begin(HttpGet request, const Done& done);
  void Progress();

  os::Loop& loop;
  const int most_connections;
  const CurlLibrary* curl = nullptr;
  std::unique_ptr<CurlMulti> multi;
  std::unordered_map<CURL*, std::unique_ptr<Exchange>> exchanges;
  bool closed = false;
};

base::Status HttpGetter::State::Start() {
  if (multi) return {};
  ASSIGN(curl, CurlLibrary::Load());
  multi = std::make_unique<CurlMulti>(
      loop, *curl,
      CurlMulti::Limits{.connections_kept = most_connections, .connections_most = most_connections},
      [weak = weak_from_this()] {
        if (const auto state = weak.lock()) state->Progress();
      });
  return {};
}

void HttpGetter::State::Begin(HttpGet request, const Done& done) {
  if (const auto started = Start(); !started.ok()) return done(started.error());
  auto exchange = std::make_unique<Exchange>(*curl, std::move(request), done);
  if (exchange->handle == nullptr)
    return done(Error(Code::kResourceExhausted, "there is not enough memory"));
  exchange->SetUp();
  CURL* handle = exchange->handle;
  exchanges.emplace(handle, std::move(exchange));
  multi->Add(handle);
}

/// `done` may destroy the getter.
void HttpGetter::State::Progress() {
  const auto alive = shared_from_this();
  CURLcode code = CURLE_OK;
  while (!closed) {
    CURL* handle = multi->NextDone(code);
    if (handle == nullptr) return;
    multi->Remove(handle);
    auto exchange = exchanges.extract(handle);
    if (!exchange) continue;
    Exchange& one = *exchange.mapped();
    code == CURLE_OK ? one.done(std::move(one.got)) : one.done(one.Failure(code));
  }
}

HttpGetter::HttpGetter(os::Loop& loop, int most_connections)
    : state_(std::make_shared<State>(loop, most_connections)) {}

HttpGetter::~HttpGetter() {
  state_->closed = true;
  if (!state_->multi) return;
  for (const auto& [handle, exchange] : state_->exchanges) state_->multi->Remove(handle);
  state_->exchanges.clear();
  state_->multi.reset();
}

void HttpGetter::Get(HttpGet request, Done done) {
  state_->loop.Post([weak = std::weak_ptr(state_), request = std::move(request),
                     done = std::move(done)]() mutable {
    if (const auto state = weak.lock(); state && !state->closed)
      state->Begin(std::move(request), done);
  });
}

}  // namespace penstock::protocol::net
