// The tables of NVIDIA's custom resources, and the fields that most of their operands have. Private
// to api/compat.
//
// The facts (names, types, words, defaults) are those of gpu-operator's api/nvidia.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/compat/resource_fields.h"

namespace penstock::api::compat::internal {

/// The blocks of fields that most operands have.
struct OperandBlock {
  const FieldTopic* topic = nullptr;      ///< of all fields without one of their own
  const FieldTopic* images = nullptr;     ///< repository, image, version, imagePullPolicy
  const FieldTopic* resources = nullptr;  ///< of the container
  const FieldTopic* arguments = nullptr;  ///< args
  const FieldTopic* variables = nullptr;  ///< env; with apply_variables: that none has an effect
  const FieldTopic* network = nullptr;    ///< hostNetwork
  bool short_block = false;               ///< without resources and hostNetwork
  bool only_images = false;               ///< nor args and env
  bool without_arguments = false;
  void (*apply_secrets)(PolicyWork&, const base::Value&) = nullptr;
  void (*apply_arguments)(PolicyWork&, const base::Value&) = nullptr;
  void (*apply_variables)(PolicyWork&, const base::Value&) = nullptr;
  void (*apply_network)(PolicyWork&, const base::Value&) = nullptr;
};
void AddOperand(std::vector<ResourceField>& fields, const std::string& section,
                const OperandBlock& block);

/// The pattern of image names in the definitions.
inline constexpr std::string_view kImagePattern = R"([a-zA-Z0-9\-]+)";

const std::vector<ResourceField>& ClusterPolicyFields();
const std::vector<ResourceField>& NvidiaDriverFields();
const std::vector<ResourceField>& GpuClusterFields();

}  // namespace penstock::api::compat::internal
