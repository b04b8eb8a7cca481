// The parts of DeviceConfig's table, and what they have in common. Private to api/compat.
//
// The facts (names, types, words, defaults) are those of AMD's gpu-operator, api/v1alpha1.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/compat/policy_work.h"

namespace penstock::api::compat::internal {

/// Whether a setting that is one for the nodes of all vendors can be set here: nothing of another
/// vendor is in force. Otherwise it is as the other policy has it, and the field is answered where
/// the object asks for something else. `setting`: of a Penstock object, as the remedy.
bool MaySetShared(const PolicyWork& work, bool same, std::string_view setting);

/// Answers items of a field together, the first of them by name.
void AnswerItems(const PolicyWork& work, const std::vector<std::string>& items, FieldFate fate,
                 const std::string& text);

/// Adds a field below a section: "metricsExporter" and "port".
class SectionFields {
 public:
  SectionFields(std::vector<ResourceField>& fields, std::string section);

  /// `field.path`: below the section.
  void Add(ResourceField field);
  /// All of these, without another effect than the answer of their topic.
  void AddAnswered(std::vector<ResourceField> more, const FieldTopic& topic);
  /// A map with the name of an object: "config" → "config.name".
  void AddReference(const std::string& map, std::string_view text, const FieldTopic* topic,
                    ApplyField apply);
  /// The image of an operand and when it is pulled.
  void AddImage(const std::string& image, const std::string& pull_policy, const FieldTopic& topic);
  /// upgradeStrategy and maxUnavailable of a DaemonSet, which the pods of the agents are not in.
  void AddUpgradePolicy(const FieldTopic& topic);
  /// Which nodes are drained how. `grace_only`: pods are deleted, whatever made them.
  void AddDrain(const std::string& map, bool grace_only, const FieldTopic& topic);

 private:
  std::vector<ResourceField>& fields_;
  std::string at_;
};

/// Adds a Secret for the agent's image.
void AddSecretReference(PolicyWork& work, const base::Value& value);
/// Likewise of a list of references.
void AddSecretReferences(PolicyWork& work, const base::Value& value);
void AddTolerations(PolicyWork& work, const base::Value& value);

/// The kubelet's folder of device plugins, which does not depend on its own.
void SetPluginFolder(PolicyWork& work, const base::Value& value);
/// The kubelet's folder, from that of the socket by which it says which pods have what.
void SetResourceFolder(PolicyWork& work, const base::Value& value);

/// Whether the section asks for other nodes than the whole object does.
bool SelectsOthers(const PolicyWork& work, const base::Value& value);

/// Adds the taint that AMD's operator sets on a node under repair, and which its operands tolerate.
void TolerateRepair(PenstockSpec& spec);

// The sections of the table.
std::vector<ResourceField> PluginSection();    ///< devicePlugin
std::vector<ResourceField> ExporterSection();  ///< metricsExporter
std::vector<ResourceField> ConfigManagerSection();
std::vector<ResourceField> CommonSections();    ///< selector, commonConfig
std::vector<ResourceField> UnservedSections();  ///< driver, draDriver, testRunner, …

/// The object's metrics Service, in front of the agents' page; it is the last one of the spec.
MetricsService& DeviceService(PolicyWork& work);

// Topics that several sections have.
extern const FieldTopic kAgentImage, kOneRollout;

const std::vector<ResourceField>& DeviceConfigFields();

}  // namespace penstock::api::compat::internal
