// Reads an engine's files into EngineFacts and carries out changes of those files. Blocks.
#pragma once

#include <string>
#include <vector>

#include "base/core/result.h"
#include "protocol/engine/apply/change.h"
#include "protocol/engine/apply/journal.h"
#include "protocol/engine/config_files.h"
#include "protocol/engine/engine_install.h"

namespace penstock::protocol::engine {

/// What the files contain. The caller adds the version and the configuration in force. The files of
/// `record` are read as well.
struct Gathered {
  EngineFacts facts;
  Disk disk;
};
base::Result<Gathered> Gather(const EngineInstall& install, const ConfigFiles& files,
                              const SettingRecord& record, int major);

/// Writes the new texts of the changes, in order; stops at the first error.
base::Status WriteAll(const ConfigFiles& files, const std::vector<FileChange>& changes);

/// Restores the old text of each file that has its new text. A file that was changed by others
/// meanwhile is reported in `others` and stays. Tries all files and returns the first error.
base::Status PutBack(const ConfigFiles& files, const std::vector<FileChange>& changes,
                     std::vector<std::string>& others);

/// Returns an empty journal if there is no such file.
base::Result<Journal> LoadJournal(const std::string& path);

/// Saves a journal; removes its file if there is nothing to remember. `keep`: keep the file,
/// because more than the engine's files is to be remembered.
base::Status SaveJournal(const std::string& path, const Journal& journal, bool keep = false);

}  // namespace penstock::protocol::engine
