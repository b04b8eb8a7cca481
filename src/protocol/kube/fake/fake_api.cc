// Implements the calls, streams, faults and counters of the fake; Store has the objects.
#include "protocol/kube/fake/fake_api.h"

#include <algorithm>
#include <list>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/core/strings.h"
#include "protocol/kube/fake/store.h"
#include "protocol/kube/status_error.h"

namespace penstock::protocol::kube {

using fake::Place;
using fake::Reply;

namespace {

constexpr const char* kNoConnection = "no connection to the API server";

std::string ValueOf(const ApiCall& call, const std::string& key) {
  const auto found = call.query.find(key);
  return found == call.query.end() ? "" : found->second;
}

bool IsTrue(const ApiCall& call, const std::string& key) {
  const std::string value = ValueOf(call, key);
  return value == "true" || value == "1";
}

std::string VerbOf(const ApiCall& call, const std::optional<Place>& place, bool stream) {
  if (stream) return "watch";
  if (call.method == "GET") return place && place->name.empty() ? "list" : "get";
  if (call.method == "POST") return "create";
  if (call.method == "PUT") return "update";
  if (call.method == "DELETE") return "delete";
  return call.content_type == kApplyPatch ? "apply" : "patch";
}

/// Answers as Client does, with its error texts.
base::Result<ApiResponse> ResultOf(const Reply& reply, const ApiCall& call) {
  if (reply.status == 0) return Error(Code::kUnavailable, kNoConnection);
  const std::string body =
      reply.body.is_string() ? reply.body.get<std::string>() : reply.body.dump();
  if (reply.status >= 300) return StatusError(reply.status, body, call);
  return ApiResponse{reply.status, body};
}

std::string ReasonOf(int status) {
  switch (status) {
    case 409: return "Conflict";
    case 410: return "Expired";
    case 429: return "TooManyRequests";
    default: return "InternalError";
  }
}

/// `nodes "n1" is forbidden: User "penstock" cannot patch resource "nodes/status" in API group ""
/// at the cluster scope`.
std::string ForbiddenText(const std::string& verb, const Place& place) {
  const auto parts = base::Split(place.collection, '/');
  const std::string group = parts.size() == 5 ? parts[2] : "";
  const std::string plural =
      parts.back() + (place.subresource.empty() ? "" : "/" + place.subresource);
  return fake::Named(place) + " is forbidden: User \"penstock\" cannot " +
         (verb == "apply" ? "patch" : verb) + " resource \"" + plural + "\" in API group \"" +
         group + "\"" +
         (place.namespace_name.empty() ? " at the cluster scope"
                                       : " in the namespace \"" + place.namespace_name + "\"");
}

Json MetadataOf(const Json& object) {
  return {{"kind", "PartialObjectMetadata"},
          {"apiVersion", "meta.k8s.io/v1"},
          {"metadata", object["metadata"]}};
}

/// Of a DeleteOptions; empty: without this precondition.
std::string UidIn(const Json& options) {
  const Json::json_pointer uid("/preconditions/uid");
  return options.is_object() && options.contains(uid) ? options[uid].get<std::string>() : "";
}

/// Reduces a list as a request with kMetadataOfLists asks.
void KeepMetadata(Json& list) {
  list["kind"] = "PartialObjectMetadataList";
  list["apiVersion"] = "meta.k8s.io/v1";
  for (Json& item : list["items"]) item = {{"metadata", item["metadata"]}};
  if (list["items"].empty()) list["items"] = nullptr;
}

}  // namespace

struct FakeApi::State : std::enable_shared_from_this<State> {
  explicit State(base::Executor& its_executor)
      : executor(its_executor), store(its_executor.clock()) {}

  struct Watcher {
    ApiCall call;
    Place place;
    fake::Selector selector;
    std::int64_t version = 0;  ///< changes up to this one were sent
    bool begun = false, bookmarks = false;
    base::TimerId timeout = 0;
    std::function<void(std::string_view)> line;
    std::function<void(base::Status)> end;
  };
  using WatcherPtr = std::shared_ptr<Watcher>;

  struct Pending {
    Done done;
    bool over = false;
  };

