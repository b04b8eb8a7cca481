// Labels as the text that Node Feature Discovery reads from its features.d folder. Writes no file.
#pragma once

#include <string>

#include "node/label/labels.h"

namespace penstock::node::label {

/// One "key=value" a line, sorted by key (NFD, "Customization guide", local source). Labels that do not fit into the 64 KiB that NFD reads
/// are left out from the end, and that is logged.
std::string FeaturesText(const LabelSet& labels);

}  // namespace penstock::node::label
