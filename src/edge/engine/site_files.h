// An engine's files gathered into facts, and changes of them carried out. Blocks; knows nothing of engines' processes.
#pragma once

#include <string>
#include <vector>

#include "base/core/result.h"
#include "edge/engine/change.h"
#include "edge/engine/config_files.h"
#include "edge/engine/journal.h"
#include "edge/engine/site.h"

namespace penstock::edge::engine {

/// What the files say; the version and what is in force are for others to add. `record`'s files are read, too.
struct Gathered {
  Facts facts;
  Disk disk;
};
base::Result<Gathered> Gather(const Site& site, const ConfigFiles& files, const Record& record, int major);

/// Writes what the changes lead to, in order; stops at the first error.
base::Status WriteAll(const ConfigFiles& files, const std::vector<FileChange>& changes);

/// Gives each file that has its new text the old one back; one that somebody else changed meanwhile is told in `others` and stays. Tries
/// all, and tells the first error.
base::Status PutBack(const ConfigFiles& files, const std::vector<FileChange>& changes, std::vector<std::string>& others);

/// An empty journal where there is no such file.
base::Result<Journal> LoadJournal(const std::string& path);

/// Removes the file of a journal that has nothing to remember; `keep`: there is more of this engine than its files.
base::Status SaveJournal(const std::string& path, const Journal& journal, bool keep = false);

}  // namespace penstock::edge::engine
