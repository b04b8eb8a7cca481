// The two servers of the suites about an API server, the fake and a real one, and what their cases
// have in common. The cases contain each request that Penstock's programs send; both servers must
// return the same result and the same fields, as far as Penstock reads them.
// tests/contract/real_test.py starts the real server and passes it in PENSTOCK_CONTRACT_KUBECONFIG
// and PENSTOCK_CONTRACT_ETCD.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <future>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "os/loop.h"
#include "protocol/kube/client.h"
#include "protocol/kube/credentials/access.h"
#include "protocol/kube/fake/fake_api.h"
#include "protocol/kube/watch.h"

namespace penstock::protocol::kube::contract {

using namespace std::chrono_literals;

constexpr auto kWithin = 60s;

inline const Resource kNodes{"", "v1", "nodes"};
inline const Resource kPods{"", "v1", "pods"};
inline const Resource kConfigMaps{"", "v1", "configmaps"};
inline const Resource kEvents{"", "v1", "events"};
inline const Resource kLeases{"coordination.k8s.io", "v1", "leases"};
inline const Resource kDaemonSets{"apps", "v1", "daemonsets"};
inline const Resource kServices{"", "v1", "services"};
inline const Resource kNodeStates{"penstock.io", "v1alpha1", "nodestates"};
inline const Resource kNodeFeatures{"nfd.k8s-sigs.io", "v1alpha1", "nodefeatures"};
inline const Resource kDefinitions{"apiextensions.k8s.io", "v1", "customresourcedefinitions"};
inline const Resource kNotInstalled{"nobody.example.com", "v1", "things"};

inline std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

/// A server with its own event loop. Calls block.
class Server {
 public:
  virtual ~Server() = default;

  Result<ApiResponse> Do(ApiCall call) { return DoOn(api(), std::move(call)); }
  /// Calls as a user without any rights.
  virtual Result<ApiResponse> DoAsStranger(ApiCall call) = 0;
  /// Calls with a token that the server does not know.
  virtual Result<ApiResponse> DoUnauthenticated(ApiCall call) = 0;
  /// Discards the history: afterwards only the current state is known.
  virtual void Compact() = 0;
  /// Lets streams that requested bookmarks receive one before they end; a real server sends one by
  /// itself.
  virtual void Bookmark() = 0;
  /// What a kubelet does with a pod that is to end, and the garbage collector with an object whose
  /// dependents go first; the fake does it at once.
  virtual void Finish(const Resource& resource, const std::string& space,
                      const std::string& name) = 0;
  /// Marks a definition as tests with a fake do; a real server does that within a second.
  virtual void Establish(const std::string& definition) = 0;

  virtual Api& api() = 0;
  os::Loop& loop() { return loop_; }

  void OnLoop(const std::function<void()>& function) {
    std::promise<void> done;
    loop_.Post([&] {
      function();
      done.set_value();
    });
    done.get_future().wait();
  }

 protected:
  Result<ApiResponse> DoOn(Api& which, ApiCall call) {
    std::promise<Result<ApiResponse>> promise;
    loop_.Post([&] {
      which.Do(std::move(call),
               [&promise](Result<ApiResponse> answer) { promise.set_value(std::move(answer)); });
    });
    return promise.get_future().get();
  }

 private:
  os::Loop loop_{"contract"};
};

class FakeServer final : public Server {
 public:
  explicit FakeServer(StreamingLists streaming_lists) {
    loop().Start();
    OnLoop([&] {
      fake_ = std::make_unique<FakeApi>(loop());
      fake_->SetStreamingLists(streaming_lists);
      fake_->NotInstalled(kNotInstalled.Path());
      fake_->NotInstalled("/apis/nobody.example.com/v1");
      fake_->NotInstalled("/apis/monitoring.coreos.com");
    });
  }
  ~FakeServer() override {
    OnLoop([this] { fake_.reset(); });
    loop().Stop();
  }

