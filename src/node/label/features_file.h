// Formats labels as the text that Node Feature Discovery reads from its features.d folder. Does no
// I/O.
#pragma once

#include <string>

#include "node/label/labels.h"

namespace penstock::node::label {

/// Returns one "key=value" per line, sorted by key (NFD, "Customization guide", local source).
/// Labels beyond the 64 KiB that NFD reads are dropped from the end, and this is logged.
std::string FeaturesText(const LabelSet& labels);

}  // namespace penstock::node::label
