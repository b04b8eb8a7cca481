// Converts a NodeConfig from and to its document. Reads no file: the caller passes the text.
#include "api/config/node_config.h"

#include <algorithm>
#include <set>

#include "api/config/node_config_check.h"
#include "api/config/node_config_keys.h"
#include "base/core/document.h"
#include "base/core/strings.h"
#include "base/yaml.h"

namespace penstock::api {

namespace {

using base::MapReader;
using base::Mark;
using base::Problems;
using base::Value;

constexpr std::string_view kApiVersion = "penstock.io/v1alpha1";
constexpr std::string_view kKind = "NodeConfig";

void ReadHeader(MapReader& top) {
  for (const auto& [key, wanted] :
       {std::pair("apiVersion", kApiVersion), std::pair("kind", kKind)}) {
    const auto text = top.String(key);
    if (!top.Has(key)) {
      top.Problem(key, "is missing; write " + std::string(key) + ": " + std::string(wanted));
    } else if (text && *text != wanted) {
      top.Problem(key, "is \"" + *text + "\"; this program reads \"" + std::string(wanted) + "\"");
    }
  }
}

/// The name of the section `allocators` in this document; in 0.1.0 `doors`, with the key `door` in
/// its rules.
std::string AllocatorsKey(MapReader& top, Problems& problems) {
  if (!top.Has("doors")) return "allocators";
  if (top.Has("allocators")) {
    (void)top.Any("doors");
    top.Problem("doors", "is the deprecated name of allocators, which is there too; merge the two");
    return "allocators";
  }
  problems.Remark(top.mark("doors"),
                  "doors: deprecated; use allocators, and in its rules allocator instead of door");
  return "doors";
}

/// Whether the document has a value at a dotted path.
bool HasPath(const Value& document, std::string_view path) {
  const Value* at = &document;
  for (const std::string& step : base::Split(path, '.'))
    if (at != nullptr) at = at->Find(step);
  return at != nullptr;
}

/// Returns the path of a key as the document has it.
std::string AsWritten(std::string_view path, const Value& document, const ConfigTerms& terms) {
  std::string written(path);
  for (const FormerKey& former : terms.former_keys)
    if (path == former.now && !HasPath(document, path) && HasPath(document, former.path))
      return std::string(former.path);
  if (!path.starts_with("allocators.") || document.Find("doors") == nullptr) return written;
  written.replace(0, path.find('.'), "doors");
  constexpr std::string_view kRule = "].allocator";
  if (path.ends_with(kRule)) written.replace(written.size() - kRule.size(), kRule.size(), "].door");
  return written;
}

/// Reads a document's keys, under their former names, too.
class KeysReader {
 public:
  KeysReader(const Value& document, Problems& problems, const ConfigTerms& terms,
             NodeConfig& config)
      : document_(document), problems_(problems), terms_(terms), config_(config) {
    for (const internal::ConfigKey& key : internal::ConfigKeys())
      names_.push_back({.path = key.path, .key = &key});
    for (const FormerKey& former : terms.former_keys)
      for (const internal::ConfigKey& key : internal::ConfigKeys())
        if (key.path == former.now ||
            (key.read_of_vendor && former.now.starts_with(key.path + ".")))
          names_.push_back({.path = std::string(former.path), .key = &key, .former = &former});
  }

  /// Reads the keys whose paths begin with `prefix` ("cluster.", "") from the map at that path.
  void Read(MapReader& reader, const std::string& prefix) {
    static const Value kNothing;
    std::set<std::string> done;
    for (const Name& one : names_) {
      if (!one.path.starts_with(prefix)) continue;
      const std::string rest = one.path.substr(prefix.size());
      const std::string name = rest.substr(0, rest.find('.'));
      if (!done.insert(name).second) continue;
      if (name == rest) {
        ReadKey(reader, name, one);
      } else {
        const std::string written =
            prefix.empty() && name == "allocators" ? AllocatorsKey(reader, problems_) : name;
        const Value* map = reader.Map(written);
        MapReader below(map != nullptr ? *map : kNothing, reader.Path(written), problems_);
        Read(below, prefix + name + ".");
      }
    }
    reader.Finish();
  }

 private:
  /// A key under one of its names.
  struct Name {
    std::string path;
    const internal::ConfigKey* key;
    const FormerKey* former = nullptr;
  };

  void ReadKey(MapReader& reader, const std::string& leaf, const Name& name) {
    if (name.former == nullptr) return name.key->read(reader, leaf, problems_, terms_, config_);
    (void)reader.Any(leaf);  // it is known, also where it is absent
    if (!reader.Has(leaf)) return;
    const std::string now(name.former->now);
    if (HasPath(document_, now)) {
      reader.Problem(
          leaf, "is the deprecated name of " + now + ", which is there too; remove one of the two");
      return;
    }
    problems_.Remark(reader.mark(leaf), reader.Path(leaf) + ": deprecated; use " + now);
    if (now == name.key->path) {
      name.key->read(reader, leaf, problems_, terms_, config_);
    } else {
      name.key->read_of_vendor(reader, leaf, name.former->vendor, config_);
    }
  }