  // Runs a function after `delay`, if the fake still exists then.
  void Later(std::function<void()> function) {
    auto guarded = [weak = weak_from_this(), function = std::move(function)] {
      if (weak.lock()) function();
    };
    if (delay > base::Duration::zero()) {
      executor.PostAfter(delay, std::move(guarded));
    } else {
      executor.Post(std::move(guarded));
    }
  }

  // The fault of this call, if there is one; uses it up.
  std::optional<Fault> Meet(const ApiCall& call, bool stream) {
    for (auto fault = faults.begin(); fault != faults.end(); ++fault) {
      if (!fault->method.empty() && fault->method != (stream ? "WATCH" : call.method)) continue;
      if (!call.path.starts_with(fault->path)) continue;
      const Fault met = *fault;
      if (fault->times > 0 && --fault->times == 0) faults.erase(fault);
      return met;
    }
    return std::nullopt;
  }

  Reply FailureOf(const Fault& fault, const std::string& verb, const ApiCall& call) const {
    const auto place = fake::PlaceOf(call.path);
    if (fault.status == 0) return {0, {}};
    if (fault.status == 401) return fake::Failure(401, "Unauthorized", "Unauthorized");
    if (fault.status == 403 && place)
      return fake::Failure(403, "Forbidden", ForbiddenText(verb, *place));
    if (fault.status == 404) return fake::PageNotFound();
    return fake::Failure(fault.status, fault.reason.empty() ? ReasonOf(fault.status) : fault.reason,
                         fault.message.empty()
                             ? "the server answered " + std::to_string(fault.status)
                             : fault.message);
  }

  void Note(const ApiCall& call, const std::string& verb) {
    ++counts[verb];
    calls.push_back(call);
  }

  Reply Carry(const ApiCall& call) {
    if (Json resources = fake::ResourcesOf(call.path); !resources.is_null())
      return {200, {{"kind", "APIResourceList"}, {"resources", std::move(resources)}}};
    std::optional<Place> place = fake::PlaceOf(call.path);
    if (!place || fake::KindOf(place->collection) == nullptr) return fake::PageNotFound();
    Json body = call.body.empty() ? Json() : Json::parse(call.body);
    const std::string manager = ValueOf(call, "fieldManager");
    const bool dry_run = ValueOf(call, "dryRun") == "All";
    if (call.method == "PATCH")
      return store.Patch(*place, call.content_type, body, manager, IsTrue(call, "force"), dry_run);
    if (call.method == "PUT") return store.Replace(*place, std::move(body), manager);
    if (call.method == "DELETE") {
      const std::string dependents = ValueOf(call, "propagationPolicy");
      return store.Delete(
          *place, {UidIn(body), dry_run, dependents == "Foreground", dependents == "Background"});
    }
    if (call.method == "POST" && place->subresource == "eviction") {
      place->subresource.clear();
      return store.Evict(*place, {UidIn(body.value("deleteOptions", Json())), dry_run});
    }
    if (call.method == "POST") {
      place->name = body["metadata"]["name"];
      return store.Create(*place, std::move(body), manager);
    }
    if (!place->name.empty()) return store.Get(*place);
    Reply list = store.List(*place, call.query);
    if (list.status == 200 && call.accept == kMetadataOfLists) KeepMetadata(list.body);
    return list;
  }

  void Serve(const ApiCall& call, const std::shared_ptr<Pending>& pending) {
    if (pending->over || silent) return;
    const std::string verb = VerbOf(call, fake::PlaceOf(call.path), false);
    if (!up) return Finish(pending, Error(Code::kUnavailable, kNoConnection));
    Note(call, verb);
    const auto fault = Meet(call, false);
    if (!fault && late > base::Duration::zero()) return FinishLate(pending, call);
    if (!fault) return Finish(pending, ResultOf(Carry(call), call));
    if (fault->after_the_deed) Carry(call);
    Finish(pending, ResultOf(FailureOf(*fault, verb, call), call));
  }

  void FinishLate(const std::shared_ptr<Pending>& pending, const ApiCall& call) {
    auto result = ResultOf(Carry(call), call);
    Deliver();
    executor.PostAfter(late, [weak = weak_from_this(), pending, result = std::move(result)] {
      if (const auto self = weak.lock()) self->Finish(pending, result);
    });
  }

