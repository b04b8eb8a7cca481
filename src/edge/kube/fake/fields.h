// What a PATCH does to an object, and which manager owns which of its fields afterwards. Pure; knows lists with keys by their names only.
#pragma once

#include <compare>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace penstock::edge::kube::fake {

using Json = nlohmann::json;

/// Who writes: one program has an owner's part for each operation (Apply, Update) and subresource.
struct Manager {
  std::string name, operation, subresource;
  auto operator<=>(const Manager&) const = default;
};

/// Manager → JSON pointers of the leaves that it owns. Elements of lists with keys (conditions by type, containers by name) stand in a
/// pointer as "k:<key>"; other lists are one leaf.
using Managers = std::map<Manager, std::set<std::string>>;

/// The leaves of an object that a manager can own: not its kind, its name, nor what the server writes.
std::map<std::string, Json> LeavesOf(const Json& object);

struct Applied {
  Json object;
  Managers managers;
  std::vector<std::string> conflicts;  ///< then nothing else counts
};

/// Server-side apply: leaves that `manager` owned and does not apply any more go, unless another manager owns them.
Applied ApplyFields(const Json& current, Managers managers, const Json& wanted, const Manager& manager, bool force);

/// Ownership after any other write: what has changed belongs to the writer alone.
Managers OwnChanges(const Json& before, const Json& after, Managers managers, const Manager& manager);

/// Strategic merge: lists with keys are merged by key; "$patch": "delete" removes an element.
Json StrategicMerge(const Json& target, const Json& patch);

/// metadata.managedFields as the server shows it.
Json ManagedFieldsOf(const Managers& managers);

}  // namespace penstock::edge::kube::fake
