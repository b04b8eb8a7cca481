// Simulates the agents of many nodes that use one API server, in one process. Each agent is a
// client with the two informers that an agent has, one Node and one ConfigMap. Counts their
// requests. Reads commands from standard input and prints results to standard output, one JSON
// document per line.
//
//   bench-kube-fleet KUBECONFIG AGENTS LOOPS
//   > create   makes the Node objects fleet-0 …
//   > watch    starts the informers; answers when all have their first list
//   > mark     resets the counts
//   > counts
//   > quit
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "protocol/kube/client.h"
#include "protocol/kube/informer.h"

namespace {

using namespace penstock;
using protocol::kube::ApiCall;
using protocol::kube::ApiResponse;
using protocol::kube::Json;
using Clock = std::chrono::steady_clock;

const protocol::kube::Resource kNodes{"", "v1", "nodes"};
const protocol::kube::Resource kConfigMaps{"", "v1", "configmaps"};

// All requests since the mark, from any thread.
class Ledger {
 public:
  std::size_t Begin(const char* verb) {
    std::lock_guard lock(mutex_);
    ++counts_[verb];
    attempts_.push_back({Clock::now(), true});
    return attempts_.size() - 1 + offset_;
  }
  void NotReached(std::size_t attempt) {
    std::lock_guard lock(mutex_);
    if (attempt >= offset_) attempts_[attempt - offset_].reached = false;
  }
  void Count(const char* what) {
    std::lock_guard lock(mutex_);
    ++counts_[what];
  }
  void Mark() {
    std::lock_guard lock(mutex_);
    offset_ += attempts_.size();
    attempts_.clear();
    counts_.clear();
    mark_ = Clock::now();
  }
  Json Notify() {
    std::lock_guard lock(mutex_);
    Json reported(counts_);
    reported["attempts"] = attempts_.size();
    reported["peak_attempts"] = Peak(false);
    reported["peak_reached"] = Peak(true);
    reported["reached"] =
        std::ranges::count_if(attempts_, [](const Attempt& attempt) { return attempt.reached; });
    reported["seconds"] = Seconds(Clock::now() - mark_);
    reported["last_attempt"] = attempts_.empty() ? 0.0 : Seconds(attempts_.back().at - mark_);
    return reported;
  }

 private:
  struct Attempt {
    Clock::time_point at;
    bool reached = true;  ///< as far as is known
  };
  static double Seconds(Clock::duration time) {
    return std::chrono::duration<double>(time).count();
  }

  // Returns the highest number within any one second.
  std::size_t Peak(bool reached) const {
    std::vector<Clock::time_point> moments;
    for (const Attempt& attempt : attempts_) {
      if (attempt.reached || !reached) moments.push_back(attempt.at);
    }
    std::size_t most = 0;
    for (std::size_t first = 0, last = 0; last < moments.size(); ++last) {
      while (moments[last] - moments[first] >= std::chrono::seconds(1)) ++first;
      most = std::max(most, last - first + 1);
    }
    return most;
  }

  std::mutex mutex_;
  std::vector<Attempt> attempts_;
  std::size_t offset_ = 0;
  std::map<std::string, std::uint64_t> counts_;
  Clock::time_point mark_ = Clock::now();
};

// An Api whose requests are counted.
class Counted final : public protocol::kube::Api {
 public:
  Counted(Api& api, Ledger& ledger, std::atomic<int>& open)
      : api_(api), ledger_(ledger), open_(open) {}

  base::Executor& executor() override { return api_.executor(); }

  void Do(ApiCall call, Done done) override {
    if (call.method == "GET" && call.query.contains("limit") && !call.query.contains("continue"))
      NoteList(call.path);
    const std::size_t attempt = ledger_.Begin(call.method == "GET" ? "reads" : "writes");
    api_.Do(std::move(call),
            [this, attempt, done = std::move(done)](base::Result<ApiResponse> answer) {
              if (!answer.ok()) NoteError(attempt, answer.error());
              done(std::move(answer));
            });
  }

