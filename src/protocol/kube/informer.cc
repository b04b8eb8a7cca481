// Makes one attempt after another: a list, or a watch that continues from a version. The end of an
// attempt decides the next one.
#include "protocol/kube/informer.h"

#include <algorithm>
#include <optional>
#include <random>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/backoff.h"
#include "base/lifetime.h"
#include "base/log.h"
#include "protocol/kube/object_cache.h"
#include "protocol/kube/watch.h"

namespace penstock::protocol::kube {

using base::Duration;
using namespace std::chrono_literals;

namespace {

constexpr Duration kLongestWait = 15s;
constexpr Duration kRefused = 30s;     // a missing permission or kind is rarely added soon
constexpr Duration kLearnsRoles = 5s;  // a starting server refuses everything at first
constexpr Duration kStable = 10s;  // a stream that lived this long was good: resets the back-off
constexpr Duration kPageDeadline = 30s;    // for 500 objects of a busy server
constexpr Duration kAnswerDeadline = 10s;  // for a watch's first byte
constexpr Duration kListsIn = 60s;         // a streaming list has ended by then, or never will
constexpr Duration kGrace = 30s;           // a server that ends no watch by then has forgotten it

constexpr const char* kPageSize = "500";  // as client-go

// Transient errors. Any other error in a streaming list's events says that the server does not
// support it.
bool Passes(int code) { return code == 429 || code == 503 || code == 504; }

bool IsRefusal(const base::Status& why) {
  return !why.ok() &&
         (why.error().code() == Code::kPermissionDenied || why.error().code() == Code::kNotFound);
}

Error OfEvent(const WatchEvent& event) {
  const std::string message =
      event.message.empty() ? "the API server sent an error without a message" : event.message;
  if (event.code == 410) return {Code::kOutOfRange, message};
  if (event.code == 403) return {Code::kPermissionDenied, message};
  return {Passes(event.code) || event.code >= 500 ? Code::kUnavailable : Code::kUnknown, message};
}

}  // namespace

struct Informer::State : std::enable_shared_from_this<State> {
  State(Api& its_api, Options its_options, Handlers its_handlers)
      : api(its_api),
        options(std::move(its_options)),
        handlers(std::move(its_handlers)),
        cache(options.most_objects, options.most_bytes, options.packed),
        backoff(std::max<Duration>(options.spread, 1s), std::max(options.spread, kLongestWait)) {}

  base::TimePoint Now() const { return api.executor().clock().Now(); }

  Duration AnyUpTo(Duration most) {
    return Duration(std::uniform_int_distribution<Duration::rep>(
        0, std::max<Duration::rep>(0, most.count()))(random));
  }

  // The function runs only if the current attempt is still the current one then.
  template <typename Function>
  auto ForThisAttempt(Function function) {
    return base::IfAlive(this, [function, number = attempt](State& state, auto&&... arguments) {
      if (state.attempt == number)
        std::invoke(function, state, std::forward<decltype(arguments)>(arguments)...);
    });
  }

  void After(Duration delay, void (State::*function)()) {
    api.executor().Cancel(timer);
    timer = api.executor().PostAfter(delay, ForThisAttempt(function));
  }

  std::map<std::string, std::string> Selectors() const {
    std::map<std::string, std::string> query;
    if (!options.field_selector.empty()) query["fieldSelector"] = options.field_selector;
    if (!options.label_selector.empty()) query["labelSelector"] = options.label_selector;
    return query;
  }

  std::string Accept(std::string_view metadata) const {
    return options.metadata_only ? std::string(metadata) : "";
  }

  // Attempts.
  void Begin() {
    began = Now();
    if (!version.empty()) return OpenStream();
    listing = true;
    no_room = false;
    cache.BeginList();
    if (can_stream && !pages_once) return OpenStream();
    pages_once = false;
    RequestPage("");
  }

  void OpenStream() {
    timeout = std::chrono::duration_cast<std::chrono::seconds>(options.watch_for +
                                                               AnyUpTo(options.watch_for));
    ApiCall call{.path = options.resource.Path(options.namespace_name),
                 .query = Selectors(),
                 .accept = Accept(kMetadataOfEvents),
                 .deadline = kAnswerDeadline};
    call.query["watch"] = "1";
    call.query["allowWatchBookmarks"] = "true";
    call.query["timeoutSeconds"] = std::to_string(timeout.count());
    if (listing) {
      call.query["sendInitialEvents"] = "true";
      call.query["resourceVersionMatch"] = "NotOlderThan";
    } else {
      call.query["resourceVersion"] = version;
    }
    if (listing) {
      After(kListsIn, &State::ListIsStuck);
    } else {
      After(kAnswerDeadline + 1s, &State::SeemsHealthy);
    }
    stream = api.Open(std::move(call), ForThisAttempt([](State& state, std::string_view line) {
                        state.Within([&] { state.OnLine(line); });
                      }),
                      ForThisAttempt([](State& state, const Status& why) {
                        state.Within([&] { state.OnEnd(why); });
                      }));
  }