  Api& api() override { return *fake_; }
  Result<ApiResponse> DoAsStranger(ApiCall call) override { return With(403, std::move(call)); }
  Result<ApiResponse> DoUnauthenticated(ApiCall call) override {
    return With(401, std::move(call));
  }
  void Compact() override {
    OnLoop([this] { fake_->ForgetHistory(); });
  }
  void Bookmark() override {
    OnLoop([this] { fake_->Bookmark(); });
  }
  void Finish(const Resource&, const std::string&, const std::string&) override {}
  void Establish(const std::string& definition) override {
    OnLoop([&] {
      fake_->Merge(kDefinitions.Path("", definition),
                   {{"status", {{"conditions", {{{"type", "Established"}, {"status", "True"}}}}}}});
    });
  }

 private:
  Result<ApiResponse> With(int status, ApiCall call) {
    OnLoop([&] { fake_->Fail({.status = status, .method = call.method, .path = call.path}); });
    return Do(std::move(call));
  }

  std::unique_ptr<FakeApi> fake_;
};

class RealServer final : public Server {
 public:
  explicit RealServer(const ClusterAccess& admin) {
    loop().Start();
    ClusterAccess stranger = admin, unknown = admin, etcd;
    for (ClusterAccess* access : {&stranger, &unknown})
      access->client_certificate = access->client_key = {};
    stranger.token.data = "token-of-a-stranger";
    unknown.token.data = "token-of-nobody";
    etcd.server = Environment("PENSTOCK_CONTRACT_ETCD");
    OnLoop([&] {
      admin_ = std::make_unique<Client>(loop(), admin);
      stranger_ = std::make_unique<Client>(loop(), stranger);
      unknown_ = std::make_unique<Client>(loop(), unknown);
      etcd_ = std::make_unique<Client>(loop(), etcd);
    });
  }
  ~RealServer() override {
    OnLoop([this] {
      for (auto* client : {&admin_, &stranger_, &unknown_, &etcd_}) client->reset();
    });
    loop().Stop();
  }

  Api& api() override { return *admin_; }
  Result<ApiResponse> DoAsStranger(ApiCall call) override {
    return DoOn(*stranger_, std::move(call));
  }
  Result<ApiResponse> DoUnauthenticated(ApiCall call) override {
    return DoOn(*unknown_, std::move(call));
  }

  /// Compacts through etcd's HTTP gateway, as the server does by itself every five minutes.
  void Compact() override {
    const auto range = Parse(Etcd("/v3/kv/range", {{"key", "AA=="}}));
    ASSERT_TRUE(range.ok()) << range.error().ToString();
    const auto done = Etcd("/v3/kv/compaction",
                           {{"revision", (*range)["header"]["revision"]}, {"physical", true}});
    ASSERT_TRUE(done.ok()) << done.error().ToString();
  }
  void Bookmark() override {}
  void Finish(const Resource& resource, const std::string& space,
              const std::string& name) override {
    ApiCall call = resource.plural == "pods"
                       ? Delete(resource, space, name)
                       : Patch(resource, space, name, kMergePatch,
                               {{"metadata", {{"finalizers", nullptr}}}}, "somebody");
    if (call.method == "DELETE") call.query["gracePeriodSeconds"] = "0";
    const auto done = Do(std::move(call));
    ASSERT_TRUE(done.ok()) << done.error().ToString();
  }
  void Establish(const std::string&) override {}

 private:
  Result<ApiResponse> Etcd(const std::string& path, const Json& body) {
    return DoOn(
        *etcd_,
        {.method = "POST", .path = path, .content_type = "application/json", .body = body.dump()});
  }

  std::unique_ptr<Client> admin_, stranger_, unknown_, etcd_;
};

/// A stream and its result. Bookmarks that do not end a list are kept apart, because the server
/// sends them at any time, about once a minute.
class Watching {
 public:
  Watching(Server& server, ApiCall call) : server_(server) {
    call.query["watch"] = "1";
    server_.OnLoop([&] {
      stream_ = server_.api().Open(
          std::move(call),
          [this](std::string_view line) {
            std::lock_guard lock(mutex_);
            (IsChance(line) ? bookmarks_ : lines_).emplace_back(line);
            changed_.notify_all();
          },
          [this](base::Status why) {
            std::lock_guard lock(mutex_);
            end_ = why.ok() ? "ok" : why.error().ToString();
            changed_.notify_all();
          });
    });
  }
  ~Watching() {
    server_.OnLoop([this] { stream_.reset(); });
  }

