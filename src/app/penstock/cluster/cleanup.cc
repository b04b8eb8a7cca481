// The verb `penstock cleanup`: selects cluster or host, and prints the outcome.
#include "app/penstock/cluster/cleanup.h"

#include <chrono>
#include <csignal>
#include <iostream>
#include <memory>
#include <thread>

#include <CLI/CLI.hpp>

#include "base/core/quantity.h"

namespace penstock::app {

using base::Code;
using namespace std::chrono_literals;

namespace {

constexpr base::Duration kAgentEndsWithin = 30s;

constexpr char kFooter[] = R"(Examples:
  penstock cleanup --cluster --dry-run     # what would be removed
  penstock cleanup --cluster               # labels and objects of all nodes, after the chart or the manifest was deleted
  penstock cleanup --cluster --node gpu-1  # of one node that Penstock no longer serves
  penstock cleanup --host                  # on one machine: what its agent left in its folders
)";

constexpr char kKubectlFooter[] = R"(Examples:
  kubectl penstock cleanup --dry-run     # what would be removed
  kubectl penstock cleanup               # labels and objects of all nodes, after the chart or the manifest was deleted
  kubectl penstock cleanup --node gpu-1  # of one node that Penstock no longer serves
)";

constexpr char kWhat[] = R"(
Removes the fields that only Penstock's field managers own, NodeState objects, and Penstock's NodeFeature objects. The kubelet keeps
nvidia.com/gpu on the Node object with the value 0 until it restarts; that is not changed.
Exit status: 0 nothing is left, 1 something could not be removed.)";

int Print(const CleanupOutcome& outcome, bool dry_run) {
  for (const std::string& remark : outcome.remarks)
    std::cerr << "penstock cleanup: " << remark << "\n";
  for (const std::string& one : outcome.removed)
    std::cout << (dry_run ? "would remove " : "removed ") << one << "\n";
  if (outcome.removed.empty() && outcome.failures.empty())
    std::cout << "nothing of Penstock's was found\n";
  for (const std::string& failure : outcome.failures)
    std::cerr << "penstock cleanup: " << failure << "\n";
  std::cout.flush();
  return outcome.failures.empty() ? 0 : 1;
}

int Fail(const std::string& message) { return Print({.failures = {message}}, false); }

int InCluster(const Common& common, CleanupOptions options) {
  const auto timeout = base::ParseDuration(options.timeout);
  if (!timeout.ok()) return Fail("--timeout: " + timeout.error().message());
  const auto cluster = FindCluster(Completed(options.cluster, common));
  if (!cluster.ok()) return Fail(cluster.error().message());
  if (options.namespace_name.empty()) options.namespace_name = cluster->namespace_name;
  std::vector<std::string> remarks;
  if (!options.after.empty()) {
    const base::SystemClock clock;
    remarks = WaitForDaemonSet(cluster->server, options.after, *timeout, clock,
                               [](base::Duration d) { std::this_thread::sleep_for(d); });
  }
  CleanupOutcome outcome = CleanCluster(cluster->server, options);
  outcome.remarks.insert(outcome.remarks.begin(), remarks.begin(), remarks.end());
  return Print(outcome, options.dry_run);
}

/// Waits for the signal that ends the program: in a DaemonSet the pod must not end by itself.
void WaitToBeEnded() {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int signal : {SIGINT, SIGTERM}) sigaddset(&wanted, signal);
  int got = 0;
  sigwait(&wanted, &got);
}

/// Waits for an agent that is shutting down, then cleans the host.
base::Result<CleanupOutcome> CleanOnceAgentEnded(const api::NodeConfig& config, bool dry_run) {
  const auto end = std::chrono::steady_clock::now() + kAgentEndsWithin;
  while (true) {
    auto outcome = CleanHost(config, dry_run);
    const bool busy = !outcome.ok() && outcome.error().code() == Code::kFailedPrecondition;
    if (!busy || std::chrono::steady_clock::now() >= end) return outcome;
    std::this_thread::sleep_for(100ms);
  }
}

int OnHost(const Common& common, const CleanupOptions& options) {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int signal : {SIGINT, SIGTERM}) sigaddset(&wanted, signal);
  if (options.linger)
    pthread_sigmask(SIG_BLOCK, &wanted,
                    nullptr);  // process 1 of a container receives only signals that it waits for
  const auto config = Resolve(common.settings);
  if (!config.ok()) return Fail(config.error().message());
  if (options.check) {
    const auto left = LeftOnHost(*config);
    for (const std::string& one : left) std::cerr << "left: " << one << "\n";
    return left.empty() ? 0 : 1;
  }
  const auto outcome = CleanOnceAgentEnded(*config, options.dry_run);
  if (!outcome.ok()) return Fail(outcome.error().message());
  const int status = Print(*outcome, options.dry_run);
  if (options.linger && status == 0) WaitToBeEnded();
  return status;
}

}  // namespace

void AddCleanup(CLI::App& app, const Common& common, bool kubectl, int& exit_code) {
  auto options = std::make_shared<CleanupOptions>();
  options->in_cluster = kubectl;
  CLI::App* verb =
      app.add_subcommand("cleanup", "Remove what Penstock wrote, after it was uninstalled")
          ->fallthrough();
  verb->footer(std::string(kubectl ? kKubectlFooter : kFooter) + kWhat);
  AddClusterOptions(*verb, options->cluster);
  verb->add_option("--node", options->cluster.node, "only this node [all nodes]")
      ->type_name("NODE");
  verb->add_option("--namespace", options->namespace_name,
                   "namespace of Penstock's NodeFeature objects [the context's, or the pod's own]")
      ->type_name("NAMESPACE");
  verb->add_flag("--dry-run", options->dry_run, "show what would be removed without removing it");
  verb->add_option("--after-daemonset", options->after,
                   "wait until this DaemonSet's pods are ready, or it is deleted")
      ->type_name("NAMESPACE/NAME");
  verb->add_option("--timeout", options->timeout, "how long to wait for the DaemonSet")
      ->type_name("DURATION")
      ->capture_default_str();
  if (!kubectl) {
    CLI::Option* in_cluster = verb->add_flag("--cluster", options->in_cluster,
                                             "remove labels and objects through the API server");
    CLI::Option* on_host =
        verb->add_flag("--host", options->on_host,
                       "remove what a stopped agent left in its folders on this machine");
    in_cluster->excludes(on_host);
    verb->add_flag("--linger", options->linger,
                   "with --host: when done, wait for SIGINT or SIGTERM")
        ->needs(on_host);
    verb->add_flag("--check", options->check,
                   "with --host: only report by the exit status whether anything is left")
        ->needs(on_host);
  }
  verb->callback([&common, options, &exit_code] {
    if (!options->in_cluster && !options->on_host)
      throw CLI::RequiredError("cleanup: --cluster or --host");
    exit_code = options->on_host ? OnHost(common, *options) : InCluster(common, *options);
  });
}

}  // namespace penstock::app
