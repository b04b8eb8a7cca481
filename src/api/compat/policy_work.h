// A translation of a vendor's resource in progress, and the functions by which single fields take
// effect. Private to api/compat.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/compat/nvidia/device_plugin.h"
#include "api/compat/resource_fields.h"

namespace penstock::api::compat::internal {

/// A translation in progress.
struct PolicyWork {
  PenstockSpec& spec;  ///< nothing comes into it from an NVIDIADriver
  const ResourceReading& reading;
  base::Problems& problems;
  std::vector<FieldAnswer>& answers;
  std::span<const ResourceField> fields;
  /// Where the fields are that have no effect in this object: "driver."; empty: none.
  std::string_view without = {};
  /// What policies of other vendors ask for, over which the object is read; null: there are none.
  const PenstockSpec* over = nullptr;
  std::string field = {};  ///< whose value is applied: "spec.devicePlugin.env"
  bool given = false;      ///< the object sets it; else the value is its default

  // What only NVIDIA's resources have.
  DriverSpec driver = {};  ///< a ClusterPolicy's only, or the NVIDIADriver's
  /// Settings of the programs that the operands run, in the order of their precedence.
  std::vector<Given> labels, plugin, exporter;
  std::string runtime_class = {};

  bool On(std::string_view path) const;
  void Problem(const std::string& message) const;
  void Answer(std::string_view item, FieldFate fate, std::string_view text) const;
};

using ApplyField = void (*)(PolicyWork& work, const base::Value& value);

/// Applies the fields that are set, and the defaults of the definition in maps that are set.
void ApplyFields(PolicyWork& work);

/// The entries of a map of strings.
std::map<std::string, std::string> TextsOf(const base::Value& value);

void SetAbsolutePath(PolicyWork& work, const base::Value& value, std::string& target);
void SetMapName(PolicyWork& work, const base::Value& value, std::string& target);
void SetSecretName(PolicyWork& work, const base::Value& value, std::string& target);
/// Adds the names that are not yet there.
void AddSecretNames(PolicyWork& work, const base::Value& value, std::vector<std::string>& target);
/// Adds labels that Kubernetes accepts.
void TakeLabels(PolicyWork& work, const base::Value& value,
                std::map<std::string, std::string>& target);
void SetPriorityName(PolicyWork& work, const base::Value& value, std::string& target);

}  // namespace penstock::api::compat::internal
