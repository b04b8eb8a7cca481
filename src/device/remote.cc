// The agent's end of the lanes; serve.cc is the worker's end. Never blocks.
#include "device/remote.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/log.h"
#include "device/codec.h"
#include "os/process/process.h"

namespace penstock::device {
namespace {

constexpr int kMaxAbandoned = 8;
constexpr int kMaxAbandonedForSamples = 6;
constexpr base::Duration kStoodStill =
    std::chrono::seconds(1);  // a timer this late means that the process was stopped
constexpr auto kPatienceWithADyingWorker = std::chrono::seconds(1);

constexpr std::array kLanes{kControlLane, kSamplingLane, kEventsLane};
constexpr std::size_t kControl = 0, kSampling = 1, kEvents = 2;

/// A request and the callback that takes its answer.
struct Call {
  std::size_t lane = kControl;
  codec::WorkerRequest request;
  base::Duration deadline{};
  std::function<void(Result<std::string>)> done;

  /// The operation and the address, without the rest of the argument.
  std::string Name() const {
    return request.operation +
           (request.argument.empty()
                ? ""
                : " " + request.argument.substr(0, request.argument.find('\n')));
  }
};

/// The agent's end of one lane.
struct Lane {
  os::UniqueFd socket;
  std::string in, out;
};

struct Worker {
  pid_t pid = 0;
  std::array<Lane, kLanes.size()> lanes;
};

/// Whether the lane is open and has data to read.
bool HasArrived(const Lane& lane) {
  pollfd socket{.fd = lane.socket.get(), .events = POLLIN, .revents = 0};
  return ::poll(&socket, 1, 0) == 1 && socket.revents == POLLIN;
}

std::string DescribeEnd(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED) return "exited with status " + std::to_string(info.si_status);
  return "was killed by signal " + std::to_string(info.si_status);
}

}  // namespace

struct Remote::State : std::enable_shared_from_this<Remote::State> {
  State(os::Loop& a_loop, Options some_options) : loop(a_loop), options(std::move(some_options)) {}

  void Submit(Call call);
  base::Status Start();
  void Connect(std::size_t lane);
  void SendNext();
  void AwaitAnswer();
  bool Awaits(std::uint64_t id) const { return in_flight && in_flight->request.id == id; }
  void Flush(std::size_t lane);
  void OnLane(std::size_t lane, std::uint32_t ready);
  bool Receive(Lane& lane);
  void OnFrame(std::size_t lane, std::string_view frame);
  void OnLanesClosed();
  void OnDeath(pid_t pid);
  void OnLate();
  void DropWorker();
  void End(const Error& error, const Error& of_call_in_flight);
  void Fail(Call call, const Error& error);
  int Abandoned() const { return static_cast<int>(children.size()) - (worker ? 1 : 0); }

  os::Loop& loop;
  Options options;
  Events events;
  bool closed = false;
  std::uint64_t next_id = 1;
  std::unique_ptr<Worker> worker;
  std::map<pid_t, os::Child> children;  // the worker, and killed ones that have not died yet
  std::array<std::deque<Call>, 2> waiting;
  std::optional<Call> in_flight;
  base::TimerId deadline = 0;
  base::TimePoint due{};  // when `deadline` expires
};

void Remote::State::Fail(Call call, const Error& error) {
  loop.Post([self = shared_from_this(), call = std::move(call), error] {
    if (!self->closed) call.done(error);
  });
}

void Remote::State::Submit(Call call) {
  if (!worker) {
    base::Status started =
        call.request.operation == "open"
            ? Start()
            : Error(Code::kUnavailable, "no worker process is running; open the driver first");
    if (!started.ok()) return Fail(std::move(call), started.error());
  }
  call.request.id = next_id++;
  waiting[call.lane].push_back(std::move(call));
  SendNext();
}

