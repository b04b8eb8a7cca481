// Reads checkpoint files, and writes them one write at a time.
#include "os/kept_file.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <utility>

#include "base/log.h"

namespace penstock::os {
namespace {

/// How long the destructor waits for a write in progress: a write that takes longer hangs, and the
/// next one would hang too.
constexpr std::chrono::seconds kLongestWait(2);

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
  State(base::Executor& c, base::Executor& i, std::string p, std::string u)
      : control(c), io(i), path(std::move(p)), unwritten(std::move(u)) {}

  void Write() {
    if (writing || ended || !dirty) return;
    writing = true;
    dirty = false;
    io.Post([self = shared_from_this(), text = text, version = version] {
      const std::lock_guard lock(self->disk);
      const base::Status written = self->WriteText(text, version);
      self->control.Post([self, written] { self->Written(written); });
    });
  }

  /// Call with `disk` locked. An older text never replaces a newer one.
  base::Status WriteText(const std::string& what, std::uint64_t which) {
    if (which <= on_disk) return {};
    TRY(WriteFileAtomically(path, what, 0600));
    on_disk = which;
    return {};
  }

  void Written(const base::Status& written) {
    writing = false;
    if (!written.ok()) {
      dirty = true;
      base::Log(base::kError, unwritten, {{"path", path}, {"why", written.error().message()}});
      control.PostAfter(std::chrono::seconds(10), [self = shared_from_this()] { self->Write(); });
      return;
    }
    Write();
  }

  /// A write that was posted to the I/O executor may be in progress, may run after this, or may
  /// never run if that executor has ended.
  void Finish() {
    ended = true;
    if (!writing && !dirty) return;
    const std::unique_lock lock(disk, kLongestWait);
    const base::Status written =
        lock.owns_lock() ? WriteText(text, version)
                         : base::Error(base::Code::kUnavailable, "the disk does not respond");
    if (!written.ok())
      base::Log(base::kError, unwritten, {{"path", path}, {"why", written.error().message()}});
  }

  base::Executor& control;
  base::Executor& io;
  const std::string path, unwritten;
  std::string text;
  std::uint64_t version = 0;  // of `text`
  bool writing = false, dirty = false, ended = false;
  std::timed_mutex disk;      // held during a write
  std::uint64_t on_disk = 0;  // version of the text on disk
};

KeptFile::KeptFile(base::Executor& control, base::Executor& io, std::string path,
                   std::string unwritten)
    : state_(std::make_shared<State>(control, io, std::move(path), std::move(unwritten))) {}

KeptFile::~KeptFile() { state_->Finish(); }

void KeptFile::Keep(std::string text) {
  if (state_->version > 0 && text == state_->text) return;
  state_->text = std::move(text);
  ++state_->version;
  state_->dirty = true;
  state_->Write();
}

}  // namespace penstock::os
