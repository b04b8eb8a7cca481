// What the vendors contribute to configurations, for their readers. Does no I/O.
#pragma once

#include "api/config/config_terms.h"

namespace penstock::backend {

/// Of all vendors, with static lifetime. Any thread.
const api::ConfigTerms& ConfigTerms();

}  // namespace penstock::backend
