// Stores the fake API server's objects, their owners, and the history that watches read. Answers as
// the real server does; uses no network.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/kube/api.h"
#include "protocol/kube/fake/fields.h"

namespace penstock::protocol::kube::fake {

/// A parsed path: "/api/v1/namespaces/x/pods/p/status" → {"/api/v1/pods", "x", "p", "status"}.
struct Place {
  std::string collection, namespace_name, name, subresource;
};
std::optional<Place> PlaceOf(std::string_view path);

/// Properties of a kind on a server with our CRDs and NFD's, by its collection ("/api/v1/nodes").
struct Kind {
  std::string_view collection, kind;
  bool status = false;      ///< `status` is a subresource: writes to the object itself ignore it
  bool generation = false;  ///< counts changes of the spec
};
const Kind* KindOf(std::string_view collection);

/// The names of kinds under "/apis/GROUP/VERSION", or null if there is no such group.
Json ResourcesOf(std::string_view group_version);

/// fieldSelector and labelSelector of a query: =, ==, != and, for labels, presence.
struct Selector {
  std::string namespace_name;
  std::vector<std::string> fields, labels;
  bool Matches(const Json& object) const;
};
Selector SelectorOf(const Place& place, const std::map<std::string, std::string>& query);

/// An answer before it is a Result: status and body; a string body is plain text.
struct Reply {
  int status = 200;
  Json body;
};
Reply Failure(int status, std::string reason, std::string message);
Reply PageNotFound();

/// "leases.coordination.k8s.io \"x\"", as messages name an object.
std::string Named(const Place& place);

/// What a DELETE asks for.
struct Deletion {
  std::string uid;  ///< only if the object has it; empty: in any case
  bool dry_run = false, foreground = false, background = false;
};

struct Change {
  std::int64_t version = 0;
  std::string collection;
  Json before, after;  ///< null: did not exist, does not exist any more
};

/// The object of a watch event under a selector: {"type": "MODIFIED", "object": …}; null if the
/// change does not concern the watcher.
Json EventOf(const Change& change, const Selector& selector);

class Store {
 public:
  explicit Store(const base::Clock& clock) : clock_(clock) {}

  Reply Get(const Place& place) const;
  Reply List(const Place& place, const std::map<std::string, std::string>& query);
  Reply Create(const Place& place, Json object, const std::string& manager);
  Reply Replace(const Place& place, Json object, const std::string& manager);
  Reply Patch(const Place& place, std::string_view content_type, const Json& patch,
              const std::string& manager, bool force, bool dry_run);
  /// An object that finalizers hold is marked, and goes with the last of them. A kubelet that ends
  /// pods, and a collector of what foreground deletion leaves, act at once.
  Reply Delete(const Place& place, const Deletion& deletion);
  /// POST of an Eviction: a deletion unless a PodDisruptionBudget forbids it.
  Reply Evict(const Place& place, const Deletion& deletion);
  /// At once, whatever holds it.
  void Erase(const Place& place);

  const Json* Find(const Place& place) const;  ///< without managedFields
  std::vector<std::string> ManagersOf(const Place& place, const std::string& pointer) const;

  /// Objects that a selector matches, in order.
  std::vector<Json> Matching(const std::string& collection, const Selector& selector) const;

  std::int64_t version() const { return version_; }
  std::int64_t oldest() const { return oldest_; }
  const Change* After(std::int64_t version) const;  ///< the first change after it, or null
  void ForgetHistory();
  /// As if others wrote other objects.
  void Bump() { ++version_; }

  std::string uid_prefix = "00000000-0000-0000-0000-";
  /// Collection → JSON pointer to a field that its definition lacks.
  std::vector<std::pair<std::string, std::string>> dropped;

 private:
  struct Key {
    std::string collection, namespace_name, name;
    auto operator<=>(const Key&) const = default;
  };
  struct Entry {
    Json object;
    Managers managers;
  };
  static Key KeyOf(const Place& place) {
    return {place.collection, place.namespace_name, place.name};
  }
  Reply Write(const Place& place, Json object, Managers managers, bool dry_run = false);
  Reply WriteAs(const Place& place, const Entry& before, Json object, const std::string& manager,
                bool dry_run = false);
  Reply Apply(const Place& place, const Json& wanted, const std::string& manager, bool force,
              bool dry_run);
  std::optional<Reply> WhyNotNew(const Place& place) const;
  Reply Terminate(const Place& place, const Entry& entry);
  Reply Mark(const Place& place, const Entry& entry, std::int64_t grace, bool foreground);
  std::optional<Reply> WhyNotEvicted(const Place& place, const Json& pod);
  void SayEvicted(const Place& place, const Entry& entry);
  std::string TimeNow() const;
  Json WithinSubresource(const Place& place, const Json& before, Json object) const;
  void DropFields(const std::string& collection, Json& object) const;
  static Json Described(const Entry& entry);

  const base::Clock& clock_;
  std::map<Key, Entry> objects_;
  std::deque<Change> history_;
  /// Continue token → version and the rest of that list.
  std::map<std::string, std::pair<std::int64_t, std::vector<Json>>> pages_;
  std::int64_t version_ = 1000, oldest_ = 1000;
  std::uint64_t next_uid_ = 1;
};

}  // namespace penstock::protocol::kube::fake
