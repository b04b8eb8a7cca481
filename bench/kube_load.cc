// Sends requests to an API server, as many at once and as fast as it is told to: plays kubelets,
// NFD and agents of many nodes. Reads commands from standard input and prints results to standard
// output, one JSON document per line.
//
//   bench-kube-load KUBECONFIG
//   > send FILE AT_ONCE PER_SECOND   sends the requests of a file, one per line, as {"method": ...,
//                                    "path": ..., "query": {...}, "type": ..., "body": {...}};
//                                    PER_SECOND 0: as fast as the server answers
//   > quit
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <future>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "os/loop.h"
#include "protocol/kube/client.h"

namespace {

using namespace penstock;
using protocol::kube::ApiCall;
using protocol::kube::ApiResponse;
using protocol::kube::Client;
using protocol::kube::Json;
using Clock = std::chrono::steady_clock;

std::vector<ApiCall> CallsIn(const std::string& file) {
  std::vector<ApiCall> calls;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const Json read = Json::parse(line);
    calls.push_back({.method = read.at("method"),
                     .path = read.at("path"),
                     .query = read.value("query", std::map<std::string, std::string>{}),
                     .content_type = read.value("type", "application/json"),
                     .body = read.contains("body") ? read["body"].dump() : "",
                     .deadline = std::chrono::minutes(2)});
  }
  return calls;
}

// A run over a list of calls: each client has one under way. Everything is on one loop.
class Run {
 public:
  Run(os::Loop& loop, std::vector<std::unique_ptr<Client>>& clients, std::vector<ApiCall> calls,
      double per_second)
      : loop_(loop), calls_(std::move(calls)), per_second_(per_second), began_(Clock::now()) {
    loop_.Post([this, &clients] {
      under_way_ = clients.size();
      for (const auto& client : clients) Next(*client);
    });
  }

  Json Wait() {
    ended_.get_future().wait();
    const std::chrono::duration<double> seconds = Clock::now() - began_;
    return {{"seconds", seconds.count()}, {"sent", next_}, {"failed", failed_}, {"why", why_}};
  }

 private:
  void Next(Client& client) {
    if (next_ == calls_.size()) return End();
    const std::size_t number = next_++;
    const auto due = began_ + std::chrono::duration<double>(
                                  per_second_ > 0 ? static_cast<double>(number) / per_second_ : 0);
    const auto wait = std::chrono::duration_cast<base::Duration>(due - Clock::now());
    loop_.PostAfter(std::max(base::Duration{}, wait), [this, &client, number] {
      client.Do(std::move(calls_[number]),
                [this, &client](const base::Result<ApiResponse>& answer) {
                  if (!answer.ok()) {
                    ++failed_;
                    why_ = answer.error().message();
                  }
                  Next(client);
                });
    });
  }

  void End() {
    if (--under_way_ == 0) ended_.set_value();
  }

  os::Loop& loop_;
  std::vector<ApiCall> calls_;
  const double per_second_;
  const Clock::time_point began_;
  std::size_t next_ = 0, failed_ = 0, under_way_ = 0;
  std::string why_;
  std::promise<void> ended_;
};

Json Send(os::Loop& loop, const protocol::kube::ClusterAccess& access,
          const std::string& arguments) {
  std::istringstream words(arguments);
  std::string file;
  std::size_t at_once = 1;
  double per_second = 0;
  words >> file >> at_once >> per_second;
  std::vector<ApiCall> calls = CallsIn(file);
  std::vector<std::unique_ptr<Client>> clients;
  for (std::size_t i = 0; i < std::min(at_once, calls.size()); ++i)
    clients.push_back(
        std::make_unique<Client>(loop, access, Client::Options{.user_agent = "penstock-load"}));
  Json result =
      clients.empty() ? Json{{"sent", 0}} : Run(loop, clients, std::move(calls), per_second).Wait();
  std::promise<void> gone;
  loop.Post([&] {
    clients.clear();
    gone.set_value();
  });
  gone.get_future().wait();
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: bench-kube-load KUBECONFIG\n");
    return 2;
  }
  const auto access = protocol::kube::FindAccess(argv[1]);
  if (!access.ok()) {
    std::fprintf(stderr, "bench-kube-load: %s\n", access.error().ToString().c_str());
    return 1;
  }
  os::Loop loop("load");
  loop.Start();
  for (std::string command; std::getline(std::cin, command) && command != "quit";) {
    if (!command.starts_with("send ")) continue;
    std::printf("%s\n", Send(loop, *access, command.substr(5)).dump().c_str());
    std::fflush(stdout);
  }
  loop.Stop();
}
