// The verb `penstock cleanup`: selects cluster or host, and prints the outcome.
#include "app/penstock/cluster/cleanup.h"

#include <chrono>
#include <csignal>
#include <iostream>
#include <memory>
#include <thread>

#include "app/penstock/cluster/cleanup_operator.h"
#include "app/state_files.h"
#include "base/core/quantity.h"
#include "os/lock_file.h"

namespace penstock::app {

using base::Code;
using namespace std::chrono_literals;

namespace {

constexpr base::Duration kAgentEndsWithin = 30s;

constexpr char kExamples[] =
    R"(penstock cleanup --cluster --dry-run     # what would be removed
penstock cleanup --cluster               # labels and objects of all nodes, after the chart or the manifest was deleted
penstock cleanup --cluster --node gpu-1  # of one node that Penstock no longer serves
penstock cleanup --host                  # on one machine: what its agent left in its folders
penstock cleanup --host --keep-state     # ... but what a later agent goes on with, as when the last policy is deleted)";

constexpr char kKubectlExamples[] =
    R"(kubectl penstock cleanup --dry-run     # what would be removed
kubectl penstock cleanup               # labels and objects of all nodes, after the chart or the manifest was deleted
kubectl penstock cleanup --node gpu-1  # of one node that Penstock no longer serves)";

constexpr char kDetails[] =
    R"(Removes the fields that only Penstock's field managers own, the Nodes' condition, NodeState objects, and Penstock's
NodeFeature objects. The kubelet keeps nvidia.com/gpu on the Node object with the value 0 until it
restarts; that is not changed.)";

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
  CleanupOutcome outcome;
  const base::SystemClock clock;
  const Sleep sleep = [](base::Duration d) { std::this_thread::sleep_for(d); };
  // First its agents, which would write again, and on each host keep the files that the DaemonSet
  // removes.
  if (options.after_operator &&
      !CleanAfterOperator(cluster->server, options, *timeout, clock, sleep, outcome))
    return Print(outcome, options.dry_run);
  if (!options.after.empty())
    for (std::string& remark :
         WaitForDaemonSet(cluster->server, options.after, *timeout, clock, sleep))
      outcome.remarks.push_back(std::move(remark));
  CleanCluster(cluster->server, options, outcome);
  if (options.crds) DeleteDefinitions(cluster->server, options, outcome);
  return Print(outcome, options.dry_run);
}

int PoliciesOfRelease(const Common& common, const CleanupOptions& options) {
  const auto timeout = base::ParseDuration(options.timeout);
  if (!timeout.ok()) return Fail("--timeout: " + timeout.error().message());
  const auto cluster = FindCluster(Completed(options.cluster, common));
  if (!cluster.ok()) return Fail(cluster.error().message());
  const base::SystemClock clock;
  return Print(DeletePolicies(cluster->server, options, *timeout, clock,
                              [](base::Duration d) { std::this_thread::sleep_for(d); }),
               options.dry_run);
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
base::Result<CleanupOutcome> CleanOnceAgentEnded(const api::NodeConfig& config,
                                                 const CleanupOptions& options) {
  const auto end = std::chrono::steady_clock::now() + kAgentEndsWithin;
  while (true) {
    auto outcome = options.keep_state ? CleanSeen(config, options.dry_run)
                                      : CleanHost(config, options.dry_run);
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
    auto left = options.keep_state ? SeenOnHost(*config) : LeftOnHost(*config);
    // It writes again what is not there at this moment.
    if (os::LockFile::IsHeld(LockPath(config->paths.run_dir)))
      left.emplace_back("an agent that has not ended");
    for (const std::string& one : left) std::cerr << "left: " << one << "\n";
    return left.empty() ? 0 : 1;
  }
  const auto outcome = CleanOnceAgentEnded(*config, options);
  if (!outcome.ok()) return Fail(outcome.error().message());
  const int status = Print(*outcome, options.dry_run);
  if (options.linger && status == 0) WaitToBeEnded();
  return status;
}

}  // namespace

Verb CleanupVerb(const Common& common, const std::string& program) {
  const auto options = std::make_shared<CleanupOptions>();
  const bool kubectl = program != "penstock";
  options->in_cluster = kubectl;
  Verb verb{
      .name = "cleanup",
      .summary = "Remove what Penstock wrote, after it was uninstalled",
      .examples = kubectl ? kKubectlExamples : kExamples,
      .details = kDetails,
      .exit_status = "0 nothing is left, 1 something could not be removed, 2 usage error",
      .options =
          {Value("--node", &options->cluster.node, "NODE", "only this node [all nodes]"),
           Value("--namespace", &options->namespace_name, "NAMESPACE",
                 "namespace of Penstock's NodeFeature objects [the context's, or the pod's own]"),
           Flag("--dry-run", &options->dry_run, "show what would be removed without removing it"),
           Value("--after-daemonset", &options->after, "NAMESPACE/NAME",
                 "wait until this DaemonSet's pods are ready, or it is deleted"),
           Value("--timeout", &options->timeout, "DURATION",
                 "how long to wait for the DaemonSet, or for the operator [60s]"),
           Flag("--operator", &options->after_operator,
                "also remove what the operator made in the namespace and for the cluster, after it "
                "was uninstalled"),
           Flag("--crds", &options->crds,
                "... and the CRDs, with every ClusterPolicy, NVIDIADriver, GPUCluster and "
                "Penstock; that of DeviceConfig stays while there are some in other namespaces")
               .Needs({"--operator"})},
      .run = [&common, options] {
        if (options->policies) return PoliciesOfRelease(common, *options);
        return options->on_host ? OnHost(common, *options) : InCluster(common, *options);
      }};
  AddClusterOptions(verb, options->cluster);
  if (kubectl) return verb;
  const std::vector<command::Option> more = {
      Flag("--cluster", &options->in_cluster, "remove labels and objects through the API server"),
      Flag("--host", &options->on_host,
           "remove what a stopped agent left in its folders on this machine")
          .Excludes({"--cluster"}),
      Flag(
          "--policies", &options->policies,
          "before an uninstall: delete the policies of a helm release, and wait until the operator "
          "has taken back what it wrote for them")
          .Excludes({"--cluster", "--host"}),
      Value("--release", &options->release, "NAMESPACE/NAME", "with --policies: the helm release")
          .Needs({"--policies"}),
      Flag("--keep-state", &options->keep_state,
           "with --host: keep what a later agent goes on with (what pods hold, divisions, usage "
           "records), programs, and CDI specifications while devices are held")
          .Needs({"--host"}),
      Flag("--linger", &options->linger, "with --host: when done, wait for SIGINT or SIGTERM")
          .Needs({"--host"}),
      Flag("--check", &options->check,
           "with --host: only report by the exit status whether anything is left")
          .Needs({"--host"})};
  verb.options.insert(verb.options.end(), more.begin(), more.end());
  verb.check = [options]() -> base::Status {
    if (options->policies && options->release.find('/') == std::string::npos)
      return base::Error(Code::kInvalidArgument, "--policies needs --release NAMESPACE/NAME");
    if (options->in_cluster || options->on_host || options->policies) return {};
    return base::Error(Code::kInvalidArgument,
                       "choose --cluster (labels and objects of all nodes), --host (what an agent "
                       "left on this machine) or --policies (before the operator is uninstalled)");
  };
  return verb;
}

}  // namespace penstock::app
