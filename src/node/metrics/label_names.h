// Turns arbitrary keys into valid and unique names of Prometheus labels. Pure; any thread.
#pragma once

#include <map>
#include <string>

#include "device/exporter.h"

namespace penstock::node::metrics {

/// Names labels as kube-state-metrics names the labels of objects (its internal/store/utils.go):
/// "label_" and the key in snake case, with '_' for all characters except letters and digits. Keys
/// that result in the same name get "_conflict1", "_conflict2", ... appended, in the order of the
/// keys.
device::ExporterLabels KubeLabels(const std::map<std::string, std::string>& labels);

/// Names labels as vendors' exporters name the labels of pods: the key with '_' for all characters
/// except letters and digits. A key uses the name of KubeLabels instead if its name would be
/// invalid, reserved by Prometheus ("__name__"), or already taken in `others` or by an earlier key.
device::ExporterLabels PlainLabels(const std::map<std::string, std::string>& labels,
                                   const device::ExporterLabels& others);

}  // namespace penstock::node::metrics
