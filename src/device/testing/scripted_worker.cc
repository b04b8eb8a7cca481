// A worker for tests: its backend's devices behave as their addresses say. Not part of the product.
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <string_view>
#include <utility>

#include <sys/socket.h>
#include <unistd.h>

#include "device/remote.h"

namespace penstock::device {
namespace {

class ScriptedBackend final : public Backend {
 public:
  explicit ScriptedBackend(std::string script) : script_(std::move(script)) {}

  std::string vendor() const override { return "acme"; }

  base::Result<Driver> Open() override {
    if (script_ == "no-driver") return base::Error(base::Code::kNotFound, "no driver; install one");
    if (script_ == "hang-at-open") Hang();
    opened_ = true;
    return Driver{"acme", "1.0", "2.0", {}, {}};
  }

  base::Result<std::vector<std::string>> List() override {
    return std::vector<std::string>{"0", "1"};
  }

  base::Result<Facts> Describe(const std::string& address) override {
    if (address == "hang") Hang();
    if (address == "die") ::raise(SIGKILL);
    if (address == "exit") ::_exit(7);
    if (address == "garbage") SendGarbage("\x7f\xff\xff\xffnot a frame");
    if (address == "unasked") SendGarbage(std::string_view("\0\0\0\x08{\"id\":9}", 12));
    if (address == "close") CloseLanes();
    if (address == "lost") return base::Error(base::Code::kDataLoss, "does not answer");
    Facts facts;
    facts.id = "device-" + address;
    facts.address = address;
    return facts;
  }

  base::Result<Reading> Read(const std::string& address) override {
    if (address == "hang") Hang();
    if (address == "event" || address == "deaf") {
      std::lock_guard lock(mutex_);
      (address == "event" ? event_ : deaf_) = true;
      changed_.notify_all();
    }
    return Reading{};
  }

  base::Result<Sample> TakeSample(const std::string& address,
                                  const SampleRequest& request) override {
    if (address == "hang") Hang();
    Sample sample;
    for (const QuantityId quantity : request.quantities)
      sample.values.push_back({quantity, -1, std::uint64_t{100} + quantity});
    if (request.processes)
      sample.processes.push_back({.pid = 4711, .memory = base::Mebibytes(1), .compute = 12.5});
    return sample;
  }

  base::Status SetMode(const std::string& address, const std::string& mode,
                       const std::string& value) override {
    if (address == "hang") Hang();
    if (mode == "mig" && value == "enabled") return {};
    return base::Error(base::Code::kInvalidArgument, "no such mode");
  }

  base::Result<std::string> CreatePart(const std::string& device, const NewPart& part) override {
    return device + "/" + part.within + "/" + part.profile + "/" +
           (part.placement ? std::to_string(part.placement->start) : "any") +
           (part.outer ? "/outer" : "");
  }

  base::Status DestroyPart(const std::string& address) override {
    if (address == "busy") return base::Error(base::Code::kFailedPrecondition, "in use");
    return {};
  }

  base::Result<std::vector<Evidence>> Wait(std::chrono::milliseconds most) override {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, most, [&] { return event_ || deaf_; }))
      return std::vector<Evidence>{};
    if (std::exchange(deaf_, false))
      return base::Error(base::Code::kUnavailable, "a device is lost");
    event_ = false;
    return std::vector<Evidence>{
        {EvidenceSource::kEvent, "device-0", std::nullopt, "trouble", 79, "", false}};
  }

  void Close() override {}

 private:
  [[noreturn]] static void Hang() {
    for (;;) ::pause();
  }
  static void SendGarbage(std::string_view bytes) {
    (void)::send(kControlLane, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  static void CloseLanes() {
    for (const int lane : {kControlLane, kSamplingLane, kEventsLane}) ::shutdown(lane, SHUT_RDWR);
    Hang();
  }

  const std::string script_;
  bool opened_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool event_ = false, deaf_ = false;
};

}  // namespace
}  // namespace penstock::device

int main(int argc, char** argv) {
  const int status = penstock::device::ServeBackend(
      std::make_unique<penstock::device::ScriptedBackend>(argc > 1 ? argv[1] : ""));
  ::_exit(status);
}
