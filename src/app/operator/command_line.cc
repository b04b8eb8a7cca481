#include "app/operator/command_line.h"

namespace penstock::app {

using command::Flag;
using command::Value;

namespace {

constexpr char kExamples[] =
    R"(penstock-operator                                  # in a pod
penstock-operator --kubeconfig ~/.kube/config --namespace gpu-operator --agent-image localhost/penstock:0.1.0
penstock-operator --listen off --no-crds)";

constexpr char kDetails[] =
    "Applies what ClusterPolicy, DeviceConfig and Penstock objects ask for: the agents of all "
    "nodes, their configuration, Services, and labels of the nodes with devices. Several may run; "
    "one of them "
    "holds the Lease penstock-operator and acts.\n\n"
    "The chart in deploy/helm installs it. docs/operator.md describes what it writes.";

}  // namespace

command::Verb OperatorCommand(OperatorCommandLine& line) {
  return {
      .name = "penstock-operator",
      .summary = "The operator of a cluster: installs the agents and reports their states",
      .examples = kExamples,
      .details = kDetails,
      .exit_status = "0 stopped on request, 1 cannot start (see the log), 2 usage error",
      .options = {Value("--kubeconfig", &line.kubeconfig, "FILE",
                        "how to reach the cluster [in a pod its ServiceAccount, else as kubectl]"),
                  Value("--namespace", &line.namespace_name, "NAME",
                        "namespace of the agents and of the Lease [the pod's own]")
                      .Environment("POD_NAMESPACE"),
                  Value("--identity", &line.identity, "NAME",
                        "name of this process in the Lease [the host's name]")
                      .Environment("POD_NAME"),
                  Value("--agent-image", &line.agent_image, "IMAGE",
                        "image of the agents where the policy names none")
                      .Environment("PENSTOCK_IMAGE"),
                  Value("--agent-pull-policy", &line.pull_policy, "POLICY",
                        "when nodes pull that image [IfNotPresent]")
                      .OneOf({"Always", "IfNotPresent", "Never"})
                      .Environment("PENSTOCK_PULL_POLICY"),
                  Value("--agent-pull-secrets", &line.pull_secrets, "NAMES",
                        "Secrets for that image, separated by commas")
                      .Environment("PENSTOCK_PULL_SECRETS"),
                  Value("--agent-service-account", &line.service_account, "NAME",
                        "ServiceAccount of the agents [penstock]"),
                  Value("--listen", &line.listen, "ADDRESS",
                        "host:port of /metrics, /healthz and /readyz, or \"off\" [:8080]"),
                  Flag("--no-crds", &line.no_definitions,
                       "do not apply the CustomResourceDefinitions, which must then exist"),
                  Flag("--no-pod-labels", &line.no_pod_labels,
                       "the agents may not list pods: policies that ask for the labels of pods say "
                       "so, and the rest of them takes effect"),
                  Flag("--verbose", &line.verbose, "log debug messages")}};
}

}  // namespace penstock::app