  // The first list may be any state that the server has at hand (resourceVersion 0: from its cache,
  // etcd is not asked). After an expired version it must be the newest one: a lagging server would
  // go back in time.
  void RequestPage(const std::string& next) {
    ApiCall call{.path = options.resource.Path(options.namespace_name),
                 .query = Selectors(),
                 .accept = Accept(kMetadataOfLists),
                 .deadline = kPageDeadline};
    call.query["limit"] = kPageSize;
    if (!next.empty()) {
      call.query["continue"] = next;
    } else if (!newest) {
      call.query["resourceVersion"] = "0";
    }
    api.Do(std::move(call), ForThisAttempt(&State::OnPage));
  }

  void OnPage(const base::Result<ApiResponse>& answer) {
    if (!answer.ok()) return OnEnd(answer.error());
    const auto page = DecodePage(answer->body, options.without, options.managed_fields);
    if (!page.ok()) return OnEnd(page.error());
    if (!page->kind.empty() && !IsKind(page->kind)) return;
    const std::uint64_t number = attempt;
    for (const Object& object : page->objects) {
      Keep(*MetaOf(*object), object);
      if (ended || attempt != number) return;
    }
    if (!page->next.empty()) return RequestPage(page->next);
    EndList(page->version);
    if (ended) return;
    ++attempt;
    Begin();
  }

  // A stream must not be destroyed inside its own callback.
  template <typename Function>
  void Within(Function function) {
    in_stream = true;
    function();
    in_stream = false;
  }

  void DropStream() {
    ++attempt;
    if (stream && in_stream)
      api.executor().Post([old = std::shared_ptr<WatchStream>(std::move(stream))] {});
    stream.reset();
  }

  // Lines of a stream.
  void OnLine(std::string_view line) {
    if (line.empty()) return;
    if (line.size() > options.most_bytes) {
      return OnEnd(Error(Code::kResourceExhausted, "an object of " + std::to_string(line.size()) +
                                                       " bytes exceeds the limit of the cache"));
    }
    const auto event = DecodeEvent(line, options.without, options.managed_fields);
    if (!event.ok()) return OnEnd(event.error());
    if (event->type == WatchEvent::Type::kError) return OnError(*event);
    const std::uint64_t number = attempt;
    OnChange(*event);
    if (ended || attempt != number) return;
    if (listing && event->ends_list) return EndList(event->meta.version);
    if (listing) return;
    version = event->meta.version;
    ReportHealthy();
  }

  void OnChange(const WatchEvent& event) {
    if (event.type == WatchEvent::Type::kBookmark) return;
    if (!event.meta.kind.empty() && !IsKind(event.meta.kind)) return;
    if (event.type != WatchEvent::Type::kDeleted) return Keep(event.meta, event.object);
    if (cache.Remove(event.meta)) Removed({event.meta.namespace_name, event.meta.name});
  }

  void OnError(const WatchEvent& event) {
    if (event.code == 410) return OnEnd(OfEvent(event));
    if (listing && !Passes(event.code)) return ListInPages();
    // A server that cannot continue from our version for another reason may have lost it.
    if (!Passes(event.code)) ListNewest();
    OnEnd(OfEvent(event));
  }

  void ListInPages() {
    if (can_stream)
      base::Log(base::kInfo, "the API server does not support streaming lists; requesting pages",
                {{"kind", options.resource.plural}});
    can_stream = false;
    Restart({}, {});
  }

  void ListNewest() {
    version.clear();
    newest = true;
  }

  // Objects of another kind than before are not ours.
  bool IsKind(const std::string& its) {
    if (kind.empty()) kind = its;
    if (kind == its) return true;
    OnEnd(Error(Code::kDataLoss,
                "the API server sent a " + its + " where " + kind + " was requested"));
    return false;
  }

  Object Reduced(Object object) const {
    return options.reduce ? std::make_shared<const Json>(options.reduce(*object)) : object;
  }

  void Keep(const ObjectMeta& meta, const Object& object) {
    const Object reduced = Reduced(object);
    Kept(cache.Put(meta, reduced), *reduced);
  }

  bool Learn(const Json& answer) {
    const auto meta = MetaOf(answer);
    if (!meta.ok()) return false;
    std::vector<std::string> unread = options.without;
    if (options.managed_fields == ManagedFields::kLeftOut)
      unread.emplace_back("/metadata/managedFields");
    const Object reduced = Reduced(WithoutUnread(answer, unread));
    const auto kept = cache.Learn(*meta, reduced);
    const bool is_newest = cache.VersionOf({meta->namespace_name, meta->name}) == meta->version;
    Kept(kept, *reduced);
    return is_newest;
  }

  void Kept(ObjectCache::Kept kept, const Json& object) {
    switch (kept) {
      case ObjectCache::Kept::kSame: return;
      case ObjectCache::Kept::kChanged:
        if (handlers.changed) handlers.changed(object);
        return;
      case ObjectCache::Kept::kNoRoom: no_room = true; return Complain(NoRoom());
    }
  }

