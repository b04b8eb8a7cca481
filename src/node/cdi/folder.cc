// Compares the files with the specifications, so that nothing is written while nothing changes.
#include "node/cdi/folder.h"

#include <algorithm>
#include <cerrno>
#include <map>

#include <unistd.h>

#include "os/core/file.h"

namespace penstock::node::cdi {
namespace {

constexpr std::string_view kOwnPrefix = "penstock-", kKubeletPrefix = "k8s.device-plugin.";
constexpr std::size_t kMaxForeignBytes = 4u << 20;

bool IsSpecFile(std::string_view name) {
  return name.ends_with(".json") || name.ends_with(".yaml");
}

/// Qualified device name → the other program's file that defines it. Files that cannot be read
/// define nothing: `penstock runtime doctor` reports them.
std::map<std::string, std::string> DevicesOfOthers(const std::string& folder,
                                                   const std::vector<std::string>& files,
                                                   const std::set<std::string>& own_names) {
  std::map<std::string, std::string> devices;
  for (const std::string& name : files) {
    if (!IsSpecFile(name) || own_names.contains(name)) continue;
    const std::string path = folder + "/" + name;
    const auto text = os::ReadFile(path, kMaxForeignBytes);
    if (!text.ok()) continue;
    const auto spec = api::cdi::Parse(*text, path);
    if (!spec.ok()) continue;
    for (const api::cdi::Device& device : spec->devices)
      devices.emplace(spec->kind + "=" + device.name, path);
  }
  return devices;
}

const std::string* GivenByOthers(const api::cdi::Spec& spec,
                                 const std::map<std::string, std::string>& others) {
  for (const api::cdi::Device& device : spec.devices)
    if (const auto found = others.find(spec.kind + "=" + device.name); found != others.end())
      return &found->second;
  return nullptr;
}

}  // namespace

std::string KubeletKind(std::string_view kind) {
  return std::string(kKubeletPrefix) + std::string(kind);
}

bool IsKubeletKind(std::string_view kind) { return kind.starts_with(kKubeletPrefix); }

std::string OwnFileName(std::string_view kind) {
  return (IsKubeletKind(kind) ? "" : std::string(kOwnPrefix)) + api::cdi::FileName(kind) + ".json";
}

std::set<std::string> KindsOf(const device::Dialect& dialect) {
  std::set<std::string> kinds{std::string(dialect.cdi_kind())};
  for (const device::CdiClass& one : dialect.CdiClasses()) kinds.insert(one.kind);
  return kinds;
}

std::vector<std::string> OwnFiles(const std::vector<std::string>& files,
                                  const std::set<std::string>& kinds) {
  std::vector<std::string> own;
  for (const std::string& file : files) {
    // A write that was killed leaves the temporary file of os::WriteFileAtomically.
    const bool unfinished = file.starts_with(".");
    const std::string_view name = std::string_view(file).substr(unfinished ? 1 : 0);
    const auto is = [&](const std::string& whole) {
      return unfinished ? name.starts_with(whole + ".") : name == whole;
    };
    const auto is_of = [&](const std::string& kind) { return is(OwnFileName(KubeletKind(kind))); };
    const bool by_prefix = name.starts_with(kOwnPrefix) && (unfinished || IsSpecFile(name));
    if (by_prefix || std::ranges::any_of(kinds, is_of)) own.push_back(file);
  }
  return own;
}

bool IsOfAnotherPlugin(const std::string& folder, const std::string& file,
                       const std::string& hook) {
  if (!file.starts_with(kKubeletPrefix)) return false;
  const std::string text = os::ReadFile(folder + "/" + file).value_or("");
  const auto has = [&text](std::string_view part) { return text.find(part) != std::string::npos; };
  return has("\"hooks\"") && !has("/penstock-hook") && (hook.empty() || !has("\"" + hook + "\""));
}

FolderState Write(const std::string& folder, const std::vector<api::cdi::Spec>& specs,
                  const std::set<std::string>& kinds) {
  FolderState state;
  const auto fail = [&state](const base::Error& error) {
    state.problems.push_back(error.message());
    state.retry = true;
  };
  if (!specs.empty()) {
    if (const auto made = os::MakeDirectories(folder); !made.ok()) {
      fail(made.error());
      return state;
    }
  }
  const auto files = os::ListDirectory(folder);
  if (!files.ok()) {
    if (!specs.empty()) fail(files.error());
    return state;
  }
  const auto own = OwnFiles(*files, kinds);
  const std::set<std::string> own_names(own.begin(), own.end());
  std::set<std::string> wanted;
  const auto others = DevicesOfOthers(folder, *files, own_names);

  for (const api::cdi::Spec& spec : specs) {
    if (const std::string* other = GivenByOthers(spec, others)) {
      state.problems.push_back(
          *other + " also defines devices of " + spec.kind +
          ", and container engines reject a device that two files define: Penstock's file is not "
          "written; remove that file to let Penstock maintain it");
      continue;
    }
    const std::string path = folder + "/" + OwnFileName(spec.kind), text = api::cdi::ToJson(spec);
    wanted.insert(OwnFileName(spec.kind));
    const auto there = os::ReadFile(path);
    if (!there.ok() || *there != text) {
      if (const auto written = os::WriteFileAtomically(path, text); !written.ok()) {
        fail(written.error());
        continue;
      }
    }
    state.kinds.push_back(spec.kind);
  }
  for (const std::string& name : *files) {
    if (!own_names.contains(name) || wanted.contains(name)) continue;
    const std::string path = folder + "/" + name;
    if (::unlink(path.c_str()) != 0 && errno != ENOENT)
      fail(base::ErrnoError(errno, "remove " + path));
  }
  std::ranges::sort(state.kinds);
  return state;
}

}  // namespace penstock::node::cdi