  void Finish(const std::shared_ptr<Pending>& pending, base::Result<ApiResponse> result) {
    if (std::exchange(pending->over, true)) return;
    std::erase(waiting, pending);
    auto done = std::move(pending->done);
    Deliver();
    done(std::move(result));
  }

  void Begin(const WatcherPtr& watcher) {
    if (!IsOpen(watcher)) return;
    if (silent)
      return EndLater(watcher, watcher->call.deadline,
                      Error(Code::kDeadlineExceeded, watcher->call.path + ": no answer in time"));
    if (!up) return End(watcher, Error(Code::kUnavailable, kNoConnection));
    Note(watcher->call, "watch");
    if (const auto fault = Meet(watcher->call, true))
      return Refuse(watcher, FailureOf(*fault, "watch", watcher->call));
    if (fake::KindOf(watcher->place.collection) == nullptr)
      return Refuse(watcher, fake::PageNotFound());
    if (const std::string seconds = ValueOf(watcher->call, "timeoutSeconds"); !seconds.empty()) {
      EndLater(watcher, std::chrono::seconds(base::ParseInt(seconds).value_or(1)), {});
    }
    watcher->begun = true;
    if (!IsTrue(watcher->call, "sendInitialEvents") || streaming_lists == StreamingLists::kIgnored)
      return BeginFrom(watcher);
    BeginWithAll(watcher);
  }

  void Refuse(const WatcherPtr& watcher, const Reply& reply) {
    End(watcher, ResultOf(reply, watcher->call).error());
  }

  // A silent server ends no stream.
  void EndLater(const WatcherPtr& watcher, base::Duration after, base::Status why) {
    watcher->timeout =
        executor.PostAfter(after, [weak = weak_from_this(), watcher, why = std::move(why)] {
          const auto state = weak.lock();
          if (state && (!state->silent || !watcher->begun)) state->End(watcher, why);
        });
  }

  void BeginFrom(const WatcherPtr& watcher) {
    const std::int64_t version =
        base::ParseInt(ValueOf(watcher->call, "resourceVersion")).value_or(0);
    if (version == 0) {
      watcher->version = store.version();
      return SendAll(watcher);
    }
    watcher->version = version;
    if (version < store.oldest()) return Expire(watcher);
    Deliver();
  }

  void BeginWithAll(const WatcherPtr& watcher) {
    if (streaming_lists == StreamingLists::kInvalid) {
      return Refuse(watcher,
                    fake::Failure(422, "Invalid",
                                  "ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: "
                                  "Forbidden: sendInitialEvents is forbidden for watch unless the "
                                  "WatchList feature gate is enabled"));
    }
    if (streaming_lists == StreamingLists::kErrorEvent) {
      SendEvent(
          watcher, "ERROR",
          fake::Failure(500, "InternalError", "etcd: request progress is not supported").body);
      return End(watcher, {});
    }
    watcher->version = store.version();
    SendAll(watcher);
    if (IsOpen(watcher) && watcher->bookmarks) SendBookmark(watcher, true);
  }

  void SendAll(const WatcherPtr& watcher) {
    for (const Json& object : store.Matching(watcher->place.collection, watcher->selector))
      SendEvent(watcher, "ADDED", object);
  }

  void Expire(const WatcherPtr& watcher) {
    const std::string message = "too old resource version: " + std::to_string(watcher->version) +
                                " (" + std::to_string(store.oldest()) + ")";
    SendEvent(watcher, "ERROR", fake::Failure(410, "Expired", message).body);
    End(watcher, {});
  }

  void SendBookmark(const WatcherPtr& watcher, bool initial_end) {
    Json metadata = {{"resourceVersion", std::to_string(watcher->version)}};
    if (initial_end) metadata["annotations"] = {{"k8s.io/initial-events-end", "true"}};
    SendEvent(watcher, "BOOKMARK",
              {{"kind", fake::KindOf(watcher->place.collection)->kind},
               {"metadata", std::move(metadata)}});
  }

  void SendEvent(const WatcherPtr& watcher, const char* type, const Json& object) {
    if (!IsOpen(watcher)) return;
    const bool is_object = object.contains("metadata") && std::string_view(type) != "ERROR";
    const Json sent =
        is_object && watcher->call.accept == kMetadataOfEvents ? MetadataOf(object) : object;
    watcher->line(Json{{"type", type}, {"object", sent}}.dump());
  }

