// The fields by which ClusterPolicy and NVIDIADriver describe a driver's container, and their
// effects on PolicyWork::driver. Private to api/compat.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/compat/nvidia/cluster_policy_fields.h"

namespace penstock::api::compat::internal {

/// In what the two resources differ.
struct DriverSection {
  std::string at;                       ///< "driver.", or "" at the top of the spec
  ResourceField image;                  ///< its pattern, or its default
  std::string repositories;             ///< below `at`: "repoConfig.configMapName"
  std::string license_map;              ///< "licensingConfig.configMapName"
  std::string topology;                 ///< "virtualTopology.config"
  std::string_view automatic;           ///< the definition's default of autoUpgrade
  ApplyField arguments = nullptr;       ///< the effect of args
  std::string_view arguments_text;      ///< and what it is
  const FieldTopic* manager = nullptr;  ///< of the init container's image
};

/// All fields that both have.
void AddDriverSection(std::vector<ResourceField>& fields, const DriverSection& section);

/// Those of the upgrade policy alone. `automatic`: the default of autoUpgrade.
void AddUpgradeSection(std::vector<ResourceField>& fields, const std::string& at,
                       std::string_view automatic);

/// The fields of `module`, "gds" or "gdrcopy", of which nothing takes effect but `apply`.
void AddDriverModule(std::vector<ResourceField>& fields, const std::string& module,
                     const FieldTopic& topic, ApplyField apply);
extern const FieldTopic kStorageModule, kCopyModule;

/// Arguments after the ones with which the container starts here.
void AddDriverArguments(PolicyWork& work, const base::Value& value);

}  // namespace penstock::api::compat::internal
