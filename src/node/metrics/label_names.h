// Names of labels from keys that others chose: valid ones, and no two the same. Pure; any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "device/exporter.h"

namespace penstock::node::metrics {

/// As kube-state-metrics names the labels of objects (its internal/store/utils.go): "label_" and the key, in which all but letters and
/// digits is '_', in lower case with a '_' where it changed within a word. Of several that come to be called the same each has
/// "_conflict1",
/// "_conflict2", ... behind it, in the order of their keys.
device::ExporterLabels KubeLabels(const std::map<std::string, std::string>& labels);

/// As vendors' exporters name pods' labels: the key, in which all but letters and digits is '_'. What would be no valid name then, one of
/// Prometheus' own ("__name__"), one that is taken in `others` already or by a key before it gets KubeLabels' name.
device::ExporterLabels PlainLabels(const std::map<std::string, std::string>& labels, const device::ExporterLabels& others);

}  // namespace penstock::node::metrics
