// What `penstock status` makes of a report. Pure.
#pragma once

#include <string>
#include <vector>

#include "api/report.h"
#include "base/core/result.h"

namespace penstock::app {

/// Finds a device by index, id or PCI address. kNotFound names what was probably meant.
base::Result<const api::DeviceReport*> FindDevice(const api::Report& report,
                                                  const std::string& word);

/// Keeps the named devices, in the order of the report; all where none is named. The error lists
/// every word that names no device.
base::Status KeepDevices(const std::vector<std::string>& words, api::Report& report);

/// The problems of the devices, one line each with the reason, then those of the node.
std::vector<std::string> ReportProblems(const api::Report& report);

}  // namespace penstock::app
