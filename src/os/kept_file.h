// Files that an agent keeps for the one after it: how they are read. Knows nothing of what is in them.
#pragma once

#include <string>
#include <string_view>

#include "base/core/document.h"
#include "base/core/result.h"
#include "os/core/file.h"

namespace penstock::os {

/// Moves a damaged file to "<path>.damaged", and logs that.
void SetAside(const std::string& path, std::string_view what, const base::Error& why);

/// Reads the key "version", which must be there. kFailedPrecondition where the file is a newer one than this program knows: newer versions
/// may have other keys, so this comes before anything else is judged.
base::Status CheckKeptVersion(base::MapReader& reader, std::string_view file, int known);

/// What `decode` makes of the file's text; `what` names it, "the ledger's checkpoint". Nothing is known where there is no file, or a
/// damaged one, which is set aside. kFailedPrecondition where a newer version wrote it, which must be left alone; kUnavailable where it
/// cannot be read: it must not be taken for absent, and written over. Blocks.
template <typename T, typename Decode>
base::Result<T> LoadKept(const std::string& path, std::string_view what, Decode decode) {
  const auto text = ReadFile(path);
  if (!text.ok() && text.error().code() == base::Code::kNotFound) return T{};
  if (!text.ok()) return base::Error(base::Code::kUnavailable, text.error().Within(what).message());
  base::Result<T> kept = decode(*text);
  if (kept.ok() || kept.error().code() == base::Code::kFailedPrecondition) return kept;
  SetAside(path, what, kept.error());
  return T{};
}

}  // namespace penstock::os
