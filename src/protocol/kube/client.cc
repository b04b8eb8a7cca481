// Manages calls and streams over connections to one API server: credentials, attempts, deadlines.
#include "protocol/kube/client.h"

#include <algorithm>
#include <optional>
#include <random>
#include <unordered_map>
#include <utility>
#include <vector>

#include "protocol/kube/credentials/credentials.h"
#include "protocol/kube/status_error.h"
#include "protocol/kube/transfer.h"
#include "protocol/net/curl_multi.h"
#include "protocol/net/trim.h"

namespace penstock::protocol::kube {
namespace {

constexpr long kMaxCallConnections = 2;  // a slow call does not block the others
constexpr base::Duration kQuiet = std::chrono::seconds(2);

struct Request {
  ApiCall call;
  Api::Done done;                              // of a call
  std::function<void(std::string_view)> line;  // of a stream
  std::function<void(base::Status)> end;
  bool stream = false;
  base::TimePoint deadline;
  base::TimerId deadline_timer = 0, retry_timer = 0;
  std::shared_ptr<Transfer> transfer;  // of the current attempt
  std::optional<Error> last;           // why there is another attempt
  bool noted = false;                  // is in State::arrived
  bool streaming = false;              // the answer has begun and is successful
  bool unauthenticated_once = false;
  bool over = false;
};

using RequestPtr = std::shared_ptr<Request>;

}  // namespace

// The caller's functions run only from the loop: after libcurl has returned, from a timer, or at a
// plugin's end. Each may destroy the client or a stream, so `closed` and `over` are checked again
// after each.
struct Client::State : std::enable_shared_from_this<State> {
  State(os::Loop& the_loop, ClusterAccess the_access, Options the_options)
      : loop(the_loop),
        access(std::move(the_access)),
        options(std::move(the_options)),
        credentials(std::make_unique<Credentials>(loop, access)) {}

  base::Status Start();
  void Begin(const RequestPtr& request);
  void Attempt(const RequestPtr& request, const base::Result<Credential>& credential);
  net::CurlMulti& MultiOf(const Request& request) { return request.stream ? *streams : *calls; }
  void EndAttempt(const RequestPtr& request);
  void Progress(bool of_streams);
  void DeliverArrived();
  void DeliverLines(const RequestPtr& request, bool ended);
  void AttemptEnded(const RequestPtr& request, CURLcode code);
  bool Again(const RequestPtr& request, const Error& why, std::optional<base::Duration> after);
  void Authenticate(const RequestPtr& request);
  void Expired(const RequestPtr& request);
  void Finish(const RequestPtr& request, base::Result<ApiResponse> result);
  void Drop(const RequestPtr& request);
  void Close();
  void TrimLater();

  os::Loop& loop;
  const ClusterAccess access;
  const Options options;
  Requests counts;
  std::unique_ptr<Credentials> credentials;
  const net::CurlLibrary* curl = nullptr;
  std::unique_ptr<net::CurlMulti> calls, streams;
  std::unordered_map<Request*, RequestPtr> requests;
  std::unordered_map<CURL*, RequestPtr> transfers;
  std::vector<RequestPtr> arrived;
  std::minstd_rand random{std::random_device{}()};
  base::TimerId trim_timer = 0;
  bool closed = false;
};

namespace {

class ClientStream final : public WatchStream {
 public:
  explicit ClientStream(std::function<void()> drop) : drop_(std::move(drop)) {}
  ~ClientStream() override { drop_(); }

