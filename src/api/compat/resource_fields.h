// Describes the fields of vendors' custom resources: one table for each resource, from which
// reading, answers, the CustomResourceDefinition and the reference follow. Private to api/compat.
//
// The facts (names, types, words, defaults) are those of the vendors' types.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/compat/policy_translation.h"
#include "base/core/document.h"

namespace penstock::api::compat::internal {

enum class FieldType {
  kMap,      ///< with fields of its own in the table
  kOpenMap,  ///< passed on as it is
  kBool,
  kText,
  kDuration,  ///< Prometheus'
  kInt,
  kNumberOrPercent,
  kTexts,
  kTextMap,
  kBoolMap,
  kEnvironment,  ///< a list of {name, value}
  kResources,    ///< of a container
  kTolerations,
  kRelabelings,  ///< of a ServiceMonitor
  kMaps,         ///< a list of maps
};

/// Why fields do not simply take effect, for one or several of them.
struct FieldTopic {
  /// Under which name they are answered together; empty: each has an answer of its own, with the
  /// field's text.
  std::string_view field;
  FieldFate fate = FieldFate::kNotServed;
  std::string_view text;
  /// The field that has to be true for any of them to ask for something; empty: none.
  std::string_view gate;
  /// The field's `apply` answers what the value has, item by item; the fate is that of most.
  bool by_effect = false;
};

/// Topics of fields that are answered alone, each with its text.
inline constexpr FieldTopic kAlone = {"", FieldFate::kNotServed, "", ""},
                            kAloneDeprecated = {"", FieldFate::kDeprecated, "", ""},
                            kAloneElsewhere = {"", FieldFate::kElsewhere, "", ""};

/// Topics of fields whose items are answered.
inline constexpr FieldTopic kItems = {"", FieldFate::kNotServed, "", "", true},
                            kItemsElsewhere = {"", FieldFate::kElsewhere, "", "", true};

struct PolicyWork;

struct ResourceField {
  std::string path;  ///< below `spec`: "devicePlugin.config.name"
  FieldType type = FieldType::kText;
  std::string_view text = {};            ///< what it does here; empty: its topic's text
  std::string_view schema_default = {};  ///< of the definition: "true", "nvidia"
  std::string_view unset = {};  ///< what its absence means where the definition has no default
  std::vector<std::string_view> words = {};  ///< the possible texts; empty: any
  /// Those of a field without a topic that are answered as not served yet, with `unserved_text`.
  std::vector<std::string_view> unserved = {};
  std::string_view unserved_text = {};
  std::string_view pattern = {};  ///< of the definition
  std::optional<std::int64_t> least = {}, most = {};
  /// Values that ask for nothing; of a map, its JSON with sorted keys.
  std::vector<std::string_view> usual = {};
  bool required = false;
  const FieldTopic* topic = nullptr;  ///< null: it takes effect
  void (*apply)(PolicyWork& work, const base::Value& value) = nullptr;
};

/// Another name that published examples use.
struct FieldAlias {
  std::string_view alias, field;  ///< paths below `spec`
};

/// The fields of an object that are set (and not null), of the right type. Problems have the paths
/// of the fields; unknown fields become answers, at most 20 of them.
struct ResourceReading {
  std::map<std::string, const base::Value*, std::less<>> given;
  std::vector<FieldAnswer> aliases, unknown;

  const base::Value* Find(std::string_view path) const;
};

/// An object with what its table says of its spec.
struct ResourceObject {
  base::Value document;     ///< `reading` points into it
  base::Problems problems;  ///< with the object's name: "ClusterPolicy gpu"; also that it is of
                            ///< another kind
  ResourceReading reading;
};

/// kInvalidArgument: `text` is no JSON; everything else is among its problems.
base::Result<ResourceObject> ReadResourceObject(std::string_view text, std::string_view version,
                                                std::string_view kind,
                                                std::span<const ResourceField> fields,
                                                std::span<const FieldAlias> aliases = {});

/// The value that a field has if the object does not set it.
std::optional<base::Value> DefaultOf(const ResourceField& field);

/// Whether the field is true, set or by default.
bool IsFieldOn(const ResourceReading& reading, std::span<const ResourceField> fields,
               std::string_view path);

/// Whether the object sets the field to something that neither the definition nor the vendor's
/// chart has anyway.
bool IsFieldSet(const ResourceReading& reading, const ResourceField& field);

/// The answers for all fields that are set to something that they cannot have, in the table's
/// order.
std::vector<FieldAnswer> AnswersFor(const ResourceReading& reading,
                                    std::span<const ResourceField> fields);

/// Sorts answers by the places of their fields in the table; an answer to an item of a field
/// ("spec.a.env[X]") has the field's place.
void SortAnswers(std::vector<FieldAnswer>& answers, std::span<const ResourceField> fields);

/// A text of an object for messages: its beginning, printable.
std::string ShownText(std::string_view text);

std::string_view ToString(FieldFate fate);  ///< "honoured", "not served yet"

}  // namespace penstock::api::compat::internal
