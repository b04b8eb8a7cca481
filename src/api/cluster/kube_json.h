// Parts of Kubernetes objects, as JSON. Private to src/api.
#pragma once

#include <string_view>

#include "api/cluster/kube_part.h"
#include "base/core/document.h"

namespace penstock::api::internal {

/// A part of a document, with its keys in their order.
KubeJson KubeJsonOf(const base::Value& value);

/// Whether a text is a number, or one with a percent sign: "1", "25%".
bool IsNumberOrPercent(std::string_view text);

/// Whether Prometheus reads a text as a duration: "15s", "1m30s", "0".
bool IsPrometheusDuration(std::string_view text);

}  // namespace penstock::api::internal
