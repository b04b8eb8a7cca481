// Queries a running agent. Changes nothing.
#pragma once

#include <string>
#include <string_view>

#include "api/report.h"
#include "app/penstock/common/verbs.h"
#include "base/core/result.h"

namespace penstock::app {

/// Returns the response to one request of the broker's protocol (protocol/broker/protocol.h).
base::Result<std::string> QueryLine(const std::string& run_dir, std::string_view request);

base::Result<api::Report> QueryReport(const std::string& run_dir);

}  // namespace penstock::app