 private:
  std::function<void()> drop_;
};

}  // namespace

base::Status Client::State::Start() {
  if (calls != nullptr) return {};
  ASSIGN(curl, net::CurlLibrary::Load());
  const std::weak_ptr<State> weak = weak_from_this();
  const auto progress = [weak](bool of_streams) {
    return [weak, of_streams] {
      if (const auto state = weak.lock()) state->Progress(of_streams);
    };
  };
  calls = std::make_unique<net::CurlMulti>(
      loop, *curl,
      net::CurlMulti::Limits{.connections_kept = kMaxCallConnections,
                             .connections_most = kMaxCallConnections},
      progress(false));
  streams = std::make_unique<net::CurlMulti>(
      loop, *curl, net::CurlMulti::Limits{.connections_kept = 1, .connections_most = 0},
      progress(true));
  return {};
}

void Client::State::Begin(const RequestPtr& request) {
  requests.emplace(request.get(), request);
  request->deadline =
      loop.clock().Now() + std::min<base::Duration>(request->call.deadline, std::chrono::hours(24));
  request->deadline_timer = loop.PostAfter(request->call.deadline, [this, request] {
    request->deadline_timer = 0;
    Expired(request);
  });
  // Posted, as promised, even for an immediate failure.
  request->retry_timer = loop.PostAfter({}, [this, request] {
    request->retry_timer = 0;
    Authenticate(request);
  });
}

// Gets the credentials first, which may take a while.
void Client::State::Authenticate(const RequestPtr& request) {
  if (auto started = Start(); !started.ok()) return Finish(request, started.error());
  credentials->Get([weak = weak_from_this(), request](const base::Result<Credential>& credential) {
    if (const auto state = weak.lock(); state != nullptr && !state->closed && !request->over)
      state->Attempt(request, credential);
  });
}

void Client::State::Attempt(const RequestPtr& request, const base::Result<Credential>& credential) {
  if (!credential.ok())
    return Finish(request, credential.error().Within("credentials for " + access.server));
  auto transfer = Transfer::Make(*curl, {.access = access,
                                         .call = request->call,
                                         .credential = *credential,
                                         .user_agent = options.user_agent,
                                         .silent_peer = options.silent_peer,
                                         .stream = request->stream,
                                         .arrived = [this, raw = request.get()] {
                                           if (!raw->stream || std::exchange(raw->noted, true))
                                             return;
                                           arrived.push_back(requests.at(raw));
                                         }});
  if (!transfer.ok()) return Finish(request, transfer.error());
  request->transfer = *std::move(transfer);
  transfers.emplace(request->transfer->handle(), request);
  MultiOf(*request).Add(request->transfer->handle());
}

void Client::State::EndAttempt(const RequestPtr& request) {
  if (request->transfer == nullptr) return;
  transfers.erase(request->transfer->handle());
  MultiOf(*request).Remove(request->transfer->handle());
  request->transfer.reset();
}

void Client::State::Progress(bool of_streams) {
  const auto alive = shared_from_this();
  TrimLater();
  DeliverArrived();
  CURLcode code = CURLE_OK;
  while (!closed) {
    CURL* handle = (of_streams ? streams : calls)->NextDone(code);
    if (handle == nullptr) return;
    if (const auto found = transfers.find(handle); found != transfers.end())
      AttemptEnded(RequestPtr(found->second), code);
  }
}

void Client::State::DeliverArrived() {
  for (const RequestPtr& request : std::exchange(arrived, {})) {
    request->noted = false;
    if (closed) return;
    if (!request->over && request->transfer != nullptr) DeliverLines(request, false);
  }
}

void Client::State::DeliverLines(const RequestPtr& request, bool ended) {
  if (!request->transfer->success() || request->transfer->html()) return;
  if (!std::exchange(request->streaming, true))
    loop.Cancel(std::exchange(request->deadline_timer, 0));
  const auto transfer = request->transfer;  // keeps a line valid if its handler ends the stream
  while (!request->over && !closed) {
    const auto line = transfer->NextLine(ended);
    if (!line) return;
    if (!line->empty()) request->line(*line);
  }
}

void Client::State::AttemptEnded(const RequestPtr& request, CURLcode code) {
  const auto held = request->transfer;
  Transfer& transfer = *held;
  const ApiCall& call = request->call;
  if (request->stream) DeliverLines(request, code == CURLE_OK);
  if (closed || request->over) return;
  if (code != CURLE_OK) {
    const Error error = transfer.Failure(code, call);
    if (error.code() == Code::kUnauthenticated) {
      credentials->Refused(transfer.credential().generation);
      if (!request->streaming && !std::exchange(request->unauthenticated_once, true) &&
          Again(request, error, std::nullopt))
        return;
    }
    return Finish(request, error);
  }
  if (transfer.success() && transfer.html()) {
    return Finish(request,
                  Error(Code::kDataLoss, call.method + " " + call.path + ": " + access.server +
                                             " answers with an HTML page, which no API server "
                                             "does: is there a proxy in between?"));
  }
  if (transfer.success())
    return Finish(request, ApiResponse{transfer.status(), transfer.TakeBody()});
  const Error error = StatusError(transfer.status(), transfer.body(), call);
  if (transfer.status() == 401) {
    credentials->Refused(transfer.credential().generation);
    if (!std::exchange(request->unauthenticated_once, true) && Again(request, error, std::nullopt))
      return;
  }
  if (const auto after = transfer.retry_after(); after && Again(request, error, after)) return;
  Finish(request, error);
}

// Whether there is time for another attempt. A random delay keeps clients that got the same
// Retry-After from coming back in the same second.
bool Client::State::Again(const RequestPtr& request, const Error& why,
                          std::optional<base::Duration> after) {
  const base::Duration left = request->deadline - loop.clock().Now();
  base::Duration wait{};
  if (after) {
    const base::Duration spread =
        std::max<base::Duration>(*after / 2, std::chrono::milliseconds(500));
    if (*after >= left) return false;
    const double share = std::uniform_real_distribution<double>(0, 1)(random);
    wait = *after + std::chrono::duration_cast<base::Duration>(
                        share * std::min(spread, (left - *after) / 2));
  }
  EndAttempt(request);
  ++counts.retries;
  request->last = why;
  request->retry_timer = loop.PostAfter(wait, [this, request] {
    request->retry_timer = 0;
    Authenticate(request);
  });
  return true;
}

void Client::State::Expired(const RequestPtr& request) {
  const auto seconds = base::FormatDuration(request->call.deadline);
  std::string what = "no answer from " + access.server + " within " + seconds;
  if (request->transfer == nullptr && request->last) return Finish(request, *request->last);
  if (request->transfer == nullptr) {
    what = "no credentials for " + access.server + " within " + seconds;
  } else if (!request->transfer->connected()) {
    what = "no connection to " + access.server + " within " + seconds;
  } else if (request->transfer->status() != 0) {
    what = "the answer of " + access.server + " was not complete within " + seconds;
  }
  Finish(request, Error(Code::kDeadlineExceeded,
                        request->call.method + " " + request->call.path + ": " + what));
}

void Client::State::Finish(const RequestPtr& request, base::Result<ApiResponse> result) {
  if (request->over) return;
  if (!result.ok()) ++counts.failures;
  Drop(request);
  if (request->stream) {
    const auto end = std::exchange(request->end, nullptr);
    end(result.ok() ? base::Status() : base::Status(result.error()));
  } else {
    const auto done = std::exchange(request->done, nullptr);
    done(std::move(result));
  }
}

void Client::State::Drop(const RequestPtr& request) {
  if (std::exchange(request->over, true)) return;
  EndAttempt(request);
  loop.Cancel(std::exchange(request->deadline_timer, 0));
  loop.Cancel(std::exchange(request->retry_timer, 0));
  requests.erase(request.get());
}

void Client::State::Close() {
  closed = true;
  const auto all = requests;
  for (const auto& [raw, request] : all) Drop(request);
  loop.Cancel(std::exchange(trim_timer, 0));
  calls.reset();
  streams.reset();
  credentials.reset();
}

// A handshake touches most of libcurl and OpenSSL, later requests less, and at rest nothing happens
// for minutes.
void Client::State::TrimLater() {
  if (trim_timer != 0) return;
  trim_timer = loop.PostAfter(kQuiet, [this] {
    trim_timer = 0;
    net::TrimLibrary();
  });
}

Client::Client(os::Loop& loop, ClusterAccess access, Options options)
    : state_(std::make_shared<State>(loop, std::move(access), std::move(options))) {}

Client::~Client() { state_->Close(); }

base::Executor& Client::executor() { return state_->loop; }

void Client::Do(ApiCall call, Done done) {
  ++(call.method == "GET" || call.method == "HEAD" ? state_->counts.reads : state_->counts.writes);
  const auto request = std::make_shared<Request>();
  request->call = std::move(call);
  request->done = std::move(done);
  state_->Begin(request);
}

std::unique_ptr<WatchStream> Client::Open(ApiCall call, std::function<void(std::string_view)> line,
                                          std::function<void(base::Status)> end) {
  ++state_->counts.streams;
  const auto request = std::make_shared<Request>();
  request->call = std::move(call);
  request->line = std::move(line);
  request->end = std::move(end);
  request->stream = true;
  state_->Begin(request);
  return std::make_unique<ClientStream>([weak = std::weak_ptr<State>(state_), request] {
    if (const auto state = weak.lock(); state != nullptr && !state->closed) state->Drop(request);
  });
}

const Requests& Client::requests() const { return state_->counts; }

const ClusterAccess& Client::access() const { return state_->access; }

base::Result<ApiResponse> CallAndWait(const ClusterAccess& access, ApiCall call) {
  os::Loop loop("kube call");
  base::Result<ApiResponse> result = Error(Code::kInternal, "the call was not made");
  {
    Client client(loop, access);
    client.Do(std::move(call), [&](base::Result<ApiResponse> answer) {
      result = std::move(answer);
      loop.Stop();
    });
    loop.Run();
  }
  return result;
}

}  // namespace penstock::protocol::kube
