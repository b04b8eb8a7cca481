// After a write, the object is assumed to be as written: the server may add fields and may drop
// those that its schema does not know.
#include "protocol/kube/object_reconciler.h"

#include <nlohmann/json.hpp>

#include "base/lifetime.h"

namespace penstock::protocol::kube {

using namespace std::chrono_literals;

namespace {

/// Whether `found` contains everything in `wanted`; lists are compared as a whole.
bool Contains(const Json& found, const Json& wanted) {
  if (!wanted.is_object() || !found.is_object()) return found == wanted;
  for (const auto& [key, value] : wanted.items()) {
    const auto other = found.find(key);
    if (other == found.end() || !Contains(*other, value)) return false;
  }
  return true;
}

/// Compares the uid only: the server may fill in other fields of an owner.
bool OwnersAgree(const Json& found, const Json& wanted) {
  const Json::json_pointer at("/metadata/ownerReferences/0/uid");
  return !wanted.contains(at) || (found.contains(at) && found.at(at) == wanted.at(at));
}

/// The value at `pointer`; an empty object if there is none, since a server may leave out empty
/// values.
Json ValueAt(const Json& object, const std::string& pointer) {
  const Json::json_pointer at(pointer);
  return object.contains(at) ? object.at(at) : Json::object();
}

bool Agrees(const Json& found, const Json& wanted, const std::string& content) {
  if (found.is_null() || !OwnersAgree(found, wanted) ||
      ValueAt(found, content) != ValueAt(wanted, content))
    return false;
  Json metadata = ValueAt(wanted, "/metadata");
  metadata.erase("ownerReferences");
  return Contains(ValueAt(found, "/metadata"), metadata);
}

}  // namespace

struct ObjectReconciler::State : std::enable_shared_from_this<State> {
  State(Api& a, Options o) : api(a), options(std::move(o)) {}

  void Reconcile(std::function<Json(const Json*)> function, std::function<void(Status)> end) {
    wanted = std::move(function);
    done = std::move(end);
    const bool stale = !found || api.executor().clock().Now() - read_at >= kRereadInterval;
    if (!stale) return Write(true);
    api.Do(Get(options.resource, options.namespace_name, options.name),
           base::IfAlive(this, &State::OnRead));
  }

  void OnRead(const base::Result<ApiResponse>& answer) {
    if (!answer.ok() && answer.error().code() != Code::kNotFound) return End(answer.error());
    base::Result<Json> object(Json(nullptr));
    if (answer.ok()) object = Parse(answer);
    if (!object.ok()) return End(object.error());
    found = *std::move(object);
    read_at = api.executor().clock().Now();
    Write(false);
  }

  /// `known`: the object was not read just now and is assumed to be as last written.
  void Write(bool known) {
    const Json object = wanted(found->is_null() ? nullptr : &*found);
    if (object.is_null()) return End({});
    if (known && !written.is_null() ? object == written : Agrees(*found, object, options.content)) {
      written = object;
      return End({});
    }
    api.Do(Apply(options.resource, options.namespace_name, object, options.manager),
           base::IfAlive(this, [object](State& self, const Result<ApiResponse>& answer) {
             if (!answer.ok()) {
               if (answer.error().code() == Code::kNotFound) self.Forget();
               return self.End(answer.error());
             }
             self.written = object;
             self.End({});
           }));
  }

  /// The kind does not exist (any more): read again next time.
  void Forget() {
    found.reset();
    written = nullptr;
  }

  void End(const Status& status) {
    wanted = nullptr;
    std::exchange(done, nullptr)(status);
  }

  Api& api;
  const Options options;
  std::function<Json(const Json*)> wanted;
  std::function<void(Status)> done;
  std::optional<Json> found;  // null: there is no object
  Json written;               // null: not written yet, or not known to exist
  base::TimePoint read_at{};
};

ObjectReconciler::ObjectReconciler(Api& api, Options options)
    : state_(std::make_shared<State>(api, std::move(options))) {}

ObjectReconciler::~ObjectReconciler() = default;

void ObjectReconciler::Reconcile(std::function<Json(const Json*)> wanted,
                                 std::function<void(Status)> done) {
  state_->Reconcile(std::move(wanted), std::move(done));
}

bool ObjectReconciler::has_read() const { return state_->found.has_value(); }
bool ObjectReconciler::there() const { return !state_->written.is_null(); }

}  // namespace penstock::protocol::kube
