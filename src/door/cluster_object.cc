// After a write what was written is believed to be there: the server may add to it, and may leave out what its schema does not know.
#include "door/cluster_object.h"

#include <nlohmann/json.hpp>

namespace penstock::door {

using base::Code;
using base::Status;
using edge::kube::Answer;
using edge::kube::Json;
using namespace std::chrono_literals;

namespace {

constexpr base::Duration kLookAgain = 10min;
constexpr std::string_view kManager = "penstock";

/// Whether all that `wanted` says is in `found`; lists as a whole.
bool Says(const Json& found, const Json& wanted) {
  if (!wanted.is_object() || !found.is_object()) return found == wanted;
  for (const auto& [key, value] : wanted.items()) {
    const auto other = found.find(key);
    if (other == found.end() || !Says(*other, value)) return false;
  }
  return true;
}

/// An owner of a list may have fields that the server filled in.
bool OwnersAgree(const Json& found, const Json& wanted) {
  const Json::json_pointer at("/metadata/ownerReferences/0/uid");
  return !wanted.contains(at) || (found.contains(at) && found.at(at) == wanted.at(at));
}

/// What is at a place; a server may leave out what is empty.
Json At(const Json& object, const std::string& pointer) {
  const Json::json_pointer at(pointer);
  return object.contains(at) ? object.at(at) : Json::object();
}

bool Agrees(const Json& found, const Json& wanted, const std::string& content) {
  if (found.is_null() || !OwnersAgree(found, wanted) || At(found, content) != At(wanted, content)) return false;
  Json metadata = At(wanted, "/metadata");
  metadata.erase("ownerReferences");
  return Says(At(found, "/metadata"), metadata);
}

}  // namespace

struct ClusterObject::State : std::enable_shared_from_this<State> {
  State(edge::kube::Api& a, Options o) : api(a), options(std::move(o)) {}

  void Bring(std::function<Json(const Json*)> function, std::function<void(Status)> end) {
    wanted = std::move(function);
    done = std::move(end);
    const bool look = !found || api.executor().clock().Now() - looked_at >= kLookAgain;
    if (!look) return Write(true);
    api.Do(Get(options.resource, options.namespace_name, options.name), [weak = weak_from_this()](const base::Result<Answer>& answer) {
      if (const auto self = weak.lock()) self->Looked(answer);
    });
  }

  void Looked(const base::Result<Answer>& answer) {
    if (!answer.ok() && answer.error().code() != Code::kNotFound) return End(answer.error());
    base::Result<Json> object(Json(nullptr));
    if (answer.ok()) object = edge::kube::Parse(answer);
    if (!object.ok()) return End(object.error());
    found = *std::move(object);
    looked_at = api.executor().clock().Now();
    Write(false);
  }

  /// `known`: nothing was read just now, so what was written last is what is there.
  void Write(bool known) {
    const Json object = wanted(found->is_null() ? nullptr : &*found);
    if (object.is_null()) return End({});
    if (known && !written.is_null() ? object == written : Agrees(*found, object, options.content)) {
      written = object;
      return End({});
    }
    api.Do(Apply(options.resource, options.namespace_name, object, kManager), [weak = weak_from_this(), object](const auto& answer) {
      const auto self = weak.lock();
      if (!self) return;
      if (!answer.ok()) {
        if (answer.error().code() == Code::kNotFound) self->Forget();
        return self->End(answer.error());
      }
      self->written = object;
      self->End({});
    });
  }

  /// The kind is not there (any more): looked at anew the next time.
  void Forget() {
    found.reset();
    written = nullptr;
  }

  void End(const Status& status) {
    wanted = nullptr;
    std::exchange(done, nullptr)(status);
  }

  edge::kube::Api& api;
  const Options options;
  std::function<Json(const Json*)> wanted;
  std::function<void(Status)> done;
  std::optional<Json> found;  // null inside: there is none
  Json written;               // null: nothing by us yet, or not known to be there
  base::TimePoint looked_at{};
};

ClusterObject::ClusterObject(edge::kube::Api& api, Options options) : state_(std::make_shared<State>(api, std::move(options))) {}

ClusterObject::~ClusterObject() = default;

void ClusterObject::Bring(std::function<Json(const Json*)> wanted, std::function<void(Status)> done) {
  state_->Bring(std::move(wanted), std::move(done));
}

bool ClusterObject::looked() const { return state_->found.has_value(); }
bool ClusterObject::there() const { return !state_->written.is_null(); }

}  // namespace penstock::door
