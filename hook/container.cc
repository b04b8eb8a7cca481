// Reads the OCI state and the bundle's config.json. Trusts both, since they come from the engine.
#include "hook/container.h"

#include <fcntl.h>
#include <linux/stat.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/document.h"
#include "os/core/file.h"

namespace penstock::hook {
namespace {

std::string Text(const base::Value& map, std::string_view key) {
  const base::Value* value = map.Find(key);
  return value != nullptr && value->kind == base::Value::Kind::kString ? value->text
                                                                       : std::string();
}

Result<base::Value> ReadMap(std::string_view text, const std::string& name, std::size_t most) {
  ASSIGN(base::Value value, base::ParseJson(text, name, {.bytes = most}));
  if (value.kind != base::Value::Kind::kMap)
    return Error(Code::kInvalidArgument,
                 name + " is " + std::string(base::Describe(value.kind)) + ", not a map");
  return value;
}

Result<base::Value> ReadBundle(const std::string& bundle, std::string_view wanted) {
  const std::string path = bundle + "/config.json";
  auto text = os::ReadFile(path, kMaxBundleBytes);
  if (!text.ok())
    return text.error().Within("cannot determine the container's " + std::string(wanted));
  return ReadMap(*text, path, kMaxBundleBytes);
}

Result<std::string> RootOfBundle(const std::string& bundle) {
  ASSIGN(const base::Value config, ReadBundle(bundle, "root"));
  const base::Value* root = config.Find("root");
  const std::string folder = root == nullptr ? "" : Text(*root, "path");
  if (folder.empty())
    return Error(Code::kInvalidArgument, bundle + "/config.json has no root.path");
  return folder.front() == '/' ? folder : bundle + "/" + folder;
}

Result<base::Value> ParseState(std::string_view state) {
  if (state.empty())
    return Error(Code::kInvalidArgument,
                 "no container state on standard input; this program is started by an OCI runtime "
                 "as a hook");
  return ReadMap(state, "the container's state", kMaxStateBytes);
}

// runc makes each container's root a mount of its own before its hooks run.
bool IsMountPoint(int fd) {
  struct statx status {};
  return ::statx(fd, "", AT_EMPTY_PATH, 0, &status) == 0 &&
         (status.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0 &&
         (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

}  // namespace

Result<std::string> FindRoot(std::string_view state) {
  ASSIGN(const base::Value map, ParseState(state));
  if (std::string root = Text(map, "root"); !root.empty()) return root;
  const std::string bundle = Text(map, "bundle");
  if (bundle.empty())
    return Error(Code::kInvalidArgument, "the container's state names neither a root nor a bundle");
  return RootOfBundle(bundle);
}

Result<std::vector<std::string>> ReadEnvironment(std::string_view state) {
  ASSIGN(const base::Value map, ParseState(state));
  const std::string bundle = Text(map, "bundle");
  if (bundle.empty()) return Error(Code::kInvalidArgument, "the container's state names no bundle");
  ASSIGN(const base::Value config, ReadBundle(bundle, "environment"));
  std::vector<std::string> environment;
  const base::Value* process = config.Find("process");
  const base::Value* list = process != nullptr ? process->Find("env") : nullptr;
  if (list == nullptr || !list->list) return environment;
  for (const base::Value& variable : *list->list)
    if (variable.kind == base::Value::Kind::kString) environment.push_back(variable.text);
  return environment;
}

Result<os::ConfinedTree> OpenRoot(std::string_view state, os::UniqueFd started_in) {
  auto root = FindRoot(state);
  if (root.ok()) {
    if (root->front() != '/')
      return Error(Code::kInvalidArgument,
                   "the container's root \"" + *root + "\" is not an absolute path");
    return os::ConfinedTree::Open(*root);
  }
  if (root.error().code() != Code::kPermissionDenied || !started_in ||
      !IsMountPoint(started_in.get()))
    return root.error();
  return os::ConfinedTree::Take(std::move(started_in), "the container's root");
}

}  // namespace penstock::hook
