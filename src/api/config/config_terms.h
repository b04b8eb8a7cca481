// What the vendors contribute to configurations: the words that their keys and values may have.
// Whoever reads a configuration passes it; backend/config_terms.h has that of the vendors.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::api {

/// A kind of evidence that a rule of health.policy may name, and the range of its codes.
struct EvidenceTerm {
  std::string kind;
  std::int64_t least = 0, most = 0;
  bool usual = false;  ///< it is meant where a rule names none
};

/// A deprecated name of a key. Documents may have either.
struct FormerKey {
  std::string_view vendor;  ///< whose users know it
  std::string_view path;    ///< "telemetry.xidWindow"
  std::string_view now;  ///< "telemetry.errorsWindow"; of a key with a value for each vendor with
                         ///< that vendor's name: "paths.libraries.nvidia"
};

/// Empty: no vendor is known.
struct ConfigTerms {
  std::vector<std::string> vendors;    ///< those for which a key may have a value of its own
  std::vector<EvidenceTerm> evidence;  ///< several vendors may have the same kind
  std::vector<FormerKey> former_keys;
  /// The label of a Node that names its configuration, where cluster.config.nodeLabel is not set.
  std::string node_label;
  /// Vendor → the folder of its sharing servers, where sharing.serverRoots has none.
  std::map<std::string, std::string, std::less<>> server_roots;
};

}  // namespace penstock::api