  void Deliver() {
    if (late_watches <= base::Duration::zero()) return DeliverUpTo(store.version());
    executor.PostAfter(late_watches, [weak = weak_from_this(), version = store.version()] {
      if (const auto self = weak.lock()) self->DeliverUpTo(version);
    });
  }

  // Delivers every change to every stream, in order. A line may close streams.
  void DeliverUpTo(std::int64_t version) {
    const auto present = watchers;
    for (const WatcherPtr& watcher : present) {
      if (!watcher->begun || silent || !up) continue;
      while (IsOpen(watcher)) {
        const fake::Change* change = store.After(watcher->version);
        if (change == nullptr || change->version > version) break;
        watcher->version = change->version;
        if (change->collection != watcher->place.collection) continue;
        const Json event = fake::EventOf(*change, watcher->selector);
        if (!event.is_null())
          SendEvent(watcher, event["type"].get_ref<const std::string&>().c_str(), event["object"]);
      }
    }
  }

  void DeliverSoon() {
    Later([this] { Deliver(); });
  }

  bool IsOpen(const WatcherPtr& watcher) const {
    return std::find(watchers.begin(), watchers.end(), watcher) != watchers.end();
  }

  void Close(const WatcherPtr& watcher) {
    executor.Cancel(watcher->timeout);
    watchers.remove(watcher);
  }

  void End(const WatcherPtr& watcher, base::Status why) {
    if (!IsOpen(watcher)) return;
    Close(watcher);
    auto end = std::move(watcher->end);
    end(std::move(why));
  }

  void EndAll(const base::Status& why) {
    const auto present = watchers;
    for (const WatcherPtr& watcher : present) Later([this, watcher, why] { End(watcher, why); });
  }

  void Disconnect() {
    const Error broken(Code::kUnavailable, "the connection to the API server was lost");
    for (const auto& pending : std::vector(waiting))
      Later([this, pending, broken] { Finish(pending, broken); });
    EndAll(broken);
  }

  base::Executor& executor;
  fake::Store store;
  std::vector<std::shared_ptr<Pending>> waiting;
  std::list<WatcherPtr> watchers;
  std::list<Fault> faults;
  std::map<std::string, std::uint64_t, std::less<>> counts;
  std::vector<ApiCall> calls;
  base::Duration delay{}, late{}, late_watches{};
  bool up = true, silent = false;
  StreamingLists streaming_lists = StreamingLists::kYes;
};

FakeApi::FakeApi(base::Executor& executor) : state_(std::make_shared<State>(executor)) {}
FakeApi::~FakeApi() = default;

base::Executor& FakeApi::executor() { return state_->executor; }

void FakeApi::Do(ApiCall call, Done done) {
  auto pending = std::make_shared<State::Pending>();
  pending->done = std::move(done);
  state_->waiting.push_back(pending);
  state_->executor.PostAfter(
      call.deadline, [weak = std::weak_ptr(state_), pending, path = call.path] {
        if (const auto state = weak.lock())
          state->Finish(pending, Error(Code::kDeadlineExceeded, path + ": no answer in time"));
      });
  state_->Later(
      [state = state_.get(), pending, call = std::move(call)] { state->Serve(call, pending); });
}

namespace {

class Opened final : public WatchStream {
 public:
  explicit Opened(std::function<void()> close) : close_(std::move(close)) {}
  ~Opened() override { close_(); }

