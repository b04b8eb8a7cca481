// Reads /etc/ld.so.conf and its includes; never follows a path out of the container's root.
#include "hook/ld_config.h"

#include <algorithm>
#include <set>

#include <fnmatch.h>

#include "base/core/strings.h"

namespace penstock::hook {
namespace {

constexpr std::size_t kMaxFiles = 256;
constexpr std::size_t kMaxPatterns = 1024;  // of includes; each reads a folder
constexpr std::size_t kMaxFolders = 512;
constexpr std::size_t kMaxFileBytes = 64u << 10;
constexpr int kMaxDepth = 8;

struct Line {
  std::vector<std::string> includes;  // patterns
  std::string folder;
};

// Comments begin anywhere in a line, "include" takes several patterns, and a folder may have an
// obsolete suffix for the kind of library: "/lib=libc6".
Line ReadLine(std::string_view text) {
  const std::string_view line = base::Trim(text.substr(0, text.find('#')));
  constexpr std::string_view include = "include";
  if (line.starts_with(include) && line.size() > include.size() &&
      std::isblank(static_cast<unsigned char>(line[include.size()])) != 0) {
    Line read;
    std::string patterns(line.substr(include.size()));
    std::replace(patterns.begin(), patterns.end(), '\t', ' ');
    for (std::string& pattern : base::Split(patterns, ' ')) {
      if (!pattern.empty()) read.includes.push_back(std::move(pattern));
    }
    return read;
  }
  const std::string_view folder = base::Trim(line.substr(0, line.find('=')));
  return {.folder = folder.starts_with('/') ? os::CleanPath(folder) : std::string()};
}

std::vector<Line> ReadLines(const os::ConfinedTree& root, const std::string& file) {
  std::vector<Line> lines;
  const auto text = root.Read(file, kMaxFileBytes);
  if (!text.ok()) return lines;
  for (const std::string& line : base::Split(*text, '\n')) lines.push_back(ReadLine(line));
  return lines;
}

class Reader {
 public:
  explicit Reader(const os::ConfinedTree& root) : root_(root) {}

  void ReadFile(const std::string& file, int depth) {
    if (file == kDriverDropIn || file == kCompatDropIn) return;
    if (depth > kMaxDepth || files_.size() == kMaxFiles || !files_.insert(file).second) return;
    for (const Line& line : ReadLines(root_, file)) {
      for (const std::string& pattern : line.includes) Include(pattern, file, depth);
      if (!line.folder.empty()) Add(line.folder, file);
    }
  }

  void Add(const std::string& folder, const std::string& file) {
    if (folders_.size() < kMaxFolders && known_.insert(folder).second)
      folders_.push_back({folder, file});
  }

  std::vector<LdConfigFolder> Take() { return std::move(folders_); }

 private:
  // Supports wildcards in the last part, where all distributions have them.
  void Include(const std::string& pattern, const std::string& file, int depth) {
    if (patterns_ == kMaxPatterns) return;
    ++patterns_;
    const std::string path =
        pattern.front() == '/' ? pattern : file.substr(0, file.rfind('/') + 1) + pattern;
    const auto slash = path.rfind('/');
    const std::string folder = os::CleanPath(path.substr(0, slash));
    const std::string names = path.substr(slash + 1);
    const auto entries = root_.List(folder, kMaxFiles);
    if (!entries.ok()) return;
    for (const os::TreeEntry& entry : *entries) {
      if (::fnmatch(names.c_str(), entry.name.c_str(), FNM_PERIOD) == 0)
        ReadFile(os::CleanPath(folder + "/" + entry.name), depth + 1);
    }
  }

  const os::ConfinedTree& root_;
  std::size_t patterns_ = 0;
  std::set<std::string> files_;
  std::set<std::string> known_;
  std::vector<LdConfigFolder> folders_;
};

// The folders that ldconfig searches by default (glibc, elf/ldconfig.c); Debian and its derivatives
// have their own.
std::vector<std::string> DefaultFolders(const os::ConfinedTree& root) {
#if defined(__aarch64__)
  const std::string triplet = "aarch64-linux-gnu";
#else
  const std::string triplet = "x86_64-linux-gnu";
#endif
  if (root.Exists("/etc/debian_version"))
    return {"/lib/" + triplet, "/usr/lib/" + triplet, "/lib", "/usr/lib"};
  return {"/lib", "/usr/lib", "/lib64", "/usr/lib64"};
}

}  // namespace

std::vector<LdConfigFolder> ReadLdConfig(const os::ConfinedTree& root) {
  Reader reader(root);
  reader.ReadFile(kLdConfig, 0);
  for (const std::string& folder : DefaultFolders(root)) reader.Add(folder, "");
  return reader.Take();
}

std::vector<std::string> ReadFolders(const os::ConfinedTree& root, const std::string& file) {
  std::vector<std::string> folders;
  for (Line& line : ReadLines(root, file)) {
    if (!line.folder.empty() && folders.size() < kMaxFolders)
      folders.push_back(std::move(line.folder));
  }
  return folders;
}

std::string WriteFolders(const std::vector<std::string>& folders) {
  std::string text = "# Written by penstock-hook when the container was created.\n";
  for (const std::string& folder : folders) {
    text += folder;
    if (base::Trim(folder).size() < folder.size())
      text += '/';  // ldconfig strips blanks at the end of a line
    text += '\n';
  }
  return text;
}

}  // namespace penstock::hook
