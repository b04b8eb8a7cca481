// Files that an agent keeps for the one after it: how they are written and read. Knows nothing of what is in them.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/core/document.h"
#include "base/core/result.h"
#include "base/executor.h"
#include "os/core/file.h"

namespace penstock::os {

/// Moves a file that cannot be used out of the way and logs that: to "<path>.newer" where a newer program wrote it (kFailedPrecondition),
/// else to "<path>.damaged".
void SetAside(const std::string& path, std::string_view what, const base::Error& why);

/// Reads the key "version", which must be there. kFailedPrecondition where the file is a newer one than this program knows: newer versions
/// may have other keys, so this comes before anything else is judged.
base::Status CheckKeptVersion(base::MapReader& reader, std::string_view file, int known);

/// Whether a file has more bytes than that; not where its size cannot be seen.
bool IsLarger(const std::string& path, std::size_t bytes);

/// What `decode` makes of the file's text; `what` names it, "the ledger's checkpoint". Nothing is known where there is no file, or one that
/// is damaged or that a newer version wrote, which is set aside: an agent starts with what it can find out otherwise. kUnavailable where it
/// cannot be read: it must not be taken for absent, and written over. Blocks.
template <typename T, typename Decode>
base::Result<T> LoadKept(const std::string& path, std::string_view what, Decode decode, std::size_t most = kMostFileBytes) {
  const auto text = ReadFile(path, most);
  if (!text.ok() && text.error().code() == base::Code::kNotFound) return T{};
  if (!text.ok() && !IsLarger(path, most)) return base::Error(base::Code::kUnavailable, text.error().Within(what).message());
  base::Result<T> kept = text.ok() ? decode(*text) : base::Result<T>(text.error());
  if (kept.ok()) return kept;
  SetAside(path, what, kept.error());
  return T{};
}

/// Writes a file whenever its text changes: on the control executor; the disk is waited for on the I/O executor. Always what was kept last.
/// A failed write (full or read-only disk) is logged and repeated with the next change, at the latest after 10 s.
/// The same text is not written twice.
class KeptFile {
 public:
  /// `unwritten` is what the log says then: "what was moved by hand cannot be written, and would be forgotten by a restart".
  KeptFile(base::Executor& control, base::Executor& io, std::string path, std::string unwritten);
  ~KeptFile();  ///< writes what is not on disk yet; blocks

  void Keep(std::string text);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::os
