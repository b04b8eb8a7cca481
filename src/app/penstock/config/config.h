// What `penstock config check --against` shows. Pure.
#pragma once

#include <string>

#include "view/preview.h"

namespace penstock::app {

/// Formats what a configuration would offer, and the labels, one per line.
std::string ShowPreview(const view::Preview& preview);

}  // namespace penstock::app
