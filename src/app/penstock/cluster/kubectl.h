// The program as a kubectl plugin: `kubectl penstock` (executed as kubectl-penstock) and its
// completion (executed as kubectl_complete-penstock). The verbs are those of `penstock`, except
// those that need this machine's agent.
#pragma once

#include <string_view>

namespace penstock::app {

/// Whether the program was executed under one of kubectl's names.
bool IsCalledByKubectl(std::string_view program);

int KubectlMain(int argc, char** argv);

}  // namespace penstock::app