base::Status Remote::State::Start() {
  if (options.may_start) TRY(options.may_start());
  if (Abandoned() >= kMaxAbandoned) {
    return Error(Code::kUnavailable,
                 std::to_string(Abandoned()) +
                     " workers hang in the driver and cannot be killed; waiting for one of them to "
                     "exit (a reset of the device or a reboot ends them)");
  }
  auto fresh = std::make_unique<Worker>();
  os::SpawnOptions spawn;
  spawn.arguments = options.command;
  std::array<os::UniqueFd, kLanes.size()> worker_ends;
  for (std::size_t i = 0; i < kLanes.size(); ++i) {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
      return base::ErrnoError(errno, "create a socket pair for a worker");
    fresh->lanes[i].socket.Reset(pair[0]);
    worker_ends[i].Reset(pair[1]);
    spawn.descriptors.emplace_back(worker_ends[i].get(), kLanes[i]);
  }
  auto child = os::Spawn(spawn);
  if (!child.ok()) return child.error().Within("start " + options.command.at(0));
  const pid_t pid = child->pid;
  fresh->pid = pid;
  const auto watched =
      loop.Watch(child->pidfd.get(), EPOLLIN,
                 [self = shared_from_this(), pid](std::uint32_t) { self->OnDeath(pid); });
  if (!watched.ok()) {
    ::kill(pid, SIGKILL);
    return watched.error();
  }
  children[pid] = std::move(*child);
  worker = std::move(fresh);
  for (std::size_t i = 0; i < kLanes.size(); ++i) Connect(i);
  return {};
}

void Remote::State::Connect(std::size_t lane) {
  // The callback does not outlive the worker, and the worker does not outlive this object.
  const auto status = loop.Watch(worker->lanes[lane].socket.get(), EPOLLIN,
                                 [this, lane](std::uint32_t ready) { OnLane(lane, ready); });
  if (!status.ok())
    base::Log(base::kError, "cannot watch a worker's socket",
              {{"error", status.error().message()}});
}

void Remote::State::SendNext() {
  if (in_flight || !worker) return;
  for (auto& queue : waiting) {
    if (queue.empty()) continue;
    in_flight = std::move(queue.front());
    queue.pop_front();
    AwaitAnswer();
    worker->lanes[in_flight->lane].out += codec::Frame(codec::EncodeRequest(in_flight->request));
    return Flush(in_flight->lane);
  }
}

void Remote::State::AwaitAnswer() {
  due = loop.clock().Now() + in_flight->deadline;
  deadline =
      loop.PostAfter(in_flight->deadline, [weak = weak_from_this(), id = in_flight->request.id] {
        if (auto self = weak.lock(); self && self->Awaits(id)) self->OnLate();
      });
}

void Remote::State::Flush(std::size_t index) {
  Lane& lane = worker->lanes[index];
  const ssize_t sent =
      ::send(lane.socket.get(), lane.out.data(), lane.out.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent > 0) lane.out.erase(0, static_cast<std::size_t>(sent));
  // A broken lane shows as the end of the worker and needs no handling here.
  (void)loop.Rewatch(lane.socket.get(), lane.out.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT);
}

