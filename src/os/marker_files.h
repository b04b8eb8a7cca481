// Keeps files in a folder by whose existence other programs wait.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/core/result.h"

namespace penstock::os {

/// Makes the files of `wanted` (name → content) exist in the folder, each at once as a whole, and
/// removes those of `unwanted`. Writes nothing that is already so, and creates the folder if a file
/// is wanted. kPermissionDenied: the folder is a link, or another user than root can change what it
/// names (OpenTrusted); nothing was changed. Otherwise all problems. Blocks.
base::Status UpdateMarkers(const std::string& folder,
                           const std::map<std::string, std::string>& wanted,
                           const std::vector<std::string>& unwanted);

}  // namespace penstock::os