  const Value& document_;
  Problems& problems_;
  const ConfigTerms& terms_;
  NodeConfig& config_;
  std::vector<Name> names_;
};

/// Writes the chosen keys.
std::string KeysAsYaml(const NodeConfig& config,
                       const std::function<bool(const internal::ConfigKey&)>& chosen) {
  std::string text;
  std::vector<std::string> open;  // the maps that contain the last key
  for (const internal::ConfigKey& key : internal::ConfigKeys()) {
    if (!chosen(key)) continue;
    const std::vector<std::string> steps = base::Split(key.path, '.');
    bool same = true;
    for (std::size_t depth = 0; depth < steps.size(); ++depth) {
      const bool leaf = depth + 1 == steps.size();
      same = same && depth < open.size() && open[depth] == steps[depth];
      if (leaf || !same)
        text += std::string(2 * depth, ' ') + steps[depth] + ":" + (leaf ? key.text(config) : "\n");
    }
    open.assign(steps.begin(), steps.end() - 1);
  }
  return text;
}

}  // namespace

namespace internal {

Mark MarkOf(const Value& document, std::string_view path) {
  const Value* at = &document;
  for (const std::string& step : base::Split(path, '.')) {
    const auto bracket = step.find('[');
    const Value* next = at->Find(step.substr(0, bracket));
    if (next != nullptr && bracket != std::string::npos) {
      const auto index =
          base::ParseUint(std::string_view(step).substr(bracket + 1, step.size() - bracket - 2));
      next = next->list && index && *index < next->list->size() ? &(*next->list)[*index] : nullptr;
    }
    if (next == nullptr) break;
    at = next;
  }
  return at->mark;
}

void ReadConfig(MapReader& reader, const Value& document, Problems& problems,
                const ConfigTerms& terms, NodeConfig& config) {
  KeysReader(document, problems, terms, config).Read(reader, "");
  Check(config, [&](std::string_view key, const std::string& message) {
    const std::string written = AsWritten(key, document, terms);
    problems.Add(MarkOf(document, written), reader.Path(written) + ": " + message);
  });
}

std::string DifferenceAsYaml(const NodeConfig& config, const NodeConfig& from) {
  return KeysAsYaml(config,
                    [&](const ConfigKey& key) { return key.text(config) != key.text(from); });
}

}  // namespace internal

const std::vector<PathOption>& PathOptions() {
  static const std::vector<PathOption> options = {
      {"--driver-root", "driverRoot", &PathsConfig::driver_root,
       "root of the file system that contains the vendor's driver"},
      {"--sysfs-root", "sysfsRoot", &PathsConfig::sysfs_root, "used instead of /sys"},
      {"--dev-root", "devRoot", &PathsConfig::dev_root,
       "folder that contains dev/, or a /dev itself; default: the driver root"},
      {"--proc-root", "procRoot", &PathsConfig::proc_root, "used instead of /proc"},
      {"--os-release", "osRelease", &PathsConfig::os_release,
       "the machine's os-release, for labels"},
      {"--cdi-root", "cdiRoot", &PathsConfig::cdi_root, "folder of CDI specifications"},
      {"--kubelet-dir", "kubeletDir", &PathsConfig::kubelet_dir, "the kubelet's folder"},
      {"--state-dir", "stateDir", &PathsConfig::state_dir,
       "files that must survive a restart of the agent: checkpoint, log"},
      {"--run-dir", "runDir", &PathsConfig::run_dir, "sockets and lock of the running agent"},
      {"--host-driver-root", "hostDriverRoot", &PathsConfig::host_driver_root,
       "path of the driver root on the host, if it differs (in a container)"},
      {"--host-dev-root", "hostDevRoot", &PathsConfig::host_dev_root,
       "path of the dev root on the host: where containers look for device files"},
      {"--driver-container-root", "driverContainerRoot", &PathsConfig::driver_container_root,
       "folder below the driver root: a driver container's root there takes precedence"},
  };
  return options;
}

base::Result<NodeConfig> ParseNodeConfig(std::string_view text, std::string_view file,
                                         const ConfigTerms& terms,
                                         std::vector<std::string>* remarks) {
  ASSIGN(const Value document, base::ParseYaml(text, file));
  Problems problems{std::string(file)};
  NodeConfig config;
  MapReader top(document, "", problems);
  ReadHeader(top);
  internal::ReadConfig(top, document, problems, terms, config);
  if (!problems.empty()) return problems.ToError();
  if (remarks != nullptr) *remarks = problems.Remarks();
  return config;
}

namespace {

std::string Header() {
  return "apiVersion: " + std::string(kApiVersion) + "\nkind: " + std::string(kKind) + "\n";
}

}  // namespace

std::string ToYaml(const NodeConfig& config) {
  return Header() + KeysAsYaml(config, [](const internal::ConfigKey&) { return true; });
}

std::string ToShortYaml(const NodeConfig& config) {
  return Header() + internal::DifferenceAsYaml(config, {});
}

}  // namespace penstock::api
