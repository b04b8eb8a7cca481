// What the specifications on a machine say together: which devices there are, and what asking for some of them gives. Pure; whoever calls
// reads the files.
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

/// Where engines look, in order of priority, lowest first (pkg/cdi/spec-dirs.go).
inline constexpr const char* kFolders[] = {"/etc/cdi", "/var/run/cdi"};

/// What they read there, and how much of it we do: os::ReadFolder(folder, kSuffixes, kMostBytes).
inline constexpr std::string_view kSuffixes[] = {".json", ".yaml"};
inline constexpr std::size_t kMostBytes = 4u << 20;

/// A file as it was found.
struct SpecFile {
  std::string path;
  int priority = 0;                ///< of its folder; higher wins
  base::Result<std::string> text;  ///< or why it could not be read
};

/// On any thread; does not change.
class Registry {
 public:
  explicit Registry(std::vector<SpecFile> files);

  struct Listed {
    std::string name;  ///< qualified
    std::string file;
    bool operator==(const Listed&) const = default;
  };
  /// Devices that can be asked for, sorted by name.
  std::vector<Listed> devices() const;

  /// What is wrong, each one sentence that names the file and what to do: files that cannot be read or are no specification, devices that
  /// two files of equal priority give (then neither counts, nor one of a higher priority: pkg/cdi/cache.go, refresh), files hidden by
  /// others.
  const std::vector<std::string>& problems() const { return problems_; }

  /// The edits of these devices together as the engines join them (pkg/cdi/cache.go, InjectDevices): of each specification once, before
  /// those of its devices. kNotFound names all that are not there, each with why.
  base::Result<Edits> Inject(std::span<const std::string> qualified_names) const;

 private:
  struct Entry {
    std::shared_ptr<const Spec> spec;
    std::size_t device = 0;
    std::string file;
    int priority = 0;
    std::string rival;  ///< another file of the same priority that gives it, too; empty: none
  };
  /// Devices of one file that another one hides, or disputes.
  using Pairs = std::map<std::pair<std::string, std::string>, std::vector<std::string>>;

  void Add(const std::string& file, int priority, const std::shared_ptr<const Spec>& spec, Pairs& conflicts, Pairs& hidden);
  std::string WhyNot(const std::string& name) const;

  std::map<std::string, Entry> entries_;
  std::vector<std::string> problems_;
};

}  // namespace penstock::api::cdi
