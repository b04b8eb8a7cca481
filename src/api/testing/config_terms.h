// Terms of configurations for tests: some of those that the product's vendors have.
#pragma once

#include <iterator>

#include "api/compat/nvidia/former_keys.h"
#include "api/config/config_terms.h"

namespace penstock::api {

inline const ConfigTerms& SomeTerms() {
  static const ConfigTerms terms{
      .vendors = {"nvidia", "amd"},
      .evidence = {{.kind = "xid", .least = 1, .most = 999, .usual = true},
                   {.kind = "sxid", .least = 1, .most = 99'999},
                   {.kind = "recovery-action", .least = 0, .most = 99},
                   {.kind = "remap-failure", .least = 0, .most = 999'999'999}},
      .former_keys = {std::begin(compat::kFormerKeys), std::end(compat::kFormerKeys)},
      .node_label = "nvidia.com/device-plugin.config"};
  return terms;
}

}  // namespace penstock::api
