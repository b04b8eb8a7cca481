// Uses a netlink socket of family KOBJECT_UEVENT, group 1: the kernel's own messages
// (lib/kobject_uevent.c).
#include "os/watch/pci_watch.h"

#include <array>
#include <cerrno>
#include <chrono>

#include <linux/netlink.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/log.h"
#include "os/core/fd.h"
#include "os/watch/watch.h"

namespace penstock::os {
namespace {

constexpr unsigned kKernelGroup = 1;
constexpr std::size_t kMaxMessage = 8192;  // UEVENT_BUFFER_SIZE is 2048
constexpr int kMaxAtOnce = 1000;
constexpr base::Duration kBurst = std::chrono::milliseconds(20);

UniqueFd OpenUevents() {
  UniqueFd fd(
      ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT));
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = kKernelGroup;
  if (!fd || ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return {};
  return fd;
}

/// Reads all available messages. True if one of them is a change, or if some were lost.
bool Drain(int fd) {
  bool changed = false;
  std::array<char, kMaxMessage> buffer;
  for (int i = 0; i < kMaxAtOnce; ++i) {
    sockaddr_nl sender{};
    socklen_t length = sizeof sender;
    const ssize_t got = ::recvfrom(fd, buffer.data(), buffer.size(), 0,
                                   reinterpret_cast<sockaddr*>(&sender), &length);
    if (got < 0 && errno == ENOBUFS) changed = true;
    if (got < 0 && errno != EINTR && errno != ENOBUFS) break;
    // Other processes can send to the socket, too; only the kernel has port 0.
    if (got > 0 && sender.nl_pid == 0 &&
        IsPciChange({buffer.data(), static_cast<std::size_t>(got)}))
      changed = true;
  }
  return changed;
}

}  // namespace

struct PciWatch::State : std::enable_shared_from_this<State> {
  State(Loop& l, std::function<void()> c) : loop(l), callback(std::move(c)) {}

  void Changed() {
    if (timer != 0) return;
    timer = loop.PostAfter(kBurst, [self = shared_from_this()] {
      self->timer = 0;
      if (!self->ended) self->callback();
    });
  }

  Loop& loop;
  const std::function<void()> callback;
  UniqueFd uevents;
  std::unique_ptr<PathWatch> folder;
  base::TimerId timer = 0;
  bool ended = false;
};

bool IsPciChange(std::string_view message) {
  const auto at = message.find('@');
  if (at == std::string_view::npos) return false;
  const std::string_view action = message.substr(0, at);
  if (action != "add" && action != "remove" && action != "bind" && action != "unbind") return false;
  constexpr std::string_view kPci("\0SUBSYSTEM=pci\0", 15);
  return message.find(kPci) != std::string_view::npos;
}

PciWatch::PciWatch(Loop& loop, const std::string& sysfs_root, std::function<void()> callback)
    : state_(std::make_shared<State>(loop, std::move(callback))) {
  State* const state = state_.get();
  state->uevents = OpenUevents();
  base::Status watched = state->uevents
                             ? loop.Watch(state->uevents.get(), EPOLLIN,
                                          [state](std::uint32_t) {
                                            if (Drain(state->uevents.get())) state->Changed();
                                          })
                             : base::Status(base::ErrnoError(errno, "listen for uevents"));
  if (!watched.ok()) {
    base::Log(
        base::kInfo,
        "uevents are not available; added and removed devices are noticed at the next discovery",
        {{"why", watched.error().message()}});
    state->uevents.Reset();
  }
  state->folder = std::make_unique<PathWatch>(loop, sysfs_root + "/bus/pci/devices",
                                              [state] { state->Changed(); });
}

PciWatch::~PciWatch() {
  state_->ended = true;
  if (state_->uevents) state_->loop.Unwatch(state_->uevents.get());
  state_->folder.reset();
  state_->loop.Cancel(state_->timer);
}

}  // namespace penstock::os
