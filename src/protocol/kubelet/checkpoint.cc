// Strict about types and lenient about keys, since the file is the kubelet's.
#include "protocol/kubelet/checkpoint.h"

#include <algorithm>
#include <utility>

#include "base/core/document.h"
#include "os/core/file.h"

namespace penstock::protocol::kubelet {
namespace {

using base::Value;

// More than a node full of slots needs: 5,000 entries with their answers are about 3 MiB.
constexpr std::size_t kMaxBytes = 32u << 20;

bool IsNull(const Value* value) { return value == nullptr || value->kind == Value::Kind::kNull; }

/// Appends the strings of a list; null is Go's empty list.
void AppendStrings(const Value* list, const std::string& what, base::Problems& problems,
                   std::vector<std::string>& strings) {
  if (IsNull(list)) return;
  if (list->kind != Value::Kind::kList) {
    return problems.Add(
        list->mark, what + " must be a list of strings, not " + std::string(Describe(list->kind)));
  }
  for (const Value& item : *list->list) {
    if (item.kind != Value::Kind::kString) {
      problems.Add(item.mark,
                   what + " must have strings only, not " + std::string(Describe(item.kind)));
    } else {
      strings.push_back(item.text);
    }
  }
}

std::string ReadString(const Value& entry, std::string_view key, base::Problems& problems) {
  const Value* value = entry.Find(key);
  if (value == nullptr) {
    problems.Add(entry.mark, std::string(key) + " is missing");
  } else if (value->kind != Value::Kind::kString) {
    problems.Add(value->mark,
                 std::string(key) + " must be a string, not " + std::string(Describe(value->kind)));
  } else {
    return value->text;
  }
  return {};
}

std::vector<std::string> ReadIds(const Value& entry, base::Problems& problems) {
  std::vector<std::string> ids;
  const Value* value = entry.Find("DeviceIDs");
  if (!IsNull(value) && value->kind == Value::Kind::kMap) {
    for (const auto& node : *value->map)
      AppendStrings(&node.value, "DeviceIDs." + node.key, problems, ids);
  } else {
    AppendStrings(value, "DeviceIDs", problems, ids);
  }
  std::ranges::sort(ids);
  return ids;
}

void ReadEntries(const Value* list, base::Problems& problems,
                 std::vector<CheckpointEntry>& entries) {
  if (IsNull(list)) return;
  if (list->kind != Value::Kind::kList) {
    return problems.Add(list->mark, "Data.PodDeviceEntries must be a list, not " +
                                        std::string(Describe(list->kind)));
  }
  for (const Value& item : *list->list) {
    if (item.kind != Value::Kind::kMap) {
      problems.Add(item.mark, "an entry of Data.PodDeviceEntries must be a map, not " +
                                  std::string(Describe(item.kind)));
      continue;
    }
    CheckpointEntry entry;
    entry.pod_uid = ReadString(item, "PodUID", problems);
    entry.container = ReadString(item, "ContainerName", problems);
    entry.resource = ReadString(item, "ResourceName", problems);
    entry.ids = ReadIds(item, problems);
    entries.push_back(std::move(entry));
  }
}

void ReadRegistered(const Value* map, base::Problems& problems,
                    std::map<std::string, std::vector<std::string>>& registered) {
  if (IsNull(map)) return;
  if (map->kind != Value::Kind::kMap) {
    return problems.Add(
        map->mark, "Data.RegisteredDevices must be a map, not " + std::string(Describe(map->kind)));
  }
  for (const auto& [resource, mark, ids] : *map->map) {
    auto& strings = registered[resource];
    AppendStrings(&ids, "Data.RegisteredDevices." + resource, problems, strings);
    std::ranges::sort(strings);
  }
}

}  // namespace

base::Result<Checkpoint> ParseCheckpoint(std::string_view text, std::string_view file) {
  base::ParseLimits limits;
  limits.bytes = kMaxBytes;
  limits.depth = 16;
  ASSIGN(const Value document, base::ParseJson(text, file, limits));

  base::Problems problems{std::string(file)};
  Checkpoint checkpoint;
  const Value* data = document.Find("Data");
  if (data == nullptr || data->kind != Value::Kind::kMap) {
    problems.Add(data != nullptr ? data->mark : document.mark,
                 "Data must be a map: this is not a checkpoint of the kubelet's device manager");
    return problems.ToError();
  }
  ReadEntries(data->Find("PodDeviceEntries"), problems, checkpoint.entries);
  ReadRegistered(data->Find("RegisteredDevices"), problems, checkpoint.registered);
  if (!problems.empty()) return problems.ToError();
  return checkpoint;
}

base::Result<Checkpoint> ReadCheckpoint(const std::string& kubelet_dir) {
  const std::string path = kubelet_dir + "/device-plugins/kubelet_internal_checkpoint";
  ASSIGN(const std::string text, os::ReadFile(path, kMaxBytes));
  return ParseCheckpoint(text, path);
}

}  // namespace penstock::protocol::kubelet
