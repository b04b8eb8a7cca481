// The program as kubectl's plugin: `kubectl penstock` (called as kubectl-penstock) and its completion (as kubectl_complete-penstock). The
// verbs are the same functions as `penstock` has; those that need this machine's agent are not among them.
#pragma once

#include <string_view>

namespace penstock::app {

/// Whether the program was called by one of kubectl's names.
bool IsCalledByKubectl(std::string_view program);

int KubectlMain(int argc, char** argv);

}  // namespace penstock::app