 private:
  std::function<void()> close_;
};

}  // namespace

std::unique_ptr<WatchStream> FakeApi::Open(ApiCall call, std::function<void(std::string_view)> line,
                                           std::function<void(base::Status)> end) {
  auto watcher = std::make_shared<State::Watcher>();
  watcher->place = fake::PlaceOf(call.path).value_or(Place{});
  watcher->selector = fake::SelectorOf(watcher->place, call.query);
  watcher->bookmarks = IsTrue(call, "allowWatchBookmarks");
  watcher->call = std::move(call);
  watcher->line = std::move(line);
  watcher->end = std::move(end);
  state_->watchers.push_back(watcher);
  state_->Later([state = state_.get(), watcher] { state->Begin(watcher); });
  return std::make_unique<Opened>([weak = std::weak_ptr(state_), watcher] {
    if (const auto state = weak.lock()) state->Close(watcher);
  });
}

void FakeApi::Put(const std::string& path, const Json& object, const std::string& manager) {
  Place place = fake::PlaceOf(path).value();
  if (state_->store.Find(place) == nullptr) {
    state_->store.Create(place, object, manager);
  } else {
    state_->store.Replace(place, object, manager);
    if (object.contains("status")) {
      place.subresource = "status";
      state_->store.Patch(place, kMergePatch, {{"status", object["status"]}}, manager, true, false);
    }
  }
  state_->DeliverSoon();
}

void FakeApi::Merge(const std::string& path, const Json& patch, const std::string& manager) {
  Place place = fake::PlaceOf(path).value();
  state_->store.Patch(place, kMergePatch, patch, manager, true, false);
  place.subresource = "status";
  if (patch.contains("status"))
    state_->store.Patch(place, kMergePatch, {{"status", patch["status"]}}, manager, true, false);
  state_->DeliverSoon();
}

void FakeApi::Remove(const std::string& path) {
  state_->store.Erase(fake::PlaceOf(path).value());
  state_->DeliverSoon();
}

const Json* FakeApi::Find(const std::string& path) const {
  return state_->store.Find(fake::PlaceOf(path).value());
}

std::vector<std::string> FakeApi::ManagersOf(const std::string& path,
                                             const std::string& pointer) const {
  return state_->store.ManagersOf(fake::PlaceOf(path).value(), pointer);
}

void FakeApi::Fail(Fault fault) { state_->faults.push_back(std::move(fault)); }
void FakeApi::Drop(const std::string& path, const std::string& pointer) {
  state_->store.dropped.emplace_back(path, pointer);
}
void FakeApi::Heal() {
  state_->faults.clear();
  state_->store.dropped.clear();
}
void FakeApi::Disconnect() { state_->Disconnect(); }

void FakeApi::SetUp(bool up) {
  state_->up = up;
  if (!up) state_->Disconnect();
}

void FakeApi::SetSilent(bool silent) {
  state_->silent = silent;
  if (!silent) state_->DeliverSoon();
}

void FakeApi::ForgetHistory() {
  state_->Deliver();  // open streams first get what is pending for them
  state_->store.ForgetHistory();
}

void FakeApi::SetStreamingLists(StreamingLists streaming_lists) {
  state_->streaming_lists = streaming_lists;
}
void FakeApi::SetDelay(base::Duration delay) { state_->delay = delay; }
void FakeApi::SetLateAnswers(base::Duration late) { state_->late = late; }
void FakeApi::SetLateWatches(base::Duration late) { state_->late_watches = late; }

void FakeApi::Bookmark() {
  state_->store.Bump();
  state_->Later([state = state_.get()] {
    state->Deliver();
    for (const auto& watcher : std::list(state->watchers)) {
      if (!watcher->begun || !watcher->bookmarks || state->silent || !state->up) continue;
      watcher->version = state->store.version();
      state->SendBookmark(watcher, false);
    }
  });
}

void FakeApi::SendLine(const std::string& path, const std::string& line) {
  state_->Later([state = state_.get(), path, line] {
    for (const auto& watcher : std::list(state->watchers)) {
      if (watcher->call.path.starts_with(path) && state->IsOpen(watcher)) watcher->line(line);
    }
  });
}

void FakeApi::EndStreams() { state_->EndAll({}); }

std::uint64_t FakeApi::Count(std::string_view verb) const {
  const auto found = state_->counts.find(verb);
  return found == state_->counts.end() ? 0 : found->second;
}

std::uint64_t FakeApi::Writes() const {
  return Requests() - Count("get") - Count("list") - Count("watch");
}

std::uint64_t FakeApi::Requests() const {
  std::uint64_t sum = 0;
  for (const auto& [verb, count] : state_->counts) sum += count;
  return sum;
}

std::size_t FakeApi::OpenStreams() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(state_->watchers, [](const auto& watcher) { return watcher->begun; }));
}

const std::vector<ApiCall>& FakeApi::calls() const { return state_->calls; }

void FakeApi::ForgetCalls() {
  state_->calls.clear();
  state_->counts.clear();
}

}  // namespace penstock::protocol::kube
