// Asks one device after the other, like the agent's discovery, but only once.
#include "app/penstock/common/probe_devices.h"

#include <memory>
#include <optional>
#include <utility>

#include "app/devices/backend_connection.h"
#include "app/penstock/common/programs.h"
#include "device/remote.h"
#include "os/loop.h"

namespace penstock::app {
namespace {

using base::Code;
using base::Error;
using base::Result;

class Prober : public std::enable_shared_from_this<Prober> {
 public:
  Prober(device::AsyncBackend& backend, std::function<void(Result<Seen>)> done)
      : backend_(backend), done_(std::move(done)) {}

  void Open() {
    backend_.Open([self = shared_from_this()](Result<device::Driver> driver) {
      if (!driver.ok()) return self->done_(driver.error());
      self->seen_.driver = *std::move(driver);
      self->listed_ ? self->DescribeNext() : self->List();
    });
  }

 private:
  void List() {
    backend_.List([self = shared_from_this()](Result<std::vector<std::string>> addresses) {
      if (!addresses.ok()) return self->done_(addresses.error());
      self->addresses_ = *std::move(addresses);
      self->listed_ = true;
      self->DescribeNext();
    });
  }

  void DescribeNext() {
    if (next_ == addresses_.size()) return done_(std::move(seen_));
    const std::string& address = addresses_[next_++];
    backend_.Describe(address, [self = shared_from_this(), address](Result<device::Facts> facts) {
      self->Take(address, std::move(facts));
    });
  }

  void Take(const std::string& address, Result<device::Facts> facts) {
    if (facts.ok()) {
      // Next, because a driver that is opened again knows no parts of what it did not describe.
      addresses_.insert(addresses_.begin() + static_cast<std::ptrdiff_t>(next_),
                        facts->parts.begin(), facts->parts.end());
      seen_.devices.push_back(*std::move(facts));
      return DescribeNext();
    }
    seen_.problems.push_back("device " + address + " was skipped: " + facts.error().message());
    const Code code = facts.error().code();
    const bool connected = code == Code::kDataLoss || code == Code::kNotFound;
    connected ? DescribeNext() : Open();
  }

  device::AsyncBackend& backend_;
  const std::function<void(Result<Seen>)> done_;
  Seen seen_;
  std::vector<std::string> addresses_;
  std::size_t next_ = 0;
  bool listed_ = false;
};

}  // namespace

void ProbeOnce(device::AsyncBackend& backend, std::function<void(Result<Seen>)> done) {
  std::make_shared<Prober>(backend, std::move(done))->Open();
}

Result<Seen> QueryDriver(const device::Dialect& dialect, const device::Paths& paths,
                         base::Duration patience) {
  ASSIGN(const std::string worker, FindProgram("penstock-worker"));
  os::Loop loop("look");
  std::optional<Result<Seen>> seen;
  device::Remote remote(loop, {.command = WorkerCommand(worker, dialect.vendor(), paths)});
  ProbeOnce(remote, [&](Result<Seen> answer) {
    seen = std::move(answer);
    loop.Stop();
  });
  loop.PostAfter(patience, [&] { loop.Stop(); });
  loop.Run();
  if (!seen)
    return Error(Code::kDeadlineExceeded,
                 "the driver did not respond within " + base::FormatDuration(patience));
  return *std::move(seen);
}

}  // namespace penstock::app