  void Removed(const ObjectCache::Key& key) {
    if (!ended && handlers.removed) handlers.removed(key.first, key.second);
  }

  void EndList(const std::string& its_version) {
    listing = false;
    newest = false;
    version = its_version;
    After(timeout + kGrace, &State::IsForgotten);
    for (const ObjectCache::Key& key : cache.EndList()) Removed(key);
    if (!ended && !std::exchange(synced, true) && handlers.synced) handlers.synced();
    if (!ended) ReportHealthy();
  }

  // How an attempt ends.
  void OnEnd(const base::Status& why) {
    if (Now() - began >= kStable) {
      backoff.Reset();
      expired = false;
    }
    if (!why.ok() &&
        (why.error().code() == Code::kOutOfRange || IsFromTheFuture(why.error().message())))
      return Relist();
    if (!why.ok() && why.error().code() == Code::kInvalidArgument) {
      if (listing && stream) return ListInPages();
      ListNewest();
    }
    // Bookmarks and events come for the requested time; an earlier end means that the server shuts
    // down.
    const bool in_time = why.ok() && !listing && Now() - began >= timeout - 1s;
    if (!IsRefusal(why))
      refused_since.reset();
    else if (!refused_since)
      refused_since = Now();
    const bool refused = refused_since && Now() - *refused_since >= kLearnsRoles;
    Restart(why, in_time   ? Duration(0)
                 : refused ? kRefused + AnyUpTo(kRefused)
                           : AnyUpTo(backoff.Next()));
  }

  void Relist() {
    // If a list expires while it is read, or the watch that began with it does, the server loses
    // its history again and again.
    const bool again = std::exchange(expired, true) || version.empty();
    ListNewest();
    Restart({}, AnyUpTo(again ? std::max(options.spread, backoff.Next()) : options.spread));
  }

  void Restart(const base::Status& why, Duration delay) {
    DropStream();
    After(delay, &State::Begin);
    if (!why.ok()) Complain(why.error());
  }

  void ListIsStuck() {
    pages_once = true;
    Restart(Error(Code::kDeadlineExceeded,
                  "the API server did not end its streaming list; requesting pages"),
            {});
  }

  void SeemsHealthy() {
    After(timeout + kGrace, &State::IsForgotten);
    ReportHealthy();
  }

  void IsForgotten() {
    OnEnd(Error(Code::kDeadlineExceeded, "the API server did not end a watch in its time"));
  }

  // Reports each problem once.
  void Complain(const Error& why) {
    if (problem == why.code()) return;
    problem = why.code();
    if (handlers.problem) handlers.problem(why);
  }

  Error NoRoom() const {
    return {Code::kResourceExhausted,
            "there are more " + options.resource.plural +
                " than the cache holds: " + std::to_string(options.most_objects) + " objects, " +
                std::to_string(options.most_bytes) + " bytes"};
  }

  void ReportHealthy() {
    if (no_room) return Complain(NoRoom());
    if (!std::exchange(problem, std::nullopt)) return;
    if (handlers.problem) handlers.problem({});
  }

  Api& api;
  const Options options;
  Handlers handlers;
  ObjectCache cache;
  base::Backoff backoff;
  std::minstd_rand random{std::random_device{}()};

  std::unique_ptr<WatchStream> stream;
  std::uint64_t attempt = 0;
  std::optional<base::TimePoint> refused_since;  ///< set while each answer is a refusal
  base::TimerId timer = 0;
  base::TimePoint began;
  std::chrono::seconds timeout{};

  std::string version;  ///< to continue from; empty: list first
  std::string kind;
  std::optional<Code> problem;  ///< as last reported
  bool can_stream = true, pages_once = false;
  bool expired = false;  ///< a version has, and no stream has been good since
  bool newest = false;   ///< the next list must not be an old one
  bool listing = false, synced = false, no_room = false, in_stream = false, started = false,
       ended = false;
};

Informer::Informer(Api& api, Options options, Handlers handlers)
    : state_(std::make_shared<State>(api, std::move(options), std::move(handlers))) {}

Informer::~Informer() {
  state_->ended = true;
  state_->api.executor().Cancel(state_->timer);
  state_->DropStream();
}

void Informer::Start() {
  if (!std::exchange(state_->started, true)) state_->After({}, &State::Begin);
}

bool Informer::Learn(const Json& object) {
  const auto alive = state_;  // a handler may destroy the informer
  return alive->Learn(object);
}

Object Informer::Find(const std::string& namespace_name, const std::string& name) const {
  return state_->cache.Find({namespace_name, name});
}
std::string Informer::VersionOf(const std::string& namespace_name, const std::string& name) const {
  return state_->cache.VersionOf({namespace_name, name});
}
std::size_t Informer::size() const { return state_->cache.size(); }
std::size_t Informer::bytes() const { return state_->cache.bytes(); }
bool Informer::synced() const { return state_->synced; }
bool Informer::complete() const { return !state_->no_room; }

}  // namespace penstock::protocol::kube