  std::unique_ptr<protocol::kube::WatchStream> Open(
      ApiCall call, std::function<void(std::string_view)> line,
      std::function<void(base::Status)> end) override {
    const bool lists = call.query.contains("sendInitialEvents");
    if (lists) NoteList(call.path);
    const std::size_t attempt = ledger_.Begin(lists ? "streaming_lists" : "watches");
    ++open_;
    const std::string path = call.path;
    return std::make_unique<Opened>(
        api_.Open(
            std::move(call),
            [this, path, line = std::move(line)](std::string_view text) {
              if (text.find("k8s.io/initial-events-end") != text.npos) expired_.erase(path);
              if (text.starts_with("{\"type\":\"ERROR\"") && text.find("\"code\":410") != text.npos)
                NoteExpired(path);
              line(text);
            },
            [this, path, attempt, end = std::move(end)](base::Status why) {
              if (!why.ok() && why.error().code() == base::Code::kOutOfRange) NoteExpired(path);
              if (!why.ok()) NoteError(attempt, why.error());
              end(std::move(why));
            }),
        open_);
  }

 private:
  struct Opened final : protocol::kube::WatchStream {
    Opened(std::unique_ptr<WatchStream> its_stream, std::atomic<int>& its_open)
        : stream(std::move(its_stream)), open(its_open) {}
    ~Opened() override { --open; }
    std::unique_ptr<WatchStream> stream;
    std::atomic<int>& open;
  };

  void NoteExpired(const std::string& path) {
    expired_[path] = true;
    ledger_.Count("expired");
  }
  void NoteList(const std::string& path) {
    if (!expired_.contains(path)) ledger_.Count("lists_without_expiry");
  }
  void NoteError(std::size_t attempt, const base::Error& error) {
    if (error.message().find("no connection") != std::string::npos) ledger_.NotReached(attempt);
    ledger_.Count(error.code() == base::Code::kUnavailable ? "unavailable" : "other_errors");
  }

  Api& api_;
  Ledger& ledger_;
  std::atomic<int>& open_;
  std::map<std::string, bool> expired_;  ///< paths whose next list has a known reason
};

struct Shared {
  Ledger ledger;
  std::atomic<int> open{0}, synced{0}, nodes_changed{0}, maps_changed{0}, created{0}, troubled{0};
};

// The agent of one node, on its loop's thread.
class Agent {
 public:
  Agent(os::Loop& loop, const protocol::kube::ClusterAccess& access, std::string node,
        Shared& shared)
      : shared_(shared),
        client_(loop, access, {.user_agent = "penstock-fleet"}),
        api_(client_, shared.ledger, shared.open),
        node_(std::move(node)) {}

  void Create() {
    const Json node = {
        {"apiVersion", "v1"},
        {"kind", "Node"},
        {"metadata", {{"name", node_}}},
        {"status", {{"capacity", {{"cpu", "64"}, {"memory", "512Gi"}, {"nvidia.com/gpu", "8"}}}}}};
    api_.Do(protocol::kube::Create(kNodes, "", node, "fleet"),
            [this](const base::Result<ApiResponse>& answer) {
              if (!answer.ok())
                std::fprintf(stderr, "bench-kube-fleet: %s\n", answer.error().ToString().c_str());
              ++shared_.created;
            });
  }

  void Watch() {
    protocol::kube::Informer::Options options{.resource = kNodes,
                                              .field_selector = "metadata.name=" + node_};
    informers_.push_back(
        std::make_unique<protocol::kube::Informer>(api_, options, Handlers(shared_.nodes_changed)));
    options = {.resource = kConfigMaps,
               .namespace_name = "default",
               .field_selector = "metadata.name=fleet"};
    informers_.push_back(
        std::make_unique<protocol::kube::Informer>(api_, options, Handlers(shared_.maps_changed)));
    for (const auto& informer : informers_) informer->Start();
  }

