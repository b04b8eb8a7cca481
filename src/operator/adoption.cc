// The replaced operators write with the verb update: their entry in managedFields owns each port
// and each label of a selector that they wrote. Our apply shares these, and takes none away. The
// same is done for clients that change from update to apply (client-go's csaupgrade). Metadata
// stays theirs: labels by which someone selects the object are not lost.
#include "operator/adoption.h"

#include <algorithm>
#include <utility>

#include "operator/names.h"

namespace penstock::cluster {

namespace {

constexpr const char* kSpec = "f:spec";

bool HasOurLabel(const Json& object) {
  const auto labels = TextsAt(object, "/metadata/labels");
  const auto label = labels.find(std::string(kManagedBy));
  return label != labels.end() && label->second == kManager;
}

bool HasOurFields(const Json& object) {
  return std::ranges::any_of(ListAt(object, "/metadata/managedFields"), [](const Json& fields) {
    return TextAt(fields, "/manager") == kManager;
  });
}

/// It has one controller, and what another operator wrote would stay beside the reference that we
/// apply.
Json OtherOwners(const Json& object) {
  Json others = Json::array();
  for (const Json& owner : ListAt(object, "/metadata/ownerReferences"))
    if (const Json* controls = Find(owner, "/controller"); controls == nullptr || *controls != true)
      others.push_back(owner);
  return others;
}

bool IsOurApply(const Json& entry) {
  return TextAt(entry, "/manager") == kManager && TextAt(entry, "/operation") == "Apply";
}

/// Whether an entry has fields of the object itself, by the names of this version.
bool HasFields(const Json& entry, const std::string& api_version) {
  const Json* fields = Find(entry, "/fieldsV1");
  return fields != nullptr && fields->is_object() && TextAt(entry, "/subresource").empty() &&
         TextAt(entry, "/apiVersion") == api_version;
}

/// managedFields with all of `spec` in our entry. Sets of fields are tries, whose union is their
/// merge.
Json WithSpecOurs(const Json& entries, const std::string& api_version) {
  Json fields = Json::object();
  Json result = Json::array();
  for (Json entry : entries) {
    if (!HasFields(entry, api_version)) {
      result.push_back(std::move(entry));
      continue;
    }
    Json& theirs = entry["fieldsV1"];
    if (IsOurApply(entry)) {
      fields.merge_patch(std::exchange(theirs, Json::object()));
    } else if (const auto spec = theirs.find(kSpec); spec != theirs.end()) {
      fields.merge_patch({{kSpec, *spec}});
      theirs.erase(spec);
    }
    if (!theirs.empty()) result.push_back(std::move(entry));
  }
  if (fields.empty()) return result;
  result.push_back({{"manager", kManager},
                    {"operation", "Apply"},
                    {"apiVersion", api_version},
                    {"fieldsType", "FieldsV1"},
                    {"fieldsV1", std::move(fields)}});
  return result;
}

}  // namespace

Belongs WhoseIs(const Json& object, const std::set<std::string>& policies) {
  if (HasOurLabel(object)) return Belongs::kOurs;
  const std::string controller = ControllerOf(object);
  if (controller.empty()) return HasOurFields(object) ? Belongs::kOurs : Belongs::kOthers;
  return policies.contains(controller) ? Belongs::kAdoptable : Belongs::kOthers;
}

Json AdoptionOf(const Json& object, const std::string& api_version) {
  Json metadata = {{"resourceVersion", TextAt(object, "/metadata/resourceVersion")},
                   {"labels", {{std::string(kManagedBy), std::string(kManager)}}},
                   {"ownerReferences", OtherOwners(object)}};
  // An empty list would be the request to forget all of them.
  if (Json fields = WithSpecOurs(ListAt(object, "/metadata/managedFields"), api_version);
      !fields.empty())
    metadata["managedFields"] = std::move(fields);
  return {{"metadata", std::move(metadata)}};
}

std::string ControllerOf(const Json& object) {
  for (const Json& owner : ListAt(object, "/metadata/ownerReferences"))
    if (const Json* controls = Find(owner, "/controller"); controls != nullptr && *controls == true)
      return TextAt(owner, "/uid");
  return "";
}

Json ReleaseOf(const Json& object) {
  return {{"metadata",
           {{"resourceVersion", TextAt(object, "/metadata/resourceVersion")},
            {"ownerReferences", OtherOwners(object)}}}};
}

}  // namespace penstock::cluster
