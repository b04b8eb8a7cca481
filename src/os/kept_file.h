// Reads and writes checkpoint files, which an agent keeps for the agent that starts after it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/core/fields.h"
#include "base/core/result.h"
#include "base/executor.h"
#include "os/core/file.h"

namespace penstock::os {

/// Moves an unusable file out of the way and logs it: to "<path>.newer" if a newer program wrote it
/// (kFailedPrecondition), else to "<path>.damaged".
void SetAside(const std::string& path, std::string_view what, const base::Error& why);

/// Reads the key "version", which is required. kFailedPrecondition if the file's version is newer
/// than this program knows. Call it before any other check, since newer versions may have other
/// keys.
base::Status CheckKeptVersion(base::MapReader& reader, std::string_view file, int known);

/// Returns a checkpoint's text: JSON with the version of its format, and what `write` writes with a
/// base::StructWriter.
template <typename Json, typename Write>
std::string EncodeKept(int version, Write write) {
  Json json;
  base::StructWriter<Json> writer(json);
  writer("version", version);
  write(writer);
  return base::JsonText(json, 1) + "\n";
}

/// The inverse of EncodeKept: `read` is called with a base::StructReader. kFailedPrecondition where
/// a newer version of the agent wrote the text, kDataLoss where it is corrupt.
template <typename Read>
base::Status DecodeKept(int version, std::string_view text, std::string_view file, Read read,
                        const base::ParseLimits& limits = {}) {
  return base::ReadFields(text, file, {.parse = limits},
                          [&](base::StructReader& reader) -> base::Status {
                            TRY(CheckKeptVersion(reader.map(), file, version));
                            read(reader);
                            return {};
                          });
}

/// Whether a file is larger than `bytes`; false if its size cannot be read.
bool IsLarger(const std::string& path, std::size_t bytes);

/// Returns what `decode` makes of the file's text; `what` names the file in messages: "the ledger's
/// checkpoint". Returns an empty T if there is no file, or if the file is damaged or was written by
/// a newer version (such a file is set aside): the agent then starts from what it can observe.
/// kUnavailable if the file cannot be read: it must not be treated as missing and overwritten.
/// Blocks.
template <typename T, typename Decode>
base::Result<T> LoadKept(const std::string& path, std::string_view what, Decode decode,
                         std::size_t most = kMaxFileBytes) {
  const auto text = ReadFile(path, most);
  if (!text.ok() && text.error().code() == base::Code::kNotFound) return T{};
  if (!text.ok() && !IsLarger(path, most))
    return base::Error(base::Code::kUnavailable, text.error().Within(what).message());
  base::Result<T> kept = text.ok() ? decode(*text) : base::Result<T>(text.error());
  if (kept.ok()) return kept;
  SetAside(path, what, kept.error());
  return T{};
}

/// Writes a file whenever its text changes. Called on the control executor; waits for the disk on
/// the I/O executor. The newest text is always written last. A failed write (full or read-only
/// disk) is logged and retried with the next change, or after 10 s at the latest. An unchanged text
/// is not written again.
class KeptFile {
 public:
  using Encode = std::function<std::string()>;
  using Source = std::function<Encode()>;

  /// `unwritten` is the log message for a failed write; it says what a restart would lose.
  KeptFile(base::Executor& control, base::Executor& io, std::string path, std::string unwritten);
  /// For a text that is made from changing state. For each write, `source` is called on the control
  /// executor and what it returns on the I/O executor. Writes are at least `rest` apart.
  KeptFile(base::Executor& control, base::Executor& io, std::string path, std::string unwritten,
           base::Duration rest, Source source);
  ~KeptFile();  ///< writes what is not on disk yet; blocks

  void Keep(std::string text);
  /// The source has a new text. Several changes become one write.
  void Changed();

  /// Whether the newest text is on disk, or there was none yet. On the control executor.
  bool IsWritten() const;
  /// Why the last write failed; empty if it did not. On the control executor.
  const std::string& problem() const;
  /// Sets the function that is called after each write, on the control executor.
  void OnWrite(std::function<void()> wrote);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::os