  /// Waits for `count` lines and returns the events, as Penstock's decoder reads them: "ADDED
  /// name", "BOOKMARK end of list", "ERROR 410".
  std::vector<std::string> Events(std::size_t count) {
    Wait([&] { return lines_.size() >= count || !end_.empty(); });
    std::vector<std::string> events;
    for (const Json& line : Lines()) events.push_back(Described(line));
    return events;
  }

  std::string End() {
    Wait([&] { return !end_.empty(); });
    std::lock_guard lock(mutex_);
    return end_;
  }

  std::vector<Json> Lines() { return Parsed(lines_); }
  std::vector<Json> Bookmarks() { return Parsed(bookmarks_); }

 private:
  static bool IsChance(std::string_view line) { return Described(Json::parse(line)) == "BOOKMARK"; }

  std::vector<Json> Parsed(const std::vector<std::string>& lines) {
    std::lock_guard lock(mutex_);
    std::vector<Json> parsed;
    for (const std::string& line : lines) parsed.push_back(Json::parse(line));
    return parsed;
  }

  static std::string Described(const Json& line) {
    const auto event = DecodeEvent(line.dump());
    if (!event.ok()) return event.error().ToString();
    switch (event->type) {
      case WatchEvent::Type::kAdded: return "ADDED " + event->meta.name;
      case WatchEvent::Type::kModified: return "MODIFIED " + event->meta.name;
      case WatchEvent::Type::kDeleted: return "DELETED " + event->meta.name;
      case WatchEvent::Type::kBookmark:
        return event->ends_list ? "BOOKMARK end of list" : "BOOKMARK";
      case WatchEvent::Type::kError: return "ERROR " + std::to_string(event->code);
    }
    return "";
  }

  template <typename Predicate>
  void Wait(Predicate predicate) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kWithin, predicate)) << lines_.size() << " lines came";
  }

  Server& server_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_, bookmarks_;
  std::string end_;
  std::unique_ptr<WatchStream> stream_;
};

