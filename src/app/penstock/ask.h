// `penstock status` and `ps`: questions to a running agent. Changes nothing.
#pragma once

#include <string>
#include <string_view>

#include "api/report.h"
#include "app/penstock/verbs.h"
#include "base/core/result.h"

namespace penstock::app {

/// The answer to one request of the broker's protocol (edge/broker/protocol.h).
base::Result<std::string> AskLine(const std::string& run_dir, std::string_view request);

base::Result<api::Report> AskReport(const std::string& run_dir);

// The verbs; each returns the exit status: 0, or 1 where no agent answers.
int Status(const Common& common);
int Ps(const Common& common);

}  // namespace penstock::app
