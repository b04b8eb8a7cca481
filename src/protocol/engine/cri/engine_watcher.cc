// Asks the candidates in order, one round at a time; the first that answers as an engine counts.
#include "protocol/engine/cri/engine_watcher.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include "base/backoff.h"
#include "base/log.h"
#include "os/watch/watch.h"
#include "protocol/engine/cri/find.h"
#include "protocol/engine/machine_process.h"
#include "protocol/rpc/calls.h"
#include "runtime.grpc.pb.h"

namespace penstock::protocol::engine::cri {
namespace {

namespace v1 = ::runtime::v1;

/// Identifies a socket's file, which changes when its server restarts. Nothing if it does not
/// exist.
struct SocketFile {
  ino_t inode = 0;
  timespec made{};
  bool operator==(const SocketFile& other) const {
    return inode == other.inode && made.tv_sec == other.made.tv_sec &&
           made.tv_nsec == other.made.tv_nsec;
  }
};

std::optional<SocketFile> FileOf(const std::string& socket) {
  struct stat status {};
  if (::stat(socket.c_str(), &status) != 0) return std::nullopt;
  return SocketFile{status.st_ino, status.st_ctim};
}

/// Returns the problem of a round without an answer. `before`: the engine that answered in an
/// earlier round.
std::string NoAnswer(const std::string& first_problem,
                     const std::optional<EngineAbilities>& before) {
  if (!first_problem.empty()) return first_problem;
  if (before) return "the container engine at " + before->socket + " is gone";
  return "no container engine was found; set its CRI socket with containers.engineSocket";
}

}  // namespace

struct EngineWatcher::State : std::enable_shared_from_this<State> {
  State(os::Loop& c, base::Executor& i, Options o)
      : control(c),
        io(i),
        options(std::move(o)),
        backoff(options.retry, options.retry_most),
        calls(std::make_unique<rpc::Calls>(c)) {}

  void Query() {
    if (std::exchange(querying, true)) {
      again = true;
      return;
    }
    control.Cancel(std::exchange(timer, 0));
    problem.clear();
    io.Post([self = shared_from_this()] {
      const Options& how = self->options;
      auto found = how.socket.empty() ? FindSockets(how.proc_root, how.kubelet_dir, how.root)
                                      : ChosenSocket(how.proc_root, how.socket);
      self->control.Post([self, found = std::move(found)]() mutable {
        self->problem = std::move(found.problem);
        if (self->calls) self->Try(std::move(found.paths), 0);
      });
    });
  }

  void Try(std::vector<std::string> sockets, std::size_t next) {
    if (next == sockets.size()) return Ended(std::nullopt);
    const std::string socket = sockets[next];
    file = FileOf(socket);
    calls->Call<v1::RuntimeService, v1::VersionResponse>(
        socket, v1::VersionRequest(), options.within,
        [](auto* stub, auto* context, const auto* request, auto* response, auto finished) {
          stub->Version(context, request, response,
                        std::function<void(grpc::Status)>(std::move(finished)));
        },
        [this, sockets = std::move(sockets),
         next](const Result<v1::VersionResponse>& version) mutable {
          if (version.ok()) return QueryStatus(sockets[next], *version);
          NotAnswered(sockets[next], version.error());
          Try(std::move(sockets), next + 1);
        });
  }

  void QueryStatus(const std::string& socket, const v1::VersionResponse& version) {
    v1::StatusRequest request;
    request.set_verbose(true);
    calls->Call<v1::RuntimeService, v1::StatusResponse>(
        socket, std::move(request), options.within,
        [](auto* stub, auto* context, const auto* sent, auto* response, auto finished) {
          stub->Status(context, sent, response,
                       std::function<void(grpc::Status)>(std::move(finished)));
        },
        [this, socket, version](const Result<v1::StatusResponse>& status) {
          if (!status.ok()) {
            NotAnswered(socket, status.error());
            return Ended(std::nullopt);
          }
          const auto config = status->info().find("config");
          EngineAbilities engine =
              FromAnswers(version.runtime_name(), version.runtime_version(),
                          config == status->info().end() ? std::string() : config->second);
          engine.socket = socket;
          engine.pid = ListenerOf(options.proc_root, socket).value_or(0);
          Ended(std::move(engine));
        });
  }

  /// Keeps only the first problem: it is that of the likeliest socket.
  void NotAnswered(const std::string& socket, const base::Error& error) {
    if (problem.empty())
      problem = "the container engine at " + socket + " does not answer: " + error.message();
  }

  void Ended(std::optional<EngineAbilities> answer) {
    querying = false;
    EngineStatus known = *published.Get();
    known.queried = true;
    known.problem = answer ? "" : NoAnswer(problem, known.engine);
    if (answer) {
      backoff.Reset();
      Watch(answer->socket);
      known.engine = std::move(answer);
    }
    Publish(std::move(known));
    if (std::exchange(again, false)) return Query();
    if (!published.Get()->problem.empty())
      timer = control.PostAfter(backoff.Next(), [this] { Query(); });
  }

  void Publish(EngineStatus known) {
    const auto before = published.Get();
    if (*before == known) return;
    if (known.engine && known.engine != before->engine)
      base::Log(base::kInfo, "container engine found",
                {{"engine", Describe(*known.engine)},
                 {"socket", known.engine->socket},
                 {"CDI", known.engine->why}});
    if (!known.problem.empty() && known.problem != before->problem)
      base::Log(base::kWarn, "container engine not queried", {{"why", known.problem}});
    published.Set(std::move(known));
  }

  void Watch(const std::string& socket) {
    answered_file = file;
    if (std::exchange(watched, socket) == socket) return;
    watch = std::make_unique<os::PathWatch>(control, socket, [this] { CheckSocket(); });
  }

  void CheckSocket() {
    const auto now = FileOf(watched);
    if (now && now != answered_file) Query();
  }

  os::Loop& control;
  base::Executor& io;
  const Options options;
  base::Backoff backoff;
  std::unique_ptr<rpc::Calls> calls;  // null once the owner is gone
  base::Published<EngineStatus> published;
  std::unique_ptr<os::PathWatch> watch;
  std::string watched;
  std::optional<SocketFile> file,
      answered_file;    // of the socket that is asked; of the one that answered
  std::string problem;  // of this round
  bool querying = false, again = false;
  base::TimerId timer = 0;
};

EngineWatcher::EngineWatcher(os::Loop& control, base::Executor& io, Options options)
    : state_(std::make_shared<State>(control, io, std::move(options))) {
  state_->Query();
}

EngineWatcher::~EngineWatcher() {
  state_->control.Cancel(state_->timer);
  state_->watch.reset();
  state_->calls.reset();
}

void EngineWatcher::QueryAgain() { state_->Query(); }

base::Published<EngineStatus>& EngineWatcher::published() { return state_->published; }

}  // namespace penstock::protocol::engine::cri
