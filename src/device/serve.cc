// The worker's end of the lanes: one blocking thread each. The agent enforces the deadlines of
// calls.
#include <array>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include <poll.h>
#include <sys/socket.h>

#include "base/log.h"
#include "device/codec.h"
#include "device/remote.h"

namespace penstock::device {
namespace {

constexpr auto kLongestWait = std::chrono::seconds(10);
constexpr int kFailuresReported = 16;  // in a row: as many GPUs as a machine has
constexpr int kPauseAfterAnErrorMs = 1000;
constexpr int kPauseWithoutEventsMs = 30000;  // a device with events may appear later

/// State shared by the threads. It outlives them all, since one may hang indefinitely.
struct Served {
  explicit Served(std::unique_ptr<Backend> a_backend) : backend(std::move(a_backend)) {}

  const std::unique_ptr<Backend> backend;
  std::mutex calls;  // all calls but Wait run one at a time
  std::mutex mutex;
  std::condition_variable changed;
  bool opened = false;
};

bool Send(int lane, const codec::WorkerAnswer& answer) {
  std::string content = codec::EncodeAnswer(answer);
  if (content.size() > codec::kMaxFrameBytes) {
    content = codec::EncodeAnswer(
        {answer.id, Error(Code::kResourceExhausted, "the answer exceeds the maximum frame size"),
         ""});
  }
  const std::string frame = codec::Frame(content);
  for (std::size_t done = 0; done < frame.size();) {
    const ssize_t sent = ::send(lane, frame.data() + done, frame.size() - done, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    done += static_cast<std::size_t>(sent);
  }
  return true;
}

template <typename T>
codec::WorkerAnswer AnswerOf(std::uint64_t id, const base::Result<T>& result) {
  if (!result.ok()) return {id, result.error(), ""};
  return {id, {}, codec::Encode(*result)};
}

/// A request that changes a device.
codec::WorkerAnswer Change(Backend& backend, const codec::WorkerRequest& request) {
  const auto change = [&]() -> Result<std::string> {
    if (request.operation == "set-mode") {
      ASSIGN(const auto mode, codec::DecodeModeRequest(request.argument));
      TRY(backend.SetMode(mode.address, mode.mode, mode.value));
      return mode.address;
    }
    if (request.operation == "create-part") {
      ASSIGN(const auto part, codec::DecodePartRequest(request.argument));
      return backend.CreatePart(part.device, part.part);
    }
    TRY(backend.DestroyPart(request.argument));
    return request.argument;
  };
  const Result<std::string> changed = change();
  if (!changed.ok()) return {request.id, changed.error(), ""};
  return {request.id, {}, codec::EncodeAddress(*changed)};
}

codec::WorkerAnswer Perform(Served& served, const codec::WorkerRequest& request) {
  std::lock_guard one_at_a_time(served.calls);
  if (request.operation == "list") return AnswerOf(request.id, served.backend->List());
  if (request.operation == "describe")
    return AnswerOf(request.id, served.backend->Describe(request.argument));
  if (request.operation == "read")
    return AnswerOf(request.id, served.backend->Read(request.argument));
  if (request.operation == "sample") {
    const auto decoded = codec::DecodeSampleRequest(request.argument);
    if (!decoded.ok()) return {request.id, decoded.error(), ""};
    return AnswerOf(request.id, served.backend->TakeSample(decoded->first, decoded->second));
  }
  if (request.operation == "set-mode" || request.operation == "create-part" ||
      request.operation == "destroy-part")
    return Change(*served.backend, request);
  if (request.operation != "open")
    return {request.id,
            Error(Code::kInvalidArgument, "unknown operation \"" + request.operation + "\""), ""};
  const auto driver = served.backend->Open();
  {
    std::lock_guard lock(served.mutex);
    served.opened = driver.ok();
  }
  served.changed.notify_all();
  return AnswerOf(request.id, driver);
}

/// Answers requests until the lane ends; returns the exit status.
int ServeCalls(Served& served, int lane) {
  std::string in;
  std::array<char, 4096> buffer;
  for (;;) {
    auto frame = codec::TakeFrame(in);
    if (!frame.ok()) {
      base::Log(base::kError, "the agent sent an invalid frame",
                {{"error", frame.error().message()}});
      return 1;
    }
    if (*frame) {
      const auto request = codec::DecodeRequest(**frame);
      if (!request.ok()) {
        base::Log(base::kError, "the agent sent an invalid request",
                  {{"error", request.error().message()}});
        return 1;
      }
      if (!Send(lane, Perform(served, *request))) return 0;
      continue;
    }
    const ssize_t got = ::recv(lane, buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return 0;
    in.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

/// Pauses; returns false if the lane ends meanwhile.
bool Pause(int lane, int milliseconds) {
  pollfd end{.fd = lane, .events = POLLIN, .revents = 0};
  return ::poll(&end, 1, milliseconds) == 0;
}

/// A wait may fail once for each lost GPU: such failures are reported and the wait is repeated at
/// once. After kFailuresReported failures in a row it slows down.
void PushEvents(Served& served, int lane) {
  for (int failures = 0;;) {
    {
      std::unique_lock lock(served.mutex);
      served.changed.wait(lock, [&] { return served.opened; });
    }
    const auto evidence = served.backend->Wait(kLongestWait);
    if (evidence.ok()) {
      failures = 0;
      if (!evidence->empty() && !Send(lane, AnswerOf(0, evidence))) return;
      continue;
    }
    if (evidence.error().code() == Code::kUnimplemented) {
      if (!Pause(lane, kPauseWithoutEventsMs)) return;
      continue;
    }
    base::Log(base::kWarn, "device events are temporarily unavailable",
              {{"error", evidence.error().message()}});
    const bool reported = ++failures <= kFailuresReported;
    if (reported ? !Send(lane, AnswerOf(0, evidence)) : !Pause(lane, kPauseAfterAnErrorMs)) return;
  }
}

}  // namespace

int ServeBackend(std::unique_ptr<Backend> backend) {
  const auto served = std::make_shared<Served>(std::move(backend));
  std::thread([served] { ServeCalls(*served, kSamplingLane); }).detach();
  std::thread([served] { PushEvents(*served, kEventsLane); }).detach();
  return ServeCalls(*served, kControlLane);
}

}  // namespace penstock::device
