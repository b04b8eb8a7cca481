#include "sim/state_file.h"

#include <cerrno>
#include <climits>
#include <utility>

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace penstock::sim {
namespace {

base::Error Broken(const std::string& path, int check) {
  const std::string advice = "; stop the machine (penstock-sim stop) and start it again";
  switch (check) {
    case kSimStateTruncated:
      return {base::Code::kFailedPrecondition, path + ": the state file is truncated" + advice};
    case kSimStateOtherLayout:
      return {base::Code::kFailedPrecondition,
              path + ": the state file was written by another version of penstock-sim" + advice};
    default: return {base::Code::kFailedPrecondition, path + ": not a penstock-sim state file"};
  }
}

bool WriteAll(int fd, const void* data, std::size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = write(fd, at, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    at += written;
    size -= static_cast<std::size_t>(written);
  }
  return true;
}

void Wake(std::uint32_t* word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

std::string StatePath(const std::string& root) { return root + "/.penstock-sim/state"; }

base::Result<StateFile> StateFile::Create(const std::string& root, const SimState& state) {
  SimState fresh = state;
  if (getrandom(&fresh.instance, sizeof fresh.instance, 0) != sizeof fresh.instance)
    fresh.instance = static_cast<std::uint64_t>(getpid());
  const std::string path = StatePath(root), temporary = path + ".new";
  const int fd = open(temporary.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return base::ErrnoError(errno, "create " + temporary);
  const bool written = WriteAll(fd, &fresh, sizeof fresh);
  const int error = errno;
  close(fd);
  if (!written || rename(temporary.c_str(), path.c_str()) != 0) {
    const int cause = written ? errno : error;
    unlink(temporary.c_str());
    return base::ErrnoError(cause, "write " + path);
  }
  return Open(root);
}

base::Result<StateFile> StateFile::Open(const std::string& root) {
  const std::string path = StatePath(root);
  bool writable = true;
  int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0 && (errno == EACCES || errno == EROFS)) {
    writable = false;
    fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  }
  if (fd < 0 && errno == ENOENT)
    return base::Error(base::Code::kNotFound,
                       "no simulated machine at " + root +
                           "; start one: penstock-sim start dgx-a100 --root " + root);
  if (fd < 0) return base::ErrnoError(errno, "open " + path);
  struct stat info {};
  fstat(fd, &info);
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (size < sizeof(SimState)) {
    SimState head{};
    const ssize_t got = pread(fd, &head, 16, 0);
    close(fd);
    return Broken(
        path,
        SimCheckState(&head, got < 16 ? static_cast<std::uint64_t>(got < 0 ? 0 : got) : size));
  }
  void* mapped =
      mmap(nullptr, sizeof(SimState), PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) {
    const int error = errno;
    close(fd);
    return base::ErrnoError(error, "map " + path);
  }
  auto* state = static_cast<SimState*>(mapped);
  if (const int check = SimCheckState(state, size); check != kSimStateOk) {
    munmap(mapped, sizeof(SimState));
    close(fd);
    return Broken(path, check);
  }
  return StateFile(fd, state, writable);
}

StateFile::StateFile(StateFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      state_(std::exchange(other.state_, nullptr)),
      writable_(other.writable_) {}

StateFile::~StateFile() {
  if (state_) munmap(state_, sizeof(SimState));
  if (fd_ >= 0) close(fd_);
}

base::Result<StateFile::Change> StateFile::Begin() {
  if (!writable_)
    return base::Error(base::Code::kPermissionDenied,
                       "this user may only read the simulated machine; change it as its owner");
  while (flock(fd_, LOCK_EX) != 0)
    if (errno != EINTR) return base::ErrnoError(errno, "lock the state file");
  __atomic_fetch_or(&state_->generation, 1u, __ATOMIC_ACQ_REL);
  return Change(this);
}

StateFile::Change::~Change() {
  if (!file_) return;
  SimState* state = file_->state_;
  __atomic_add_fetch(&state->generation, 1u, __ATOMIC_ACQ_REL);
  __atomic_add_fetch(&state->event_futex, 1u, __ATOMIC_ACQ_REL);
  Wake(&state->generation);
  Wake(&state->event_futex);
  flock(file_->fd_, LOCK_UN);
}

void StateFile::Change::AddEvent(std::uint32_t gpu, std::uint64_t type, std::uint64_t data,
                                 std::uint32_t instance) {
  SimState* state = file_->state_;
  const std::uint64_t sequence = state->event_head + 1;
  state->events[sequence % kSimEventSlots] = {sequence, type, data, gpu, instance};
  __atomic_store_n(&state->event_head, sequence, __ATOMIC_RELEASE);
}

}  // namespace penstock::sim
