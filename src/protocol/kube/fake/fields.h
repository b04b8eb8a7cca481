// Computes what a PATCH does to an object, and which manager owns which of its fields afterwards.
// Pure. Recognizes lists with keys by their names only.
#pragma once

#include <compare>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace penstock::protocol::kube::fake {

using Json = nlohmann::json;

/// A field manager: one program has a separate entry for each operation (Apply, Update) and
/// subresource.
struct Manager {
  std::string name, operation, subresource;
  auto operator<=>(const Manager&) const = default;
};

/// Manager → JSON pointers of the leaves that it owns. An element of a list with keys (conditions
/// by type, containers by name) is "k:<key>" in a pointer; other lists are one leaf.
using Managers = std::map<Manager, std::set<std::string>>;

/// The leaves of an object that a manager can own: without its kind, its name, and what the server
/// writes.
std::map<std::string, Json> LeavesOf(const Json& object);

struct Applied {
  Json object;
  Managers managers;
  std::vector<std::string> conflicts;  ///< if there are any, ignore the other members
};

/// Server-side apply: leaves that `manager` owned and no longer applies are removed, unless another
/// manager owns them.
Applied ApplyFields(const Json& current, Managers managers, const Json& wanted,
                    const Manager& manager, bool force);

/// Ownership after any other write: the writer alone owns what has changed.
Managers OwnChanges(const Json& before, const Json& after, Managers managers,
                    const Manager& manager);

/// Strategic merge: lists with keys are merged by key; "$patch": "delete" removes an element.
Json StrategicMerge(const Json& target, const Json& patch);

/// metadata.managedFields as the server shows it.
Json ManagedFieldsOf(const Managers& managers, const Json& api_version);
/// And as a client may write it: who owns what, whatever was known before.
Managers ManagersIn(const Json& managed_fields);

}  // namespace penstock::protocol::kube::fake
