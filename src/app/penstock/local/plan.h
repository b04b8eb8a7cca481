// Formats the agent's answer to `penstock plan`. Pure.
#pragma once

#include <string>

#include "api/config_preview.h"
#include "app/penstock/common/table.h"

namespace penstock::app {

/// Formats the preview for users.
std::string ShowPreview(const api::ConfigPreview& preview, const Style& style);

}  // namespace penstock::app
