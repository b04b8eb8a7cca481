#include "api/compat/nvidia/driver_section.h"

#include <algorithm>
#include <array>
#include <utility>

#include <nlohmann/json.hpp>

#include "api/cluster/kube_json.h"
#include "api/cluster/penstock_check.h"
#include "api/compat/nvidia/driver_manager.h"
#include "base/core/json_text.h"
#include "base/core/printable.h"

namespace penstock::api::compat::internal {

namespace {

using base::Value;
using enum FieldType;
using Field = ResourceField;
using Fields = std::vector<ResourceField>;

// Names of objects, and parts of the image's name.

template <std::string DriverFiles::*kFile>
void SetDriverMap(PolicyWork& work, const Value& value) {
  SetMapName(work, value, work.driver.files.*kFile);
}

template <std::string DriverFiles::*kFile>
void SetDriverSecret(PolicyWork& work, const Value& value) {
  SetSecretName(work, value, work.driver.files.*kFile);
}

template <std::string ImageParts::*kPart>
void SetImagePart(PolicyWork& work, const Value& value) {
  if (std::ranges::any_of(value.text, [](unsigned char c) { return std::isgraph(c) == 0; }))
    return work.Problem("\"" + base::Printable(value.text) +
                        "\" cannot be a part of an image's name");
  work.driver.image.*kPart = value.text;
}

void SetPullPolicy(PolicyWork& work, const Value& value) {
  static constexpr std::array<std::string_view, 4> kKnown = {"", "Always", "IfNotPresent", "Never"};
  if (std::ranges::find(kKnown, value.text) != kKnown.end()) {
    work.driver.image.pull_policy = value.text;
  } else {
    work.Answer("", FieldFate::kElsewhere,
                "Is none of Always, IfNotPresent, Never: as in NVIDIA's operator, IfNotPresent is "
                "used.");
  }
}

void AddDriverSecrets(PolicyWork& work, const Value& value) {
  AddSecretNames(work, value, work.driver.image.pull_secrets);
}

// The containers.

/// Each variable once, as Kubernetes requires: the last one counts.
void SetVariables(PolicyWork& work, const Value& value,
                  std::vector<std::pair<std::string, std::string>>& target) {
  for (const Value& item : *value.list) {
    const std::string& name = item.Find("name")->text;
    const Value* given = item.Find("value");
    auto found = std::ranges::find(target, name, [](const auto& one) { return one.first; });
    if (found == target.end()) found = target.insert(found, {name, ""});
    found->second = given != nullptr ? given->text : "";
  }
  api::internal::CheckVariables("", target, [&](std::string_view, const std::string& message) {
    work.Problem(base::Printable(message));
  });
}

void SetManagerVariables(PolicyWork& work, const Value& value) {
  SetVariables(work, value, work.driver.prepare_environment);
  for (const auto& [name, text] : work.driver.prepare_environment)
    for (const DriverManagerEviction& eviction : kDriverManagerEvictions)
      if (name == eviction.name && text != eviction.usual)
        work.Answer(name, FieldFate::kElsewhere,
                    "The init container evicts no pods. The operator does, when a driver is "
                    "replaced: as upgradePolicy.podDeletion and upgradePolicy.drain say.");
}

struct ProbeTime {
  std::string_view name, usual;  ///< and its value in NVIDIA's chart
};
constexpr std::array<ProbeTime, 5> kProbeTimes = {{{"initialDelaySeconds", "60"},
                                                   {"periodSeconds", "10"},
                                                   {"timeoutSeconds", "60"},
                                                   {"failureThreshold", "120"},
                                                   {"successThreshold", "1"}}};
constexpr std::string_view kSuccesses = "successThreshold";

template <KubeJson DriverSpec::*kProbe>
void SetProbe(PolicyWork& work, const Value& value) {
  constexpr bool kStartup = kProbe == &DriverSpec::startup_probe;
  auto times = nlohmann::ordered_json::object();
  bool usual = true;
  for (const ProbeTime& time : kProbeTimes) {
    const Value* given = value.Find(time.name);
    if (given == nullptr || given->kind != Value::Kind::kInt) continue;
    // Kubernetes has no other number of successes for these.
    if (time.name == kSuccesses && kProbe != &DriverSpec::readiness_probe) continue;
    usual &= given->text == time.usual;
    times[std::string(time.name)] = given->integer;
  }
  // With the times of NVIDIA's chart, each node would wait for a minute.
  if (!kStartup || !usual) work.driver.*kProbe = {base::JsonText(times)};
}

template <KubeJson DriverSpec::*kProbe>
void AddProbe(Fields& fields, const std::string& path, std::string_view text) {
  fields.push_back({.path = path, .type = kMap, .apply = SetProbe<kProbe>});
  for (const ProbeTime& time : kProbeTimes) {
    Field field = {.path = path + "." + std::string(time.name),
                   .type = kInt,
                   .text = text,
                   .usual = {time.usual}};
    if (time.name != "initialDelaySeconds") field.least = 1;
    if (time.name == kSuccesses && kProbe != &DriverSpec::readiness_probe) {
      field.text = "Kubernetes has no other value than 1 for this probe.";
      field.topic = &kAloneElsewhere;
    }
    fields.push_back(field);
  }
}

void AddProbes(Fields& fields, const std::string& at) {
  AddProbe<&DriverSpec::startup_probe>(
      fields, at + "startupProbe",
      "Time of the probe that finds the driver loaded. If all times that are set are those of "
      "NVIDIA's chart, it begins at once, every five seconds, for an hour.");
  AddProbe<&DriverSpec::liveness_probe>(fields, at + "livenessProbe",
                                        "Time of a probe with nvidia-smi, which there is only if "
                                        "livenessProbe is set.");
  AddProbe<&DriverSpec::readiness_probe>(fields, at + "readinessProbe",
                                         "Time of a probe with nvidia-smi, which there is only if "
                                         "readinessProbe is set.");
}

void AddKind(Fields& fields, const std::string& at) {
  fields.push_back({.path = at + "usePrecompiled",
                    .type = kBool,
                    .text = "Whether the image has the modules of one kernel: then each kernel of "
                            "the nodes has a DaemonSet and a tag of its own.",
                    .apply = [](PolicyWork& work, const Value& value) {
                      work.driver.precompiled = value.boolean;
                    }});
  fields.push_back(
      {.path = at + "useOpenKernelModules",
       .type = kBool,
       .text = "Has no effect in NVIDIA's operator either: kernelModuleType replaced it.",
       .topic = &kAloneDeprecated});
  fields.push_back({.path = at + "kernelModuleType",
                    .text = "Which kernel modules are loaded; those of precompiled drivers are the "
                            "image's.",
                    .schema_default = "auto",
                    .words = {"auto", "open", "proprietary"},
                    .apply = [](PolicyWork& work, const Value& value) {
                      work.driver.module_type = value.text;
                    }});
}

void AddImage(Fields& fields, const DriverSection& section) {
  const std::string& at = section.at;
  fields.push_back({.path = at + "repository",
                    .text = "Registry and path of the image.",
                    .apply = SetImagePart<&ImageParts::repository>});
  Field image = section.image;
  image.path = at + "image";
  image.text =
      "Name of the image; without repository and version a complete one. No environment "
      "variable of the operator replaces it: without an image, there is no driver.";
  image.apply = SetImagePart<&ImageParts::image>;
  fields.push_back(image);
  fields.push_back({.path = at + "version",
                    .text = "Tag of the image, to which the nodes' operating system is added (and "
                            "with usePrecompiled their kernel), or a digest (sha256:...).",
                    .apply = SetImagePart<&ImageParts::version>});
  fields.push_back({.path = at + "imagePullPolicy",
                    .text = "Of the driver's container; if not set, IfNotPresent.",
                    .usual = {"IfNotPresent"},
                    .apply = SetPullPolicy});
  fields.push_back({.path = at + "imagePullSecrets",
                    .type = kTexts,
                    .text = "Secrets for the driver's image.",
                    .apply = AddDriverSecrets});
}

void AddContainer(Fields& fields, const DriverSection& section) {
  const std::string& at = section.at;
  fields.push_back({.path = at + "env",
                    .type = kEnvironment,
                    .text = "Environment variables of the driver's container.",
                    .apply = [](PolicyWork& work, const Value& value) {
                      SetVariables(work, value, work.driver.environment);
                    }});
  fields.push_back({.path = at + "args",
                    .type = kTexts,
                    .text = section.arguments_text,
                    .apply = section.arguments});
  fields.push_back({.path = at + "resources",
                    .type = kResources,
                    .text = "Requests and limits of each of the driver's containers.",
                    .apply = [](PolicyWork& work, const Value& value) {
                      if (!value.map->empty())
                        work.driver.resources = api::internal::KubeJsonOf(value);
                    }});
  fields.push_back({.path = at + "hostNetwork",
                    .type = kBool,
                    .text = "Whether the driver's pods use the networks of their nodes.",
                    .apply = [](PolicyWork& work, const Value& value) {
                      work.driver.host_network = value.boolean;
                    }});
  fields.push_back({.path = at + "secretEnv",
                    .text = "Secret with environment variables of the driver's container.",
                    .apply = SetDriverSecret<&DriverFiles::variables>});
}

void AddPeerMemory(Fields& fields, const std::string& at) {
  fields.push_back({.path = at + "rdma", .type = kMap});
  fields.push_back({.path = at + "rdma.enabled",
                    .type = kBool,
                    .text = "Whether the module nvidia-peermem is loaded, for RDMA by a network "
                            "card. DMA-BUF needs no module. The validator's file "
                            "nvidia-peermem-ready is not written.",
                    .apply = [](PolicyWork& work, const Value& value) {
                      work.driver.peer_memory = value.boolean;
                    }});
  fields.push_back({.path = at + "rdma.useHostMofed",
                    .type = kBool,
                    .text = "With rdma.enabled: whether the network card's driver is the host's "
                            "own.",
                    .apply = [](PolicyWork& work, const Value& value) {
                      work.driver.host_network_driver = value.boolean && work.driver.peer_memory;
                    }});
}

/// The map around a field, and the field.
void AddInMap(Fields& fields, const std::string& at, Field field) {
  fields.push_back({.path = at + field.path.substr(0, field.path.find('.')), .type = kMap});
  field.path = at + field.path;
  fields.push_back(std::move(field));
}

void AddManager(Fields& fields, const DriverSection& section) {
  const std::string at = section.at + "manager.";
  fields.push_back({.path = section.at + "manager", .type = kMap});
  for (const char* part : {"repository", "image", "version", "imagePullPolicy"}) {
    Field field = {.path = at + part, .text = section.manager->text, .topic = section.manager};
    if (std::string_view(part) == "image") field.pattern = kImagePattern;
    if (std::string_view(part) == "imagePullPolicy") field.usual = {"IfNotPresent"};
    fields.push_back(field);
  }
  fields.push_back({.path = at + "imagePullSecrets",
                    .type = kTexts,
                    .text = "More Secrets for the images of the driver's pods.",
                    .apply = AddDriverSecrets});
  fields.push_back({.path = at + "env",
                    .type = kEnvironment,
                    .text = "Environment variables of the init container, which unloads an earlier "
                            "driver, but for those by which NVIDIA's evicts pods: upgradePolicy "
                            "has the equivalents.",
                    .apply = SetManagerVariables});
}

void AddFiles(Fields& fields, const DriverSection& section) {
  const std::string& at = section.at;
  AddInMap(fields, at,
           {.path = section.repositories,
            .text = "ConfigMap with package repositories; each key becomes a file.",
            .apply = SetDriverMap<&DriverFiles::repositories>});
  AddInMap(fields, at,
           {.path = "certConfig.name",
            .text = "ConfigMap with certificates; each key becomes a file.",
            .apply = SetDriverMap<&DriverFiles::certificates>});
  AddInMap(fields, at,
           {.path = "licensingConfig.secretName",
            .text = "Secret with the license of virtual GPUs.",
            .apply = SetDriverSecret<&DriverFiles::license_secret>});
  fields.push_back({.path = at + section.license_map,
                    .text = "ConfigMap with the license of virtual GPUs, if there is no "
                            "licensingConfig.secretName; deprecated for that.",
                    .apply = SetDriverMap<&DriverFiles::license_map>});
  fields.push_back({.path = at + "licensingConfig.nlsEnabled",
                    .type = kBool,
                    .text = "Whether the license has a token of a license server, too.",
                    .unset = "true",
                    .apply = [](PolicyWork& work, const Value& value) {
                      work.driver.files.license_token = value.boolean;
                    }});
  AddInMap(fields, at,
           {.path = section.topology,
            .text = "ConfigMap with the configuration of the topology daemon.",
            .apply = SetDriverMap<&DriverFiles::topology>});
  AddInMap(fields, at,
           {.path = "kernelModuleConfig.name",
            .text = "ConfigMap with options of kernel modules; each key becomes a file.",
            .apply = SetDriverMap<&DriverFiles::module_options>});
}

}  // namespace

const FieldTopic kStorageModule = {
    "spec.gds.enabled", FieldFate::kNotServed,
    "The module nvidia-fs is not loaded by the driver's pods yet. Where the node has it, "
    "containers get its device files with their GPUs.",
    "gds.enabled"};
const FieldTopic kCopyModule = {
    "spec.gdrcopy.enabled", FieldFate::kNotServed,
    "The module gdrdrv is not loaded by the driver's pods yet. Where the node has it, containers "
    "get its device file with their GPUs.",
    "gdrcopy.enabled"};

void AddDriverArguments(PolicyWork& work, const Value& value) {
  for (const Value& item : *value.list) work.driver.arguments.push_back(item.text);
}

void AddDriverSection(std::vector<ResourceField>& fields, const DriverSection& section) {
  AddKind(fields, section.at);
  AddImage(fields, section);
  AddContainer(fields, section);
  AddPeerMemory(fields, section.at);
  AddProbes(fields, section.at);
  AddUpgradeSection(fields, section.at + "upgradePolicy", section.automatic);
  AddManager(fields, section);
  AddFiles(fields, section);
}

void AddDriverModule(std::vector<ResourceField>& fields, const std::string& module,
                     const FieldTopic& topic, ApplyField apply) {
  fields.push_back({.path = module, .type = kMap});
  fields.push_back({.path = module + ".enabled", .type = kBool, .topic = &topic, .apply = apply});
  AddOperand(fields, module, {.topic = &topic, .short_block = true});
}

}  // namespace penstock::api::compat::internal
