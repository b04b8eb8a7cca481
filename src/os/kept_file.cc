// Reads checkpoint files, and writes them one write at a time.
#include "os/kept_file.h"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <utility>

#include "base/log.h"

namespace penstock::os {
namespace {

/// How long the destructor waits for a write in progress: a write that takes longer hangs, and the
/// next one would hang too.
constexpr std::chrono::seconds kLongestWait(2);
constexpr char kSilent[] = "the disk does not respond";

/// As std::timed_mutex, whose pthread_mutex_clocklock the thread sanitizer of g++ 12 does not know.
class Disk {
 public:
  struct Unlock {
    void operator()(Disk* disk) const {
      {
        const std::lock_guard lock(disk->mutex_);
        disk->taken_ = false;
      }
      disk->freed_.notify_one();
    }
  };
  using Locked = std::unique_ptr<Disk, Unlock>;

  /// Null after this time.
  Locked LockWithin(base::Duration most) {
    std::unique_lock lock(mutex_);
    if (!freed_.wait_for(lock, most, [this] { return !taken_; })) return nullptr;
    taken_ = true;
    return Locked(this);
  }

 private:
  std::mutex mutex_;
  std::condition_variable freed_;
  bool taken_ = false;
};

}  // namespace

void SetAside(const std::string& path, std::string_view what, const base::Error& why) {
  const bool newer = why.code() == base::Code::kFailedPrecondition;
  const std::string aside = path + (newer ? ".newer" : ".damaged");
  base::Log(base::kWarn,
            std::string(what) + (newer ? " was written by a newer version and was set aside"
                                       : " is damaged and was set aside"),
            {{"why", why.message()}, {"kept as", aside}});
  (void)std::rename(path.c_str(), aside.c_str());
}

base::Status CheckKeptVersion(base::MapReader& reader, std::string_view file, int known) {
  reader.Require("version");
  const auto version = reader.Int("version", 1, INT32_MAX);
  if (!version || *version <= known) return {};
  return base::Error(base::Code::kFailedPrecondition,
                     std::string(file) + " was written by a newer Penstock (format " +
                         std::to_string(*version) + ", this one reads " + std::to_string(known) +
                         "): run that version, or start with another --state-dir");
}

bool IsLarger(const std::string& path, std::size_t bytes) {
  std::error_code failed;
  const auto size = std::filesystem::file_size(path, failed);
  return !failed && size > bytes;
}

struct KeptFile::State : std::enable_shared_from_this<State> {
  State(base::Executor& c, base::Executor& i, std::string p, std::string u, base::Duration r,
        Source s)
      : control(c),
        io(i),
        path(std::move(p)),
        unwritten(std::move(u)),
        rest(r),
        source(std::move(s)) {}

  void Write() {
    if (writing || ended || !dirty) return;
    writing = true;
    dirty = false;
    io.Post([self = shared_from_this(), encode = source(), version = version] {
      base::Status written = base::Error(base::Code::kUnavailable, kSilent);
      if (const auto locked = self->disk.LockWithin(kLongestWait))
        written = self->WriteText(encode, version);
      self->control.Post([self, written, version] { self->Written(written, version); });
    });
  }

  /// Call with `disk` locked. An older text never replaces a newer one.
  base::Status WriteText(const Encode& encode, std::uint64_t which) {
    if (which <= on_disk) return {};
    std::string next = encode();
    if (on_disk == 0 || next != text) TRY(WriteFileAtomically(path, next, 0600));
    text = std::move(next);
    on_disk = which;
    return {};
  }

  void Written(const base::Status& written, std::uint64_t which) {
    if (written.ok()) confirmed = which;
    problem = written.ok() ? "" : written.error().message();
    if (wrote) wrote();
    if (written.ok() && rest > base::Duration::zero()) {
      control.PostAfter(rest, [self = shared_from_this()] { self->Rested(); });
      return;
    }
    writing = false;
    if (!written.ok()) {
      dirty = true;
      base::Log(base::kError, unwritten, {{"path", path}, {"why", written.error().message()}});
      control.PostAfter(std::chrono::seconds(10), [self = shared_from_this()] { self->Write(); });
      return;
    }
    Write();
  }

  void Rested() {
    writing = false;
    Write();
  }

  /// A write that was posted to the I/O executor may be in progress, may run after this, or may
  /// never run if that executor has ended.
  void Finish() {
    ended = true;
    if (!writing && !dirty) return;
    base::Status written = base::Error(base::Code::kUnavailable, kSilent);
    if (const auto locked = disk.LockWithin(kLongestWait)) written = WriteText(source(), version);
    if (!written.ok())
      base::Log(base::kError, unwritten, {{"path", path}, {"why", written.error().message()}});
  }

  base::Executor& control;
  base::Executor& io;
  const std::string path, unwritten;
  const base::Duration rest;
  Source source;
  std::uint64_t version = 0;    // of what `source` returns
  std::uint64_t confirmed = 0;  // the newest version known to be on disk
  std::string problem;
  std::function<void()> wrote;
  bool writing = false, dirty = false, ended = false;
  Disk disk;                  // locked during a write
  std::string text;           // on disk
  std::uint64_t on_disk = 0;  // its version
};

KeptFile::KeptFile(base::Executor& control, base::Executor& io, std::string path,
                   std::string unwritten)
    : KeptFile(control, io, std::move(path), std::move(unwritten), base::Duration::zero(), {}) {}

KeptFile::KeptFile(base::Executor& control, base::Executor& io, std::string path,
                   std::string unwritten, base::Duration rest, Source source)
    : state_(std::make_shared<State>(control, io, std::move(path), std::move(unwritten), rest,
                                     std::move(source))) {}

KeptFile::~KeptFile() { state_->Finish(); }

void KeptFile::Keep(std::string text) {
  state_->source = [text = std::move(text)] { return [text] { return text; }; };
  ++state_->version;
  state_->dirty = true;
  state_->Write();
}

bool KeptFile::IsWritten() const { return state_->confirmed == state_->version; }

const std::string& KeptFile::problem() const { return state_->problem; }

void KeptFile::OnWrite(std::function<void()> wrote) { state_->wrote = std::move(wrote); }

void KeptFile::Changed() {
  ++state_->version;
  state_->dirty = true;
  if (!state_->writing) state_->control.Post([state = state_] { state->Write(); });
}

}  // namespace penstock::os
