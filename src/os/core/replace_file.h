// Replaces a file so that a crash leaves either the old or the new one.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/core/result.h"

namespace penstock::os {

enum class Durability {
  kSynced,    ///< the new content survives a power loss once this returns
  kUnsynced,  ///< for a file that no one needs after a power loss
};

/// Writes to a temporary file beside it, and renames. `prepare` sets the new file's mode and owner.
/// Leaves no file behind on failure (a full or read-only disk).
base::Status ReplaceFile(const std::string& path, std::string_view content,
                         const std::function<base::Status(int file)>& prepare,
                         Durability durability = Durability::kSynced);

/// A change of a name survives a power loss only after its folder is synced, too. A file system
/// that cannot sync folders needs no sync.
void SyncFolder(const std::string& folder);

}  // namespace penstock::os
