// The command line of penstock-operator.
#pragma once

#include <string>

#include "app/command/verb.h"

namespace penstock::app {

struct OperatorCommandLine {
  std::string kubeconfig;
  std::string namespace_name;  ///< empty: the pod's, or the kubeconfig's
  std::string identity;        ///< in the Lease; empty: the host's name
  std::string agent_image;
  std::string pull_policy = "IfNotPresent";
  std::string pull_secrets;  ///< separated by commas
  std::string service_account = "penstock";
  std::string listen = ":8080";
  bool no_definitions = false;
  bool no_pod_labels = false;
  bool verbose = false;
};

/// `line` must outlive the parsing.
command::Verb OperatorCommand(OperatorCommandLine& line);

}  // namespace penstock::app
