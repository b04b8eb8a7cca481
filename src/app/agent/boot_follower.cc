#include "app/agent/boot_follower.h"

#include <utility>

#include "app/devices/paths.h"
#include "base/log.h"
#include "os/next_kernel.h"

namespace penstock::app {
namespace {

/// A package manager writes a kernel, its modules and the menu one after the other.
constexpr base::Duration kInstalled = std::chrono::seconds(10);

std::string OtherKernel(const std::string& root) {
  std::string next = os::NextKernel(root);
  return next == os::RunningKernel() ? "" : next;
}

}  // namespace

BootFollower::BootFollower(os::Loop& control, base::Executor& io, std::function<void()> changed)
    : control_(control), io_(io), changed_(std::move(changed)) {}

BootFollower::~BootFollower() { control_.Cancel(timer_); }

void BootFollower::Configure(const api::PathsConfig& paths) {
  if (std::exchange(root_, paths.driver_root) == root_) return;
  watches_.clear();
  for (const char* folder : {"/boot", "/boot/grub", "/boot/grub2", "/boot/loader/entries"})
    watches_.push_back(std::make_unique<os::PathWatch>(control_, BelowRoot(root_, folder),
                                                       [this] { ReadSoon(); }));
  Read();
}

void BootFollower::ReadSoon() {
  if (timer_ != 0) return;
  timer_ = control_.PostAfter(kInstalled, [this] {
    timer_ = 0;
    Read();
  });
}

void BootFollower::Read() {
  if (std::exchange(reading_, true)) {
    again_ = true;
    return;
  }
  const auto take = lifetime_.Guard([this, root = root_](std::string kernel) {
    reading_ = false;
    Take(root, std::move(kernel));
    if (std::exchange(again_, false)) Read();
  });
  io_.Post([take, &control = control_, root = root_] {
    control.Post([take, kernel = OtherKernel(root)] { take(kernel); });
  });
}

/// What was read below another root says nothing.
void BootFollower::Take(const std::string& root, std::string kernel) {
  if (root != root_ || std::exchange(next_kernel_, std::move(kernel)) == next_kernel_) return;
  base::Log(base::kInfo, "the kernel that boots next changed",
            {{"kernel", next_kernel_.empty() ? "the running one" : next_kernel_}});
  changed_();
}

}  // namespace penstock::app
