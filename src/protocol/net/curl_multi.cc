// Implements the "multi_socket" interface of libcurl's documentation on our loop.
#include "protocol/net/curl_multi.h"

#include <csignal>
#include <ctime>
#include <unordered_set>
#include <utility>

#include <sys/epoll.h>

namespace penstock::protocol::net {

namespace {

// OpenSSL writes to sockets without MSG_NOSIGNAL: a closed peer must not end the program, whatever
// the program does with SIGPIPE elsewhere.
class NoPipeSignal {
 public:
  NoPipeSignal() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoPipeSignal() {
    const timespec at_once{};
    if (!was_pending_) ::sigtimedwait(&pipe_, nullptr, &at_once);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;

 private:
  sigset_t pipe_{}, before_{};
  bool was_pending_ = false;
};

}  // namespace

struct CurlMulti::State : std::enable_shared_from_this<State> {
  State(os::Loop& the_loop, const CurlLibrary& the_curl, std::function<void()> then)
      : loop(the_loop), curl(the_curl), multi(the_curl.multi_init()), progress(std::move(then)) {}

  static int OnSocket(CURL*, curl_socket_t socket, int what, void* self, void*) {
    static_cast<State*>(self)->Socket(socket, what);
    return 0;
  }
  static int OnTimer(CURLM*, long milliseconds, void* self) {
    static_cast<State*>(self)->Timer(milliseconds);
    return 0;
  }

  void Socket(int fd, int what);
  void Timer(long milliseconds);
  void Act(curl_socket_t socket, int events);

  os::Loop& loop;
  const CurlLibrary& curl;
  CURLM* multi;
  std::function<void()> progress;
  std::unordered_set<int> watched;
  base::TimerId timer = 0;
  bool closed = false;
};

// Called before a known descriptor is closed.
void CurlMulti::State::Socket(int fd, int what) {
  if (what == CURL_POLL_REMOVE) {
    if (watched.erase(fd) > 0) loop.Unwatch(fd);
    return;
  }
  const std::uint32_t events =
      ((what & CURL_POLL_IN) != 0 ? EPOLLIN : 0u) | ((what & CURL_POLL_OUT) != 0 ? EPOLLOUT : 0u);
  if (!watched.insert(fd).second) {
    (void)loop.Rewatch(fd, events);
    return;
  }
  const auto status = loop.Watch(fd, events, [this, fd](std::uint32_t ready) {
    int action = 0;
    if ((ready & EPOLLIN) != 0) action |= CURL_CSELECT_IN;
    if ((ready & EPOLLOUT) != 0) action |= CURL_CSELECT_OUT;
    if ((ready & (EPOLLERR | EPOLLHUP)) != 0) action |= CURL_CSELECT_ERR;
    Act(fd, action);
  });
  if (!status.ok()) watched.erase(fd);
}

void CurlMulti::State::Timer(long milliseconds) {
  loop.Cancel(std::exchange(timer, 0));
  if (milliseconds < 0 || closed) return;
  timer = loop.PostAfter(std::chrono::milliseconds(milliseconds), [this] {
    timer = 0;
    Act(CURL_SOCKET_TIMEOUT, 0);
  });
}

void CurlMulti::State::Act(curl_socket_t socket, int events) {
  const auto alive = shared_from_this();
  int running = 0;
  {
    const NoPipeSignal guard;
    curl.multi_socket_action(multi, socket, events, &running);
  }
  if (!closed) progress();
}

CurlMulti::CurlMulti(os::Loop& loop, const CurlLibrary& curl, Limits limits,
                     std::function<void()> progress)
    : state_(std::make_shared<State>(loop, curl, std::move(progress))) {
  curl.multi_setopt(state_->multi, CURLMOPT_SOCKETFUNCTION, &State::OnSocket);
  curl.multi_setopt(state_->multi, CURLMOPT_SOCKETDATA, state_.get());
  curl.multi_setopt(state_->multi, CURLMOPT_TIMERFUNCTION, &State::OnTimer);
  curl.multi_setopt(state_->multi, CURLMOPT_TIMERDATA, state_.get());
  curl.multi_setopt(state_->multi, CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_NOTHING));
  curl.multi_setopt(state_->multi, CURLMOPT_MAXCONNECTS, limits.connections_kept);
  curl.multi_setopt(state_->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, limits.connections_most);
}

// The multi handle is cleaned up at once: libcurl is not on the stack, or Act no longer uses it.
CurlMulti::~CurlMulti() {
  state_->closed = true;
  const NoPipeSignal guard;
  state_->curl.multi_cleanup(state_->multi);
  state_->loop.Cancel(state_->timer);
  for (const int fd : state_->watched) state_->loop.Unwatch(fd);
}

void CurlMulti::Add(CURL* handle) { state_->curl.multi_add_handle(state_->multi, handle); }

void CurlMulti::Remove(CURL* handle) {
  const NoPipeSignal guard;
  state_->curl.multi_remove_handle(state_->multi, handle);
}

CURL* CurlMulti::NextDone(CURLcode& code) {
  int left = 0;
  while (const CURLMsg* message = state_->curl.multi_info_read(state_->multi, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    code = message->data.result;
    return message->easy_handle;
  }
  return nullptr;
}

}  // namespace penstock::protocol::net