class ApiServer : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "fake") {
      server_ = std::make_unique<FakeServer>(streaming_lists_);
    } else {
      const auto access = FindAccess(Environment("PENSTOCK_CONTRACT_KUBECONFIG"));
      ASSERT_TRUE(access.ok()) << "tests/contract/real_test.py starts the server: "
                               << access.error().ToString();
      server_ = std::make_unique<RealServer>(*access);
    }
    // Object names are unique per case, because the real server keeps the objects of earlier cases.
    std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    name = name.substr(0, name.find('/'));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    name_ = name.substr(0, 60);
  }

  Result<ApiResponse> Do(ApiCall call) { return server_->Do(std::move(call)); }

  Json Ok(ApiCall call) {
    const std::string what = call.method + " " + call.path;
    const auto object = Parse(Do(std::move(call)));
    EXPECT_TRUE(object.ok()) << what << ": " << (object.ok() ? "" : object.error().ToString());
    return object.ok() ? *object : Json::object();
  }

  /// Returns "CODE: message", or the HTTP status of a successful response.
  static std::string Verdict(const Result<ApiResponse>& answer) {
    if (answer.ok()) return std::to_string(answer->status);
    return std::string(base::Name(answer.error().code())) + ": " + answer.error().message();
  }
  std::string VerdictOf(ApiCall call) { return Verdict(Do(std::move(call))); }

  static Json Node(const std::string& name, const Json& labels = Json::object()) {
    return {
        {"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", name}, {"labels", labels}}}};
  }
  static Json NodeState(const std::string& name, const Json& status = Json::object()) {
    return {{"apiVersion", "penstock.io/v1alpha1"},
            {"kind", "NodeState"},
            {"metadata", {{"name", name}}},
            {"status", status}};
  }
  static Json ConfigMap(const std::string& name, const std::string& value,
                        const Json& labels = Json::object()) {
    return {{"apiVersion", "v1"},
            {"kind", "ConfigMap"},
            {"metadata", {{"name", name}, {"labels", labels}}},
            {"data", {{"key", value}}}};
  }

  static Json Service(int port) {
    return {{"apiVersion", "v1"},
            {"kind", "Service"},
            {"metadata", {{"name", "s"}}},
            {"spec",
             {{"selector", {{"app", "ours"}}},
              {"ports", {{{"name", "metrics"}, {"port", port}, {"protocol", "TCP"}}}}}}};
  }
  static Json Owner(const std::string& uid, bool controller) {
    return {{"apiVersion", "nvidia.com/v1"},
            {"kind", "ClusterPolicy"},
            {"name", uid},
            {"uid", uid},
            {"controller", controller}};
  }
  static std::vector<std::string> OwnersOfSpec(const Json& object) {
    std::vector<std::string> owners;
    for (const Json& entry : object["metadata"]["managedFields"])
      if (entry["fieldsV1"].contains("f:spec"))
        owners.push_back(entry["manager"].get<std::string>() + " " +
                         entry["operation"].get<std::string>());
    return owners;
  }

  Json MakeNode(const Json& labels = Json::object()) {
    return Ok(Create(kNodes, "", Node(name_, labels), "somebody"));
  }
  Json NodeNow() { return Ok(Get(kNodes, "", name_)); }

  /// Creates a namespace for this case.
  std::string MakeNamespace() {
    Ok(Create({"", "v1", "namespaces"}, "",
              {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", name_}}}},
              "somebody"));
    return name_;
  }

  /// Changes an object as other clients do: read, modify, write.
  Json Replace(const Resource& resource, const std::string& space, const std::string& name,
               const Json& patch) {
    Json object = Ok(Get(resource, space, name));
    object.merge_patch(patch);
    return Ok({.method = "PUT",
               .path = resource.Path(space, name),
               .query = {{"fieldManager", "somebody"}},
               .content_type = "application/json",
               .body = object.dump()});
  }

  ApiCall List(const Resource& resource, const std::string& space,
               std::map<std::string, std::string> query) {
    return {.path = resource.Path(space), .query = std::move(query)};
  }

  /// The list request that the informer sends.
  static ApiCall StreamingList(const Resource& resource, const std::string& space,
                               const std::string& field_selector = "") {
    ApiCall call{.path = resource.Path(space),
                 .query = {{"allowWatchBookmarks", "true"},
                           {"timeoutSeconds", "300"},
                           {"sendInitialEvents", "true"},
                           {"resourceVersionMatch", "NotOlderThan"}}};
    if (!field_selector.empty()) call.query["fieldSelector"] = field_selector;
    return call;
  }
  static ApiCall WatchFrom(const Resource& resource, const std::string& space,
                           const std::string& version) {
    return {.path = resource.Path(space),
            .query = {{"allowWatchBookmarks", "true"},
                      {"timeoutSeconds", "300"},
                      {"resourceVersion", version}}};
  }

  static std::string VersionOf(const Json& object) {
    return object.value("/metadata/resourceVersion"_json_pointer, "");
  }

  static std::vector<std::string> NamesOf(const Json& list) {
    std::vector<std::string> names;
    for (const Json& item : list["items"]) names.push_back(item["metadata"]["name"]);
    return names;
  }

  /// Returns "manager operation[/subresource]: label, label", in the form in which ClusterAdapter
  /// and the cleanup read owners.
  static std::vector<std::string> OwnersOf(const Json& object) {
    std::vector<std::string> owners;
    for (const Json& entry : object["metadata"]["managedFields"]) {
      std::string text =
          entry["manager"].get<std::string>() + " " + entry["operation"].get<std::string>();
      if (entry.contains("subresource")) text += "/" + entry["subresource"].get<std::string>();
      text += ":";
      const Json labels =
          entry["fieldsV1"].value("/f:metadata/f:labels"_json_pointer, Json::object());
      for (const auto& [key, value] : labels.items())
        if (key != ".") text += " " + key;
      owners.push_back(text);
    }
    return owners;
  }

  StreamingLists streaming_lists_ = StreamingLists::kYes;  ///< of the fake
  std::unique_ptr<Server> server_;
  std::string name_;
};

}  // namespace penstock::protocol::kube::contract
