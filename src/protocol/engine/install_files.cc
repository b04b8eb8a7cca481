#include "protocol/engine/install_files.h"

#include <cerrno>

#include <unistd.h>

#include "base/core/strings.h"
#include "os/core/file.h"

namespace penstock::protocol::engine {
namespace {

base::Result<SourceFile> ReadSource(const ConfigFiles& files, const std::string& path, Disk& disk) {
  SourceFile file{.path = path};
  if (path.empty()) return file;
  ASSIGN(file.text, files.Read(path));
  disk[path] = file.text;
  return file;
}

/// containerd also reads the imports of imported files, so this visits every file that it finds.
base::Result<std::vector<SourceFile>> ReadImports(const ConfigFiles& files, const SourceFile& main,
                                                  Disk& disk) {
  constexpr std::size_t kMaxFiles = 200;
  std::vector<SourceFile> imported;
  std::vector<SourceFile> pending = {main};
  while (!pending.empty()) {
    const SourceFile file = pending.front();
    pending.erase(pending.begin());
    if (!file.text) continue;
    ASSIGN(const base::Value document, Read(FileFormat::kToml, *file.text, file.path));
    const base::Value* imports = document.Find("imports");
    if (imports == nullptr || !imports->list) continue;
    for (const base::Value& pattern : *imports->list) {
      const std::string path = pattern.text.starts_with('/')
                                   ? pattern.text
                                   : base::FolderOf(file.path) + "/" + pattern.text;
      for (const std::string& match : files.Match(path)) {
        if (disk.contains(match)) continue;
        if (imported.size() == kMaxFiles)
          return Error(Code::kResourceExhausted, main.path + " imports more than 200 files");
        ASSIGN(SourceFile source, ReadSource(files, match, disk));
        imported.push_back(source);
        pending.push_back(std::move(source));
      }
    }
  }
  return imported;
}

/// k3s and RKE2 with containerd 2 prefer the template of version 3; without it, a user's template
/// of version 2 applies.
base::Result<SourceFile> ReadTemplate(const EngineInstall& install, const ConfigFiles& files,
                                      int major, Disk& disk) {
  ASSIGN(SourceFile older, ReadSource(files, install.template_file, disk));
  if (install.style != ConfigStyle::kTemplated || major < 2) return older;
  ASSIGN(SourceFile newer,
         ReadSource(files, base::FolderOf(install.template_file) + "/config-v3.toml.tmpl", disk));
  return newer.text || !older.text ? newer : older;
}

}  // namespace

base::Result<Gathered> Gather(const EngineInstall& install, const ConfigFiles& files,
                              const SettingRecord& record, int major) {
  Gathered gathered;
  EngineFacts& facts = gathered.facts;
  facts.engine = install.engine;
  facts.style = install.style;
  facts.name = install.name;
  ASSIGN(facts.main, ReadSource(files, install.config, gathered.disk));
  if (install.engine == Engine::kContainerd) {
    ASSIGN(facts.imported, ReadImports(files, facts.main, gathered.disk));
  }
  ASSIGN(facts.drop_in, ReadSource(files, install.drop_in, gathered.disk));
  ASSIGN(facts.template_file, ReadTemplate(install, files, major, gathered.disk));
  for (const Target& file : record.files) {
    ASSIGN(gathered.disk[file.path], files.Read(file.path));
  }
  return gathered;
}

Status WriteAll(const ConfigFiles& files, const std::vector<FileChange>& changes) {
  for (const FileChange& change : changes)
    TRY(change.to ? files.Write(change.path, *change.to) : files.Remove(change.path));
  return {};
}

Status PutBack(const ConfigFiles& files, const std::vector<FileChange>& changes,
               std::vector<std::string>& others) {
  Status first;
  const auto note = [&first](const Status& status) {
    if (first.ok()) first = status;
  };
  for (auto change = changes.rbegin(); change != changes.rend(); ++change) {
    const auto now = files.Read(change->path);
    if (!now.ok()) {
      note(now.error());
    } else if (*now == change->to) {
      note(change->from ? files.Write(change->path, *change->from) : files.Remove(change->path));
    } else if (*now != change->from) {
      others.push_back(change->path +
                       " was changed by another process meanwhile and is left as it is");
    }
  }
  return first;
}

base::Result<Journal> LoadJournal(const std::string& path) {
  const auto text = os::ReadFile(path, 64u << 20);
  if (!text.ok() && text.error().code() == Code::kNotFound) return Journal{};
  if (!text.ok()) return text.error();
  auto journal = DecodeJournal(*text, path);
  if (journal.ok() || journal.error().code() == Code::kFailedPrecondition) return journal;
  return Error(Code::kDataLoss, "Penstock's record of this engine is damaged (" +
                                    journal.error().message() +
                                    "): undo its lines manually and remove that file");
}

Status SaveJournal(const std::string& path, const Journal& journal, bool keep) {
  if (journal.phase == Phase::kDone && journal.record.files.empty() && !keep) {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT)
      return base::ErrnoError(errno, "remove " + path);
    return {};
  }
  TRY(os::MakeDirectories(base::FolderOf(path), 0700));
  return os::WriteFileAtomically(path, Encode(journal), 0600);
}

}  // namespace penstock::protocol::engine
