// Translates a DeviceConfig by its table.
#include "api/compat/amd/device_config.h"

#include "api/cluster/penstock_check.h"
#include "api/compat/amd/device_config_fields.h"
#include "api/config/node_config_check.h"

namespace penstock::api::compat {

namespace {

using base::Value;
using internal::PolicyWork;
using internal::ResourceField;

constexpr std::string_view kExporterEnabled = "metricsExporter.enable";
constexpr std::string_view kServiceSuffix = "-metrics-exporter";

/// Of a cluster without policies of other vendors.
PenstockSpec StartOfDevices() {
  PenstockSpec spec;
  spec.node.local_allocator = Switch::kOff;
  spec.node.http.listen = ":9400";
  spec.node.cdi.enabled = Switch::kOn;
  return spec;
}

std::string NameIn(const Value& document) {
  const Value* metadata = document.Find("metadata");
  const Value* name = metadata != nullptr ? metadata->Find("name") : nullptr;
  return name != nullptr ? name->text : "";
}

/// The Service that AMD's operator makes, by which monitors of users find it.
void AddDeviceService(PolicyWork& work, const std::string& object) {
  const std::string name = object + std::string(kServiceSuffix);
  if (!api::internal::IsObjectName(name, false) || (name.front() >= '0' && name.front() <= '9'))
    work.problems.Add(
        {}, "metadata.name: \"" + internal::ShownText(object) +
                "\" makes no name of a Service with " + std::string(kServiceSuffix) +
                ": at most 46 lower-case letters, digits and '-', of which the first is a letter; "
                "create the object under another name, or set metricsExporter.enable to false");
  work.spec.services.push_back({.name = name,
                                .port = 5000,
                                .port_name = "exporter-port",
                                .internal_traffic_policy = "Local",
                                .labels = {{"app.kubernetes.io/service", name}},
                                .monitor_labels = {{"app", "amd-device-metrics-exporter"}}});
}

std::vector<std::pair<std::string, Counted>> ComponentsOf(const PolicyWork& work) {
  std::vector<std::pair<std::string, Counted>> components;
  if (work.On("devicePlugin.enableDevicePlugin"))
    components.emplace_back("devicePlugin", Counted::kServing);
  if (work.On("driver.enable")) components.emplace_back("driver", Counted::kDrivers);
  if (work.On(kExporterEnabled)) components.emplace_back("metricsExporter", Counted::kAgents);
  if (work.On("configManager.enable")) components.emplace_back("configManager", Counted::kAgents);
  return components;
}

void CheckSpec(const PenstockSpec& spec, base::Problems& problems) {
  const auto report = [&](std::string_view key, const std::string& message) {
    problems.Add({}, "as a Penstock object, " + std::string(key) + ": " + message);
  };
  api::internal::CheckPenstock(spec, report);
  api::internal::Check(spec.node, report);
}

}  // namespace

base::Result<PolicyTranslation> TranslateDeviceConfig(std::string_view object,
                                                      const PenstockSpec* over) {
  const auto& fields = internal::DeviceConfigFields();
  ASSIGN(auto read,
         internal::ReadResourceObject(object, "amd.com/v1alpha1", "DeviceConfig", fields));
  auto& [document, problems, reading] = read;
  PolicyTranslation translation{.spec = over != nullptr ? *over : StartOfDevices()};
  PolicyWork work{translation.spec, reading, problems, translation.answers, fields};
  work.over = over;
  if (work.On(kExporterEnabled)) AddDeviceService(work, NameIn(document));
  internal::TolerateRepair(translation.spec);
  ApplyFields(work);
  if (problems.empty()) CheckSpec(translation.spec, problems);
  if (!problems.empty()) return problems.ToError();
  translation.components = ComponentsOf(work);
  for (const FieldAnswer& answer : AnswersFor(reading, fields))
    translation.answers.push_back(answer);
  SortAnswers(translation.answers, fields);
  translation.answers.insert(translation.answers.end(), reading.unknown.begin(),
                             reading.unknown.end());
  return translation;
}

namespace internal {

const std::vector<ResourceField>& DeviceConfigFields() {
  static const std::vector<ResourceField> fields = [] {
    std::vector<ResourceField> all;
    for (const auto& section : {CommonSections(), PluginSection(), ExporterSection(),
                                ConfigManagerSection(), UnservedSections()})
      all.insert(all.end(), section.begin(), section.end());
    return all;
  }();
  return fields;
}

}  // namespace internal

}  // namespace penstock::api::compat
