// CustomResourceDefinitions (apiextensions.k8s.io/v1) of the resources that the operator reads.
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace penstock::api {

/// A definition, as the operator applies it.
struct ResourceDefinition {
  std::string name;  ///< "penstocks.penstock.io"
  std::string json;
};

/// That of Penstock objects.
ResourceDefinition PenstockDefinition();

namespace internal {

/// What the definitions differ in, besides their schemas.
struct DefinitionNames {
  std::string_view group, version, kind, plural, singular;
  std::vector<std::string> short_names;
  /// Of `kubectl get`: name, type and path.
  std::vector<std::vector<std::string>> columns;
  std::string_view description;
  bool namespaced = false;
};

/// A resource with the subresource `status`.
ResourceDefinition MakeDefinition(const DefinitionNames& names, nlohmann::ordered_json spec,
                                  nlohmann::ordered_json status,
                                  const nlohmann::ordered_json& validations);

/// The schema of a status: a state, conditions, and what the operator adds.
nlohmann::ordered_json StatusSchema(const std::vector<std::string>& states);

nlohmann::ordered_json SchemaOfType(std::string_view type);  ///< {"type": type}
nlohmann::ordered_json SchemaOfTexts();                      ///< a list of strings
nlohmann::ordered_json SchemaOfMap(std::string_view type);   ///< to values of this type
nlohmann::ordered_json SchemaOfQuantity();
nlohmann::ordered_json SchemaOfResources();  ///< of a container
nlohmann::ordered_json SchemaOfTolerations();
nlohmann::ordered_json SchemaOfOpenMap();
nlohmann::ordered_json SchemaOfOpenMaps();  ///< a list of maps
nlohmann::ordered_json SchemaOfNumberOrText();

}  // namespace internal

}  // namespace penstock::api
