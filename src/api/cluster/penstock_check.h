// Checks what the type of a field does not show. Private to src/api.
#pragma once

#include "api/cluster/penstock.h"
#include "api/config/node_config_check.h"

namespace penstock::api::internal {

/// Checks all but the section `node`. Paths are those of the spec: "agent.labels".
void CheckPenstock(const PenstockSpec& spec, const ReportProblem& report);

/// Whether Kubernetes accepts these labels; reports each that it does not.
void CheckLabelMap(std::string_view path, const std::map<std::string, std::string>& labels,
                   const ReportProblem& report);

/// Whether Kubernetes accepts a name of an object that must exist; empty: there is none.
void CheckObject(std::string_view path, const std::string& name, std::string_view what,
                 const ReportProblem& report);
void CheckAnnotations(std::string_view path, const std::map<std::string, std::string>& annotations,
                      const ReportProblem& report);
void CheckVariables(std::string_view path,
                    const std::vector<std::pair<std::string, std::string>>& variables,
                    const ReportProblem& report);

/// `path`: "drivers[0]".
void CheckDriver(const std::string& path, const DriverSpec& driver, const ReportProblem& report);

}  // namespace penstock::api::internal
