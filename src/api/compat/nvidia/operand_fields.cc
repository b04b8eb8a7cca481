#include "api/compat/nvidia/operand_fields.h"

namespace penstock::api::compat::internal {

using enum FieldType;

namespace {

std::string_view TextOfVariables(const OperandBlock& block) {
  if (block.apply_variables == nullptr) return "";
  if (block.variables != nullptr)
    return "None of the operand's variables has an effect here; each is answered, with what there "
           "is instead.";
  return "The operand's variables, with the effect that they have there; each that has none is "
         "answered.";
}

}  // namespace

void AddOperand(std::vector<ResourceField>& fields, const std::string& section,
                const OperandBlock& block) {
  const auto topic = [&](const FieldTopic* own) { return own != nullptr ? own : block.topic; };
  const std::string at = section + ".";
  const FieldTopic* images = topic(block.images);
  fields.push_back({.path = at + "repository", .topic = images});
  fields.push_back({.path = at + "image", .pattern = kImagePattern, .topic = images});
  fields.push_back({.path = at + "version", .topic = images});
  fields.push_back({.path = at + "imagePullPolicy", .usual = {"IfNotPresent"}, .topic = images});
  fields.push_back({.path = at + "imagePullSecrets",
                    .type = kTexts,
                    .text = block.apply_secrets != nullptr
                                ? "Secrets for the agent's image; those of all operands together."
                                : "",
                    .topic = block.apply_secrets != nullptr ? nullptr : topic(block.images),
                    .apply = block.apply_secrets});
  if (block.only_images) return;
  // Flags follow variables, over which they take precedence.
  fields.push_back(
      {.path = at + "env",
       .type = kEnvironment,
       .text = TextOfVariables(block),
       .topic = block.apply_variables != nullptr ? block.variables : topic(block.variables),
       .apply = block.apply_variables});
  if (!block.without_arguments)
    fields.push_back({.path = at + "args",
                      .type = kTexts,
                      .text = block.apply_arguments != nullptr
                                  ? "The operand's flags, with the effect that they have there."
                                  : "",
                      .topic = block.apply_arguments != nullptr ? nullptr : topic(block.arguments),
                      .apply = block.apply_arguments});
  if (block.short_block) return;
  fields.push_back({.path = at + "resources", .type = kResources, .topic = topic(block.resources)});
  fields.push_back({.path = at + "hostNetwork",
                    .type = kBool,
                    .text = block.apply_network != nullptr
                                ? "Whether the agent's pod uses the network of its node."
                                : "",
                    .topic = block.apply_network != nullptr ? nullptr : topic(block.network),
                    .apply = block.apply_network});
}

}  // namespace penstock::api::compat::internal
