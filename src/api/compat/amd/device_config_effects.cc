// How single fields of a DeviceConfig take effect.
#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "api/cluster/kube_json.h"
#include "api/compat/amd/device_config_fields.h"
#include "base/core/json_text.h"
#include "base/core/strings.h"

namespace penstock::api::compat::internal {

namespace {

using base::Value;
using enum FieldType;
using ListJson = nlohmann::ordered_json;

constexpr std::size_t kMostItems = 10;  // conditions are bounded

/// Adds those that are not yet there.
void AddAll(PenstockSpec& spec, const std::vector<ListJson>& tolerations) {
  ListJson list = ListJson::parse(spec.agent.tolerations.text, nullptr, false);
  if (!list.is_array()) list = ListJson::array();
  std::set<std::string> known;
  for (const ListJson& one : list) known.insert(base::JsonText(one));
  for (const ListJson& one : tolerations)
    if (known.insert(base::JsonText(one)).second) list.push_back(one);
  spec.agent.tolerations.text = base::JsonText(list);
}

/// Without the slashes at its end.
std::string_view Folder(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path;
}

}  // namespace

bool MaySetShared(const PolicyWork& work, bool same, std::string_view setting) {
  if (work.over == nullptr) return true;
  if (work.given && !same)
    work.Answer("", FieldFate::kNotServed,
                "Is one setting for the nodes of all vendors, and the policy of another vendor "
                "that is in force has it otherwise: change it there, or set " +
                    std::string(setting) + " of a Penstock object.");
  return false;
}

void AnswerItems(const PolicyWork& work, const std::vector<std::string>& items, FieldFate fate,
                 const std::string& text) {
  if (items.empty()) return;
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < std::min(items.size(), kMostItems); ++i)
    shown.push_back(ShownText(items[i]));
  const std::size_t more = items.size() - shown.size();
  work.Answer("", fate,
              base::Join(shown, ", ") +
                  (more > 0 ? " and " + std::to_string(more) + " more" : std::string()) + ": " +
                  text);
}

void AddSecretReference(PolicyWork& work, const Value& value) {
  std::string name;
  SetSecretName(work, value, name);
  auto& secrets = work.spec.agent.pull_secrets;
  if (!name.empty() && std::ranges::find(secrets, name) == secrets.end()) secrets.push_back(name);
}

void AddSecretReferences(PolicyWork& work, const Value& value) {
  const std::string list = work.field;
  auto& secrets = work.spec.agent.pull_secrets;
  std::set<std::string> known(secrets.begin(), secrets.end());
  for (std::size_t i = 0; i < value.list->size(); ++i) {
    const Value* given = (*value.list)[i].Find("name");
    std::string name;
    work.field = base::Item(list, i) + ".name";
    if (given == nullptr || given->kind != Value::Kind::kString || given->text.empty())
      work.Problem("is not the name of a Secret");
    else
      SetSecretName(work, *given, name);
    if (!name.empty() && known.insert(name).second) secrets.push_back(name);
  }
}

void AddTolerations(PolicyWork& work, const Value& value) {
  std::vector<ListJson> tolerations;
  for (const Value& item : *value.list) tolerations.push_back(base::JsonOf<ListJson>(item));
  AddAll(work.spec, tolerations);
}

void TolerateRepair(PenstockSpec& spec) {
  AddAll(spec, {{{"key", "amd-gpu-unhealthy"}, {"operator", "Exists"}, {"effect", "NoSchedule"}}});
}

void SetPluginFolder(PolicyWork& work, const Value& value) {
  std::string path;
  SetAbsolutePath(work, value, path);
  path = Folder(path);
  // The definition has this default, which says nothing about the nodes.
  if (path.empty() || path == HostPaths().device_plugins_dir) return;
  std::string& target = work.spec.host.device_plugins_dir;
  if (!MaySetShared(work, path == target, "hostPaths.devicePluginsDir")) return;
  target = path;
  // AMD's exporter is what has the other folder. Without it that is beside this one.
  static constexpr std::string_view kPlugins = "/device-plugins";
  if (!work.On("metricsExporter.enable") && path.ends_with(kPlugins))
    work.spec.host.kubelet_dir = path.substr(0, path.size() - kPlugins.size());
}

void SetResourceFolder(PolicyWork& work, const Value& value) {
  static constexpr std::string_view kFolder = "/pod-resources";
  const HostPaths usual;
  std::string path;
  SetAbsolutePath(work, value, path);
  path = Folder(path);
  if (path.empty() || path == usual.kubelet_dir + std::string(kFolder)) return;  // likewise
  if (!path.ends_with(kFolder) || path.size() == kFolder.size())
    return work.Problem(
        "\"" + ShownText(value.text) + "\" is not below the kubelet's folder: it must end in " +
        std::string(kFolder) + ", such as " + usual.kubelet_dir + std::string(kFolder));
  path.resize(path.size() - kFolder.size());
  std::string& target = work.spec.host.kubelet_dir;
  if (MaySetShared(work, path == target, "hostPaths.kubeletDir")) target = path;
}

bool SelectsOthers(const PolicyWork& work, const Value& value) {
  const Value* whole = work.reading.Find("selector");
  return !value.map->empty() && (whole == nullptr || TextsOf(*whole) != TextsOf(value));
}

SectionFields::SectionFields(std::vector<ResourceField>& fields, std::string section)
    : fields_(fields), at_(section + ".") {
  fields_.push_back({.path = std::move(section), .type = kMap});
}

void SectionFields::Add(ResourceField field) {
  field.path = at_ + field.path;
  fields_.push_back(std::move(field));
}

void SectionFields::AddAnswered(std::vector<ResourceField> more, const FieldTopic& topic) {
  for (ResourceField& field : more) {
    if (field.type != kMap) field.topic = &topic;
    Add(std::move(field));
  }
}

void SectionFields::AddReference(const std::string& map, std::string_view text,
                                 const FieldTopic* topic, ApplyField apply) {
  Add({.path = map, .type = kMap});
  Add({.path = map + ".name", .text = text, .topic = topic, .apply = apply});
}

void SectionFields::AddImage(const std::string& image, const std::string& pull_policy,
                             const FieldTopic& topic) {
  AddAnswered({{.path = image},
               {.path = pull_policy,
                .words = {"Always", "IfNotPresent", "Never"},
                .usual = {"IfNotPresent"}}},
              topic);
}

void SectionFields::AddUpgradePolicy(const FieldTopic& topic) {
  AddAnswered({{.path = "upgradePolicy", .type = kMap},
               {.path = "upgradePolicy.upgradeStrategy",
                .words = {"RollingUpdate", "OnDelete"},
                .usual = {"RollingUpdate"}},
               {.path = "upgradePolicy.maxUnavailable", .type = kInt, .schema_default = "1"}},
              topic);
}

void SectionFields::AddDrain(const std::string& map, bool grace_only, const FieldTopic& topic) {
  std::vector<ResourceField> fields = {
      {.path = map, .type = kMap},
      {.path = map + ".force", .type = kBool, .schema_default = "false"},
      {.path = map + ".timeoutSeconds", .type = kInt, .schema_default = "300", .least = 0},
      {.path = map + ".gracePeriodSeconds", .type = kInt, .schema_default = "-1"}};
  if (!grace_only) {
    fields.push_back({.path = map + ".ignoreDaemonSets", .type = kBool, .schema_default = "true"});
    fields.push_back({.path = map + ".ignoreNamespaces", .type = kTexts});
  }
  AddAnswered(std::move(fields), topic);
}

}  // namespace penstock::api::compat::internal