 private:
  protocol::kube::Informer::Handlers Handlers(std::atomic<int>& changed) {
    return {.changed = [&changed](const Json&) { ++changed; },
            .synced = [this] { ++shared_.synced; },
            .problem =
                [this, in_trouble = std::make_shared<bool>(false)](const base::Status& why) {
                  if (std::exchange(*in_trouble, !why.ok()) != !why.ok())
                    shared_.troubled += why.ok() ? -1 : 1;
                }};
  }

  Shared& shared_;
  protocol::kube::Client client_;
  Counted api_;
  const std::string node_;
  std::vector<std::unique_ptr<protocol::kube::Informer>> informers_;
};

void OnLoop(os::Loop& loop, const std::function<void()>& function) {
  std::promise<void> done;
  loop.Post([&] {
    function();
    done.set_value();
  });
  done.get_future().wait();
}

class Fleet {
 public:
  Fleet(const protocol::kube::ClusterAccess& access, int agents, int loops)
      : agents_(static_cast<std::size_t>(loops)) {
    for (int i = 0; i < loops; ++i) {
      loops_.push_back(std::make_unique<os::Loop>("fleet-" + std::to_string(i)));
      loops_.back()->Start();
    }
    for (int i = 0; i < agents; ++i) {
      const auto at = static_cast<std::size_t>(i % loops);
      OnLoop(*loops_[at], [&] {
        agents_[at].push_back(
            std::make_unique<Agent>(*loops_[at], access, "fleet-" + std::to_string(i), shared_));
      });
    }
  }
  ~Fleet() {
    for (std::size_t i = 0; i < loops_.size(); ++i) OnLoop(*loops_[i], [&] { agents_[i].clear(); });
  }

  void Each(void (Agent::*function)(), std::atomic<int>& counted, int wanted) {
    for (std::size_t i = 0; i < loops_.size(); ++i) {
      OnLoop(*loops_[i], [&] {
        for (const auto& agent : agents_[i]) (agent.get()->*function)();
      });
    }
    const auto deadline = Clock::now() + std::chrono::minutes(2);
    while (counted < wanted && Clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }

  Shared& shared() { return shared_; }

  Json Notify() {
    Json reported = shared_.ledger.Notify();
    reported["open"] = shared_.open.load();
    reported["synced"] = shared_.synced.load();
    reported["created"] = shared_.created.load();
    reported["troubled"] = shared_.troubled.load();
    reported["nodes_changed"] = shared_.nodes_changed.load();
    reported["maps_changed"] = shared_.maps_changed.load();
    return reported;
  }

 private:
  Shared shared_;
  std::vector<std::unique_ptr<os::Loop>> loops_;
  std::vector<std::vector<std::unique_ptr<Agent>>> agents_;
};

void RaiseDescriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: bench-kube-fleet KUBECONFIG AGENTS LOOPS\n");
    return 2;
  }
  RaiseDescriptors();
  const auto access = protocol::kube::FindAccess(argv[1]);
  if (!access.ok()) {
    std::fprintf(stderr, "bench-kube-fleet: %s\n", access.error().ToString().c_str());
    return 1;
  }
  const int agents = std::atoi(argv[2]);
  Fleet fleet(*access, agents, std::max(1, std::atoi(argv[3])));
  for (std::string command; std::getline(std::cin, command) && command != "quit";) {
    if (command == "create") fleet.Each(&Agent::Create, fleet.shared().created, agents);
    if (command == "watch") fleet.Each(&Agent::Watch, fleet.shared().synced, 2 * agents);
    if (command == "mark") {
      fleet.shared().nodes_changed = fleet.shared().maps_changed = 0;
      fleet.shared().ledger.Mark();
    }
    std::printf("%s\n", fleet.Notify().dump().c_str());
    std::fflush(stdout);
  }
  return 0;
}
