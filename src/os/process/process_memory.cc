// A reader thread that hangs is abandoned, and reused once its read returns. The kernel ends it
// with this process (the waits are killable).
#include "os/process/process_memory.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace penstock::os {
namespace {

constexpr std::size_t kMaxReaders = 8;
constexpr std::size_t kMaxIdle = 1;

base::Result<std::string> ReadStart(const UniqueFd& process, const std::string& file,
                                    std::size_t most) {
  const UniqueFd fd(::openat(process.get(), file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return base::ErrnoError(errno, "open " + file + " of a process");
  std::string content;
  while (content.size() < most) {
    const std::size_t had = content.size();
    content.resize(std::min(most, had + (16u << 10)));
    const ssize_t got = ::read(fd.get(), content.data() + had, content.size() - had);
    content.resize(had + (got > 0 ? static_cast<std::size_t>(got) : 0));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return base::ErrnoError(errno, "read " + file + " of a process");
    if (got == 0) break;
  }
  return content;
}

struct Job {
  UniqueFd process;
  std::string file;
  std::size_t most;
  uid_t uid;
  ReadTimes times;
  bool given_up = false;
  std::optional<base::TimePoint> ended;
  std::optional<base::Result<std::string>> content;
};

/// All reader threads. A thread that hangs can be neither ended nor awaited, so what it uses must
/// live until the process ends.
class Readers {
 public:
  static Readers& All() {
    static Readers& readers = *new Readers;
    return readers;
  }

  base::Result<std::string> Read(Job wanted) {
    std::unique_lock lock(mutex_);
    wanted.times.asked = std::chrono::steady_clock::now();
    if (hanging_.contains(wanted.uid) || !patience_.Has(wanted.uid, wanted.times.asked))
      return Error(Code::kUnavailable, "processes of user " + std::to_string(wanted.uid) +
                                           " block the reading of their memory usage");
    if (idle_ <= queued_ && !Add())
      return Error(Code::kUnavailable,
                   "too many processes block the reading of their memory usage");
    const auto job = std::make_shared<Job>(std::move(wanted));
    next_.push_back(job);
    ++queued_;
    wake_.notify_one();
    Await(lock, *job);
    patience_.Waited(job->uid, job->times, job->ended.value_or(std::chrono::steady_clock::now()));
    if (job->content) return *std::move(job->content);
    job->given_up = true;
    ++hanging_[job->uid];
    return Error(Code::kDeadlineExceeded, "a process of user " + std::to_string(job->uid) +
                                              " blocks the reading of its memory usage");
  }

 private:
  /// Returns when the content is there, or the wait was long enough. When that is changes as the
  /// read begins.
  void Await(std::unique_lock<std::mutex>& lock, const Job& job) {
    while (!job.content) {
      const base::TimePoint until = Patience::Until(job.times);
      if (std::chrono::steady_clock::now() >= until) return;
      changed_.wait_until(lock, until);
    }
  }

  bool Add() {
    if (readers_ >= kMaxReaders) return false;
    try {
      std::thread([this] { Run(); }).detach();
    } catch (const std::system_error&) { return false; }
    ++readers_;
    ++idle_;
    return true;
  }

  void Run() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return !next_.empty(); });
      const auto job = std::move(next_.front());
      next_.pop_front();
      --queued_;
      --idle_;
      job->times.begun = std::chrono::steady_clock::now();
      changed_.notify_all();
      lock.unlock();
      auto content = ReadStart(job->process, job->file, job->most);
      const base::TimePoint ended = std::chrono::steady_clock::now();
      lock.lock();
      job->ended = ended;
      job->content = std::move(content);
      if (job->given_up && --hanging_[job->uid] == 0) hanging_.erase(job->uid);
      changed_.notify_all();
      if (idle_ >= kMaxIdle) break;
      ++idle_;
    }
    --readers_;
  }

  std::mutex mutex_;
  std::condition_variable wake_, changed_;
  std::deque<std::shared_ptr<Job>> next_;
  std::size_t readers_ = 0, idle_ = 0, queued_ = 0;
  std::map<uid_t, int> hanging_;  // abandoned reads that have not returned, by user
  Patience patience_;
};

}  // namespace

bool Patience::Has(uid_t uid, base::TimePoint now) {
  if (now - begin_ >= kWindow) *this = {};
  if (begin_ == base::TimePoint{}) begin_ = now;
  const auto user = by_user_.find(uid);
  return all_ < kOfAll && (user == by_user_.end() || user->second < kOfOneUser);
}

base::TimePoint Patience::Until(const ReadTimes& read) {
  return read.begun ? *read.begun + kOnce : read.asked + kForAThread;
}

void Patience::Waited(uid_t uid, const ReadTimes& read, base::TimePoint ended) {
  const base::Duration time = read.begun ? ended - *read.begun : base::Duration::zero();
  if (time <= kCounted) return;
  all_ += time;
  by_user_[uid] += time;
}

base::Result<std::string> ReadMemoryOf(const UniqueFd& process, const std::string& file,
                                       std::size_t most, uid_t uid) {
  UniqueFd own(::fcntl(process.get(), F_DUPFD_CLOEXEC, 0));
  if (!own) return base::ErrnoError(errno, "keep the folder of a process open");
  return Readers::All().Read({std::move(own), file, most, uid, {}, false, {}, {}});
}

}  // namespace penstock::os
