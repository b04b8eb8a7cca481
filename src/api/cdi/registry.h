// Merges the specifications of a machine: lists their devices and computes the edits for a request.
// Pure; the caller reads the files.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/cdi/spec.h"

namespace penstock::api::cdi {

/// The folders that engines read, in order of priority, lowest first (pkg/cdi/spec-dirs.go).
inline constexpr const char* kFolders[] = {"/etc/cdi", "/var/run/cdi"};

/// The files that engines read there, and the limit on what Penstock reads of each:
/// os::ReadFolder(folder, kSuffixes, kMaxBytes).
inline constexpr std::string_view kSuffixes[] = {".json", ".yaml"};
inline constexpr std::size_t kMaxBytes = 4u << 20;

/// A file and its text.
struct SpecFile {
  std::string path;
  int priority = 0;                ///< of its folder; higher wins
  base::Result<std::string> text;  ///< or the reason why it could not be read
};

/// Immutable; usable on any thread.
class Registry {
 public:
  explicit Registry(std::vector<SpecFile> files);

  struct Listed {
    std::string name;  ///< qualified
    std::string file;
    bool operator==(const Listed&) const = default;
  };
  /// Returns the devices that can be requested, sorted by name.
  std::vector<Listed> devices() const;

  /// Returns the problems, each as one sentence that names the file and says what to do: files that
  /// are unreadable or not specifications, devices that two files of equal priority define (then
  /// neither counts, nor one of a higher priority: pkg/cdi/cache.go, refresh), and files hidden by
  /// others.
  const std::vector<std::string>& problems() const { return problems_; }

  /// Returns the combined edits of these devices as the engines merge them (pkg/cdi/cache.go,
  /// InjectDevices): the edits of each specification once, before those of its devices. Returns
  /// kNotFound with all missing devices, each with the reason.
  base::Result<CdiEdits> Inject(std::span<const std::string> qualified_names) const;

 private:
  struct Entry {
    std::shared_ptr<const Spec> spec;
    std::size_t device = 0;
    std::string file;
    int priority = 0;
    std::string rival;  ///< another file of the same priority that also defines it; empty: none
  };
  /// The devices of one file that another file hides or conflicts with.
  using Pairs = std::map<std::pair<std::string, std::string>, std::vector<std::string>>;

  void Add(const std::string& file, int priority, const std::shared_ptr<const Spec>& spec,
           Pairs& conflicts, Pairs& hidden);
  std::string WhyNot(const std::string& name) const;

  std::map<std::string, Entry> entries_;
  std::vector<std::string> problems_;
};

}  // namespace penstock::api::cdi
