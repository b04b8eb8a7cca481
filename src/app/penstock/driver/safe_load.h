// Waits until the operator has emptied the node for a driver that is to be loaded: the handshake of
// NVIDIA's k8s-operator-libs, by an annotation of the Node.
#pragma once

#include <functional>
#include <string>

#include "app/penstock/cluster/cluster.h"
#include "base/core/clock.h"
#include "base/core/result.h"

namespace penstock::app {

/// Annotates the Node and returns when the annotation has been removed. Waits as long as that
/// takes: workloads may run for days. `say` gets what it waits for, and errors that may pass.
/// kPermissionDenied, kNotFound: the Node cannot be read or written.
base::Status AwaitSafeLoad(const ApiServer& server, const std::string& node,
                           const std::function<void(const std::string&)>& say,
                           const std::function<void(base::Duration)>& sleep);

}  // namespace penstock::app