void Remote::State::OnLane(std::size_t index, std::uint32_t ready) {
  const auto self = shared_from_this();
  const Worker* const serving = worker.get();
  if ((ready & EPOLLOUT) != 0) Flush(index);
  if ((ready & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0) return;
  const bool connected = Receive(worker->lanes[index]);
  // A callback may end this worker: check each time that it is still the current one.
  while (worker.get() == serving && serving != nullptr) {
    auto frame = codec::TakeFrame(worker->lanes[index].in);
    if (!frame.ok()) {
      const Error error(Code::kInternal, "the worker sent " + frame.error().message());
      return End(error, error);
    }
    if (!*frame) break;
    OnFrame(index, **frame);
  }
  if (!connected && worker.get() == serving) OnLanesClosed();
}

bool Remote::State::Receive(Lane& lane) {
  std::array<char, 16384> buffer;
  const ssize_t got = ::recv(lane.socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got > 0) lane.in.append(buffer.data(), static_cast<std::size_t>(got));
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

void Remote::State::OnFrame(std::size_t lane, std::string_view frame) {
  auto answer = codec::DecodeAnswer(frame);
  if (answer.ok() && lane == kEvents && !answer->status.ok()) {
    if (events.doubt && !closed) events.doubt();
    return;
  }
  if (answer.ok() && lane == kEvents) {
    auto evidence = codec::DecodeEvidence(answer->body);
    if (evidence.ok()) {
      if (events.evidence && !closed) events.evidence(std::move(*evidence));
      return;
    }
    answer = evidence.error();
  }
  const bool expected =
      answer.ok() && in_flight && in_flight->lane == lane && in_flight->request.id == answer->id;
  if (!expected) {
    const Error error(Code::kInternal, "the worker sent an invalid answer" +
                                           (answer.ok() ? "" : ": " + answer.error().message()));
    return End(error, error);
  }
  const Call call = *std::exchange(in_flight, std::nullopt);
  loop.Cancel(deadline);
  call.done(answer->status.ok() ? Result<std::string>(std::move(answer->body))
                                : Result<std::string>(answer->status.error()));
  if (!closed) SendNext();
}

void Remote::State::OnLanesClosed() {
  // The pidfd shows how it died; a worker that lives on without lanes is useless.
  for (Lane& lane : worker->lanes) loop.Unwatch(lane.socket.get());
  loop.PostAfter(kPatienceWithADyingWorker, [weak = weak_from_this(), pid = worker->pid] {
    const auto self = weak.lock();
    if (!self || !self->worker || self->worker->pid != pid) return;
    const Error error(Code::kUnavailable, "the worker closed its sockets");
    self->End(error, error);
  });
}

void Remote::State::OnDeath(pid_t pid) {
  const auto self = shared_from_this();
  const auto child = children.find(pid);
  if (child == children.end()) return;
  siginfo_t info{};
  ::waitid(P_PIDFD, static_cast<id_t>(child->second.pidfd.get()), &info, WEXITED | WNOHANG);
  loop.Unwatch(child->second.pidfd.get());
  const bool serving = worker && worker->pid == pid;
  if (!serving) {
    children.erase(child);
    return;
  }
  const Error error(Code::kUnavailable,
                    "the worker (pid " + std::to_string(pid) + ") " + DescribeEnd(info));
  End(error, error);
  children.erase(pid);
}

void Remote::State::OnLate() {
  // Timers run before sockets are read: if this process was stopped, the answer may have arrived.
  const std::uint64_t id = in_flight->request.id;
  const std::size_t lane = in_flight->lane;
  const Worker* const serving = worker.get();
  while (worker.get() == serving && Awaits(id) && HasArrived(serving->lanes[lane]))
    OnLane(lane, EPOLLIN);
  if (!Awaits(id)) return;
  // If the answer has not arrived, the worker may have been stopped together with this process.
  if (loop.clock().Now() - due > kStoodStill) {
    base::Log(
        base::kInfo, "this process was suspended; deadline of a driver call restarted",
        {{"call", in_flight->Name()}, {"late", base::FormatDuration(loop.clock().Now() - due)}});
    return AwaitAnswer();
  }
  const std::string name = in_flight->Name(), after = base::FormatDuration(in_flight->deadline);
  base::Log(base::kWarn, "driver call hangs; worker process abandoned",
            {{"call", name}, {"after", after}, {"worker", worker->pid}});
  End(Error(Code::kUnavailable,
            "the worker was abandoned because \"" + name + "\" did not answer within " + after),
      Error(Code::kDeadlineExceeded, "\"" + name + "\" did not answer within " + after));
}

void Remote::State::DropWorker() {
  if (!worker) return;
  for (Lane& lane : worker->lanes) loop.Unwatch(lane.socket.get());
  ::kill(worker->pid, SIGKILL);  // our child and not reaped, so the pid is still its own
  worker.reset();
}

void Remote::State::End(const Error& error, const Error& of_call_in_flight) {
  const bool had_worker = worker != nullptr;
  DropWorker();
  loop.Cancel(std::exchange(deadline, 0));
  if (in_flight) Fail(*std::exchange(in_flight, std::nullopt), of_call_in_flight);
  const Error unsent(Code::kCancelled, "not sent: " + error.message());
  for (auto& queue : waiting) {
    for (Call& call : queue) Fail(std::move(call), unsent);
    queue.clear();
  }
  if (!had_worker || error.code() == Code::kCancelled) return;
  loop.Post([self = shared_from_this(), of_call_in_flight] {
    if (!self->closed && self->events.ended) self->events.ended(of_call_in_flight);
  });
}

Remote::Remote(os::Loop& loop, Options options)
    : state_(std::make_shared<State>(loop, std::move(options))) {}

Remote::~Remote() {
  state_->closed = true;
  Stop();
}

namespace {

/// Turns a body into the type that the caller expects. A body that cannot be decoded is Penstock's
/// fault, not the device's.
template <typename T>
auto Decoding(Result<T> (*decode)(std::string_view), std::function<void(Result<T>)> done) {
  return [decode, done = std::move(done)](Result<std::string> body) {
    if (!body.ok()) return done(body.error());
    auto value = decode(*body);
    done(value.ok() ? std::move(value)
                    : Result<T>(Error(Code::kInternal, "cannot decode the worker's answer: " +
                                                           value.error().message())));
  };
}

}  // namespace

void Remote::Listen(Events events) { state_->events = std::move(events); }

void Remote::Open(Done<Driver> done) {
  state_->Submit({kControl,
                  {0, "open", ""},
                  state_->options.open_deadline,
                  Decoding(codec::DecodeDriver, std::move(done))});
}

void Remote::List(Done<std::vector<std::string>> done) {
  state_->Submit({kControl,
                  {0, "list", ""},
                  state_->options.call_deadline,
                  Decoding(codec::DecodeAddresses, std::move(done))});
}

void Remote::Describe(const std::string& address, Done<Facts> done) {
  state_->Submit({kControl,
                  {0, "describe", address},
                  state_->options.call_deadline,
                  Decoding(codec::DecodeFacts, std::move(done))});
}

void Remote::Read(const std::string& address, Done<Reading> done) {
  state_->Submit({kSampling,
                  {0, "read", address},
                  state_->options.call_deadline,
                  Decoding(codec::DecodeReading, std::move(done))});
}

void Remote::TakeSample(const std::string& address, const SampleRequest& request,
                        Done<Sample> done) {
  if (state_->Abandoned() >= kMaxAbandonedForSamples)
    return state_->loop.Post([state = state_, done = std::move(done)] {
      if (!state->closed)
        done(Error(Code::kResourceExhausted, "not measured: " + std::to_string(state->Abandoned()) +
                                                 " workers hang in the driver"));
    });
  state_->Submit({kSampling,
                  {0, "sample", codec::Encode(address, request)},
                  state_->options.call_deadline,
                  Decoding(codec::DecodeSample, std::move(done))});
}

void Remote::SetMode(const std::string& address, const std::string& mode, const std::string& value,
                     Done<std::string> done) {
  state_->Submit({kControl,
                  {0, "set-mode", codec::Encode(codec::ModeRequest{address, mode, value})},
                  state_->options.control_deadline,
                  Decoding(codec::DecodeAddress, std::move(done))});
}

void Remote::CreatePart(const std::string& device, const NewPart& part, Done<std::string> done) {
  state_->Submit({kControl,
                  {0, "create-part", codec::Encode(codec::PartRequest{device, part})},
                  state_->options.control_deadline,
                  Decoding(codec::DecodeAddress, std::move(done))});
}

void Remote::DestroyPart(const std::string& address, Done<std::string> done) {
  state_->Submit({kControl,
                  {0, "destroy-part", address},
                  state_->options.control_deadline,
                  Decoding(codec::DecodeAddress, std::move(done))});
}

void Remote::Stop() {
  const Error stopped(Code::kCancelled, "the worker was stopped");
  state_->End(stopped, stopped);
}

void Remote::SetCommand(std::vector<std::string> command) {
  state_->options.command = std::move(command);
}

pid_t Remote::pid() const { return state_->worker ? state_->worker->pid : 0; }

int Remote::abandoned() const { return state_->Abandoned(); }

}  // namespace penstock::device
