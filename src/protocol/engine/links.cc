#include "protocol/engine/links.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/core/strings.h"
#include "os/core/file.h"
#include "os/kept_file.h"

namespace penstock::protocol::engine {
namespace {

constexpr int kLinksVersion = 1;
/// dockerd gives `--gpus` to AMD's driver if this is on its PATH and NVIDIA's hook is not.
constexpr char kAmdRuntime[] = "amd-container-runtime";

bool Contains(const std::vector<GpusLink>& links, const GpusLink& link) {
  return std::ranges::find(links, link) != links.end();
}

bool IsOwn(const std::vector<GpusLink>& own, const std::string& path,
           const LinkOccupant& occupant) {
  return occupant.target && Contains(own, {path, *occupant.target});
}

}  // namespace

std::vector<std::string_view> LinkNames(int major, int minor) {
  if (major > 29 || (major == 29 && minor >= 2)) return {kCdiHook};
  return {kRuntimeHook, kCdiHook};
}

LinkPlan PlanLinks(const DesiredLinks& desired, const std::vector<std::string_view>& names,
                   const std::vector<std::string>& path, const std::vector<GpusLink>& own,
                   const std::function<LinkOccupant(const std::string&)>& inspect) {
  LinkPlan plan;
  std::vector<std::string> folders = path;
  if (folders.empty()) {
    folders = UsualPath();
    folders.insert(folders.begin(), desired.folder);
  }
  const auto unset = [&plan](const std::string& why) {
    plan.remarks.push_back("`docker run --gpus` was not set up: " + why);
    return std::move(plan);
  };
  if (std::ranges::find(folders, desired.folder) == folders.end())
    return unset(desired.folder + " is not on dockerd's PATH (" + base::Join(folders, ":") +
                 "); pass one of these folders with --gpus-links");
  if (!inspect(desired.program).there)
    return unset(desired.program + " does not exist; pass --nvidia-runtime-hook-path");
  for (const std::string& folder : folders)
    if (const std::string amd = folder + "/" + kAmdRuntime; inspect(amd).there)
      return unset(amd + " exists, and docker uses AMD's devices for `--gpus`");
  for (const std::string_view name : names) {
    std::string others;
    for (const std::string& folder : folders) {
      const std::string at = folder + "/" + std::string(name);
      const LinkOccupant occupant = inspect(at);
      if (others.empty() && occupant.there && !IsOwn(own, at, occupant)) others = at;
    }
    if (others.empty())
      plan.wanted.push_back({desired.folder + "/" + std::string(name), desired.program});
    else
      plan.remarks.push_back(others + " already exists and is kept: `docker run --gpus` uses it");
  }
  return plan;
}

Status MoveLinks(const ConfigFiles& files, const std::vector<GpusLink>& from,
                 const std::vector<GpusLink>& to) {
  for (const GpusLink& link : from)
    if (!Contains(to, link)) TRY(files.RemoveLink(link.path, link.target));
  for (const GpusLink& link : to)
    if (files.LinkTarget(link.path) != link.target) TRY(files.MakeLink(link.path, link.target));
  return {};
}

std::vector<std::string> SearchPath(const std::string& proc_root, pid_t pid) {
  std::vector<std::string> folders;
  if (pid <= 1) return folders;  // systemd listens for it
  const auto environment = os::ReadFile(proc_root + "/" + std::to_string(pid) + "/environ");
  for (const std::string& variable : base::Split(environment.value_or(""), '\0'))
    if (variable.starts_with("PATH="))
      for (std::string& folder : base::Split(std::string_view(variable).substr(5), ':'))
        if (folder.starts_with('/')) folders.push_back(std::move(folder));
  return folders;
}

const std::vector<std::string>& UsualPath() {
  static const std::vector<std::string> folders = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
                                                   "/usr/bin",        "/sbin",          "/bin"};
  return folders;
}

std::string LinksPath(const std::string& journal_path) {
  return journal_path.substr(0, journal_path.rfind('.')) + ".links";
}

template <typename Visit, base::Of<GpusLink> T>
static void VisitFields(Visit& visit, T& link) {
  visit("path", link.path);
  visit("target", link.target);
}

base::Result<std::vector<GpusLink>> LoadLinks(const std::string& path) {
  const auto text = os::ReadFile(path);
  std::vector<GpusLink> links;
  if (!text.ok() && text.error().code() == Code::kNotFound) return links;
  if (!text.ok()) return text.error();
  const Status read = os::DecodeKept(
      kLinksVersion, *text, path, [&links](base::StructReader& reader) { reader("links", links); });
  if (read.ok()) return links;
  if (read.error().code() != Code::kDataLoss) return read.error();
  return Error(Code::kDataLoss, "Penstock's record of its links is damaged (" +
                                    read.error().message() +
                                    "): remove the links to penstock-hook manually, and that file");
}

Status SaveLinks(const std::string& path, const std::vector<GpusLink>& links) {
  if (links.empty()) {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT)
      return base::ErrnoError(errno, "remove " + path);
    return {};
  }
  const auto text = os::EncodeKept<nlohmann::json>(
      kLinksVersion, [&links](auto& write) { write("links", links); });
  return os::WriteFileAtomically(path, text, 0600);
}

}  // namespace penstock::protocol::engine
