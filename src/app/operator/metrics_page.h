// Writes the operator's metrics page. Pure.
#pragma once

#include <string>

#include "operator/operator.h"
#include "protocol/kube/client.h"

namespace penstock::app {

/// In Prometheus' text format. Without `numbers` another operator acts.
std::string OperatorMetrics(const cluster::Operator::Numbers* numbers,
                            const protocol::kube::Requests& requests);

}  // namespace penstock::app
